//! Power loss on the in-memory file system: all synced data survives, and any part of the rest.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

use std::collections::BTreeSet;

use base::env::Random;
use base::testing::SeededRandom;
use bytes::Bytes;
use fs::memory::MemoryFs;
use fs::{AccessPattern, FilePath, FileSystem, FileWriter, SyncLevel};

const SECTOR: usize = 512;

fn path(text: &str) -> FilePath {
    FilePath::new(text)
}

fn crash(fs: &MemoryFs, seed: u64) -> MemoryFs {
    let random = SeededRandom::new(seed);
    fs.crash(&mut || random.next_u64())
}

async fn create(fs: &MemoryFs, at: &str, bytes: &[u8]) -> Box<dyn FileWriter> {
    let mut writer = fs.create(&path(at), AccessPattern::Log).await.unwrap();
    writer.append(Bytes::copy_from_slice(bytes)).await.unwrap();
    writer
}

async fn create_synced(fs: &MemoryFs, at: &str, bytes: &[u8]) -> Box<dyn FileWriter> {
    let mut writer = create(fs, at, bytes).await;
    writer.sync(SyncLevel::Disk).await.unwrap();
    writer
}

/// The names in the root of many images, each as a sorted list joined by spaces.
async fn images(fs: &MemoryFs) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let found = crash(fs, seed).list(&FilePath::root()).await.unwrap();
        seen.insert(found.into_iter().map(|status| status.name).collect::<Vec<_>>().join(" "));
    }
    seen
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

#[tokio::test]
async fn synced_bytes_survive_and_unsynced_ones_are_old_or_new_by_sector() {
    for seed in 0..100 {
        let random = SeededRandom::new(seed);
        let fs = MemoryFs::new();
        let mut writer = fs.create(&path("log"), AccessPattern::Log).await.unwrap();
        fs.sync_dir(&FilePath::root()).await.unwrap();
        let (mut written, mut synced, mut writes) = (Vec::new(), 0, Vec::new());
        for step in 0..30u64 {
            match random.next_u64() % 5 {
                0 => {
                    writer.sync(SyncLevel::Disk).await.unwrap();
                    synced = written.len();
                    writes.clear();
                }
                1 => writer.sync(SyncLevel::Visible).await.unwrap(),
                2 => writer.reserve(random.next_u64() % 3000).await.unwrap(),
                _ => {
                    let piece = vec![(step + 1) as u8; (random.next_u64() % 2000) as usize];
                    writes.push(written.len()..written.len() + piece.len());
                    written.extend_from_slice(&piece);
                    writer.append(piece.into()).await.unwrap();
                }
            }
            let image = crash(&fs, seed * 1000 + step).contents(&path("log")).unwrap();
            assert!(image.len() >= synced, "seed {seed} step {step}: shorter than what was synced");
            assert_eq!(image[..synced], written[..synced], "seed {seed} step {step}");
            for write in &writes {
                check_sectors(&image, &written, write.clone());
            }
            assert!(
                image.iter().skip(written.len()).all(|byte| *byte == 0),
                "only reserved zeros after the end"
            );
        }
    }
}

/// Each sector's part of a write is either complete or missing (zeros, or after the end).
fn check_sectors(image: &[u8], written: &[u8], write: std::ops::Range<usize>) {
    let mut at = write.start;
    while at < write.end {
        let end = ((at / SECTOR + 1) * SECTOR).min(write.end);
        let found: Vec<u8> = (at..end).map(|at| image.get(at).copied().unwrap_or(0)).collect();
        let complete = found == written[at..end];
        assert!(complete || found.iter().all(|byte| *byte == 0), "torn within the sector at {at}");
        at = end;
    }
}

