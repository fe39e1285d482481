//! Clients that write and read rows, and record what they see in a [`History`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::env::{Env, TaskClass};
use bytes::Bytes;
use cell::mutation::Mutation;
use cell::query::{CellSelection, FamilyColumns, Get, Scan};
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use client::{Client, ClientOptions, Registry, Row, Table};

use crate::history::{History, ReadRow};
use crate::process::{Life, Process};
use crate::random::RandomSource;
use crate::world::World;

/// Families of a version. The last one also has the counter.
const FAMILIES: [&[u8]; 3] = [b"a", b"b", b"c"];
const VERSION: &[u8] = b"v";
const COUNTER: &[u8] = b"n";
/// The column of the first family that has the version of the last put.
const LAST_PUT: &[u8] = b"l";
/// The timestamp of all its cells.
const LAST_PUT_TIMESTAMP: i64 = 1;
/// A put that took less was sent once: a client pauses longer before it retries.
pub(crate) const SENT_ONCE: Duration = Duration::from_millis(90);
/// Number of rows. Few, so that they are written and read concurrently.
const ROWS: usize = 12;
/// Tasks of each client process.
const TASKS: usize = 2;
/// Maximum pause between two operations of a task, unless it is set.
const PAUSE_MAX: Duration = Duration::from_millis(60);
/// Percentage of writes among the operations, unless it is set.
const WRITE_PERCENT: u64 = 60;
/// Percentage of deletes among the writes, if no put of the row is in progress.
const DELETE_PERCENT: u64 = 15;
/// How much longer than the other tasks a task without cached locations pauses.
const VISITOR_PAUSE: u32 = 3;
/// Maximum length of a value, in addition to its text.
const PADDING_MAX: u64 = 2000;

/// A table that clients write and read. See the module's documentation.
#[derive(Clone)]
pub struct Workload {
    table: TableName,
    registry: Registry,
    rows: Arc<[Arc<str>]>,
    history: Arc<History>,
    stopped: Arc<AtomicBool>,
    pause_max: Duration,
    write_percent: u64,
    has_visitors: bool,
}

impl Workload {
    /// The same workload on another server of the same directory: with the same history.
    pub(crate) fn on(self, registry: Registry) -> Workload {
        Workload { registry, ..self }
    }

    /// The same workload with this maximum pause between two operations of a task.
    pub fn with_pause(self, pause_max: Duration) -> Workload {
        Workload { pause_max, ..self }
    }

    /// The same workload with this percentage of writes. In addition, a task of each client process
    /// locates the regions for each of its writes: so rows are written on the new server of a
    /// region while other tasks still use the old one.
    pub fn with_visitors(self, write_percent: u64) -> Workload {
        Workload { write_percent, has_visitors: true, ..self }
    }

    /// A workload on the cluster that is found through `registry`.
    pub fn new(registry: Registry) -> Workload {
        Workload {
            table: TableName::parse("sim").expect("a valid name"),
            registry,
            rows: (0..ROWS).map(|n| format!("row{n:02}").into()).collect(),
            history: Arc::default(),
            stopped: Arc::default(),
            pause_max: PAUSE_MAX,
            write_percent: WRITE_PERCENT,
            has_visitors: false,
        }
    }

    /// What the clients wrote and read.
    pub fn history(&self) -> &Arc<History> {
        &self.history
    }

    /// The table that the clients use.
    pub fn table(&self) -> &TableName {
        &self.table
    }

    /// A client of the cluster in a process.
    pub fn client(&self, env: &Env) -> Client {
        let options = ClientOptions {
            rpc_timeout: Duration::from_secs(5),
            operation_timeout: Duration::from_secs(120),
            procedure_timeout: Duration::from_secs(120),
            ..ClientOptions::default()
        };
        Client::new(env.clone(), self.registry.clone(), options)
    }

    /// Creates the table, with several regions. Retries until it exists.
    pub async fn create_table(&self, env: &Env) {
        let admin = self.client(env).admin();
        let mut descriptor = TableDescriptor::new(self.table.clone());
        for family in FAMILIES {
            descriptor = descriptor.with_family(FamilyDescriptor::new(Bytes::from_static(family)));
        }
        let splits = ["row03", "row06", "row09"].map(|row| Bytes::from_static(row.as_bytes()));
        loop {
            let created = admin.create_table(&descriptor, &splits).await;
            if created.is_ok() || admin.is_enabled(&self.table).await.unwrap_or(false) {
                return;
            }
            env.clock.sleep(Duration::from_secs(1)).await;
        }
    }

    /// Adds a client process that works until [`stop`](Self::stop).
    pub fn add_client(&self, world: &Arc<World>, name: &str) -> Arc<Process> {
        let (workload, seeds) = (self.clone(), world.clone());
        let process = world.add_process(name, move |life| {
            let random = seeds.random(&format!("work of {} at {:?}", life.process.name(), seeds.now()));
            workload.clone().work(seeds.clone(), life, random)
        });
        process.start();
        process
    }

