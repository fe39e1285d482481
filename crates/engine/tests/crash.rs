//! Power cuts at random moments: whatever a disk may have kept of what was not synced, every acknowledged batch is
//! there, a batch that was not answered is there whole or not at all, and nothing else is.
//!
//! A region is written, flushed and compacted over a file system in memory that is photographed before random changes.
//! Every picture is opened as a server opens its directory, compared, and one of them is where the next run begins.
//! `GRAMPUS_CRASH_IMAGES` says how many pictures are looked at.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use base::env::{Env, Random};
use base::testing::SeededRandom;
use bytes::Bytes;
use cell::KeyValue;
use cell::cell::CellType;
use cell::mutation::Mutation;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use common::camera::{Camera, Lie};
use common::model::{Model, Shown};
use common::world::{Opened, below, difference, open, open_table, options, region_info, run, scan, table};
use engine::Region;
use engine::region::{CompactionKind, RegionOptions};
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};

const WRITERS: usize = 3;
const ROWS_OF_WRITER: u64 = 3;
const BATCHES_OF_RUN: u64 = 12;

/// What a writer knows: what was acknowledged, and what it may be if the batch on its way arrives.
#[derive(Clone)]
struct Knowledge {
    acknowledged: Arc<Vec<Shown>>,
    under_way: Option<Arc<Vec<Shown>>>,
    /// What to send again if no answer comes: a change with a nonce.
    unanswered: Option<Arc<Vec<Mutation>>>,
}

impl Knowledge {
    fn acknowledge(&mut self) {
        self.acknowledged = self.under_way.take().expect("set before the batch was sent");
        self.unanswered = None;
    }
}

/// What all writers know. A picture's note is a copy.
type Ledger = Arc<Mutex<Vec<Knowledge>>>;

/// One of the clients of the region; has rows of its own.
struct Writer {
    number: usize,
    random: Arc<dyn Random>,
    model: Model,
    /// Rises, so that what a flush or a compaction drops never shows.
    timestamp: i64,
    /// The last nonce that was used.
    nonce: u64,
    /// Got no answer before the crash: whether it arrived, and what it was.
    unanswered: Option<(bool, Arc<Vec<Mutation>>)>,
}

