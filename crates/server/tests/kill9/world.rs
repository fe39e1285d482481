//! The kill cycles: a directory, its required content, and the servers that are started on it and
//! killed.
#![allow(clippy::disallowed_methods, reason = "the test accesses the server's directory directly")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use base::env::{Env, TaskClass};
use bytes::Bytes;
use cell::query::{Get, Scan};
use cell::schema::TableName;
use client::{Action, Admin, Client, ClientOptions, Registry, Table};
use tokio::task::JoinHandle;

use crate::accounts::{Accounts, Nonces};
use crate::cells::{self, RowContent};
use crate::chains::Chains;
use crate::choices::RandomChoices;
use crate::disorder::Disorder;
use crate::forms::AlteredTable;
use crate::ledger::Ledger;
use crate::loads::BulkLoads;
use crate::network;
use crate::server::Server;
use crate::snapshots::Snapshots;
use crate::tables::SideTables;
use crate::tiers::Tiers;
use crate::writer::{Witness, Writer};

/// Small memstores and logs, which hundreds of rows fill.
const SETTINGS: [&str; 4] = [
    "hbase.hregion.memstore.flush.size=256 KiB",
    "hbase.regionserver.hlog.blocksize=512 KiB",
    "hbase.regionserver.maxlogs=6",
    "hbase.hstore.compaction.min=3",
];
const WRITERS: u64 = 8;
const REGIONS: u64 = 4;
/// Tasks that change accounts, and tasks that contend for links of all chains.
const OWNERS: u64 = 3;
const CONTENDERS: u64 = 3;
/// Rows read by single gets after a start, in addition to the scan.
const GETS: usize = 60;
/// Maximum number of violations in a report.
const NAMED: usize = 20;

/// Runs a test in real time with a client's environment.
pub fn on_a_runtime(name: &str, test: impl AsyncFnOnce(Env)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let seed = name.bytes().map(u64::from).sum();
    runtime.expect("a runtime can be created").block_on(async move { test(network::env(seed)).await });
}

/// The number in an environment variable, if it is set.
///
/// # Panics
/// If the variable is not a number.
pub fn number_of(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text}")))
}

/// Milliseconds of the wall clock: a different seed for each run.
fn any_seed() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// State shared by all load tasks.
#[derive(Default)]
pub struct LoadState {
    ended: AtomicBool,
    fails: AtomicBool,
    failures: Mutex<Vec<String>>,
}

impl LoadState {
    /// Whether the server is about to be killed.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// From now on operations may fail, but not respond incorrectly.
    pub fn tolerate_failures(&self) {
        self.fails.store(true, Ordering::Release);
    }

    /// Records a failed operation. Failures after the kill are ignored, because every operation
    /// fails then.
    pub fn record_failure(&self, what: &str, error: &client::Error) {
        let mut failures = self.failures();
        let is_tolerated = self.has_ended() || self.fails.load(Ordering::Acquire);
        if !is_tolerated && failures.len() < NAMED {
            failures.push(format!("{what}: {error}"));
        }
    }

    /// Records an incorrect response.
    pub fn record_violation(&self, what: String) {
        let mut failures = self.failures();
        if failures.len() < NAMED {
            failures.push(what);
        }
    }

    fn failures(&self) -> MutexGuard<'_, Vec<String>> {
        self.failures.lock().expect("no holder of this lock panics")
    }
}

/// Reads all rows of a table.
///
/// # Errors
/// The client's error.
pub async fn scan(table: &Table) -> client::Result<BTreeMap<Bytes, RowContent>> {
    let mut seen = BTreeMap::new();
    let mut scanner = table.scan(Scan::default());
    while let Some(row) = scanner.next().await? {
        let key = Bytes::copy_from_slice(row.key());
        let in_order = seen.last_key_value().is_none_or(|(last, _)| *last < key);
        let what = if in_order {
            RowContent::from_row(&row)
        } else {
            RowContent::Foreign("come out of order".into())
        };
        seen.insert(key, what);
    }
    Ok(seen)
}

fn main() -> TableName {
    TableName::parse("main").expect("a legal name")
}

