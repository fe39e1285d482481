//! The path through a file's index to one of its data blocks.

use std::sync::Arc;

use crate::block::Block;
use crate::block::kind::BlockKind;
use crate::error::Fault;
use crate::index::{Index, Target};
use crate::reader::Reader;
use crate::source::{BlockSource, Stop};

type Step<T> = Result<T, Stop>;

/// A path through the index to a data block: an entry of the root, and one entry per level below
/// it.
#[derive(Default)]
pub(crate) struct IndexPath {
    root_at: usize,
    inner: Vec<(Arc<Block>, usize)>,
}

impl Clone for IndexPath {
    fn clone(&self) -> IndexPath {
        IndexPath { root_at: self.root_at, inner: self.inner.clone() }
    }

    fn clone_from(&mut self, other: &IndexPath) {
        self.root_at = other.root_at;
        self.inner.clone_from(&other.inner);
    }
}

/// Whether [`IndexPath::next_step`] stops at the entry `at` of an index block with `len` entries.
/// `at` must be a multiple of `stride`.
fn is_step(at: usize, len: usize, stride: usize) -> bool {
    at == 0 || (at < len && (len - at) * 2 >= stride)
}

/// The entries of an index block on the path.
fn entries(block: &Block) -> &Index {
    block.index().expect("a path contains only index blocks")
}

impl IndexPath {
    /// Releases the index blocks.
    pub(crate) fn clear(&mut self) {
        self.inner.clear();
    }

    /// Location of the data block.
    pub(crate) fn target(&self, file: &Reader) -> Target {
        match self.inner.last() {
            Some((block, at)) => entries(block).target(*at),
            None => file.root().target(self.root_at),
        }
    }

    /// The index key of the data block.
    pub(crate) fn key<'a>(&'a self, file: &'a Reader) -> &'a [u8] {
        match self.inner.last() {
            Some((block, at)) => entries(block).key(*at),
            None => file.root().key(self.root_at),
        }
    }

    /// The index key of the next data block; `None` at the last one.
    pub(crate) fn next_key<'a>(&'a self, file: &'a Reader) -> Option<&'a [u8]> {
        let inner = self.inner.iter().rev().map(|(block, at)| (entries(block), *at));
        inner
            .chain([(file.root(), self.root_at)])
            .find(|(index, at)| at + 1 < index.len())
            .map(|(index, at)| index.key(at + 1))
    }

    /// Moves to the last data block whose index key satisfies `is_before`. If there is no such
    /// block and `or_first` is true, moves to the first block. Returns whether the path is at a
    /// block.
    ///
    /// `is_before` compares index keys with one cell key, and `row` is the row of that cell key.
    pub(crate) fn seek(
        &mut self,
        file: &Arc<Reader>,
        source: &dyn BlockSource,
        row: &[u8],
        is_before: impl Fn(&[u8]) -> bool,
        or_first: bool,
    ) -> Step<bool> {
        self.inner.clear();
        match file.root().last_where_by_head(row, &is_before) {
            Some(at) => self.root_at = at,
            None if or_first && file.root().len() > 0 => self.root_at = 0,
            None => return Ok(false),
        }
        self.descend(file, source, |index| index.last_where_by_head(row, &is_before).unwrap_or(0))?;
        Ok(true)
    }

    /// Moves to the next data block. Returns false if there is none; the path is then invalid.
    pub(crate) fn next(&mut self, file: &Arc<Reader>, source: &dyn BlockSource) -> Step<bool> {
        while let Some((block, at)) = self.inner.last_mut() {
            if *at + 1 < entries(block).len() {
                *at += 1;
                self.descend(file, source, |_| 0)?;
                return Ok(true);
            }
            self.inner.pop();
        }
        if self.root_at + 1 >= file.root().len() {
            return Ok(false);
        }
        self.root_at += 1;
        self.descend(file, source, |_| 0)?;
        Ok(true)
    }

    /// Moves `stride` data blocks ahead within the index leaf. If the leaf has no such block, or
    /// fewer than half a stride of blocks from there on, moves to the first block of the next leaf.
    /// Returns false if there is no next step; the path is then invalid.
    pub(crate) fn next_step(
        &mut self,
        file: &Arc<Reader>,
        source: &dyn BlockSource,
        stride: usize,
    ) -> Step<bool> {
        let (at, len) = self.in_leaf(file);
        if is_step(*at + stride, len, stride) {
            *at += stride;
            return Ok(true);
        }
        *at = len - 1;
        self.next(file, source)
    }

    /// Moves back to the nearest block at which [`next_step`](Self::next_step) stops.
    pub(crate) fn back_to_step(&mut self, file: &Reader, stride: usize) {
        let (at, len) = self.in_leaf(file);
        let step = *at / stride * stride;
        *at = if is_step(step, len, stride) { step } else { step - stride };
    }

    /// The position in the leaf, and the leaf's number of entries.
    fn in_leaf(&mut self, file: &Reader) -> (&mut usize, usize) {
        match self.inner.last_mut() {
            Some((block, at)) => (at, entries(block).len()),
            None => (&mut self.root_at, file.root().len()),
        }
    }

    /// Moves to the previous data block. Returns false if there is none; the path is then invalid.
    pub(crate) fn previous(&mut self, file: &Arc<Reader>, source: &dyn BlockSource) -> Step<bool> {
        let last = |index: &Index| index.len() - 1;
        while let Some((_, at)) = self.inner.last_mut() {
            if *at > 0 {
                *at -= 1;
                self.descend(file, source, last)?;
                return Ok(true);
            }
            self.inner.pop();
        }
        if self.root_at == 0 {
            return Ok(false);
        }
        self.root_at -= 1;
        self.descend(file, source, last)?;
        Ok(true)
    }

    /// Extends the path from its lowest level down to a leaf. `pick` chooses an entry of each
    /// block.
    fn descend(
        &mut self,
        file: &Arc<Reader>,
        source: &dyn BlockSource,
        pick: impl Fn(&Index) -> usize,
    ) -> Step<()> {
        let levels_below_root = file.trailer().data_index_levels as usize - 1;
        while self.inner.len() < levels_below_root {
            let is_leaf = self.inner.len() + 1 == levels_below_root;
            let kind = if is_leaf { BlockKind::LeafIndex } else { BlockKind::IntermediateIndex };
            let target = self.target(file);
            let block = file.find(target, kind, source)?;
            let index = entries(&block);
            if !block.is_first_key_checked() {
                if index.key(0) != self.key(file) {
                    return Err(Fault::Damaged("first key of index block differs from its parent's entry")
                        .at(file.path(), target.offset)
                        .into());
                }
                block.set_first_key_checked();
            }
            let at = pick(index);
            self.inner.push((block, at));
        }
        Ok(())
    }
}
