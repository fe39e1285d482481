//! A full disk: accepted edits wait for space and are then committed in order. Edits that were
//! acknowledged before are retained.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

mod support;

use std::sync::Arc;
use std::time::Duration;

use base::testing;
use fs::faulty::{Faulty, Plan};
use fs::memory::MemoryFs;
use support::{Acks, edit, logs, options, region_name, start};
use wal::{LogOptions, recovery};

/// Number of edits in a run.
const EDITS: u64 = 60;

/// The edits of the region in the logs of `disk`, in order.
async fn recovered(disk: &MemoryFs) -> Vec<u64> {
    let index = Arc::new(recovery::scan(disk, &logs(disk, "WALs/s").await).await.unwrap());
    let mut reader = recovery::read_region(Arc::new(disk.clone()), index, &region_name(1));
    let mut found: Vec<u64> = Vec::new();
    while let Some(entry) = reader.next().await.unwrap() {
        // An entry may be repeated in the next log, but is never out of order within a log.
        if found.last() != Some(&entry.key.seq_id) {
            found.push(entry.key.seq_id);
        }
    }
    found
}

fn small() -> LogOptions {
    LogOptions { roll_bytes: 10_000, reserve_bytes: 2048, group_bytes: 4000, ..options() }
}

/// Bytes that the whole run needs on the disk.
async fn bytes_of_run() -> u64 {
    let env = testing::env(1);
    let disk = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
    let (log, _) = start(&env, Arc::new(disk.clone()), small()).await;
    let acks = Acks::new();
    append_all(&log, &acks);
    acks.wait(EDITS as usize).await;
    disk.used()
}

fn append_all(log: &wal::Log, acks: &Arc<Acks>) {
    for seq_id in 1..=EDITS {
        log.append(edit(&region_name(1), seq_id, &vec![7; 100 + (seq_id as usize * 37) % 900], acks));
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_is_full_at_any_byte_loses_no_acknowledged_edit_and_needs_no_restart() {
    let needed = bytes_of_run().await;
    let mut waited = 0;
    for (nth, full_at) in (500..needed + 500).step_by(293).enumerate() {
        let env = testing::env(nth as u64);
        let memory = MemoryFs::new();
        let disk = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()).capacity(full_at));
        let (log, fatal) = start(&env, Arc::new(disk.clone()), small()).await;
        let acks = Acks::new();
        append_all(&log, &acks);
        env.clock.sleep(Duration::from_secs(10)).await;
        waited += u64::from(log.waits_for_space());
        let acknowledged = acks.committed();
        assert_eq!(acknowledged, (1..=acknowledged.len() as u64).collect::<Vec<_>>(), "in order");
        assert_eq!((acks.failed(), fatal.count()), (0, 0), "full at {full_at}");
        // Power loss while the disk is full: all acknowledged edits are recovered first.
        let image = memory.crash(&mut || env.random.next_u64());
        let found = recovered(&image).await;
        assert!(
            found.starts_with(&acknowledged),
            "full at {full_at}: {} of {}",
            found.len(),
            acknowledged.len()
        );
        disk.set_capacity(None);
        acks.wait(EDITS as usize).await;
        assert_eq!(acks.committed(), (1..=EDITS).collect::<Vec<_>>(), "full at {full_at}");
        assert!(!log.waits_for_space());
        assert_eq!(recovered(&memory).await, (1..=EDITS).collect::<Vec<_>>());
    }
    assert!(waited > 50, "{waited} runs found the disk full");
}

#[tokio::test(start_paused = true)]
async fn a_log_that_waits_for_space_can_be_closed_and_waiting_edits_fail() {
    let env = testing::env(7);
    let disk = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()).capacity(1000));
    let (log, fatal) = start(&env, Arc::new(disk.clone()), options()).await;
    let acks = Acks::new();
    log.append(edit(&region_name(1), 1, &[1; 5000], &acks));
    env.clock.sleep(Duration::from_secs(60)).await;
    assert!(log.waits_for_space());
    assert_eq!((acks.outcomes().len(), fatal.count()), (0, 0));
    log.close().await;
    assert_eq!((acks.committed().len(), acks.failed()), (0, 1), "never acknowledged");
}
