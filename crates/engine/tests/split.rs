//! Splits and merges on the file level. The new regions return what their parents returned: with
//! references, with links, and with their own files. After a power loss at any call, the change can
//! be repeated.

use std::sync::Arc;

use crate::common::model::{Model, VisibleCell};
use crate::common::world::{
    Regions, below, difference, open_regions, options, region_info, run, scan, table, visible_cell,
};
use base::env::{Env, Random};
use base::testing::SeededRandom;
use bytes::Bytes;
use cell::KeyValue;
use cell::cell::CellType;
use cell::mutation::Mutation;
use cell::query::{CellSelection, Get, Scan};
use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use engine::region::{CompactionKind, RegionOptions, SplitOptions};
use engine::replay::NoEntries;
use engine::scanner::{CellList, Limits, Stopped, drive};
use engine::{Error, Opening, Region, split};
use fs::faulty::{Fault, Faulty, Plan, Rule};
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use layout::reference::is_reference;
use layout::table::LinkedFile;
use layout::{FileLink, RootDir};
use proptest::prelude::*;

fn root() -> RootDir {
    RootDir::new(FilePath::root())
}

fn row(number: u64) -> String {
    format!("row{number:03}")
}

/// The two regions that result from a split of `parent`.
fn daughters(parent: &RegionInfo, split_row: &str) -> [RegionInfo; 2] {
    let split_row = Bytes::copy_from_slice(split_row.as_bytes());
    let (start, end) = (parent.start_key.clone(), parent.end_key.clone());
    let part = |start, end| RegionInfo::new(parent.table.clone(), start, end, parent.region_id + 1);
    [part(start, split_row.clone()), part(split_row, end)]
}

fn merged(parents: &[RegionInfo]) -> RegionInfo {
    let (first, last) = (&parents[0], &parents[parents.len() - 1]);
    let id = parents.iter().map(|parent| parent.region_id).max().unwrap() + 1;
    RegionInfo::new(first.table.clone(), first.start_key.clone(), last.end_key.clone(), id)
}

async fn opened(env: &Env, fs: &MemoryFs, infos: &[RegionInfo]) -> Regions {
    open_regions(env, Arc::new(fs.clone()), options(), &table(), infos).await.unwrap()
}

impl Regions {
    fn infos(&self) -> Vec<RegionInfo> {
        self.regions.iter().map(|region| region.info().clone()).collect()
    }

    async fn close(self) {
        for region in &self.regions {
            region.close().await.unwrap();
        }
        self.log.close().await;
    }

    /// The results of scans of all regions, in sequence.
    async fn scan(&self) -> Vec<VisibleCell> {
        let mut all = Vec::new();
        for region in &self.regions {
            all.extend(scan(region).await.unwrap());
        }
        all
    }

    /// The same cells from reversed scans and from gets of single rows, which must agree.
    async fn scan_reversed_and_by_gets(&self) -> Vec<VisibleCell> {
        let selection = || CellSelection { max_versions: u32::MAX, ..CellSelection::default() };
        let (mut backward, mut gotten) = (Vec::new(), Vec::new());
        for region in &self.regions {
            let reversed = Scan { selection: selection(), reversed: true, ..Scan::default() };
            let list = region.scan_all(&reversed).await.unwrap();
            let mut rows: Vec<Vec<VisibleCell>> = Vec::new();
            for (cell, _) in &list.cells {
                let shown = visible_cell(&cell.view(0));
                match rows.last_mut() {
                    Some(row) if row[0].0 == shown.0 => row.push(shown),
                    _ => rows.push(vec![shown]),
                }
            }
            rows.reverse();
            for row in &rows {
                let row = Bytes::from(row[0].0.clone());
                let get = Get { row, selection: selection().into(), existence_only: false };
                let list = region.get(&get).await.unwrap();
                gotten.extend(list.cells.iter().map(|(cell, _)| visible_cell(&cell.view(0))));
            }
            backward.extend(rows.into_iter().flatten());
        }
        assert_eq!(backward, gotten);
        backward
    }

