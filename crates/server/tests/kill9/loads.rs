//! Bulk loads of two families. After a kill, a load is there with all rows of both families, or not
//! at all; an acknowledged one is there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use base::env::Env;
use base::pool::Pool;
use bytes::Bytes;
use cell::cell::CellType;
use cell::query::Scan;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use cell::{KeyValue, key};
use client::{FileToLoad, Table};
use fs::local::LocalFs;
use fs::{FilePath, FileSystem};
use hfile::{Writer, WriterOptions};

use crate::world::LoadState;

const FAMILIES: [&str; 2] = ["f", "g"];
/// Rows of a load in each family.
const ROWS: usize = 10;

#[derive(Default)]
struct State {
    count: u64,
    // Loads that were begun, and those that must be there.
    begun: BTreeSet<u64>,
    acknowledged: BTreeSet<u64>,
}

/// The bulk loads, as the client that makes them knows them.
pub struct BulkLoads {
    dir: PathBuf,
    state: Mutex<State>,
}

impl BulkLoads {
    /// No loads yet. The files to load are written below `dir`.
    pub fn new(dir: &Path) -> BulkLoads {
        BulkLoads { dir: dir.join("loads"), state: Mutex::default() }
    }

    /// The table.
    pub fn table() -> TableName {
        TableName::parse("loads").expect("a legal name")
    }

    /// The table's descriptor.
    pub fn descriptor() -> TableDescriptor {
        FAMILIES.iter().fold(TableDescriptor::new(BulkLoads::table()), |table, family| {
            table.with_family(FamilyDescriptor::new(*family))
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }

    /// Makes loads until the server is killed.
    pub async fn run(self: Arc<Self>, table: Table, env: Env, load: Arc<LoadState>) {
        while !load.has_ended() {
            let number = {
                let mut state = self.state();
                state.count += 1;
                let number = state.count;
                state.begun.insert(number);
                number
            };
            match self.load(&table, &env, number).await {
                Ok(true) => drop(self.state().acknowledged.insert(number)),
                // As long as the server lives, there is no reason to refuse a load.
                Ok(false) if load.has_ended() => {}
                Ok(false) => load.record_violation(format!("bulk load {number} was refused")),
                Err(error) => load.record_failure("bulk load", &error),
            }
        }
    }

    async fn load(&self, table: &Table, env: &Env, number: u64) -> client::Result<bool> {
        let token = table.prepare_bulk_load().await?;
        let mut files = Vec::new();
        for family in FAMILIES {
            let uri = format!("file:{}", self.write(env, number, family).await.display());
            files.push(FileToLoad { family: family.into(), uri });
        }
        let loaded = table.bulk_load(&row(number, 0), &token, &files, false).await?;
        table.clean_up_bulk_load(&token).await?;
        Ok(loaded)
    }

    async fn write(&self, env: &Env, number: u64, family: &str) -> PathBuf {
        let local =
            LocalFs::create(&self.dir, Arc::new(Pool::new("loads", 1))).expect("the directory can be made");
        let path = FilePath::new(&format!("{number}-{:x}/{family}/file", env.random.next_u64()));
        local.make_dirs(&path.parent()).await.expect("the directory can be made");
        let options = WriterOptions { include_mvcc: false, ..WriterOptions::default() };
        let mut writer = Writer::create(&local, &path, options).await.expect("a file can be created");
        for at in 0..ROWS {
            let cell = KeyValue::new(&row(number, at), family.as_bytes(), b"q", 1, CellType::Put, b"loaded");
            writer.append(&cell.view(0)).await.expect("a cell can be written");
        }
        writer.finish().await.expect("a file can be finished");
        self.dir.join(path.as_str())
    }

    /// Checks what is there after a start. Returns the violations.
    pub async fn verify(&self, table: &Table) -> client::Result<Vec<String>> {
        let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
        let mut scanner = table.scan(Scan::default());
        while let Some(row) = scanner.next().await? {
            for cell in &row.cells {
                let row = key::row(cell.view(0).key).to_vec();
                let text = String::from_utf8(row).unwrap_or_default();
                let number = text.split('-').next().and_then(|number| number.parse().ok());
                *seen.entry(number.unwrap_or(0)).or_default() += 1;
            }
        }
        let mut state = self.state();
        let mut wrong = Vec::new();
        for (number, cells) in &seen {
            if *cells != ROWS * FAMILIES.len() || !state.begun.contains(number) {
                wrong.push(format!("bulk load {number} has {cells} cells"));
            }
        }
        for number in state.acknowledged.iter().filter(|number| !seen.contains_key(number)) {
            wrong.push(format!("acknowledged bulk load {number} is missing"));
        }
        // What is there now must stay. What is not there was never loaded.
        let loaded: BTreeSet<u64> = seen.into_keys().collect();
        state.begun.clone_from(&loaded);
        state.acknowledged = loaded;
        Ok(wrong)
    }

    /// The number of loads.
    pub fn summary(&self) -> String {
        format!("{} bulk loads", self.state().acknowledged.len())
    }
}

fn row(number: u64, at: usize) -> Bytes {
    format!("{number:08}-{at:03}").into()
}
