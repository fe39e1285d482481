use bytes::Bytes;
use fs::shared::Shared;
use fs::{AccessPattern, Error, FilePath, FileSystem, SyncLevel};

use std::task::Poll;

use super::steps::{Moment, Trap};
use super::*;
use crate::network::Crash;
use crate::process::Life;
use crate::world::{World, WorldOptions};

fn path(text: &str) -> FilePath {
    FilePath::new(text)
}

/// Runs `test` in worlds of several seeds; returns the results.
fn run<F, T: Send + 'static>(test: impl Fn(Arc<World>) -> F + Sync) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
{
    let one = |seed| {
        let run = World::run(WorldOptions::new(seed), &test);
        run.result.unwrap_or_else(|panic| panic!("seed {seed}: {panic}"))
    };
    (0..40).map(one).collect()
}

async fn append_and_sync(fs: &dyn FileSystem, name: &str, bytes: &'static [u8]) -> fs::Result<()> {
    let mut writer = fs.create(&path(name), AccessPattern::Log).await?;
    writer.append(Bytes::from_static(bytes)).await?;
    writer.sync(SyncLevel::Disk).await
}

#[test]
fn processes_share_one_tree() {
    let times = run(|world| async move {
        let [writer, reader] = ["a", "b"].map(|name| world.add_idle_process(name).start());
        append_and_sync(&*writer.fs, "f", b"abc").await.unwrap();
        let opened = reader.fs.open(&path("f")).await.unwrap();
        assert_eq!(opened.read_at(1, 2).await.unwrap(), "bc");
        assert!(matches!(reader.fs.stat(&path("g")).await, Ok(None)));
        world.now()
    });
    let (first, last) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    assert!(*first > Duration::from_micros(100) && *first < *last, "{first:?} to {last:?}");
}

#[test]
fn a_pending_write_of_a_killed_process_may_or_may_not_happen() {
    let mut lengths = run(|world| async move {
        let writer = world.add_process("a", |life: Life| async move {
            let mut file = life.fs.create(&path("f"), AccessPattern::Log).await.unwrap();
            file.append(Bytes::from_static(b"abcd")).await.unwrap();
            let fs = life.fs.clone();
            life.env.spawn(base::env::TaskClass::Service, async move {
                let _ = fs.create(&path("appending"), AccessPattern::Data).await;
            });
            file.append(Bytes::from_static(b"efgh")).await.unwrap();
            std::future::pending().await
        });
        writer.start();
        while world.disk().files().contents(&path("f")).is_none_or(|bytes| bytes.is_empty()) {
            tokio::task::yield_now().await;
        }
        world.sleep(Duration::from_micros(20)).await;
        writer.crash(Crash::Process);
        world.sleep(Duration::from_secs(1)).await;
        world.disk().files().contents(&path("f")).unwrap().len()
    });
    lengths.sort_unstable();
    lengths.dedup();
    assert_eq!(lengths, [4, 6, 8]);
}

#[test]
fn a_paused_process_does_not_stop_its_pending_calls() {
    let created = run(|world| async move {
        let process = world.add_process("a", |life: Life| async move {
            life.fs.make_dirs(&path("d")).await.unwrap();
            life.fs.make_dirs(&path("e")).await.unwrap();
        });
        process.start();
        world.sleep(POLL).await;
        process.pause();
        world.sleep(Duration::from_secs(1)).await;
        let files = world.disk().files();
        let exists = async |name| files.stat(&path(name)).await.unwrap().is_some();
        (exists("d").await, exists("e").await)
    });
    assert!(created.iter().any(|(first, _)| *first), "the first call was made before the pause");
    assert!(created.iter().all(|(_, second)| !second), "the second call was not made");
}

/// Enough for the first poll of a process, and less than a change of names takes.
const POLL: Duration = Duration::from_micros(10);

#[test]
fn unsynced_bytes_survive_a_process_but_not_always_a_loss_of_power() {
    let survived = run(|world| async move {
        let process = world.add_idle_process("a");
        let fs = process.start().fs;
        append_and_sync(&*fs, "synced", b"abc").await.unwrap();
        fs.sync_dir(&FilePath::root()).await.unwrap();
        let mut writer = fs.create(&path("unsynced"), AccessPattern::Log).await.unwrap();
        writer.append(Bytes::from_static(b"abc")).await.unwrap();
        process.crash(Crash::Process);
        let read = |name| world.disk().files().contents(&path(name));
        assert_eq!(read("unsynced").unwrap(), b"abc");
        world.lose_power();
        assert_eq!(read("synced").unwrap(), b"abc");
        read("unsynced").is_some_and(|bytes| bytes == b"abc")
    });
    assert!(survived.contains(&true) && survived.contains(&false));
}

#[test]
fn faults_are_those_of_one_process() {
    let effects = run(|world| async move {
        let [slow, other] = ["a", "b"].map(|name| world.add_idle_process(name));
        let (slow_life, other_life) = (slow.start(), other.start());
        slow.set_disk_faults(DiskFaults { slowness: 1000, ..DiskFaults::default() });
        let begun = world.now();
        slow_life.fs.make_dirs(&path("d")).await.unwrap();
        assert!(world.now() - begun > Duration::from_millis(20));

        slow.set_disk_faults(DiskFaults { failing_one_in: 1, ..DiskFaults::default() });
        let failed = slow_life.fs.make_dirs(&path("e")).await.unwrap_err();
        assert!(matches!(failed, Error::Io { operation: "make_dirs", .. }), "{failed}");
        other_life.fs.make_dirs(&path("d/f")).await.unwrap();

        slow.set_disk_faults(DiskFaults { hangs: true, ..DiskFaults::default() });
        let directory = path("g");
        let mut hanging = slow_life.fs.make_dirs(&directory);
        assert!(world.timeout(Duration::from_secs(100), &mut hanging).await.is_none());
        slow.set_disk_faults(DiskFaults::default());
        hanging.await.unwrap();
        other_life.fs.stat(&path("e")).await.unwrap().is_some()
    });
    assert!(effects.contains(&true) && effects.contains(&false), "a failed call may have an effect");
}

