//! How many bytes are written.

use std::time::Duration;

use base::testing;
use fs::memory::MemoryFs;

use super::support::{MIB, admit, block, bytes_of, options, settle, start};
use crate::{Options, SecondLevel};

#[tokio::test(start_paused = true)]
async fn blocks_that_are_read_once_cause_no_writes() {
    let (env, fs) = (testing::env(1), MemoryFs::new());
    let cache = start(&env, &fs, options(64 * MIB)).await;
    for number in 0..2000 {
        cache.offer(block(number), &bytes_of(block(number)));
    }
    settle(&env).await;
    let stats = cache.stats();
    // The Bloom filters take a few new blocks for known ones.
    assert!(stats.first_reads > 1800 && stats.writes < 100, "{stats:?}");
    assert!(stats.written_bytes < 100 * 35_000);
}

#[tokio::test(start_paused = true)]
async fn the_write_rate_is_limited() {
    let (env, fs) = (testing::env(1), MemoryFs::new());
    let per_second = 100 << 10;
    let limited = Options { write_rate_max: Some(per_second), ..options(8 * MIB) };
    let cache = start(&env, &fs, limited).await;
    let seconds = 400;
    for second in 0..seconds {
        (0..5).for_each(|number| admit(&cache, block(second * 5 + number)));
        // Used blocks are copied, which counts, too.
        cache.get(block(second * 5)).await;
        env.clock.sleep(Duration::from_secs(1)).await;
    }
    settle(&env).await;
    let stats = cache.stats();
    let limit = (seconds + 10) * per_second;
    assert!(stats.written_bytes < limit + limit / 20, "{stats:?}");
    assert!(stats.written_bytes > limit / 2 && stats.over_rate > 500, "{stats:?}");
}

#[tokio::test(start_paused = true)]
async fn writes_are_whole_chunks() {
    let (env, fs) = (testing::env(1), MemoryFs::new());
    let plan = fs::faulty::Plan::new(env.clock.clone());
    let counted = fs::faulty::Faulty::new(std::sync::Arc::new(fs), plan);
    let cache =
        crate::SsdCache::start(env.clone(), vec![std::sync::Arc::new(counted.clone())], options(64 * MIB));
    cache.recovered().await;
    for number in 0..1000 {
        admit(&cache, block(number));
        tokio::task::yield_now().await;
    }
    settle(&env).await;
    let stats = cache.stats();
    let writes = counted.calls(fs::faulty::Operation::Append);
    assert_eq!((stats.writes, stats.dropped), (1000, 0));
    assert!(stats.written_bytes / writes > MIB, "{writes} writes of {} bytes", stats.written_bytes);
}
