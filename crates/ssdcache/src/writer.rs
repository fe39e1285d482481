//! Writes queued blocks to the SSD, in chunks, and evicts the oldest segments.
//!
//! Blocks of an evicted segment that were used are copied to the new segment first, up to half of
//! it. A block that is used again and again so stays in the cache, and the copies at most double
//! the bytes written.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fs::{AccessPattern, Error, FileWriter, Occupied, SyncLevel};
use tracing::{debug, warn};

use crate::queue::Taken;
use crate::recovery::Recovered;
use crate::segments::{self, Segment};
use crate::{BlockId, Shared, chunk};

/// Time after which a call to the SSD counts as failed.
const CALL_LIMIT: Duration = Duration::from_secs(30);
/// Maximum time for which a block waits until its chunk is full.
const CHUNK_DELAY: Duration = Duration::from_secs(10);
/// The pause after a failed write. Each further failure doubles it.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Period of the checks whether the cache is closed during a pause.
const PAUSE_STEP: Duration = Duration::from_secs(1);

/// The task that writes. The only one that changes segments after the start.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    next_number: u32,
    open: Option<OpenSegment>,
    /// The blocks of the next chunk.
    pending: Vec<(BlockId, Bytes)>,
    pending_bytes: usize,
    /// When the first of them was added.
    pending_since: Duration,
    /// Maximum bytes of all segments when a new one is started. Less than the configured size if
    /// the SSD is full.
    retained_bytes_max: u64,
    pause: Duration,
    /// Excludes other processes from the directories.
    _occupied: Vec<Occupied>,
}

/// The segment that is being written.
struct OpenSegment {
    number: u32,
    dir: usize,
    writer: Box<dyn FileWriter>,
    len: u64,
}