#[test]
fn a_file_is_not_written_after_a_failed_sync() {
    run(|world| async move {
        let process = world.add_idle_process("a");
        let fs = process.start().fs;
        let mut writer = fs.create(&path("f"), AccessPattern::Log).await.unwrap();
        process.set_disk_faults(DiskFaults { failing_one_in: 1, ..DiskFaults::default() });
        writer.sync(SyncLevel::Disk).await.unwrap_err();
        process.set_disk_faults(DiskFaults::default());
        writer.append(Bytes::from_static(b"a")).await.unwrap_err();
        writer.sync(SyncLevel::Disk).await.unwrap_err();
        writer.close().await.unwrap();
        assert!(world.disk().files().contents(&path("f")).unwrap().is_empty());
    });
}

#[test]
fn an_abandoned_call_does_not_overtake_later_ones() {
    run(|world| async move {
        let fs = world.add_idle_process("a").start().fs;
        let mut writer = fs.create(&path("f"), AccessPattern::Data).await.unwrap();
        for byte in b"abcdefgh" {
            let mut appending = writer.append(Bytes::copy_from_slice(&[*byte]));
            let polled = std::future::poll_fn(|context| Poll::Ready(appending.as_mut().poll(context)));
            assert!(polled.await.is_pending());
        }
        writer.append(Bytes::from_static(b"i")).await.unwrap();
        assert_eq!(world.disk().files().contents(&path("f")).unwrap(), b"abcdefghi");
    });
}

/// Appends numbered bytes; counts those whose sync succeeded.
async fn write(life: Life, acknowledged: Arc<Mutex<usize>>) {
    let fs = Shared::new(life.fs.clone());
    fs.make_dirs(&path("WALs/a")).await.unwrap();
    let mut log = fs.create(&path("WALs/a/log"), AccessPattern::Log).await.unwrap();
    loop {
        log.append(Bytes::from_static(b"x")).await.unwrap();
        if log.sync(SyncLevel::Disk).await.is_err() {
            return;
        }
        *acknowledged.lock().unwrap() += 1;
    }
}

#[test]
fn a_reader_of_a_renamed_log_finds_all_acknowledged_bytes() {
    let mut late = 0;
    for seed in 0..200 {
        let run = World::run(WorldOptions::new(seed), |world| async move {
            let acknowledged: Arc<Mutex<usize>> = Arc::default();
            let counted = acknowledged.clone();
            let writer = world.add_process("a", move |life| write(life, counted.clone()));
            writer.start();
            let master = world.add_idle_process("master").start().fs;
            let random = world.random("test");
            let millis = |to| random.between(Duration::from_millis(2), Duration::from_millis(to));
            while *acknowledged.lock().unwrap() == 0 {
                world.sleep(Duration::from_millis(1)).await;
            }
            world.sleep(millis(10)).await;
            let is_paused = random.one_in(2);
            if is_paused {
                writer.pause();
                world.sleep(millis(20)).await;
            }
            master.rename(&path("WALs/a"), &path("WALs/a-splitting")).await.unwrap();
            let read = master.open(&path("WALs/a-splitting/log")).await.unwrap().len() as usize;
            writer.resume();
            world.sleep(Duration::from_secs(1)).await;
            assert!(!writer.is_running(), "the writer stops");
            let len = world.disk().files().contents(&path("WALs/a-splitting/log")).unwrap().len();
            let acknowledged = *acknowledged.lock().unwrap();
            assert!(acknowledged <= read, "{acknowledged} acknowledged, {read} read");
            usize::from(len > read)
        });
        late += run.result.unwrap_or_else(|panic| panic!("seed {seed}: {panic}"));
    }
    assert!(late > 0, "some writers write to the moved log");
}

/// Kills a process before or after a durable step; returns the names that it has created.
async fn killed_at(world: Arc<World>, step: u64, moment: Moment) -> (Vec<String>, u64) {
    let process = world.add_process("a", |life: Life| async move {
        for name in ["d", "e", "f"] {
            life.fs.stat(&path(name)).await.unwrap();
            life.fs.make_dirs(&path(name)).await.unwrap();
        }
    });
    let (victim, other) = (process.clone(), world.add_idle_process("b"));
    let spring = Box::new(move |_: &str| victim.crash(Crash::Process));
    world.disk().count_steps(["a".to_string()], Some(Trap { step, moment, spring }));
    other.start().fs.make_dirs(&path("other")).await.unwrap();
    process.start();
    world.sleep(Duration::from_secs(1)).await;
    let listed = world.disk().files().list(&FilePath::root()).await.unwrap();
    let names = listed.into_iter().map(|status| status.name).filter(|name| name != "other");
    (names.collect(), world.disk().end_count())
}

#[test]
fn a_process_can_be_killed_before_and_after_each_durable_step() {
    for (step, moment, names) in [
        (1, Moment::Before, &[][..]),
        (1, Moment::After, &["d"]),
        (2, Moment::Before, &["d"]),
        (3, Moment::After, &["d", "e", "f"]),
    ] {
        for (found, count) in run(|world| killed_at(world, step, moment)) {
            assert_eq!(
                (&found[..], count),
                (&names.iter().map(|name| name.to_string()).collect::<Vec<_>>()[..], step)
            );
        }
    }
}
