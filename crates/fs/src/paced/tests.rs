use std::sync::Arc;
use std::time::Duration;

use base::env::{Env, TaskClass};
use bytes::Bytes;

use super::*;
use crate::AccessPattern;
use crate::SyncLevel;
use crate::memory::MemoryFs;

const MIB: usize = 1 << 20;

/// File systems on paced devices, in virtual time.
struct Bench {
    env: Env,
    memory: Arc<MemoryFs>,
}

impl Bench {
    fn new() -> Bench {
        Bench { env: base::testing::env(1), memory: Arc::new(MemoryFs::new()) }
    }

    fn fs(&self, device: &Arc<PacedDevice>) -> Arc<PacedFs> {
        Arc::new(PacedFs::new(self.memory.clone(), &self.env, device.clone()))
    }

    fn put(&self, name: &str, bytes: usize) -> FilePath {
        let path = FilePath::new(name);
        self.memory.put(&path, vec![7; bytes]);
        path
    }

    /// Runs `tasks` tasks concurrently; returns how long they took together.
    async fn run<F>(&self, tasks: usize, task: impl Fn(usize) -> F) -> Duration
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let begun = self.env.clock.monotonic();
        let started: Vec<_> =
            (0..tasks).map(|number| self.env.spawn(TaskClass::Service, task(number))).collect();
        for task in started {
            task.await.unwrap();
        }
        self.env.clock.monotonic() - begun
    }

    /// Time of reading a file from start to end with reads of `piece` bytes.
    async fn read_through(&self, fs: Arc<PacedFs>, path: &FilePath, piece: usize) -> Duration {
        self.run(1, |_| read_through(fs.clone(), path.clone(), piece)).await
    }
}

async fn read_through(fs: Arc<PacedFs>, path: FilePath, piece: usize) {
    let reader = fs.open(&path).await.unwrap();
    for offset in (0..reader.len()).step_by(piece) {
        reader.read_at(offset, piece).await.unwrap();
    }
}

#[track_caller]
fn assert_close(measured: f64, expected: f64, tolerance: f64) {
    assert!((measured / expected - 1.0).abs() <= tolerance, "{measured} instead of {expected}");
}

fn rate(bytes: usize, took: Duration) -> f64 {
    bytes as f64 / took.as_secs_f64()
}

#[tokio::test(start_paused = true)]
async fn sequential_reads_have_the_bandwidth_of_the_model() {
    let bench = Bench::new();
    let path = bench.put("f", 64 * MIB);
    for (model, piece) in [
        (Device::hdd(), 64 << 10),
        (Device::hdd(), MIB),
        (Device::ssd(), 16 * MIB),
        (Device::ram(), MIB),
        (Device::hdd().scaled(10.0), 64 << 10),
    ] {
        let fs = bench.fs(&PacedDevice::new(model.clone()));
        let took = bench.read_through(fs.clone(), &path, piece).await;
        // A RAM disk needs so little time that the timer's resolution shows.
        let tolerance = if model.read_bytes_per_s > 1 << 30 { 0.2 } else { 0.02 };
        assert_close(rate(64 * MIB, took), model.read_bytes_per_s as f64, tolerance);
        let counters = fs.device().counters();
        assert_eq!(counters.read_bytes, 64 << 20);
        assert_eq!(counters.reads, (64 * MIB / piece) as u64);
        assert_eq!(counters.seeks, u64::from(model.is_spindle()));
        assert_close(counters.busy.as_secs_f64(), took.as_secs_f64(), tolerance);
    }
}