    /// Ends the work of all clients after their current operations.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    async fn work(self, world: Arc<World>, life: Life, random: RandomSource) {
        let table = self.client(&life.env).table(self.table.clone());
        let worker = || Worker {
            world: world.clone(),
            name: life.process.name().to_string(),
            table: table.clone(),
            workload: self.clone(),
            random: RandomSource::new(random.next(), "task"),
        };
        for _ in 0..TASKS {
            let (worker, clock) = (worker(), life.env.clock.clone());
            life.env.spawn(TaskClass::Service, async move {
                while !worker.is_stopped() {
                    worker.operate().await;
                    clock.sleep(worker.pause(1)).await;
                }
            });
        }
        if self.has_visitors {
            let (worker, env) = (worker(), life.env.clone());
            life.env.spawn(TaskClass::Service, worker.visit(env));
        }
        std::future::pending::<()>().await;
    }

    /// Reads all rows, by gets and by a scan, and checks them. All acknowledged writes must be
    /// visible.
    ///
    /// # Errors
    /// A read that failed.
    pub async fn read_all(&self, env: &Env) -> client::Result<()> {
        let table = self.client(env).table(self.table.clone());
        for row in &*self.rows {
            self.get(&table, row).await?;
        }
        self.scan(&table).await
    }

    async fn get(&self, table: &Table, row: &Arc<str>) -> client::Result<()> {
        let floor = self.history.begin_read(row);
        let read = table.get(&get(row)).await?;
        self.history.end_read(row, floor, &self.parse(row, &read));
        Ok(())
    }

    async fn scan(&self, table: &Table) -> client::Result<()> {
        let mut floors = self.history.begin_scan();
        let rows = table.scan(Scan { selection: selection(), ..Scan::default() }).collect().await?;
        let keys: Vec<&[u8]> = rows.iter().map(Row::key).collect();
        if !keys.is_sorted_by(|one, next| one < next) {
            let keys: Vec<String> = keys.iter().map(|key| key.escape_ascii().to_string()).collect();
            self.history.violate("a scan returns each row once, in order", format!("{keys:?}"));
        }
        for read in &rows {
            let key: Arc<str> = String::from_utf8_lossy(read.key()).into();
            let floor = floors.remove(&key).unwrap_or_default();
            self.history.end_read(&key, floor, &self.parse(&key, read));
        }
        for (missing, floor) in floors {
            self.history.end_read(&missing, floor, &self.parse(&missing, &Row::default()));
        }
        Ok(())
    }

    /// The versions in a row. A value that was not written is a violation.
    fn parse(&self, row: &str, read: &Row) -> ReadRow {
        let version = |family: &&[u8]| {
            let Some(value) = read.value(family, VERSION) else { return 0 };
            let text = std::str::from_utf8(value).unwrap_or_default();
            let version = text.split(' ').nth(2).and_then(|version| version.parse().ok()).unwrap_or(0);
            let padding = text.rsplit(' ').next().map_or(0, str::len);
            if version == 0 || text != text_of(row, family, version, padding) {
                let found = format!("{row}/{}: {}", family.escape_ascii(), value.escape_ascii());
                self.history.violate("values are those that were written", found);
            }
            version
        };
        ReadRow {
            versions: FAMILIES.iter().map(version).collect(),
            counter: counter_of(read),
            last_put: number_of(read, FAMILIES[0], LAST_PUT),
        }
    }
}

/// The counter of a row; 0 if it has none.
fn counter_of(read: &Row) -> u64 {
    number_of(read, FAMILIES[2], COUNTER)
}

/// The number in a column; 0 if it has none.
fn number_of(read: &Row, family: &[u8], qualifier: &[u8]) -> u64 {
    let value = read.value(family, qualifier);
    value.and_then(|value| value.try_into().ok()).map_or(0, u64::from_be_bytes)
}

/// The value of a version in one family.
fn text_of(row: &str, family: &[u8], version: u64, padding: usize) -> String {
    format!("{row} {} {version} {}", family.escape_ascii(), "x".repeat(padding))
}

fn selection() -> CellSelection {
    CellSelection {
        columns: FAMILIES
            .iter()
            .map(|family| FamilyColumns { family: Bytes::from_static(family), qualifiers: None })
            .collect(),
        ..CellSelection::default()
    }
}

fn get(row: &str) -> Get {
    Get {
        row: Bytes::copy_from_slice(row.as_bytes()),
        selection: Arc::new(selection()),
        existence_only: false,
    }
}

/// A task of a client.
struct Worker {
    world: Arc<World>,
    name: String,
    table: Table,
    workload: Workload,
    random: RandomSource,
}

impl Worker {
    fn is_stopped(&self) -> bool {
        self.workload.stopped.load(Ordering::Relaxed)
    }

    fn pause(&self, factor: u32) -> Duration {
        self.random.between(Duration::ZERO, self.workload.pause_max * factor)
    }

