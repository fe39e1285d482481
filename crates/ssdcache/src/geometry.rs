//! Sizes of segments, chunks and queue, derived from the capacity.

use crate::chunk;

/// Bytes of a chunk of a large cache. SSDs write blocks of this size at full speed, and it is short
/// enough to be dropped from memory soon.
const CHUNK_BYTES_MAX: u64 = 4 << 20;
/// Maximum bytes of a segment. Offsets in a segment have 32 bits.
const SEGMENT_BYTES_MAX: u64 = 1 << 30;
const SEGMENT_BYTES_MIN: u64 = 512 << 10;
/// Minimum number of chunks in a segment. Copies from evicted segments take at most half of a
/// segment; a chunk must fit into the other half.
const CHUNKS_MIN: u64 = 2;
/// Number of segments of a cache of medium size. More segments evict in smaller steps, but need
/// more open files.
const SEGMENTS: u64 = 64;
/// The same for a small cache, whose chunks would become too small otherwise.
const SEGMENTS_OF_SMALL: u64 = 16;
/// Number of chunks that may wait to be written.
const QUEUED_CHUNKS: u64 = 4;

/// Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    capacity: u64,
    segment: u64,
    chunk: u64,
}

impl Geometry {
    pub(crate) fn of(capacity: u64) -> Geometry {
        let large = CHUNKS_MIN * CHUNK_BYTES_MAX;
        let segment = match capacity / SEGMENTS >= large {
            true => (capacity / SEGMENTS).min(SEGMENT_BYTES_MAX),
            false => (capacity / SEGMENTS_OF_SMALL).clamp(SEGMENT_BYTES_MIN, large),
        };
        Geometry { capacity, segment, chunk: (segment / CHUNKS_MIN).min(CHUNK_BYTES_MAX) }
    }

    /// Maximum bytes of a segment.
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.segment
    }

    /// Maximum bytes of a chunk.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        self.chunk
    }

    /// Maximum bytes of a block.
    pub(crate) fn block_bytes_max(&self) -> usize {
        self.chunk as usize - chunk::HEADER_LEN - chunk::len_in_chunk(0)
    }

    /// Maximum bytes of all segments when a new one is started: the new segment, and half of one
    /// for blocks that are copied from an evicted segment before it is deleted, must fit.
    pub(crate) fn retained_bytes_max(&self) -> u64 {
        self.capacity.saturating_sub(self.segment + self.segment / 2)
    }

    /// Maximum bytes of blocks that wait to be written.
    pub(crate) fn queue_bytes(&self) -> usize {
        (self.chunk * QUEUED_CHUNKS) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_capacity() {
        for (capacity, segment, chunk) in [
            (1 << 20, 512 << 10, 256 << 10),
            (16 << 20, 1 << 20, 512 << 10),
            (200 << 20, 8 << 20, 4 << 20),
            (512 << 20, 8 << 20, 4 << 20),
            (64 << 30, 1 << 30, 4 << 20),
            (4 << 40, 1 << 30, 4 << 20),
        ] {
            let sizes = Geometry::of(capacity);
            assert_eq!((sizes.segment_bytes(), sizes.chunk_bytes()), (segment, chunk), "{capacity}");
            let block = sizes.block_bytes_max();
            assert_eq!((chunk::HEADER_LEN + chunk::len_in_chunk(block)) as u64, chunk);
        }
    }
}
