use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::env::{Env, TaskClass};
use bytes::Bytes;
use tokio::task::JoinHandle;

use super::*;
use crate::faulty::{Fault, Faulty, Operation, Plan, Rule};
use crate::memory::MemoryFs;
use crate::paced::{Device, PacedDevice, PacedFs};
use crate::{AccessPattern, FileWriter, Purpose, Role, SyncLevel, Traffic};

const MIB: usize = 1 << 20;
const MS: Duration = Duration::from_millis(1);

/// A scheduled file system on a paced device, in virtual time.
struct Bench {
    env: Env,
    device: Arc<PacedDevice>,
    fs: Arc<ScheduledFs>,
    file: FilePath,
    // Bytes that the tasks have read or written, by class.
    bytes: Arc<[AtomicU64; IoClass::ALL.len()]>,
}

impl Bench {
    fn new(model: Device, limits: DeviceClass) -> Bench {
        let env = base::testing::env(1);
        let memory = Arc::new(MemoryFs::new());
        let file = FilePath::new("f");
        memory.put(&file, vec![7; 64 * MIB]);
        let device = PacedDevice::new(model);
        let paced = Arc::new(PacedFs::new(memory, &env, device.clone()));
        let fs = Arc::new(ScheduledFs::new(paced, DeviceQueue::new(limits, env.clock.clone())));
        Bench { env, device, fs, file, bytes: Arc::default() }
    }

    fn hdd() -> Bench {
        Bench::new(Device::hdd(), DeviceClass::hdd())
    }

    fn now(&self) -> Duration {
        self.env.clock.monotonic()
    }

    async fn sleep(&self, duration: Duration) {
        self.env.clock.sleep(duration).await;
    }

    /// A task that reads pieces of the file at random, one after another, until it is aborted.
    fn reading(&self, class: IoClass, piece: usize, seed: u64) -> JoinHandle<()> {
        let (fs, file, bytes) = (self.fs.clone(), self.file.clone(), self.bytes.clone());
        self.env.spawn(TaskClass::Service, async move {
            let reader = class.reader(fs.open(&file).await.unwrap());
            let pieces = (64 * MIB / piece) as u64;
            for read in 0_u64.. {
                let at = (seed * 7 + read * 1009) % pieces * piece as u64;
                reader.read_at(at, piece).await.unwrap();
                bytes[class.index()].fetch_add(piece as u64, Relaxed);
            }
        })
    }

    /// A task that writes files of 8 MiB with appends of `piece` bytes, and deletes them.
    fn writing(&self, class: IoClass, piece: usize, seed: u64) -> JoinHandle<()> {
        let (fs, bytes) = (self.fs.clone(), self.bytes.clone());
        self.env.spawn(TaskClass::Service, async move {
            let path = FilePath::new(&format!("{class:?}-{seed}"));
            let piece = Bytes::from(vec![1; piece]);
            let purpose = Purpose::of(match class {
                IoClass::Compaction => Role::MinorCompaction,
                IoClass::Move => Role::Moved,
                _ => Role::Flush,
            });
            assert_eq!(purpose.class(), class);
            loop {
                let mut writer = fs.create_for(&path, &purpose).await.unwrap();
                while writer.len() < 8 << 20 {
                    writer.append(piece.clone()).await.unwrap();
                    bytes[class.index()].fetch_add(piece.len() as u64, Relaxed);
                }
                fs.delete(&path).await.unwrap();
            }
        })
    }

    fn compactions(&self, tasks: u64) -> Vec<JoinHandle<()>> {
        (0..tasks)
            .flat_map(|seed| {
                [self.reading(IoClass::Compaction, MIB, seed), self.writing(IoClass::Compaction, MIB, seed)]
            })
            .collect()
    }

    async fn log(&self) -> Box<dyn FileWriter> {
        self.fs.create(&FilePath::new("log"), AccessPattern::Log).await.unwrap()
    }

