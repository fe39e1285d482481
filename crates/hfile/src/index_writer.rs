//! Writes the data index: leaf blocks between the data blocks, then intermediate levels if the root
//! grows too large.
//!
//! Source: HBase `HFileBlockIndex.BlockIndexWriter`. Tests compare the layout with files that HBase
//! wrote.

use base::varint::{put_vlong, vlong_len};

use crate::index::{TARGET_LEN, Target};

/// Maximum number of levels (HBase: 16).
const LEVELS_MAX: u32 = 16;

/// The entries of one index block under construction.
#[derive(Default)]
pub(crate) struct RootEntries {
    entries: Vec<(Vec<u8>, Target)>,
    keys_len: usize,
    root_len: usize,
}

impl RootEntries {
    pub(crate) fn push(&mut self, key: &[u8], target: Target) {
        debug_assert!(
            self.entries.last().is_none_or(|(_, last)| last.offset < target.offset),
            "index entries are in the order of their blocks"
        );
        self.keys_len += key.len();
        self.root_len += TARGET_LEN + vlong_len(key.len() as i64) + key.len();
        self.entries.push((key.to_vec(), target));
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Length of the entries in the form of leaf and intermediate blocks.
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

    /// Encodes the entries as the payload of a leaf or intermediate block.
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

/// The data index of a file being written.
pub(crate) struct IndexWriter {
    block_bytes_max: usize,
    entries_min: usize,
    leaf: RootEntries,
    root: RootEntries,
    /// For each leaf in the root, the number of data blocks up to its end.
    blocks_up_to: Vec<u64>,
    block_count: u64,
    levels: u32,
    middle: Option<Vec<u8>>,
    plain_bytes: u64,
}

/// An index block to be written.
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

    /// Records a data block.
    pub(crate) fn data_block(&mut self, key: &[u8], target: Target) {
        self.leaf.push(key, target);
        self.block_count += 1;
    }

    /// The leaf to write now: a full leaf. If `closing`, the last leaf too, unless it is the only
    /// leaf.
    pub(crate) fn next_leaf(&mut self, closing: bool) -> Option<ReadyIndex> {
        if self.leaf.len() == 0 {
            return None;
        }
        if closing && self.root.len() == 0 {
            // A single leaf becomes the root.
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

    /// Records the location of a written leaf.
    pub(crate) fn leaf_written(&mut self, first_key: &[u8], target: Target) {
        debug_assert!(
            self.blocks_up_to.last().is_none_or(|blocks| *blocks < self.block_count),
            "each leaf has a data block that no earlier leaf has"
        );
        self.levels = 2;
        self.root.push(first_key, target);
        self.blocks_up_to.push(self.block_count);
    }

    /// Splits the root if it is too large. Returns the blocks of a new level below the root. The
    /// caller must write them, pass them to [`IndexWriter::intermediates_written`], and repeat this
    /// call until it returns `None`.
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

    /// Makes the written blocks of a new level the entries of the root.
    pub(crate) fn intermediates_written(&mut self, blocks: Vec<(Vec<u8>, Target)>) {
        self.levels += 1;
        for (first_key, target) in blocks {
            self.root.push(&first_key, target);
        }
    }

    /// The middle-of-file entry: the position of the leaf that points at the middle data block, and
    /// of the entry in that leaf.
    fn middle_of_file(&self) -> Vec<u8> {
        debug_assert!(
            self.blocks_up_to.len() == self.root.len() && self.blocks_up_to.last() == Some(&self.block_count),
            "the leaves have all data blocks"
        );
        let middle = (self.block_count - 1) / 2;
        let leaf = self.blocks_up_to.partition_point(|blocks| *blocks < middle + 1);
        let before = if leaf > 0 { self.blocks_up_to[leaf - 1] } else { 0 };
        let mut out = Vec::new();
        write_target(&mut out, self.root.entries[leaf].1);
        out.extend_from_slice(&((middle - before) as u32).to_be_bytes());
        out
    }

    /// Encodes the payload of the root block, after all other levels are written.
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