    /// The results of scans that lost their scanner of a parent and resume at its first write.
    async fn scan_resumed(&self) -> Vec<VisibleCell> {
        let selection = CellSelection { max_versions: u32::MAX, ..CellSelection::default() };
        let lost = Scan { selection, read_point: Some(1), ..Scan::default() };
        let mut list = CellList::default();
        for region in &self.regions {
            let mut scanner = region.resumed_scanner(&lost).unwrap();
            while drive(&mut scanner, &mut Limits::default(), &mut list).await.unwrap().stopped
                != Stopped::Exhausted
            {}
        }
        list.cells.iter().map(|(cell, _)| visible_cell(&cell.view(0))).collect()
    }

    async fn assert_returns(&self, expected: &[VisibleCell], when: &str) {
        let found = self.scan().await;
        assert!(found == expected, "{when}: {}", difference(&found, expected));
        let found = self.scan_reversed_and_by_gets().await;
        assert!(found == expected, "{when}, by other reads: {}", difference(&found, expected));
    }

    fn of(&self, row: &[u8]) -> &Arc<Region> {
        self.regions.iter().find(|region| region.info().contains(row)).unwrap()
    }

    /// Replaces a region by its two halves, as a running server does.
    async fn split(&mut self, at: usize, split_row: &str) {
        let (fs, parent) = (self.services.fs.clone(), self.regions.remove(at));
        parent.close().await.unwrap();
        let [low, high] = daughters(parent.info(), split_row);
        let table = parent.table();
        split::create_daughters(&*fs, &root(), table, parent.info(), [&low, &high]).await.unwrap();
        for (at, info) in [(at, low), (at + 1, high)] {
            self.regions.insert(at, self.open(info, table).await);
        }
    }

    /// Replaces two regions by one.
    async fn merge(&mut self, at: usize) {
        let parents: Vec<Arc<Region>> = self.regions.drain(at..at + 2).collect();
        let mut infos = Vec::new();
        for parent in &parents {
            parent.close().await.unwrap();
            infos.push(parent.info().clone());
        }
        let (fs, table, merged) = (self.services.fs.clone(), parents[0].table(), merged(&infos));
        split::create_merged(&*fs, &root(), table, &infos, &merged).await.unwrap();
        self.regions.insert(at, self.open(merged, table).await);
    }

    async fn open(&self, info: RegionInfo, table: &Arc<TableDescriptor>) -> Arc<Region> {
        let opening = Opening { info, table: table.clone(), entries: Box::new(NoEntries) };
        Region::open(self.services.clone(), opening).await.unwrap()
    }
}

/// Writes random cells and markers to rows of the regions. Deletes have past timestamps, so that
/// results do not depend on when files are written.
async fn write(regions: &Regions, random: &dyn Random, rows: std::ops::Range<u64>, timestamp: &mut i64) {
    for _ in 0..40 {
        *timestamp += 1;
        let row = Bytes::from(row(rows.start + below(random, rows.end - rows.start)));
        let cell =
            |family: &[u8], kind, value: &[u8]| KeyValue::new(&row, family, b"q", *timestamp, kind, value);
        let mutation = match below(random, 8) {
            0 => Mutation { timestamp: *timestamp, ..Mutation::delete(row.clone(), Vec::new()) },
            1 => Mutation::delete(row.clone(), vec![cell(b"g", CellType::DeleteColumn, b"")]),
            2 => Mutation::put(row.clone(), vec![cell(b"f", CellType::Put, b"only f")]),
            _ => {
                let value = timestamp.to_string().repeat(3);
                let cells = [b"f", b"g"].map(|family| cell(family, CellType::Put, value.as_bytes()));
                Mutation::put(row.clone(), cells.to_vec())
            }
        };
        regions.of(&row).batch(vec![mutation]).await.remove(0).unwrap();
    }
}

/// Names of the files of one family of a region; empty if the directory does not exist.
async fn names(fs: &MemoryFs, info: &RegionInfo, family: &str) -> Vec<String> {
    let files = fs.list(&root().family_dir(info, family.as_bytes())).await.unwrap_or_default();
    files.into_iter().map(|file| file.name).collect()
}