    async fn operate(&self) {
        let row = &self.workload.rows[self.random.index(ROWS)];
        let (number, writes) = (self.random.below(100), self.workload.write_percent);
        let result = match number {
            _ if number < writes * DELETE_PERCENT / 100 => self.delete(row).await,
            _ if number < writes * 3 / 4 => self.put(row).await,
            _ if number < writes => self.increment(row).await,
            0..95 => self.workload.get(&self.table, row).await.map_err(|error| ("get", error)),
            _ => self.workload.scan(&self.table).await.map_err(|error| ("scan", error)),
        };
        self.record_failure(row, result);
    }

    /// Writes rows, each as a client without cached locations.
    async fn visit(mut self, env: Env) {
        while !self.is_stopped() {
            env.clock.sleep(self.pause(VISITOR_PAUSE)).await;
            self.table = self.workload.client(&env).table(self.workload.table.clone());
            let row = &self.workload.rows[self.random.index(ROWS)];
            self.record_failure(row, self.put(row).await);
        }
    }

    fn record_failure(&self, row: &str, result: Result<(), (&'static str, client::Error)>) {
        if let Err((operation, error)) = result {
            self.world.record(&self.name, &format!("{operation} of {row} failed: {}", brief(&error)));
        }
    }

    /// Records the begin or the end of an operation.
    fn detail(&self, event: &str, row: &str, number: u64) {
        self.world.timeline().detail(self.world.now(), &self.name, event, row, &[number]);
    }

    async fn put(&self, row: &Arc<str>) -> Result<(), (&'static str, client::Error)> {
        let version = self.workload.history.begin_put(row);
        self.detail("begins put", row, version);
        let padding = if self.random.one_in(4) { self.random.below(PADDING_MAX) as usize } else { 0 };
        let cell = |family: &&[u8]| {
            let value = text_of(row, family, version, padding);
            KeyValue::new(row.as_bytes(), family, VERSION, version as i64, CellType::Put, value.as_bytes())
        };
        let last_put = KeyValue::new(
            row.as_bytes(),
            FAMILIES[0],
            LAST_PUT,
            LAST_PUT_TIMESTAMP,
            CellType::Put,
            &version.to_be_bytes(),
        );
        let cells = [last_put].into_iter().chain(FAMILIES.iter().map(cell)).collect();
        let put = Mutation::put(Bytes::copy_from_slice(row.as_bytes()), cells);
        let begun = self.world.now();
        match self.table.mutate(&put).await {
            Ok(()) => {
                self.detail("ends put", row, version);
                match self.world.now() - begun < SENT_ONCE {
                    true => self.workload.history.end_put(row, version),
                    false => self.workload.history.end_repeated_put(row, version),
                }
                Ok(())
            }
            Err(error) => {
                self.workload.history.lose_version();
                Err(("put", error))
            }
        }
    }

    /// Deletes all versions of a row up to a new one, or writes the row if a put is in progress.
    async fn delete(&self, row: &Arc<str>) -> Result<(), (&'static str, client::Error)> {
        let Some(version) = self.workload.history.begin_delete(row) else { return self.put(row).await };
        self.detail("begins delete", row, version);
        let marker = |family: &&[u8]| {
            KeyValue::new(row.as_bytes(), family, VERSION, version as i64, CellType::DeleteColumn, b"")
        };
        let row_key = Bytes::copy_from_slice(row.as_bytes());
        let delete = Mutation::delete(row_key, FAMILIES.iter().map(marker).collect());
        match self.table.mutate(&delete).await {
            Ok(()) => {
                self.detail("ends delete", row, version);
                self.workload.history.end_version(row, version);
                Ok(())
            }
            Err(error) => {
                self.workload.history.lose_version();
                Err(("delete", error))
            }
        }
    }

    async fn increment(&self, row: &Arc<str>) -> Result<(), (&'static str, client::Error)> {
        let (floor, nonce) = (self.workload.history.begin_increment(row), self.random.next());
        self.detail("begins increment", row, nonce);
        let one = 1_u64.to_be_bytes();
        let cell = KeyValue::new(row.as_bytes(), FAMILIES[2], COUNTER, LATEST_TIMESTAMP, CellType::Put, &one);
        let increment = Mutation::increment(Bytes::copy_from_slice(row.as_bytes()), vec![cell]);
        let increment = Mutation { nonce: (1, nonce.max(1)), ..increment };
        match self.table.read_modify_write(increment).await {
            Ok(read) => {
                let value = counter_of(&read);
                self.detail("ends increment", row, nonce);
                self.detail("has", row, value);
                self.workload.history.end_increment(row, floor, value);
                Ok(())
            }
            Err(error) => {
                self.workload.history.lose_increment(row);
                Err(("increment", error))
            }
        }
    }
}

/// The first line of an error.
fn brief(error: &client::Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().chars().take(160).collect()
}
