//! Blocks and caches for tests.

use std::sync::Arc;
use std::time::Duration;

use base::env::{Env, Random};
use base::testing::SeededRandom;
use bytes::Bytes;
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};

use crate::{BlockId, Options, SecondLevel, SsdCache, segments};

pub(super) const MIB: u64 = 1 << 20;

pub(super) fn options(capacity_bytes: u64) -> Options {
    Options {
        capacity_bytes,
        is_persistent: true,
        write_rate_max: None,
        errors_tolerated: Duration::from_secs(60),
    }
}

pub(super) async fn start(env: &Env, fs: &MemoryFs, options: Options) -> SsdCache {
    let cache = SsdCache::start(env.clone(), vec![Arc::new(fs.clone())], options);
    cache.recovered().await;
    cache
}

/// The identity of the block with this number. Ten blocks are in one file.
pub(super) fn block(number: u64) -> BlockId {
    let random = SeededRandom::new(number / 10);
    let file = (u128::from(random.next_u64()) << 64) | u128::from(random.next_u64());
    BlockId { file, offset: number % 10 * 65_536 }
}

/// The bytes of a block: 30 to 34 KiB that no other block has.
pub(super) fn bytes_of(id: BlockId) -> Bytes {
    let random = SeededRandom::new(id.key());
    let mut bytes = vec![0; (30 << 10) | (random.next_u64() % 4096) as usize];
    random.fill(&mut bytes);
    bytes.into()
}

/// Offers a block twice, so that it is admitted.
pub(super) fn admit(cache: &SsdCache, id: BlockId) {
    cache.offer(id, &bytes_of(id));
    cache.offer(id, &bytes_of(id));
}

/// Waits until all queued blocks are written.
pub(super) async fn settle(env: &Env) {
    env.clock.sleep(Duration::from_secs(11)).await;
}

pub(super) async fn segments_of(fs: &MemoryFs) -> Vec<u32> {
    let files = fs.list(&FilePath::root()).await.unwrap();
    files.iter().filter_map(|file| segments::number_of(&file.name)).collect()
}

/// Whether the block is found. Its bytes must be right.
pub(super) async fn is_found(cache: &SsdCache, id: BlockId) -> bool {
    let found = cache.get(id).await;
    assert!(found.as_ref().is_none_or(|found| found.bytes == bytes_of(id)), "wrong bytes of {id:?}");
    found.is_some()
}
