//! Files move to the tier where they belong.

use base::testing::env;
use fs::{FileSystem, IoClass, Purpose, Role};

use super::support::{Disks, path, tier, write};
use crate::{Mover, StoredFile, TieredFs};

fn stored(name: &str, role: Role, bytes: u64) -> StoredFile {
    StoredFile { path: path(name), purpose: Purpose { expected_bytes: bytes, ..Purpose::of(role) } }
}

/// Plans for one file and makes the moves. Returns the tier of the file then.
async fn moved(fs: &TieredFs, file: StoredFile) -> Option<String> {
    for planned in fs.plan(vec![file.clone()]).await.unwrap() {
        assert_eq!((&planned.path, planned.bytes), (&file.path, file.purpose.expected_bytes));
        Mover::new(fs.clone(), u64::MAX).move_to(&planned.path, planned.to).await.unwrap();
    }
    tier(fs, file.path.as_str()).await
}

#[tokio::test]
async fn a_file_that_is_read_often_moves_to_the_faster_tier() {
    let database = Disks::new().open(&env(1)).await;
    let fs = &database.fs;
    write(fs, "f", Role::MajorCompaction, &[7; 1000]).await.unwrap();
    let file = stored("f", Role::MajorCompaction, 1000);
    assert_eq!(moved(fs, file.clone()).await.as_deref(), Some("hdd"));
    let reader = fs.open(&path("f")).await.unwrap();
    for _ in 0..3 {
        reader.read_for(IoClass::Compaction, 0, 1000).await.unwrap();
    }
    assert_eq!(moved(fs, file.clone()).await.as_deref(), Some("hdd"), "no client reads it");
    for _ in 0..3 {
        reader.read_at(0, 1000).await.unwrap();
    }
    assert_eq!(moved(fs, file.clone()).await.as_deref(), Some("ssd"));
    // A new reader continues the count, so the file does not move back.
    let _reopened = fs.open(&path("f")).await.unwrap();
    drop(reader);
    assert_eq!(moved(fs, file).await.as_deref(), Some("ssd"));
}

#[tokio::test]
async fn an_archived_file_moves_to_the_last_tier() {
    let database = Disks::new().open(&env(1)).await;
    let fs = &database.fs;
    write(fs, "f", Role::Flush, &[7; 1000]).await.unwrap();
    assert_eq!(moved(fs, stored("f", Role::Flush, 1000)).await.as_deref(), Some("ssd"));
    fs.make_dirs(&path("archive")).await.unwrap();
    fs.rename(&path("f"), &path("archive/f")).await.unwrap();
    // The rename alone moves no bytes, as in HDFS.
    assert_eq!(tier(fs, "archive/f").await.as_deref(), Some("ssd"));
    assert_eq!(moved(fs, stored("archive/f", Role::Archive, 1000)).await.as_deref(), Some("hdd"));
    assert_eq!(fs.open(&path("archive/f")).await.unwrap().len(), 1000);
}

#[tokio::test]
async fn a_missing_file_is_not_planned() {
    let database = Disks::new().open(&env(1)).await;
    assert_eq!(database.fs.plan(vec![stored("gone", Role::Flush, 1)]).await.unwrap(), []);
}
