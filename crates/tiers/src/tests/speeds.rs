//! How fast volumes are used that have the speed of real disks, in virtual time.
//!
//! Each test also measures a simple choice of the volume, which fails the expectation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use base::env::{Clock, Env, TaskClass};
use bytes::Bytes;
use fs::faulty::{Faulty, Plan};
use fs::memory::MemoryFs;
use fs::paced::{Bus, Device, PacedDevice, PacedFs};
use fs::scheduled::{DeviceClass, DeviceQueue, ScheduledFs};
use fs::{FilePath, FileSystem, FileWriter, Purpose, Result, Role, SyncLevel};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::support::path;
use crate::{DiskClass, Gauge, KnownVolumes, Placement, Tier, TierRule, TieredFs, Volume};

const MIB: u64 = 1 << 20;
/// The devices are slower than real ones by this factor, so that fewer bytes are copied.
const SLOWER: f64 = 10.0;
/// Bytes of a volume, unless a test says otherwise: more than it writes.
const CAPACITY: u64 = 64 << 30;

/// How the volume of a new file is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Choice {
    /// By the file system.
    Own,
    /// Each volume in turn.
    RoundRobin,
    /// Always the first volume.
    First,
    /// The one whose last file was written fastest.
    FastestLast,
}

/// A tier of modelled volumes, and tasks that write files to it.
#[derive(Clone)]
struct Bench {
    env: Env,
    fs: TieredFs,
    devices: Vec<Arc<PacedDevice>>,
    choice: Choice,
    files: Arc<AtomicUsize>,
    // Bytes of the files that were begun, by volume.
    begun: Arc<Vec<AtomicU64>>,
    // Nanoseconds that the last file took, by volume.
    last: Arc<Vec<AtomicU64>>,
}

struct QueueGauge {
    queue: Arc<DeviceQueue>,
    clock: Arc<dyn Clock>,
}

impl Gauge for QueueGauge {
    fn expected_completion(&self, bytes: u64) -> Duration {
        self.queue.expected_completion(bytes)
    }

    fn is_stuck(&self) -> bool {
        self.queue.is_stuck(self.clock.monotonic())
    }
}

/// The disks of a tier: class, model, bus and the capacity of each volume.
struct Disks {
    class: &'static str,
    model: Device,
    bus: Option<Arc<Bus>>,
    capacities: Vec<u64>,
    // The class whose limits the queues have.
    limits: &'static str,
}

impl Disks {
    fn new(class: &'static str, volumes: usize) -> Disks {
        let model = match class {
            "ssd" => Device::ssd(),
            _ => Device::hdd(),
        };
        Disks {
            class,
            model: model.scaled(SLOWER),
            bus: None,
            capacities: vec![CAPACITY; volumes],
            limits: class,
        }
    }

    /// The limit that the study found for a controller of SATA disks: 1536 MB/s.
    fn on_bus(self) -> Disks {
        Disks { bus: Some(Bus::new((1_536_000_000.0 / SLOWER) as u64)), ..self }
    }
}

