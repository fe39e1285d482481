//! Where files are, and what happens to them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base::testing::env;
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use fs::{Error, FilePath, FileSystem, Purpose, Role};
use futures_util::FutureExt;

use super::support::{Disks, path, read, tier, write};
use crate::{
    DiskClass, Health, KnownVolumes, MoveError, Mover, Placement, Tier, TierRule, TieredFs, Volume,
    VolumeError,
};

const FAST: u64 = u64::MAX;

#[tokio::test]
async fn roles_policies_sizes_and_ages_choose_the_tier() {
    let database = Disks::new().open(&env(1)).await;
    let tiers = database.fs.tiers();
    let rule = TierRule { file_bytes_max: Some(1000), age_ms_max: Some(500), ..TierRule::default_of(0, 2) };
    let placement = Placement::new(vec![rule, TierRule::default_of(1, 2)]);
    let order = |purpose: Purpose| placement.order(tiers, &purpose, 10_000);
    for role in [Role::Log, Role::Flush, Role::MinorCompaction] {
        assert_eq!(order(Purpose::of(role)), [0, 1]);
    }
    for role in [Role::MajorCompaction, Role::Mob] {
        assert_eq!(order(Purpose::of(role)), [1, 0]);
    }
    let flush = Purpose::of(Role::Flush);
    assert_eq!(order(Purpose { expected_bytes: 1001, ..flush.clone() }), [1, 0]);
    assert_eq!(order(Purpose { newest_ms: Some(9400), ..flush.clone() }), [1, 0]);
    assert_eq!(order(Purpose { newest_ms: Some(9600), ..flush.clone() }), [0, 1]);
    let with = |policy: &str| order(Purpose { policy: Some(policy.into()), ..flush.clone() });
    for (policy, first) in [
        ("ALL_SSD", 0),
        ("ONE_SSD", 0),
        ("HOT", 1),
        ("WARM", 1),
        ("COLD", 1),
        ("LAZY_PERSIST", 1),
        ("NONE", 0),
    ] {
        assert_eq!(with(policy)[0], first, "{policy}");
    }
}

#[tokio::test]
async fn files_are_found_under_their_names_wherever_their_bytes_are() {
    let disks = Disks::new();
    let database = disks.open(&env(1)).await;
    let fs = &database.fs;
    fs.make_dirs(&path("t/r")).await.unwrap();
    for (name, role, expected) in [
        ("t/flushed", Role::Flush, Some("ssd")),
        ("t/compacted", Role::MajorCompaction, Some("hdd")),
        ("t/description", Role::Metadata, None),
    ] {
        write(fs, name, role, name.as_bytes()).await.unwrap();
        assert_eq!(tier(fs, name).await.as_deref(), expected);
        assert_eq!(read(fs, &path(name)).await.unwrap(), name);
    }
    let listed: Vec<_> =
        fs.list(&path("t")).await.unwrap().into_iter().map(|entry| (entry.name, entry.len)).collect();
    let expected = [("compacted", 11), ("description", 13), ("flushed", 9), ("r", 0)];
    assert_eq!(listed, expected.map(|(name, len)| (name.to_owned(), len)));

    // A directory takes its files with it.
    fs.rename(&path("t"), &path("archived")).await.unwrap();
    assert_eq!(read(fs, &path("archived/flushed")).await.unwrap(), "t/flushed");
    // A file that is replaced leaves nothing on its volume.
    fs.rename(&path("archived/flushed"), &path("archived/compacted")).await.unwrap();
    assert_eq!(
        (read(fs, &path("archived/compacted")).await.unwrap().as_ref(), disks.files_on_volumes().await),
        (&b"t/flushed"[..], 1)
    );
    fs.delete(&path("archived")).await.unwrap();
    assert_eq!(disks.files_on_volumes().await, 0);
}

