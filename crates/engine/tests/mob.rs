//! MOB files: what flushes, compactions and reads do with large values.

use std::sync::Arc;
use std::time::Duration;

use crate::common::world::{Opened, open_table, options, region_info, run};
use base::env::Env;
use cell::cell::CellType;
use cell::condition::{ColumnTest, Condition, Test};
use cell::filter::{Comparator, Compare, CompareOp, Filter};
use cell::mutation::Mutation;
use cell::query::{CellSelection, Get, MobReads, Scan};
use cell::region::RegionInfo;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use cell::{KeyValue, tags};
use engine::Region;
use engine::mob::{FileRefs, MobCompaction, MobOptions, MobReference, is_reference};
use engine::region::{CompactionKind, RegionOptions};
use engine::scanner::{CellList, Limits, Stopped, drive};
use fs::FilePath;
use fs::FileSystem;
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use hfile::info::names;
use layout::RootDir;

const SMALL: &[u8] = b"small";
/// Above the threshold of 100 bytes.
const LARGE_LEN: usize = 1000;

fn large(seed: u8) -> Vec<u8> {
    vec![seed; LARGE_LEN]
}

fn table_with(threshold: &str) -> TableDescriptor {
    let family = FamilyDescriptor::new("f")
        .with("IS_MOB", "true")
        .with("MOB_THRESHOLD", threshold)
        .with("VERSIONS", "3");
    TableDescriptor::new(TableName::parse("t").unwrap()).with_family(family)
}

/// A region on a file system in memory.
struct World {
    env: Env,
    fs: MemoryFs,
    opened: Opened,
}

impl World {
    async fn new() -> World {
        World::with_table(&table_with("100")).await
    }

    async fn with_table(table: &TableDescriptor) -> World {
        let env = base::testing::env(5);
        let fs = MemoryFs::with_clock(env.clock.clone());
        World::on(env, fs, table, options()).await
    }

    async fn on(env: Env, fs: MemoryFs, table: &TableDescriptor, options: RegionOptions) -> World {
        let shared: Arc<dyn FileSystem> = Arc::new(fs.clone());
        let opened = open_table(&env, shared, options, table).await.unwrap();
        World { env, fs, opened }
    }

    /// Closes the region and opens it again, as a table with this descriptor.
    async fn reopened(self, table: &TableDescriptor, options: RegionOptions) -> World {
        self.region().close().await.unwrap();
        self.opened.log.close().await;
        World::on(self.env, self.fs, table, options).await
    }

    /// A region on a disk with a planned fault.
    async fn with_fault(env: Env, fs: MemoryFs, rule: Rule) -> (World, Faulty) {
        let faulty = Faulty::new(Arc::new(fs.clone()), Plan::new(env.clock.clone()).rule(rule));
        let opened = open_table(&env, Arc::new(faulty.clone()), options(), &table_with("100")).await.unwrap();
        (World { env, fs, opened }, faulty)
    }

    fn region(&self) -> &Arc<Region> {
        &self.opened.region
    }

    async fn put(&self, row: &str, timestamp: i64, value: &[u8]) {
        let cell = KeyValue::new(row.as_bytes(), b"f", b"q", timestamp, CellType::Put, value);
        self.write(Mutation::put(row.as_bytes().to_vec(), vec![cell])).await;
    }

    async fn write(&self, mutation: Mutation) {
        self.region().batch(vec![mutation]).await.remove(0).unwrap();
    }

    /// Three rows, of which `b` has a small value, in a file.
    async fn flushed() -> World {
        let world = World::new().await;
        world.put("a", 10, &large(1)).await;
        world.put("b", 10, SMALL).await;
        world.put("c", 1_700_000_000_000, &large(3)).await;
        world.region().flush().await.unwrap();
        world
    }

    async fn scan(&self, mob: MobReads) -> engine::error::Result<CellList> {
        let selection = CellSelection { mob, max_versions: 9, ..CellSelection::default() };
        self.region().scan_all(&Scan { selection, ..Scan::default() }).await
    }

    async fn values(&self) -> Vec<Vec<u8>> {
        let list = self.scan(MobReads::default()).await.unwrap();
        list.cells.iter().map(|(cell, _)| cell.view(0).value.to_vec()).collect()
    }

