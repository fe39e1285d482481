//! The store files of a root directory that HBase 2.5.10 wrote and closed: with references of a
//! split, links of a clone, a file list, and MOB files.

#![allow(clippy::disallowed_methods, reason = "archives of this machine")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "these tests use a part of the module")]
mod support;

use std::sync::Arc;

use adoption::file_lists::DetectedTracker;
use adoption::stored;
use cell::query::{CellSelection, Scan};
use cell::schema::TableName;
use engine::scanner::BlockLoader;
use engine::stored::StoredRegions;
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};

fn reader(fs: &MemoryFs) -> StoredRegions {
    StoredRegions {
        env: base::testing::env(1),
        fs: Arc::new(fs.clone()),
        root: support::root(),
        tracker: Arc::new(DetectedTracker),
        loader: Arc::new(BlockLoader::new(1 << 20)),
        mob: Arc::default(),
    }
}

/// All versions of all cells of a table, in the form of the expected cells.
async fn cells(stored: &StoredRegions, name: &TableName) -> Vec<String> {
    let table = stored::open(stored, name).await.unwrap();
    let mut lines = Vec::new();
    for region in &table.regions {
        let selection = CellSelection { max_versions: u32::MAX, ..CellSelection::default() };
        let list = region.scan_all(&Scan { selection, ..Scan::default() }).await.unwrap();
        lines.extend(list.cells.iter().map(|(cell, _)| support::line(name, cell)));
    }
    lines.sort();
    lines
}

#[tokio::test]
async fn store_files_of_hbase_are_read_in_place() {
    let fs = support::image("rootdir-clean").await;
    let before = support::tree(&fs).await;
    let expected = support::expected_cells();
    for name in ["ns1:t1", "t1clone", "tfile"] {
        let table = TableName::parse(name).unwrap();
        let of_table: Vec<&String> =
            expected.iter().filter(|line| line.starts_with(&format!("{name} "))).collect();
        assert!(!of_table.is_empty(), "{name}");
        let cells = cells(&reader(&fs), &table).await;
        assert_eq!(cells.iter().collect::<Vec<_>>(), of_table, "{name}");
    }
    let mob = TableName::parse("tmob").unwrap();
    let lines = cells(&reader(&fs), &mob).await;
    assert!(lines.iter().any(|line| line.ends_with(&format!(" val={}", "B".repeat(300)))), "{lines:?}");
    assert!(support::tree(&fs).await == before, "reading changes nothing");
    let missing = TableName::parse("nothing").unwrap();
    assert!(stored::open(&reader(&fs), &missing).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_unsupported_file_is_reported_without_further_attempts() {
    let fs = support::image("rootdir-clean").await;
    let is_store_file =
        |path: &str| path.contains("data/ns1/t1/") && path.rsplit('/').next().unwrap().len() == 32;
    let tree = support::tree(&fs).await;
    let (path, content) = tree
        .into_iter()
        .find_map(|(path, content)| Some((path.clone(), content.filter(|_| is_store_file(&path))?)))
        .unwrap();
    let mut content = content.to_vec();
    let version = content.len() - 4;
    content[version..].copy_from_slice(&1u32.to_be_bytes());
    fs.put(&FilePath::new(&path), content);
    let stored = reader(&fs);
    let failed = stored::open(&stored, &TableName::parse("ns1:t1").unwrap()).await.err().unwrap();
    assert!(failed.to_string().contains("HFile version 1.0"), "{failed}");
    assert!(stored.env.clock.monotonic().is_zero(), "no pause");
}

/// The cells of a snapshot of one region after the other, and its number of regions.
async fn snapshot_cells(fs: &MemoryFs, name: &str) -> (Vec<String>, usize) {
    let found = stored::snapshot(&reader(fs), name).await.unwrap();
    let mut lines = Vec::new();
    for info in &found.regions {
        let region = found.stored.open(found.table.clone(), info.clone()).await.unwrap();
        let list = region.scan_all(&Scan::default()).await.unwrap();
        lines.extend(list.cells.iter().map(|(cell, _)| support::line(&found.table.name, cell)));
    }
    (lines, found.regions.len())
}

/// The cells of the family `b` of `t1` and `tclone` have expired.
#[tokio::test]
async fn snapshots_of_both_layouts_have_the_same_rows_after_later_changes() {
    let fs = support::image("snapshots").await;
    let before = support::tree(&fs).await;
    for (name, cells, regions) in
        [("plain", 20, 2), ("disabled", 20, 2), ("split", 30, 2), ("mob", 5, 1), ("clone", 20, 2)]
    {
        let (lines, count) = snapshot_cells(&fs, name).await;
        assert_eq!((lines.len(), count), (cells, regions), "{name}");
        let tree = snapshot_cells(&fs, &format!("{name}_v1")).await;
        assert_eq!(tree, (lines.clone(), count), "{name}");
        let value = if name == "disabled" { "val=second0" } else { "val=first0" };
        assert!(
            ["split", "mob"].contains(&name) || lines.iter().any(|line| line.ends_with(value)),
            "{name}: {lines:?}"
        );
    }
    assert!(support::tree(&fs).await == before, "reading changes nothing");
    // The table and its other regions may be gone.
    fs.delete(&support::root().table_dir(&TableName::parse("tclone").unwrap())).await.unwrap();
    assert_eq!(snapshot_cells(&fs, "clone").await.0.len(), 20);
    assert!(stored::snapshot(&reader(&fs), "nothing").await.is_err());
}

#[tokio::test]
async fn edits_in_logs_are_found() {
    for (image, expected) in [("rootdir-clean", false), ("rootdir-live", true)] {
        let fs = support::image(image).await;
        let stored = reader(&fs);
        let name = TableName::parse("ns1:t1").unwrap();
        let regions = stored::regions(&stored, &name).await.unwrap();
        let table = Arc::new(stored.root.read_table_descriptor(&*stored.fs, &name).await.unwrap());
        let found = stored::regions_with_edits(&stored, &table, &regions).await.unwrap();
        assert_eq!(!found.is_empty(), expected, "{image}: {found:?}");
        // HBase splits logs into these files before it opens a region.
        let region = regions.first().unwrap();
        let split = [
            stored.root.recovered_edits_dir(region).join("0000000000000000007"),
            stored.root.region_dir(region).join("recovered.hfiles/cf1/f"),
        ];
        for path in split {
            fs.make_dirs(&path.parent()).await.unwrap();
            fs.put(&path, b"".to_vec());
            let found = stored::regions_with_edits(&stored, &table, &regions).await.unwrap();
            assert!(found.contains(region), "{image}: {path}");
            fs.delete(&path).await.unwrap();
        }
    }
}