#[tokio::test]
async fn the_next_tier_takes_over_when_the_files_of_a_volume_are_gone() {
    let database = Disks::new().open(&env(1)).await;
    let (fs, disk) = (&database.fs, &database.volumes[0]);
    let files = path(fs.tiers()[0].volumes[0].id());
    disk.delete(&files).await.unwrap();
    write(fs, "a", Role::Flush, b"a").await.unwrap();
    assert_eq!(tier(fs, "a").await.as_deref(), Some("hdd"));
    assert!(matches!(fs.tiers()[0].volumes[0].health(), Health::Failed(_)));
    // The directory of the name is missing: no volume is at fault.
    let error = write(fs, "gone/b", Role::MajorCompaction, b"b").await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    assert_eq!(fs.tiers()[1].volumes[0].health(), Health::Good);
    disk.make_dirs(&files).await.unwrap();
    fs.poll().await;
    write(fs, "c", Role::Flush, b"c").await.unwrap();
    assert_eq!(tier(fs, "c").await.as_deref(), Some("ssd"));
}

#[tokio::test]
async fn the_next_tier_takes_over_when_one_is_full() {
    let database = Disks::new().open(&env(1)).await;
    let fs = &database.fs;
    database.volumes[0].set_capacity(Some(0));
    // The disk was filled by others: the first write finds that out.
    assert!(matches!(write(fs, "z", Role::Flush, b"z").await, Err(Error::VolumeFull { .. })));
    write(fs, "a", Role::Flush, b"a").await.unwrap();
    assert_eq!(tier(fs, "a").await.as_deref(), Some("hdd"));
    database.volumes.iter().for_each(|volume| volume.set_capacity(Some(0)));
    for name in ["x", "y"] {
        let full = write(fs, name, Role::Flush, b"x").await;
        let is_last = name == "y";
        assert_eq!(matches!(full, Err(Error::NoSpace { .. })), is_last, "{full:?}");
    }
    fs.poll().await;
    assert!(matches!(write(fs, "b", Role::Flush, b"b").await, Err(Error::NoSpace { .. })));
    assert!(fs.stat(&path("b")).await.unwrap().is_none());
    database.volumes.iter().for_each(|volume| volume.set_capacity(Some(1 << 20)));
    fs.poll().await;
    write(fs, "b", Role::Flush, b"b").await.unwrap();
    assert_eq!(tier(fs, "b").await.as_deref(), Some("ssd"));
}

/// The home gives the space that it keeps for names only when all other disks are full.
#[tokio::test]
async fn a_home_that_is_a_tier_keeps_space_for_names() {
    let env = env(1);
    let disk = |memory: MemoryFs| {
        let disk = Faulty::new(Arc::new(memory), Plan::new(env.clock.clone()));
        disk.set_capacity(Some(1 << 20));
        disk
    };
    let (home, other) = (disk(MemoryFs::new()), disk(MemoryFs::new()));
    let opened =
        Volume::open("/mnt/other", Arc::new(other.clone()), None, &KnownVolumes::default(), "db", 1).await;
    let with_volume = |class: &str, volume: Arc<Volume>| Tier {
        name: class.into(),
        class: DiskClass::built_in(class).unwrap(),
        volumes: vec![volume],
        bus: None,
        missing: Vec::new(),
    };
    let at_home = Volume::home("/home", Arc::new(home.clone()), None);
    let tiers = vec![with_volume("ssd", at_home), with_volume("hdd", opened.unwrap())];
    let placement = Placement::new(vec![TierRule::default_of(0, 2), TierRule::default_of(1, 2)]);
    let fs = TieredFs::open(&env, Arc::new(home), tiers, placement).await.unwrap();
    let half = vec![1; (1 << 19) + 1000];
    write(&fs, "a", Role::Flush, &half).await.unwrap();
    assert_eq!(tier(&fs, "a").await.as_deref(), Some("ssd"));
    write(&fs, "b", Role::Flush, b"b").await.unwrap();
    assert_eq!(tier(&fs, "b").await.as_deref(), Some("hdd"), "half of the home is kept");
    other.set_capacity(Some(0));
    assert!(matches!(write(&fs, "c", Role::Flush, b"c").await, Err(Error::VolumeFull { .. })));
    write(&fs, "d", Role::Flush, b"d").await.unwrap();
    assert_eq!(tier(&fs, "d").await.as_deref(), Some("ssd"));
}