    /// The names of the MOB files that a raw scan finds in references.
    async fn referenced(&self) -> Vec<String> {
        let raw = MobReads { raw: true, references_only: true, ..MobReads::default() };
        let list = self.scan(raw).await.unwrap();
        let file = |(cell, _): &(KeyValue, u64)| MobReference::parse(&cell.view(0)).unwrap().file.to_string();
        list.cells.iter().map(file).collect()
    }

    async fn mob_files(&self) -> Vec<String> {
        let listed = root().list_mob_files(&self.fs, &region_info().table, b"f").await.unwrap();
        listed.into_iter().map(|file| file.name).collect()
    }

    /// The list in each store file.
    async fn lists(&self) -> Vec<FileRefs> {
        let files = root().list_store_files(&self.fs, &region_info(), b"f").await.unwrap();
        let mut lists = Vec::new();
        for file in files {
            let reader =
                hfile::Reader::open(&self.fs, &file.path, 1, hfile::OpenOptions::default()).await.unwrap();
            lists
                .push(FileRefs::of(&file.path, reader.info()).unwrap().expect("every store file has a list"));
        }
        lists
    }

    async fn compact(&self, kind: CompactionKind) -> usize {
        self.region().compact(None, kind).await.unwrap()
    }

    async fn clean(&self) -> usize {
        self.region().clean_mob_files(Duration::ZERO).await.unwrap()
    }
}

fn root() -> RootDir {
    RootDir::new(FilePath::root())
}

#[test]
fn a_flush_moves_large_values_to_a_mob_file_and_reads_find_them() {
    run(async {
        let world = World::flushed().await;
        assert_eq!(world.values().await, [large(1), SMALL.to_vec(), large(3)]);
        let files = world.mob_files().await;
        let [name] = &files[..] else { panic!("one MOB file: {files:?}") };
        assert_eq!(world.referenced().await, [name.clone(), name.clone()]);
        assert!(name.starts_with("d41d8cd98f00b204e9800998ecf8427e20231114"), "{name}");
        assert_eq!(layout::mob::region_of(name), Some(&*region_info().encoded_name()));
        let path = root().mob_family_dir(&region_info().table, b"f").join(name);
        let reader = hfile::Reader::open(&world.fs, &path, 1, hfile::OpenOptions::default()).await.unwrap();
        assert_eq!(reader.info().get(names::MOB_CELLS_COUNT).unwrap()[..], 2u64.to_be_bytes());
        assert_eq!(reader.info().entry_count, 2);
        let [list] = &world.lists().await[..] else { panic!("one store file") };
        assert_eq!(list.encode(), format!("t/{name}"));
        // A Get does not use the scanner that a scan uses.
        let get = |row: &'static str| Get {
            row: row.into(),
            selection: CellSelection::default().into(),
            existence_only: false,
        };
        let got = world.region().get(&get("a")).await.unwrap();
        assert_eq!(got.cells[0].0.view(0).value, large(1));
        assert_eq!(world.region().get(&get("b")).await.unwrap().cells[0].0.view(0).value, SMALL);
        // After a restart too, and if the files are cold.
        let world = world.reopened(&table_with("100"), options()).await;
        assert_eq!(world.values().await, [large(1), SMALL.to_vec(), large(3)]);
    });
}

#[test]
fn attributes_choose_how_references_are_returned() {
    run(async {
        let world = World::flushed().await;
        world.put("d", 1, &large(4)).await;
        let scan = async |mob: MobReads| {
            let list = world.scan(mob).await.unwrap();
            list.cells
                .iter()
                .map(|(cell, _)| (cell.view(0).value.len(), is_reference(cell.view(0).tags)))
                .collect::<Vec<_>>()
        };
        let reference = 4 + 105;
        let raw = MobReads { raw: true, ..MobReads::default() };
        assert_eq!(
            scan(raw).await,
            [(reference, true), (SMALL.len(), false), (reference, true), (LARGE_LEN, false)],
            "the memstore has no references"
        );
        let only = MobReads { references_only: true, ..MobReads::default() };
        assert_eq!(scan(only).await, [(LARGE_LEN, false), (LARGE_LEN, false)]);
        let raw_only = MobReads { raw: true, references_only: true, ..MobReads::default() };
        assert_eq!(scan(raw_only).await, [(reference, true), (reference, true)]);
    });
}