#[tokio::test]
async fn an_unsynced_write_survives_is_lost_or_torn() {
    let fs = MemoryFs::new();
    let mut writer = create_synced(&fs, "log", b"").await;
    fs.sync_dir(&FilePath::root()).await.unwrap();
    let bytes = vec![1; 4 * SECTOR];
    writer.append(bytes.clone().into()).await.unwrap();
    let (mut complete, mut lost, mut prefix, mut holes, mut zeros) = (0, 0, 0, 0, 0);
    for seed in 0..400 {
        let image = crash(&fs, seed).contents(&path("log")).unwrap();
        let ones = image.iter().filter(|byte| **byte == 1).count();
        match (image.len(), ones) {
            (0, _) => lost += 1,
            (_, 0) => zeros += 1,
            (_, ones) if ones == bytes.len() => complete += 1,
            (len, ones) if len == ones => prefix += 1,
            _ => holes += 1,
        }
    }
    for (what, count) in
        [("complete", complete), ("lost", lost), ("prefix", prefix), ("holes", holes), ("zeros", zeros)]
    {
        assert!(count > 4, "{what}: {count} of 400");
    }
}

#[tokio::test]
async fn a_name_is_durable_once_its_directory_is_synced() {
    let fs = MemoryFs::new();
    create_synced(&fs, "a", b"x").await;
    assert_eq!(images(&fs).await, set(["", "a"]), "the bytes are synced, but not the name");
    fs.sync_dir(&FilePath::root()).await.unwrap();
    assert_eq!(images(&fs).await, set(["a"]));
    fs.delete(&path("a")).await.unwrap();
    assert_eq!(images(&fs).await, set(["", "a"]));
    fs.sync_dir(&FilePath::root()).await.unwrap();
    assert_eq!(images(&fs).await, set([""]));
}

#[tokio::test]
async fn a_rename_happens_or_not() {
    let fs = MemoryFs::new();
    create_synced(&fs, "a", b"x").await;
    fs.sync_dir(&FilePath::root()).await.unwrap();
    fs.rename(&path("a"), &path("b")).await.unwrap();
    assert_eq!(images(&fs).await, set(["a", "b"]), "one of the names, never both or none");
    fs.rename(&path("b"), &path("c")).await.unwrap();
    assert_eq!(images(&fs).await, set(["a", "b", "c"]));
    fs.sync_dir(&FilePath::root()).await.unwrap();
    assert_eq!(images(&fs).await, set(["c"]));
}

#[tokio::test]
async fn a_later_step_of_a_name_needs_the_earlier() {
    let fs = MemoryFs::new();
    create_synced(&fs, "tmp", b"x").await;
    fs.rename(&path("tmp"), &path("done")).await.unwrap();
    assert_eq!(images(&fs).await, set(["", "tmp", "done"]));
    fs.delete(&path("done")).await.unwrap();
    create_synced(&fs, "other", b"y").await;
    let seen = images(&fs).await;
    assert_eq!(seen, set(["", "tmp", "done", "other", "other tmp", "done other"]));
}

#[tokio::test]
async fn a_rename_over_a_file_leaves_the_old_or_the_new() {
    let fs = MemoryFs::new();
    fs.put(&path("d/current"), "old");
    create_synced(&fs, "d/next", b"new").await;
    fs.rename(&path("d/next"), &path("d/current")).await.unwrap();
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        seen.insert(crash(&fs, seed).contents(&path("d/current")).unwrap());
    }
    assert_eq!(seen, [b"old".to_vec(), b"new".to_vec()].into());
}

#[tokio::test]
async fn a_rename_between_directories_is_one_step() {
    let fs = MemoryFs::new();
    fs.put(&path("tmp/f"), "x");
    fs.make_dirs(&path("store")).await.unwrap();
    fs.rename(&path("tmp/f"), &path("store/f")).await.unwrap();
    let mut moved = 0;
    for seed in 0..200 {
        let image = crash(&fs, seed);
        let (old, new) = (image.contents(&path("tmp/f")), image.contents(&path("store/f")));
        assert!(old.is_some() != new.is_some());
        moved += u64::from(new.is_some());
    }
    assert!((1..200).contains(&moved));
    // Syncing either directory syncs the whole change.
    fs.sync_dir(&path("store")).await.unwrap();
    for seed in 0..50 {
        let image = crash(&fs, seed);
        assert_eq!(image.contents(&path("tmp/f")), None);
        assert_eq!(image.contents(&path("store/f")), Some(b"x".to_vec()));
    }
}

