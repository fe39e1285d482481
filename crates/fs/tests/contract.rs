//! The contract of `FileSystem`. Each test runs on all implementations: a local directory and
//! memory (plain, wrapped in an idle `Faulty`, wrapped in `Measured`, `PacedFs` or `ScheduledFs`).

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

mod support;

use std::sync::Arc;

use bytes::Bytes;
use fs::{AccessPattern, Error, Fence, FilePath, FileSystem, FileWriter, SyncLevel};
use support::TempDir;

/// Runs a check on each implementation; the directory lives until the check ends.
macro_rules! contract {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(mod $name {
            #[tokio::test]
            async fn local() {
                let dir = super::TempDir::new(concat!("contract-", stringify!($name)));
                super::checks::$name(dir.fs()).await;
            }
            #[tokio::test]
            async fn memory() {
                super::checks::$name(std::sync::Arc::new(fs::memory::MemoryFs::new())).await;
            }
            #[tokio::test]
            async fn faulty() {
                let inner = std::sync::Arc::new(fs::memory::MemoryFs::new());
                let plan = fs::faulty::Plan::new(base::testing::env(1).clock);
                super::checks::$name(std::sync::Arc::new(fs::faulty::Faulty::new(inner, plan))).await;
            }
            #[tokio::test(start_paused = true)]
            async fn paced() {
                let inner = std::sync::Arc::new(fs::memory::MemoryFs::new());
                let device = fs::paced::PacedDevice::new(fs::paced::Device::hdd());
                let paced = fs::paced::PacedFs::new(inner, &base::testing::env(1), device);
                super::checks::$name(std::sync::Arc::new(paced)).await;
            }
            #[tokio::test]
            async fn scheduled() {
                let inner = std::sync::Arc::new(fs::memory::MemoryFs::new());
                let limits = fs::scheduled::DeviceClass::hdd();
                let queue = fs::scheduled::DeviceQueue::new(limits, base::testing::env(1).clock);
                super::checks::$name(std::sync::Arc::new(fs::scheduled::ScheduledFs::new(inner, queue))).await;
            }
            #[tokio::test]
            async fn measured() {
                let inner = std::sync::Arc::new(fs::memory::MemoryFs::new());
                let instruments = fs::measured::Instruments::begin(base::testing::env(1).clock);
                super::checks::$name(std::sync::Arc::new(fs::measured::Measured::new(inner, instruments))).await;
            }
        })*
    };
}

contract! {
    appended_bytes_are_read_back;
    a_reader_keeps_the_length_it_was_opened_with;
    reads_past_the_end_are_refused;
    create_makes_new_files_only;
    missing_files_are_not_found;
    directories_are_made_with_their_parents;
    a_file_where_a_directory_should_be;
    rename_replaces_a_file_atomically;
    rename_moves_a_directory;
    a_writer_follows_its_renamed_directory;
    rename_refuses_impossible_targets;
    delete_takes_trees_and_nothing;
    only_an_empty_directory_is_deleted_as_one;
    lists_are_sorted_and_complete;
    reserved_space_is_zeros_and_is_truncated_at_close;
    an_end_mark_is_in_reserved_space_until_the_next_append;
    data_files_reserve_nothing;
    a_dropped_writer_leaves_the_appended_bytes;
    an_open_file_outlives_its_name;
    the_root_stays;
    many_readers_at_once;
}

fn path(text: &str) -> FilePath {
    FilePath::new(text)
}

async fn write(fs: &dyn FileSystem, at: &str, bytes: &[u8]) {
    let mut writer = fs.create(&path(at), AccessPattern::Data).await.unwrap();
    writer.append(Bytes::copy_from_slice(bytes)).await.unwrap();
    writer.sync(SyncLevel::Disk).await.unwrap();
    writer.close().await.unwrap();
}

async fn read(fs: &dyn FileSystem, at: &str) -> Vec<u8> {
    let reader = fs.open(&path(at)).await.unwrap();
    reader.read_at(0, reader.len() as usize).await.unwrap().to_vec()
}

fn kind<T>(result: Result<T, Error>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(Error::NotFound { .. }) => "not found",
        Err(Error::AlreadyExists { .. }) => "exists",
        Err(Error::NoSpace { .. }) => "no space",
        Err(Error::VolumeFull { .. }) => "volume full",
        Err(Error::PastEnd { .. }) => "past end",
        Err(Error::Locked { .. }) => "locked",
        Err(Error::TakenOver { .. }) => "taken over",
        Err(Error::RootReplaced { .. }) => "replaced",
        Err(Error::NoDescriptor { .. }) => "no descriptor",
        Err(Error::Io { .. }) => "io",
    }
}

