//! What a region server reports to the master: its start, and opened and closed regions.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::world::{AcceptingMaster, SECOND, World, run, server_name};
use cell::region::RegionInfo;
use proto::exception::class;

#[test]
fn a_registration_that_took_long_is_repeated_with_the_current_time() {
    run(async {
        let env = base::testing::env(1);
        let master = AcceptingMaster::new(&env);
        master.late_startups.lock().unwrap().push(6 * SECOND);
        regionserver::register(&env, &master, &server_name(1)).await.unwrap();
        assert_eq!(master.startups.load(Ordering::Relaxed), 2);
        master.late_startups.lock().unwrap().push(SECOND);
        let refused = regionserver::register(&env, &master, &server_name(1)).await.unwrap_err();
        assert!(refused.is(class::CLOCK_OUT_OF_SYNC), "a prompt rejection is final");
        assert_eq!(master.startups.load(Ordering::Relaxed), 3);
    });
}

#[test]
fn the_pause_between_rejected_reports_grows_to_two_seconds() {
    run(async {
        const REJECTED: usize = 8;
        let world = World::begin().await;
        let reports = &world.region_reports;
        // The report about the first region.
        while reports.times.lock().unwrap().is_empty() {
            world.env.clock.sleep(SECOND).await;
        }
        reports.times.lock().unwrap().clear();
        reports.rejected.store(REJECTED, Ordering::Relaxed);
        let table = world.served().info().table.clone();
        world.open(&RegionInfo::new(table, "".into(), "".into(), 2)).await;
        world.env.clock.sleep(60 * SECOND).await;
        let times = reports.times.lock().unwrap().clone();
        assert_eq!(times.len(), REJECTED + 1, "the last one is accepted");
        for (failures, pair) in times.windows(2).enumerate() {
            let (took, longest) = (pair[1] - pair[0], (SECOND / 10 * (1_u32 << failures)).min(2 * SECOND));
            // A timer may be late by its resolution.
            let range = longest / 2..=longest + Duration::from_millis(2);
            assert!(range.contains(&took), "pause {failures}: {took:?}");
        }
    });
}