    /// Median and maximum time of `commits` synced appends to a log.
    async fn commit_latency(&self, log: &mut dyn FileWriter, commits: usize) -> (Duration, Duration) {
        let mut times = Vec::new();
        for _ in 0..commits {
            self.sleep(17 * MS).await;
            let begun = self.now();
            log.append_and_sync(Bytes::from(vec![1; 4096]), 4096, SyncLevel::Disk).await.unwrap();
            times.push(self.now() - begun);
        }
        times.sort();
        (times[commits / 2], times[commits - 1])
    }

    /// Bytes that a class has transferred during `period`.
    async fn transferred(&self, class: IoClass, period: Duration) -> u64 {
        let before = self.bytes[class.index()].load(Relaxed);
        self.sleep(period).await;
        self.bytes[class.index()].load(Relaxed) - before
    }
}

#[track_caller]
fn assert_close(measured: f64, expected: f64, tolerance: f64) {
    assert!((measured / expected - 1.0).abs() <= tolerance, "{measured} instead of {expected}");
}

#[tokio::test(start_paused = true)]
async fn a_log_waits_only_for_requests_in_service() {
    let bench = Bench::hdd();
    let _compactions = bench.compactions(8);
    let mut log = bench.log().await;
    let (median, slowest) = bench.commit_latency(&mut *log, 200).await;
    // Its own access and sync take 13.4 ms. One request of 1 MiB in service takes 15 ms.
    assert!(median < 29 * MS && slowest < 35 * MS, "{median:?} {slowest:?}");
    assert!(bench.fs.queue().load(bench.now()).waiting_requests >= 14);
    // Without the scheduler, the log waits for all of them.
    let bench = Bench::new(
        Device::hdd(),
        DeviceClass { max_requests: 100, max_background: 100, max_writers: 100, ..DeviceClass::hdd() },
    );
    let _compactions = bench.compactions(8);
    let mut log = bench.log().await;
    let (median, _) = bench.commit_latency(&mut *log, 20).await;
    assert!(median > 150 * MS, "{median:?}");
}

#[tokio::test(start_paused = true)]
async fn foreground_reads_precede_compactions() {
    let bench = Bench::hdd();
    let _compactions = bench.compactions(8);
    bench.sleep(1000 * MS).await;
    let reader = bench.fs.open(&bench.file).await.unwrap();
    let mut slowest = Duration::ZERO;
    for read in 0..100 {
        bench.sleep(23 * MS).await;
        let begun = bench.now();
        reader.read_at(read * 8192 * 7, 4096).await.unwrap();
        slowest = slowest.max(bench.now() - begun);
    }
    // One request of a compaction in service, and its own access.
    assert!(slowest < 27 * MS, "{slowest:?}");
}

