//! The second level of the block cache: blocks in files on an SSD.
//!
//! A reader that misses a block in memory calls [`SecondLevel::get`] before it reads the store
//! file. After a read of the store file it calls [`SecondLevel::offer`]. Blocks are stored as they
//! are in the store file: compressed and with their own checksums. Invariants:
//!
//! * A block is served only if its identity and its checksum are those that were written
//!   (`record`). Anything else is a miss.
//! * The identity of a file is unique ([`BlockId`]). So blocks of deleted files are never found,
//!   and need not be removed.
//! * A read waits for the SSD for at most [`READ_LIMIT`], and never for a write. While the SSD does
//!   not respond, all reads are misses (`health`).
//! * Writes are sequential: whole chunks, appended to segments (`writer`). If the SSD is too slow,
//!   blocks are dropped.
//! * No I/O happens under a lock.
//!
//! The index is in memory (`index`); after a restart it is read from the segments (`recovery`).
//!
//! Not here: what the blocks contain, and which blocks are offered.

mod admission;
mod chunk;
#[cfg(fuzzing)]
pub mod fuzzing;
mod geometry;
mod health;
mod index;
mod queue;
mod rate;
mod record;
mod recovery;
mod segments;
mod statistics;
#[cfg(test)]
mod tests;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use base::BoxFuture;
use base::env::{Env, TaskClass};
use bytes::Bytes;
use fs::FileSystem;
use tokio::sync::watch;
use tracing::debug;

use admission::ReadHistory;
use geometry::Geometry;
use health::Health;
use index::{Index, Location};
use queue::Queue;
use rate::WriteRate;
use segments::Segments;
use statistics::Counts;
pub use statistics::Stats;

/// Maximum time for which a read waits for the SSD. A block of a store file usually takes a few
/// milliseconds, even from a remote disk.
pub const READ_LIMIT: Duration = Duration::from_secs(1);
/// Time after which a stop no longer waits for the last write.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// Identifies a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockId {
    /// Identity of the file: a hash of its name and contents, which no other file has. The same in
    /// each process.
    pub file: u128,
    /// Offset of the block in the file.
    pub offset: u64,
}

impl BlockId {
    /// The hash under which the block is indexed.
    fn key(self) -> u64 {
        // The multipliers are those of SplitMix64 and its finalizer, which spread the bits.
        let file = (self.file as u64) ^ ((self.file >> 64) as u64).rotate_left(32);
        let mut mixed = file ^ self.offset.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// A block that was found.
#[derive(Clone, Debug)]
pub struct FoundBlock {
    /// The bytes that were offered.
    pub bytes: Bytes,
    /// Memory in bytes that `bytes` keeps in addition to its length.
    pub unused_bytes: usize,
}

/// A cache of blocks below the one in memory.
pub trait SecondLevel: Send + Sync + 'static {
    /// The block, if it is cached.
    fn get(&self, id: BlockId) -> BoxFuture<'_, Option<FoundBlock>>;

    /// Whether the block is cached. Does not count as a use.
    fn contains(&self, id: BlockId) -> bool;

    /// Passes a block that was read from its store file for a caller. It is cached if it was read
    /// before. Does not wait, and copies the bytes.
    fn offer(&self, id: BlockId, bytes: &[u8]);

    /// Caches a block that is expected to be read, for example because its file is prefetched.
    /// Waits while the queue of writes is full. Returns `false` if the cache has no free space, or
    /// does not accept blocks; `true` if the block is cached already.
    fn prefetched<'a>(&'a self, id: BlockId, bytes: &'a [u8]) -> BoxFuture<'a, bool>;

    /// Removes a block whose bytes are not those of the block, according to the caller's checks.
    fn reject(&self, id: BlockId);
}

/// Settings of a [`SsdCache`].
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Maximum size of all files together, in bytes.
    pub capacity_bytes: u64,
    /// Whether the contents of an earlier run are used. Otherwise they are deleted at the start.
    pub is_persistent: bool,
    /// Maximum write rate in bytes per second; `None`: no limit.
    pub write_rate_max: Option<u64>,
    /// Time for which every read may fail before the cache is disabled for a while. A read that
    /// takes longer than [`READ_LIMIT`] disables it immediately.
    pub errors_tolerated: Duration,
}