mod checks {
    use super::*;

    type Fs = Arc<dyn FileSystem>;

    pub async fn appended_bytes_are_read_back(fs: Fs) {
        let mut writer = fs.create(&path("f"), AccessPattern::Log).await.unwrap();
        assert!(writer.is_empty());
        assert_eq!(writer.path(), &path("f"));
        let mut all = Vec::new();
        for i in 0..50usize {
            let piece: Vec<u8> = (0..i * 37).map(|at| (at + i) as u8).collect();
            writer.append(Bytes::from(piece.clone())).await.unwrap();
            all.extend(piece);
            assert_eq!(writer.len(), all.len() as u64);
            writer.sync(if i % 2 == 0 { SyncLevel::Visible } else { SyncLevel::Disk }).await.unwrap();
            assert_eq!(read(&*fs, "f").await, all, "visible after the sync");
        }
        writer.close().await.unwrap();
        let reader = fs.open(&path("f")).await.unwrap();
        assert_eq!(reader.len(), all.len() as u64);
        assert_eq!(reader.path(), &path("f"));
        for (offset, len) in [(0, 1), (1, 100), (5000, 3000), (all.len() - 1, 1), (all.len(), 0)] {
            let found = reader.read_at(offset as u64, len).await.unwrap();
            assert_eq!(found, all[offset..offset + len], "{len} bytes at {offset}");
        }
    }

    pub async fn a_reader_keeps_the_length_it_was_opened_with(fs: Fs) {
        let mut writer = fs.create(&path("f"), AccessPattern::Data).await.unwrap();
        writer.append(Bytes::from_static(b"first")).await.unwrap();
        let reader = fs.open(&path("f")).await.unwrap();
        writer.append(Bytes::from_static(b"second")).await.unwrap();
        assert_eq!(reader.len(), 5);
        assert_eq!(kind(reader.read_at(0, 6).await), "past end");
        assert_eq!(fs.open(&path("f")).await.unwrap().len(), 11);
    }

    pub async fn reads_past_the_end_are_refused(fs: Fs) {
        write(&*fs, "f", &[7; 1000]).await;
        let reader = fs.open(&path("f")).await.unwrap();
        for (offset, len) in [(0, 1001), (1000, 1), (2000, 1), (u64::MAX, 1), (1, usize::MAX)] {
            assert_eq!(kind(reader.read_at(offset, len).await), "past end", "{len} bytes at {offset}");
        }
        assert!(reader.read_at(1000, 0).await.unwrap().is_empty());
    }

    pub async fn create_makes_new_files_only(fs: Fs) {
        write(&*fs, "f", b"old").await;
        assert_eq!(kind(fs.create(&path("f"), AccessPattern::Data).await), "exists");
        assert_eq!(read(&*fs, "f").await, b"old");
        assert_eq!(kind(fs.create(&path("missing/f"), AccessPattern::Data).await), "not found");
        assert_eq!(kind(fs.create(&path("f/below"), AccessPattern::Data).await), "not found");
        fs.make_dirs(&path("d")).await.unwrap();
        assert_eq!(kind(fs.create(&path("d"), AccessPattern::Data).await), "exists");
    }

    pub async fn missing_files_are_not_found(fs: Fs) {
        write(&*fs, "f", b"").await;
        assert_eq!(kind(fs.open(&path("x")).await), "not found");
        assert_eq!(kind(fs.open(&path("x/y")).await), "not found");
        assert_eq!(kind(fs.open(&path("f/y")).await), "not found");
        assert_eq!(kind(fs.list(&path("x")).await), "not found");
        assert_eq!(kind(fs.list(&path("f")).await), "not found");
        assert_eq!(kind(fs.sync_dir(&path("x")).await), "not found");
        assert_eq!(kind(fs.rename(&path("x"), &path("y")).await), "not found");
        assert_eq!(fs.stat(&path("x")).await.unwrap(), None);
        assert_eq!(fs.stat(&path("f/y")).await.unwrap(), None);
        fs.make_dirs(&path("d")).await.unwrap();
        assert_eq!(kind(fs.open(&path("d")).await), "io", "a directory cannot be read");
    }

