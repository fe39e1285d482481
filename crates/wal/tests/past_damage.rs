//! Reading past damage: everything before and after it is recovered, and possible losses are
//! reported by region.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

mod support;

use std::sync::Arc;
use std::time::Duration;

use base::testing;
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use support::{Acks, edit, logs, options, read_all, region_name, start};
use wal::recovery::{self, LogIndex, Loss};
use wal::{Ending, Error};

const EDITS: u64 = 40;

/// A log of two regions with alternating edits, as a killed process leaves it, and the offsets of
/// its entries.
async fn two_regions() -> (MemoryFs, FilePath, Vec<u64>) {
    let env = testing::env(3);
    let memory = MemoryFs::new();
    let (log, _) = start(&env, Arc::new(memory.clone()), options()).await;
    let acks = [Acks::new(), Acks::new()];
    for seq_id in 1..=EDITS {
        for (region, acks) in acks.iter().enumerate() {
            log.append(edit(&region_name(region), seq_id, &vec![7; 50 + seq_id as usize], acks));
            acks.wait(seq_id as usize).await;
        }
    }
    // The idle mark states that all of it is durable.
    env.clock.sleep(Duration::from_secs(1)).await;
    let path = logs(&memory, "WALs/s").await.remove(0);
    let (entries, _) = read_all(&memory, &path).await.unwrap();
    (memory, path, entries.iter().map(|entry| entry.offset).collect())
}

fn changed(memory: &MemoryFs, path: &FilePath, change: impl FnOnce(&mut Vec<u8>)) -> MemoryFs {
    let mut bytes = memory.contents(path).unwrap();
    change(&mut bytes);
    let copy = MemoryFs::new();
    copy.put(path, bytes);
    copy
}

async fn seq_ids(fs: &MemoryFs, index: &Arc<LogIndex>, region: usize) -> Vec<u64> {
    let mut reader = recovery::read_region(Arc::new(fs.clone()), index.clone(), &region_name(region));
    let mut found = Vec::new();
    while let Some(entry) = reader.next().await.unwrap() {
        found.push(entry.key.seq_id);
    }
    found
}

#[tokio::test(start_paused = true)]
async fn a_flipped_byte_costs_one_entry_of_one_region() {
    let (memory, path, offsets) = two_regions().await;
    let paths = std::slice::from_ref(&path);
    // Entry 20 is edit 11 of the first region.
    for at in offsets[20]..offsets[21] {
        let damaged = changed(&memory, &path, |bytes| bytes[at as usize] ^= 0x10);
        assert!(matches!(recovery::scan(&damaged, paths).await, Err(Error::Damaged { .. })), "byte {at}");
        let index = Arc::new(recovery::scan_past_damage(&damaged, paths).await.unwrap());
        let [damage] = index.damaged_parts() else { panic!("byte {at}: {:?}", index.damaged_parts()) };
        assert_eq!((damage.offset, damage.resumed_at), (offsets[20], Some(offsets[21])), "byte {at}");
        let mut expected: Vec<u64> = (1..=EDITS).collect();
        assert_eq!(seq_ids(&damaged, &index, 1).await, expected, "byte {at}");
        expected.retain(|seq_id| *seq_id != 11);
        assert_eq!(seq_ids(&damaged, &index, 0).await, expected, "byte {at}");
        let lost = Loss { above: 10, below: Some(12) };
        assert_eq!(damage.loss_of(&region_name(0), 0), Some(lost), "byte {at}");
        assert_eq!(damage.loss_of(&region_name(0), 11), None, "byte {at}: it is in a file");
        assert_eq!(damage.loss_of(&region_name(1), 0), None, "byte {at}: no id of it is missing");
    }
}