/// Blocks in files on an SSD; see the crate's documentation.
pub struct SsdCache {
    shared: Arc<Shared>,
    /// Whether the contents of an earlier run have been indexed.
    recovered: watch::Receiver<bool>,
    /// Whether the writer has ended.
    ended: watch::Receiver<bool>,
}

/// What readers and the writer share.
struct Shared {
    env: Env,
    options: Options,
    geometry: Geometry,
    dirs: Vec<Arc<dyn FileSystem>>,
    index: Index,
    segments: Segments,
    history: ReadHistory,
    rate: WriteRate,
    health: Health,
    queue: Queue,
    counts: Counts,
}

impl SsdCache {
    /// A cache in the root directories of `dirs`, which no other process may use. Returns
    /// immediately: the contents of an earlier run are indexed in the background.
    ///
    /// # Panics
    /// If `dirs` is empty.
    pub fn start(env: Env, dirs: Vec<Arc<dyn FileSystem>>, options: Options) -> SsdCache {
        assert!(!dirs.is_empty(), "a cache needs a directory");
        let geometry = Geometry::of(options.capacity_bytes);
        let now = env.clock.monotonic();
        let shared = Arc::new(Shared {
            index: Index::new(),
            segments: Segments::new(),
            history: ReadHistory::new(options.capacity_bytes),
            rate: WriteRate::new(options.write_rate_max, now),
            health: Health::new(options.errors_tolerated),
            queue: Queue::new(geometry.queue_bytes()),
            counts: Counts::default(),
            env,
            options,
            geometry,
            dirs,
        });
        let (recovery_done, recovered) = watch::channel(false);
        let (end, ended) = watch::channel(false);
        let of_writer = shared.clone();
        shared.env.spawn(TaskClass::Background, async move {
            let recovered = recovery::recover(&of_writer).await;
            if recovered.is_none() {
                of_writer.health.give_up();
                of_writer.queue.close();
            }
            recovery_done.send_replace(true);
            if let Some(recovered) = recovered {
                writer::Writer::new(of_writer, recovered).run().await;
            }
            end.send_replace(true);
        });
        SsdCache { shared, recovered, ended }
    }

    /// Waits until the contents of an earlier run are indexed.
    pub async fn recovered(&self) {
        _ = self.recovered.clone().wait_for(|recovered| *recovered).await;
    }

    /// Writes the queued blocks, and accepts no more. Takes a few seconds at most.
    pub async fn close(&self) {
        self.shared.queue.close();
        let mut ended = self.ended.clone();
        if self.shared.env.timeout(CLOSE_LIMIT, ended.wait_for(|ended| *ended)).await.is_none() {
            debug!("stopped before the last blocks were written to the second-level block cache");
        }
    }

    /// Current statistics.
    pub fn stats(&self) -> Stats {
        let shared = &*self.shared;
        Stats {
            capacity_bytes: shared.options.capacity_bytes,
            used_bytes: shared.segments.bytes(),
            blocks: shared.index.len(),
            memory_bytes: shared.index.memory_bytes()
                + shared.history.memory_bytes()
                + shared.queue.bytes() as u64,
            is_enabled: shared.health.is_enabled(),
            ..shared.counts.snapshot()
        }
    }
}

impl Drop for SsdCache {
    fn drop(&mut self) {
        self.shared.queue.close();
    }
}

impl Shared {
    fn now(&self) -> Duration {
        self.env.clock.monotonic()
    }

    async fn read(&self, id: BlockId) -> Option<FoundBlock> {
        let found = match self.index.find(id.key()) {
            Some(location) => self.read_at(id, location).await,
            None => None,
        };
        match found {
            Some(_) => self.counts.hits.increment(),
            None => self.counts.misses.increment(),
        }
        found
    }

