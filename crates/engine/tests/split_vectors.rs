//! A table that HBase 2.5.10 split at `rowm`, compacted, wrote to, and merged. Its references are
//! read as HBase reads them. The same split and merge made here produce the same files, byte for
//! byte.
//!
//! `vectors/split/split` has what HBase made of the parent, `merged` has all regions at the end.
//! Both have the cells that an HBase client scanned (`getCellKeyAsString`, value).

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // A panic is how a test fails; vectors are read from disk.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::common::model::VisibleCell;
use crate::common::world::{open_regions, options, run, scan};
use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use engine::region::CompactionKind;
use engine::split;
use fs::FilePath;
use fs::FileSystem;
use fs::memory::MemoryFs;
use layout::RootDir;

const PARENT: &str = "40ff33db2bd51840ceb53665046e6904";
const LOW: &str = "f1827298eba35b46fe8b32a2262201a7";
const HIGH: &str = "4dd015e1780380f09b5323af830dec53";
const MERGED: &str = "5b1663f20057f7bab251e06b8398c43c";

type Files = BTreeMap<String, Vec<u8>>;

/// The files of a vector below `data` and `archive`, by path.
fn vector(name: &str) -> Files {
    fn walk(dir: &Path, prefix: &str, files: &mut Files) {
        for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let path = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            match entry.file_type().unwrap().is_dir() {
                true => walk(&entry.path(), &format!("{path}/"), files),
                false => drop(files.insert(path, std::fs::read(entry.path()).unwrap())),
            }
        }
    }
    let mut files = Files::new();
    walk(&directory(name), "", &mut files);
    files.retain(|path, _| path.starts_with("data/") || path.starts_with("archive/"));
    files
}

fn directory(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/split").join(name)
}

/// The cells that HBase returned.
fn cells(name: &str) -> Vec<VisibleCell> {
    let text = std::fs::read_to_string(directory(name).join("cells.txt")).unwrap();
    let cell = |line: &str| {
        let (key, value) = line.split_once(' ').unwrap();
        let parts: Vec<&str> = key.split(['/', ':']).collect();
        let bytes = |at: usize| parts[at].as_bytes().to_vec();
        (bytes(0), bytes(1), bytes(2), parts[3].parse().unwrap(), value.as_bytes().to_vec())
    };
    text.lines().map(cell).collect()
}

/// The files of some regions and of their table.
fn of_regions(files: &Files, regions: &[&str]) -> Files {
    let is_wanted =
        |path: &str| path.contains(".tableinfo") || regions.iter().any(|region| path.contains(region));
    files
        .iter()
        .filter(|(path, _)| is_wanted(path))
        .map(|(path, bytes)| (path.clone(), bytes.clone()))
        .collect()
}

fn disk(files: &Files) -> MemoryFs {
    let fs = MemoryFs::new();
    files.iter().for_each(|(path, bytes)| fs.put(&FilePath::new(path), bytes.clone()));
    fs
}

/// All files of a disk, by path.
async fn listed(fs: &MemoryFs) -> Files {
    let (mut files, mut dirs) = (Files::new(), vec![FilePath::root()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs.list(&dir).await.unwrap_or_default() {
            let path = dir.join(&entry.name);
            match entry.is_dir {
                true => dirs.push(path),
                false => drop(files.insert(path.to_string(), fs.contents(&path).unwrap())),
            }
        }
    }
    files
}

fn root() -> RootDir {
    RootDir::new(FilePath::root())
}

fn table_name() -> TableName {
    TableName::parse("t").unwrap()
}

async fn table(fs: &MemoryFs) -> TableDescriptor {
    root().read_table_descriptor(fs, &table_name()).await.unwrap()
}

async fn info(fs: &MemoryFs, encoded: &str) -> RegionInfo {
    root().read_region_info(fs, &table_name(), encoded).await.unwrap().unwrap()
}

/// Opens regions of a disk and checks their cells, first with references, then compacted into their
/// own files.
async fn check_cells(fs: &MemoryFs, regions: &[&str], expected: &[VisibleCell]) {
    let (env, table) = (base::testing::env(1), table(fs).await);
    let mut infos = Vec::new();
    for region in regions {
        infos.push(info(fs, region).await);
    }
    let opened = open_regions(&env, Arc::new(fs.clone()), options(), &table, &infos).await.unwrap();
    for compacted in [false, true] {
        let mut found = Vec::new();
        for region in &opened.regions {
            if compacted {
                region.compact(None, CompactionKind::Minor).await.unwrap();
            }
            assert_eq!(region.has_references(), !compacted);
            found.extend(scan(region).await.unwrap());
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn daughters_that_hbase_made_are_read() {
    run(async {
        let mut files = of_regions(&vector("merged"), &[PARENT]);
        files.extend(vector("split"));
        check_cells(&disk(&files), &[LOW, HIGH], &cells("split")).await;
    });
}

#[test]
fn a_region_that_hbase_merged_is_read() {
    run(async { check_cells(&disk(&vector("merged")), &[MERGED], &cells("merged")).await });
}

#[test]
fn a_split_leaves_the_files_that_it_leaves_in_hbase() {
    run(async {
        let (hbases, before) = (vector("split"), of_regions(&vector("merged"), &[PARENT]));
        let theirs = disk(&hbases);
        let (low, high) = (info(&theirs, LOW).await, info(&theirs, HIGH).await);
        let fs = disk(&before);
        let (parent, table) = (info(&fs, PARENT).await, table(&fs).await);
        split::create_daughters(&fs, &root(), &table, &parent, [&low, &high]).await.unwrap();
        let mut made = listed(&fs).await;
        made.retain(|path, _| !before.contains_key(path));
        assert_eq!(made, hbases);
        check_cells(&fs, &[LOW, HIGH], &cells("split")).await;
    });
}

#[test]
fn a_merge_leaves_the_files_that_it_leaves_in_hbase() {
    run(async {
        let all = vector("merged");
        let before = of_regions(&all, &[LOW, HIGH]);
        let before: Files = before.into_iter().filter(|(path, _)| !path.contains(MERGED)).collect();
        let theirs = disk(&all);
        let merged = info(&theirs, MERGED).await;
        let fs = disk(&before);
        let (parents, table) = ([info(&fs, LOW).await, info(&fs, HIGH).await], table(&fs).await);
        split::create_merged(&fs, &root(), &table, &parents, &merged).await.unwrap();
        let mut made = listed(&fs).await;
        made.retain(|path, _| !before.contains_key(path));
        let hbases: Files =
            all.into_iter().filter(|(path, _)| path.contains(&format!("/{MERGED}/"))).collect();
        assert_eq!(made, hbases);
    });
}
