//! An SSD that fails, hangs, or is full.

use std::sync::Arc;
use std::time::Duration;

use base::env::{Env, Random};
use base::testing::{self, SeededRandom};
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;

use super::support::{MIB, admit, block, is_found, options, settle};
use crate::{READ_LIMIT, SecondLevel, SsdCache};

fn faulty(env: &Env) -> Faulty {
    Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()))
}

/// A cache with the blocks 0 to 9.
async fn cache_on(env: &Env, fs: &Faulty) -> SsdCache {
    let cache = SsdCache::start(env.clone(), vec![Arc::new(fs.clone())], options(8 * MIB));
    cache.recovered().await;
    (0..10).for_each(|number| admit(&cache, block(number)));
    settle(env).await;
    assert_eq!(cache.stats().blocks, 10);
    cache
}

#[tokio::test(start_paused = true)]
async fn a_read_that_hangs_disables_the_cache_for_a_while() {
    let env = testing::env(1);
    let fs = faulty(&env);
    let cache = cache_on(&env, &fs).await;
    fs.add(Rule::new(Fault::Hang).on(Operation::Read));
    let before = env.clock.monotonic();
    assert!(cache.get(block(1)).await.is_none());
    assert_eq!(env.clock.monotonic() - before, READ_LIMIT);
    for number in 0..10 {
        assert!(cache.get(block(number)).await.is_none());
    }
    assert_eq!(env.clock.monotonic() - before, READ_LIMIT, "disabled reads do not wait");
    let stats = cache.stats();
    assert_eq!((stats.timeouts, stats.bypassed, stats.is_enabled), (1, 10, false));
    fs.heal();
    env.clock.sleep(Duration::from_secs(30)).await;
    assert!(is_found(&cache, block(1)).await);
    assert!(cache.stats().is_enabled && cache.get(block(2)).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_cannot_be_listed_is_not_used() {
    for fault in [Fault::Fail, Fault::Hang] {
        let env = testing::env(1);
        let fs = faulty(&env);
        fs.add(Rule::new(fault).on(Operation::List).times(1));
        let cache = SsdCache::start(env.clone(), vec![Arc::new(fs.clone())], options(8 * MIB));
        cache.recovered().await;
        admit(&cache, block(1));
        settle(&env).await;
        assert!(cache.get(block(1)).await.is_none() && !cache.prefetched(block(2), b"block").await);
        let stats = cache.stats();
        assert!(!stats.is_enabled && (stats.writes, stats.blocks) == (0, 0), "{stats:?}");
        cache.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn flipped_bits_are_never_served() {
    let env = testing::env(1);
    let fs = faulty(&env);
    let cache = cache_on(&env, &fs).await;
    fs.add(Rule::new(Fault::Flip).on(Operation::Read));
    for number in 0..10 {
        assert!(cache.get(block(number)).await.is_none());
    }
    assert_eq!((cache.stats().mismatches, cache.stats().blocks), (10, 0));
}

#[tokio::test(start_paused = true)]
async fn a_read_error_is_a_miss() {
    let env = testing::env(1);
    let fs = faulty(&env);
    let cache = cache_on(&env, &fs).await;
    fs.add(Rule::new(Fault::Fail).on(Operation::Read).times(1));
    assert!(cache.get(block(1)).await.is_none());
    assert!(cache.get(block(2)).await.is_some());
    assert_eq!((cache.stats().read_errors, cache.stats().is_enabled), (1, true));
}

#[tokio::test(start_paused = true)]
async fn failed_and_torn_writes_lose_only_their_blocks() {
    let operations =
        [Operation::Create, Operation::Append, Operation::Sync, Operation::Open, Operation::SyncDir];
    for fault in [Fault::Fail, Fault::FailAfter, Fault::Tear, Fault::Flip, Fault::Hang] {
        for operation in operations {
            let env = testing::env(1);
            let fs = faulty(&env);
            let cache = cache_on(&env, &fs).await;
            fs.add(Rule::new(fault).on(operation).times(1));
            for number in 10..200 {
                admit(&cache, block(number));
                env.clock.sleep(Duration::from_secs(1)).await;
            }
            settle(&env).await;
            // A hang disables the cache for half a minute.
            env.clock.sleep(Duration::from_secs(60)).await;
            let mut found_blocks = 0;
            for id in (0..200).map(block) {
                found_blocks += u64::from(is_found(&cache, id).await);
            }
            let stats = cache.stats();
            assert!(fs.faults() > 0, "{fault:?} {operation:?}");
            assert!(
                found_blocks > 80 && stats.is_enabled,
                "{fault:?} {operation:?}: {found_blocks} {stats:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_makes_the_cache_smaller() {
    let env = testing::env(1);
    let fs = faulty(&env);
    fs.set_capacity(Some(4 * MIB));
    let cache = cache_on(&env, &fs).await;
    for number in 10..1000 {
        admit(&cache, block(number));
        env.clock.sleep(Duration::from_secs(2)).await;
    }
    settle(&env).await;
    let stats = cache.stats();
    assert!(stats.used_bytes <= 4 * MIB && stats.is_enabled, "{stats:?}");
    assert!(stats.failed_writes > 0 && stats.writes > 600, "{stats:?}");
    assert!(cache.get(block(999)).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn slow_writes_drop_blocks_and_delay_no_read() {
    let env = testing::env(1);
    let fs = faulty(&env);
    let cache = cache_on(&env, &fs).await;
    fs.add(Rule::new(Fault::Delay(Duration::from_secs(5))).on(Operation::Append));
    let before = env.clock.monotonic();
    for number in 10..300 {
        admit(&cache, block(number));
        assert!(cache.get(block(number % 10)).await.is_some());
    }
    assert_eq!(env.clock.monotonic(), before);
    let stats = cache.stats();
    assert!(stats.dropped > 100 && stats.dropped_blocks() == stats.dropped, "{stats:?}");
}

#[tokio::test(start_paused = true)]
async fn random_faults_never_lead_to_wrong_bytes() {
    let mut hits = 0;
    for seed in 0..20 {
        let (env, random) = (testing::env(seed), SeededRandom::new(seed));
        let fs = faulty(&env);
        for fault in [Fault::Fail, Fault::Tear, Fault::Flip, Fault::FailAfter] {
            fs.add(Rule::new(fault).one_in(30, std::sync::Arc::new(SeededRandom::new(seed + 100))));
        }
        for _ in 0..3 {
            let cache = SsdCache::start(env.clone(), vec![Arc::new(fs.clone())], options(4 * MIB));
            cache.recovered().await;
            for _ in 0..300 {
                let id = block(random.next_u64() % 200);
                match random.next_u64() % 4 {
                    0 => admit(&cache, id),
                    1 => env.clock.sleep(Duration::from_secs(3)).await,
                    _ => hits += u64::from(is_found(&cache, id).await),
                }
            }
            cache.close().await;
        }
    }
    assert!(hits > 200, "{hits}");
}
