//! Writing the data index: leaf blocks among the data blocks, then intermediate levels if the root grows too large.
//!
//! Source: HBase `HFileBlockIndex.BlockIndexWriter`; the layout is compared with files that HBase wrote.

use base::varint::{put_vlong, vlong_len};

use crate::index::{TARGET_LEN, Target};

/// More levels than this are never built (HBase: 16).
const LEVELS_MAX: u32 = 16;

/// Entries of one index block under construction.
#[derive(Default)]
pub(crate) struct RootEntries {
    entries: Vec<(Vec<u8>, Target)>,
    keys_len: usize,
    root_len: usize,
}

impl RootEntries {
    pub(crate) fn push(&mut self, key: &[u8], target: Target) {
        self.keys_len += key.len();
        self.root_len += TARGET_LEN + vlong_len(key.len() as i64) + key.len();
        self.entries.push((key.to_vec(), target));
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes in the form of leaf and intermediate blocks.
    fn inner_len(&self) -> usize {
        4 + 4 * (self.len() + 1) + TARGET_LEN * self.len() + self.keys_len
    }

    /// Appends the entries in root form.
    pub(crate) fn write_root(&self, out: &mut Vec<u8>) {
        for (key, target) in &self.entries {
            write_target(out, *target);
            put_vlong(out, key.len() as i64);
            out.extend_from_slice(key);
        }
    }

    /// The entries as the payload of a leaf or intermediate block.
    fn to_inner(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.inner_len());
        out.extend_from_slice(&(self.len() as u32).to_be_bytes());
        let mut start = 0_u32;
        for (key, _) in &self.entries {
            out.extend_from_slice(&start.to_be_bytes());
            start += (TARGET_LEN + key.len()) as u32;
        }
        out.extend_from_slice(&start.to_be_bytes());
        for (key, target) in &self.entries {
            write_target(&mut out, *target);
            out.extend_from_slice(key);
        }
        out
    }

    fn first_key(&self) -> &[u8] {
        &self.entries[0].0
    }
}

fn write_target(out: &mut Vec<u8>, target: Target) {
    out.extend_from_slice(&target.offset.to_be_bytes());
    out.extend_from_slice(&target.len.to_be_bytes());
}

/// The data index of a file that is being written.
pub(crate) struct IndexWriter {
    block_bytes_max: usize,
    entries_min: usize,
    leaf: RootEntries,
    root: RootEntries,
    /// Data blocks under the leaves of the root up to and including each.
    blocks_up_to: Vec<u64>,
    block_count: u64,
    levels: u32,
    middle: Option<Vec<u8>>,
    plain_bytes: u64,
}

/// An index block that is ready to be written.
pub(crate) struct ReadyIndex {
    pub(crate) first_key: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

impl IndexWriter {
    pub(crate) fn new(block_bytes_max: usize, entries_min: usize) -> IndexWriter {
        IndexWriter {
            block_bytes_max,
            entries_min,
            leaf: RootEntries::default(),
            root: RootEntries::default(),
            blocks_up_to: Vec::new(),
            block_count: 0,
            levels: 1,
            middle: None,
            plain_bytes: 0,
        }
    }

    /// Takes note of a data block.
    pub(crate) fn data_block(&mut self, key: &[u8], target: Target) {
        self.leaf.push(key, target);
        self.block_count += 1;
    }

    /// The leaf to write now: a full one, or, when `closing` and there are leaves already, the last one.
    pub(crate) fn next_leaf(&mut self, closing: bool) -> Option<ReadyIndex> {
        if self.leaf.len() == 0 {
            return None;
        }
        if closing && self.root.len() == 0 {
            // A single leaf is the root.
            self.root = std::mem::take(&mut self.leaf);
            return None;
        }
        (closing || self.leaf.inner_len() >= self.block_bytes_max).then(|| self.take_ready_leaf())
    }

    fn take_ready_leaf(&mut self) -> ReadyIndex {
        let leaf = std::mem::take(&mut self.leaf);
        let payload = leaf.to_inner();
        self.plain_bytes += payload.len() as u64;
        ReadyIndex { first_key: leaf.first_key().to_vec(), payload }
    }

    /// Takes note of where a leaf was written.
    pub(crate) fn leaf_written(&mut self, first_key: &[u8], target: Target) {
        self.levels = 2;
        self.root.push(first_key, target);
        self.blocks_up_to.push(self.block_count);
    }

    /// Splits the root if it is too large: the blocks of a new level below it, to be written and told of to
    /// [`IndexWriter::intermediates_written`]. To be repeated until nothing is left to split.
    pub(crate) fn next_level(&mut self) -> Option<Vec<ReadyIndex>> {
        if self.levels > 1 && self.middle.is_none() {
            self.middle = Some(self.middle_of_file());
        }
        let splits = self.levels > 1
            && self.levels < LEVELS_MAX
            && self.root.root_len > self.block_bytes_max
            && self.root.len() > self.entries_min;
        splits.then(|| self.split_root())
    }

    fn split_root(&mut self) -> Vec<ReadyIndex> {
        let root = std::mem::take(&mut self.root);
        let mut ready = Vec::new();
        let mut chunk = RootEntries::default();
        for (at, (key, target)) in root.entries.iter().enumerate() {
            chunk.push(key, *target);
            if at >= self.entries_min && chunk.root_len >= self.block_bytes_max {
                ready.push(std::mem::take(&mut chunk));
            }
        }
        if chunk.len() > 0 {
            ready.push(chunk);
        }
        let ready: Vec<ReadyIndex> = ready
            .iter()
            .map(|chunk| ReadyIndex { first_key: chunk.first_key().to_vec(), payload: chunk.to_inner() })
            .collect();
        self.plain_bytes += ready.iter().map(|block| block.payload.len() as u64).sum::<u64>();
        ready
    }

    /// Takes the blocks of a new level as the root's entries.
    pub(crate) fn intermediates_written(&mut self, blocks: Vec<(Vec<u8>, Target)>) {
        self.levels += 1;
        for (first_key, target) in blocks {
            self.root.push(&first_key, target);
        }
    }

    /// The leaf and the entry in it that point at the block in the middle of the file.
    fn middle_of_file(&self) -> Vec<u8> {
        let middle = (self.block_count - 1) / 2;
        let leaf = self.blocks_up_to.partition_point(|blocks| *blocks < middle + 1);
        let before = if leaf > 0 { self.blocks_up_to[leaf - 1] } else { 0 };
        let mut out = Vec::new();
        write_target(&mut out, self.root.entries[leaf].1);
        out.extend_from_slice(&((middle - before) as u32).to_be_bytes());
        out
    }

    /// The payload of the root block, once all levels are written.
    pub(crate) fn root_payload(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.root.write_root(&mut out);
        out.extend_from_slice(self.middle.as_deref().unwrap_or_default());
        self.plain_bytes += out.len() as u64;
        out
    }

    pub(crate) fn root_len(&self) -> u32 {
        self.root.len() as u32
    }

    pub(crate) fn levels(&self) -> u32 {
        self.levels
    }

    /// Bytes of all index blocks before compression.
    pub(crate) fn plain_bytes(&self) -> u64 {
        self.plain_bytes
    }
}
