//! Missing store files are detected when a region opens, can be accepted by an operator, and are
//! not confused with files that HBase archived.

use std::sync::Arc;

use crate::common::world::{Opened, open, options, region_info, run, scan, table};
use base::env::Env;
use bytes::Bytes;
use cell::mutation::Mutation;
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use engine::region::CompactionKind;
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use layout::RootDir;

fn root() -> RootDir {
    RootDir::new(FilePath::root())
}

fn store_dir() -> FilePath {
    root().family_dir(&region_info(), b"f")
}

async fn put_and_flush(opened: &Opened, row: &str) {
    let cell = KeyValue::new(row.as_bytes(), b"f", b"q", LATEST_TIMESTAMP, CellType::Put, row.as_bytes());
    let put = Mutation::put(Bytes::copy_from_slice(row.as_bytes()), vec![cell]);
    opened.region.batch(vec![put]).await.remove(0).unwrap();
    opened.region.flush().await.unwrap();
}

async fn rows(opened: &Opened) -> Vec<Bytes> {
    scan(&opened.region).await.unwrap().into_iter().map(|shown| shown.0.to_vec().into()).collect()
}

async fn files(fs: &MemoryFs) -> Vec<FilePath> {
    fs.list(&store_dir()).await.unwrap().into_iter().map(|status| store_dir().join(&status.name)).collect()
}

/// A closed region with two files of one row each.
async fn closed() -> (MemoryFs, Env) {
    let (env, memory) = (base::testing::env(7), MemoryFs::new());
    let opened = open(&env, Arc::new(memory.clone()), options()).await.unwrap();
    put_and_flush(&opened, "a").await;
    put_and_flush(&opened, "b").await;
    opened.region.close().await.unwrap();
    (memory, env)
}

async fn reopen(fs: &MemoryFs, env: &Env) -> Result<Opened, String> {
    open(env, Arc::new(fs.clone()), options()).await
}

#[test]
fn a_missing_or_emptied_store_file_keeps_the_region_closed_until_it_is_back() {
    run(async {
        for is_emptied in [false, true] {
            let (memory, env) = closed().await;
            let file = files(&memory).await.remove(0);
            let content = memory.contents(&file).unwrap();
            match is_emptied {
                true => memory.put(&file, ""),
                false => memory.delete(&file).await.unwrap(),
            }
            let error = reopen(&memory, &env).await.err().unwrap();
            assert!(error.contains(file.name()) && error.contains("missing or empty"), "{error}");
            memory.put(&file, content.clone());
            assert_eq!(rows(&reopen(&memory, &env).await.unwrap()).await, ["a", "b"]);
        }
    });
}

#[test]
fn a_missing_directory_of_a_family_is_detected_after_a_crash_too() {
    run(async {
        let (env, memory) = (base::testing::env(7), MemoryFs::new());
        let opened = open(&env, Arc::new(memory.clone()), options()).await.unwrap();
        put_and_flush(&opened, "a").await;
        let crashed = memory.crash(&mut || 0);
        crashed.delete(&store_dir()).await.unwrap();
        let error = reopen(&crashed, &env).await.err().unwrap();
        assert!(error.contains("missing or empty"), "{error}");
    });
}

#[test]
fn an_accepted_loss_lets_the_region_open_with_the_remaining_files() {
    run(async {
        let (memory, env) = closed().await;
        let lost = files(&memory).await;
        memory.delete(&lost[0]).await.unwrap();
        let damaged = "neither a trailer nor an index";
        memory.put(&lost[1], damaged);
        let opened = reopen(&memory, &env).await;
        assert!(opened.is_err());
        let accepted = engine::salvage::accept_loss(&memory, &root(), &region_info(), &table()).await;
        assert_eq!(accepted.unwrap(), lost);
        let aside = FilePath::new(&format!("corrupt/{}", lost[1]));
        assert_eq!(memory.contents(&aside).unwrap(), damaged.as_bytes(), "the damaged file is kept");
        let opened = reopen(&memory, &env).await.unwrap();
        assert!(rows(&opened).await.is_empty());
        put_and_flush(&opened, "c").await;
        opened.region.close().await.unwrap();
        assert_eq!(rows(&reopen(&memory, &env).await.unwrap()).await, ["c"]);
    });
}

