//! Behavior specific to real directories: roots, locks, links, names that are not UTF-8.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

mod support;

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use base::env::Random;
use base::pool::Pool;
use base::testing::SeededRandom;
use bytes::Bytes;
use fs::local::LocalFs;
use fs::{AccessPattern, Error, FilePath, FileSystem, SyncLevel};
use support::TempDir;

fn path(text: &str) -> FilePath {
    FilePath::new(text)
}

fn pool() -> Arc<Pool> {
    Arc::new(Pool::new("fs", 2))
}

#[tokio::test]
async fn a_root_must_exist_or_be_created() {
    let dir = TempDir::new("root");
    let root = dir.path().join("a/b");
    assert!(matches!(LocalFs::new(&root, pool()), Err(Error::NotFound { .. })));
    let fs = LocalFs::create(&root, pool()).unwrap();
    fs.make_dirs(&path("c")).await.unwrap();
    assert!(root.join("c").is_dir());
    assert!(LocalFs::create(&root, pool()).is_ok(), "an existing root is not an error");
    assert!(LocalFs::new(&root, pool()).is_ok());
    // A file is not a root.
    fs.create(&path("f"), AccessPattern::Data).await.unwrap();
    assert!(matches!(LocalFs::new(&root.join("f"), pool()), Err(Error::NotFound { .. })));
    assert!(LocalFs::create(&root.join("f/g"), pool()).is_err());
}

#[tokio::test]
async fn one_lock_at_a_time() {
    let dir = TempDir::new("lock");
    let (one, other) = (dir.fs(), dir.fs());
    let at = path("in-use.lock");
    let held = one.lock(&at).unwrap();
    assert!(matches!(other.lock(&at), Err(Error::Locked { .. })));
    drop(held);
    other.lock(&at).unwrap();
}

#[tokio::test]
async fn delete_does_not_follow_links() {
    let dir = TempDir::new("links");
    let fs = dir.fs();
    fs.make_dirs(&path("outside")).await.unwrap();
    fs.create(&path("outside/kept"), AccessPattern::Data).await.unwrap();
    fs.make_dirs(&path("tree/sub")).await.unwrap();
    std::os::unix::fs::symlink(dir.path().join("outside"), dir.path().join("tree/sub/link")).unwrap();
    std::os::unix::fs::symlink("nowhere", dir.path().join("tree/dangling")).unwrap();
    let names: Vec<_> = fs.list(&path("tree")).await.unwrap().into_iter().map(|status| status.name).collect();
    assert_eq!(names, ["dangling", "sub"], "a file on a missing disk is not left out");
    fs.delete(&path("tree")).await.unwrap();
    assert!(fs.stat(&path("tree")).await.unwrap().is_none());
    assert!(fs.stat(&path("outside/kept")).await.unwrap().is_some());
}

#[tokio::test]
async fn a_link_is_the_file_that_it_refers_to() {
    let (dir, disk) = (TempDir::new("linking"), TempDir::new("linked"));
    let (fs, other) = (dir.fs(), disk.fs());
    let mut writer = other.create(&path("f.1"), AccessPattern::Data).await.unwrap();
    writer.append(Bytes::from_static(b"bytes")).await.unwrap();
    let target = disk.path().join("f.1").to_str().unwrap().to_owned();
    fs.link(&path("f"), &target).await.unwrap();
    assert!(matches!(fs.link(&path("f"), &target).await, Err(Error::AlreadyExists { .. })));
    assert!(matches!(fs.create(&path("f"), AccessPattern::Data).await, Err(Error::AlreadyExists { .. })));

    fs.rename(&path("f"), &path("g")).await.unwrap();
    let status = fs.stat(&path("g")).await.unwrap().unwrap();
    assert_eq!((status.len, status.link.as_deref()), (5, Some(target.as_str())));
    assert_eq!(fs.list(&path("")).await.unwrap(), [status]);
    assert_eq!(fs.open(&path("g")).await.unwrap().read_at(0, 5).await.unwrap(), "bytes");

    other.delete(&path("f.1")).await.unwrap();
    let status = fs.stat(&path("g")).await.unwrap().unwrap();
    assert_eq!((status.len, status.link.as_deref()), (0, Some(target.as_str())));
    assert!(matches!(fs.open(&path("g")).await, Err(Error::NotFound { .. })));
}

#[tokio::test]
async fn a_name_that_is_not_utf8_is_listed_and_deleted_with_its_tree() {
    let dir = TempDir::new("names");
    let fs = dir.fs();
    fs.make_dirs(&path("d")).await.unwrap();
    let odd = dir.path().join("d").join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    std::fs::create_dir(odd).unwrap();
    assert_eq!(fs.list(&path("d")).await.unwrap()[0].name, "odd\u{fffd}");
    fs.delete(&path("d")).await.unwrap();
    assert!(fs.stat(&path("d")).await.unwrap().is_none());
}

#[tokio::test]
async fn a_file_truncated_by_another_program_ends_early() {
    let dir = TempDir::new("cut");
    let fs = dir.fs();
    let mut writer = fs.create(&path("f"), AccessPattern::Data).await.unwrap();
    writer.append(Bytes::from(vec![1; 10_000])).await.unwrap();
    let reader = fs.open(&path("f")).await.unwrap();
    std::fs::OpenOptions::new().write(true).open(dir.path().join("f")).unwrap().set_len(100).unwrap();
    assert!(matches!(reader.read_at(0, 10_000).await, Err(Error::PastEnd { .. })));
    assert_eq!(reader.read_at(0, 100).await.unwrap().len(), 100);
}

