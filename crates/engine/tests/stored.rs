//! Store files that are read while a region writes, flushes, compacts and archives them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::world::{
    Opened, below, open, open_table, options, region_info, run, scan, table, visible_cell,
};
use base::env::Env;
use cell::cell::CellType;
use cell::mutation::Mutation;
use cell::query::{CellSelection, Scan};
use cell::schema::FamilyDescriptor;
use cell::{KeyValue, LATEST_TIMESTAMP};
use engine::region::CompactionKind;
use engine::scanner::BlockLoader;
use engine::stored::{StoredRegion, StoredRegions};
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use layout::RootDir;

const ROWS: u64 = 50;

fn stored(env: &Env, fs: &MemoryFs) -> StoredRegions {
    StoredRegions {
        env: env.clone(),
        fs: Arc::new(fs.clone()),
        root: RootDir::new(FilePath::root()),
        tracker: Arc::new(layout::RenameTracker),
        loader: Arc::new(BlockLoader::new(1 << 20)),
        mob: Arc::default(),
    }
}

/// All files and their contents.
async fn tree(fs: &MemoryFs) -> BTreeMap<String, Option<Vec<u8>>> {
    let (mut found, mut pending) = (BTreeMap::new(), vec![FilePath::root()]);
    while let Some(dir) = pending.pop() {
        for entry in fs.list(&dir).await.unwrap() {
            let path = dir.join(&entry.name);
            found.insert(path.as_str().to_string(), fs.contents(&path));
            if entry.is_dir {
                pending.push(path);
            }
        }
    }
    found
}

async fn put(opened: &Opened, row: u64, value: u64) {
    let row = format!("row{row:03}");
    let cell = |family: &[u8]| {
        let value = value.to_be_bytes();
        KeyValue::new(row.as_bytes(), family, b"q", LATEST_TIMESTAMP, CellType::Put, &value)
    };
    let put = Mutation::put(row.clone().into_bytes(), vec![cell(b"f"), cell(b"g")]);
    opened.region.batch(vec![put]).await.remove(0).unwrap();
}

/// The newest value of each row in both families.
async fn values(region: &StoredRegion) -> [BTreeMap<Vec<u8>, u64>; 2] {
    let list = region.scan_all(&Scan::default()).await.unwrap();
    let mut found = [BTreeMap::new(), BTreeMap::new()];
    for (cell, _) in &list.cells {
        let cell = cell.view(0);
        let at = usize::from(cell.family() == b"g");
        let before =
            found[at].insert(cell.row().to_vec(), u64::from_be_bytes(cell.value.try_into().unwrap()));
        assert_eq!(before, None, "one version of each column");
    }
    found
}

#[test]
fn only_flushed_cells_are_read_and_nothing_is_written() {
    run(async {
        let env = base::testing::env(3);
        let fs = MemoryFs::with_clock(env.clock.clone());
        let opened = open(&env, Arc::new(fs.clone()), options()).await.unwrap();
        for value in 0..3 {
            for row in 0..ROWS {
                put(&opened, row, value * 1000 + row).await;
            }
            opened.region.flush().await.unwrap();
        }
        let flushed = scan(&opened.region).await.unwrap();
        put(&opened, 7, 77).await;
        let before = tree(&fs).await;
        let region = stored(&env, &fs).open(Arc::new(table()), region_info()).await.unwrap();
        let selection = CellSelection { max_versions: u32::MAX, ..CellSelection::default() };
        let list = region.scan_all(&Scan { selection, ..Scan::default() }).await.unwrap();
        let found: Vec<_> = list.cells.iter().map(|(cell, _)| visible_cell(&cell.view(0))).collect();
        assert!(found == flushed, "{} cells, expected {}", found.len(), flushed.len());
        assert!(tree(&fs).await == before, "reading changes nothing");
        assert_eq!(region.files(b"f").unwrap().len(), 3);
        assert!(region.files(b"x").is_err());
    });
}