/// As in HBase, the order of families decides.
#[test]
fn reads_of_references_leave_out_the_families_after_a_mob_family() {
    run(async {
        let mut table = table_with("100");
        for name in ["e", "g"] {
            table = table.with_family(FamilyDescriptor::new(name));
        }
        let world = World::with_table(&table).await;
        for family in [&b"e"[..], b"f", b"g"] {
            let cell = KeyValue::new(b"a", family, b"q", 1, CellType::Put, &large(1));
            world.write(Mutation::put(&b"a"[..], vec![cell])).await;
        }
        world.region().flush().await.unwrap();
        let mob = MobReads { references_only: true, ..MobReads::default() };
        let selection = CellSelection { mob, ..CellSelection::default() };
        let scan = Scan { selection, ..Scan::default() };
        let found = world.region().scan_all(&scan).await.unwrap();
        let families: Vec<&[u8]> = found.cells.iter().map(|(cell, _)| cell.view(0).family()).collect();
        assert_eq!(families, [b"e", b"f"]);
    });
}

/// As in HBase, a filter sees the reference of a flushed cell.
#[test]
fn filters_see_references() {
    run(async {
        let world = World::flushed().await;
        let filter =
            Filter::Value(Compare { op: CompareOp::Equal, comparator: Comparator::Binary(large(1).into()) });
        let selection = CellSelection { filter: Some(filter.into()), ..CellSelection::default() };
        let scan = Scan { selection, ..Scan::default() };
        assert_eq!(world.region().scan_all(&scan).await.unwrap().cells.len(), 0);
        world.put("a", 11, &large(1)).await;
        assert_eq!(world.region().scan_all(&scan).await.unwrap().cells.len(), 1);
    });
}

#[test]
fn limits_count_the_bytes_of_values() {
    run(async {
        let world = World::new().await;
        for row in ["a", "b", "c", "d"] {
            world.put(row, 10, &large(7)).await;
        }
        world.region().flush().await.unwrap();
        let mut scanner = world.region().scanner(&Scan::default()).unwrap();
        let mut rows = Vec::new();
        loop {
            let mut list = CellList::default();
            let mut limits = Limits { bytes: LARGE_LEN as u64 + 100, ..Limits::default() };
            let progress = drive(&mut scanner, &mut limits, &mut list).await.unwrap();
            assert!(list.cells.iter().all(|(cell, _)| cell.view(0).value == large(7)));
            rows.push(list.cells.len());
            if progress.stopped == Stopped::Exhausted {
                break;
            }
        }
        assert_eq!(rows.iter().sum::<usize>(), 4);
        assert!(rows.iter().all(|rows| *rows <= 2), "{rows:?}");
    });
}

#[test]
fn conditions_increments_and_appends_read_values() {
    run(async {
        let world = World::new().await;
        world.put("a", 10, &large(1)).await;
        world.region().flush().await.unwrap();
        let condition = |value: Vec<u8>| Condition {
            row: "a".into(),
            time_range: Default::default(),
            test: Test::Column(ColumnTest {
                family: "f".into(),
                qualifier: "q".into(),
                operator: CompareOp::Equal,
                value: value.into(),
            }),
        };
        let append = || {
            let cell = KeyValue::new(b"a", b"f", b"q", cell::LATEST_TIMESTAMP, CellType::Put, b"more");
            Mutation::append("a", vec![cell])
        };
        let changed = world.region().change(Some(&condition(large(2))), vec![append()]).await.unwrap();
        assert!(!changed.matched);
        let changed = world.region().change(Some(&condition(large(1))), vec![append()]).await.unwrap();
        assert!(changed.matched);
        let expected = [&large(1)[..], b"more"].concat();
        assert_eq!(world.values().await[0], expected);
        world.region().flush().await.unwrap();
        assert_eq!(world.values().await[0], expected);
    });
}

