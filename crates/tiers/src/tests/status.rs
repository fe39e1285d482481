//! What the operator sees.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base::testing::env;
use fs::Role;
use fs::faulty::{Fault, Rule};

use super::support::{Disks, path, write};
use crate::tier_status::TierStatus;
use crate::{Health, MissingVolume, Mover, Tier};

#[tokio::test]
async fn the_status_has_all_volumes_with_health_space_and_load() {
    let database = Disks::new().open(&env(1)).await;
    let fs = &database.fs;
    write(fs, "a", Role::Flush, &[1; 1000]).await.unwrap();
    let status = fs.status();
    let named: Vec<_> = status.iter().map(|tier| (&*tier.name, &*tier.class, tier.volumes.len())).collect();
    assert_eq!(named, [("ssd", "ssd", 1), ("hdd", "hdd", 2)]);
    let fast = &status[0].volumes[0];
    assert_eq!((&*fast.directory, &fast.health, fast.load.waiting_requests), ("/mnt/fast", &Health::Good, 7));
    // The space is that of the poll at the start, less the bytes written since then.
    let space = fast.space.unwrap();
    assert_eq!(space.total_bytes, 1 << 20);
    assert!(fast.used_bytes() >= 1000 && fast.used_bytes() < 2000, "{space:?}");
    assert!((fast.used_share().unwrap() - fast.used_bytes() as f64 / (1 << 20) as f64).abs() < 1e-9);

    database.volumes[0].add(Rule::new(Fault::Fail));
    database.volumes[1].set_capacity(Some(0));
    database.speeds[2].completion_ms.store(u64::MAX, Ordering::Relaxed);
    write(fs, "b", Role::Flush, b"b").await.unwrap_err();
    let health: Vec<_> =
        fs.status().into_iter().flat_map(|tier| tier.volumes).map(|volume| volume.health).collect();
    assert!(matches!(health[0], Health::Failed(_)), "{health:?}");
    assert_eq!(health[1..], [Health::Full, Health::Stuck]);
}

#[tokio::test]
async fn moved_bytes_are_counted_on_both_sides() {
    let database = Disks::new().open(&env(1)).await;
    let fs = &database.fs;
    write(fs, "a", Role::Flush, &[1; 1000]).await.unwrap();
    let mover = Mover::new(fs.clone(), 1 << 30);
    assert_eq!(mover.move_to(&path("a"), 1).await.unwrap(), Some(1000));
    assert_eq!(mover.move_to(&path("a"), 1).await.unwrap(), None);
    let sums = |status: &TierStatus| {
        let moved = status.volumes.iter().map(|volume| (volume.moved_in_bytes, volume.moved_out_bytes));
        moved.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    };
    assert_eq!(fs.status().iter().map(sums).collect::<Vec<_>>(), [(0, 1000), (1000, 0)]);
}

#[tokio::test]
async fn a_missing_volume_is_failed() {
    let database = Disks::new().open(&env(1)).await;
    let missing = MissingVolume { directory: Arc::from("/mnt/gone"), reason: "is its disk mounted?".into() };
    let tier = Tier { missing: vec![missing], ..database.fs.tiers()[0].clone() };
    let status = TierStatus::of(&tier, Duration::ZERO);
    assert_eq!(status.volumes.len(), 2);
    let gone = &status.volumes[1];
    assert_eq!((&*gone.directory, gone.space, gone.used_share()), ("/mnt/gone", None, None));
    assert_eq!(gone.health, Health::Failed("is its disk mounted?".into()));
}