/// Creates a region with several files in each family. Some files have rows only on one side of
/// `row(50)`.
async fn parent(env: &Env, fs: &MemoryFs, random: &dyn Random) -> (Vec<VisibleCell>, i64) {
    root().write_region_info(fs, &region_info()).await.unwrap();
    let regions = opened(env, fs, &[region_info()]).await;
    let mut timestamp = 0;
    for rows in [0..100, 0..40, 60..100, 20..80, 50..51] {
        write(&regions, random, rows, &mut timestamp).await;
        regions.regions[0].flush().await.unwrap();
    }
    write(&regions, random, 0..100, &mut timestamp).await;
    let expected = regions.scan().await;
    regions.close().await;
    (expected, timestamp)
}

#[test]
fn daughters_and_merged_regions_return_the_cells_of_their_parents() {
    for seed in 0..20 {
        run(async {
            let (env, fs, random) = (base::testing::env(seed), MemoryFs::new(), SeededRandom::new(seed));
            let (mut expected, mut timestamp) = parent(&env, &fs, &random).await;
            let mut parents = vec![region_info()];
            let mut gone: Vec<RegionInfo> = Vec::new();
            for round in 0..4 {
                let table = table();
                let infos = if parents.len() == 1 {
                    let split_row = row(30 + below(&random, 40));
                    let [low, high] = daughters(&parents[0], &split_row);
                    split::create_daughters(&fs, &root(), &table, &parents[0], [&low, &high]).await.unwrap();
                    vec![low, high]
                } else {
                    let merged = merged(&parents);
                    split::create_merged(&fs, &root(), &table, &parents, &merged).await.unwrap();
                    vec![merged]
                };
                gone.append(&mut parents);
                let regions = opened(&env, &fs, &infos).await;
                regions.assert_returns(&expected, "with references").await;
                assert_eq!(regions.scan_resumed().await, expected, "resumed scans of a parent");
                assert!(regions.regions.iter().any(|region| region.has_references()));
                write(&regions, &random, 0..100, &mut timestamp).await;
                expected = regions.scan().await;
                regions.close().await;
                let regions = opened(&env, &fs, &infos).await;
                regions.assert_returns(&expected, "reopened").await;
                for region in &regions.regions {
                    region.flush().await.unwrap();
                    assert_eq!(region.stores_to_compact().is_empty(), !region.has_references());
                    let kind = [CompactionKind::Minor, CompactionKind::Major][round % 2];
                    region.compact(None, kind).await.unwrap();
                    assert!(!region.has_references());
                    assert!(!split::has_references(&fs, &root(), region.info()).await.unwrap());
                }
                for parent in &gone {
                    split::archive_region(&fs, &root(), parent).await.unwrap();
                }
                regions.assert_returns(&expected, "compacted").await;
                assert_eq!(regions.scan_resumed().await, expected, "resumed scans without references");
                parents = regions.infos();
                regions.close().await;
                opened(&env, &fs, &parents).await.assert_returns(&expected, "compacted and reopened").await;
            }
        });
    }
}

/// A copy of the disk.
fn copy(fs: &MemoryFs) -> MemoryFs {
    fs.crash(&mut || 0)
}

/// A change of the directory by a split or merge.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    Split,
    Merge,
    Remove,
    Archive,
}

/// A directory, and the regions before and after a change.
struct SplitScenario {
    fs: MemoryFs,
    parents: Vec<RegionInfo>,
    created: Vec<RegionInfo>,
    expected: Vec<VisibleCell>,
}