/// Why a chunk was not written.
enum Failure {
    Timeout,
    Fs(Error),
    /// No segment number is left.
    NoNumber,
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, recovered: Recovered) -> Writer {
        let Recovered { next_number, occupied } = recovered;
        Writer {
            _occupied: occupied,
            retained_bytes_max: shared.geometry.retained_bytes_max(),
            shared,
            next_number,
            open: None,
            pending: Vec::new(),
            pending_bytes: chunk::HEADER_LEN,
            pending_since: Duration::ZERO,
            pause: PAUSE_MIN,
        }
    }

    /// Writes until the queue is closed and empty.
    pub(crate) async fn run(mut self) {
        loop {
            match self.shared.queue.take() {
                Taken::Block(id, block) => self.add(id, block).await,
                Taken::Nothing => self.wait().await,
                Taken::End => break,
            }
        }
        self.write_pending().await;
        if let Some(open) = self.open.take() {
            let closed = self.shared.env.timeout(CALL_LIMIT, open.writer.close()).await;
            debug!(is_closed = matches!(closed, Some(Ok(()))), "second-level block cache stopped");
        }
    }

    async fn add(&mut self, id: BlockId, block: Bytes) {
        let len = chunk::len_in_chunk(block.len());
        if (self.pending_bytes + len) as u64 > self.shared.geometry.chunk_bytes() {
            self.write_pending().await;
        }
        if self.pending.is_empty() {
            self.pending_since = self.shared.now();
        }
        self.pending_bytes += len;
        self.pending.push((id, block));
    }

    /// Waits for blocks. Writes an incomplete chunk after a while.
    async fn wait(&mut self) {
        if self.pending.is_empty() {
            return self.shared.queue.wait().await;
        }
        let waited = self.shared.now().saturating_sub(self.pending_since);
        let shared = self.shared.clone();
        let arrived = shared.env.timeout(CHUNK_DELAY.saturating_sub(waited), shared.queue.wait());
        if arrived.await.is_none() {
            self.write_pending().await;
        }
    }

    async fn write_pending(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let blocks = std::mem::take(&mut self.pending);
        let bytes = std::mem::replace(&mut self.pending_bytes, chunk::HEADER_LEN);
        let written = self.write(&blocks, bytes as u64).await;
        self.shared.queue.finish(&blocks);
        match written {
            Ok(()) => {
                self.shared.counts.writes.add(blocks.len() as u64);
                self.pause = PAUSE_MIN;
            }
            Err(failure) => {
                self.shared.counts.failed_writes.add(blocks.len() as u64);
                drop(blocks);
                self.recover_from(failure).await;
            }
        }
    }

    async fn write(&mut self, blocks: &[(BlockId, Bytes)], bytes: u64) -> Result<(), Failure> {
        let segment_bytes = self.shared.geometry.segment_bytes();
        if self.open.as_ref().is_none_or(|open| open.len + bytes > segment_bytes) {
            self.begin_segment().await?;
        }
        let fits = self.open.as_ref().is_some_and(|open| open.len + bytes <= segment_bytes);
        debug_assert!(fits, "copies take at most half of a segment, and a chunk the other half");
        self.append(blocks).await
    }

    /// Starts a segment, and evicts the oldest ones to make room for it.
    async fn begin_segment(&mut self) -> Result<(), Failure> {
        if let Some(open) = self.open.take() {
            call(&self.shared, open.writer.close()).await?;
        }
        let shared = self.shared.clone();
        let by_dir = shared.segments.bytes_by_dir(shared.dirs.len());
        let dir = (0..by_dir.len()).min_by_key(|dir| by_dir[*dir]).unwrap_or(0);
        let number = self.next_number;
        self.next_number = number.checked_add(1).ok_or(Failure::NoNumber)?;
        let (fs, path) = (&shared.dirs[dir], segments::path_of(number));
        let writer = call(&shared, fs.create(&path, AccessPattern::Data)).await?;
        self.open = Some(OpenSegment { number, dir, writer, len: 0 });
        call(&shared, fs.sync_dir(&path.parent())).await?;
        let mut copied_bytes_max = shared.geometry.segment_bytes() / 2;
        while shared.segments.bytes() > self.retained_bytes_max
            && let Some(oldest) = shared.segments.oldest()
            && oldest != number
        {
            self.copy_used(oldest, &mut copied_bytes_max).await?;
            remove_segment(&shared, oldest).await;
        }
        Ok(())
    }

    /// Copies the used blocks of a segment to the open one, up to `bytes_max`, which is reduced by
    /// their size.
    async fn copy_used(&mut self, from: u32, bytes_max: &mut u64) -> Result<(), Failure> {
        let shared = self.shared.clone();
        let chunk_bytes = shared.geometry.chunk_bytes();
        let (mut copies, mut bytes) = (Vec::new(), chunk::HEADER_LEN as u64);
        for location in shared.index.used_in(from) {
            let len = chunk::len_in_chunk(location.len as usize) as u64;
            // A chunk's header counts, too.
            if len + chunk::HEADER_LEN as u64 > *bytes_max || !shared.health.is_enabled() {
                break;
            }
            if !shared.rate.take(location.len as usize, shared.now()) {
                break;
            }
            if bytes + len > chunk_bytes && !copies.is_empty() {
                *bytes_max = bytes_max.saturating_sub(chunk::HEADER_LEN as u64);
                bytes = chunk::HEADER_LEN as u64;
                self.append_copies(&mut copies).await?;
            }
            if let Some(record) = shared.read_record(location).await {
                copies.push(record);
                bytes += len;
                *bytes_max = bytes_max.saturating_sub(len);
            }
        }
        *bytes_max = bytes_max.saturating_sub(chunk::HEADER_LEN as u64);
        self.append_copies(&mut copies).await
    }

    async fn append_copies(&mut self, copies: &mut Vec<(BlockId, Bytes)>) -> Result<(), Failure> {
        if copies.is_empty() {
            return Ok(());
        }
        let copies = std::mem::take(copies);
        self.append(&copies).await?;
        self.shared.counts.copies.add(copies.len() as u64);
        Ok(())
    }

    /// Appends a chunk to the open segment.
    async fn append(&mut self, blocks: &[(BlockId, Bytes)]) -> Result<(), Failure> {
        let shared = self.shared.clone();
        let mut open = self.open.take().expect("a segment was started");
        let at = u32::try_from(open.len).expect("a segment has less than 4 GiB");
        let (bytes, locations) = chunk::build(open.number, at, blocks);
        let len = bytes.len();
        // A failed write ends the segment: it is open again only after success.
        let written = open.writer.append_and_sync(Bytes::from(bytes), len, SyncLevel::Disk);
        if let Err(failure) = call(&shared, written).await {
            abandon(&shared, open).await;
            return Err(failure);
        }
        shared.counts.written_bytes.add(len as u64);
        open.len += len as u64;
        let path = segments::path_of(open.number);
        // A reader does not see what is appended after it was opened.
        let reader = match call(&shared, shared.dirs[open.dir].open_uncached(&path)).await {
            Ok(reader) => reader,
            Err(failure) => {
                abandon(&shared, open).await;
                return Err(failure);
            }
        };
        shared.segments.put(open.number, Segment { reader, dir: open.dir, len: open.len });
        locations.iter().for_each(|location| shared.index.insert(location));
        self.open = Some(open);
        Ok(())
    }

    /// Pauses after a failed write.
    async fn recover_from(&mut self, failure: Failure) {
        let shared = self.shared.clone();
        if let Some(open) = self.open.take() {
            abandon(&shared, open).await;
        }
        match &failure {
            Failure::Fs(error @ Error::NoSpace { .. }) => {
                if let Some(oldest) = shared.segments.oldest() {
                    remove_segment(&shared, oldest).await;
                }
                self.retained_bytes_max = self.retained_bytes_max.min(shared.segments.bytes());
                warn!(%error, bytes = self.retained_bytes_max, "second-level block cache made smaller");
            }
            Failure::Fs(error) => {
                warn!(%error, "blocks not written to the second-level block cache");
                shared.health.failed(shared.now());
            }
            Failure::Timeout => {
                shared.counts.timeouts.increment();
                shared.health.timed_out(shared.now());
            }
            Failure::NoNumber => warn!("blocks not written to the second-level block cache: restart needed"),
        }
        let until = shared.now() + self.pause;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        while shared.now() < until && !shared.queue.is_closed() {
            shared.env.clock.sleep(PAUSE_STEP).await;
        }
    }
}