#[tokio::test]
async fn a_failed_volume_gets_no_files_and_names_what_it_has() {
    let database = Disks::new().open(&env(1)).await;
    let fs = &database.fs;
    write(fs, "old", Role::Flush, b"old").await.unwrap();
    database.volumes[0].add(Rule::new(Fault::Fail));
    write(fs, "new", Role::Flush, b"new").await.unwrap();
    assert_eq!(tier(fs, "new").await.as_deref(), Some("hdd"));
    assert!(matches!(fs.tiers()[0].volumes[0].health(), Health::Failed(_)));
    let error = fs.open(&path("old")).await.err().unwrap().to_string();
    assert!(error.starts_with("old: ") && error.contains("/mnt/fast"), "{error}");
    assert_eq!(
        fs.list(&FilePath::root()).await.unwrap().iter().filter(|entry| entry.name == "old").count(),
        1
    );
}

#[tokio::test]
async fn a_slow_volume_gets_few_files_and_a_stuck_one_none() {
    let disks = Disks::new();
    let database = disks.open(&env(1)).await;
    let fs = &database.fs;
    let (slow, other) = (&database.speeds[1], &database.speeds[2]);
    let files = async |at: usize| {
        let dir = disks.volumes[at].1.list(&FilePath::root()).await.unwrap().remove(0);
        disks.volumes[at].1.list(&path(&dir.name)).await.unwrap().len()
    };
    slow.completion_ms.store(1000, Ordering::Relaxed);
    for at in 0..10_u64 {
        // The queue of the fast volume grows: at last the slow one would be ready first.
        other.completion_ms.store(100 * at, Ordering::Relaxed);
        write(fs, &format!("a{at}"), Role::MajorCompaction, &[7; 100]).await.unwrap();
    }
    assert_eq!((files(1).await, files(2).await), (5, 5));
    slow.completion_ms.store(FAST, Ordering::Relaxed);
    other.completion_ms.store(5000, Ordering::Relaxed);
    write(fs, "b", Role::MajorCompaction, b"b").await.unwrap();
    assert_eq!((files(1).await, files(2).await), (5, 6));
}

#[tokio::test]
async fn equally_fast_volumes_fill_evenly_in_percent() {
    let disks = Disks::new();
    let database = disks.open(&env(1)).await;
    let fs = &database.fs;
    database.volumes[1].set_capacity(Some(1 << 20));
    database.volumes[2].set_capacity(Some(3 << 20));
    fs.poll().await;
    for at in 0..200 {
        write(fs, &format!("f{at}"), Role::MajorCompaction, &[1; 10_000]).await.unwrap();
    }
    let fills: Vec<f64> = fs.tiers()[1].volumes.iter().map(|volume| volume.fill()).collect();
    assert!((fills[0] - fills[1]).abs() < 0.02 && fills[0] > 0.4, "{fills:?}");
}

#[tokio::test]
async fn a_file_moves_while_it_is_read() {
    let disks = Disks::new();
    let database = disks.open(&env(1)).await;
    let fs = &database.fs;
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    database.volumes.iter().for_each(|volume| volume.set_capacity(None));
    fs.poll().await;
    write(fs, "f", Role::Flush, &bytes).await.unwrap();
    let reader = fs.open(&path("f")).await.unwrap();
    let mover = Mover::new(fs.clone(), u64::MAX);
    assert_eq!(mover.move_to(&path("f"), 1).await.unwrap(), Some(3_000_000));
    assert_eq!(mover.move_to(&path("f"), 1).await.unwrap(), None);
    assert_eq!(tier(fs, "f").await.as_deref(), Some("hdd"));
    assert_eq!(read(fs, &path("f")).await.unwrap(), bytes);
    assert_eq!(reader.read_at(2_999_990, 10).await.unwrap(), bytes[2_999_990..]);
    assert_eq!(disks.files_on_volumes().await, 1);
}