    pub async fn directories_are_made_with_their_parents(fs: Fs) {
        fs.make_dirs(&path("a/b/c")).await.unwrap();
        fs.make_dirs(&path("a/b/c")).await.unwrap();
        fs.make_dirs(&path("a/b/d")).await.unwrap();
        fs.make_dirs(&FilePath::root()).await.unwrap();
        let status = fs.stat(&path("a/b")).await.unwrap().unwrap();
        assert_eq!((status.name.as_str(), status.is_dir, status.len), ("b", true, 0));
        write(&*fs, "a/b/c/f", b"deep").await;
        assert_eq!(read(&*fs, "a/b/c/f").await, b"deep");
        fs.sync_dir(&path("a/b/c")).await.unwrap();
        fs.sync_dir(&FilePath::root()).await.unwrap();
    }

    pub async fn a_file_where_a_directory_should_be(fs: Fs) {
        write(&*fs, "f", b"").await;
        assert_eq!(kind(fs.make_dirs(&path("f")).await), "exists");
        assert!(fs.make_dirs(&path("f/below")).await.is_err());
    }

    pub async fn rename_replaces_a_file_atomically(fs: Fs) {
        write(&*fs, "new", b"new").await;
        write(&*fs, "old", b"old").await;
        fs.rename(&path("new"), &path("old")).await.unwrap();
        assert_eq!(read(&*fs, "old").await, b"new");
        assert_eq!(fs.stat(&path("new")).await.unwrap(), None);
        fs.rename(&path("old"), &path("old")).await.unwrap();
        assert_eq!(read(&*fs, "old").await, b"new");
    }

    pub async fn rename_moves_a_directory(fs: Fs) {
        fs.make_dirs(&path("a/b")).await.unwrap();
        fs.make_dirs(&path("z")).await.unwrap();
        write(&*fs, "a/b/f", b"here").await;
        fs.rename(&path("a"), &path("z/a")).await.unwrap();
        assert_eq!(read(&*fs, "z/a/b/f").await, b"here");
        assert_eq!(fs.stat(&path("a")).await.unwrap(), None);
    }

    pub async fn a_writer_follows_its_renamed_directory(fs: Fs) {
        fs.make_dirs(&path("logs/a")).await.unwrap();
        let mut writer = fs.create(&path("logs/a/log"), AccessPattern::Log).await.unwrap();
        writer.append(Bytes::from_static(b"before ")).await.unwrap();
        fs.rename(&path("logs/a"), &path("logs/b")).await.unwrap();
        writer.append(Bytes::from_static(b"after")).await.unwrap();
        writer.sync(SyncLevel::Disk).await.unwrap();
        assert_eq!(fs.stat(&path("logs/a/log")).await.unwrap(), None);
        assert_eq!(read(&*fs, "logs/b/log").await, b"before after");
        // Another directory of the old name has another file.
        fs.make_dirs(&path("logs/a")).await.unwrap();
        write(&*fs, "logs/a/log", b"other").await;
        writer.close().await.unwrap();
        assert_eq!(read(&*fs, "logs/b/log").await, b"before after");
        assert_eq!(read(&*fs, "logs/a/log").await, b"other");
    }

    pub async fn rename_refuses_impossible_targets(fs: Fs) {
        fs.make_dirs(&path("full/d")).await.unwrap();
        fs.make_dirs(&path("empty")).await.unwrap();
        write(&*fs, "f", b"f").await;
        write(&*fs, "g", b"g").await;
        assert_eq!(kind(fs.rename(&path("f"), &path("full")).await), "exists");
        assert_eq!(kind(fs.rename(&path("f"), &path("empty")).await), "exists");
        assert_eq!(kind(fs.rename(&path("full"), &path("empty")).await), "exists");
        assert_eq!(kind(fs.rename(&path("full"), &path("f")).await), "exists");
        assert_eq!(kind(fs.rename(&path("f"), &path("missing/f")).await), "not found");
        assert_eq!(kind(fs.rename(&path("f"), &path("g/f")).await), "not found");
        assert_eq!(kind(fs.rename(&path("full"), &path("full/d/x")).await), "io");
        assert_eq!(read(&*fs, "f").await, b"f");
        assert!(fs.stat(&path("full/d")).await.unwrap().is_some());
    }

