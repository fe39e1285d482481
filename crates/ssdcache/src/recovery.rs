//! Rebuilds the index after a restart, from the tables of the chunks. A chunk that is incomplete or
//! damaged, and what follows it in its segment, is ignored. Records are checked when they are read.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fs::{FilePath, FileReader, Occupied};
use futures_util::future::join_all;
use tracing::{debug, info, warn};

use crate::chunk::{self, Header};
use crate::index::Location;
use crate::segments::{self, Segment};
use crate::{Shared, writer};

/// Time after which a call to the SSD counts as failed.
const CALL_LIMIT: Duration = Duration::from_secs(10);
/// Number of segments that are read concurrently.
const CONCURRENCY: usize = 16;
/// Bytes of the first read of a chunk: its header, and the table of about a hundred blocks.
const START_BYTES: u64 = 4 << 10;

/// A file of an earlier run.
struct OldSegment {
    number: u32,
    dir: usize,
}

/// What a writer needs.
pub(crate) struct Recovered {
    /// The number of the next segment.
    pub(crate) next_number: u32,
    /// Excludes other processes from the directories.
    pub(crate) occupied: Vec<Occupied>,
}

/// Indexes the segments of an earlier run, or deletes them if the cache is not persistent. Returns
/// `None` if the cache cannot be used.
pub(crate) async fn recover(shared: &Shared) -> Option<Recovered> {
    let listed = async {
        let occupied = occupy(shared).await?;
        Ok::<_, String>((occupied, list(shared).await?))
    };
    let (occupied, old) = match listed.await {
        Ok(listed) => listed,
        Err(error) => {
            warn!(error, "second-level block cache not used");
            return None;
        }
    };
    let next_number = recover_segments(shared, old).await;
    Some(Recovered { next_number, occupied })
}

async fn recover_segments(shared: &Shared, mut old: Vec<OldSegment>) -> u32 {
    // The newest first: they are more likely to be read soon.
    old.sort_unstable_by_key(|segment| std::cmp::Reverse(segment.number));
    let next = old.first().map_or(Some(0), |newest| newest.number.checked_add(1));
    if !shared.options.is_persistent || next.is_none() {
        for OldSegment { number, dir } in old {
            writer::delete(shared, number, dir).await;
        }
        return next.unwrap_or(0);
    }
    for batch in old.chunks(CONCURRENCY) {
        join_all(batch.iter().map(|segment| recover_segment(shared, segment))).await;
    }
    while shared.segments.bytes() > shared.geometry.retained_bytes_max()
        && let Some(oldest) = shared.segments.oldest()
    {
        writer::remove_segment(shared, oldest).await;
    }
    info!(
        blocks = shared.index.len(),
        bytes = shared.segments.bytes(),
        segments = old.len(),
        "second-level block cache indexed"
    );
    next.unwrap_or(0)
}

async fn occupy(shared: &Shared) -> Result<Vec<Occupied>, String> {
    let mut occupied = Vec::new();
    for fs in &shared.dirs {
        let locked = shared.env.timeout(CALL_LIMIT, fs.occupy(&FilePath::root())).await;
        let locked = locked.ok_or("the SSD does not respond")?;
        occupied.extend(locked.map_err(|error| error.to_string())?);
    }
    Ok(occupied)
}

async fn list(shared: &Shared) -> Result<Vec<OldSegment>, String> {
    let mut old = Vec::new();
    for (dir, fs) in shared.dirs.iter().enumerate() {
        let listed = shared.env.timeout(CALL_LIMIT, fs.list(&FilePath::root())).await;
        let listed = listed.ok_or("the SSD does not respond")?.map_err(|error| error.to_string())?;
        let numbers = listed.iter().filter_map(|file| segments::number_of(&file.name));
        old.extend(numbers.map(|number| OldSegment { number, dir }));
    }
    Ok(old)
}

async fn recover_segment(shared: &Shared, segment: &OldSegment) {
    let OldSegment { number, dir } = *segment;
    let path = segments::path_of(number);
    let opened = shared.env.timeout(CALL_LIMIT, shared.dirs[dir].open_uncached(&path)).await;
    let reader = match opened {
        Some(Ok(reader)) => reader,
        _ => return writer::delete(shared, number, dir).await,
    };
    let len = reader.len();
    let mut at = 0;
    while let Some((header, locations)) = read_chunk(shared, &reader, number, at).await {
        if at == 0 {
            shared.segments.put(number, Segment { reader: reader.clone(), dir, len });
        }
        locations.iter().for_each(|location| shared.index.insert(location));
        let Some(next) = at.checked_add(header.len) else { break };
        at = next;
    }
    match at {
        0 => writer::delete(shared, number, dir).await,
        at if u64::from(at) < len => debug!(segment = %path, at, len, "end of a segment ignored"),
        _ => {}
    }
}

/// The chunk at `at`; `None` at the end of the segment, and if the chunk is damaged.
async fn read_chunk(
    shared: &Shared,
    reader: &Arc<dyn FileReader>,
    segment: u32,
    at: u32,
) -> Option<(Header, Vec<Location>)> {
    let available = reader.len().checked_sub(u64::from(at))?;
    let read = async |len: u64| -> Option<Bytes> {
        let read = reader.read_at(u64::from(at), usize::try_from(len).ok()?);
        shared.env.timeout(CALL_LIMIT, read).await?.ok()
    };
    let mut start = read(START_BYTES.min(available)).await?;
    let header = Header::parse(&start, segment, at)?;
    if u64::from(header.len) > available || (header.len as usize) < chunk::HEADER_LEN {
        return None;
    }
    if header.table_end() > start.len() {
        start = read(header.table_end() as u64).await?;
    }
    let locations = header.locations(&start, segment, at)?;
    Some((header, locations))
}
