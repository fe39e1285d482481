use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use base::env::Random;
use base::pool::Pool;
use base::testing::SeededRandom;
use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::*;

fn key(file_id: u64, offset: u64) -> BlockKey {
    BlockKey { file_id, offset }
}

fn block(len: usize) -> Bytes {
    Bytes::from(vec![1; len])
}

// Each test has its own runtime.
#[allow(clippy::disallowed_methods)]
fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> tokio::task::JoinHandle<T> {
    tokio::spawn(task)
}

/// Reports a large weight without using the memory.
#[derive(Clone)]
struct Heavy(usize);

impl Weighted for Heavy {
    fn weight(&self) -> usize {
        self.0
    }
}

/// A block of a class.
#[derive(Clone)]
struct Classed(usize, Class);

impl Weighted for Classed {
    fn weight(&self) -> usize {
        self.0
    }

    fn class(&self) -> Class {
        self.1
    }
}

/// How many of these keys are cached.
fn there(cache: &BlockCache<Classed>, keys: impl Iterator<Item = BlockKey>) -> usize {
    keys.filter(|key| cache.contains(key)).count()
}

#[test]
fn classes_keep_their_share_under_any_load() {
    let cache = BlockCache::new(4 << 20);
    // Both are within their quarters and never read again.
    for offset in 0..50 {
        cache.insert(key(1, offset), Classed(10_000, Class::Index));
        cache.insert(key(2, offset), Classed(10_000, Class::Favoured));
    }
    for round in 0..5 {
        for offset in 0..1000 {
            cache.insert(key(3, offset), Classed(10_000, Class::Normal));
            cache.get(&key(3, offset / 2 + round));
        }
    }
    assert_eq!(there(&cache, (0..50).map(|offset| key(1, offset))), 50);
    assert_eq!(there(&cache, (0..50).map(|offset| key(2, offset))), 50);
    assert!(cache.stats().weight_bytes <= 4 << 20);
}

#[test]
fn a_class_beyond_its_share_is_evicted() {
    for class in [Class::Index, Class::Favoured] {
        let cache = BlockCache::new(1 << 20);
        for offset in 0..1000 {
            cache.insert(key(1, offset), Classed(10_000, class));
            assert!(cache.stats().weight_bytes <= 1 << 20);
        }
        // Cyclic reads of ten keys at a time.
        for wanted in (0..100).flat_map(|round| (0..50).map(move |i| round * 10 + i % 10)) {
            if cache.get(&key(2, wanted)).is_none() {
                cache.insert(key(2, wanted), Classed(10_000, Class::Normal));
            }
        }
        let left = there(&cache, (0..1000).map(|offset| key(1, offset)));
        assert!((20..60).contains(&left), "{left} values of a class with a share of 25");
    }
}

#[tokio::test]
async fn bytes_of_classes_are_counted_exactly() {
    let random = SeededRandom::new(9);
    let cache = BlockCache::new(1 << 20);
    for step in 0..5000 {
        let class = [Class::Normal, Class::Favoured, Class::Index][(random.next_u64() % 3) as usize];
        let value = Classed((random.next_u64() % 60_000) as usize, class);
        let at = key(random.next_u64() % 5, random.next_u64() % 100);
        match random.next_u64() % 50 {
            0 => cache.evict_file(at.file_id),
            1 => cache.set_capacity((1 << 18) + random.next_u64() % (1 << 20)),
            2..10 => {
                let _ = cache.load_with(at, async { Ok::<_, ()>(value) }).await;
            }
            _ => cache.insert(at, value),
        }
        let stats = cache.stats();
        assert!(stats.weight_bytes <= stats.capacity_bytes, "after {step}: {stats:?}");
    }
    cache.clear();
    assert_eq!(cache.shares.class_bytes(), [0, 0]);
    assert_eq!(cache.stats().weight_bytes, 0);
}

async fn loaded(value: Bytes) -> Result<Bytes, &'static str> {
    Ok(value)
}

#[test]
fn hits_and_misses_are_counted() {
    let cache = BlockCache::new(1 << 20);
    assert_eq!(cache.get(&key(1, 0)), None);
    cache.insert(key(1, 0), block(100));
    assert_eq!(cache.get(&key(1, 0)), Some(block(100)));
    assert!(cache.contains(&key(1, 0)));
    assert_eq!(cache.get(&key(1, 100)), None);
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses, stats.entries), (1, 2, 1));
    assert_eq!(stats.weight_bytes, 100 + ENTRY_BYTES);
    assert_eq!(stats.capacity_bytes, 1 << 20);
}