    pub async fn only_an_empty_directory_is_deleted_as_one(fs: Fs) {
        fs.make_dirs(&path("a/b")).await.unwrap();
        assert!(fs.delete_empty_dir(&path("a")).await.is_err());
        write(&*fs, "a/b/1", b"x").await;
        assert!(fs.delete_empty_dir(&path("a/b")).await.is_err());
        fs.delete(&path("a/b/1")).await.unwrap();
        for dir in ["a/b", "a", "a", "never/there"] {
            fs.delete_empty_dir(&path(dir)).await.unwrap();
            assert_eq!(fs.stat(&path(dir)).await.unwrap(), None);
        }
    }

    pub async fn delete_takes_trees_and_nothing(fs: Fs) {
        fs.make_dirs(&path("a/b/c")).await.unwrap();
        fs.make_dirs(&path("a/empty")).await.unwrap();
        for at in ["a/1", "a/b/2", "a/b/c/3", "kept"] {
            write(&*fs, at, b"x").await;
        }
        fs.delete(&path("a")).await.unwrap();
        assert_eq!(fs.stat(&path("a")).await.unwrap(), None);
        assert_eq!(fs.stat(&path("a/b/c/3")).await.unwrap(), None);
        fs.delete(&path("a")).await.unwrap();
        fs.delete(&path("never/there")).await.unwrap();
        fs.delete(&path("kept/below")).await.unwrap();
        fs.delete(&path("kept")).await.unwrap();
        assert!(fs.list(&FilePath::root()).await.unwrap().is_empty());
        fs.make_dirs(&path("a/b")).await.unwrap();
        assert!(fs.list(&path("a/b")).await.unwrap().is_empty(), "must not have the old entries");
    }

    pub async fn lists_are_sorted_and_complete(fs: Fs) {
        fs.make_dirs(&path("d/m")).await.unwrap();
        write(&*fs, "d/z", b"12345").await;
        write(&*fs, "d/.a", b"").await;
        let found = fs.list(&path("d")).await.unwrap();
        let seen: Vec<_> = found.iter().map(|status| (&*status.name, status.is_dir, status.len)).collect();
        assert_eq!(seen, [(".a", false, 0), ("m", true, 0), ("z", false, 5)]);
        let status = fs.stat(&path("d/z")).await.unwrap().unwrap();
        assert_eq!(status, found[2]);
    }

    pub async fn reserved_space_is_zeros_and_is_truncated_at_close(fs: Fs) {
        let mut writer = fs.create(&path("log"), AccessPattern::Log).await.unwrap();
        writer.append(Bytes::from_static(b"head")).await.unwrap();
        writer.reserve(5000).await.unwrap();
        assert_eq!(writer.len(), 4);
        let grown = fs.stat(&path("log")).await.unwrap().unwrap().len;
        assert!(grown >= 5004, "{grown}");
        writer.append(Bytes::from_static(b"body")).await.unwrap();
        writer.sync(SyncLevel::Disk).await.unwrap();
        let reader = fs.open(&path("log")).await.unwrap();
        assert_eq!(reader.len(), grown);
        assert_eq!(reader.read_at(0, 8).await.unwrap(), &b"headbody"[..]);
        let rest = reader.read_at(8, grown as usize - 8).await.unwrap();
        assert!(rest.iter().all(|byte| *byte == 0));
        writer.reserve(4900).await.unwrap();
        assert_eq!(fs.stat(&path("log")).await.unwrap().unwrap().len, grown, "the reserve is sufficient");
        // More than was reserved, across its end.
        let long = Bytes::from(vec![9; grown as usize + 100]);
        writer.append(long.clone()).await.unwrap();
        writer.reserve(100).await.unwrap();
        writer.close().await.unwrap();
        assert_eq!(read(&*fs, "log").await, [&b"headbody"[..], &long].concat());
        // Reserved but never used.
        let mut writer = fs.create(&path("empty"), AccessPattern::Log).await.unwrap();
        writer.reserve(100).await.unwrap();
        writer.close().await.unwrap();
        assert_eq!(read(&*fs, "empty").await, b"");
    }