impl SplitScenario {
    /// The directory before `change`.
    async fn before(change: Change, env: &Env) -> SplitScenario {
        let (fs, random) = (MemoryFs::new(), SeededRandom::new(5));
        let (mut expected, mut timestamp) = parent(env, &fs, &random).await;
        let created = daughters(&region_info(), &row(50)).to_vec();
        let mut scenario =
            SplitScenario { fs, parents: vec![region_info()], created, expected: expected.clone() };
        if change != Change::Split {
            scenario.create(&scenario.fs).await.unwrap();
        }
        if change == Change::Merge || change == Change::Archive {
            // The daughters have their own files, from compactions and a flush.
            let regions = opened(env, &scenario.fs, &scenario.created).await;
            for region in &regions.regions {
                region.compact(None, CompactionKind::Major).await.unwrap();
            }
            write(&regions, &random, 0..100, &mut timestamp).await;
            expected = regions.scan().await;
            regions.close().await;
        }
        if change == Change::Merge {
            scenario.parents = scenario.created;
            scenario.created = vec![merged(&scenario.parents)];
        }
        SplitScenario { fs: copy(&scenario.fs), expected, ..scenario }
    }

    /// Creates the new regions.
    async fn create(&self, fs: &dyn FileSystem) -> Result<(), Error> {
        let table: TableDescriptor = table();
        match &self.created[..] {
            [low, high] => split::create_daughters(fs, &root(), &table, &self.parents[0], [low, high]).await,
            [merged] => split::create_merged(fs, &root(), &table, &self.parents, merged).await,
            _ => unreachable!("one or two regions are made"),
        }
    }

    async fn execute(&self, change: Change, fs: &dyn FileSystem) -> Result<(), Error> {
        match change {
            Change::Split | Change::Merge => self.create(fs).await,
            Change::Remove => {
                let created: Vec<&RegionInfo> = self.created.iter().collect();
                split::remove_daughters(fs, &root(), &created).await
            }
            Change::Archive => split::archive_region(fs, &root(), &self.parents[0]).await,
        }
    }

    /// The files of each new region; none if it does not exist.
    async fn files(&self, fs: &MemoryFs) -> Vec<Vec<String>> {
        let mut all = Vec::new();
        for info in &self.created {
            let mut files = Vec::new();
            for family in ["f", "g"] {
                files
                    .extend(names(fs, info, family).await.into_iter().map(|name| format!("{family}/{name}")));
            }
            let edits = fs.list(&root().recovered_edits_dir(info)).await.unwrap_or_default();
            files.extend(edits.into_iter().map(|file| file.name));
            all.push(files);
        }
        all
    }
}

/// Simulates a power loss at every call of a change. Each region is then on disk in its old or new
/// state, and repeating the change completes it.
fn fail_at_every_call(change: Change) {
    run(async {
        let env = base::testing::env(3);
        let scenario = SplitScenario::before(change, &env).await;
        let whole = {
            let fs = copy(&scenario.fs);
            scenario.execute(change, &fs).await.unwrap();
            scenario.files(&fs).await
        };
        let has_both = whole.iter().flatten().any(|name| name.contains('='))
            && whole.iter().flatten().any(|name| is_reference(name.rsplit('/').next().unwrap()));
        assert!(has_both || change != Change::Split, "{whole:?}");
        let (mut old, mut new) = (0, 0);
        for calls in 0.. {
            let inner = copy(&scenario.fs);
            let fs = Faulty::new(Arc::new(inner.clone()), Plan::new(env.clock.clone()));
            fs.add(Rule::new([Fault::Fail, Fault::FailAfter][calls as usize % 2]).after(calls));
            let done = scenario.execute(change, &fs).await.is_ok();
            for seed in 0..10 {
                let random = SeededRandom::new(seed);
                let image = inner.crash(&mut || random.next_u64());
                check_image(change, &scenario, &whole, &image, done, (&mut old, &mut new)).await;
                scenario.execute(change, &image).await.unwrap();
                assert_eq!(scenario.files(&image).await, whole, "{change:?} cut at call {calls}, repeated");
                if seed == 0 {
                    let open = if change == Change::Remove { &scenario.parents } else { &scenario.created };
                    opened(&env, &image, open)
                        .await
                        .assert_returns(&scenario.expected, "after power loss")
                        .await;
                }
            }
            if done {
                assert!(calls > 5, "{change:?} took {calls} calls");
                break;
            }
        }
        assert!(old > 0 && new >= 10, "{change:?}: {old} old, {new} new");
    });
}