/// Whatever the server does meanwhile, a reader finds each row that was flushed before it began,
/// with that value or a newer one, and no deleted row that a major compaction had removed.
#[test]
fn a_reader_next_to_compactions_misses_no_flushed_row() {
    for seed in 1..=6 {
        run(async {
            let env = base::testing::env(seed);
            let fs = MemoryFs::with_clock(env.clock.clone());
            let opened = open(&env, Arc::new(fs.clone()), options()).await.unwrap();
            let stored = stored(&env, &fs);
            let flushed = std::cell::RefCell::new(BTreeMap::new());
            let (is_done, deleted) = (std::cell::Cell::new(false), b"row999");
            let write = async {
                let mut newest = BTreeMap::new();
                // A row that is deleted: its put is in one file, the marker in the next.
                put(&opened, 999, 1).await;
                opened.region.flush().await.unwrap();
                let delete = Mutation::delete(&deleted[..], Vec::new());
                opened.region.batch(vec![delete]).await.remove(0).unwrap();
                for step in 1..60_u64 {
                    for _ in 0..5 {
                        let row = below(&*env.random, ROWS);
                        put(&opened, row, step).await;
                        newest.insert(format!("row{row:03}").into_bytes(), step);
                    }
                    opened.region.flush().await.unwrap();
                    flushed.replace(newest.clone());
                    if below(&*env.random, 3) == 0 {
                        let kind = match below(&*env.random, 2) {
                            0 => CompactionKind::Major,
                            _ => CompactionKind::Minor,
                        };
                        opened.region.compact(None, kind).await.unwrap();
                        opened.region.archive_retired().await;
                    }
                    tokio::task::yield_now().await;
                }
                is_done.set(true);
            };
            let read = async {
                let mut reads = 0;
                while !is_done.get() {
                    let expected = flushed.borrow().clone();
                    let region = stored.open(Arc::new(table()), region_info()).await.unwrap();
                    // Files that the server archives now stay readable.
                    for _ in 0..below(&*env.random, 20) {
                        tokio::task::yield_now().await;
                    }
                    for found in values(&region).await {
                        for (row, value) in &expected {
                            let found = found.get(row).copied();
                            assert!(found >= Some(*value), "seed {seed}: {found:?} instead of {value}");
                        }
                        if !expected.is_empty() {
                            assert!(
                                !found.contains_key(&deleted[..]),
                                "seed {seed}: a deleted row came back"
                            );
                        }
                    }
                    reads += 1;
                }
                assert!(reads > 5, "seed {seed}: only {reads} reads");
            };
            tokio::join!(write, read);
        });
    }
}

#[test]
fn values_in_mob_files_are_resolved() {
    run(async {
        let env = base::testing::env(4);
        let fs = MemoryFs::with_clock(env.clock.clone());
        let family = FamilyDescriptor::new("f").with("IS_MOB", "true").with("MOB_THRESHOLD", "10");
        let table = cell::schema::TableDescriptor::new(region_info().table).with_family(family);
        let opened = open_table(&env, Arc::new(fs.clone()), options(), &table).await.unwrap();
        let value = vec![7_u8; 500];
        let cell = KeyValue::new(b"r", b"f", b"q", LATEST_TIMESTAMP, CellType::Put, &value);
        opened.region.batch(vec![Mutation::put(&b"r"[..], vec![cell])]).await.remove(0).unwrap();
        opened.region.flush().await.unwrap();
        let region = stored(&env, &fs).open(Arc::new(table), region_info()).await.unwrap();
        let list = region.scan_all(&Scan::default()).await.unwrap();
        assert_eq!(list.cells[0].0.view(0).value, value);
    });
}

#[test]
fn a_missing_region_is_an_error() {
    run(async {
        let env = base::testing::env(4);
        let fs = MemoryFs::with_clock(env.clock.clone());
        fs.make_dirs(&FilePath::new("data/default/t")).await.unwrap();
        let opened = stored(&env, &fs).open(Arc::new(table()), region_info()).await;
        assert!(opened.is_err());
    });
}