/// Waits for a call to the SSD.
async fn call<T>(shared: &Shared, call: impl Future<Output = fs::Result<T>>) -> Result<T, Failure> {
    match shared.env.timeout(CALL_LIMIT, call).await {
        Some(done) => done.map_err(Failure::Fs),
        None => Err(Failure::Timeout),
    }
}

/// Stops writing a segment. What was written before stays readable.
async fn abandon(shared: &Shared, open: OpenSegment) {
    let OpenSegment { number, dir, writer, .. } = open;
    drop(writer);
    if shared.segments.reader(number).is_none() {
        delete(shared, number, dir).await;
    }
}

/// Removes a segment from the cache and deletes its file.
pub(crate) async fn remove_segment(shared: &Shared, number: u32) {
    let removed = shared.index.remove_segment(number);
    shared.counts.evictions.add(removed);
    if let Some(segment) = shared.segments.remove(number) {
        delete(shared, number, segment.dir).await;
    }
}

/// Deletes the file of a segment.
pub(crate) async fn delete(shared: &Shared, number: u32, dir: usize) {
    let path = segments::path_of(number);
    match shared.env.timeout(CALL_LIMIT, shared.dirs[dir].delete(&path)).await {
        Some(Ok(())) => {}
        Some(Err(error)) => warn!(%error, "segment of the second-level block cache not deleted"),
        None => warn!(segment = %path, "segment of the second-level block cache not deleted in time"),
    }
}