async fn check_image(
    change: Change,
    scenario: &SplitScenario,
    whole: &[Vec<String>],
    image: &MemoryFs,
    done: bool,
    (old, new): (&mut u32, &mut u32),
) {
    match change {
        Change::Split | Change::Merge => {
            for (info, (found, whole)) in
                scenario.created.iter().zip(scenario.files(image).await.iter().zip(whole))
            {
                let there = root().read_region_info(image, &info.table, &info.encoded_name()).await.unwrap();
                assert!(!done || there.is_some());
                assert_eq!(found, if there.is_some() { whole } else { &[][..] });
                *(if there.is_some() { &mut *new } else { &mut *old }) += 1;
            }
        }
        Change::Remove => {
            let there = scenario.files(image).await.iter().any(|files| !files.is_empty());
            assert!(!done || !there);
            *(if there { old } else { new }) += 1;
        }
        Change::Archive => {
            let there = image.stat(&root().region_dir(&scenario.parents[0])).await.unwrap().is_some();
            assert!(!done || !there);
            *(if there { old } else { new }) += 1;
            // Links and references must resolve, wherever the files are.
            for info in &scenario.created {
                for family in [b"f", b"g"] {
                    root().list_store_files(image, info, family).await.unwrap();
                }
            }
        }
    }
}

#[test]
fn a_split_completes_or_restarts() {
    fail_at_every_call(Change::Split);
}

#[test]
fn a_merge_completes_or_restarts() {
    fail_at_every_call(Change::Merge);
}

#[test]
fn an_abandoned_split_leaves_the_parent() {
    fail_at_every_call(Change::Remove);
}

#[test]
fn a_parent_is_archived() {
    fail_at_every_call(Change::Archive);
}

#[test]
fn regions_with_references_or_recovered_edits_are_not_split() {
    run(async {
        let env = base::testing::env(3);
        let scenario = SplitScenario::before(Change::Remove, &env).await;
        let [low, high] = daughters(&scenario.created[0], &row(20));
        let refused =
            split::create_daughters(&scenario.fs, &root(), &table(), &scenario.created[0], [&low, &high])
                .await;
        assert!(
            matches!(&refused, Err(Error::Unsupported { what }) if what.contains("references")),
            "{refused:?}"
        );
        let edits = root().recovered_edits_dir(&scenario.parents[0]).join("0000000000000000012");
        scenario.fs.put(&edits, "edits");
        let refused = scenario.create(&scenario.fs).await;
        assert!(
            matches!(&refused, Err(Error::Unsupported { what }) if what.contains("edits")),
            "{refused:?}"
        );
    });
}

/// For each file in the table's archive, whether a region needs it through a link.
async fn archived(fs: &MemoryFs) -> Vec<bool> {
    let mut linked = Vec::new();
    for family in ["f", "g"] {
        let dir = root().archive_family_dir(&region_info(), family.as_bytes());
        for file in fs.list(&dir).await.unwrap().iter().filter(|file| !file.is_dir) {
            linked.push(root().is_linked(fs, &dir.join(&file.name)).await.unwrap());
        }
    }
    linked
}