#[test]
fn minor_compactions_keep_references_and_major_ones_of_users_rewrite_values() {
    run(async {
        let world = World::flushed().await;
        world.put("d", 10, &large(4)).await;
        world.region().flush().await.unwrap();
        let before = world.mob_files().await;
        assert_eq!(before.len(), 2);
        let expected = world.values().await;
        // Not of all files, or not by a user: the system's compactions do not touch values.
        world.region().request_major_compaction(b"f").unwrap();
        let request = engine::compaction::SelectionRequest { by_user: false, major: true, off_peak: false };
        let selected = world.region().select_compaction(b"f", request).await.unwrap().unwrap();
        world.region().run_compaction(selected, &engine::region::Unthrottled).await.unwrap();
        assert_eq!((world.mob_files().await, world.lists().await.len()), (before.clone(), 1));
        let [list] = &world.lists().await[..] else { panic!("one store file") };
        assert!(before.iter().all(|name| list.contains(name)), "the output lists all files");
        assert_eq!((world.values().await, world.clean().await), (expected.clone(), 0));
        world.compact(CompactionKind::Major).await;
        let after = world.mob_files().await;
        assert_eq!(after.len(), 3, "the old files are unreferenced, but still there");
        assert_eq!(world.values().await, expected);
        assert_eq!(world.clean().await, 2);
        assert_eq!(world.values().await, expected);
        let left = world.mob_files().await;
        assert!(left.len() == 1 && !before.contains(&left[0]), "{left:?}");
        // Without the archive, nothing is missing.
        let pseudo_region = layout::mob::pseudo_region(&region_info().table);
        world.fs.delete(&root().archive_family_dir(&pseudo_region, b"f")).await.unwrap();
        let world = world.reopened(&table_with("100"), options()).await;
        assert_eq!(world.values().await, expected);
    });
}

#[test]
fn a_changed_threshold_moves_values_back_and_out() {
    run(async {
        let world = World::flushed().await;
        let expected = world.values().await;
        let world = world.reopened(&table_with("100000"), options()).await;
        world.compact(CompactionKind::Major).await;
        assert!(world.referenced().await.is_empty());
        assert_eq!(
            (world.values().await, &world.lists().await[0].encode()[..]),
            (expected.clone(), &[0][..])
        );
        assert_eq!((world.clean().await, world.mob_files().await.len()), (1, 0));
        assert_eq!(world.values().await, expected);
        let world = world.reopened(&table_with("4"), options()).await;
        world.compact(CompactionKind::Major).await;
        assert_eq!(world.referenced().await.len(), 3);
        assert_eq!(world.values().await, expected);
    });
}

#[test]
fn an_optimized_compaction_leaves_large_files() {
    run(async {
        let world = World::flushed().await;
        let (expected, before) = (world.values().await, world.mob_files().await);
        let optimized = |bytes| RegionOptions {
            mob: MobOptions { compaction: MobCompaction::Optimized(bytes), ..MobOptions::default() },
            ..options()
        };
        let world = world.reopened(&table_with("100"), optimized(1)).await;
        world.compact(CompactionKind::Major).await;
        assert_eq!((world.mob_files().await, world.clean().await), (before.clone(), 0));
        let world = world.reopened(&table_with("100"), optimized(1 << 20)).await;
        world.compact(CompactionKind::Major).await;
        assert_eq!((world.clean().await, world.values().await), (1, expected));
        assert!(!world.mob_files().await.contains(&before[0]));
    });
}

#[test]
fn a_missing_value_is_an_error_unless_an_empty_one_is_requested() {
    run(async {
        let world = World::flushed().await;
        let path = root().mob_family_dir(&region_info().table, b"f").join(&world.mob_files().await[0]);
        let content = world.fs.contents(&path).unwrap();
        world.fs.delete(&path).await.unwrap();
        let world = world.reopened(&table_with("100"), options()).await;
        let error = world.scan(MobReads::default()).await.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("cannot read the MOB value of a/f:q/10 of table t: no MOB file"), "{error}");
        let empty = MobReads { empty_if_missing: true, ..MobReads::default() };
        let lens: Vec<usize> =
            world.scan(empty).await.unwrap().cells.iter().map(|(cell, _)| cell.view(0).value.len()).collect();
        assert_eq!(lens, [0, SMALL.len(), 0]);
        assert!(world.region().compact(None, CompactionKind::Major).await.is_err(), "nothing is dropped");
        assert_eq!(world.referenced().await.len(), 2);
        // A file that is found later is used.
        world.fs.put(&path, content);
        assert_eq!(world.values().await[0], large(1));
    });
}