#[tokio::test]
async fn a_copy_with_other_bytes_is_not_used() {
    let disks = Disks::new();
    let database = disks.open(&env(1)).await;
    let fs = &database.fs;
    write(fs, "f", Role::Flush, b"0123456789").await.unwrap();
    for volume in &database.volumes[1..] {
        volume.add(Rule::new(Fault::Flip).on(Operation::Append));
    }
    let moved = Mover::new(fs.clone(), u64::MAX).move_to(&path("f"), 1).await;
    assert!(matches!(moved, Err(MoveError::Damaged { .. })));
    assert_eq!(tier(fs, "f").await.as_deref(), Some("ssd"));
    assert_eq!(
        (read(fs, &path("f")).await.unwrap().as_ref(), disks.files_on_volumes().await),
        (&b"0123456789"[..], 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_deleted_during_a_move_stays_deleted() {
    let disks = Disks::new();
    let env = env(1);
    let database = disks.open(&env).await;
    let fs = &database.fs;
    database.volumes.iter().for_each(|volume| volume.set_capacity(None));
    fs.poll().await;
    write(fs, "g", Role::Flush, &[3; 3 << 20]).await.unwrap();
    // One second for each MiB: the move sleeps after the first.
    let mover = Mover::new(fs.clone(), 1 << 20);
    let name = path("g");
    let mut moving = Box::pin(mover.move_to(&name, 1));
    assert!(moving.as_mut().now_or_never().is_none());
    fs.delete(&path("g")).await.unwrap();
    let outcome = moving.await;
    assert!(matches!(outcome, Err(MoveError::Changed(_) | MoveError::Fs(_))), "{outcome:?}");
    assert!(fs.stat(&path("g")).await.unwrap().is_none());
}

/// A deletion waits for a disk that hangs. Moves and renames on other disks do not, although a move
/// locks all names. Only the home is read under that lock.
#[tokio::test(start_paused = true)]
async fn a_disk_that_hangs_delays_no_rename_or_move_on_others() {
    let env = env(1);
    let database = Disks::new().open(&env).await;
    let fs = &database.fs;
    write(fs, "deleted", Role::MajorCompaction, b"bytes").await.unwrap();
    write(fs, "moved", Role::Flush, b"bytes").await.unwrap();
    write(fs, "renamed", Role::Flush, b"bytes").await.unwrap();
    for slow in &database.volumes[1..] {
        slow.add(Rule::new(Fault::Hang).on(Operation::Delete));
    }
    database.volumes[0].add(Rule::new(Fault::Hang).on(Operation::Stat));
    let name = path("deleted");
    let mut deleting = fs.delete(&name);
    assert!((&mut deleting).now_or_never().is_none());
    let others = async {
        Mover::new(fs.clone(), u64::MAX).move_to(&path("moved"), 1).await.unwrap();
        fs.rename(&path("renamed"), &path("new name")).await.unwrap();
    };
    env.timeout(Duration::from_secs(60), others).await.expect("they do not wait");
    assert_eq!(tier(fs, "moved").await.as_deref(), Some("hdd"));
}

#[tokio::test]
async fn a_volume_of_another_database_is_refused() {
    let (disk, new) = (Arc::new(MemoryFs::new()), KnownVolumes::default());
    let volume = Volume::open("/mnt/a", disk.clone(), None, &new, "one", 1).await.unwrap();
    let again = Volume::open("/mnt/elsewhere", disk.clone(), None, &new, "one", 2).await.unwrap();
    assert_eq!(volume.id(), again.id());
    let other = Volume::open("/mnt/a", disk.clone(), None, &new, "two", 3).await.err().unwrap();
    assert!(matches!(other, VolumeError::OtherDatabase { found } if found == "one"));
    disk.put(&path("grampus.volume"), "nonsense");
    let damaged = Volume::open("/mnt/a", disk, None, &new, "one", 4).await.err().unwrap();
    assert!(matches!(damaged, VolumeError::Damaged));
}

#[tokio::test]
async fn the_empty_directory_of_a_disk_that_is_not_mounted_does_not_become_a_volume() {
    let disks = Disks::new();
    disks.open(&env(1)).await;
    let known = KnownVolumes::read(&disks.home).await.unwrap();
    let empty = Arc::new(MemoryFs::new());
    let opened = Volume::open("/mnt/fast", empty.clone(), None, &known, "db", 1).await;
    assert!(matches!(opened, Err(VolumeError::Missing)));
    assert!(empty.list(&FilePath::root()).await.unwrap().is_empty());
    Volume::open("/mnt/new", empty, None, &known, "db", 1).await.unwrap();
    disks.home.put(&path("grampus.volumes"), "nonsense");
    assert!(KnownVolumes::read(&disks.home).await.is_err());
}

#[tokio::test]
async fn a_failed_read_names_the_file_and_the_disk() {
    let database = Disks::new().open(&env(1)).await;
    let fs = &database.fs;
    write(fs, "f", Role::Flush, b"bytes").await.unwrap();
    let reader = fs.open(&path("f")).await.unwrap();
    database.volumes[0].add(Rule::new(Fault::Fail).on(Operation::Read));
    let error = reader.read_at(0, 5).await.unwrap_err().to_string();
    assert!(error.starts_with("f: ") && error.contains("/mnt/fast"), "{error}");
    assert!(matches!(fs.tiers()[0].volumes[0].health(), Health::Failed(_)));
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_hangs_delays_no_poll_for_long() {
    let database = Disks::new().open(&env(1)).await;
    let fs = &database.fs;
    database.volumes[0].add(Rule::new(Fault::Hang));
    for _ in 0..100 {
        assert!(fs.space().await.unwrap().is_some());
    }
    let begin = tokio::time::Instant::now();
    fs.poll().await;
    assert!(begin.elapsed().as_secs() < 1, "the poll that hangs is not repeated");
    assert!(matches!(fs.tiers()[0].volumes[0].health(), Health::Failed(_)));
    write(fs, "f", Role::Flush, b"bytes").await.unwrap();
    assert_eq!(tier(fs, "f").await.as_deref(), Some("hdd"));
}

#[tokio::test]
async fn an_error_of_the_home_is_not_one_of_the_volume() {
    let database = Disks::new().open(&env(1)).await;
    let fs = &database.fs;
    database.home.add(Rule::new(Fault::Fail).on(Operation::Create).times(1));
    write(fs, "f", Role::Flush, b"bytes").await.unwrap_err();
    write(fs, "f", Role::Flush, b"bytes").await.unwrap();
    assert_eq!(tier(fs, "f").await.as_deref(), Some("ssd"));
}

#[tokio::test]
async fn without_its_volume_a_file_is_listed_and_cannot_be_opened() {
    let disks = Disks::new();
    let database = disks.open(&env(1)).await;
    write(&database.fs, "f", Role::Flush, b"f").await.unwrap();
    let home = Arc::new(disks.home.clone());
    let alone = TieredFs::open(&env(2), home, Vec::new(), Placement::default()).await.unwrap();
    assert!(alone.list(&FilePath::root()).await.unwrap().iter().any(|entry| entry.name == "f"));
    let error = alone.open(&path("f")).await.err().unwrap().to_string();
    assert!(error.contains("is not in the options"), "{error}");
}