#[test]
fn a_clone_of_daughters_has_their_rows_after_all_else_is_removed() {
    run(async {
        let env = base::testing::env(3);
        let SplitScenario { fs, created, expected, .. } = SplitScenario::before(Change::Remove, &env).await;
        // A clone of what a snapshot of the daughters would name.
        let name = TableName::parse("ns:clone").unwrap();
        let renamed = |info: &RegionInfo| {
            RegionInfo::new(name.clone(), info.start_key.clone(), info.end_key.clone(), info.region_id)
        };
        let mut links = Vec::new();
        for (info, family) in created.iter().flat_map(|info| [(info, "f"), (info, "g")]) {
            for file in root().list_store_files(&fs, info, family.as_bytes()).await.unwrap() {
                let link = FileLink::to(info, family.as_bytes(), file.path.name()).unwrap();
                let parent = renamed(&region_info()).encoded_name();
                let reference = file.reference.map(|reference| (reference, parent));
                links.push(LinkedFile { region: renamed(info), family: family.into(), link, reference });
            }
        }
        let clones: Vec<RegionInfo> = created.iter().map(renamed).collect();
        let table = TableDescriptor { name: name.clone(), ..table() };
        root().clone_table(&fs, &table, &clones, &links).await.unwrap();
        root().archive_table(&fs, &region_info().table).await.unwrap();
        assert_eq!(archived(&fs).await, [true; 12], "the clone needs all six files of each family");
        let open =
            async || open_regions(&env, Arc::new(fs.clone()), options(), &table, &clones).await.unwrap();
        let regions = open().await;
        regions.assert_returns(&expected, "cloned").await;
        for region in &regions.regions {
            assert!(region.has_references());
            region.compact(None, CompactionKind::Minor).await.unwrap();
        }
        regions.close().await;
        assert_eq!(archived(&fs).await, [false; 12]);
        open().await.assert_returns(&expected, "with files of its own").await;
    });
}

/// Sequence ids, names, and cell counts are HBase's.
#[test]
fn references_are_named_and_counted_as_in_hbase() {
    run(async {
        let env = base::testing::env(3);
        let scenario = SplitScenario::before(Change::Split, &env).await;
        let ids = |regions: &Regions| -> Vec<u64> {
            regions.regions.iter().map(|region| region.metrics().stores[0].file_seq_id).collect()
        };
        let before = opened(&env, &copy(&scenario.fs), &scenario.parents).await;
        let (parent_ids, cells) = (ids(&before), before.regions[0].metrics().stores[0].file_cells);
        scenario.create(&scenario.fs).await.unwrap();
        let max_seq_id = root().read_max_seq_id(&scenario.fs, &scenario.parents[0]).await.unwrap();
        let after = opened(&env, &scenario.fs, &scenario.created).await;
        assert_eq!(ids(&after), [parent_ids[0], parent_ids[0] + 1], "one more in the upper half");
        let counted: u64 = after.regions.iter().map(|region| region.metrics().stores[0].file_cells).sum();
        assert!(counted < cells + cells / 10, "{counted} of {cells}: each half counts half");
        for region in &after.regions {
            assert_eq!(region.open_seq_id(), max_seq_id + 1);
        }
        let parent_name = scenario.parents[0].encoded_name();
        for name in names(&scenario.fs, &scenario.created[0], "f").await {
            let is_link = name.starts_with(&format!("t={parent_name}-"));
            assert!(is_link || name.ends_with(&format!(".{parent_name}")), "{name}");
        }
    });
}

#[test]
fn a_region_is_split_in_the_middle_of_its_largest_file() {
    run(async {
        let fs = MemoryFs::new();
        let env = base::testing::env(3);
        root().write_region_info(&fs, &region_info()).await.unwrap();
        let mut table = table();
        table.families.get_mut(&b"f"[..]).unwrap().attributes.insert("BLOCKSIZE".into(), "100".into());
        let split =
            SplitOptions { file_bytes_max: 1 << 20, initial_bytes: Some(6000), ..SplitOptions::default() };
        let options = RegionOptions { split, ..options() };
        let regions =
            open_regions(&env, Arc::new(fs.clone()), options, &table, &[region_info()]).await.unwrap();
        let region = &regions.regions[0];
        let put = async |row: String| {
            let cell = KeyValue::new(row.as_bytes(), b"f", b"q", 1, CellType::Put, &[b'v'; 20]);
            region.batch(vec![Mutation::put(row, vec![cell])]).await.remove(0).unwrap();
        };
        assert_eq!(region.split_point().await.unwrap(), None, "no file");
        put(row(0)).await;
        region.flush().await.unwrap();
        assert_eq!(region.split_point().await.unwrap(), None, "one row");
        assert!(!region.should_split(1));
        for number in 0..100 {
            put(row(number)).await;
        }
        assert_eq!(region.split_point().await.unwrap(), None, "files count, not memory");
        region.flush().await.unwrap();
        let middle = region.split_point().await.unwrap().unwrap();
        assert!(middle[..] > b"row040"[..] && middle[..] < b"row060"[..], "{middle:?}");
        assert!(region.should_split(1) && !region.should_split(2));
        assert!(region.is_splittable() && region.is_mergeable());
        region.close().await.unwrap();
        assert!(!region.should_split(1) && !region.is_splittable(), "closed");
    });
}

