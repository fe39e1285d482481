//! Power loss at random moments. Whatever the disk retained of unsynced bytes, every edit that was
//! reported as committed is replayed, in order, and nothing that was not appended. With and without
//! failing disks.
//!
//! `WAL_CRASH_RUNS=5000` makes more runs; each gives about twenty images.

#![allow(clippy::unwrap_used)] // In a test a panic is the report.

mod support;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base::env::{Env, Random};
use base::{BoxFuture, testing};
use bytes::Bytes;
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use fs::{FilePath, FileReader, FileStatus, FileSystem, FileWriter, Purpose, SyncLevel};
use support::{Acks, cells, edit, options, region_name, start};
use wal::{Edit, Log, LogOptions, recovery};

const REGIONS: usize = 3;

/// What one run appended, and the outcomes that were reported, by region.
struct History {
    names: Vec<Arc<str>>,
    acks: Vec<Arc<Acks>>,
    /// Sequence id and cells of each logged edit, in order.
    appended: Vec<Vec<(u64, Bytes)>>,
    next_seq_id: Vec<u64>,
}

impl History {
    fn new() -> History {
        History {
            names: (0..REGIONS).map(region_name).collect(),
            acks: (0..REGIONS).map(|_| Acks::new()).collect(),
            appended: vec![Vec::new(); REGIONS],
            next_seq_id: vec![1; REGIONS],
        }
    }

    fn append(&mut self, log: &Log, random: &dyn Random) {
        let region = (random.next_u64() % REGIONS as u64) as usize;
        let seq_id = self.next_seq_id[region];
        self.next_seq_id[region] += 1 + random.next_u64() % 2;
        // Some are so long that their group exceeds the reserved space.
        let len = match random.next_u64() % 64 {
            0 => 60_000,
            1..4 => 5000,
            _ => 400,
        };
        let mut value = vec![0; (random.next_u64() % len) as usize];
        random.fill(&mut value);
        let cells = cells(&format!("row-{seq_id}"), &value);
        let logged = !random.next_u64().is_multiple_of(8);
        if logged {
            self.appended[region].push((seq_id, cells.clone()));
        }
        log.append(Edit { cells, logged, ..edit(&self.names[region], seq_id, b"", &self.acks[region]) });
    }

    /// For each region, the logged edits that were reported as committed.
    fn committed(&self) -> Vec<Vec<u64>> {
        let logged =
            |region: usize, seq_id: &u64| self.appended[region].iter().any(|(logged, _)| logged == seq_id);
        let of = |region: usize| {
            let committed = self.acks[region].committed();
            assert!(committed.is_sorted(), "edits are reported in order");
            committed.into_iter().filter(|seq_id| logged(region, seq_id)).collect()
        };
        (0..REGIONS).map(of).collect()
    }
}

/// What recovery replays, by region: sequence ids and cells.
type Replayed = HashMap<Arc<str>, Vec<(u64, Bytes)>>;

async fn replay(image: &MemoryFs) -> Result<Replayed, String> {
    let dir = FilePath::new("WALs/s");
    let paths = recovery::logs_in(image, &dir).await.map_err(|error| error.to_string())?;
    let index = recovery::scan(image, &paths).await.map_err(|error| error.to_string())?;
    let index = Arc::new(index);
    let mut replayed = Replayed::new();
    for (name, region) in index.regions() {
        let mut reader = recovery::read_region(Arc::new(image.clone()), index.clone(), name);
        let mut entries = Vec::new();
        while let Some(entry) = reader.next().await.map_err(|error| error.to_string())? {
            entries.push((entry.key.seq_id, entry.cells));
        }
        if entries.len() as u64 != region.entries {
            return Err(format!("{} entries of {} found", entries.len(), region.entries));
        }
        replayed.insert(name.clone(), entries);
    }
    Ok(replayed)
}

