//! Iteration over the cells of a file.
//!
//! A cursor holds its cell, the cell's block, and the path to the block through the index. A step
//! first finds all blocks that it needs, on a spare path, and only then moves. So a step that
//! misses has changed nothing. The contents of a [`Block`] are trusted. The order of keys between
//! blocks is checked when a cursor moves from one block to the next.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use cell::{Cell, key};

use crate::block::Block;
use crate::block::kind::BlockKind;
use crate::block::position::BlockPosition;
use crate::error::Fault;
use crate::index_path::IndexPath;
use crate::reader::Reader;
use crate::row_slice::RowSlice;
use crate::source::{BlockSource, Stop};

/// A position in the cells of a file: at a cell, before the first, or after the last.
pub struct Cursor {
    file: Arc<Reader>,
    state: State,
    position: BlockPosition,
    path: IndexPath,
    spare: IndexPath,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    BeforeFirst,
    At,
    AfterLast,
}

type Step<T> = Result<T, Stop>;

impl Reader {
    /// A cursor before the first cell.
    pub fn cursor(self: &Arc<Self>) -> Cursor {
        Cursor {
            file: self.clone(),
            state: State::BeforeFirst,
            position: BlockPosition::default(),
            path: IndexPath::default(),
            spare: IndexPath::default(),
        }
    }
}

impl Cursor {
    /// The file of the cursor.
    pub fn file(&self) -> &Arc<Reader> {
        &self.file
    }