/// Both daughters use the cached blocks of their parent.
#[test]
fn daughters_find_the_blocks_of_their_parent_in_the_cache() {
    run(async {
        let (env, fs, random) = (base::testing::env(9), MemoryFs::new(), SeededRandom::new(9));
        parent(&env, &fs, &random).await;
        let mut regions = opened(&env, &fs, &[region_info()]).await;
        let expected = regions.scan().await;
        regions.split(0, &row(50)).await;
        let loads = regions.services.loader.stats().loads;
        assert!(loads > 0);
        assert!(regions.scan().await == expected);
        assert_eq!(regions.services.loader.stats().loads, loads, "all blocks were cached");
        // Blocks evicted by one daughter are read again for the other.
        regions.regions[0].compact(None, CompactionKind::Major).await.unwrap();
        assert!(regions.scan().await == expected);
        assert!(regions.services.loader.stats().loads > loads);
    });
}

const FAMILIES: [&[u8]; 2] = [b"f", b"g"];
const ROWS: [&str; 6] = ["a", "b", "b\0", "c", "d", "e"];

#[derive(Clone, Debug)]
enum Step {
    Write { row: usize, family: usize, qualifier: &'static str, timestamp: i64, kind: CellType },
    Flush,
    Compact,
    Split(usize),
    Merge(usize),
    Reopen { clean: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![
        6 => Just(CellType::Put),
        1 => Just(CellType::Delete),
        1 => Just(CellType::DeleteColumn),
        1 => Just(CellType::DeleteFamily),
        1 => Just(CellType::DeleteFamilyVersion),
    ];
    let qualifier = prop_oneof![Just(""), Just("q")];
    prop_oneof![
        12 => (0..ROWS.len(), 0..FAMILIES.len(), qualifier, 1..6i64, kind).prop_map(
            |(row, family, qualifier, timestamp, kind)| Step::Write { row, family, qualifier, timestamp, kind }
        ),
        3 => Just(Step::Flush),
        2 => Just(Step::Compact),
        2 => (1..ROWS.len()).prop_map(Step::Split),
        2 => any::<usize>().prop_map(Step::Merge),
        1 => any::<bool>().prop_map(|clean| Step::Reopen { clean }),
    ]
}

/// Regions and their models.
struct RegionsWithModels {
    env: Env,
    fs: MemoryFs,
    regions: Regions,
    models: Vec<Model>,
}

impl RegionsWithModels {
    async fn new() -> RegionsWithModels {
        let (env, fs) = (base::testing::env(1), MemoryFs::new());
        root().write_region_info(&fs, &region_info()).await.unwrap();
        let regions = opened(&env, &fs, &[region_info()]).await;
        RegionsWithModels { env, fs, regions, models: vec![Model::new(&table())] }
    }

    async fn apply(&mut self, step: &Step) {
        match step {
            Step::Write { row, family, qualifier, timestamp, kind } => {
                let row = ROWS[*row].as_bytes();
                let at = self.at(row);
                let of_family = matches!(kind, CellType::DeleteFamily | CellType::DeleteFamilyVersion);
                let qualifier = if of_family { "" } else { qualifier };
                let value = if *kind == CellType::Put { format!("{timestamp}") } else { String::new() };
                let qualifier = qualifier.as_bytes();
                let cell =
                    KeyValue::new(row, FAMILIES[*family], qualifier, *timestamp, *kind, value.as_bytes());
                let mutation = match kind {
                    CellType::Put => Mutation::put(row.to_vec(), vec![cell]),
                    _ => Mutation::delete(row.to_vec(), vec![cell]),
                };
                self.models[at].apply(std::slice::from_ref(&mutation), 100);
                self.regions.regions[at].batch(vec![mutation]).await.remove(0).unwrap();
            }
            Step::Flush => {
                for region in &self.regions.regions {
                    region.flush().await.unwrap();
                }
                self.models.iter_mut().for_each(Model::flush);
            }
            Step::Compact => {
                for (region, model) in self.regions.regions.iter().zip(&mut self.models) {
                    region.compact(None, CompactionKind::Major).await.unwrap();
                    (0..FAMILIES.len()).for_each(|family| model.compact(family, true));
                }
            }
            Step::Split(row) => self.split(ROWS[*row]).await,
            Step::Merge(at) => self.merge(*at).await,
            Step::Reopen { clean } => self.reopen(*clean).await,
        }
    }

    fn at(&self, row: &[u8]) -> usize {
        self.regions.regions.iter().position(|region| region.info().contains(row)).unwrap()
    }

    /// As in HBase, a region with references is not split, and no region is split at its start key.
    async fn split(&mut self, row: &str) {
        let at = self.at(row.as_bytes());
        let region = &self.regions.regions[at];
        if !region.is_splittable() || region.info().start_key == row {
            return;
        }
        self.regions.split(at, row).await;
        let mut parent = self.models.remove(at);
        parent.flush();
        self.models.insert(at, parent.part(|of| of < row.as_bytes()));
        self.models.insert(at + 1, parent.part(|of| of >= row.as_bytes()));
    }

    async fn merge(&mut self, at: usize) {
        let regions = &self.regions.regions;
        if regions.len() < 2 {
            return;
        }
        let at = at % (regions.len() - 1);
        if !regions[at..at + 2].iter().all(|region| region.is_mergeable()) {
            return;
        }
        self.regions.merge(at).await;
        let mut models: Vec<Model> = self.models.drain(at..at + 2).collect();
        models.iter_mut().for_each(Model::flush);
        let high = models.pop().unwrap();
        self.models.insert(at, models.pop().unwrap().merged(high));
    }

    async fn reopen(&mut self, clean: bool) {
        let infos = self.regions.infos();
        for (region, model) in self.regions.regions.iter().zip(&mut self.models) {
            match clean {
                true => {
                    region.close().await.unwrap();
                    model.flush();
                }
                false => region.abandon(),
            }
        }
        self.regions.log.close().await;
        self.regions = opened(&self.env, &self.fs, &infos).await;
    }

    async fn check(&self, step: &Step) {
        let expected: Vec<VisibleCell> = self.models.iter().flat_map(Model::scan).collect();
        self.regions.assert_returns(&expected, &format!("after {step:?}")).await;
        for (region, model) in self.regions.regions.iter().zip(&self.models) {
            let files: Vec<usize> = region.metrics().stores.iter().map(|store| store.files).collect();
            let counts: Vec<usize> = (0..FAMILIES.len()).map(|family| model.file_count(family)).collect();
            assert_eq!(files, counts, "files of {} after {step:?}", region.name());
        }
    }
}

/// Maximum number of steps in one program.
const STEPS_OF_PROGRAM: usize = 50;

/// Number of programs, from the number of steps in `GRAMPUS_MODEL_STEPS`, as in the model test of a
/// single region.
fn cases() -> u32 {
    let steps = std::env::var("GRAMPUS_MODEL_STEPS").ok().and_then(|text| text.parse::<u32>().ok());
    steps.unwrap_or(2500).div_ceil(STEPS_OF_PROGRAM as u32 / 2)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn split_and_merged_regions_agree_with_the_model(steps in prop::collection::vec(step(), 1..STEPS_OF_PROGRAM)) {
        run(async {
            let mut regions = RegionsWithModels::new().await;
            for step in &steps {
                regions.apply(step).await;
                regions.check(step).await;
            }
        });
    }
}