/// A client that sends tags can send a cell that looks like a reference.
#[test]
fn a_malformed_reference_of_a_client_stays_and_stops_no_flush() {
    run(async {
        let world = World::new().await;
        let reference_tag = [0, 1, 5];
        let cell =
            KeyValue::with_tags(b"a", b"f", b"q", 10, CellType::Put, b"\0\0\0\x01../x", &reference_tag);
        world.write(Mutation::put("a", vec![cell])).await;
        world.put("b", 10, &large(2)).await;
        world.region().flush().await.unwrap();
        world.compact(CompactionKind::Major).await;
        let raw = MobReads { raw: true, ..MobReads::default() };
        let cells = world.scan(raw).await.unwrap().cells;
        assert_eq!(cells[0].0.view(0).value, b"\0\0\0\x01../x");
        let empty = MobReads { empty_if_missing: true, ..MobReads::default() };
        let list = world.scan(empty).await.unwrap();
        assert_eq!(list.cells[1].0.view(0).value, large(2));
        let error = world.scan(MobReads::default()).await.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("a/f:q/10 of table t: the reference is malformed"), "{error}");
    });
}

#[test]
fn a_test_for_existence_reads_no_mob_file() {
    run(async {
        let world = World::flushed().await;
        let path = root().mob_family_dir(&region_info().table, b"f").join(&world.mob_files().await[0]);
        world.fs.delete(&path).await.unwrap();
        let world = world.reopened(&table_with("100"), options()).await;
        let get = |existence_only| Get { row: "a".into(), selection: Arc::default(), existence_only };
        assert_eq!(world.region().get(&get(true)).await.unwrap().cells.len(), 1);
        assert!(world.region().get(&get(false)).await.is_err());
    });
}

#[test]
fn only_flushes_that_write_a_mob_file_are_counted() {
    run(async {
        let world = World::new().await;
        let count = || world.opened.mob.instruments().flushes.get();
        world.put("a", 10, SMALL).await;
        world.region().flush().await.unwrap();
        assert_eq!(count(), 0);
        world.put("b", 10, &large(2)).await;
        world.region().flush().await.unwrap();
        assert_eq!(count(), 1);
    });
}

/// Each attempt of a flush writes a MOB file with a new name.
#[test]
fn failed_flushes_leave_no_unfinished_mob_files() {
    run(async {
        let unfinished = root().mob_tmp_dir();
        let rule = Rule::new(Fault::Fail).on(Operation::Rename).at(unfinished.as_str());
        let (world, faulty) = World::with_fault(base::testing::env(5), MemoryFs::new(), rule).await;
        world.put("a", 10, &large(1)).await;
        for _ in 0..3 {
            assert!(world.region().flush().await.is_err());
            assert!(world.fs.list(&unfinished).await.unwrap().is_empty());
        }
        faulty.heal();
        world.region().flush().await.unwrap();
        assert_eq!((world.mob_files().await.len(), world.values().await), (1, vec![large(1)]));
    });
}

#[test]
fn the_cleaner_spares_files_that_are_young_or_read_or_foreign() {
    run(async {
        let world = World::flushed().await;
        let old = world.mob_files().await;
        // A scanner that began before the compaction reads the old files.
        let mut scanner = world.region().scanner(&Scan::default()).unwrap();
        world.compact(CompactionKind::Major).await;
        assert_eq!(world.clean().await, 0, "an old view has the references");
        let mut list = CellList::default();
        while drive(&mut scanner, &mut Limits::default(), &mut list).await.unwrap().stopped
            != Stopped::Exhausted
        {}
        assert_eq!(list.cells.len(), 3);
        drop(scanner);
        world.region().archive_retired().await;
        let young = world.region().clean_mob_files(Duration::from_secs(3600)).await.unwrap();
        assert_eq!(young, 0);
        let other = RegionInfo::new(region_info().table, "x".into(), "".into(), 5);
        let foreign = layout::mob::new_name(&other, 5, &base::testing::SeededRandom::new(9));
        world.fs.put(&root().mob_family_dir(&region_info().table, b"f").join(&foreign), b"x".to_vec());
        assert_eq!(world.clean().await, 1);
        let left = world.mob_files().await;
        assert!(left.contains(&foreign) && !left.contains(&old[0]), "{left:?}");
        assert_eq!(world.values().await.len(), 3);
    });
}

