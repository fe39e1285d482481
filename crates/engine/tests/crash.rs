//! Power loss at random moments, whatever unsynced data the disk keeps. Every acknowledged batch
//! must be present. An unacknowledged batch must be present completely or not at all. Nothing else
//! may be present.
//!
//! A region is written, flushed, and compacted on an in-memory file system that takes snapshots
//! ("pictures") before random changes. Every picture is opened as a server opens its directory, and
//! its content is checked. The next run begins with one of the pictures. `GRAMPUS_CRASH_IMAGES` is
//! the number of pictures to check.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::camera::{Camera, SkippedSyncs};
use crate::common::model::{Model, VisibleCell};
use crate::common::world::{
    Opened, below, difference, names, open_table, options, region_info, run, scan, store_dir, table,
    unfinished_files,
};
use base::env::{Env, Random};
use base::testing::SeededRandom;
use bytes::Bytes;
use cell::KeyValue;
use cell::cell::CellType;
use cell::mutation::Mutation;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use engine::Region;
use engine::region::{CompactionKind, RegionOptions};
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use layout::RootDir;

const WRITERS: usize = 3;
const ROWS_OF_WRITER: u64 = 3;
const BATCHES_OF_RUN: u64 = 12;

/// What a writer knows: the acknowledged content, and the content if the batch in flight arrives.
#[derive(Clone)]
struct Knowledge {
    acknowledged: Arc<Vec<VisibleCell>>,
    in_flight: Option<Arc<Vec<VisibleCell>>>,
    /// A change with a nonce, to be sent again if it gets no response.
    unanswered: Option<Arc<Vec<Mutation>>>,
}

impl Knowledge {
    fn acknowledge(&mut self) {
        self.acknowledged = self.in_flight.take().expect("set before the batch was sent");
        self.unanswered = None;
    }
}

/// The knowledge of all writers. The note of a picture is a copy.
type Ledger = Arc<Mutex<Vec<Knowledge>>>;

/// A client of the region, which writes only its own rows.
struct Writer {
    number: usize,
    random: Arc<dyn Random>,
    model: Model,
    /// Increases, so that cells dropped by a flush or compaction would never be visible.
    timestamp: i64,
    /// The last nonce.
    nonce: u64,
    /// A change without a response before the crash, and whether it arrived.
    unanswered: Option<(bool, Arc<Vec<Mutation>>)>,
}

impl Writer {
    /// Writes batches until one fails. Records its knowledge in the ledger.
    async fn write(&mut self, region: &Region, ledger: &Ledger) {
        if let Some((arrived, mutations)) = self.unanswered.take() {
            // Exactly once: the retry applies the change only if it was lost.
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
            ledger.lock().unwrap()[self.number].in_flight = Some(Arc::new(self.model.scan()));
            if region.batch(mutations).await.iter().any(Result::is_err) {
                return;
            }
            ledger.lock().unwrap()[self.number].acknowledge();
            if below(&*self.random, 3) == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Sends increments, which the model may already have. Returns whether they were acknowledged.
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
            known.in_flight = Some(Arc::new(self.model.scan()));
            known.unanswered = Some(increments.clone());
        }
        if region.change(None, increments.to_vec()).await.is_err() {
            return false;
        }
        ledger.lock().unwrap()[self.number].acknowledge();
        true
    }

    /// Increments of a counter in each family by one, with a nonce. Counters begin with a timestamp
    /// far in the future, so each increment adds one to the timestamp, whatever the clock shows.
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
                // One cell in each family: a row with only one of them is torn.
                let value = "v".repeat(1 + below(&*self.random, 40) as usize) + &self.timestamp.to_string();
                let cell = |family: &[u8]| {
                    KeyValue::new(&row, family, b"q", self.timestamp, CellType::Put, value.as_bytes())
                };
                Mutation::put(row.clone(), vec![cell(b"f"), cell(b"g")])
            }
        }
    }
}

