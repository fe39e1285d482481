//! Concurrent use from several threads.

use std::sync::Arc;

use base::env::Random;
use base::pool::Pool;
use base::testing::{self, SeededRandom};
use fs::memory::MemoryFs;
use futures_util::FutureExt;
use tokio::runtime::Handle;

use super::support::{MIB, admit, block, bytes_of, options, start};
use crate::SecondLevel;

#[tokio::test]
async fn threads_find_the_right_bytes() {
    let (env, fs) = (testing::env(1), MemoryFs::new());
    let cache = Arc::new(start(&env, &fs, options(4 * MIB)).await);
    let pool = Pool::new("readers", 4);
    let jobs: Vec<_> = (0..4)
        .map(|thread| {
            let (cache, handle) = (cache.clone(), Handle::current());
            pool.run(move || {
                let _runtime = handle.enter();
                let random = SeededRandom::new(thread);
                let mut hits = 0;
                for _ in 0..2000 {
                    let id = block(random.next_u64() % 300);
                    // The file system in memory never waits.
                    match cache.get(id).now_or_never().expect("ready") {
                        Some(found) => {
                            assert!(found.bytes == bytes_of(id));
                            hits += 1;
                        }
                        None => admit(&cache, id),
                    }
                }
                hits
            })
        })
        .collect();
    let mut hits = 0;
    for job in jobs {
        hits += job.await;
    }
    cache.close().await;
    let stats = cache.stats();
    assert!(hits > 0 && stats.hits == hits && stats.used_bytes <= 4 * MIB, "{hits} {stats:?}");
    assert!(stats.evictions > 0 && stats.mismatches == 0, "{stats:?}");
}