/// Returns what is wrong with an image, if anything.
async fn check(history: &History, committed: &[Vec<u64>], image: &MemoryFs) -> Result<(), String> {
    let replayed = replay(image).await?;
    for (region, committed) in committed.iter().enumerate() {
        let entries = replayed.get(&history.names[region]).map_or(&[][..], Vec::as_slice);
        let mut expected = history.appended[region].iter();
        let mut last = 0;
        for (seq_id, cells) in entries {
            if *seq_id <= last {
                // Appended again after a failure: must be the same edit.
                let first = history.appended[region].iter().find(|(appended, _)| appended == seq_id);
                if first.is_none_or(|(_, appended)| appended != cells) {
                    return Err(format!("edit {seq_id} came twice, with different cells"));
                }
                continue;
            }
            match expected.next() {
                Some((appended, same)) if appended == seq_id && same == cells => last = *seq_id,
                other => {
                    return Err(format!(
                        "edit {seq_id} came where {:?} was expected",
                        other.map(|(seq_id, _)| seq_id)
                    ));
                }
            }
        }
        let newest = committed.last().copied().unwrap_or(0);
        if newest > last {
            return Err(format!("edit {newest} was committed, but the last replayed one is {last}"));
        }
    }
    // What was replayed once is replayed after the next crash too.
    let again = replay(&image.crash(&mut || 0)).await?;
    if again != replayed {
        return Err("a second power loss changed what is replayed".into());
    }
    Ok(())
}

/// Waits for a random time, so that the log reaches any of its steps.
async fn pause(env: &Env) {
    env.clock.sleep(Duration::from_micros(env.random.next_u64() % 8000)).await;
}

fn some_options(random: &dyn Random) -> LogOptions {
    let pick = |choices: [u64; 3]| choices[(random.next_u64() % 3) as usize];
    LogOptions {
        roll_bytes: pick([3_000, 20_000, 1 << 20]),
        reserve_bytes: pick([0, 4096, 50_000]),
        group_bytes: pick([1, 2000, 1 << 20]),
        ..options()
    }
}

/// One run of a log over `disk`, with crash images of `memory`, the file system below it. Returns
/// the number of images, or what is wrong with one.
async fn run(env: &Env, memory: &MemoryFs, disk: Arc<dyn FileSystem>, stops: bool) -> Result<u64, String> {
    let (log, fatal) = start(env, disk, some_options(&*env.random)).await;
    let mut history = History::new();
    let mut images = 0;
    for _ in 0..20 {
        for _ in 0..env.random.next_u64() % 12 {
            history.append(&log, &*env.random);
        }
        if env.random.next_u64().is_multiple_of(8) {
            let _ = env.timeout(Duration::from_millis(3), log.roll()).await;
        }
        pause(env).await;
        let committed = history.committed();
        // One in four images is that of a killed process: it holds all that was written.
        let killed = env.random.next_u64().is_multiple_of(4);
        let image = memory.crash(&mut || if killed { 1 } else { env.random.next_u64() });
        check(&history, &committed, &image).await?;
        images += 1;
    }
    for region in 0..REGIONS {
        let appended = history.next_seq_id[region];
        assert!(history.acks[region].outcomes().len() as u64 <= appended);
    }
    log.close().await;
    if log.queued_bytes() != 0 {
        return Err(format!("{} bytes of edits were never reported", log.queued_bytes()));
    }
    assert!(stops || fatal.count() == 0, "one failure does not stop a log");
    check(&history, &history.committed(), &memory.crash(&mut || env.random.next_u64())).await?;
    Ok(images + 1)
}