/// Flushes, compacts, and rolls the log while the writers write.
async fn disturb(opened: &Opened, random: &dyn Random) {
    for _ in 0..below(random, 5) {
        for _ in 0..below(random, 4) {
            tokio::task::yield_now().await;
        }
        // Failures by planned faults are ignored: only the pictures are checked.
        match below(random, 7) {
            0..=2 => drop(opened.region.flush().await),
            6 => drop(opened.region.flush_families(&[Bytes::from_static(b"g")]).await),
            3 => drop(opened.region.compact(None, CompactionKind::Minor).await),
            4 => drop(opened.region.compact(None, CompactionKind::Major).await),
            _ => drop(opened.log.roll().await),
        }
        drop(opened.region.clean_mob_files(Duration::ZERO).await);
    }
}

/// What pictures contained, to check that a campaign covers the relevant cases.
#[derive(Default)]
struct Coverage {
    unfinished_outputs: AtomicU64,
    several_files: AtomicU64,
    replayed: AtomicU64,
    archived: AtomicU64,
}

impl Coverage {
    async fn record(&self, image: &MemoryFs, opened: &Opened) {
        let region = format!("data/default/t/{}", region_info().encoded_name());
        let has = |dir: String| async move {
            image.list(&FilePath::new(&dir)).await.is_ok_and(|entries| !entries.is_empty())
        };
        let metrics = opened.region.metrics();
        let count = |coverage: &AtomicU64, is_so: bool| coverage.fetch_add(is_so.into(), Ordering::Relaxed);
        // The open removed unfinished files, so this reads a copy of the image made before.
        count(&self.unfinished_outputs, !unfinished_files(image, "f").await.is_empty());
        count(&self.archived, has(format!("archive/{region}/f")).await);
        count(&self.several_files, metrics.stores.iter().any(|store| store.files > 1));
        count(&self.replayed, metrics.memstore_data_bytes > 0);
    }

    fn counts(&self) -> [u64; 4] {
        let load = |coverage: &AtomicU64| coverage.load(Ordering::Relaxed);
        [
            load(&self.unfinished_outputs),
            load(&self.several_files),
            load(&self.replayed),
            load(&self.archived),
        ]
    }
}

/// The parameters of a campaign.
#[derive(Clone)]
struct Campaign {
    coverage: Arc<Coverage>,
    seed: u64,
    pictures: u64,
    skipped_syncs: SkippedSyncs,
    faults: bool,
    options: RegionOptions,
    table: TableDescriptor,
}

/// Runs until enough pictures were checked. Returns the first error.
fn campaign(campaign: &Campaign) -> Result<u64, String> {
    let mut checked = 0;
    let mut seed = campaign.seed;
    while checked < campaign.pictures {
        let outcome = run(run_lifetime(campaign, seed));
        checked += outcome.map_err(|error| format!("seed {seed}: {error}"))?;
        seed += 1;
    }
    Ok(checked)
}

/// The life of a directory, from its creation through several crashes. Returns the number of
/// checked pictures.
async fn run_lifetime(campaign: &Campaign, seed: u64) -> Result<u64, String> {
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
    let nothing = Knowledge { acknowledged: Arc::default(), in_flight: None, unanswered: None };
    let mut known = vec![nothing; WRITERS];
    let mut checked = 0;
    for _ in 0..4 {
        let mut pictures = one_run(campaign, &env, &random, memory, &mut writers, known).await?;
        let (next, next_known) = pictures.pop().expect("a picture is taken at the end");
        for (image, known) in pictures {
            check_picture(campaign, &env, &random, image, &known).await?;
            checked += 1;
        }
        // The next run starts from the last picture; its content is now what the writers know.
        let shown = open_and_scan(campaign, &env, next.crash(&mut || random.next_u64())).await?;
        known = check_rows(&shown, &next_known)?;
        for (writer, (known, before)) in writers.iter_mut().zip(known.iter().zip(&next_known)) {
            writer.model = model_of(&known.acknowledged);
            let arrived = before.in_flight.as_ref() == Some(&known.acknowledged);
            writer.unanswered = before.unanswered.clone().map(|mutations| (arrived, mutations));
        }
        memory = next;
        checked += 1;
    }
    Ok(checked)
}

/// A model with the acknowledged cells. Hidden cells are missing, which makes no difference because
/// timestamps increase.
fn model_of(shown: &[VisibleCell]) -> Model {
    let mut model = Model::new(&table());
    for (row, family, qualifier, timestamp, value) in shown {
        let cell = KeyValue::new(row, family, qualifier, *timestamp, CellType::Put, value);
        model.apply(&[Mutation::put(row.clone(), vec![cell])], *timestamp);
    }
    model
}