/// After a crash between the rename of a new file and its record, the store has a file that the
/// inventory lacks. Then the inventory does not show which files are missing.
#[test]
fn a_file_on_a_missing_disk_keeps_the_region_closed_until_its_loss_is_accepted() {
    run(async {
        let (memory, env) = closed().await;
        let before = files(&memory).await;
        memory.rename(&before[1], &store_dir().join("0123456789abcdef")).await.unwrap();
        memory.delete(&before[0]).await.unwrap();
        memory.link(&before[0], "/mnt/missing/file").await.unwrap();
        let error = reopen(&memory, &env).await.err().unwrap();
        assert!(error.contains(before[0].name()) && error.contains("its bytes are missing"), "{error}");
        let accepted =
            engine::salvage::accept_loss(&memory, &root(), &region_info(), &table()).await.unwrap();
        assert!(accepted.contains(&before[0]), "{accepted:?}");
        assert_eq!(rows(&reopen(&memory, &env).await.unwrap()).await.len(), 1);
    });
}

#[test]
fn compacted_files_are_not_reported_missing() {
    run(async {
        let (memory, env) = closed().await;
        let opened = reopen(&memory, &env).await.unwrap();
        opened.region.compact(None, CompactionKind::Major).await.unwrap();
        assert_eq!(files(&memory).await.len(), 1);
        let crashed = memory.crash(&mut || 0);
        crashed.delete(&FilePath::new("archive")).await.unwrap();
        assert_eq!(rows(&reopen(&crashed, &env).await.unwrap()).await, ["a", "b"]);
    });
}

/// A file name alone needs no disk space: a region must open on a full disk, so that its rows can
/// be read.
#[test]
fn a_region_opens_on_a_full_disk_and_records_its_files_later() {
    run(async {
        let (env, memory) = (base::testing::env(7), MemoryFs::new());
        let faulty = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()));
        faulty.add(Rule::new(Fault::NoSpace).on(Operation::Append).at(".seqid"));
        let opened = open(&env, Arc::new(faulty.clone()), options()).await.unwrap();
        assert_eq!(root().read_inventory(&memory, &region_info()).await.unwrap(), None);
        faulty.heal();
        put_and_flush(&opened, "a").await;
        let inventory = root().read_inventory(&memory, &region_info()).await.unwrap().unwrap();
        assert_eq!(inventory.of_family(b"f").count(), 1);
    });
}

/// HBase writes an empty sequence id file when it closes a region.
#[test]
fn an_inventory_is_ignored_after_hbase_served_the_region() {
    run(async {
        let (memory, env) = closed().await;
        let seq_id = root().read_max_seq_id(&memory, &region_info()).await.unwrap();
        let dir = root().recovered_edits_dir(&region_info());
        memory.put(&dir.join(&format!("{}.seqid", seq_id + 5)), "");
        memory.delete(&files(&memory).await[0]).await.unwrap();
        assert_eq!(rows(&reopen(&memory, &env).await.unwrap()).await.len(), 1);
    });
}

/// After an HBase crash the sequence id file is unchanged, but files were compacted: there is a new
/// file, or the inputs are in the archive.
#[test]
fn files_that_hbase_replaced_before_a_crash_are_not_reported_missing() {
    run(async {
        for is_archived in [false, true] {
            let (memory, env) = closed().await;
            let before = files(&memory).await;
            let content = memory.contents(&before[1]).unwrap();
            memory.delete(&before[1]).await.unwrap();
            match is_archived {
                true => {
                    let archive = root().archive_family_dir(&region_info(), b"f");
                    memory.put(&archive.join(before[1].name()), content.clone());
                }
                false => memory.put(&store_dir().join("0123456789abcdef"), content.clone()),
            }
            assert!(reopen(&memory, &env).await.is_ok(), "archived: {is_archived}");
        }
    });
}