/// A store file that a compaction replaced could reappear, with its references, until it is in the
/// archive.
#[test]
fn cleaning_continues_when_a_replaced_file_could_be_archived() {
    run(async {
        let world = World::flushed().await;
        let scanner = world.region().scanner(&Scan::default()).unwrap();
        world.compact(CompactionKind::Major).await;
        // The scanner keeps the replaced file in the store.
        let crashed = world.fs.crash(&mut || 0);
        drop(scanner);
        let store = root().family_dir(&region_info(), b"f");
        let rule = Rule::new(Fault::Fail).on(Operation::Rename).at(store.as_str());
        let (world, faulty) = World::with_fault(world.env, crashed, rule).await;
        world.region().archive_retired().await;
        assert_eq!((world.mob_files().await.len(), world.clean().await), (2, 0));
        faulty.heal();
        assert!(world.region().has_archivable_files());
        world.region().archive_retired().await;
        assert_eq!((world.lists().await.len(), world.clean().await), (1, 1));
        assert!(!world.region().has_archivable_files());
        assert_eq!(world.values().await.len(), 3);
    });
}

/// A store file without a list may need any MOB file.
#[test]
fn files_from_before_mob_prevent_cleaning() {
    run(async {
        let plain = TableDescriptor::new(TableName::parse("t").unwrap())
            .with_family(FamilyDescriptor::new("f").with("VERSIONS", "3"));
        let world = World::with_table(&plain).await;
        world.put("a", 10, &large(1)).await;
        world.region().flush().await.unwrap();
        let world = world.reopened(&table_with("100"), options()).await;
        let unneeded = layout::mob::new_name(&region_info(), 5, &base::testing::SeededRandom::new(9));
        world.fs.put(&root().mob_family_dir(&region_info().table, b"f").join(&unneeded), b"x".to_vec());
        assert_eq!((world.clean().await, world.values().await), (0, vec![large(1)]));
        world.compact(CompactionKind::Major).await;
        assert_eq!((world.referenced().await.len(), world.clean().await), (1, 1));
        assert_eq!(world.values().await, [large(1)]);
    });
}

#[test]
fn tags_of_cells_are_kept_and_their_time_to_live_applies() {
    run(async {
        let world = World::new().await;
        let custom = [0, 3, 65, 1, 2];
        let cell = KeyValue::with_tags(b"a", b"f", b"q", 10, CellType::Put, &large(1), &custom);
        world.write(Mutation::put("a", vec![cell])).await;
        let ttl = tags::joined(&[], Some(1)).unwrap();
        let cell = KeyValue::with_tags(b"b", b"f", b"q", 10, CellType::Put, &large(2), &ttl);
        world.write(Mutation::put("b", vec![cell])).await;
        world.region().flush().await.unwrap();
        let list = world.scan(MobReads::default()).await.unwrap();
        let found: Vec<_> = list.cells.iter().map(|(cell, _)| cell.view(0).tags.to_vec()).collect();
        assert_eq!(found, [custom.to_vec()], "the other cell has expired");
    });
}

#[test]
fn deletes_hide_references() {
    run(async {
        let world = World::flushed().await;
        let marker = KeyValue::new(b"a", b"f", b"q", 10, CellType::DeleteColumn, b"");
        world.write(Mutation::delete("a", vec![marker])).await;
        world.region().flush().await.unwrap();
        assert_eq!(world.values().await, [SMALL.to_vec(), large(3)]);
        world.compact(CompactionKind::Major).await;
        assert_eq!(world.values().await, [SMALL.to_vec(), large(3)]);
    });
}