#[tokio::test]
async fn many_waiters_one_load() {
    const THREADS: usize = 4;
    const TASKS: usize = 8;
    let cache = Arc::new(BlockCache::new(1 << 20));
    let pool = Pool::new("runtime", THREADS);
    for round in 0..50 {
        let runs = Arc::new(AtomicUsize::new(0));
        let together = Arc::new(Barrier::new(THREADS));
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let (cache, runs, together) = (cache.clone(), runs.clone(), together.clone());
                pool.run(move || {
                    together.wait();
                    on_a_runtime(wait_many::<TASKS>(cache, key(1, round), runs));
                })
            })
            .collect();
        for thread in threads {
            thread.await;
        }
        assert_eq!(runs.load(Ordering::SeqCst), 1, "round {round}");
    }
    assert_eq!(cache.stats().loads, 50);
}

fn on_a_runtime(task: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(task);
}

async fn wait_many<const TASKS: usize>(cache: Arc<BlockCache<Bytes>>, at: BlockKey, runs: Arc<AtomicUsize>) {
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (cache, runs) = (cache.clone(), runs.clone());
        tasks.spawn(async move {
            let load = async {
                runs.fetch_add(1, Ordering::SeqCst);
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
                Ok::<_, ()>(block(1000))
            };
            cache.load_with(at, load).await
        });
    }
    while let Some(result) = tasks.join_next().await {
        assert_eq!(result.unwrap(), Ok(block(1000)));
    }
}

#[tokio::test]
async fn a_failed_load_is_not_cached_and_the_next_waiter_loads() {
    let cache = BlockCache::new(1 << 20);
    let (fail, failing) = oneshot::channel::<()>();
    let first = cache.load_with(key(1, 0), async {
        failing.await.unwrap();
        Err("bad disk")
    });
    let later_runs = AtomicUsize::new(0);
    let later = || {
        cache.load_with(key(1, 0), async {
            later_runs.fetch_add(1, Ordering::SeqCst);
            Ok::<_, &str>(block(10))
        })
    };
    let (second, third) = (later(), later());
    let release = async {
        tokio::task::yield_now().await;
        fail.send(()).unwrap();
    };
    let (first, second, third, ()) = tokio::join!(biased; first, second, third, release);
    assert_eq!(first, Err("bad disk"));
    assert_eq!(second, Ok(block(10)));
    assert_eq!(third, Ok(block(10)));
    assert_eq!(later_runs.load(Ordering::SeqCst), 1, "the first load served the other waiter");
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.failed_loads, stats.entries), (1, 1, 1));
}

#[tokio::test]
async fn a_dropped_load_lets_the_next_waiter_load() {
    let cache = Arc::new(BlockCache::new(1 << 20));
    let loading = spawn({
        let cache = cache.clone();
        async move { cache.load_with(key(1, 0), std::future::pending::<Result<Bytes, ()>>()).await }
    });
    tokio::task::yield_now().await;
    let waiting = spawn({
        let cache = cache.clone();
        async move { cache.load_with(key(1, 0), loaded(block(10))).await }
    });
    tokio::task::yield_now().await;
    loading.abort();
    assert_eq!(waiting.await.unwrap(), Ok(block(10)));
}

#[test]
fn the_capacity_is_never_exceeded() {
    let random = SeededRandom::new(3);
    // One shard, several shards, and a capacity that the number of shards does not divide.
    for capacity in [100_000, (64 << 20) + 12_345, 3 << 20] {
        let cache = BlockCache::new(capacity);
        assert!(cache.stats().capacity_bytes <= capacity);
        for i in 0..3000 {
            let len = random.next_u64() % (capacity / 20);
            cache.insert(key(i % 7, i), Heavy(len as usize));
            let weight = cache.stats().weight_bytes;
            assert!(weight <= capacity, "{weight} of {capacity} after {i}");
        }
        let stats = cache.stats();
        assert!(stats.weight_bytes > capacity / 2, "a full cache is well used: {stats:?}");
        assert!(stats.evictions > 0);
    }
}

