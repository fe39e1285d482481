//! Walking through the cells of a file.
//!
//! A cursor knows its cell, the block that it is in, and the way there through the index. A step first finds all blocks
//! it needs, on a spare way, and only then moves: so a step that misses has changed nothing. Blocks are trusted within
//! (see [`Block`]); what one block says of another, their order, is checked when a cursor goes over from one to the
//! next.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use cell::{Cell, key};

use crate::block::Block;
use crate::block::kind::BlockKind;
use crate::block::position::Position;
use crate::error::Fault;
use crate::path::Path;
use crate::reader::Reader;
use crate::run::Run;
use crate::source::{BlockSource, Stop};

/// A position in the cells of a file, or before the first, or behind the last.
pub struct Cursor {
    file: Arc<Reader>,
    state: State,
    position: Position,
    path: Path,
    spare: Path,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    BeforeFirst,
    At,
    BehindLast,
}

type Step<T> = Result<T, Stop>;

impl Cursor {
    pub(crate) fn new(file: Arc<Reader>) -> Cursor {
        Cursor {
            file,
            state: State::BeforeFirst,
            position: Position::default(),
            path: Path::default(),
            spare: Path::default(),
        }
    }

    /// The file it walks through.
    pub fn file(&self) -> &Arc<Reader> {
        &self.file
    }

    /// The cell; `None` before the first seek or step, before the first cell and behind the last.
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

    /// The value of the cell with the memory of its block, if it is [large](crate::LARGE_VALUE_LEN) and half at least of that.
    pub fn large_value(&self) -> Option<Bytes> {
        (self.state == State::At).then(|| self.position.large_value()).flatten()
    }

    /// The block that the cell is in.
    pub fn block(&self) -> Option<&Arc<Block>> {
        self.position.block().filter(|_| self.state == State::At)
    }

    /// The rows from the cell on and before the row `stop` (empty for all), as far as they are whole and lie in the block
    /// that the cell is in; `None` if none does. The cursor stays.
    pub fn run(&self, stop: &[u8]) -> Option<Run> {
        if self.state != State::At || self.file.assigned_seq_id().is_some() {
            return None;
        }
        // A fault cannot be, since blocks are checked when loaded; who walks on meets it.
        self.position.run(self.file.order(), stop).ok().flatten()
    }

    /// Goes to where a run came that began at the current cell.
    pub fn resume(&mut self, run: &Run) {
        self.position.resume(run);
    }