#[tokio::test]
async fn any_part_of_a_file_is_read_with_direct_io() {
    let dir = TempDir::new("direct");
    let fs = LocalFs::new(dir.path(), Arc::new(Pool::new("fs", 2))).unwrap().with_direct_io();
    for file_len in [0, 1, 4096, 20_000] {
        let bytes: Vec<u8> = (0..file_len).map(|at| (at % 251) as u8).collect();
        let file = path(&format!("f{file_len}"));
        let mut writer = fs.create(&file, AccessPattern::Data).await.unwrap();
        writer.append(Bytes::from(bytes.clone())).await.unwrap();
        // Not synced: a direct reader sees unsynced bytes like any other reader.
        writer.close().await.unwrap();
        let reader = fs.open_uncached(&file).await.unwrap();
        assert_eq!(reader.len(), file_len as u64);
        for offset in [0, 1, 511, 4095, 4096, 4097, 12_345, 19_999, 20_000] {
            for len in [0, 1, 4095, 4096, 8191, 12_288, 20_000] {
                let read = reader.read_at(offset as u64, len).await;
                match bytes.get(offset..offset + len) {
                    Some(expected) => assert_eq!(read.unwrap(), expected, "{len} bytes at {offset}"),
                    None => assert!(matches!(read, Err(Error::PastEnd { .. })), "{len} bytes at {offset}"),
                }
            }
        }
    }
    assert!(
        fs.open_uncached(&path("none")).await.is_err_and(|error| matches!(error, Error::NotFound { .. }))
    );
    fs.make_dirs(&path("d")).await.unwrap();
    assert!(fs.open_uncached(&path("d")).await.is_err());
}

#[tokio::test]
async fn a_file_truncated_by_another_program_ends_early_with_direct_io() {
    let dir = TempDir::new("direct-cut");
    let fs = LocalFs::new(dir.path(), Arc::new(Pool::new("fs", 2))).unwrap().with_direct_io();
    let mut writer = fs.create(&path("f"), AccessPattern::Data).await.unwrap();
    writer.append(Bytes::from(vec![1; 10_000])).await.unwrap();
    let reader = fs.open_uncached(&path("f")).await.unwrap();
    std::fs::OpenOptions::new().write(true).open(dir.path().join("f")).unwrap().set_len(100).unwrap();
    assert!(matches!(reader.read_at(0, 10_000).await, Err(Error::PastEnd { .. })));
    assert_eq!(reader.read_at(10, 90).await.unwrap().len(), 90);
}

/// Synced appends use direct I/O where bytes are reserved, others do not; the file must be the same
/// either way.
// Reads the file's bytes on disk directly, without the file system under test.
#[allow(clippy::disallowed_methods)]
#[tokio::test]
async fn a_log_has_the_appended_bytes_with_and_without_direct_io() {
    let dir = TempDir::new("log");
    let fs = dir.fs();
    for seed in 0..6 {
        let random = SeededRandom::new(seed);
        let below = |limit: u64| random.next_u64() % limit;
        let file = path(&format!("log{seed}"));
        let mut writer = fs.create(&file, AccessPattern::Log).await.unwrap();
        let mut expected = Vec::new();
        for step in 0..100_u64 {
            if below(4) == 0 {
                writer.reserve(below(300_000)).await.unwrap();
            }
            let len = [below(200), below(5000), 4096, below(100_000)][below(4) as usize] as usize;
            let bytes: Vec<u8> = (0..len).map(|at| (at as u64 * 31 + step) as u8 | 1).collect();
            let mark = vec![0xee; below(40) as usize];
            let appended = Bytes::from([&bytes[..], &mark[..]].concat());
            match below(4) {
                0 => writer.append_with_end(appended, len).await.unwrap(),
                1 => writer.append(Bytes::from(bytes.clone())).await.unwrap(),
                2 => writer.append_and_sync(appended, len, SyncLevel::Visible).await.unwrap(),
                _ => writer.append_and_sync(appended, len, SyncLevel::Disk).await.unwrap(),
            }
            expected.extend_from_slice(&bytes);
            assert_eq!(writer.len(), expected.len() as u64);
            let read = std::fs::read(dir.path().join(format!("log{seed}"))).unwrap();
            assert!(read.starts_with(&expected), "seed {seed}, step {step}, {len} bytes");
        }
        writer.close().await.unwrap();
        let read = std::fs::read(dir.path().join(format!("log{seed}"))).unwrap();
        assert!(read == expected, "seed {seed}");
    }
}

#[tokio::test]
async fn a_cancelled_call_breaks_the_writer() {
    let dir = TempDir::new("given-up");
    let pool = Arc::new(Pool::new("fs", 1));
    let fs = LocalFs::new(dir.path(), pool.clone()).unwrap();
    let mut writer = fs.create(&path("f"), AccessPattern::Data).await.unwrap();
    // The only thread is busy, so the append cannot complete before it is dropped.
    let (release, wait) = std::sync::mpsc::channel::<()>();
    pool.execute(move || wait.recv().unwrap());
    {
        let mut append = writer.append(Bytes::from_static(b"x"));
        let polled =
            std::future::poll_fn(|context| std::task::Poll::Ready(append.as_mut().poll(context).is_ready()));
        assert!(!polled.await);
    }
    release.send(()).unwrap();
    let error = writer.append(Bytes::from_static(b"y")).await.unwrap_err();
    assert!(error.to_string().contains("cancelled"), "{error}");
}

#[tokio::test]
async fn times_are_of_this_age() {
    let dir = TempDir::new("times");
    let fs = dir.fs();
    fs.create(&path("f"), AccessPattern::Data).await.unwrap();
    let modified_ms = fs.stat(&path("f")).await.unwrap().unwrap().modified_ms;
    let age = dir.path().join("f").metadata().unwrap().modified().unwrap();
    let expected = age.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    assert_eq!(modified_ms, expected);
}