#[tokio::test]
async fn a_value_too_large_is_returned_but_not_cached() {
    let cache = BlockCache::new(10_000);
    assert_eq!(cache.load_with(key(1, 0), loaded(block(50_000))).await, Ok(block(50_000)));
    assert!(!cache.contains(&key(1, 0)));
    let nothing = BlockCache::new(0);
    assert_eq!(nothing.load_with(key(1, 0), loaded(block(1))).await, Ok(block(1)));
    assert_eq!(nothing.stats().weight_bytes, 0);
}

#[test]
fn all_values_of_a_file_are_evicted() {
    let cache = BlockCache::new(1 << 20);
    for offset in 0..50 {
        cache.insert(key(1, offset), block(100));
        cache.insert(key(2, offset), block(100));
    }
    cache.evict_file(1);
    assert!((0..50).all(|offset| !cache.contains(&key(1, offset)) && cache.contains(&key(2, offset))));
    assert_eq!(cache.stats().weight_bytes, 50 * (100 + ENTRY_BYTES));
    cache.clear();
    assert_eq!(cache.stats().entries, 0);
}

#[test]
fn a_smaller_capacity_evicts_immediately() {
    let cache = BlockCache::new(1 << 20);
    for offset in 0..100 {
        cache.insert(key(1, offset), block(10_000));
    }
    assert!(cache.stats().weight_bytes > 900_000);
    cache.set_capacity(200_000);
    let stats = cache.stats();
    assert!(stats.weight_bytes <= 200_000, "{stats:?}");
    cache.set_capacity(1 << 20);
    for offset in 0..100 {
        cache.insert(key(2, offset), block(10_000));
    }
    assert!(cache.stats().weight_bytes > 900_000);
}

#[test]
fn a_scan_does_not_evict_frequent_values() {
    let cache = BlockCache::new(1 << 20);
    let wanted: Vec<_> = (0..30).map(|offset| key(1, offset)).collect();
    for at in &wanted {
        cache.insert(*at, block(10_000));
    }
    for offset in 0..1000 {
        cache.insert(key(2, offset), block(10_000));
        cache.get(&wanted[offset as usize % wanted.len()]);
    }
    let kept = wanted.iter().filter(|at| cache.contains(at)).count();
    assert!(kept > 25, "{kept} of 30 still cached after a scan of ten times the cache");
}

#[test]
fn a_value_outlives_its_eviction() {
    let cache = BlockCache::new(1 << 20);
    cache.insert(key(1, 0), block(100));
    let held = cache.get(&key(1, 0)).unwrap();
    cache.evict_file(1);
    assert_eq!(held, block(100));
}

#[test]
fn find_counts_no_miss() {
    let cache: BlockCache<Bytes> = BlockCache::new(1 << 20);
    let key = BlockKey { file_id: 1, offset: 0 };
    assert!(cache.get_counting_hits(&key).is_none() && cache.get(&key).is_none());
    cache.insert(key, Bytes::from_static(b"block"));
    assert!(cache.get_counting_hits(&key).is_some() && cache.get(&key).is_some());
    assert_eq!((cache.stats().hits, cache.stats().misses), (2, 1));
}

#[test]
fn an_epoch_ends_with_evictions_and_is_unique_to_a_cache() {
    let (cache, other) = (BlockCache::new(1 << 20), BlockCache::<Bytes>::new(1 << 20));
    let first = cache.epoch();
    assert_ne!(first, other.epoch());
    (0..100).for_each(|offset| cache.insert(key(1, offset), block(1_000)));
    assert_eq!((cache.epoch(), cache.stats().evictions), (first, 0), "nothing was evicted");
    let (mut turns, mut last) = (0, first);
    for offset in 0..10_000 {
        cache.insert(key(2, offset), block(10_000));
        turns += u64::from(std::mem::replace(&mut last, cache.epoch()) != last);
    }
    // An epoch evicts a small part of the cached values.
    let (evictions, entries) = (cache.stats().evictions, cache.stats().entries);
    assert!(evictions > 9_000 && evictions / turns <= entries / 4, "{evictions} in {turns} turns");
    cache.evict_file(2);
    assert_ne!(cache.epoch(), last, "dropping a file ends the epoch");
    assert_ne!(cache.epoch(), other.epoch());
}
