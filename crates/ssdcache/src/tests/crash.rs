//! After power loss at any time, each block that is found has the right bytes.

use base::env::Random;
use base::testing::{self, SeededRandom};
use fs::memory::MemoryFs;

use super::support::{MIB, admit, block, is_found, options, settle, start};

const BLOCKS: u64 = 400;

#[tokio::test(start_paused = true)]
async fn no_crash_leads_to_wrong_bytes() {
    let (mut hits, mut reopened_with_blocks) = (0, 0);
    for seed in 0..30 {
        let (env, random) = (testing::env(seed), SeededRandom::new(seed));
        let mut fs = MemoryFs::new();
        for _ in 0..4 {
            let cache = start(&env, &fs, options(4 * MIB)).await;
            reopened_with_blocks += u64::from(cache.stats().blocks > 0);
            for id in (0..BLOCKS).map(block) {
                hits += u64::from(is_found(&cache, id).await);
            }
            for _ in 0..random.next_u64() % 200 {
                let id = block(random.next_u64() % BLOCKS);
                match random.next_u64() % 8 {
                    0..5 => admit(&cache, id),
                    5 => settle(&env).await,
                    _ => _ = is_found(&cache, id).await,
                }
                tokio::task::yield_now().await;
                assert!(cache.stats().used_bytes <= 4 * MIB);
            }
            fs = fs.crash(&mut || random.next_u64());
        }
    }
    assert!(hits > 1000 && reopened_with_blocks > 30, "{hits} {reopened_with_blocks}");
}

#[tokio::test(start_paused = true)]
async fn damaged_segments_are_ignored() {
    let (env, fs) = (testing::env(3), MemoryFs::new());
    let cache = start(&env, &fs, options(8 * MIB)).await;
    for number in 0..100 {
        admit(&cache, block(number));
        if number % 10 == 0 {
            settle(&env).await;
        }
    }
    cache.close().await;
    drop(cache);
    let random = SeededRandom::new(3);
    for number in super::support::segments_of(&fs).await {
        let path = crate::segments::path_of(number);
        let mut bytes = fs.contents(&path).unwrap();
        for _ in 0..20 {
            let at = random.next_u64() as usize % bytes.len();
            bytes[at] ^= 1 << (random.next_u64() % 8);
        }
        fs.put(&path, bytes);
    }
    let cache = start(&env, &fs, options(8 * MIB)).await;
    let mut found_blocks = 0;
    for id in (0..100).map(block) {
        found_blocks += u64::from(is_found(&cache, id).await);
    }
    let stats = cache.stats();
    assert!((10..100).contains(&found_blocks) && stats.mismatches > 0, "{found_blocks} {stats:?}");
}
