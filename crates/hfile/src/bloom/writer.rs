//! Builds a compound Bloom filter as the cells are written.

use std::collections::VecDeque;

use base::varint::put_vlong;
use cell::schema::BloomType;

use crate::bloom::chunk::{BloomOptions, Chunk, ChunkSize};
use crate::bloom::hash::HashType;
use crate::bloom::{ROW_COL_COMPARATOR, VERSION};
use crate::index::Target;
use crate::index_writer::RootEntries;

/// A filter under construction. Keys must be added in order, each once.
pub(crate) struct BloomWriter {
    by_column: bool,
    hash: HashType,
    size: ChunkSize,
    chunk: Option<(Vec<u8>, Chunk)>,
    /// Complete chunks that are written after the current data block.
    ready: VecDeque<ReadyChunk>,
    written: RootEntries,
    key_count: u64,
    keys_max: u64,
    bytes: u64,
}

/// A complete chunk and its first key.
pub(crate) struct ReadyChunk {
    pub(crate) first_key: Vec<u8>,
    pub(crate) bits: Vec<u8>,
}

impl BloomWriter {
    pub(crate) fn new(options: &BloomOptions, bloom: BloomType) -> BloomWriter {
        BloomWriter {
            by_column: bloom == BloomType::RowCol,
            hash: HashType::Murmur,
            size: ChunkSize::of(options, bloom),
            chunk: None,
            ready: VecDeque::new(),
            written: RootEntries::default(),
            key_count: 0,
            keys_max: 0,
            bytes: 0,
        }
    }

    pub(crate) fn add(&mut self, key: &[u8]) {
        if self.chunk.as_ref().is_some_and(|(_, chunk)| chunk.is_full()) {
            self.finish_chunk();
        }
        let size = self.size;
        let (_, chunk) = self.chunk.get_or_insert_with(|| (key.to_vec(), Chunk::new(size)));
        chunk.add(self.hash, key);
        self.key_count += 1;
    }

    fn finish_chunk(&mut self) {
        let Some((first_key, chunk)) = self.chunk.take() else { return };
        let (size, bits) = chunk.fold();
        self.size = size;
        self.keys_max += u64::from(size.keys_max);
        self.bytes += bits.len() as u64;
        self.ready.push_back(ReadyChunk { first_key, bits });
    }

    /// The next chunk to write. When `closing`, this includes the chunk that is not full.
    pub(crate) fn next_ready(&mut self, closing: bool) -> Option<ReadyChunk> {
        if closing || self.chunk.as_ref().is_some_and(|(_, chunk)| chunk.is_full()) {
            self.finish_chunk();
        }
        self.ready.pop_front()
    }

    /// Records the location of a written chunk.
    pub(crate) fn written(&mut self, first_key: &[u8], target: Target) {
        self.written.push(first_key, target);
    }

    /// The payload of the meta block; `None` if the filter has no keys.
    pub(crate) fn meta(&self) -> Option<Vec<u8>> {
        debug_assert!(
            self.chunk.is_none() && self.ready.is_empty(),
            "all chunks are written before their index"
        );
        if self.key_count == 0 {
            return None;
        }
        let mut out = Vec::new();
        out.extend_from_slice(&VERSION.to_be_bytes());
        out.extend_from_slice(&self.bytes.to_be_bytes());
        out.extend_from_slice(&self.size.hash_count.to_be_bytes());
        out.extend_from_slice(&(self.hash as u32).to_be_bytes());
        out.extend_from_slice(&self.key_count.to_be_bytes());
        out.extend_from_slice(&self.keys_max.to_be_bytes());
        out.extend_from_slice(&(self.written.len() as u32).to_be_bytes());
        let comparator = if self.by_column { ROW_COL_COMPARATOR } else { "" };
        put_vlong(&mut out, comparator.len() as i64);
        out.extend_from_slice(comparator.as_bytes());
        self.written.write_root(&mut out);
        Some(out)
    }
}
