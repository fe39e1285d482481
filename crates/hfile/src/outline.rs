//! The data blocks of a file as its index has them, some at a time.

use std::cmp::Ordering;
use std::sync::Arc;

use cell::KeyBuf;

use crate::path::Path;
use crate::reader::Reader;
use crate::source::{BlockSource, Stop};

/// Walks over the data blocks of a file by its index, in steps of some blocks, without reading them.
///
/// Steps lead to the first entry of each leaf of the index and to every so many behind it. So where they lead does not
/// depend on where the walk began, and it may begin anywhere. What is left at the end of a leaf is a step of its own, unless it
/// is less than half of one.
pub struct Outline {
    file: Arc<Reader>,
    stride: usize,
    // In front of all cells of the row to begin at.
    start: KeyBuf,
    // To the current block; before the first step to none.
    path: Option<Path>,
    spare: Path,
}

impl Outline {
    pub(crate) fn new(file: Arc<Reader>, stride: usize, row: &[u8]) -> Outline {
        assert!(stride > 0, "steps lead on");
        let start = KeyBuf::first_on_row(row);
        Outline { file, stride, start, path: None, spare: Path::default() }
    }

    /// Goes on by a step and gives the offset of the data block there with its key in the index, which is behind all cells before
    /// the block, and not behind its first. The first step leads to the last block of a step that no cell of the row is in
    /// front of. `None` behind the last.
    ///
    /// # Errors
    /// [`Stop`]; then nothing has changed.
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