    /// The current cell. `None` before the first seek or step, before the first cell, and after the
    /// last.
    #[inline]
    pub fn cell(&self) -> Option<Cell<'_>> {
        if self.state != State::At {
            return None;
        }
        let mut cell = self.position.cell()?;
        if let Some(seq_id) = self.file.assigned_seq_id() {
            cell.seq_id = seq_id;
        }
        Some(cell)
    }

    /// The value of the current cell, sharing the memory of its block. Only for a
    /// [large](crate::LARGE_VALUE_LEN) value that fills at least half of the block.
    pub fn large_value(&self) -> Option<Bytes> {
        (self.state == State::At).then(|| self.position.large_value()).flatten()
    }

    /// The block of the current cell.
    pub fn block(&self) -> Option<&Arc<Block>> {
        self.position.block().filter(|_| self.state == State::At)
    }

    /// The whole rows from the current cell up to the row `stop` (exclusive; empty: no bound) that
    /// lie in the current block. `None` if there is none. The cursor does not move.
    pub fn row_slice(&self, stop: &[u8]) -> Option<RowSlice> {
        if self.state != State::At || self.file.assigned_seq_id().is_some() {
            return None;
        }
        // Blocks are checked when loaded. If one is damaged nevertheless, the next step reports it.
        self.position.row_slice(self.file.order(), stop).ok().flatten()
    }

    /// Moves to the position of `slice`, which began at the current cell.
    pub fn resume(&mut self, slice: &RowSlice) {
        self.position.resume(slice);
    }

    /// Moves to the first cell whose key is not before `key`. `key` is a well-formed key of any
    /// type; sequence ids are not compared.
    ///
    /// Cheap if that cell is a little ahead in the current block.
    ///
    /// # Errors
    /// [`Stop`]; nothing has changed.
    pub fn seek(&mut self, key: &[u8], source: &dyn BlockSource) -> Step<()> {
        let order = self.file.order();
        if self.state == State::At && order.compare_keys(self.position.key(), key) == Ordering::Less {
            let next_key = self.path.next_key(&self.file);
            if next_key.is_none_or(|next| order.compare_keys(key, next) == Ordering::Less) {
                return self.seek_in_block(key, source);
            }
        }
        let is_before = |entry: &[u8]| order.compare_keys(entry, key) != Ordering::Greater;
        if !self.spare.seek(&self.file, source, key::row(key), is_before, true)? {
            self.reset_to(State::AfterLast);
            return Ok(());
        }
        let block = self.block_of_spare(source)?;
        if !block.is_first_key_checked() {
            self.check_first_key(&block)?;
        }
        match self.position.seek(block, order, key) {
            Ok(None) => self.finish_step(Ok(())),
            Ok(Some(all_before)) => self.first_of_next(Some(all_before), source),
            Err(fault) => self.finish_step(Err(fault)),
        }
    }

    /// Moves to the last cell whose key is before `key`, or before the first cell if there is none.
    ///
    /// # Errors
    /// [`Stop`]; nothing has changed.
    pub fn seek_before(&mut self, key: &[u8], source: &dyn BlockSource) -> Step<()> {
        let order = self.file.order();
        if !self.spare.seek(
            &self.file,
            source,
            key::row(key),
            |entry| order.compare_keys(entry, key) == Ordering::Less,
            false,
        )? {
            self.reset_to(State::BeforeFirst);
            return Ok(());
        }
        let block = self.block_of_spare(source)?;
        let (first, _) = self.check_first_key(&block)?;
        if order.compare_keys(first, key) == Ordering::Less {
            let moved = self.position.seek_before(block, order, key);
            return self.finish_step(moved);
        }
        // The key is between the block's index key and its first cell.
        if !self.spare.previous(&self.file, source)? {
            self.reset_to(State::BeforeFirst);
            return Ok(());
        }
        let previous = self.block_of_spare(source)?;
        let (_, last) = self.check_first_key(&previous)?;
        if order.compare_keys(last, key) != Ordering::Less {
            return Err(self.damaged("blocks overlap"));
        }
        let moved = self.position.last(previous);
        self.finish_step(moved)
    }

    /// Moves to the next cell: from before the first cell to the first, from the last cell to after
    /// the last.
    ///
    /// # Errors
    /// [`Stop`]; nothing has changed.
    #[inline]
    pub fn next(&mut self, source: &dyn BlockSource) -> Step<()> {
        match self.state {
            State::At => match self.position.advance() {
                Ok(true) => Ok(()),
                Ok(false) => self.next_block(source),
                Err(fault) => self.finish_step(Err(fault)),
            },
            State::BeforeFirst => self.first_cell(source),
            State::AfterLast => Ok(()),
        }
    }

    fn first_cell(&mut self, source: &dyn BlockSource) -> Step<()> {
        if !self.spare.seek(&self.file, source, &[], |_| false, true)? {
            self.reset_to(State::AfterLast);
            return Ok(());
        }
        let block = self.block_of_spare(source)?;
        self.check_first_key(&block)?;
        let moved = self.position.first(block);
        self.finish_step(moved)
    }

    fn next_block(&mut self, source: &dyn BlockSource) -> Step<()> {
        self.spare.clone_from(&self.path);
        self.first_of_next(None, source)
    }

    /// Seeks forward to a key that is before the key of the next block.
    fn seek_in_block(&mut self, key: &[u8], source: &dyn BlockSource) -> Step<()> {
        let order = self.file.order();
        let last = self.position.block().and_then(|block| block.key_range()).map(|(_, last)| last);
        if last.is_some_and(|last| order.compare_keys(key, last) == Ordering::Greater) {
            return self.next_block(source);
        }
        if let Err(fault) = self.position.seek_forward(order, key) {
            return self.finish_step(Err(fault));
        }
        Ok(())
    }

    /// Moves to the first cell of the block after the one on the spare path. That one is `before`,
    /// or the current block if `before` is `None`.
    fn first_of_next(&mut self, before: Option<Arc<Block>>, source: &dyn BlockSource) -> Step<()> {
        if !self.spare.next(&self.file, source)? {
            self.reset_to(State::AfterLast);
            return Ok(());
        }
        let block = self.block_of_spare(source)?;
        let (first, _) = self.check_first_key(&block)?;
        let before = before.as_ref().or(self.position.block());
        if let Some((_, last)) = before.and_then(|before| before.key_range())
            && self.file.order().compare_keys(last, first) == Ordering::Greater
        {
            return Err(self.damaged("blocks overlap"));
        }
        let moved = self.position.first(block);
        self.finish_step(moved)
    }

    /// The block on the spare path. The current block needs no lookup.
    fn block_of_spare(&self, source: &dyn BlockSource) -> Step<Arc<Block>> {
        let target = self.spare.target(&self.file);
        match self.position.block() {
            Some(block) if self.state == State::At && block.offset() == target.offset => Ok(block.clone()),
            _ => self.file.find(target, BlockKind::Data, source),
        }
    }

    /// Checks that a block's first key agrees with the index. Returns its first and last key.
    fn check_first_key<'a>(&self, block: &'a Block) -> Step<(&'a [u8], &'a [u8])> {
        let (first, last) =
            block.key_range().ok_or_else(|| self.damaged("index points at a block without cells"))?;
        if self.file.order().compare_keys(first, self.spare.key(&self.file)) == Ordering::Less {
            return Err(self.damaged("block starts before its key in the index"));
        }
        block.set_first_key_checked();
        Ok((first, last))
    }

    /// Completes a step after the position has moved into the block on the spare path.
    fn finish_step(&mut self, moved: Result<(), Fault>) -> Step<()> {
        if let Err(fault) = moved {
            // Should not happen, since blocks are checked when loaded. But a partly moved position
            // must not be used.
            let offset = self.position.block().map_or(0, |block| block.offset());
            self.reset_to(State::BeforeFirst);
            return Err(fault.at(self.file.path(), offset).into());
        }
        std::mem::swap(&mut self.path, &mut self.spare);
        self.spare.clear();
        self.state = State::At;
        Ok(())
    }

    fn reset_to(&mut self, state: State) {
        self.state = state;
        self.position.clear();
        self.path.clear();
        self.spare.clear();
    }

    fn damaged(&self, what: &'static str) -> Stop {
        Fault::Damaged(what).at(self.file.path(), self.spare.target(&self.file).offset).into()
    }
}