    /// Goes to the first cell whose key is not before `key` (a well-formed key of any type; sequence ids do not count).
    ///
    /// Cheap if that cell is a little ahead, in the block that the cursor is in.
    ///
    /// # Errors
    /// [`Stop`]; then nothing has changed.
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
            self.leave(State::BehindLast);
            return Ok(());
        }
        let block = self.block_of_spare(source)?;
        if !block.is_start_checked() {
            self.enter(&block)?;
        }
        match self.position.seek(block, order, key) {
            Ok(None) => self.arrive(Ok(())),
            Ok(Some(all_before)) => self.first_of_next(Some(all_before), source),
            Err(fault) => self.arrive(Err(fault)),
        }
    }

    /// Goes to the last cell whose key is before `key`; without one, before the first cell.
    ///
    /// # Errors
    /// [`Stop`]; then nothing has changed.
    pub fn seek_before(&mut self, key: &[u8], source: &dyn BlockSource) -> Step<()> {
        let order = self.file.order();
        if !self.spare.seek(
            &self.file,
            source,
            key::row(key),
            |entry| order.compare_keys(entry, key) == Ordering::Less,
            false,
        )? {
            self.leave(State::BeforeFirst);
            return Ok(());
        }
        let block = self.block_of_spare(source)?;
        let (first, _) = self.enter(&block)?;
        if order.compare_keys(first, key) == Ordering::Less {
            let moved = self.position.seek_before(block, order, key);
            return self.arrive(moved);
        }
        // The key lies between the separator in the index and the block's first cell.
        if !self.spare.previous(&self.file, source)? {
            self.leave(State::BeforeFirst);
            return Ok(());
        }
        let previous = self.block_of_spare(source)?;
        let (_, last) = self.enter(&previous)?;
        if order.compare_keys(last, key) != Ordering::Less {
            return Err(self.damaged("blocks overlap"));
        }
        let moved = self.position.last(previous);
        self.arrive(moved)
    }

    /// Goes to the next cell; from before the first to the first, from the last to behind the last.
    ///
    /// # Errors
    /// [`Stop`]; then nothing has changed.
    #[inline]
    pub fn next(&mut self, source: &dyn BlockSource) -> Step<()> {
        match self.state {
            State::At => match self.position.advance() {
                Ok(true) => Ok(()),
                Ok(false) => self.next_block(source),
                Err(fault) => self.arrive(Err(fault)),
            },
            State::BeforeFirst => self.first_cell(source),
            State::BehindLast => Ok(()),
        }
    }

    fn first_cell(&mut self, source: &dyn BlockSource) -> Step<()> {
        if !self.spare.seek(&self.file, source, &[], |_| false, true)? {
            self.leave(State::BehindLast);
            return Ok(());
        }
        let block = self.block_of_spare(source)?;
        self.enter(&block)?;
        let moved = self.position.first(block);
        self.arrive(moved)
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
            return self.arrive(Err(fault));
        }
        Ok(())
    }

    /// Goes to the first cell of the block behind the one that the spare way leads to: `before`, or the current one.
    fn first_of_next(&mut self, before: Option<Arc<Block>>, source: &dyn BlockSource) -> Step<()> {
        if !self.spare.next(&self.file, source)? {
            self.leave(State::BehindLast);
            return Ok(());
        }
        let block = self.block_of_spare(source)?;
        let (first, _) = self.enter(&block)?;
        let before = before.as_ref().or(self.position.block());
        if let Some((_, last)) = before.and_then(|before| before.key_range())
            && self.file.order().compare_keys(last, first) == Ordering::Greater
        {
            return Err(self.damaged("blocks overlap"));
        }
        let moved = self.position.first(block);
        self.arrive(moved)
    }

    /// The block that the spare way leads to; the current one is at hand without asking.
    fn block_of_spare(&self, source: &dyn BlockSource) -> Step<Arc<Block>> {
        let target = self.spare.target(&self.file);
        match self.position.block() {
            Some(block) if self.state == State::At && block.offset() == target.offset => Ok(block.clone()),
            _ => self.file.find(target, BlockKind::Data, source),
        }
    }

    /// Checks that a block is where the index has it; gives its first and last key.
    fn enter<'a>(&self, block: &'a Block) -> Step<(&'a [u8], &'a [u8])> {
        let (first, last) =
            block.key_range().ok_or_else(|| self.damaged("index points at a block without cells"))?;
        if self.file.order().compare_keys(first, self.spare.key(&self.file)) == Ordering::Less {
            return Err(self.damaged("block starts before its key in the index"));
        }
        block.set_start_checked();
        Ok((first, last))
    }

    /// After the position has moved into the block that the spare way leads to.
    fn arrive(&mut self, moved: Result<(), Fault>) -> Step<()> {
        if let Err(fault) = moved {
            // Cannot be, since blocks are checked when loaded; but a position half moved must not be used.
            let offset = self.position.block().map_or(0, |block| block.offset());
            self.leave(State::BeforeFirst);
            return Err(fault.at(self.file.path(), offset).into());
        }
        std::mem::swap(&mut self.path, &mut self.spare);
        self.spare.clear();
        self.state = State::At;
        Ok(())
    }

    fn leave(&mut self, state: State) {
        self.state = state;
        self.position.clear();
        self.path.clear();
        self.spare.clear();
    }

    fn damaged(&self, what: &'static str) -> Stop {
        Fault::Damaged(what).at(self.file.path(), self.spare.target(&self.file).offset).into()
    }
}