    pub async fn an_end_mark_is_in_reserved_space_until_the_next_append(fs: Fs) {
        let read = async |len: usize| fs.open(&path("log")).await.unwrap().read_at(0, len).await.unwrap();
        let mut writer = fs.create(&path("log"), AccessPattern::Log).await.unwrap();
        writer.append_with_end(Bytes::from_static(b"one.END"), 4).await.unwrap();
        writer.reserve(100).await.unwrap();
        assert_eq!(read(10).await, &b"one.END\0\0\0"[..]);
        writer.append_with_end(Bytes::from_static(b"two.END"), 4).await.unwrap();
        assert_eq!(writer.len(), 8);
        assert_eq!(read(13).await, &b"one.two.END\0\0"[..]);
        // Longer and shorter than the previous mark.
        writer.append_with_end(Bytes::from_static(b"three..END"), 7).await.unwrap();
        assert_eq!(read(20).await, &b"one.two.three..END\0\0"[..]);
        writer.append_with_end(Bytes::from_static(b"!."), 1).await.unwrap();
        assert_eq!(read(18).await, &b"one.two.three..!.D"[..]);
        writer.append_with_end(Bytes::from_static(b"LONGMARK"), 0).await.unwrap();
        assert_eq!(read(25).await, &b"one.two.three..!LONGMARK\0"[..]);
        assert_eq!(writer.len(), 16);
        writer.append(Bytes::from_static(b"end")).await.unwrap();
        writer.sync(SyncLevel::Disk).await.unwrap();
        writer.close().await.unwrap();
        assert_eq!(read(19).await, &b"one.two.three..!end"[..]);
        assert_eq!(fs.stat(&path("log")).await.unwrap().unwrap().len, 19);
    }

    pub async fn data_files_reserve_nothing(fs: Fs) {
        let mut data = fs.create(&path("data"), AccessPattern::Data).await.unwrap();
        data.append_with_end(Bytes::from_static(b"one.END"), 4).await.unwrap();
        assert_eq!(fs.stat(&path("data")).await.unwrap().unwrap().len, 4, "data files have no end marks");
        let mut writer = fs.create(&path("f"), AccessPattern::Data).await.unwrap();
        writer.reserve(5000).await.unwrap();
        assert_eq!(fs.stat(&path("f")).await.unwrap().unwrap().len, 0);
    }

    pub async fn a_dropped_writer_leaves_the_appended_bytes(fs: Fs) {
        let mut writer = fs.create(&path("f"), AccessPattern::Data).await.unwrap();
        writer.append(Bytes::from_static(b"appended")).await.unwrap();
        drop(writer);
        assert_eq!(read(&*fs, "f").await, b"appended");
    }

    pub async fn an_open_file_outlives_its_name(fs: Fs) {
        write(&*fs, "f", b"still here").await;
        let reader = fs.open(&path("f")).await.unwrap();
        let mut writer: Box<dyn FileWriter> = fs.create(&path("g"), AccessPattern::Data).await.unwrap();
        fs.delete(&path("f")).await.unwrap();
        fs.delete(&path("g")).await.unwrap();
        assert_eq!(reader.read_at(0, 10).await.unwrap(), &b"still here"[..]);
        writer.append(Bytes::from_static(b"into the void")).await.unwrap();
        writer.sync(SyncLevel::Disk).await.unwrap();
        writer.close().await.unwrap();
        assert_eq!(fs.stat(&path("g")).await.unwrap(), None);
    }

    pub async fn the_root_stays(fs: Fs) {
        let root = FilePath::root();
        let status = fs.stat(&root).await.unwrap().unwrap();
        assert_eq!((status.name.as_str(), status.is_dir), ("", true));
        assert_eq!(kind(fs.delete(&root).await), "io");
        assert_eq!(kind(fs.create(&root, AccessPattern::Data).await), "exists");
        assert!(fs.rename(&root, &path("x")).await.is_err());
        assert_eq!(fs.fence(&root).await.unwrap(), Fence::Complete);
    }

    pub async fn many_readers_at_once(fs: Fs) {
        let bytes: Vec<u8> = (0..1_000_000u32).map(|at| (at % 251) as u8).collect();
        write(&*fs, "f", &bytes).await;
        let reader = fs.open(&path("f")).await.unwrap();
        let mut reads = tokio::task::JoinSet::new();
        for i in 0..64u64 {
            let reader = reader.clone();
            let len = if i % 8 == 0 { 500_000 } else { 4096 };
            reads.spawn(async move { (i, len, reader.read_at(i * 7001, len).await) });
        }
        while let Some(read) = reads.join_next().await {
            let (i, len, found) = read.unwrap();
            let from = i as usize * 7001;
            assert_eq!(found.unwrap(), bytes[from..from + len]);
        }
    }
}