#[tokio::test(start_paused = true)]
async fn several_lost_entries_are_identified_by_their_neighbors() {
    let (memory, path, offsets) = two_regions().await;
    let (from, to) = (offsets[21] as usize + 3, offsets[25] as usize - 1);
    let damaged = changed(&memory, &path, |bytes| bytes[from..to].fill(0));
    let index = Arc::new(recovery::scan_past_damage(&damaged, std::slice::from_ref(&path)).await.unwrap());
    let [damage] = index.damaged_parts() else { panic!("{:?}", index.damaged_parts()) };
    assert_eq!((damage.offset, damage.resumed_at), (offsets[21], Some(offsets[25])));
    assert_eq!(damage.loss_of(&region_name(0), 0), Some(Loss { above: 11, below: Some(14) }));
    assert_eq!(damage.loss_of(&region_name(0), 12), Some(Loss { above: 12, below: Some(14) }));
    assert_eq!(damage.loss_of(&region_name(0), 13), None);
    assert_eq!(damage.loss_of(&region_name(1), 0), Some(Loss { above: 10, below: Some(13) }));
    // A region without entries may have lost some there. Whether its files hold all its edits is
    // unknown.
    assert_eq!(damage.loss_of(&region_name(2), 5), Some(Loss { above: 5, below: None }));
    assert_eq!(seq_ids(&damaged, &index, 0).await.len(), EDITS as usize - 2);
    assert_eq!(seq_ids(&damaged, &index, 1).await.len(), EDITS as usize - 2);
}