impl Writer {
    /// Writes batches until one fails; says in the ledger what it knows.
    async fn write(&mut self, region: &Region, ledger: &Ledger) {
        if let Some((arrived, mutations)) = self.unanswered.take() {
            // Exactly once: made if it was lost, and only then.
            if !self.count(region, ledger, mutations, arrived).await {
                return;
            }
        }
        for _ in 0..below(&*self.random, BATCHES_OF_RUN) {
            if below(&*self.random, 3) == 0 {
                let increments = Arc::new(self.increments());
                if !self.count(region, ledger, increments, false).await {
                    return;
                }
            }
            let mutations = self.batch();
            self.model.apply(&mutations, self.timestamp);
            ledger.lock().unwrap()[self.number].under_way = Some(Arc::new(self.model.scan()));
            if region.batch(mutations).await.iter().any(Result::is_err) {
                return;
            }
            ledger.lock().unwrap()[self.number].acknowledge();
            if below(&*self.random, 3) == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Sends increments, which are in the model already or not; whether they were acknowledged.
    async fn count(
        &mut self,
        region: &Region,
        ledger: &Ledger,
        increments: Arc<Vec<Mutation>>,
        are_made: bool,
    ) -> bool {
        if !are_made {
            self.model.change(None, &increments, 0).expect("counters are numbers");
        }
        {
            let known = &mut ledger.lock().unwrap()[self.number];
            known.under_way = Some(Arc::new(self.model.scan()));
            known.unanswered = Some(increments.clone());
        }
        if region.change(None, increments.to_vec()).await.is_err() {
            return false;
        }
        ledger.lock().unwrap()[self.number].acknowledge();
        true
    }

    /// Counters in both families, one up, under a nonce. They begin far in the future, so that their timestamps are
    /// those of the version before and one more, whatever the clock says.
    fn increments(&mut self) -> Vec<Mutation> {
        const BEGINNING: i64 = 1 << 50;
        self.nonce += 1;
        let row = Bytes::from(format!("w{}-count", self.number));
        let delta =
            |family: &[u8]| KeyValue::new(&row, family, b"n", BEGINNING, CellType::Put, &1u64.to_be_bytes());
        let nonce = (self.number as u64, self.nonce);
        ["f", "g"]
            .map(|family| Mutation {
                nonce,
                ..Mutation::increment(row.clone(), vec![delta(family.as_bytes())])
            })
            .to_vec()
    }

    fn batch(&mut self) -> Vec<Mutation> {
        (0..=below(&*self.random, 3)).map(|_| self.mutation()).collect()
    }

    fn mutation(&mut self) -> Mutation {
        self.timestamp += 1;
        let row = Bytes::from(format!("w{}-{}", self.number, below(&*self.random, ROWS_OF_WRITER)));
        match below(&*self.random, 8) {
            0 => Mutation { timestamp: self.timestamp, ..Mutation::delete(row, Vec::new()) },
            1 => {
                let marker = KeyValue::new(&row, b"g", b"q", self.timestamp, CellType::DeleteColumn, b"");
                Mutation::delete(row, vec![marker])
            }
            _ => {
                // A cell in each family: a row is torn if one is without the other.
                let value = "v".repeat(1 + below(&*self.random, 40) as usize) + &self.timestamp.to_string();
                let cell = |family: &[u8]| {
                    KeyValue::new(&row, family, b"q", self.timestamp, CellType::Put, value.as_bytes())
                };
                Mutation::put(row.clone(), vec![cell(b"f"), cell(b"g")])
            }
        }
    }
}

/// Flushes, compacts and rolls while the writers write.
async fn disturb(opened: &Opened, random: &dyn Random) {
    for _ in 0..below(random, 5) {
        for _ in 0..below(random, 4) {
            tokio::task::yield_now().await;
        }
        // What fails by a planned fault is no matter here: the pictures tell what counts.
        match below(random, 7) {
            0..=2 => drop(opened.region.flush().await),
            6 => drop(opened.region.flush_families(&[Bytes::from_static(b"g")]).await),
            3 => drop(opened.region.compact(None, CompactionKind::Minor).await),
            4 => drop(opened.region.compact(None, CompactionKind::Major).await),
            _ => drop(opened.log.roll().await),
        }
    }
}

/// What pictures showed, so that it can be seen that a campaign meets what it is about.
#[derive(Default)]
struct Met {
    unfinished_outputs: AtomicU64,
    several_files: AtomicU64,
    replayed: AtomicU64,
    archived: AtomicU64,
}

impl Met {
    async fn note(&self, image: &MemoryFs, opened: &Opened) {
        let region = format!("data/default/t/{}", region_info().encoded_name());
        let has = |dir: String| async move {
            image.list(&FilePath::new(&dir)).await.is_ok_and(|entries| !entries.is_empty())
        };
        let figures = opened.region.figures();
        let count = |met: &AtomicU64, is_so: bool| met.fetch_add(is_so.into(), Ordering::Relaxed);
        // The scratch directory was removed by the open; a copy of the image was made before.
        count(&self.unfinished_outputs, has(format!("{region}/.tmp/f")).await);
        count(&self.archived, has(format!("archive/{region}/f")).await);
        count(&self.several_files, figures.stores.iter().any(|store| store.files > 1));
        count(&self.replayed, figures.memstore_data_bytes > 0);
    }

    fn each(&self) -> [u64; 4] {
        let load = |met: &AtomicU64| met.load(Ordering::Relaxed);
        [
            load(&self.unfinished_outputs),
            load(&self.several_files),
            load(&self.replayed),
            load(&self.archived),
        ]
    }
}

/// What a campaign is made of.
#[derive(Clone)]
struct Campaign {
    met: Arc<Met>,
    seed: u64,
    pictures: u64,
    lie: Lie,
    faults: bool,
    options: RegionOptions,
}

/// Runs until enough pictures were looked at; the first thing wrong is the error.
fn campaign(campaign: &Campaign) -> Result<u64, String> {
    let mut looked_at = 0;
    let mut seed = campaign.seed;
    while looked_at < campaign.pictures {
        let outcome = run(life(campaign, seed));
        looked_at += outcome.map_err(|error| format!("seed {seed}: {error}"))?;
        seed += 1;
    }
    Ok(looked_at)
}

/// A directory from its making through several crashes; returns how many pictures were looked at.
async fn life(campaign: &Campaign, seed: u64) -> Result<u64, String> {
    let env = base::testing::env(seed);
    let random: Arc<dyn Random> = Arc::new(SeededRandom::new(seed ^ 0x5eed));
    let mut memory = MemoryFs::new();
    let mut writers: Vec<Writer> = (0..WRITERS)
        .map(|number| Writer {
            number,
            random: random.clone(),
            model: Model::new(&table()),
            timestamp: 1,
            nonce: 0,
            unanswered: None,
        })
        .collect();
    let nothing = Knowledge { acknowledged: Arc::default(), under_way: None, unanswered: None };
    let mut known = vec![nothing; WRITERS];
    let mut looked_at = 0;
    for _ in 0..4 {
        let mut pictures = one_run(campaign, &env, &random, memory, &mut writers, known).await?;
        let (next, next_known) = pictures.pop().expect("a picture is taken at the end");
        for (image, known) in pictures {
            check_picture(campaign, &env, &random, image, &known).await?;
            looked_at += 1;
        }
        // The last picture is where life goes on: what it shows is from now on what is known.
        let shown = show(campaign, &env, next.crash(&mut || random.next_u64())).await?;
        known = judge(&shown, &next_known)?;
        for (writer, (known, before)) in writers.iter_mut().zip(known.iter().zip(&next_known)) {
            writer.model = model_of(&known.acknowledged);
            let arrived = before.under_way.as_ref() == Some(&known.acknowledged);
            writer.unanswered = before.unanswered.clone().map(|mutations| (arrived, mutations));
        }
        memory = next;
        looked_at += 1;
    }
    Ok(looked_at)
}

/// A model that shows what is known; what it hides was dropped, which changes nothing for rising timestamps.
fn model_of(shown: &[Shown]) -> Model {
    let mut model = Model::new(&table());
    for (row, family, qualifier, timestamp, value) in shown {
        let cell = KeyValue::new(row, family, qualifier, *timestamp, CellType::Put, value);
        model.apply(&[Mutation::put(row.clone(), vec![cell])], *timestamp);
    }
    model
}

/// Opens the directory, lets the writers write and the disturber disturb, and returns pictures of it all.
async fn one_run(
    campaign: &Campaign,
    env: &Env,
    random: &Arc<dyn Random>,
    memory: MemoryFs,
    writers: &mut [Writer],
    known: Vec<Knowledge>,
) -> Result<Vec<(MemoryFs, Vec<Knowledge>)>, String> {
    let ledger: Ledger = Arc::new(Mutex::new(known));
    let note = {
        let ledger = ledger.clone();
        move || ledger.lock().unwrap().clone()
    };
    let camera = Arc::new(Camera::new(memory, random.clone(), 12, campaign.lie, note));
    let faulty = Faulty::new(camera.clone(), Plan::new(env.clock.clone()));
    let opened = open(env, Arc::new(faulty.clone()), campaign.options.clone()).await?;
    if campaign.faults {
        plan_faults(&faulty, random);
    }
    let (region, ledger) = (&*opened.region, &ledger);
    let [first, second, third] = writers else { unreachable!("there are three writers") };
    tokio::join!(
        first.write(region, ledger),
        second.write(region, ledger),
        third.write(region, ledger),
        disturb(&opened, &**random)
    );
    if !opened.dead.load(Ordering::Acquire) {
        check_living(&opened, ledger).await?;
    }
    opened.region.abandon();
    let mut pictures = camera.take_pictures();
    pictures.push(camera.picture());
    Ok(pictures)
}

/// Failing syncs, appends and renames; few enough that most runs go on.
fn plan_faults(faulty: &Faulty, random: &Arc<dyn Random>) {
    for operation in
        [Operation::Sync, Operation::Append, Operation::SyncDir, Operation::Rename, Operation::Create]
    {
        for fault in [Fault::Fail, Fault::FailAfter, Fault::Tear] {
            faulty.add(Rule::new(fault).on(operation).one_in(150, random.clone()));
        }
    }
}

/// A region that was not stopped shows what was acknowledged too, or more.
async fn check_living(opened: &Opened, ledger: &Ledger) -> Result<(), String> {
    let shown = scan(&opened.region).await?;
    let known = ledger.lock().unwrap().clone();
    judge(&shown, &known).map(|_| ()).map_err(|error| format!("alive: {error}"))
}

/// Opens a picture and compares; sometimes goes on with it to see that it is sound further in.
async fn check_picture(
    campaign: &Campaign,
    env: &Env,
    random: &Arc<dyn Random>,
    image: MemoryFs,
    known: &[Knowledge],
) -> Result<(), String> {
    let before = image.crash(&mut || 0);
    let opened = open(env, Arc::new(image.clone()), campaign.options.clone()).await?;
    campaign.met.note(&before, &opened).await;
    let shown = scan(&opened.region).await?;
    judge(&shown, known)?;
    if below(&**random, 8) == 0 {
        let text = |error: engine::Error| format!("going on: {error}");
        opened.region.flush().await.map_err(text)?;
        opened.region.compact(None, CompactionKind::Major).await.map_err(text)?;
        opened.region.close().await.map_err(text)?;
        opened.log.close().await;
        let again = show(campaign, env, image).await?;
        if again != shown {
            return Err(format!("after flush, compaction and reopening: {}", difference(&again, &shown)));
        }
    }
    Ok(())
}

async fn show(campaign: &Campaign, env: &Env, image: MemoryFs) -> Result<Vec<Shown>, String> {
    let fs: Arc<dyn FileSystem> = Arc::new(image);
    let opened = open(env, fs, campaign.options.clone()).await?;
    scan(&opened.region).await
}

/// Compares what is there with what is known, writer by writer; returns what is known from now on.
fn judge(shown: &[Shown], known: &[Knowledge]) -> Result<Vec<Knowledge>, String> {
    let mut judged = 0;
    let mut now_known = Vec::new();
    for (number, known) in known.iter().enumerate() {
        let prefix = format!("w{number}-").into_bytes();
        let of_writer: Vec<Shown> =
            shown.iter().filter(|shown| shown.0.starts_with(&prefix)).cloned().collect();
        judged += of_writer.len();
        let arrived = known.under_way.as_ref().is_some_and(|under_way| **under_way == of_writer);
        if of_writer != *known.acknowledged && !arrived {
            let text = difference(&of_writer, &known.acknowledged);
            return Err(format!("writer {number}: {text} (under way: {})", known.under_way.is_some()));
        }
        now_known.push(Knowledge { acknowledged: Arc::new(of_writer), under_way: None, unanswered: None });
    }
    if judged != shown.len() {
        return Err(format!("{} cells that nobody wrote", shown.len() - judged));
    }
    Ok(now_known)
}

fn pictures_wanted() -> u64 {
    std::env::var("GRAMPUS_CRASH_IMAGES").ok().and_then(|text| text.parse().ok()).unwrap_or(500)
}

fn plain() -> Campaign {
    let met = Arc::default();
    Campaign { met, seed: 1, pictures: pictures_wanted(), lie: Lie::None, faults: false, options: options() }
}

fn expect_sound(what: &Campaign) {
    match campaign(what) {
        Ok(looked_at) => {
            assert!(looked_at >= what.pictures);
            let met = what.met.each();
            assert!(looked_at < 300 || met.iter().all(|count| *count > 0), "not all was met: {met:?}");
            println!("{looked_at} pictures, met {met:?}");
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn nothing_acknowledged_is_lost_by_a_power_cut() {
    expect_sound(&plain());
}

#[test]
fn nothing_acknowledged_is_lost_when_the_disk_fails_too() {
    expect_sound(&Campaign { seed: 1_000_000, faults: true, ..plain() });
}

/// Replays larger than the flush size go to files while the region opens.
#[test]
fn nothing_acknowledged_is_lost_when_a_replay_flushes() {
    let options = RegionOptions { flush_bytes: 4 << 10, block_multiplier: 1 << 20, ..options() };
    expect_sound(&Campaign { seed: 2_000_000, options, pictures: pictures_wanted() / 5, ..plain() });
}

/// Several compactions of two files each, none of which sees all files, instead of one of all.
#[test]
fn nothing_acknowledged_is_lost_when_few_files_are_compacted_at_a_time() {
    let mut options = options();
    options.compaction.settings.files_max = 2;
    expect_sound(&Campaign { seed: 3_000_000, options, pictures: pictures_wanted() / 2, ..plain() });
}

/// A compaction within windows of time has several outputs. Whichever of them a power cut leaves, they and their inputs show
/// what was there, and go on to.
#[test]
fn a_power_cut_between_the_outputs_of_a_compaction_loses_nothing() {
    run(async {
        let (env, memory) = (base::testing::env(1), MemoryFs::new());
        let random: Arc<dyn Random> = Arc::new(SeededRandom::new(5));
        let camera = Arc::new(Camera::new(memory.clone(), random.clone(), 1, Lie::None, || ()));
        let table = windowed();
        let opened = open_table(&env, camera.clone(), options(), &table).await.unwrap();
        let now = env.clock.now_ms() as i64;
        for (row, ago_ms, kind) in [
            ("a", 9000, CellType::Put),
            ("b", 5000, CellType::Put),
            ("c", 0, CellType::Put),
            ("a", 9000, CellType::Delete),
        ] {
            let cell = KeyValue::new(row.as_bytes(), b"f", b"q", now - ago_ms, kind, b"");
            let row = Bytes::copy_from_slice(row.as_bytes());
            let mutation = if kind == CellType::Put {
                Mutation::put(row, vec![cell])
            } else {
                Mutation::delete(row, vec![cell])
            };
            opened.region.batch(vec![mutation]).await.remove(0).unwrap();
            opened.region.flush().await.unwrap();
        }
        let expected = scan(&opened.region).await.unwrap();
        camera.take_pictures();
        assert_eq!(opened.region.compact(None, CompactionKind::Major).await.unwrap(), 4);
        assert_eq!(opened.region.store_files(b"f").unwrap().len(), 2, "of the windows with cells that live");
        let mut files_met = std::collections::BTreeSet::new();
        for (image, ()) in camera.take_pictures() {
            for _ in 0..4 {
                let after = Arc::new(image.crash(&mut || random.next_u64()));
                let opened = open_table(&env, after, options(), &table).await.unwrap();
                files_met.insert(opened.region.store_files(b"f").unwrap().len());
                assert_eq!(scan(&opened.region).await.unwrap(), expected);
                opened.region.compact(None, CompactionKind::Major).await.unwrap();
                assert_eq!(scan(&opened.region).await.unwrap(), expected, "compacted again");
            }
        }
        assert!(files_met.contains(&5), "four inputs and one of the outputs: {files_met:?}");
    });
}

/// A table of one family that is compacted within windows of a second.
fn windowed() -> TableDescriptor {
    const ENGINE: &str = "org.apache.hadoop.hbase.regionserver.DateTieredStoreEngine";
    let mut family = FamilyDescriptor::new("f");
    for (key, value) in [
        ("hbase.hstore.engine.class", ENGINE),
        ("hbase.hstore.compaction.date.tiered.base.window.millis", "1000"),
        ("hbase.hstore.compaction.date.tiered.windows.per.tier", "1000"),
    ] {
        family.configuration.insert(key.to_string(), value.to_string());
    }
    TableDescriptor::new(TableName::parse("t").unwrap()).with_family(family)
}

#[test]
fn the_checker_notices_files_that_are_not_synced() {
    let error = campaign(&Campaign { lie: Lie::Files, pictures: 2000, ..plain() }).expect_err("lost data");
    assert!(error.contains("seed"), "{error}");
}

#[test]
fn the_checker_notices_names_that_are_not_synced() {
    let error = campaign(&Campaign { lie: Lie::Names, pictures: 2000, ..plain() }).expect_err("lost data");
    assert!(error.contains("seed"), "{error}");
}
