//! Iterates over the data blocks of a file in strides, using only the index.

use std::cmp::Ordering;
use std::sync::Arc;

use cell::KeyBuf;

use crate::index_path::IndexPath;
use crate::reader::Reader;
use crate::source::{BlockSource, Stop};

/// Iterates over every `stride`-th data block of a file, using its index, without reading data
/// blocks.
///
/// Steps are the first entry of each index leaf and every `stride`-th entry after it. So the steps
/// do not depend on the row at which the iteration starts. The rest of a leaf is a step of its own
/// unless it is shorter than half a stride.
pub struct Outline {
    file: Arc<Reader>,
    stride: usize,
    // Precedes all cells of the start row.
    start: KeyBuf,
    // The path to the current block; `None` before the first step.
    path: Option<IndexPath>,
    spare: IndexPath,
}

impl Reader {
    /// Iterates over every `stride`-th data block, from the block of `row` on. Reads index blocks
    /// only.
    pub fn outline(self: &Arc<Self>, stride: usize, row: &[u8]) -> Outline {
        assert!(stride > 0, "the stride must be positive");
        let start = KeyBuf::first_on_row(row);
        Outline { file: self.clone(), stride, start, path: None, spare: IndexPath::default() }
    }
}

impl Outline {
    /// Moves to the next step. Returns the offset of its data block and the block's index key,
    /// which is greater than all cells before the block and not greater than the block's first
    /// cell. Returns `None` after the last step.
    ///
    /// The first call moves to the last step whose index key is not after the start row, or else to
    /// the first step. No cell of the start row precedes that block.
    ///
    /// # Errors
    /// [`Stop`]; nothing has changed.
    pub fn next(&mut self, source: &dyn BlockSource) -> Result<Option<(u64, &[u8])>, Stop> {
        let is_there = match &self.path {
            None => self.seek(source)?,
            Some(path) => {
                self.spare.clone_from(path);
                self.spare.next_step(&self.file, source, self.stride)?
            }
        };
        if !is_there {
            return Ok(None);
        }
        let path = self.path.get_or_insert_default();
        std::mem::swap(path, &mut self.spare);
        Ok(Some((path.target(&self.file).offset, path.key(&self.file))))
    }

    fn seek(&mut self, source: &dyn BlockSource) -> Result<bool, Stop> {
        let (order, key) = (self.file.order(), self.start.as_slice());
        let is_before = |entry: &[u8]| order.compare_keys(entry, key) != Ordering::Greater;
        let is_there = self.spare.seek(&self.file, source, cell::key::row(key), is_before, true)?;
        if is_there {
            self.spare.back_to_step(&self.file, self.stride);
        }
        Ok(is_there)
    }
}