impl Bench {
    /// The tiers, from the fastest to the slowest, with the default rules.
    async fn open(tiers: &[Disks], choice: Choice) -> Bench {
        let env = base::testing::env(1);
        let home = Arc::new(MemoryFs::new());
        let known = KnownVolumes::read(&*home).await.unwrap();
        let (mut opened, mut devices) = (Vec::new(), Vec::new());
        for disks in tiers {
            let mut volumes = Vec::new();
            for capacity in &disks.capacities {
                let device = match &disks.bus {
                    Some(bus) => PacedDevice::on_bus(disks.model.clone(), bus.clone()),
                    None => PacedDevice::new(disks.model.clone()),
                };
                let disk = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
                disk.set_capacity(Some(*capacity));
                let paced = Arc::new(PacedFs::new(Arc::new(disk), &env, device.clone()));
                let limits = DeviceClass::named(disks.limits).unwrap();
                let queue = DeviceQueue::new(limits, env.clock.clone());
                let gauge = Arc::new(QueueGauge { queue: queue.clone(), clock: env.clock.clone() });
                let fs = Arc::new(ScheduledFs::new(paced, queue));
                let directory = format!("/mnt/{}", devices.len());
                let number = env.random.next_u64();
                volumes.push(Volume::open(&directory, fs, Some(gauge), &known, "db", number).await.unwrap());
                devices.push(device);
            }
            let class = DiskClass::built_in(disks.class).unwrap();
            let (name, bus) = (disks.class.into(), disks.bus.clone());
            opened.push(Tier { name, class, bus, volumes, missing: Vec::new() });
        }
        let count = tiers.len();
        let placement = Placement::new((0..count).map(|at| TierRule::default_of(at, count)).collect());
        let fs = TieredFs::open(&env, home, opened, placement).await.unwrap();
        let by_volume = || Arc::new(devices.iter().map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
        let (begun, last) = (by_volume(), by_volume());
        Bench { env, fs, devices, choice, files: Arc::default(), begun, last }
    }

    fn now(&self) -> Duration {
        self.env.clock.monotonic()
    }

    async fn sleep(&self, millis: u64) {
        self.env.clock.sleep(Duration::from_millis(millis)).await;
    }

    /// Creates a file in the tier of its role, on the volume of the choice.
    async fn create(&self, bytes: u64, role: Role) -> (FilePath, Result<Box<dyn FileWriter>>) {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let path = path(&format!("f{number}"));
        let purpose = Purpose { expected_bytes: bytes, ..Purpose::of(role) };
        let volumes = &self.fs.tiers()[0].volumes;
        let at = match self.choice {
            Choice::Own => return (path.clone(), self.fs.create_for(&path, &purpose).await),
            Choice::RoundRobin => number % volumes.len(),
            Choice::First => 0,
            Choice::FastestLast => {
                let last = self.last.iter().map(|nanos| nanos.load(Ordering::Relaxed));
                last.enumerate().min_by_key(|(_, nanos)| *nanos).unwrap().0
            }
        };
        let created = self.fs.shared.create_target(&volumes[at], &path, &purpose).await;
        let Ok((writer, target)) = created else { return (path, created.map(|(writer, _)| writer)) };
        let link = target.link(volumes[at].directory());
        let linked = self.fs.shared.home.link(&path, &link).await;
        (path, linked.map(|()| writer))
    }

    /// Writes a durable file with appends of 1 MiB.
    async fn write(&self, bytes: u64, role: Role) -> Result<FilePath> {
        let start = self.now();
        let (path, created) = self.create(bytes, role).await;
        let mut writer = created?;
        let link = self.fs.shared.home.stat(&path).await?.and_then(|status| status.link).unwrap();
        let at = link.trim_start_matches("/mnt/").split('/').next().unwrap().parse::<usize>().unwrap();
        self.begun[at].fetch_add(bytes, Ordering::Relaxed);
        for _ in 0..bytes / MIB {
            writer.append(Bytes::from(vec![1; MIB as usize])).await?;
        }
        writer.sync(SyncLevel::Disk).await?;
        writer.close().await?;
        self.last[at].store((self.now() - start).as_nanos() as u64, Ordering::Relaxed);
        Ok(path)
    }

    /// Tasks that write files of `bytes` bytes and delete them, until they are aborted.
    fn writers(&self, tasks: usize, bytes: u64, role: Role) -> Writers {
        let start = |_| {
            let bench = self.clone();
            self.env.spawn(TaskClass::Service, async move {
                loop {
                    let path = bench.write(bytes, role).await.unwrap();
                    bench.fs.delete(&path).await.unwrap();
                }
            })
        };
        Writers((0..tasks).map(start).collect())
    }

    /// Bytes per second that all devices write in a time.
    async fn rate(&self, millis: u64) -> f64 {
        let written = || self.devices.iter().map(|device| device.counters().written_bytes).sum::<u64>();
        let before = written();
        self.sleep(millis).await;
        (written() - before) as f64 / Duration::from_millis(millis).as_secs_f64()
    }
}

/// Ends its tasks when it is dropped.
struct Writers(Vec<JoinHandle<()>>);

impl Drop for Writers {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Bytes per second that some volumes of a class write together, with eight writers for each.
async fn rate_of(class: &'static str, volumes: usize, choice: Choice) -> f64 {
    let bench = Bench::open(&[Disks::new(class, volumes).on_bus()], choice).await;
    let _writers = bench.writers(8 * volumes, 4 * MIB, Role::Flush);
    bench.sleep(3000).await;
    bench.rate(10_000).await
}

#[tokio::test(start_paused = true)]
async fn volumes_add_their_speeds_up_to_the_limit_of_their_bus() {
    let bus = 1_536_000_000.0 / SLOWER;
    let (one, two) = (rate_of("ssd", 1, Choice::Own).await, rate_of("ssd", 2, Choice::Own).await);
    let (four, eight) = (rate_of("ssd", 4, Choice::Own).await, rate_of("ssd", 8, Choice::Own).await);
    assert!(two > 1.8 * one, "{two} after {one}");
    // Four have more than the bus: 1788 of 1536 MB/s.
    for rate in [four, eight] {
        assert!((0.9..1.01).contains(&(rate / bus)), "{rate} of {bus}");
    }
    assert!(rate_of("ssd", 4, Choice::First).await < 1.1 * one);

    let (one, four, eight) = (
        rate_of("hdd", 1, Choice::Own).await,
        rate_of("hdd", 4, Choice::Own).await,
        rate_of("hdd", 8, Choice::Own).await,
    );
    assert!(four > 3.6 * one && eight > 7.2 * one, "{one}, {four}, {eight}");
}

#[tokio::test(start_paused = true)]
async fn the_status_shows_that_the_bus_limits_a_tier() {
    for (volumes, is_reached) in [(1, false), (4, true)] {
        let bench = Bench::open(&[Disks::new("ssd", volumes).on_bus()], Choice::Own).await;
        let _writers = bench.writers(8 * volumes, 4 * MIB, Role::Flush);
        bench.sleep(40_000).await;
        let bus = bench.fs.status()[0].bus.unwrap();
        assert_eq!((bus.bytes_per_s, bus.is_reached()), (153_600_000, is_reached), "{bus:?}");
    }
    let bench = Bench::open(&[Disks::new("ssd", 1)], Choice::Own).await;
    assert_eq!(bench.fs.status()[0].bus, None);
}

/// Bytes of new files by volume, of four disks of which the last one becomes ten times slower.
async fn shares_with_a_slow_volume(choice: Choice) -> Vec<f64> {
    let bench = Bench::open(&[Disks::new("hdd", 4)], choice).await;
    let _writers = bench.writers(16, 4 * MIB, Role::Flush);
    bench.sleep(10_000).await;
    bench.devices[3].set_model(Device::hdd().scaled(10.0 * SLOWER), bench.now());
    bench.sleep(20_000).await;
    let begun = || bench.begun.iter().map(|bytes| bytes.load(Ordering::Relaxed)).collect::<Vec<_>>();
    let before = begun();
    bench.sleep(60_000).await;
    let new: Vec<_> = begun().iter().zip(before).map(|(after, before)| (after - before) as f64).collect();
    let all: f64 = new.iter().sum();
    new.iter().map(|bytes| bytes / all).collect()
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_becomes_slow_gets_less_than_a_fifth_of_its_share() {
    let limit = 0.25 / 5.0;
    let own = shares_with_a_slow_volume(Choice::Own).await;
    let round_robin = shares_with_a_slow_volume(Choice::RoundRobin).await;
    assert!(own[3] < limit, "{own:?}");
    assert!(round_robin[3] > limit, "{round_robin:?}");
}

/// The shares of the new bytes that the last of four disks gets: while it is 30 times slower than
/// the others, and from one minute after it has its speed again.
async fn shares_of_a_volume_that_recovers(choice: Choice) -> [f64; 2] {
    let bench = Bench::open(&[Disks::new("hdd", 4)], choice).await;
    let _writers = bench.writers(4, 4 * MIB, Role::Flush);
    let share = async || {
        let begun = || bench.begun.iter().map(|bytes| bytes.load(Ordering::Relaxed)).collect::<Vec<_>>();
        let before = begun();
        bench.sleep(60_000).await;
        let new: Vec<_> = begun().iter().zip(before).map(|(after, before)| after - before).collect();
        new[3] as f64 / new.iter().sum::<u64>() as f64
    };
    bench.sleep(10_000).await;
    bench.devices[3].set_model(Device::hdd().scaled(30.0 * SLOWER), bench.now());
    bench.sleep(60_000).await;
    let slow = share().await;
    bench.devices[3].set_model(Device::hdd().scaled(SLOWER), bench.now());
    bench.sleep(60_000).await;
    [slow, share().await]
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_is_fast_again_gets_its_share_again() {
    let [slow, recovered] = shares_of_a_volume_that_recovers(Choice::Own).await;
    assert!(slow < 0.25 / 5.0, "{slow}");
    assert!(recovered > 0.8 * 0.25, "{recovered}");
    // A measurement that counts until the next one is the last one.
    let [slow, recovered] = shares_of_a_volume_that_recovers(Choice::FastestLast).await;
    assert!(slow < 0.25 / 5.0, "{slow}");
    assert_eq!(recovered, 0.0);
}

/// The used shares of two disks, one of which is three times larger, after 160 MiB were written.
async fn fills_of_different_sizes(choice: Choice, writers: usize) -> Vec<f64> {
    let capacities = vec![100 * MIB, 300 * MIB];
    let bench = Bench::open(&[Disks { capacities, ..Disks::new("hdd", 2) }], choice).await;
    let write = |_| {
        let bench = bench.clone();
        bench.env.clone().spawn(TaskClass::Service, async move {
            for _ in 0..80 / writers {
                bench.write(2 * MIB, Role::Flush).await.unwrap();
            }
        })
    };
    for task in (0..writers).map(write).collect::<Vec<_>>() {
        task.await.unwrap();
    }
    bench.fs.poll().await;
    bench.fs.tiers()[0].volumes.iter().map(|volume| volume.fill()).collect()
}

#[tokio::test(start_paused = true)]
async fn volumes_of_different_sizes_fill_within_a_tenth() {
    for writers in [1, 4] {
        let own = fills_of_different_sizes(Choice::Own, writers).await;
        let round_robin = fills_of_different_sizes(Choice::RoundRobin, writers).await;
        assert!((own[0] - own[1]).abs() < 0.1, "{writers}: {own:?}");
        assert!((round_robin[0] - round_robin[1]).abs() > 0.1, "{writers}: {round_robin:?}");
    }
}

/// The longest time to write a small file to two disks, one of which other writers saturate.
async fn longest_wait_next_to_a_saturated_volume(choice: Choice) -> Duration {
    let bench = Bench::open(&[Disks::new("hdd", 2)], choice).await;
    let volume = bench.fs.tiers()[0].volumes[0].clone();
    let saturate = |number| {
        let volume = volume.clone();
        bench.env.spawn(TaskClass::Service, async move {
            let name = path(&format!("{}/busy-{number}", volume.id()));
            loop {
                let mut writer = volume.fs().create_for(&name, &Purpose::of(Role::Flush)).await.unwrap();
                for _ in 0..4 {
                    writer.append(Bytes::from(vec![1; MIB as usize])).await.unwrap();
                }
                writer.sync(SyncLevel::Disk).await.unwrap();
                volume.fs().delete(&name).await.unwrap();
            }
        })
    };
    let _busy = Writers((0..8).map(saturate).collect());
    bench.sleep(3000).await;
    let mut longest = Duration::ZERO;
    for _ in 0..50 {
        bench.sleep(137).await;
        let begun = bench.now();
        bench.write(MIB, Role::Flush).await.unwrap();
        longest = longest.max(bench.now() - begun);
    }
    longest
}

#[tokio::test(start_paused = true)]
async fn a_file_does_not_wait_for_a_saturated_volume() {
    let own = longest_wait_next_to_a_saturated_volume(Choice::Own).await;
    let round_robin = longest_wait_next_to_a_saturated_volume(Choice::RoundRobin).await;
    // An idle disk needs 82 ms for 1 MiB, 67 ms for a seek, and three syncs of 67 ms.
    assert!(own < Duration::from_millis(500), "{own:?}");
    assert!(round_robin > 3 * own, "{round_robin:?} and {own:?}");
}

/// Bytes per second of eight disks of which four are on ports with half the bandwidth, as the study
/// found: 213 and 107 MB/s.
async fn rate_on_unequal_ports(choice: Choice) -> f64 {
    let bench = Bench::open(&[Disks::new("ssd", 8)], choice).await;
    for (at, device) in bench.devices.iter().enumerate() {
        let write_bytes_per_s = if at < 4 { 213_000_000 } else { 107_000_000 };
        device.set_model(Device { write_bytes_per_s, ..Device::ssd() }.scaled(SLOWER), bench.now());
    }
    let _writers = bench.writers(32, 4 * MIB, Role::Flush);
    bench.sleep(10_000).await;
    bench.rate(20_000).await
}

#[tokio::test(start_paused = true)]
async fn ports_of_unequal_bandwidth_are_all_used() {
    let all = 4.0 * (213_000_000.0 + 107_000_000.0) / SLOWER;
    let own = rate_on_unequal_ports(Choice::Own).await;
    let round_robin = rate_on_unequal_ports(Choice::RoundRobin).await;
    assert!(own > 0.9 * all, "{own} of {all}");
    // All wait for the slow ports.
    assert!(round_robin < 0.75 * all, "{round_robin} of {all}");
}

/// The longest sync of a log on a disk to which eight flushes write, with the limits of a class.
async fn longest_log_sync(limits: &'static str) -> Duration {
    let disks = Disks { limits, ..Disks::new("hdd", 1) };
    let bench = Bench::open(&[disks], Choice::Own).await;
    let _flushes = bench.writers(8, 4 * MIB, Role::Flush);
    let (_, created) = bench.create(MIB, Role::Log).await;
    let mut log = created.unwrap();
    bench.sleep(3000).await;
    let mut longest = Duration::ZERO;
    for _ in 0..50 {
        bench.sleep(137).await;
        let begun = bench.now();
        log.append(Bytes::from_static(&[1; 1000])).await.unwrap();
        log.sync(SyncLevel::Disk).await.unwrap();
        longest = longest.max(bench.now() - begun);
    }
    longest
}

#[tokio::test(start_paused = true)]
async fn each_class_has_its_own_limits() {
    let (own, of_ssd) = (longest_log_sync("hdd").await, longest_log_sync("ssd").await);
    // Two requests in service, of 150 ms each, precede the log's append, and its sync.
    assert!(own < Duration::from_millis(800), "{own:?}");
    assert!(of_ssd > 2 * own, "{of_ssd:?} and {own:?}");
}

/// The longest time to create a file in the fast tier, while major compactions saturate the slow
/// one. With a lock, all operations hold it, as in old DataNodes of HDFS.
async fn longest_create_above_a_saturated_tier(lock: Option<Arc<Mutex<()>>>) -> Duration {
    let bench = Bench::open(&[Disks::new("ssd", 1), Disks::new("hdd", 1)], Choice::Own).await;
    let compact = |_| {
        let (bench, lock) = (bench.clone(), lock.clone());
        bench.env.clone().spawn(TaskClass::Service, async move {
            loop {
                let (path, created) = bench.create(4 * MIB, Role::MajorCompaction).await;
                let mut writer = created.unwrap();
                for _ in 0..4 {
                    let _held = match &lock {
                        Some(lock) => Some(lock.lock().await),
                        None => None,
                    };
                    writer.append(Bytes::from(vec![1; MIB as usize])).await.unwrap();
                }
                bench.fs.delete(&path).await.unwrap();
            }
        })
    };
    let _compactions = Writers((0..8).map(compact).collect());
    bench.sleep(3000).await;
    let mut longest = Duration::ZERO;
    for _ in 0..100 {
        bench.sleep(37).await;
        let begun = bench.now();
        let _held = match &lock {
            Some(lock) => Some(lock.lock().await),
            None => None,
        };
        let (path, created) = bench.create(MIB, Role::Flush).await;
        drop(created.unwrap());
        longest = longest.max(bench.now() - begun);
        bench.fs.delete(&path).await.unwrap();
    }
    longest
}

#[tokio::test(start_paused = true)]
async fn a_saturated_tier_does_not_delay_new_files_in_another_one() {
    let own = longest_create_above_a_saturated_tier(None).await;
    let locked = longest_create_above_a_saturated_tier(Some(Arc::default())).await;
    assert!(own < Duration::from_millis(5), "{own:?}");
    assert!(locked > Duration::from_millis(100), "{locked:?}");
}