#[tokio::test]
async fn a_synced_rename_includes_the_changes_it_needs() {
    let fs = MemoryFs::new();
    fs.make_dirs(&path("tmp")).await.unwrap();
    fs.make_dirs(&path("store")).await.unwrap();
    create_synced(&fs, "tmp/f", b"x").await;
    fs.rename(&path("tmp/f"), &path("store/f")).await.unwrap();
    fs.sync_dir(&path("store")).await.unwrap();
    for seed in 0..50 {
        let image = crash(&fs, seed);
        assert_eq!(image.contents(&path("tmp/f")), None, "the sync must include the creation");
        assert_eq!(image.contents(&path("store/f")), Some(b"x".to_vec()));
    }
}

#[tokio::test]
async fn a_tree_is_deleted_from_its_leaves() {
    let fs = MemoryFs::new();
    fs.put(&path("t/a/1"), "1");
    fs.put(&path("t/2"), "2");
    fs.delete(&path("t")).await.unwrap();
    let (mut whole, mut part, mut gone) = (0, 0, 0);
    for seed in 0..400 {
        let image = crash(&fs, seed);
        let left = [path("t/a/1"), path("t/2")].iter().filter(|at| image.contents(at).is_some()).count();
        match image.stat(&path("t")).await.unwrap() {
            None => gone += 1,
            Some(_) if left == 2 => whole += 1,
            Some(_) => part += 1,
        }
    }
    assert!(whole > 4 && part > 4 && gone > 4, "whole {whole}, part {part}, gone {gone}");
    fs.sync_dir(&FilePath::root()).await.unwrap();
    assert_eq!(images(&fs).await, set([""]), "removing the directory's name removes everything below it");
}

#[tokio::test]
async fn created_directories_are_durable_immediately() {
    let fs = MemoryFs::new();
    fs.make_dirs(&path("a/b/c")).await.unwrap();
    for seed in 0..50 {
        assert!(crash(&fs, seed).stat(&path("a/b/c")).await.unwrap().is_some());
    }
    // The name of an unsynced rename is made durable too.
    fs.rename(&path("a"), &path("z")).await.unwrap();
    fs.make_dirs(&path("z/b")).await.unwrap();
    for seed in 0..50 {
        assert!(crash(&fs, seed).stat(&path("z/b/c")).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_crash_image_is_independent() {
    let fs = MemoryFs::new();
    let mut writer = create_synced(&fs, "log", b"before").await;
    fs.sync_dir(&FilePath::root()).await.unwrap();
    let image = crash(&fs, 1);
    writer.append(Bytes::from_static(b" after")).await.unwrap();
    writer.sync(SyncLevel::Disk).await.unwrap();
    assert_eq!(fs.contents(&path("log")).unwrap(), b"before after");
    assert_eq!(image.contents(&path("log")).unwrap(), b"before");
    fs.delete(&path("log")).await.unwrap();
    for seed in 0..50 {
        assert_eq!(
            crash(&image, seed).contents(&path("log")).unwrap(),
            b"before",
            "an image is completely synced"
        );
    }
}

#[tokio::test]
async fn bytes_truncated_by_close_may_reappear() {
    let fs = MemoryFs::new();
    let mut writer = create(&fs, "log", b"body").await;
    writer.reserve(2000).await.unwrap();
    writer.sync(SyncLevel::Disk).await.unwrap();
    fs.sync_dir(&FilePath::root()).await.unwrap();
    writer.close().await.unwrap();
    let mut lens = BTreeSet::new();
    for seed in 0..100 {
        let image = crash(&fs, seed).contents(&path("log")).unwrap();
        assert_eq!(image[..4], *b"body");
        lens.insert(image.len());
    }
    assert_eq!(lens, [4, 2004].into());
}

#[tokio::test]
async fn equal_seeds_give_equal_images() {
    let fs = MemoryFs::new();
    for i in 0..20 {
        create(&fs, &format!("f{i}"), &[i; 3000]).await;
    }
    let show =
        |image: &MemoryFs| (0..20).map(|i| image.contents(&path(&format!("f{i}")))).collect::<Vec<_>>();
    assert_eq!(show(&crash(&fs, 5)), show(&crash(&fs, 5)));
    assert_ne!(show(&crash(&fs, 5)), show(&crash(&fs, 6)));
}