    async fn read_at(&self, id: BlockId, location: Location) -> Option<FoundBlock> {
        let Some(attempt) = self.health.enter(self.now()) else {
            self.counts.bypassed.increment();
            return None;
        };
        let record = self.read_record(location).await;
        drop(attempt);
        match record? {
            (found, bytes) if found == id => {
                let unused_bytes = record::HEADER_LEN + self.segments.read_overhead_bytes(location.segment);
                Some(FoundBlock { bytes, unused_bytes })
            }
            _ => {
                // Another block with the same hash.
                self.counts.mismatches.increment();
                None
            }
        }
    }

    /// The record at `location`. Removes it from the index if it cannot be read or is not intact.
    async fn read_record(&self, location: Location) -> Option<(BlockId, Bytes)> {
        let reader = self.segments.reader(location.segment)?;
        let read = reader.read_at(u64::from(location.at), location.record_len());
        match self.env.timeout(READ_LIMIT, read).await {
            Some(Ok(bytes)) => {
                self.health.succeeded(self.now());
                let record = record::parse(&bytes, location.checksum);
                if record.is_none() {
                    self.counts.mismatches.increment();
                    self.index.remove_at(&location);
                }
                record
            }
            Some(Err(error)) => {
                debug!(%error, "block not read from the second-level block cache");
                self.counts.read_errors.increment();
                self.health.failed(self.now());
                self.index.remove_at(&location);
                None
            }
            None => {
                self.counts.timeouts.increment();
                self.health.timed_out(self.now());
                None
            }
        }
    }

    /// Whether the block is cached, or waits to be written.
    fn has(&self, id: BlockId) -> bool {
        self.index.contains(id.key()) || self.queue.contains(id)
    }

    /// Queues a copy of a block if its size and the write rate allow it.
    fn admit(&self, id: BlockId, bytes: &[u8]) {
        if bytes.len() > self.geometry.block_bytes_max() {
            return self.counts.too_large.increment();
        }
        if !self.rate.take(bytes.len(), self.now()) {
            return self.counts.over_rate.increment();
        }
        if !self.queue.push(id, bytes) {
            self.counts.dropped.increment();
        }
    }
}

impl SecondLevel for SsdCache {
    fn get(&self, id: BlockId) -> BoxFuture<'_, Option<FoundBlock>> {
        Box::pin(self.shared.read(id))
    }

    fn contains(&self, id: BlockId) -> bool {
        self.shared.health.is_enabled() && self.shared.index.contains(id.key())
    }

    fn offer(&self, id: BlockId, bytes: &[u8]) {
        let shared = &*self.shared;
        if shared.has(id) {
            return;
        }
        match shared.history.was_read(id.key()) {
            true => shared.admit(id, bytes),
            false => shared.counts.first_reads.increment(),
        }
    }

    fn prefetched<'a>(&'a self, id: BlockId, bytes: &'a [u8]) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let shared = &*self.shared;
            if shared.has(id) {
                return true;
            }
            let is_accepted = self.has_free_space(bytes.len())
                && shared.health.is_enabled()
                && shared.queue.wait_for_room(bytes.len()).await;
            if is_accepted {
                shared.admit(id, bytes);
            }
            is_accepted
        })
    }

    fn reject(&self, id: BlockId) {
        if let Some(location) = self.shared.index.find(id.key()) {
            self.shared.counts.mismatches.increment();
            self.shared.index.remove_at(&location);
        }
    }
}

impl SsdCache {
    /// Whether a block of `bytes` fits without evicting blocks.
    fn has_free_space(&self, bytes: usize) -> bool {
        let shared = &*self.shared;
        let waiting = shared.queue.bytes() + chunk::len_in_chunk(bytes) + chunk::HEADER_LEN;
        shared.segments.bytes() + waiting as u64 <= shared.geometry.retained_bytes_max()
    }
}