fn runs(default: u64) -> u64 {
    std::env::var("WAL_CRASH_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(default)
}

/// Delays half of the calls, so that images are taken in the middle of groups.
fn slow(env: &Env) -> Plan {
    Plan::new(env.clock.clone())
        .rule(Rule::new(Fault::Delay(Duration::from_millis(1))).one_in(2, env.random.clone()))
}

#[tokio::test(start_paused = true)]
async fn no_committed_edit_is_lost_to_power_loss() {
    let mut images = 0;
    for seed in 0..runs(150) {
        let env = testing::env(seed);
        let memory = MemoryFs::new();
        let disk = Arc::new(Faulty::new(Arc::new(memory.clone()), slow(&env)));
        images +=
            run(&env, &memory, disk, false).await.unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
    assert!(images > 1000);
}

#[tokio::test(start_paused = true)]
async fn no_committed_edit_is_lost_to_a_failing_disk_and_power_loss() {
    let operations = [
        Operation::Sync,
        Operation::Append,
        Operation::Create,
        Operation::SyncDir,
        Operation::Reserve,
        Operation::Rename,
    ];
    let faults = [Fault::Fail, Fault::FailAfter, Fault::NoSpace, Fault::Tear];
    let mut met = 0;
    for seed in 0..runs(200) {
        let env = testing::env(1_000_000 + seed);
        let memory = MemoryFs::new();
        let pick = |len: usize| (env.random.next_u64() % len as u64) as usize;
        let (operation, fault) = (operations[pick(operations.len())], faults[pick(faults.len())]);
        let times = if seed % 2 == 0 { 1 } else { 1 + pick(4) as u64 };
        // The first file must be created without a fault.
        let rule = Rule::new(fault).on(operation).at("/s.").after(3 + pick(30) as u64).times(times);
        let rule = if operation == Operation::SyncDir {
            Rule::new(fault).on(operation).at("WALs/s").after(1 + pick(4) as u64).times(times)
        } else {
            rule
        };
        let disk = Arc::new(Faulty::new(Arc::new(memory.clone()), slow(&env)));
        // The first rule that matches a call applies, so the fault goes before the delays.
        let disk = Arc::new(Faulty::new(disk, Plan::new(env.clock.clone()).rule(rule)));
        let ran = run(&env, &memory, disk.clone(), times > 1).await;
        ran.unwrap_or_else(|wrong| panic!("seed {seed}, {fault:?} {operation:?}: {wrong}"));
        met += disk.faults();
    }
    assert!(met > 50, "{met} faults met");
}

/// A disk that reports syncs without performing them. A log on it behaves like one that
/// acknowledges before it syncs.
struct UnsyncedFs(MemoryFs);

struct UnsyncedWriter(Box<dyn FileWriter>);

impl FileWriter for UnsyncedWriter {
    fn path(&self) -> &FilePath {
        self.0.path()
    }
    fn len(&self) -> u64 {
        self.0.len()
    }
    fn append(&mut self, bytes: Bytes) -> BoxFuture<'_, fs::Result<()>> {
        self.0.append(bytes)
    }
    fn append_with_end(&mut self, bytes: Bytes, content_len: usize) -> BoxFuture<'_, fs::Result<()>> {
        self.0.append_with_end(bytes, content_len)
    }
    fn sync(&mut self, _reach: SyncLevel) -> BoxFuture<'_, fs::Result<()>> {
        Box::pin(async { Ok(()) })
    }
    fn reserve(&mut self, bytes: u64) -> BoxFuture<'_, fs::Result<()>> {
        self.0.reserve(bytes)
    }
    fn close(self: Box<Self>) -> BoxFuture<'static, fs::Result<()>> {
        self.0.close()
    }
}

impl FileSystem for UnsyncedFs {
    fn create_for<'a>(
        &'a self,
        path: &'a FilePath,
        purpose: &'a Purpose,
    ) -> BoxFuture<'a, fs::Result<Box<dyn FileWriter>>> {
        Box::pin(async move {
            let writer = self.0.create_for(path, purpose).await?;
            Ok(Box::new(UnsyncedWriter(writer)) as Box<dyn FileWriter>)
        })
    }
    fn open<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, fs::Result<Arc<dyn FileReader>>> {
        self.0.open(path)
    }
    fn rename<'a>(&'a self, from: &'a FilePath, to: &'a FilePath) -> BoxFuture<'a, fs::Result<()>> {
        self.0.rename(from, to)
    }
    fn delete<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, fs::Result<()>> {
        self.0.delete(path)
    }
    fn stat<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, fs::Result<Option<FileStatus>>> {
        self.0.stat(path)
    }
    fn list<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, fs::Result<Vec<FileStatus>>> {
        self.0.list(dir)
    }
    fn make_dirs<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, fs::Result<()>> {
        self.0.make_dirs(dir)
    }
    fn sync_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, fs::Result<()>> {
        self.0.sync_dir(dir)
    }
    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, fs::Result<fs::Fence>> {
        self.0.fence(path)
    }
}

/// Checks the check: it must detect the losses of a log that acknowledges before it syncs.
#[tokio::test(start_paused = true)]
async fn a_log_that_reports_before_it_syncs_is_caught() {
    let mut caught = 0;
    for seed in 0..30 {
        let env = testing::env(2_000_000 + seed);
        let memory = MemoryFs::new();
        caught += u64::from(run(&env, &memory, Arc::new(UnsyncedFs(memory.clone())), false).await.is_err());
    }
    assert!(caught >= 25, "{caught} of 30 runs caught");
}
