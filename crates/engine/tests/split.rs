//! Splits and merges as files: what the parents showed, the regions that come show, by references, by links and by files
//! of their own; and a power cut at any call leaves what can be begun again.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

mod common;

use std::sync::Arc;

use base::env::{Env, Random};
use base::testing::SeededRandom;
use bytes::Bytes;
use cell::KeyValue;
use cell::cell::CellType;
use cell::mutation::Mutation;
use cell::query::{CellSelection, Get, Scan};
use cell::region::RegionInfo;
use cell::schema::{FamilyDescriptor, TableDescriptor};
use common::model::Shown;
use common::world::{
    Regions, below, difference, open_regions, options, region_info, run, scan, shown, table,
};
use engine::region::{CompactionKind, RegionOptions, SplitOptions};
use engine::{Error, Region, split};
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use layout::RootDir;
use layout::reference::is_reference;

fn root() -> RootDir {
    RootDir::new(FilePath::root())
}

fn row(number: u64) -> String {
    format!("row{number:03}")
}

/// The two regions that a split of `parent` makes, or one over both.
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

    /// What scans of all regions show, one after the other.
    async fn scan(&self) -> Vec<Shown> {
        let mut all = Vec::new();
        for region in &self.regions {
            all.extend(scan(region).await.unwrap());
        }
        all
    }

    /// The same by reversed scans, and by gets of single rows; both must agree.
    async fn scan_otherwise(&self) -> Vec<Shown> {
        let selection = || CellSelection { max_versions: u32::MAX, ..CellSelection::default() };
        let (mut backward, mut gotten) = (Vec::new(), Vec::new());
        for region in &self.regions {
            let reversed = Scan { selection: selection(), reversed: true, ..Scan::default() };
            let list = region.scan_all(&reversed).await.unwrap();
            let mut rows: Vec<Vec<Shown>> = Vec::new();
            for (cell, _) in &list.cells {
                let shown = shown(&cell.view(0));
                match rows.last_mut() {
                    Some(row) if row[0].0 == shown.0 => row.push(shown),
                    _ => rows.push(vec![shown]),
                }
            }
            rows.reverse();
            for row in &rows {
                let row = Bytes::from(row[0].0.clone());
                let get = Get { row, selection: selection(), existence_only: false };
                let list = region.get(&get).await.unwrap();
                gotten.extend(list.cells.iter().map(|(cell, _)| shown(&cell.view(0))));
            }
            backward.extend(rows.into_iter().flatten());
        }
        assert_eq!(backward, gotten);
        backward
    }

    async fn assert_shows(&self, expected: &[Shown], when: &str) {
        let found = self.scan().await;
        assert!(found == expected, "{when}: {}", difference(&found, expected));
        let found = self.scan_otherwise().await;
        assert!(found == expected, "{when}, otherwise: {}", difference(&found, expected));
    }

    fn of(&self, row: &[u8]) -> &Arc<Region> {
        self.regions.iter().find(|region| region.info().contains(row)).unwrap()
    }
}

/// Writes random cells and markers into rows of the regions; deletes are of past timestamps, so that nothing depends on
/// when files are made.
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

async fn names(fs: &MemoryFs, info: &RegionInfo, family: &str) -> Vec<String> {
    let files = fs.list(&root().family_dir(info, family.as_bytes())).await.unwrap();
    files.into_iter().map(|file| file.name).collect()
}

/// A region with several files in each family, some of which have rows on one side of `row(50)` only.
async fn parent(env: &Env, fs: &MemoryFs, random: &dyn Random) -> (Vec<Shown>, i64) {
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
fn daughters_and_merged_regions_show_what_their_parents_showed() {
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
                regions.assert_shows(&expected, "by references").await;
                assert!(regions.regions.iter().any(|region| region.has_references()));
                write(&regions, &random, 0..100, &mut timestamp).await;
                expected = regions.scan().await;
                regions.close().await;
                let regions = opened(&env, &fs, &infos).await;
                regions.assert_shows(&expected, "reopened").await;
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
                regions.assert_shows(&expected, "compacted").await;
                parents = regions.infos();
                regions.close().await;
                opened(&env, &fs, &parents).await.assert_shows(&expected, "compacted and reopened").await;
            }
        });
    }
}