/// Opens the directory, runs the writers and `disturb`, and returns the pictures taken.
async fn one_run(
    campaign: &Campaign,
    env: &Env,
    random: &Arc<dyn Random>,
    memory: MemoryFs,
    writers: &mut [Writer],
    known: Vec<Knowledge>,
) -> Result<Vec<(MemoryFs, Vec<Knowledge>)>, String> {
    let ledger: Ledger = Arc::new(Mutex::new(known));
    let expected = {
        let ledger = ledger.clone();
        move || ledger.lock().unwrap().clone()
    };
    let camera = Arc::new(Camera::new(memory, random.clone(), 12, campaign.skipped_syncs, expected));
    let faulty = Faulty::new(camera.clone(), Plan::new(env.clock.clone()));
    let opened = open_table(env, Arc::new(faulty.clone()), campaign.options.clone(), &campaign.table).await?;
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

/// Plans failures of syncs, appends, and renames, but few enough that most runs continue.
fn plan_faults(faulty: &Faulty, random: &Arc<dyn Random>) {
    for operation in
        [Operation::Sync, Operation::Append, Operation::SyncDir, Operation::Rename, Operation::Create]
    {
        for fault in [Fault::Fail, Fault::FailAfter, Fault::Tear] {
            faulty.add(Rule::new(fault).on(operation).one_in(150, random.clone()));
        }
    }
}

/// A region that did not crash must also show what was acknowledged, or more.
async fn check_living(opened: &Opened, ledger: &Ledger) -> Result<(), String> {
    let shown = scan(&opened.region).await?;
    let known = ledger.lock().unwrap().clone();
    check_rows(&shown, &known).map(|_| ()).map_err(|error| format!("alive: {error}"))
}

/// Opens a picture and checks it. Sometimes it also flushes, compacts, and reopens, to check that
/// these work too.
async fn check_picture(
    campaign: &Campaign,
    env: &Env,
    random: &Arc<dyn Random>,
    image: MemoryFs,
    known: &[Knowledge],
) -> Result<(), String> {
    let before = image.crash(&mut || 0);
    // An archived MOB file must not be needed any more.
    let pseudo_region = layout::mob::pseudo_region(&campaign.table.name);
    let archive = RootDir::new(FilePath::root()).archive_family_dir(&pseudo_region, b"f").parent();
    image.delete(&archive).await.map_err(|error| error.to_string())?;
    let opened = open_table(env, Arc::new(image.clone()), campaign.options.clone(), &campaign.table).await?;
    campaign.coverage.record(&before, &opened).await;
    let shown = scan(&opened.region).await?;
    check_rows(&shown, known)?;
    if below(&**random, 8) == 0 {
        let text = |error: engine::Error| format!("after reopening: {error}");
        opened.region.flush().await.map_err(text)?;
        opened.region.compact(None, CompactionKind::Major).await.map_err(text)?;
        opened.region.close().await.map_err(text)?;
        opened.log.close().await;
        let again = open_and_scan(campaign, env, image).await?;
        if again != shown {
            return Err(format!("after flush, compaction and reopening: {}", difference(&again, &shown)));
        }
    }
    Ok(())
}

async fn open_and_scan(campaign: &Campaign, env: &Env, image: MemoryFs) -> Result<Vec<VisibleCell>, String> {
    let fs: Arc<dyn FileSystem> = Arc::new(image);
    let opened = open_table(env, fs, campaign.options.clone(), &campaign.table).await?;
    scan(&opened.region).await
}

/// Compares the cells found with the knowledge of each writer. Returns the updated knowledge.
fn check_rows(shown: &[VisibleCell], known: &[Knowledge]) -> Result<Vec<Knowledge>, String> {
    let mut cells_checked = 0;
    let mut now_known = Vec::new();
    for (number, known) in known.iter().enumerate() {
        let prefix = format!("w{number}-").into_bytes();
        let of_writer: Vec<VisibleCell> =
            shown.iter().filter(|shown| shown.0.starts_with(&prefix)).cloned().collect();
        cells_checked += of_writer.len();
        let arrived = known.in_flight.as_ref().is_some_and(|in_flight| **in_flight == of_writer);
        if of_writer != *known.acknowledged && !arrived {
            let text = difference(&of_writer, &known.acknowledged);
            return Err(format!("writer {number}: {text} (under way: {})", known.in_flight.is_some()));
        }
        now_known.push(Knowledge { acknowledged: Arc::new(of_writer), in_flight: None, unanswered: None });
    }
    if cells_checked != shown.len() {
        return Err(format!("{} cells that no writer wrote", shown.len() - cells_checked));
    }
    Ok(now_known)
}

fn pictures_wanted() -> u64 {
    std::env::var("GRAMPUS_CRASH_IMAGES").ok().and_then(|text| text.parse().ok()).unwrap_or(500)
}

fn plain() -> Campaign {
    let coverage = Arc::default();
    Campaign {
        coverage,
        seed: 1,
        pictures: pictures_wanted(),
        skipped_syncs: SkippedSyncs::None,
        faults: false,
        options: options(),
        table: table(),
    }
}

fn expect_no_loss(what: &Campaign) {
    match campaign(what) {
        Ok(checked) => {
            assert!(checked >= what.pictures);
            let coverage = what.coverage.counts();
            assert!(
                checked < 300 || coverage.iter().all(|count| *count > 0),
                "not all cases occurred: {coverage:?}"
            );
            println!("{checked} pictures, cases {coverage:?}");
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn nothing_acknowledged_is_lost_by_a_power_loss() {
    expect_no_loss(&plain());
}

#[test]
fn nothing_acknowledged_is_lost_when_the_disk_fails_too() {
    expect_no_loss(&Campaign { seed: 1_000_000, faults: true, ..plain() });
}

/// A replay that exceeds the flush size is flushed while the region opens.
#[test]
fn nothing_acknowledged_is_lost_when_a_replay_flushes() {
    let options = RegionOptions { flush_bytes: 4 << 10, block_multiplier: 1 << 20, ..options() };
    expect_no_loss(&Campaign { seed: 2_000_000, options, pictures: pictures_wanted() / 5, ..plain() });
}

/// Several compactions of two files each, none of which has all files, instead of one of all files.
#[test]
fn nothing_acknowledged_is_lost_when_few_files_are_compacted_at_a_time() {
    let mut options = options();
    options.compaction.settings.files_max = 2;
    expect_no_loss(&Campaign { seed: 3_000_000, options, pictures: pictures_wanted() / 2, ..plain() });
}

/// Most values are in MOB files, which are written before the store files that refer to them, and
/// cleaned while the region is written.
#[test]
fn nothing_acknowledged_is_lost_in_mob_files() {
    for faults in [false, true] {
        let table = with_mob_files(table());
        let pictures = pictures_wanted() / 2;
        expect_no_loss(&Campaign { seed: 4_000_000, table, faults, pictures, ..plain() });
    }
}

/// The table with values of more than two bytes in MOB files.
fn with_mob_files(mut table: TableDescriptor) -> TableDescriptor {
    for family in table.families.values_mut() {
        *family = family.clone().with("IS_MOB", "true").with("MOB_THRESHOLD", "2");
    }
    table
}

/// A compaction by time windows has several outputs. Whichever of them survive a power loss,
/// outputs and inputs together must show the same cells, even after the next compaction.
#[test]
fn a_power_loss_between_the_outputs_of_a_compaction_loses_nothing() {
    run(async {
        let (env, memory) = (base::testing::env(1), MemoryFs::new());
        let random: Arc<dyn Random> = Arc::new(SeededRandom::new(5));
        let camera = Arc::new(Camera::new(memory.clone(), random.clone(), 1, SkippedSyncs::None, || ()));
        let table = windowed();
        let opened = open_table(&env, camera.clone(), options(), &table).await.unwrap();
        write_windows(&env, &opened.region).await;
        let now = env.clock.now_ms() as i64;
        let delete = KeyValue::new(b"a", b"f", b"q", now - 9000, CellType::Delete, b"");
        let mutation = Mutation::delete(Bytes::from_static(b"a"), vec![delete]);
        opened.region.batch(vec![mutation]).await.remove(0).unwrap();
        opened.region.flush().await.unwrap();
        let expected = scan(&opened.region).await.unwrap();
        camera.take_pictures();
        assert_eq!(opened.region.compact(None, CompactionKind::Major).await.unwrap(), 4);
        assert_eq!(opened.region.store_files(b"f").unwrap().len(), 2, "one per window with live cells");
        let mut file_counts = std::collections::BTreeSet::new();
        for (image, ()) in camera.take_pictures() {
            for _ in 0..4 {
                let after = Arc::new(image.crash(&mut || random.next_u64()));
                let opened = open_table(&env, after, options(), &table).await.unwrap();
                file_counts.insert(opened.region.store_files(b"f").unwrap().len());
                assert_eq!(scan(&opened.region).await.unwrap(), expected);
                opened.region.compact(None, CompactionKind::Major).await.unwrap();
                assert_eq!(scan(&opened.region).await.unwrap(), expected, "compacted again");
            }
        }
        assert!(file_counts.contains(&5), "four inputs and one of the outputs: {file_counts:?}");
    });
}

/// The last output of a compaction by time windows lists the inputs as replaced. If it may be in
/// the store although its rename failed, the other outputs must stay there with it.
#[test]
fn a_failed_compaction_with_several_outputs_keeps_all_of_them_or_none() {
    run(async {
        let mut outputs = 0;
        while compaction_fails(outputs).await {
            outputs += 1;
        }
        assert!(outputs > 1, "each output was once the one that failed");
    });
}

/// Compacts while the rename of the output after the first `renamed` ones reports an error, and
/// files cannot be deleted. Returns whether the compaction has failed, and checks the cells then.
async fn compaction_fails(renamed: u64) -> bool {
    let (env, memory) = (base::testing::env(1), MemoryFs::new());
    let faulty = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()));
    let table = windowed();
    let opened = open_table(&env, Arc::new(faulty.clone()), options(), &table).await.unwrap();
    write_windows(&env, &opened.region).await;
    let inputs = names(&memory, &store_dir("f")).await;
    let expected = scan(&opened.region).await.unwrap();
    let scratch = format!("data/default/t/{}/.tmp/f", region_info().encoded_name());
    let rename = Rule::new(Fault::FailAfter).on(Operation::Rename).at(&scratch).after(renamed);
    faulty.add(rename.times(1));
    faulty.add(Rule::new(Fault::Fail).on(Operation::Delete).at(&store_dir("f")));
    if opened.region.compact(None, CompactionKind::Major).await.is_ok() {
        return false;
    }
    let outputs = names(&memory, &store_dir("f")).await.len() - inputs.len();
    assert_eq!(outputs as u64, renamed + 1, "none could be deleted");
    let random = SeededRandom::new(5);
    for _ in 0..8 {
        let image = Arc::new(memory.crash(&mut || random.next_u64()));
        let reopened = open_table(&env, image, options(), &table).await.unwrap();
        assert_eq!(scan(&reopened.region).await.unwrap(), expected);
    }
    faulty.heal();
    opened.region.archive_retired().await;
    assert_eq!(names(&memory, &store_dir("f")).await, inputs);
    assert_eq!(scan(&opened.region).await.unwrap(), expected);
    true
}

/// Writes three rows in three windows of [`windowed`], each into a file of its own.
async fn write_windows(env: &Env, region: &Region) {
    let now = env.clock.now_ms() as i64;
    for (row, ago_ms) in [("a", 9000), ("b", 5000), ("c", 0)] {
        let cell = KeyValue::new(row.as_bytes(), b"f", b"q", now - ago_ms, CellType::Put, b"");
        let put = Mutation::put(Bytes::copy_from_slice(row.as_bytes()), vec![cell]);
        region.batch(vec![put]).await.remove(0).unwrap();
        region.flush().await.unwrap();
    }
}

/// A table of one family that is compacted by windows of one second.
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
fn the_checker_detects_files_that_are_not_synced() {
    let error = campaign(&Campaign { skipped_syncs: SkippedSyncs::Files, pictures: 2000, ..plain() })
        .expect_err("lost data");
    assert!(error.contains("seed"), "{error}");
}

#[test]
fn the_checker_detects_names_that_are_not_synced() {
    let error = campaign(&Campaign { skipped_syncs: SkippedSyncs::Names, pictures: 2000, ..plain() })
        .expect_err("lost data");
    assert!(error.contains("seed"), "{error}");
}