#[tokio::test(start_paused = true)]
async fn a_log_without_a_header_is_all_damage() {
    let (memory, path, _) = two_regions().await;
    let damaged = changed(&memory, &path, |bytes| bytes[0] ^= 1);
    let index = recovery::scan_past_damage(&damaged, std::slice::from_ref(&path)).await.unwrap();
    let [damage] = index.damaged_parts() else { panic!("{:?}", index.damaged_parts()) };
    assert_eq!((damage.offset, damage.resumed_at), (0, None));
    assert_eq!(damage.loss_of(&region_name(0), 7), Some(Loss { above: 7, below: None }));
    assert_eq!(index.regions().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn entries_in_client_values_are_not_read_as_entries() {
    let (memory, path, offsets) = two_regions().await;
    let bytes = memory.contents(&path).unwrap();
    let copied = bytes[offsets[0] as usize..offsets[30] as usize].to_vec();
    let env = testing::env(4);
    let memory = MemoryFs::new();
    let (log, _) = start(&env, Arc::new(memory.clone()), options()).await;
    let acks = Acks::new();
    for seq_id in 1..=3 {
        log.append(edit(&region_name(5), seq_id, &copied.repeat(20), &acks));
    }
    acks.wait(3).await;
    env.clock.sleep(Duration::from_secs(1)).await;
    let path = logs(&memory, "WALs/s").await.remove(0);
    let (entries, _) = read_all(&memory, &path).await.unwrap();
    let damaged = changed(&memory, &path, |bytes| bytes[entries[1].offset as usize + 60] ^= 1);
    let index = recovery::scan_past_damage(&damaged, std::slice::from_ref(&path)).await.unwrap();
    let [damage] = index.damaged_parts() else { panic!("{:?}", index.damaged_parts()) };
    assert_eq!(damage.resumed_at, Some(entries[2].offset));
    assert_eq!(index.region(&region_name(5)).unwrap().entries, 2);
}

#[tokio::test(start_paused = true)]
async fn logs_are_recorded_and_a_log_that_lost_its_end_is_shorter() {
    let env = testing::env(5);
    let memory = MemoryFs::new();
    let record = FilePath::new("logs/record");
    let options = wal::LogOptions { record: Some(record.clone()), ..options() };
    let (log, _) = start(&env, Arc::new(memory.clone()), options).await;
    let acks = Acks::new();
    for seq_id in 1..=100 {
        log.append(edit(&region_name(1), seq_id, &[7; 100], &acks));
        acks.wait(seq_id as usize).await;
    }
    env.clock.sleep(Duration::from_secs(3)).await;
    let path = logs(&memory, "WALs/s").await.remove(0);
    let (entries, tail) = read_all(&memory, &path).await.unwrap();
    let recorded = wal::record::read(&memory, &record).await.unwrap();
    assert_eq!(recorded.iter().map(|log| (&log.path, log.bytes)).collect::<Vec<_>>(), [(&path, tail.end)]);
    // Zeroes the last 4 KiB that were written, and the marks after them.
    let from = tail.end as usize - 4096;
    let zeroed = changed(&memory, &path, |bytes| bytes[from..].fill(0));
    let (left, tail) = read_all(&zeroed, &path).await.unwrap();
    assert!(left.len() < entries.len() && recorded[0].bytes > tail.end);
    assert!(matches!(tail.ending, Ending::Torn(_)), "a killed process leaves an end mark: {tail:?}");
    assert!(zeroed.stat(&path).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn recorded_lengths_may_be_old_but_the_set_of_logs_is_current() {
    const AGE: Duration = Duration::from_secs(60);
    let env = testing::env(5);
    let memory = MemoryFs::new();
    let record = FilePath::new("logs/record");
    let options = wal::LogOptions { record: Some(record.clone()), record_age: AGE, ..options() };
    let (log, _) = start(&env, Arc::new(memory.clone()), options).await;
    let acks = Acks::new();
    let recorded_after = async |seq_id: u64, time: Duration| -> Vec<u64> {
        log.append(edit(&region_name(1), seq_id, &[7; 100], &acks));
        acks.wait(seq_id as usize).await;
        env.clock.sleep(time).await;
        let recorded = wal::record::read(&memory, &record).await.unwrap();
        recorded.iter().map(|log| log.bytes).collect()
    };
    let first = recorded_after(1, Duration::from_secs(3)).await;
    assert_eq!(recorded_after(2, Duration::from_secs(3)).await, first, "the lengths are not old yet");
    let second = recorded_after(3, AGE).await;
    assert!(second[0] > first[0], "{second:?} {first:?}");
    log.append(edit(&region_name(1), 4, &[7; 100], &acks));
    log.roll().await.unwrap();
    env.clock.sleep(Duration::from_secs(2)).await;
    let recorded = wal::record::read(&memory, &record).await.unwrap();
    let (_, tail) = read_all(&memory, &recorded[0].path).await.unwrap();
    assert_eq!((recorded.len(), recorded[0].bytes), (2, tail.end), "a new log is recorded soon");
}

#[tokio::test]
async fn malformed_cells_of_a_log_without_checksums_are_found() {
    let (whole, path) = (include_bytes!("vectors/wal-plain.wal"), FilePath::new("WALs/s/log"));
    let memory = MemoryFs::new();
    memory.put(&path, &whole[..]);
    let (entries, _) = read_all(&memory, &path).await.unwrap();
    for entry in &entries {
        // The first cell's length of its row.
        let at = entry.end as usize - entry.cells.len() + 12;
        let damaged = changed(&memory, &path, |bytes| bytes[at] = 0xff);
        let index = recovery::scan_past_damage(&damaged, std::slice::from_ref(&path)).await.unwrap();
        let [damage] = index.damaged_parts() else { panic!("{:?}", index.damaged_parts()) };
        assert_eq!((damage.offset, damage.resumed_at), (entry.offset, Some(entry.end)));
    }
    assert!(entries.len() > 3, "the log was read");
}

/// A log for each region, with `edits` edits of 100 kB. Reads of the second log meet the fault.
async fn one_log_per_region(edits: u64, fault: Rule) -> (Faulty, Vec<FilePath>) {
    let env = testing::env(6);
    let memory = MemoryFs::new();
    let (log, _) = start(&env, Arc::new(memory.clone()), options()).await;
    for region in 0..3 {
        let acks = Acks::new();
        for seq_id in 1..=edits {
            log.append(edit(&region_name(region), seq_id, &[7; 100_000], &acks));
        }
        acks.wait(edits as usize).await;
        log.roll().await.unwrap();
    }
    let paths = logs(&memory, "WALs/s").await;
    let faulty = Faulty::new(Arc::new(memory), Plan::new(env.clock.clone()));
    faulty.add(fault.on(Operation::Read).at(paths[1].name()));
    (faulty, paths)
}

#[tokio::test(start_paused = true)]
async fn a_log_that_cannot_be_read_is_damage_of_this_log_only() {
    let (faulty, paths) = one_log_per_region(1, Rule::new(Fault::Fail)).await;
    let refused = recovery::scan_past_damage(&faulty, &paths).await.map(drop);
    assert!(matches!(refused, Err(Error::Fs(_))), "{refused:?}");
    let index = recovery::scan_past_failed_reads(&faulty, &paths).await.unwrap();
    let [damage] = index.damaged_parts() else { panic!("{:?}", index.damaged_parts()) };
    assert_eq!((&damage.file, damage.offset, damage.resumed_at), (&paths[1], 0, None));
    let is_indexed = |region| index.region(&region_name(region)).is_some();
    assert_eq!([0, 1, 2].map(is_indexed), [true, false, true]);
}

#[tokio::test(start_paused = true)]
async fn the_entries_before_a_failed_read_are_recovered() {
    // The header is read twice, and the next read has the first entries.
    let fault = Rule::new(Fault::Fail).after(3).times(1);
    let (faulty, paths) = one_log_per_region(9, fault).await;
    let index = Arc::new(recovery::scan_past_failed_reads(&faulty, &paths).await.unwrap());
    let [damage] = index.damaged_parts() else { panic!("{:?}", index.damaged_parts()) };
    assert_eq!((&damage.file, damage.resumed_at), (&paths[1], None));
    let mut reader = recovery::read_region(Arc::new(faulty), index.clone(), &region_name(1));
    let (mut last, mut end) = (0, 0);
    while let Some(entry) = reader.next().await.unwrap() {
        (last, end) = (entry.key.seq_id, entry.end);
    }
    assert!((1..9).contains(&last), "a piece has some of the entries: {last}");
    assert_eq!(damage.offset, end);
    assert_eq!(damage.loss_of(&region_name(1), 0), Some(Loss { above: last, below: None }));
    assert_eq!(index.region(&region_name(2)).unwrap().entries, 9);
}

#[tokio::test(start_paused = true)]
async fn a_scan_reads_each_entry_once() {
    let (faulty, paths) = one_log_per_region(9, Rule::new(Fault::Delay(Duration::ZERO))).await;
    let path = &paths[1];
    let bytes = faulty.open(path).await.unwrap().len();
    recovery::scan(&faulty, std::slice::from_ref(path)).await.unwrap();
    // Each read has two entries, of 100 kB each. The header is read twice.
    assert!(faulty.calls(Operation::Read) <= 2 + bytes.div_ceil(200_000) + 1, "{bytes} bytes");
}

/// The sequence ids of a region's entries.
async fn seq_ids_of(fs: Arc<dyn FileSystem>, index: &Arc<LogIndex>, region: &str) -> Vec<u64> {
    let mut reader = recovery::read_region(fs, index.clone(), region);
    let mut found = Vec::new();
    while let Some(entry) = reader.next().await.unwrap() {
        found.push(entry.key.seq_id);
    }
    found
}

/// A log of HBase is read from its trailer, which may be in another block than the entries. `opens`
/// is how often a scan opens this log.
async fn recovered_without_a_trailer(whole: &'static [u8], opens: u64) {
    let (env, memory, path) = (testing::env(7), MemoryFs::new(), FilePath::new("WALs/s/log"));
    memory.put(&path, whole);
    let (entries, tail) = read_all(&memory, &path).await.unwrap();
    let (start, end) = (entries[0].offset as usize, tail.end as usize);
    // A short log is read as a whole with its header.
    let long = [&whole[..start], &whole[start..end].repeat(80)[..], &whole[end..]].concat();
    memory.put(&path, long);
    let paths = std::slice::from_ref(&path);
    let (_, tail) = read_all(&memory, &path).await.unwrap();
    let intact = Arc::new(recovery::scan(&memory, paths).await.unwrap());
    // An open reads the header, then the trailer. A rule does not count the faults of earlier ones.
    let failing = |opens: u64| {
        let faulty = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()));
        for open in 1..=opens {
            faulty.add(Rule::new(Fault::Fail).on(Operation::Read).after(open).times(1));
        }
        faulty
    };
    let refused = recovery::scan_past_damage(&failing(opens), paths).await.map(drop);
    assert!(matches!(refused, Err(Error::Fs(_))), "{refused:?}");
    let faulty = failing(opens);
    let index = Arc::new(recovery::scan_past_failed_reads(&faulty, paths).await.unwrap());
    assert_eq!(faulty.faults(), opens);
    let [damage] = index.damaged_parts() else { panic!("{:?}", index.damaged_parts()) };
    assert_eq!((damage.offset, damage.resumed_at), (tail.end, None));
    assert!(intact.regions().count() > 0 && intact.regions().count() == index.regions().count());
    for (region, _) in intact.regions() {
        let expected = seq_ids_of(Arc::new(memory.clone()), &intact, region).await;
        assert_eq!(seq_ids_of(Arc::new(failing(1)), &index, region).await, expected, "{region}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_plain_log_is_recovered_without_its_trailer() {
    recovered_without_a_trailer(include_bytes!("vectors/wal-plain.wal"), 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_compressed_log_is_recovered_without_its_trailer() {
    recovered_without_a_trailer(include_bytes!("vectors/wal-dict-compressed.wal"), 3).await;
}