#[tokio::test(start_paused = true)]
async fn sequential_writes_have_the_bandwidth_of_the_model() {
    let bench = Bench::new();
    for model in [Device::hdd(), Device::ssd().scaled(8.0)] {
        let fs = bench.fs(&PacedDevice::new(model.clone()));
        let path = FilePath::new(&format!("{}", model.write_bytes_per_s));
        let mut writer = fs.create(&path, AccessPattern::Data).await.unwrap();
        let begun = bench.env.clock.monotonic();
        for _ in 0..40 {
            writer.append(Bytes::from(vec![1; 2 * MIB])).await.unwrap();
        }
        let took = bench.env.clock.monotonic() - begun;
        assert_close(
            rate(80 * MIB, took),
            model.write_bytes_per_s as f64,
            0.02 + 0.04 * f64::from(!model.is_spindle()),
        );
        let begun = bench.env.clock.monotonic();
        writer.sync(SyncLevel::Disk).await.unwrap();
        assert_close((bench.env.clock.monotonic() - begun).as_secs_f64(), model.sync.as_secs_f64(), 1.0);
        assert_eq!(fs.device().counters().syncs, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn random_reads_of_a_spindle_are_limited_by_seeks() {
    let bench = Bench::new();
    let path = bench.put("f", 8 * MIB);
    for tasks in [1, 8] {
        let fs = bench.fs(&PacedDevice::new(Device::hdd()));
        let took =
            bench.run(tasks, |task| random_reads(fs.clone(), path.clone(), task as u64, 400 / tasks)).await;
        assert_close(took.as_secs_f64(), 400.0 * 0.0067, 0.02);
        assert!(fs.device().counters().seeks >= 398);
    }
}

/// Reads `reads` blocks of 4 KiB.
async fn random_reads(fs: Arc<PacedFs>, path: FilePath, task: u64, reads: usize) {
    let reader = fs.open(&path).await.unwrap();
    for read in 0..reads as u64 {
        // A prime number of blocks apart.
        let offset = (task * 331 + read * 1009) % 2048 * 4096;
        reader.read_at(offset, 4096).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_reads_of_an_ssd_overlap_up_to_its_queue_depth() {
    let bench = Bench::new();
    let path = bench.put("f", 8 * MIB);
    // 4000 reads of 80 us each, one after another, and at most 4 at a time.
    let shallow = Device { queue_depth: 4, ..Device::ssd() };
    for (model, tasks, parallel) in [(Device::ssd(), 1, 1.0), (Device::ssd(), 4, 4.0), (shallow, 16, 4.0)] {
        let device = PacedDevice::new(model);
        let fs = bench.fs(&device);
        let took =
            bench.run(tasks, |task| random_reads(fs.clone(), path.clone(), task as u64, 4000 / tasks)).await;
        assert_close(took.as_secs_f64(), 4000.0 * 80e-6 / parallel, 0.05);
    }
    // Beyond that, the bandwidth is the limit.
    let fs = bench.fs(&PacedDevice::new(Device::ssd()));
    let endless = bench.run(32, |task| random_reads(fs.clone(), path.clone(), task as u64, usize::MAX));
    let second = Duration::from_secs(1);
    assert!(bench.env.timeout(second, endless).await.is_none());
    assert_close(rate(fs.device().counters().read_bytes as usize, second), 481e6, 0.02);
}

#[tokio::test(start_paused = true)]
async fn requests_beyond_the_queue_depth_wait() {
    let bench = Bench::new();
    let path = bench.put("f", 8 * MIB);
    let device = PacedDevice::new(Device { queue_depth: 2, ..Device::hdd() });
    let fs = bench.fs(&device);
    let tasks: Vec<_> = (0..10)
        .map(|task| bench.env.spawn(TaskClass::Service, random_reads(fs.clone(), path.clone(), task, 1)))
        .collect();
    bench.env.clock.sleep(Duration::from_millis(1)).await;
    let counters = device.counters();
    assert_eq!((counters.in_service, counters.waiting), (2, 8));
    // Waiters that are gone, in service or not, leave their place to others.
    for task in &tasks[..9] {
        task.abort();
    }
    bench.env.clock.sleep(Duration::from_millis(67)).await;
    assert!(tasks[9].is_finished());
    let counters = device.counters();
    assert_eq!((counters.in_service, counters.waiting, counters.max_waiting), (0, 0, 8));
}

#[tokio::test(start_paused = true)]
async fn devices_share_the_bandwidth_of_their_bus() {
    let bench = Bench::new();
    let path = bench.put("f", 64 * MIB);
    let bus = Bus::new(600_000_000);
    let fs: Vec<_> = (0..2).map(|_| bench.fs(&PacedDevice::on_bus(Device::ssd(), bus.clone()))).collect();
    let alone = bench.read_through(fs[0].clone(), &path, 4 * MIB).await;
    assert_close(rate(64 * MIB, alone), 481e6, 0.02);
    let both = bench.run(2, |task| read_through(fs[task].clone(), path.clone(), 4 * MIB)).await;
    assert_close(rate(128 * MIB, both), 600e6, 0.02);
}

#[tokio::test(start_paused = true)]
async fn stalls_are_random_and_repeatable() {
    let bench = Bench::new();
    let path = bench.put("f", 4 * MIB);
    let stalls = |seed| Stalls { every: Duration::from_secs(9), lasting: Duration::from_secs(1), seed };
    let run = async |seed| {
        let bench = Bench { env: base::testing::env(1), memory: bench.memory.clone() };
        let fs = bench.fs(&PacedDevice::new(Device::hdd().with_stalls(stalls(seed))));
        let reader = fs.open(&path).await.unwrap();
        let (mut took, mut slowest) = (Duration::ZERO, Duration::ZERO);
        for read in 0..60_000 {
            let begun = bench.env.clock.monotonic();
            reader.read_at(read * 1009 % 1024 * 4096, 4096).await.unwrap();
            let elapsed = bench.env.clock.monotonic() - begun;
            (took, slowest) = (took + elapsed, slowest.max(elapsed));
        }
        (took, slowest)
    };
    let (took, slowest) = run(5).await;
    assert_close(took.as_secs_f64(), 60_000.0 * 0.0067 / 0.9, 0.1);
    assert!(slowest > Duration::from_secs(1) && slowest < Duration::from_secs(3), "{slowest:?}");
    assert_eq!(run(5).await, (took, slowest));
    assert_ne!(run(6).await.0, took);
}

#[tokio::test(start_paused = true)]
async fn waiting_requests_are_served_by_class_only_if_the_device_knows_it() {
    let bench = Bench::new();
    let path = bench.put("f", 64 * MIB);
    for (by_class, expected) in [(false, ["scrub", "read"]), (true, ["read", "scrub"])] {
        let fs = bench.fs(&PacedDevice::new(Device { by_class, ..Device::hdd() }));
        let ended = Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut started = Vec::new();
        for (name, class) in [("first", IoClass::Scrub), ("scrub", IoClass::Scrub), ("read", IoClass::Read)] {
            let reader = class.reader(fs.open(&path).await.unwrap());
            let ended = ended.clone();
            started.push(bench.env.spawn(TaskClass::Service, async move {
                reader.read_at(0, MIB).await.unwrap();
                ended.lock().unwrap().push(name);
            }));
        }
        for task in started {
            task.await.unwrap();
        }
        assert_eq!(ended.lock().unwrap()[1..], expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_pays_for_reserved_zeros_once() {
    let bench = Bench::new();
    let fs = bench.fs(&PacedDevice::new(Device::ssd()));
    let mut log = fs.create(&FilePath::new("log"), AccessPattern::Log).await.unwrap();
    log.reserve(1 << 20).await.unwrap();
    log.reserve(1 << 20).await.unwrap();
    assert_eq!(fs.device().counters().written_bytes, 1 << 20);
    log.append_and_sync(Bytes::from(vec![1; 1000]), 990, SyncLevel::Disk).await.unwrap();
    log.sync(SyncLevel::Visible).await.unwrap();
    let counters = fs.device().counters();
    assert_eq!((counters.written_bytes, counters.syncs), ((1 << 20) + 1000, 1));
    log.reserve(1 << 20).await.unwrap();
    assert_eq!(fs.device().counters().written_bytes, (1 << 20) + 1000 + 990);
}

#[tokio::test(start_paused = true)]
async fn a_new_model_applies_to_later_requests() {
    let bench = Bench::new();
    let path = bench.put("f", 14 * MIB);
    let device = PacedDevice::new(Device::hdd());
    let before = bench.read_through(bench.fs(&device), &path, MIB).await;
    device.set_model(Device::hdd().scaled(10.0), bench.env.clock.monotonic());
    let after = bench.read_through(bench.fs(&device), &path, MIB).await;
    assert_close(after.as_secs_f64(), before.as_secs_f64() * 10.0, 0.05);
}