#[tokio::test(start_paused = true)]
async fn waiting_requests_are_served_by_urgency() {
    let bench = Bench::hdd();
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for class in [IoClass::Scrub, IoClass::Move, IoClass::Compaction, IoClass::Flush, IoClass::Read] {
        // The first two of each class may find free slots.
        for number in 0..4_u64 {
            let reader = class.reader(bench.fs.open(&bench.file).await.unwrap());
            let order = order.clone();
            tasks.push(bench.env.spawn(TaskClass::Service, async move {
                reader.read_at(number * 65_536, 65_536).await.unwrap();
                order.lock().unwrap().push(class);
            }));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    let order = order.lock().unwrap();
    // A class may be served early once or twice, when it has earned its share.
    let early = order[2..].windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert!(early <= 3, "{order:?}");
    assert_eq!(order[order.len() - 2..], [IoClass::Scrub; 2]);
}

#[tokio::test(start_paused = true)]
async fn every_class_gets_its_minimum_share() {
    let bench = Bench::hdd();
    let _reads: Vec<_> = (0..8).map(|seed| bench.reading(IoClass::Read, 256 << 10, seed)).collect();
    let _compactions = bench.compactions(2);
    let _scrub = bench.reading(IoClass::Scrub, MIB, 5);
    bench.sleep(2000 * MS).await;
    let period = Duration::from_secs(40);
    let (reads, compactions, scrubs) = tokio::join!(
        bench.transferred(IoClass::Read, period),
        bench.transferred(IoClass::Compaction, period),
        bench.transferred(IoClass::Scrub, period),
    );
    let cost = |bytes: u64, piece: u64| (bytes + bytes / piece * DeviceClass::hdd().access_bytes) as f64;
    let costs = [cost(reads, 256 << 10), cost(compactions, 1 << 20), cost(scrubs, 1 << 20)];
    let all: f64 = costs.iter().sum();
    // Each earns its share of what the other classes use.
    assert!((0.08..0.12).contains(&(costs[1] / all)), "{costs:?}");
    assert!((0.015..0.03).contains(&(costs[2] / all)), "{costs:?}");
}

#[tokio::test(start_paused = true)]
async fn reads_get_a_share_of_a_disk_that_logs_saturate() {
    let bench = Bench::hdd();
    let mut logs = Vec::new();
    for number in 0..4 {
        let path = FilePath::new(&format!("log-{number}"));
        let mut log = bench.fs.create(&path, AccessPattern::Log).await.unwrap();
        logs.push(bench.env.spawn(TaskClass::Service, async move {
            loop {
                log.append_and_sync(Bytes::from_static(&[1; 4096]), 4096, SyncLevel::Disk).await.unwrap();
            }
        }));
    }
    let _reads: Vec<_> = (0..4).map(|seed| bench.reading(IoClass::Read, 4096, seed)).collect();
    bench.sleep(2000 * MS).await;
    let reads = bench.transferred(IoClass::Read, Duration::from_secs(60)).await / 4096;
    // 60 s have time for 8955 accesses; a commit needs two.
    assert!((1000..3000).contains(&reads), "{reads}");
}

#[tokio::test(start_paused = true)]
async fn writers_are_limited() {
    let bench = Bench::new(Device::ssd(), DeviceClass { max_writers: 2, ..DeviceClass::ssd() });
    let _writers: Vec<_> = (0..8).map(|seed| bench.writing(IoClass::Flush, MIB, seed)).collect();
    bench.sleep(100 * MS).await;
    let load = bench.fs.queue().load(bench.now());
    assert_eq!((load.served_requests, load.waiting_requests), (2, 6));
    assert_eq!((load.served_bytes, load.waiting_bytes), (2 << 20, 6 << 20));
    // Reads do not wait for writers.
    let reader = IoClass::Scrub.reader(bench.fs.open(&bench.file).await.unwrap());
    let begun = bench.now();
    reader.read_at(0, 4096).await.unwrap();
    assert!(bench.now() - begun < 10 * MS);
}

#[tokio::test(start_paused = true)]
async fn the_expected_completion_is_that_of_a_saturated_device() {
    for (model, limits, tasks) in [
        (Device::hdd(), DeviceClass::hdd(), 4),
        (Device::hdd().scaled(5.0), DeviceClass::hdd(), 4),
        (Device::ssd().scaled(10.0), DeviceClass::ssd(), 40),
    ] {
        let bench = Bench::new(model, limits);
        let _compactions = bench.compactions(tasks);
        bench.sleep(5000 * MS).await;
        let reader = IoClass::Compaction.reader(bench.fs.open(&bench.file).await.unwrap());
        let (mut expected, mut measured) = (Duration::ZERO, Duration::ZERO);
        for round in 0..20 {
            bench.sleep(Duration::from_millis(101)).await;
            expected += bench.fs.queue().expected_completion(4 << 20);
            let begun = bench.now();
            reader.read_at(round << 20, 4 * MIB).await.unwrap();
            measured += bench.now() - begun;
        }
        assert_close(expected.as_secs_f64(), measured.as_secs_f64(), 0.25);
    }
}

#[tokio::test(start_paused = true)]
async fn urgent_requests_are_expected_to_pass_waiting_ones() {
    let bench = Bench::hdd();
    let _compactions = bench.compactions(8);
    bench.sleep(3000 * MS).await;
    let (mut expected, mut measured) = (Duration::ZERO, Duration::ZERO);
    let reader = bench.fs.open(&bench.file).await.unwrap();
    for round in 0..20 {
        bench.sleep(Duration::from_millis(101)).await;
        expected += bench.fs.queue().expected_completion_for(IoClass::Read, 1 << 20);
        let begun = bench.now();
        reader.read_at(round << 21, MIB).await.unwrap();
        measured += bench.now() - begun;
    }
    assert_close(expected.as_secs_f64(), measured.as_secs_f64(), 0.25);
    assert!(bench.fs.queue().expected_completion(1 << 20) > expected / 20 * 4);
}

#[tokio::test(start_paused = true)]
async fn a_slower_device_is_seen_within_a_second() {
    for (model, limits) in
        [(Device::hdd(), DeviceClass::hdd()), (Device::ssd().scaled(3.0), DeviceClass::ssd())]
    {
        let bench = Bench::new(model.clone(), limits);
        let _compactions = bench.compactions(4);
        bench.sleep(3000 * MS).await;
        let own = bench.fs.queue().load(bench.now()).bytes_per_s;
        bench.device.set_model(model.scaled(10.0), bench.now());
        bench.sleep(1000 * MS).await;
        let load = bench.fs.queue().load(bench.now());
        assert!(load.bytes_per_s < own / 5.0, "{} after {own}", load.bytes_per_s);
        bench.sleep(1000 * MS).await;
        let load = bench.fs.queue().load(bench.now());
        assert_close(load.bytes_per_s, own / 10.0, 0.2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_device_without_completions_is_stuck() {
    let env = base::testing::env(1);
    let memory = Arc::new(MemoryFs::new());
    let file = FilePath::new("f");
    memory.put(&file, vec![7; MIB]);
    let faulty = Faulty::new(memory, Plan::new(env.clock.clone()));
    let queue = DeviceQueue::new(DeviceClass::ssd(), env.clock.clone());
    let fs = Arc::new(ScheduledFs::new(Arc::new(faulty.clone()), queue.clone()));
    let reader = fs.open(&file).await.unwrap();
    env.clock.sleep(Duration::from_secs(60)).await;
    assert!(!queue.is_stuck(env.clock.monotonic()), "an idle device is not stuck");
    faulty.add(Rule::new(Fault::Fail).on(Operation::Read).times(1));
    reader.read_at(0, 10).await.unwrap_err();
    reader.read_at(MIB as u64, 10).await.unwrap_err();
    assert_eq!(queue.load(env.clock.monotonic()).errors, 1, "a read past the end is no error of the device");

    faulty.add(Rule::new(Fault::Hang).on(Operation::Read).times(1));
    let hanging = env.spawn(TaskClass::Service, async move {
        let _ = reader.read_at(0, 10).await;
    });
    env.clock.sleep(Duration::from_secs(9)).await;
    assert!(!queue.is_stuck(env.clock.monotonic()));
    assert!(queue.expected_completion(1) > Duration::from_secs(8));
    // Another request completes, so the device works.
    fs.open(&file).await.unwrap();
    env.clock.sleep(Duration::from_secs(9)).await;
    assert!(!queue.is_stuck(env.clock.monotonic()));
    env.clock.sleep(Duration::from_secs(1)).await;
    let now = env.clock.monotonic();
    assert!(queue.is_stuck(now));
    assert_eq!(queue.load(now).oldest, Some(Duration::from_secs(19)));

    hanging.abort();
    let _ = hanging.await;
    assert!(!queue.is_stuck(env.clock.monotonic()));
    assert_eq!(queue.load(now).served_requests, 0);
}

#[tokio::test(start_paused = true)]
async fn cancelled_requests_leave_the_queue() {
    let bench = Bench::hdd();
    let tasks: Vec<_> = (0..20).map(|seed| bench.reading(IoClass::Read, MIB, seed)).collect();
    bench.sleep(50 * MS).await;
    assert_eq!(bench.fs.queue().load(bench.now()).waiting_requests, 18);
    for task in &tasks[1..] {
        task.abort();
    }
    bench.sleep(MS).await;
    let load = bench.fs.queue().load(bench.now());
    assert!(load.waiting_requests + load.served_requests <= 1, "{load:?}");
    let reads = bench.transferred(IoClass::Read, Duration::from_secs(1)).await;
    assert!(reads >= 60 << 20, "{reads}");
    tasks[0].abort();
    bench.sleep(MS).await;
    let load = bench.fs.queue().load(bench.now());
    assert_eq!((load.waiting_bytes, load.served_bytes, load.oldest), (0, 0, None));
}

#[tokio::test(start_paused = true)]
async fn appends_to_the_page_cache_count_when_they_are_synced() {
    let env = base::testing::env(1);
    let queue = DeviceQueue::new(DeviceClass::hdd(), env.clock.clone());
    let faulty = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
    faulty.add(Rule::new(Fault::Delay(1000 * MS)).on(Operation::Sync));
    let fs = ScheduledFs::new(Arc::new(faulty), queue.clone());
    let mut file = fs.create(&FilePath::new("f"), AccessPattern::Data).await.unwrap();
    for _ in 0..200 {
        file.append(Bytes::from(vec![1; MIB])).await.unwrap();
    }
    let unsynced = queue.load(env.clock.monotonic()).unsynced_bytes;
    assert!(unsynced > 130 << 20, "{unsynced}");
    assert!(queue.expected_completion(1) > 400 * MS);
    file.sync(SyncLevel::Disk).await.unwrap();
    assert_eq!(queue.load(env.clock.monotonic()).unsynced_bytes, 0);
    // 200 MiB in a second; the device's expected speed has little weight left.
    let second = queue.expected_completion(200 << 20).as_secs_f64();
    assert!((0.6..1.4).contains(&second), "{second}");
    file.append(Bytes::from(vec![1; 200 * MIB])).await.unwrap();
    drop(file);
    assert_eq!(queue.load(env.clock.monotonic()).unsynced_bytes, 0);
}

#[tokio::test(start_paused = true)]
async fn reads_and_writes_are_counted_by_class() {
    let env = base::testing::env(1);
    let memory = Arc::new(MemoryFs::new());
    memory.put(&FilePath::new("f"), vec![7; MIB]);
    let faulty = Faulty::new(memory, Plan::new(env.clock.clone()));
    let queue = DeviceQueue::new(DeviceClass::ssd(), env.clock.clone());
    let fs = ScheduledFs::new(Arc::new(faulty.clone()), queue.clone());
    let reader = fs.open(&FilePath::new("f")).await.unwrap();
    reader.read_at(0, 1000).await.unwrap();
    reader.read_for(IoClass::Move, 0, 500).await.unwrap();
    let mut log = fs.create(&FilePath::new("log"), AccessPattern::Log).await.unwrap();
    log.append_and_sync(Bytes::from_static(&[1; 30]), 30, SyncLevel::Disk).await.unwrap();
    log.append(Bytes::from_static(&[1; 20])).await.unwrap();
    log.sync(SyncLevel::Disk).await.unwrap();
    faulty.add(Rule::new(Fault::Fail).on(Operation::Read).times(1));
    reader.read_at(0, 10).await.unwrap_err();

    let [log, read, flush, compaction, moved, scrub] = queue.load(env.clock.monotonic()).traffic;
    assert_eq!(log, Traffic { writes: 2, written_bytes: 50, ..Traffic::default() });
    assert_eq!(read, Traffic { reads: 1, read_bytes: 1000, ..Traffic::default() });
    assert_eq!(moved, Traffic { reads: 1, read_bytes: 500, ..Traffic::default() });
    assert_eq!([flush, compaction, scrub], [Traffic::default(); 3]);
}
