//! Planned faults, and that they end as planned.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use bytes::Bytes;
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use fs::{AccessPattern, Error, FilePath, FileSystem, SyncLevel};

fn path(text: &str) -> FilePath {
    FilePath::new(text)
}

fn setup() -> (Env, MemoryFs, Faulty) {
    let env = base::testing::env(1);
    let memory = MemoryFs::new();
    let faulty = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()));
    (env, memory, faulty)
}

fn is_io<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Io { .. }))
}

#[tokio::test]
async fn the_nth_call_at_a_path_fails() {
    let (_, _, fs) = setup();
    fs.add(Rule::new(Fault::Fail).on(Operation::Create).at("wal").after(1).times(2));
    let mut outcomes = Vec::new();
    for i in 0..5 {
        fs.create(&path(&format!("data{i}")), AccessPattern::Data).await.unwrap();
        outcomes.push(is_io(fs.create(&path(&format!("wal{i}")), AccessPattern::Log).await));
    }
    assert_eq!(outcomes, [false, true, true, false, false]);
    assert_eq!((fs.calls(Operation::Create), fs.faults()), (10, 2));
    assert!(fs.stat(&path("wal1")).await.unwrap().is_none(), "nothing was done");
}

#[tokio::test]
async fn after_a_failed_sync_the_file_refuses() {
    for (fault, on_disk) in [(Fault::Fail, false), (Fault::FailAfter, true)] {
        let (_, memory, fs) = setup();
        let mut writer = fs.create(&path("f"), AccessPattern::Log).await.unwrap();
        fs.sync_dir(&FilePath::root()).await.unwrap();
        writer.append(Bytes::from_static(b"bytes")).await.unwrap();
        fs.add(Rule::new(fault).on(Operation::Sync).times(1));
        assert!(is_io(writer.sync(SyncLevel::Disk).await));
        // The disk works again; the file stays broken.
        assert!(is_io(writer.sync(SyncLevel::Disk).await));
        assert!(is_io(writer.sync(SyncLevel::Visible).await));
        assert!(is_io(writer.append(Bytes::from_static(b"more")).await));
        writer.close().await.unwrap();
        // Random value 0 drops everything unsynced.
        let image = memory.crash(&mut || 0);
        assert_eq!(image.contents(&path("f")).unwrap() == b"bytes", on_disk, "{fault:?}");
    }
}

#[tokio::test]
async fn a_full_disk_has_space_again_later() {
    let (_, memory, fs) = setup();
    fs.set_space(Some(10));
    let mut writer = fs.create(&path("f"), AccessPattern::Data).await.unwrap();
    writer.append(Bytes::from_static(b"12345678")).await.unwrap();
    let full = writer.append(Bytes::from_static(b"90123")).await;
    assert!(matches!(full, Err(Error::NoSpace { .. })), "{full:?}");
    assert_eq!(writer.len(), 8);
    writer.append(Bytes::from_static(b"90")).await.unwrap();
    assert!(matches!(fs.create(&path("g"), AccessPattern::Data).await, Err(Error::NoSpace { .. })));
    assert!(matches!(fs.make_dirs(&path("d")).await, Err(Error::NoSpace { .. })));
    fs.set_space(None);
    writer.append(Bytes::from_static(b"123")).await.unwrap();
    assert_eq!(memory.contents(&path("f")).unwrap(), b"1234567890123");
}

#[tokio::test]
async fn a_torn_append_ends_the_file() {
    let (_, memory, fs) = setup();
    let mut writer = fs.create(&path("f"), AccessPattern::Data).await.unwrap();
    fs.add(Rule::new(Fault::Tear).on(Operation::Append).after(1).times(1));
    writer.append(Bytes::from_static(b"whole ")).await.unwrap();
    assert!(is_io(writer.append(Bytes::from_static(b"torn")).await));
    assert!(is_io(writer.append(Bytes::from_static(b"later")).await));
    assert_eq!(memory.contents(&path("f")).unwrap(), b"whole to");
}

#[tokio::test]
async fn a_flipped_bit_is_not_reported() {
    let (_, memory, fs) = setup();
    memory.put(&path("f"), "sound");
    let reader = fs.open(&path("f")).await.unwrap();
    fs.add(Rule::new(Fault::Flip).on(Operation::Read).times(1));
    assert_ne!(reader.read_at(0, 5).await.unwrap(), &b"sound"[..]);
    assert_eq!(reader.read_at(0, 5).await.unwrap(), &b"sound"[..]);
    fs.add(Rule::new(Fault::Flip).on(Operation::Append).times(1));
    let mut writer = fs.create(&path("g"), AccessPattern::Data).await.unwrap();
    writer.append(Bytes::from_static(b"sound")).await.unwrap();
    assert_ne!(memory.contents(&path("g")).unwrap(), b"sound");
}

#[tokio::test(start_paused = true)]
async fn slow_and_hanging_calls() {
    let (env, memory, fs) = setup();
    memory.put(&path("f"), "x");
    fs.add(Rule::new(Fault::Delay(Duration::from_millis(300))).on(Operation::Open).times(1));
    let before = env.clock.monotonic();
    fs.open(&path("f")).await.unwrap();
    assert_eq!(env.clock.monotonic() - before, Duration::from_millis(300));
    fs.open(&path("f")).await.unwrap();
    assert_eq!(env.clock.monotonic() - before, Duration::from_millis(300));
    fs.add(Rule::new(Fault::Hang).on(Operation::Stat));
    assert!(env.timeout(Duration::from_secs(3600), fs.stat(&path("f"))).await.is_none());
    fs.heal();
    assert!(fs.stat(&path("f")).await.unwrap().is_some());
}

#[tokio::test]
async fn random_faults() {
    let (env, _, fs) = setup();
    fs.add(Rule::new(Fault::Fail).on(Operation::Stat).one_in(4, env.random.clone()));
    let mut failed = 0;
    for _ in 0..400 {
        failed += u64::from(fs.stat(&path("f")).await.is_err());
    }
    assert!((60..140).contains(&failed), "{failed} of 400");
    assert_eq!(fs.faults(), failed);
}

#[tokio::test]
async fn every_operation_can_fail() {
    let (_, memory, fs) = setup();
    memory.put(&path("d/f"), "x");
    let (file, dir) = (path("d/f"), path("d"));
    let mut writer = fs.create(&path("w"), AccessPattern::Log).await.unwrap();
    let reader = fs.open(&file).await.unwrap();
    fs.add(Rule::new(Fault::Fail));
    assert!(is_io(fs.create(&path("new"), AccessPattern::Data).await));
    assert!(is_io(fs.open(&file).await));
    assert!(is_io(fs.rename(&file, &path("d/g")).await));
    assert!(is_io(fs.delete(&file).await));
    assert!(is_io(fs.stat(&file).await));
    assert!(is_io(fs.list(&dir).await));
    assert!(is_io(fs.make_dirs(&path("e")).await));
    assert!(is_io(fs.sync_dir(&dir).await));
    assert!(is_io(fs.fence(&file).await));
    assert!(is_io(reader.read_at(0, 1).await));
    assert!(is_io(writer.append(Bytes::from_static(b"x")).await));
    assert!(is_io(writer.reserve(10).await));
    assert!(is_io(writer.sync(SyncLevel::Disk).await));
    assert!(is_io(writer.close().await));
    assert_eq!(fs.faults(), 14);
    assert_eq!(memory.contents(&file).unwrap(), b"x", "nothing was done");
}
