//! Writes logs in all states, for HBase's own tools to read:
//! `WAL_SAMPLES_DIR=/some/dir cargo test -p wal --test samples -- --ignored`. Each `NAME.wal` comes
//! with `NAME.count`, the number of entries that must be found.

#![allow(clippy::unwrap_used)] // In a test a panic is the report.

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::pool::Pool;
use base::testing;
use fs::FilePath;
use fs::local::LocalFs;
use support::{Acks, edit, logs, options, read_all, region_name, start};
use wal::LogOptions;

#[tokio::test]
#[ignore = "writes files for other programs"]
async fn write_samples() {
    let dir = std::env::var("WAL_SAMPLES_DIR").expect("WAL_SAMPLES_DIR is the target directory");
    let env = testing::env(1);
    let fs = Arc::new(LocalFs::create(Path::new(&dir), Arc::new(Pool::new("fs", 2))).unwrap());
    for (name, reserve_bytes, pause, close) in [
        ("busy", 64 << 10, 0, false),
        ("idle", 64 << 10, 300, false),
        ("closed", 64 << 10, 0, true),
        ("unreserved", 0, 300, false),
        ("unreserved-closed", 0, 0, true),
    ] {
        let dir_name = format!("logs-{name}");
        let options = LogOptions { dir: FilePath::new(&dir_name), reserve_bytes, ..options() };
        let (log, _) = start(&env, fs.clone(), options).await;
        let acks = Acks::new();
        let mut seq_id = 0;
        for _ in 0..50 {
            for _ in 0..1 + env.random.next_u64() % 20 {
                seq_id += 1;
                let value = vec![b'v'; (env.random.next_u64() % 2000) as usize];
                log.append(edit(&region_name(seq_id as usize % 3), seq_id, &value, &acks));
            }
            acks.wait(seq_id as usize).await;
        }
        env.clock.sleep(Duration::from_millis(pause)).await;
        if close {
            log.close().await;
        }
        let path = logs(&*fs, &dir_name).await.remove(0);
        let (entries, _) = read_all(&*fs, &path).await.unwrap();
        assert_eq!(entries.len() as u64, seq_id);
        let target = Path::new(&dir).join(name);
        std::fs::copy(Path::new(&dir).join(path.as_str()), target.with_extension("wal")).unwrap();
        let mut count = std::fs::OpenOptions::new();
        let mut count =
            count.write(true).create(true).truncate(true).open(target.with_extension("count")).unwrap();
        std::io::Write::write_all(&mut count, seq_id.to_string().as_bytes()).unwrap();
    }
}