fn changed() -> TableName {
    TableName::parse("changed").expect("a legal name")
}

fn lock(table: &Mutex<AlteredTable>) -> MutexGuard<'_, AlteredTable> {
    table.lock().expect("no holder of this lock panics")
}

/// The directory with its expected content.
pub struct World {
    env: Env,
    choices: RandomChoices,
    dir: PathBuf,
    images: Option<PathBuf>,
    witness: Witness,
    tiers: Option<Tiers>,
    // Of rows that writers own, and of rows whose content depends on what is stored.
    main: Arc<Mutex<AlteredTable>>,
    changed: Arc<Mutex<AlteredTable>>,
    ledger: Arc<Mutex<Ledger>>,
    accounts: Arc<Accounts>,
    chains: Arc<Chains>,
    snapshots: Arc<Snapshots>,
    loads: Arc<BulkLoads>,
    side_tables: Arc<SideTables>,
    kills: u64,
    kills_at_start: u64,
    nonces: Nonces,
}

impl World {
    /// Creates a world with an empty directory.
    pub fn new(env: Env, name: &str, witness: Witness) -> World {
        let seed = number_of("GRAMPUS_KILL_SEED").unwrap_or_else(any_seed);
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kill9-{name}-{}", std::process::id()));
        // Left by an earlier process with the same id.
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).expect("a directory for the test can be created");
        println!("GRAMPUS_KILL_SEED={seed} in {}", dir.display());
        let choices = RandomChoices::new(seed);
        let part = || RandomChoices::new(choices.seed());
        let table = |name| Arc::new(Mutex::new(AlteredTable::new(name, &part())));
        let ledger = Arc::<Mutex<Ledger>>::default();
        World {
            env,
            loads: Arc::new(BulkLoads::new(&dir)),
            dir,
            tiers: None,
            images: std::env::var_os("GRAMPUS_KEEP_IMAGES").map(|images| Path::new(&images).join(name)),
            witness,
            main: table(main()),
            changed: table(changed()),
            accounts: Arc::new(Accounts::new(part(), witness)),
            chains: Arc::new(Chains::new(part())),
            snapshots: Arc::new(Snapshots::new(main(), ledger.clone())),
            ledger,
            side_tables: Arc::new(SideTables::new(part())),
            choices,
            kills: 0,
            kills_at_start: 0,
            nonces: Nonces::Known,
        }
    }

    /// The same world, whose files are on storage tiers and move between them all the time.
    pub fn on_tiers(self) -> World {
        World { tiers: Some(Tiers::below(&self.dir)), ..self }
    }

    /// Starts the server, checks the content, puts load on it, and kills it.
    ///
    /// # Errors
    /// The violations.
    pub async fn cycle(&mut self) -> Result<(), String> {
        let (mut server, client) = self.start().await;
        self.check(&client).await?;
        let load = Arc::new(LoadState::default());
        let tasks = self.begin_load(&client, &load);
        self.env.clock.sleep(self.choices.millis(50..800)).await;
        if let Some(tiers) = self.tiers.as_ref().filter(|_| self.choices.once_in(3)) {
            load.tolerate_failures();
            tiers.fail_volume();
            self.env.clock.sleep(self.choices.millis(20..600)).await;
        }
        load.ended.store(true, Ordering::Release);
        server.kill();
        end(tasks).await;
        if let Some(tiers) = &self.tiers {
            tiers.repair_volume();
        }
        self.kills += 1;
        self.save_image();
        let misplaced = self.tiers.as_ref().map(|tiers| tiers.misplaced(&self.data())).unwrap_or_default();
        if !misplaced.is_empty() {
            return Err(self.report("files", &misplaced));
        }
        let failures = load.failures();
        match failures.is_empty() {
            true => Ok(()),
            false => Err(self.report("failed before the kill", &failures)),
        }
    }

    /// Starts the server and checks what the last kill left.
    ///
    /// # Errors
    /// The violations.
    pub async fn final_check(&mut self) -> Result<(), String> {
        let (mut server, client) = self.start().await;
        let outcome = self.check(&client).await;
        server.kill();
        outcome
    }

    /// Removes the directory after a successful test.
    pub fn finish(self) {
        let rows = self.ledger.lock().expect("no holder of this lock panics").len();
        println!("{} kills under load, {} at the start; {rows} rows", self.kills, self.kills_at_start);
        println!("{}; {}; {}", self.accounts.summary(), self.chains.summary(), self.loads.summary());
        if let Some(tiers) = &self.tiers {
            println!("{}", tiers.summary(&self.dir.join("server.log")));
        }
        std::fs::remove_dir_all(&self.dir).expect("the test's directory can be removed");
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    fn server(&self) -> Server {
        let of_tiers = self.tiers.as_ref().map(|tiers| tiers.settings(&self.choices)).unwrap_or_default();
        let settings: Vec<&str> = SETTINGS.into_iter().chain(of_tiers.iter().map(String::as_str)).collect();
        Server::start(&self.data(), &self.dir.join("server.log"), &settings)
    }

    /// Starts a server and waits until it serves; before that, possibly starts some and kills them
    /// early.
    async fn start(&mut self) -> (Server, Client) {
        self.nonces = Nonces::Known;
        while self.choices.once_in(4) {
            self.nonces = Nonces::MayBeForgotten;
            let lacks_volume = self.tiers.as_ref().filter(|_| self.kills > 0 && self.choices.once_in(3));
            if let Some(tiers) = lacks_volume {
                tiers.hide_volume();
            }
            let mut server = self.server();
            self.env.clock.sleep(self.choices.millis(0..400)).await;
            match lacks_volume {
                // It does not start if a log is on the volume.
                Some(tiers) => {
                    server.end();
                    tiers.repair_volume();
                }
                None => server.kill(),
            }
            self.kills_at_start += 1;
            self.save_image();
        }
        let mut server = self.server();
        let zookeeper = server.ready(&self.env).await;
        let options = ClientOptions { pause: Duration::from_millis(20), ..ClientOptions::default() };
        (server, Client::new(self.env.clone(), Registry::zookeeper(&zookeeper, "/hbase"), options))
    }

    /// Compares the content of the directory with the expected content.
    async fn check(&mut self, client: &Client) -> Result<(), String> {
        if self.kills == 0 {
            let made = self.make_tables(&client.admin()).await;
            return made.map_err(|error| self.report("the first tables", &[error.to_string()]));
        }
        let wrong = self
            .side_tables
            .verify(&self.env, client, &self.data(), &[changed(), BulkLoads::table(), main()])
            .await;
        if !wrong.is_empty() {
            return Err(self.report("tables", &wrong));
        }
        let wrong = self.check_changes(client).await;
        let wrong = wrong.unwrap_or_else(|error| vec![format!("cannot be read: {error}")]);
        if !wrong.is_empty() {
            return Err(self.report("changes", &wrong));
        }
        let wrong = self.check_rows(client).await;
        let wrong = wrong.unwrap_or_else(|error| vec![format!("cannot be read: {error}")]);
        if wrong.is_empty() { Ok(()) } else { Err(self.report("rows", &wrong)) }
    }

    async fn make_tables(&self, admin: &Admin) -> client::Result<()> {
        for table in [&self.main, &self.changed] {
            let descriptor = lock(table).descriptor().clone();
            admin.create_table(&descriptor, &cells::split_keys(REGIONS)).await?;
        }
        admin.create_table(&BulkLoads::descriptor(), &[]).await
    }

    /// Checks the rows that depend on stored content, the table descriptors, and the snapshots.
    async fn check_changes(&self, client: &Client) -> client::Result<Vec<String>> {
        let mut wrong = Vec::new();
        for table in [&self.main, &self.changed] {
            let mut altered = lock(table).clone();
            wrong.extend(altered.verify(&client.admin()).await?);
            *lock(table) = altered;
        }
        let table = client.table(changed());
        wrong.extend(self.accounts.verify(&table, self.nonces).await?);
        wrong.extend(self.chains.verify(&table).await?);
        wrong.extend(self.loads.verify(&client.table(BulkLoads::table())).await?);
        wrong.extend(self.snapshots.verify(client, &self.choices).await?);
        Ok(wrong)
    }

    async fn check_rows(&self, client: &Client) -> client::Result<Vec<String>> {
        let table = client.table(main());
        let regions = table.regions().await?.len() as u64;
        if regions != REGIONS {
            return Ok(vec![format!("{regions} of {REGIONS} regions are open")]);
        }
        let seen = scan(&table).await?;
        let (mut wrong, sample) = {
            let ledger = self.ledger.lock().expect("no holder of this lock panics");
            let wrong = ledger.check(&seen).iter().map(ToString::to_string).collect::<Vec<_>>();
            (wrong, ledger.sample(ledger.len() / GETS))
        };
        let get = |row: &Bytes| {
            Action::Get(Get { row: row.clone(), selection: Default::default(), existence_only: false })
        };
        let rows = table.batch(sample.iter().map(get).collect()).await;
        for (row, got) in sample.iter().zip(rows) {
            let got = Some(got?).filter(|got| !got.is_empty()).map(|got| RowContent::from_row(&got));
            if got.as_ref() != seen.get(row) {
                wrong.push(format!("{}: get {got:?}, scan {:?}", row.escape_ascii(), seen.get(row)));
            }
        }
        self.ledger.lock().expect("no holder of this lock panics").settle(&seen);
        Ok(wrong)
    }

    fn begin_load(&self, client: &Client, load: &Arc<LoadState>) -> Vec<JoinHandle<()>> {
        let spawn = |task| self.env.spawn(TaskClass::Service, task);
        let writer = |number| Writer {
            table: client.table(main()),
            ledger: self.ledger.clone(),
            number,
            choices: RandomChoices::new(self.choices.seed()),
            witness: self.witness,
            env: self.env.clone(),
        };
        let disorder = Disorder {
            tables: vec![self.main.clone(), self.changed.clone()],
            snapshots: self.snapshots.clone(),
            choices: RandomChoices::new(self.choices.seed()),
        };
        let disorder = disorder.run(self.env.clone(), client.admin(), load.clone());
        let changes = self.side_tables.clone().run(self.env.clone(), client.clone(), load.clone());
        let mut tasks: Vec<_> = (0..WRITERS)
            .map(|number| spawn(Box::pin(writer(number).run(load.clone())) as base::BoxFuture<'static, ()>))
            .collect();
        let changed = client.table(changed());
        for owner in 0..OWNERS {
            let (accounts, table) = (self.accounts.clone(), changed.clone());
            let task = accounts.run(owner, OWNERS, table, self.env.clone(), load.clone());
            tasks.push(spawn(Box::pin(task)));
        }
        for _ in 0..CONTENDERS {
            let task = self.chains.clone().run(changed.clone(), self.env.clone(), load.clone());
            tasks.push(spawn(Box::pin(task)));
        }
        let loads = self.loads.clone().run(client.table(BulkLoads::table()), self.env.clone(), load.clone());
        tasks.push(spawn(Box::pin(loads)));
        tasks.push(spawn(Box::pin(disorder)));
        tasks.push(spawn(Box::pin(changes)));
        tasks
    }

    /// Copies the directory as the kill left it.
    fn save_image(&self) {
        let Some(images) = &self.images else { return };
        let image = images.join(format!("{:04}-{}", self.kills, self.kills_at_start));
        copy(&self.data(), &image).expect("an image can be copied");
    }

    fn report(&self, what: &str, violations: &[String]) -> String {
        let kept = self.dir.display();
        let head = format!("after {} kills, {what}; directory kept: {kept}", self.kills);
        let named = violations.iter().take(NAMED).cloned();
        let rest = violations.len().saturating_sub(NAMED);
        let rest = (rest > 0).then(|| format!("and {rest} more"));
        [head].into_iter().chain(named).chain(rest).collect::<Vec<_>>().join("\n  ")
    }
}

/// Aborts the tasks wherever they are, like clients of a server that is gone.
async fn end(tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        task.abort();
        if let Err(error) = task.await
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &target)?,
            false => drop(std::fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}
