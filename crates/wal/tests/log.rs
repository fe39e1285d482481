//! A whole log: order, rolling, archiving, failures, closing.

#![allow(clippy::unwrap_used)] // In a test a panic is the report.

mod support;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use base::env::TaskClass;
use base::testing;
use bytes::{BufMut, Bytes, BytesMut};
use cell::KeyValue;
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem, SyncLevel};
use support::{Acks, Outcome, edit, logs, options, read_all, region_name, start};
use wal::marker::MarkedRegion;
use wal::{Edit, Ending, Error, LogOptions, recovery};

async fn names(fs: &dyn FileSystem, dir: &str) -> Vec<String> {
    logs(fs, dir).await.iter().map(|path| path.name().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn edits_are_committed_in_order_in_few_groups() {
    let env = testing::env(1);
    let memory = MemoryFs::new();
    let (log, _) = start(&env, Arc::new(memory.clone()), options()).await;
    let (one, other) = (Acks::new(), Acks::new());
    for seq_id in 1..=500 {
        log.append(edit(&region_name(1), seq_id, b"value", &one));
        log.append(Edit { logged: seq_id % 3 == 0, ..edit(&region_name(2), seq_id, b"value", &other) });
    }
    assert!(log.queued_bytes() > 1000 * 100);
    one.wait(500).await;
    other.wait(500).await;
    for acks in [&one, &other] {
        assert_eq!(acks.committed(), (1..=500).collect::<Vec<u64>>());
    }
    let statistics = log.statistics();
    assert_eq!((statistics.groups, statistics.edits, statistics.queued_bytes), (1, 500 + 166, 0));
    // An edit that is not logged writes nothing and needs no sync.
    log.append(Edit { logged: false, ..edit(&region_name(2), 501, b"value", &other) });
    other.wait(501).await;
    assert_eq!(log.statistics().groups, 1);
    let (entries, _) = read_all(&memory, &logs(&memory, "WALs/s").await[0]).await.unwrap();
    assert_eq!(entries.len(), 500 + 166);
}

/// Ten writers that each append again a millisecond after a commit, and a disk whose syncs take
/// five.
#[tokio::test(start_paused = true)]
async fn writers_that_append_again_soon_share_their_syncs() {
    const WRITERS: usize = 10;
    const ROUNDS: usize = 60;
    let env = testing::env(3);
    let plan = Plan::new(env.clock.clone())
        .rule(Rule::new(Fault::Delay(Duration::from_millis(5))).on(Operation::Sync));
    let (log, _) = start(&env, Arc::new(Faulty::new(Arc::new(MemoryFs::new()), plan)), options()).await;
    let writers: Vec<_> = (0..WRITERS).map(|_| Acks::new()).collect();
    for (writer, acks) in writers.iter().cloned().enumerate() {
        let (log, clock) = (log.clone(), env.clock.clone());
        env.spawn(TaskClass::Service, async move {
            clock.sleep(Duration::from_millis(writer as u64 / 2)).await;
            for round in 1..=ROUNDS {
                log.append(edit(&region_name(writer), round as u64, b"value", &acks));
                acks.wait(round).await;
                clock.sleep(Duration::from_millis(1)).await;
            }
        });
    }
    for acks in &writers {
        acks.wait(ROUNDS).await;
    }
    let groups = log.statistics().groups as usize;
    assert!(groups < ROUNDS + ROUNDS / 10, "{groups}");
    // A single remaining writer does not wait for the others again and again.
    let acks = Acks::new();
    let began = env.clock.monotonic();
    for round in 1..=100 {
        log.append(edit(&region_name(WRITERS), round as u64, b"value", &acks));
        acks.wait(round).await;
    }
    let took = env.clock.monotonic() - began;
    assert!(took < Duration::from_millis(100 * 5 + 20), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn logs_are_replaced_by_size_age_and_request() {
    let env = testing::env(2);
    let memory = MemoryFs::new();
    let options = LogOptions { roll_bytes: 10_000, roll_period: Some(Duration::from_secs(60)), ..options() };
    let (log, _) = start(&env, Arc::new(memory.clone()), options).await;
    let acks = Acks::new();
    // Size.
    for seq_id in 1..=3 {
        log.append(edit(&region_name(1), seq_id, &[1; 4000], &acks));
        acks.wait(seq_id as usize).await;
    }
    env.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(log.log_count(), 2);
    // Age: only for a log that has entries.
    env.clock.sleep(Duration::from_secs(200)).await;
    assert_eq!(log.log_count(), 2);
    log.append(edit(&region_name(1), 4, b"value", &acks));
    env.clock.sleep(Duration::from_secs(100)).await;
    assert_eq!(log.log_count(), 3);
    // Request: edits appended before are in the old log.
    log.append(edit(&region_name(1), 5, b"value", &acks));
    log.roll().await.unwrap();
    assert_eq!(acks.committed(), [1, 2, 3, 4, 5]);
    let paths = logs(&memory, "WALs/s").await;
    assert_eq!(paths.len(), 4);
    let mut counts = Vec::new();
    for path in &paths {
        counts.push(read_all(&memory, path).await.unwrap().0.len());
    }
    assert_eq!(counts, [3, 1, 1, 0]);
    log.close().await;
    // The last log had no entries, so it is not needed.
    assert_eq!(logs(&memory, "WALs/s").await, paths[..3]);
    for path in &paths[..3] {
        assert_eq!(read_all(&memory, path).await.unwrap().1.ending, Ending::Trailer);
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_that_lacks_replicas_is_replaced_until_one_has_all() {
    let env = testing::env(4);
    let fs = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
    fs.set_missing_replicas(1);
    let (log, _) = start(&env, Arc::new(fs.clone()), options()).await;
    let (acks, mut written) = (Acks::new(), 0);
    let mut write = async || {
        written += 1;
        log.append(edit(&region_name(1), written, b"value", &acks));
        acks.wait(written as usize).await;
    };
    // A log without edits is not replaced.
    env.clock.sleep(Duration::from_secs(100)).await;
    assert_eq!(log.statistics().rolls, 0);
    write().await;
    env.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(log.statistics().rolls, 1);
    // Idle logs are replaced too. The age doubles with each log that lacks replicas.
    for (rolls, age_limit) in [(2, 20), (3, 40)] {
        write().await;
        env.clock.sleep(Duration::from_secs(age_limit - 2)).await;
        assert_eq!(log.statistics().rolls, rolls - 1, "before {age_limit} s");
        env.clock.sleep(Duration::from_secs(2)).await;
        assert_eq!(log.statistics().rolls, rolls, "after {age_limit} s");
    }
    fs.set_missing_replicas(0);
    write().await;
    env.clock.sleep(Duration::from_secs(82)).await;
    assert_eq!(log.statistics().rolls, 4);
    // The last log has all replicas.
    write().await;
    env.clock.sleep(Duration::from_secs(600)).await;
    assert_eq!(log.statistics().rolls, 4);
    assert_eq!(acks.committed(), [1, 2, 3, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn rolls_for_other_reasons_do_not_delay_the_replacement_of_a_log_that_lacks_replicas() {
    let env = testing::env(4);
    let fs = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
    fs.set_missing_replicas(1);
    let (log, _) = start(&env, Arc::new(fs.clone()), options()).await;
    let acks = Acks::new();
    for _ in 0..5 {
        log.roll().await.unwrap();
    }
    log.append(edit(&region_name(1), 1, b"value", &acks));
    acks.wait(1).await;
    env.clock.sleep(Duration::from_secs(9)).await;
    assert_eq!(log.statistics().rolls, 5);
    env.clock.sleep(Duration::from_secs(2)).await;
    assert_eq!(log.statistics().rolls, 6, "after 10 s");
}

#[tokio::test(start_paused = true)]
async fn a_roll_that_failed_is_not_retried_after_each_group() {
    for (roll_bytes, period) in [(1 << 20, Some(Duration::from_secs(60))), (10_000, None)] {
        let env = testing::env(14);
        let disk = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
        let options = LogOptions { roll_bytes, roll_period: period, ..options() };
        let (log, _) = start(&env, Arc::new(disk.clone()), options).await;
        let (acks, mut written) = (Acks::new(), 0);
        let mut write = async |value: &[u8]| {
            written += 1;
            log.append(edit(&region_name(1), written, value, &acks));
            acks.wait(written as usize).await;
        };
        disk.add(Rule::new(Fault::Fail).on(Operation::Create));
        write(&[1; 12_000]).await;
        env.clock.sleep(period.unwrap_or(Duration::ZERO) + Duration::from_millis(100)).await;
        assert_eq!(disk.faults(), 1);
        // Nine seconds, in which the log also becomes longer.
        for _ in 0..18 {
            write(&[1; 12_000]).await;
            env.clock.sleep(Duration::from_millis(500)).await;
        }
        assert_eq!((disk.faults(), log.statistics().rolls), (1, 0));
        env.clock.sleep(Duration::from_secs(2)).await;
        assert_eq!(disk.faults(), 2, "an idle log retries it too");
        disk.heal();
        env.clock.sleep(Duration::from_secs(11)).await;
        assert_eq!(log.statistics().rolls, 1);
    }
}

/// On HDFS, a creation waits for the NameNode.
#[tokio::test(start_paused = true)]
async fn commits_do_not_wait_for_the_next_file() {
    let env = testing::env(15);
    let memory = MemoryFs::new();
    let disk = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()));
    let options = LogOptions { roll_bytes: 10_000, ..options() };
    let (log, fatal) = start(&env, Arc::new(disk.clone()), options).await;
    let (acks, mut written) = (Acks::new(), 0);
    let mut write = async || {
        written += 1;
        log.append(edit(&region_name(1), written, &[1; 4000], &acks));
        acks.wait(written as usize).await;
    };
    let delay = Duration::from_secs(100);
    disk.add(Rule::new(Fault::Delay(delay)).on(Operation::Create));
    let began = env.clock.monotonic();
    for _ in 0..10 {
        write().await;
    }
    assert!(env.clock.monotonic() - began < Duration::from_secs(1));
    assert_eq!(log.statistics().rolls, 0);
    env.clock.sleep(delay + Duration::from_secs(1)).await;
    assert_eq!(log.statistics().rolls, 1, "an idle log is replaced as soon as the file exists");
    // A failure of the file in use needs another one at once. The other creation is not used.
    for _ in 0..3 {
        write().await;
    }
    disk.heal();
    disk.add(Rule::new(Fault::Fail).on(Operation::Sync).times(1));
    write().await;
    assert_eq!((log.statistics().rolls, log.statistics().failures), (2, 1));
    env.clock.sleep(delay * 2).await;
    assert_eq!((log.statistics().rolls, fatal.count()), (2, 0));
    let paths = logs(&memory, "WALs/s").await;
    assert_eq!(paths.len(), 3, "the file that was not used was removed: {paths:?}");
    let index = recovery::scan(&memory, &paths).await.unwrap();
    assert_eq!(index.region(&region_name(1)).unwrap().highest_seq_id, 14);
    log.close().await;
}

#[tokio::test(start_paused = true)]
async fn commits_do_not_wait_for_a_requested_roll() {
    let env = testing::env(15);
    let disk = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
    let (log, _) = start(&env, Arc::new(disk.clone()), options()).await;
    let acks = Acks::new();
    let delayed = || Rule::new(Fault::Delay(Duration::from_secs(100))).on(Operation::Create);
    disk.add(delayed());
    let mut roll = pin!(log.roll());
    assert!(env.timeout(Duration::from_secs(1), &mut roll).await.is_none());
    let began = env.clock.monotonic();
    log.append(edit(&region_name(1), 1, b"value", &acks));
    acks.wait(1).await;
    assert!(env.clock.monotonic() - began < Duration::from_secs(1));
    assert_eq!(log.statistics().rolls, 0);
    roll.await.unwrap();
    assert_eq!(log.statistics().rolls, 1);
    // A failure of the file in use replaces it too.
    let mut roll = pin!(log.roll());
    assert!(env.timeout(Duration::from_secs(1), &mut roll).await.is_none());
    disk.heal();
    disk.add(Rule::new(Fault::Fail).on(Operation::Sync).times(1));
    log.append(edit(&region_name(1), 2, b"value", &acks));
    roll.await.unwrap();
    acks.wait(2).await;
    assert_eq!((acks.committed(), log.statistics().rolls, log.statistics().failures), (vec![1, 2], 2, 1));
    // The end of the log ends the request.
    disk.add(delayed());
    let mut roll = pin!(log.roll());
    assert!(env.timeout(Duration::from_secs(1), &mut roll).await.is_none());
    log.close().await;
    assert!(matches!(roll.await, Err(Error::Closed)));
}

#[tokio::test(start_paused = true)]
async fn a_log_is_archived_when_its_last_region_is_flushed() {
    let env = testing::env(3);
    let memory = MemoryFs::new();
    let (log, _) = start(&env, Arc::new(memory.clone()), options()).await;
    let acks = Acks::new();
    log.append(edit(&region_name(1), 10, b"value", &acks));
    log.append(edit(&region_name(2), 5, b"value", &acks));
    log.roll().await.unwrap();
    log.append(edit(&region_name(1), 11, b"value", &acks));
    acks.wait(3).await;
    let before = names(&memory, "WALs/s").await;
    assert_eq!(before.len(), 2);
    log.record_flush(&region_name(1), 10);
    log.record_flush(&region_name(2), 4);
    env.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(names(&memory, "oldWALs").await, Vec::<String>::new());
    assert_eq!(log.regions_beyond(1), [region_name(2)]);
    log.record_flush(&region_name(2), 5);
    env.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(names(&memory, "oldWALs").await, before[..1]);
    assert_eq!(names(&memory, "WALs/s").await, before[1..]);
    // The move survives power loss.
    let image = memory.crash(&mut || 0);
    assert_eq!(names(&image, "oldWALs").await, before[..1]);
    assert_eq!(names(&image, "WALs/s").await, before[1..]);
}

#[tokio::test(start_paused = true)]
async fn logs_of_a_dead_server_are_adopted_and_removed_with_their_directory() {
    let env = testing::env(4);
    let memory = MemoryFs::new();
    let fs: Arc<dyn FileSystem> = Arc::new(memory.clone());
    let acks = Acks::new();
    {
        let (log, _) = start(&env, fs.clone(), options()).await;
        for seq_id in 1..=6 {
            log.append(edit(&region_name(seq_id as usize % 2), seq_id, b"value", &acks));
            acks.wait(seq_id as usize).await;
            if seq_id == 3 {
                log.roll().await.unwrap();
            }
        }
    }
    env.clock.sleep(Duration::from_secs(1)).await;
    let old = logs(&memory, "WALs/s").await;
    let index = recovery::scan(&*fs, &old).await.unwrap();
    let new = LogOptions { dir: FilePath::new("WALs/t"), prefix: "t".into(), ..options() };
    let (log, _) = start(&env, fs, new).await;
    log.adopt(index.old_logs());
    assert_eq!(log.log_count(), 3);
    assert_eq!(log.regions_beyond(1).len(), 2);
    log.record_flush(&region_name(0), 6);
    log.record_flush(&region_name(1), 3);
    env.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(logs(&memory, "WALs/s").await, old[1..]);
    log.forget_region(&region_name(1));
    env.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(memory.stat(&FilePath::new("WALs/s")).await.unwrap(), None, "its last log moved");
    assert_eq!(names(&memory, "oldWALs").await.len(), 2);
    assert_eq!(log.log_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_write_costs_a_file_and_no_edit() {
    for operation in [Operation::Sync, Operation::Append, Operation::Reserve] {
        for fault in [Fault::Fail, Fault::FailAfter, Fault::NoSpace, Fault::VolumeFull, Fault::Tear] {
            let env = testing::env(5);
            let memory = MemoryFs::new();
            let disk = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()));
            let options = LogOptions { reserve_bytes: 4096, ..options() };
            let (log, fatal) = start(&env, Arc::new(disk.clone()), options).await;
            let acks = Acks::new();
            log.append(edit(&region_name(1), 1, b"value", &acks));
            acks.wait(1).await;
            disk.add(Rule::new(fault).on(operation).times(1));
            // Larger than the reserved space, so that more is reserved.
            log.append(edit(&region_name(1), 2, &[2; 10_000], &acks));
            log.append(edit(&region_name(1), 3, b"value", &acks));
            acks.wait(3).await;
            assert_eq!(disk.faults(), 1, "{fault:?} {operation:?}");
            assert_eq!(acks.committed(), [1, 2, 3]);
            assert_eq!(fatal.count(), 0);
            // Reserved zeros only make a log faster, and an append that found no space is retried.
            let harmless = match operation {
                Operation::Reserve => [Fault::NoSpace, Fault::VolumeFull].contains(&fault),
                Operation::Append => fault == Fault::NoSpace,
                _ => false,
            };
            assert_eq!(log.statistics().failures, u64::from(!harmless), "{fault:?} {operation:?}");
            let paths = logs(&memory, "WALs/s").await;
            assert_eq!(paths.len(), if harmless { 1 } else { 2 });
            let index = recovery::scan(&memory, &paths).await.unwrap();
            assert_eq!(index.region(&region_name(1)).unwrap().highest_seq_id, 3);
        }
    }
}

/// Each new file may be on another full disk.
#[tokio::test(start_paused = true)]
async fn any_number_of_full_disks_costs_no_edit() {
    let env = testing::env(5);
    let memory = MemoryFs::new();
    let disk = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()));
    let (log, fatal) = start(&env, Arc::new(disk.clone()), options()).await;
    let acks = Acks::new();
    disk.add(Rule::new(Fault::VolumeFull).on(Operation::Append).times(20));
    log.append(edit(&region_name(1), 1, b"value", &acks));
    acks.wait(1).await;
    assert_eq!((disk.faults(), acks.committed()), (20, vec![1]));
    assert_eq!(fatal.count(), 0);
    let index = recovery::scan(&memory, &logs(&memory, "WALs/s").await).await.unwrap();
    assert_eq!(index.region(&region_name(1)).unwrap().highest_seq_id, 1);
}

/// The first file may be on a full disk too, and so may its replacement.
#[tokio::test(start_paused = true)]
async fn a_log_is_created_on_another_disk_if_its_disk_is_full() {
    for operation in [Operation::Append, Operation::Sync] {
        let env = testing::env(5);
        let memory = MemoryFs::new();
        let disk = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()));
        disk.add(Rule::new(Fault::VolumeFull).on(operation).times(3));
        let (log, fatal) = start(&env, Arc::new(disk.clone()), options()).await;
        assert_eq!(disk.faults(), 3);
        disk.add(Rule::new(Fault::VolumeFull).on(operation).times(3));
        log.roll().await.unwrap();
        assert_eq!((disk.faults(), fatal.count()), (6, 0));
        let acks = Acks::new();
        log.append(edit(&region_name(1), 1, b"value", &acks));
        acks.wait(1).await;
        log.close().await;
        assert_eq!(acks.committed(), [1]);
        let paths = logs(&memory, "WALs/s").await;
        assert_eq!(paths.len(), 1, "no file of a full disk remains: {paths:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_zeros_are_written_before_a_long_group() {
    let env = testing::env(5);
    let memory = MemoryFs::new();
    let disk = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()));
    let (log, _) = start(&env, Arc::new(disk.clone()), options()).await;
    let acks = Acks::new();
    disk.add(Rule::new(Fault::Fail).on(Operation::Reserve));
    log.append(edit(&region_name(1), 1, &[1; 100_000], &acks));
    acks.wait(1).await;
    assert_eq!((disk.faults(), log.statistics().failures), (0, 0));
    log.append(edit(&region_name(1), 2, b"value", &acks));
    acks.wait(2).await;
    assert_eq!(disk.faults(), 4, "one in each file: in the first, and in each new one");
}

#[tokio::test(start_paused = true)]
async fn failures_in_a_row_stop_the_log() {
    for operation in [Operation::Sync, Operation::Append] {
        let env = testing::env(6);
        let memory = MemoryFs::new();
        let disk = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()));
        let (log, fatal) = start(&env, Arc::new(disk.clone()), options()).await;
        let acks = Acks::new();
        log.append(edit(&region_name(1), 1, b"value", &acks));
        acks.wait(1).await;
        disk.add(Rule::new(Fault::Fail).on(operation));
        for seq_id in 2..=4 {
            log.append(edit(&region_name(1), seq_id, b"value", &acks));
        }
        acks.wait(4).await;
        // The log stays stopped when the disk recovers: what the disk holds is unknown.
        disk.heal();
        log.append(edit(&region_name(1), 5, b"value", &acks));
        acks.wait(5).await;
        assert_eq!(acks.committed(), [1]);
        assert_eq!(acks.failed(), 4);
        assert_eq!(fatal.count(), 1);
        assert_eq!(log.queued_bytes(), 0);
        assert!(log.roll().await.is_err());
        log.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_forced_edit_survives_a_power_loss_also_if_others_need_not() {
    let env = testing::env(10);
    let memory = MemoryFs::new();
    let options = LogOptions { durability: SyncLevel::Visible, reserve_bytes: 0, ..options() };
    let (log, _) = start(&env, Arc::new(memory.clone()), options).await;
    let acks = Acks::new();
    let edits_after_power_loss = async || {
        let disk = memory.crash(&mut || 0);
        let [path] = &logs(&disk, "WALs/s").await[..] else { panic!("one log") };
        read_all(&disk, path).await.unwrap().0.len()
    };
    log.append(edit(&region_name(1), 1, b"value", &acks));
    acks.wait(1).await;
    assert_eq!(edits_after_power_loss().await, 0);
    log.append(Edit { forced: true, ..edit(&region_name(1), 2, b"value", &acks) });
    acks.wait(2).await;
    assert_eq!(edits_after_power_loss().await, 2, "and all edits before it");
}

#[tokio::test(start_paused = true)]
async fn a_log_that_was_taken_over_stops_at_once() {
    let env = testing::env(7);
    let memory = MemoryFs::new();
    let disk = fs::shared::Shared::new(Arc::new(memory.clone()));
    let (log, fatal) = start(&env, Arc::new(disk), options()).await;
    let acks = Acks::new();
    log.append(edit(&region_name(1), 1, b"value", &acks));
    acks.wait(1).await;
    log.check_owned().await.unwrap();
    memory.rename(&options().dir, &FilePath::new("taken")).await.unwrap();
    assert!(matches!(log.check_owned().await, Err(Error::Fs(cause)) if fs::shared::is_taken_over(&cause)));
    log.append(edit(&region_name(1), 2, b"value", &acks));
    acks.wait(2).await;
    assert_eq!((acks.committed(), acks.failed(), fatal.count()), (vec![1], 1, 1));
    assert_eq!(log.statistics().failures, 0, "no new file was tried");
    assert!(matches!(log.roll().await, Err(Error::Stopped { cause }) if fs::shared::is_taken_over(&cause)));
}

#[tokio::test(start_paused = true)]
async fn a_roll_that_fails_leaves_the_log_in_use() {
    for operation in [Operation::Create, Operation::SyncDir, Operation::Append, Operation::Sync] {
        let env = testing::env(8);
        let memory = MemoryFs::new();
        let disk = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()));
        let (log, fatal) = start(&env, Arc::new(disk.clone()), options()).await;
        let acks = Acks::new();
        log.append(edit(&region_name(1), 1, b"value", &acks));
        acks.wait(1).await;
        env.clock.sleep(Duration::from_secs(1)).await;
        disk.add(Rule::new(Fault::NoSpace).on(operation).times(1));
        assert!(log.roll().await.is_err(), "{operation:?}");
        log.append(edit(&region_name(1), 2, b"value", &acks));
        acks.wait(2).await;
        assert_eq!(acks.committed(), [1, 2]);
        assert_eq!(fatal.count(), 0);
        log.roll().await.unwrap();
        env.clock.sleep(Duration::from_secs(1)).await;
        // The partly created log was removed.
        assert_eq!(logs(&memory, "WALs/s").await.len(), 2);
        let index = recovery::scan(&memory, &logs(&memory, "WALs/s").await).await.unwrap();
        assert_eq!(index.region(&region_name(1)).unwrap().entries, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_log_refuses() {
    let env = testing::env(9);
    let memory = MemoryFs::new();
    let (log, fatal) = start(&env, Arc::new(memory.clone()), options()).await;
    let acks = Acks::new();
    log.append(edit(&region_name(1), 1, b"value", &acks));
    log.close().await;
    log.append(edit(&region_name(1), 2, b"value", &acks));
    acks.wait(2).await;
    assert_eq!(acks.outcomes(), [Outcome::Committed(1), Outcome::Failed(2, "the log is closed".into())]);
    assert_eq!(fatal.count(), 0);
    assert!(log.roll().await.is_err());
    log.close().await;
    let path = logs(&memory, "WALs/s").await.remove(0);
    let (entries, tail) = read_all(&memory, &path).await.unwrap();
    assert_eq!((entries.len(), tail.ending), (1, Ending::Trailer));
}

#[tokio::test(start_paused = true)]
async fn an_edit_with_too_large_a_key_fails_separately() {
    let env = testing::env(10);
    let memory = MemoryFs::new();
    let (log, _) = start(&env, Arc::new(memory.clone()), options()).await;
    let acks = Acks::new();
    log.append(edit(&region_name(1), 1, b"value", &acks));
    log.append(Edit { table: vec![b't'; 2 << 20].into(), ..edit(&region_name(1), 2, b"value", &acks) });
    log.append(edit(&region_name(1), 3, b"value", &acks));
    acks.wait(3).await;
    assert_eq!(acks.committed(), [1, 3]);
    assert_eq!(read_all(&memory, &logs(&memory, "WALs/s").await[0]).await.unwrap().0.len(), 2);
}

/// A server that was killed right after it opened its regions leaves a log of markers only. The
/// next server archives that log when it adopts it, and must still open the regions. Found by
/// killing a server during its start.
#[tokio::test(start_paused = true)]
async fn a_region_is_read_although_a_log_of_its_markers_was_archived() {
    let env = testing::env(11);
    let memory = MemoryFs::new();
    let fs: Arc<dyn FileSystem> = Arc::new(memory.clone());
    let (log, _) = start(&env, fs.clone(), options()).await;
    let acks = Acks::new();
    log.append(edit(&region_name(1), 1, b"value", &acks));
    log.roll().await.unwrap();
    log.append(Edit { cells: marker_cells(&region_name(1), 2), ..edit(&region_name(1), 2, b"", &acks) });
    acks.wait(2).await;
    let paths = logs(&memory, "WALs/s").await;
    let index = Arc::new(recovery::scan(&*fs, &paths).await.unwrap());
    let new = LogOptions { dir: FilePath::new("WALs/t"), prefix: "t".into(), ..options() };
    let (next, _) = start(&env, fs.clone(), new).await;
    next.adopt(index.old_logs());
    env.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(logs(&memory, "WALs/s").await, paths[..1]);

    let mut reader = recovery::read_region(fs.clone(), index.clone(), &region_name(1));
    assert_eq!(reader.next().await.unwrap().unwrap().key.seq_id, 1);
    assert!(reader.next().await.unwrap().is_none());

    // A missing log with edits is an error.
    fs.delete(&paths[0]).await.unwrap();
    assert!(recovery::read_region(fs, index, &region_name(1)).next().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_missing_archive_directory_is_created() {
    let env = testing::env(15);
    let memory = MemoryFs::new();
    let (log, _) = start(&env, Arc::new(memory.clone()), options()).await;
    let acks = Acks::new();
    log.append(edit(&region_name(1), 1, b"value", &acks));
    acks.wait(1).await;
    log.roll().await.unwrap();
    let path = logs(&memory, "WALs/s").await.remove(0);
    memory.delete(&options().archive_dir).await.unwrap();
    log.record_flush(&region_name(1), 1);
    env.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(logs(&memory, "WALs/s").await.len(), 1);
    assert_eq!(logs(&memory, "oldWALs").await, [options().archive_dir.join(path.name())]);
}

/// A log that another region needs has edits of a region that was closed later. The close is needed
/// as long as these edits: they may be of a family that was deleted.
#[tokio::test(start_paused = true)]
async fn a_close_stays_as_long_as_the_edits_before_it() {
    let env = testing::env(15);
    let memory = MemoryFs::new();
    let fs: Arc<dyn FileSystem> = Arc::new(memory.clone());
    let (log, _) = start(&env, fs.clone(), options()).await;
    let (acks, cold, closed) = (Acks::new(), region_name(1), region_name(2));
    log.append(edit(&cold, 1, b"value", &acks));
    log.append(edit(&closed, 2, b"value", &acks));
    acks.wait(2).await;
    log.roll().await.unwrap();
    log.append(Edit { cells: close_cells(&closed, 3), ..edit(&closed, 3, b"", &acks) });
    acks.wait(3).await;
    log.forget_region(&closed);
    log.roll().await.unwrap();
    env.clock.sleep(Duration::from_secs(1)).await;
    let retained = logs(&memory, "WALs/s").await;
    assert_eq!(retained.len(), 3);
    let index = Arc::new(recovery::scan(&*fs, &retained).await.unwrap());
    let mut reader = recovery::read_region(fs.clone(), index.clone(), &closed);
    assert_eq!(reader.next().await.unwrap().unwrap().key.seq_id, 3, "only the close");
    assert!(reader.next().await.unwrap().is_none());
    // The next run needs the old logs only for the other region.
    let new = LogOptions { dir: FilePath::new("WALs/t"), prefix: "t".into(), ..options() };
    let (next, _) = start(&env, fs.clone(), new).await;
    next.adopt(index.old_logs());
    env.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(logs(&memory, "WALs/s").await, retained[..2], "the last one is empty");
    next.record_flush(&cold, 1);
    env.clock.sleep(Duration::from_secs(1)).await;
    assert!(memory.stat(&FilePath::new("WALs/s")).await.unwrap().is_none(), "the last log was archived");
}

#[tokio::test(start_paused = true)]
async fn a_close_stays_as_long_as_edits_before_it_that_were_not_acknowledged() {
    let env = testing::env(15);
    let memory = MemoryFs::new();
    let disk = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()));
    let (log, _) = start(&env, Arc::new(disk.clone()), options()).await;
    let (acks, cold, closed) = (Acks::new(), region_name(1), region_name(2));
    log.append(edit(&cold, 1, b"value", &acks));
    acks.wait(1).await;
    // The edit is in the first log and, acknowledged, in the second one.
    disk.add(Rule::new(Fault::FailAfter).on(Operation::Sync).times(1));
    log.append(edit(&closed, 2, b"value", &acks));
    acks.wait(2).await;
    log.append(Edit { cells: close_cells(&closed, 3), ..edit(&closed, 3, b"", &acks) });
    acks.wait(3).await;
    log.forget_region(&closed);
    log.roll().await.unwrap();
    env.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!((acks.committed(), log.statistics().failures), (vec![1, 2, 3], 1));
    let retained = logs(&memory, "WALs/s").await;
    assert_eq!(retained.len(), 3);
    assert!(read_all(&memory, &retained[0]).await.unwrap().0.iter().any(|entry| entry.key.seq_id == 2));
    log.record_flush(&cold, 1);
    env.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(logs(&memory, "WALs/s").await, retained[2..]);
}

#[tokio::test(start_paused = true)]
async fn a_long_entry_of_a_region_is_read_in_few_pieces() {
    let env = testing::env(13);
    let memory = MemoryFs::new();
    let (log, _) = start(&env, Arc::new(memory.clone()), options()).await;
    let (acks, value) = (Acks::new(), vec![7; 2 << 20]);
    log.append(edit(&region_name(1), 1, &value, &acks));
    acks.wait(1).await;
    let index = Arc::new(recovery::scan(&memory, &logs(&memory, "WALs/s").await).await.unwrap());
    let disk = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()));
    let mut reader = recovery::read_region(Arc::new(disk.clone()), index, &region_name(1));
    let entry = reader.next().await.unwrap().unwrap();
    assert!(entry.cells.len() > value.len());
    let reads = disk.calls(Operation::Read);
    assert!(reads <= 12, "{reads} reads: of the header, of 8 pieces, and of the whole entry");
}

/// A region was closed on one server and then opened on another one, whose log is older. In the
/// order of the logs, the close comes after the later edits.
#[tokio::test(start_paused = true)]
async fn a_close_hides_only_earlier_edits_also_if_another_server_had_the_region_later() {
    let env = testing::env(12);
    let fs: Arc<dyn FileSystem> = Arc::new(MemoryFs::new());
    let (acks, region) = (Acks::new(), region_name(1));
    let (second, _) = start(&env, fs.clone(), options()).await;
    env.clock.sleep(Duration::from_secs(1)).await;
    let on_first = LogOptions { dir: FilePath::new("WALs/t"), prefix: "t".into(), ..options() };
    let (first, _) = start(&env, fs.clone(), on_first).await;
    first.append(edit(&region, 1, b"value", &acks));
    first.append(edit(&region, 2, b"value", &acks));
    first.append(Edit { cells: close_cells(&region, 3), ..edit(&region, 3, b"", &acks) });
    acks.wait(3).await;
    second.append(edit(&region, 10, b"value", &acks));
    acks.wait(4).await;
    let (older, newer) = (logs(&*fs, "WALs/s").await, logs(&*fs, "WALs/t").await);
    for paths in [[older.clone(), newer.clone()].concat(), [newer, older].concat()] {
        let index = Arc::new(recovery::scan(&*fs, &paths).await.unwrap());
        assert_eq!(index.region(&region).unwrap().closed_at, 3);
        let mut reader = recovery::read_region(fs.clone(), index, &region);
        let mut read = Vec::new();
        while let Some(entry) = reader.next().await.unwrap() {
            read.push(entry.key.seq_id);
        }
        assert_eq!(read.iter().filter(|seq_id| **seq_id != 3).count(), 1, "{read:?}");
        assert!(read.contains(&10), "{read:?}");
    }
}

/// A table was dropped, and a snapshot of it cloned under the same name: its regions have the same
/// encoded names, and sequence ids from the snapshot on. This happened twice.
#[tokio::test(start_paused = true)]
async fn a_close_hides_no_later_edit_also_if_sequence_ids_restart() {
    let env = testing::env(14);
    let fs: Arc<dyn FileSystem> = Arc::new(MemoryFs::new());
    let (acks, region) = (Acks::new(), region_name(1));
    let (log, _) = start(&env, fs.clone(), options()).await;
    let put = |seq_id| log.append(edit(&region, seq_id, b"value", &acks));
    let close = |seq_id| {
        log.append(Edit { cells: close_cells(&region, seq_id), ..edit(&region, seq_id, b"", &acks) });
    };
    (1..=2).for_each(put);
    close(9);
    (3..=6).for_each(put);
    close(7);
    (4..=5).for_each(put);
    acks.wait(10).await;
    let index = Arc::new(recovery::scan(&*fs, &logs(&*fs, "WALs/s").await).await.unwrap());
    let mut reader = recovery::read_region(fs.clone(), index, &region);
    let mut read = Vec::new();
    while let Some(entry) = reader.next().await.unwrap() {
        read.push(entry.key.seq_id);
    }
    assert_eq!(read, [7, 4, 5], "the last close, and the edits after it");
}

/// The cells of a marker that a region was closed.
fn close_cells(region: &str, seq_id: u64) -> Bytes {
    in_block(&marked(region).close(seq_id, &[], None, 1_700_000_000_000))
}

/// The cells of a marker that a region was opened.
fn marker_cells(region: &str, seq_id: u64) -> Bytes {
    in_block(&marked(region).open(seq_id, &[], None, 1_700_000_000_000))
}

fn marked(region: &str) -> MarkedRegion {
    MarkedRegion {
        table: Bytes::from_static(b"t"),
        encoded: Bytes::copy_from_slice(region.as_bytes()),
        name: Bytes::from_static(b"t,,1"),
        start_key: Bytes::new(),
    }
}

fn in_block(marker: &KeyValue) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u32(marker.bytes().len() as u32);
    out.put_slice(marker.bytes());
    out.freeze()
}
