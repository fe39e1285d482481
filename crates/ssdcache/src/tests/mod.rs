//! Tests of the whole cache, on a file system in memory.

mod crash;
mod faults;
mod support;
mod threads;
mod wear;

use std::sync::Arc;
use std::time::Duration;

use base::testing;
use fs::memory::MemoryFs;

use crate::{Options, SecondLevel, SsdCache};
use support::{MIB, admit, block, bytes_of, is_found, options, settle, start};

#[tokio::test(start_paused = true)]
async fn a_block_is_cached_after_its_second_read() {
    let (env, fs) = (testing::env(1), MemoryFs::new());
    let cache = start(&env, &fs, options(16 * MIB)).await;
    let id = block(1);
    cache.offer(id, &bytes_of(id));
    settle(&env).await;
    assert!(cache.get(id).await.is_none() && !cache.contains(id));
    cache.offer(id, &bytes_of(id));
    settle(&env).await;
    assert!(is_found(&cache, id).await);
    assert!(cache.contains(id));
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses, stats.first_reads, stats.writes), (1, 1, 1, 1));
    assert!(stats.used_bytes >= bytes_of(id).len() as u64 && stats.used_bytes == stats.written_bytes);
}

#[tokio::test(start_paused = true)]
async fn a_block_that_is_read_often_is_written_once() {
    let (env, fs) = (testing::env(1), MemoryFs::new());
    let cache = start(&env, &fs, options(16 * MIB)).await;
    for _ in 0..20 {
        admit(&cache, block(1));
        env.clock.sleep(Duration::from_secs(1)).await;
    }
    settle(&env).await;
    let stats = cache.stats();
    assert_eq!((stats.writes, stats.first_reads, stats.dropped_blocks()), (1, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_prefetched_block_needs_no_read() {
    let (env, fs) = (testing::env(1), MemoryFs::new());
    let cache = start(&env, &fs, options(16 * MIB)).await;
    assert!(cache.prefetched(block(1), &bytes_of(block(1))).await);
    settle(&env).await;
    assert!(cache.get(block(1)).await.is_some());
    let mut prefetched = 1;
    while cache.prefetched(block(1 + prefetched), &bytes_of(block(1 + prefetched))).await {
        prefetched += 1;
    }
    settle(&env).await;
    let stats = cache.stats();
    assert_eq!(stats.writes + stats.dropped, prefetched, "no block is lost");
    assert_eq!((stats.evictions, stats.dropped), (0, 0), "prefetching evicts nothing");
    assert!(stats.used_bytes > 12 * MIB, "{stats:?}");
}

#[tokio::test(start_paused = true)]
async fn used_blocks_survive_eviction() {
    let (env, fs) = (testing::env(1), MemoryFs::new());
    let capacity = 8 * MIB;
    let cache = start(&env, &fs, options(capacity)).await;
    // Less than half of a segment.
    let hot = 7;
    for number in 0..3000 {
        admit(&cache, block(number));
        if number % 5 == 4 {
            settle(&env).await;
        }
        if number % 25 == 24 {
            for id in (0..hot).map(block) {
                assert!(is_found(&cache, id).await, "{number}");
            }
        }
        assert!(cache.stats().used_bytes <= capacity);
    }
    let stats = cache.stats();
    assert!(stats.copies > hot && stats.evictions > 1000 && stats.mismatches == 0, "{stats:?}");
    assert!(cache.get(block(100)).await.is_none(), "not used, so evicted");
    assert!(cache.get(block(2999)).await.is_some());
    assert_eq!(stats.written_bytes / stats.writes / 32_000, 1, "about one write per block: {stats:?}");
}

#[tokio::test(start_paused = true)]
async fn the_cache_is_warm_after_a_restart() {
    let (env, fs) = (testing::env(1), MemoryFs::new());
    let cache = start(&env, &fs, options(16 * MIB)).await;
    for number in 0..100 {
        admit(&cache, block(number));
        if number % 50 == 0 {
            settle(&env).await;
        }
    }
    cache.close().await;
    let used = cache.stats().used_bytes;
    drop(cache);
    let cache = start(&env, &fs, options(16 * MIB)).await;
    assert_eq!((cache.stats().blocks, cache.stats().used_bytes), (100, used));
    for id in (0..100).map(block) {
        assert!(is_found(&cache, id).await);
    }
    // Segments of this run do not replace those of the last one.
    admit(&cache, block(200));
    cache.close().await;
    drop(cache);
    let smaller = Options { capacity_bytes: 2 * MIB, ..options(0) };
    let cache = start(&env, &fs, smaller).await;
    assert!((1..101).contains(&cache.stats().blocks) && cache.stats().used_bytes <= 2 * MIB);
    assert!(cache.get(block(200)).await.is_some(), "the newest blocks stay");
    drop(cache);
    let cache = start(&env, &fs, Options { is_persistent: false, ..options(16 * MIB) }).await;
    assert_eq!((cache.stats().blocks, cache.stats().used_bytes), (0, 0));
    assert!(support::segments_of(&fs).await.is_empty(), "the files are deleted");
}

#[tokio::test(start_paused = true)]
async fn several_directories_share_the_segments() {
    let env = testing::env(1);
    let dirs = [MemoryFs::new(), MemoryFs::new()];
    let shared = || dirs.iter().map(|dir| Arc::new(dir.clone()) as Arc<dyn fs::FileSystem>).collect();
    let cache = SsdCache::start(env.clone(), shared(), options(8 * MIB));
    for number in 0..200 {
        admit(&cache, block(number));
        env.clock.sleep(Duration::from_secs(1)).await;
    }
    cache.close().await;
    for dir in &dirs {
        assert!(support::segments_of(dir).await.len() > 1);
    }
    drop(cache);
    let cache = SsdCache::start(env, shared(), options(8 * MIB));
    cache.recovered().await;
    assert!(cache.stats().blocks > 100);
    assert!(cache.get(block(199)).await.is_some() && cache.get(block(190)).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn other_files_are_left_alone() {
    let (env, fs) = (testing::env(1), MemoryFs::new());
    fs.put(&fs::FilePath::new("bucketcache.data"), *b"not ours");
    let cache = start(&env, &fs, Options { is_persistent: false, ..options(16 * MIB) }).await;
    drop(cache);
    assert_eq!(fs.contents(&fs::FilePath::new("bucketcache.data")).as_deref(), Some(&b"not ours"[..]));
}

#[tokio::test(start_paused = true)]
async fn a_rejected_block_is_not_served_again() {
    let (env, fs) = (testing::env(1), MemoryFs::new());
    let cache = start(&env, &fs, options(16 * MIB)).await;
    admit(&cache, block(1));
    settle(&env).await;
    cache.reject(block(1));
    assert!(cache.get(block(1)).await.is_none());
    assert_eq!(cache.stats().mismatches, 1);
}

#[tokio::test(start_paused = true)]
async fn blocks_with_the_same_hash_are_not_confused() {
    let (env, fs) = (testing::env(1), MemoryFs::new());
    let cache = start(&env, &fs, options(16 * MIB)).await;
    let id = block(1);
    // The halves of the file's identity are combined, so these two have one hash.
    let swapped = crate::BlockId { file: id.file ^ (1 << 64) ^ (1 << 32), ..id };
    assert_eq!(id.key(), swapped.key());
    admit(&cache, id);
    settle(&env).await;
    assert!(cache.get(swapped).await.is_none());
    assert_eq!(cache.stats().mismatches, 1);
    assert!(is_found(&cache, id).await);
}
