//! Checks of the root directories that HBase 2.5.10 wrote, whole and damaged.

#![allow(clippy::disallowed_methods, reason = "archives of this machine")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../adoption/tests/support/mod.rs"]
#[allow(dead_code, reason = "these tests use a part of the module")]
mod support;

use std::sync::Arc;

use adoption::NoProgress;
use fs::FileSystem;
use fs::memory::MemoryFs;
use fsck::{Checked, Depth, Place, Request};
use support::Tree;

const IMAGE: &str = "rootdir-clean";

async fn check(tree: &Tree, depth: Depth) -> Checked {
    let memory = MemoryFs::new();
    support::fill(&memory, tree).await;
    let before = support::tree(&memory).await;
    let fs: Arc<dyn FileSystem> = Arc::new(memory.clone());
    let env = base::testing::env(1);
    let checked = fsck::check(&env, &fs, &support::root(), Request { depth }, &NoProgress).await.unwrap();
    assert!(support::tree(&memory).await == before, "a check changes nothing");
    checked
}

fn lines(checked: &Checked) -> Vec<String> {
    checked.problems.iter().map(ToString::to_string).collect()
}

/// The largest store file of the default namespace.
fn store_file(tree: &Tree) -> String {
    let is_store_file = |path: &&String| {
        let parts: Vec<&str> = path.split('/').collect();
        parts.len() == 6 && parts[..2] == ["data", "default"] && parts[5].len() == 32
    };
    let len = |path: &&String| tree[*path].as_ref().map_or(0, Vec::len);
    tree.keys().filter(is_store_file).max_by_key(len).unwrap().clone()
}

/// The check of an image with one change.
async fn after(depth: Depth, change: impl FnOnce(&mut Tree)) -> Vec<String> {
    let mut tree = support::unpack(IMAGE);
    change(&mut tree);
    lines(&check(&tree, depth).await)
}

#[tokio::test]
async fn directories_of_hbase_are_good() {
    for image in ["rootdir-live", IMAGE] {
        let checked = check(&support::unpack(image), Depth::Cells).await;
        assert_eq!(lines(&checked), Vec::<String>::new(), "{image}");
        let cells: u64 = checked.tables.iter().map(|table| table.cells).sum();
        assert!(checked.tables.len() > 3 && cells > 30 && checked.snapshots > 0, "{image}: {checked:?}");
    }
}

#[tokio::test]
async fn a_damaged_block_is_found_by_reading_all_cells() {
    let damage = |tree: &mut Tree| {
        let path = store_file(tree);
        // In the first data block, after its header.
        tree.get_mut(&path).unwrap().as_mut().unwrap()[60] ^= 1;
    };
    let found = after(Depth::Cells, damage).await;
    assert!(found.len() == 1 && found[0].starts_with("table "), "{found:?}");
    assert_eq!(after(Depth::Head, damage).await, Vec::<String>::new());
}

/// At both depths: the cells refer to the file, and the store file lists it.
#[tokio::test]
async fn a_missing_mob_file_is_found() {
    let is_mob_file =
        |path: &str| path.starts_with("mobdir/data/default/tmob/") && path.split('/').count() == 7;
    for depth in [Depth::Head, Depth::Cells] {
        let mut removed = String::new();
        let problems = after(depth, |tree| {
            removed = tree.keys().find(|path| is_mob_file(path)).unwrap().clone();
            tree.remove(&removed);
        })
        .await;
        let name = removed.rsplit('/').next().unwrap();
        let expected = format!("refers to MOB file {name} of table tmob, which is missing");
        assert!(
            problems.len() == 1
                && problems[0].starts_with("table tmob: ")
                && problems[0].ends_with(&expected),
            "{depth:?}: {problems:?}"
        );
    }
}

#[tokio::test]
async fn a_damaged_mob_file_is_found() {
    let problems = after(Depth::Cells, |tree| {
        let file = tree
            .iter_mut()
            .find(|(path, content)| path.starts_with("mobdir/data/default/tmob/") && content.is_some());
        let content = file.unwrap().1.as_mut().unwrap();
        // In the first block, after its header.
        content[60] ^= 1;
    })
    .await;
    assert!(problems.len() == 1 && problems[0].contains("mobdir"), "{problems:?}");
}

#[tokio::test]
async fn a_truncated_file_is_found() {
    let found = after(Depth::Head, |tree| {
        let path = store_file(tree);
        let content = tree.get_mut(&path).unwrap().as_mut().unwrap();
        content.truncate(content.len() - 1);
    })
    .await;
    assert_eq!(found.len(), 1, "{found:?}");
}

#[tokio::test]
async fn a_region_without_its_directory_and_a_directory_without_its_region_are_found() {
    let mut moved = String::new();
    let found = after(Depth::Head, |tree| {
        let path = store_file(tree);
        let region = path.rsplitn(3, '/').nth(2).unwrap().to_owned();
        moved = region.rsplit('/').next().unwrap().to_owned();
        let other = format!("{}/{}", region.rsplit_once('/').unwrap().0, "0".repeat(32));
        let inside: Vec<String> = tree
            .keys()
            .filter(|path| **path == region || path.starts_with(&format!("{region}/")))
            .cloned()
            .collect();
        for path in inside {
            let content = tree.remove(&path).unwrap();
            tree.insert(path.replacen(&region, &other, 1), content);
        }
    })
    .await;
    assert!(
        found.iter().any(|line| line.ends_with(&format!("region {moved} has no directory"))),
        "{found:?}"
    );
    let stray = format!("region {} has a directory, but no row in hbase:meta", "0".repeat(32));
    assert!(found.iter().any(|line| line.ends_with(&stray)), "{found:?}");
}

#[tokio::test]
async fn a_missing_descriptor_is_found() {
    let found = after(Depth::Head, |tree| {
        let table = store_file(tree).split('/').take(3).collect::<Vec<_>>().join("/");
        tree.retain(|path, _| !path.starts_with(&format!("{table}/.tabledesc/")));
    })
    .await;
    assert_eq!(found.len(), 1, "{found:?}");
}

#[tokio::test]
async fn files_that_a_snapshot_lacks_are_found() {
    let mut tree = support::unpack(IMAGE);
    let is_store_file = |path: &str| {
        let name = path.rsplit('/').next().unwrap();
        name.len() >= 32 && (path.starts_with("archive/data/") || path.starts_with("data/"))
    };
    tree.retain(|path, content| content.is_none() || path.contains("/hbase/") || !is_store_file(path));
    let checked = check(&tree, Depth::Head).await;
    assert!(
        checked.problems.iter().any(|problem| matches!(problem.place, Place::Snapshot(_))),
        "{checked:?}"
    );
}

#[tokio::test]
async fn a_damaged_log_is_found() {
    let mut tree = support::unpack("rootdir-live");
    let is_log = |(path, content): &(&String, &Option<Vec<u8>>)| {
        let len = content.as_ref().map_or(0, Vec::len);
        path.starts_with("WALs/") && !path.ends_with(".meta") && !path.contains("/.") && len > 4000
    };
    let log = tree.iter().find(is_log).unwrap().0.clone();
    let content = tree.get_mut(&log).unwrap().as_mut().unwrap();
    content[2000..2100].fill(0xff);
    let checked = check(&tree, Depth::Head).await;
    assert!(checked.problems.iter().any(|problem| problem.place == Place::Logs), "{checked:?}");
}

#[tokio::test]
async fn another_directory_is_no_root_directory() {
    let checked = check(&Tree::new(), Depth::Cells).await;
    assert_eq!(lines(&checked), ["directory: hbase.version is missing: this is no root directory"]);
}

/// HBase wrote these snapshots in both layouts.
#[tokio::test]
async fn snapshots_of_both_layouts_are_checked() {
    let found = |checked: &Checked| {
        let of_snapshots =
            checked.problems.iter().filter(|problem| matches!(problem.place, Place::Snapshot(_)));
        of_snapshots.map(ToString::to_string).collect::<Vec<_>>()
    };
    let mut tree = support::unpack("snapshots");
    let checked = check(&tree, Depth::Head).await;
    assert_eq!(checked.snapshots, 15);
    let lost = found(&checked);
    assert_eq!(lost.len(), 2, "{lost:?}");
    for (line, name) in lost.iter().zip(["lost", "lost_v1"]) {
        assert!(line.contains(&format!("snapshot {name}: ")) && line.contains("does not exist"), "{line}");
    }
    for name in
        ["plain/data.manifest", "plain/.snapshotinfo", "plain_v1/.tabledesc/.tableinfo.0000000001.622"]
    {
        tree.insert(format!(".hbase-snapshot/{name}"), Some(b"\xff".to_vec()));
    }
    let damaged = found(&check(&tree, Depth::Head).await);
    assert!(damaged.iter().any(|line| line.contains("snapshot plain: ")), "{damaged:?}");
    assert!(damaged.iter().any(|line| line.contains("snapshot plain_v1: ")), "{damaged:?}");
}
