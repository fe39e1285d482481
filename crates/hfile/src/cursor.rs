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
use crate::index::{Index, Target};
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

/// Walks over the data blocks of a file by its index, without reading them.
pub struct Outline {
    file: Arc<Reader>,
    // To the current block; before the first step to none.
    path: Option<Path>,
    spare: Path,
}

impl Outline {
    pub(crate) fn new(file: Arc<Reader>) -> Outline {
        Outline { file, path: None, spare: Path::default() }
    }

    /// Goes to the next data block and gives its key in the index: behind all cells before the block, and not behind its
    /// first. `None` behind the last.
    ///
    /// # Errors
    /// [`Stop`]; then nothing has changed.
    pub fn next(&mut self, source: &dyn BlockSource) -> Result<Option<&[u8]>, Stop> {
        let is_there = match &self.path {
            None => self.spare.seek(&self.file, source, &[], |_| false, true)?,
            Some(path) => {
                self.spare.clone_from(path);
                self.spare.next(&self.file, source)?
            }
        };
        if !is_there {
            return Ok(None);
        }
        let path = self.path.get_or_insert_default();
        std::mem::swap(path, &mut self.spare);
        Ok(Some(path.key(&self.file)))
    }
}

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

    /// The value of the cell, sharing the memory of its block.
    pub fn value(&self) -> Option<Bytes> {
        (self.state == State::At).then(|| self.position.value()).flatten()
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

/// The way through the index to a data block: an entry of the root, and one of each level below it.
#[derive(Default)]
struct Path {
    root_at: usize,
    inner: Vec<(Arc<Block>, usize)>,
}

impl Clone for Path {
    fn clone(&self) -> Path {
        Path { root_at: self.root_at, inner: self.inner.clone() }
    }

    fn clone_from(&mut self, other: &Path) {
        self.root_at = other.root_at;
        self.inner.clone_from(&other.inner);
    }
}

/// The entries of an index block on the way.
fn entries(block: &Block) -> &Index {
    block.index().expect("only index blocks are put on the way")
}

impl Path {
    /// Lets the index blocks go.
    fn clear(&mut self) {
        self.inner.clear();
    }

    /// Where the data block is.
    fn target(&self, file: &Reader) -> Target {
        match self.inner.last() {
            Some((block, at)) => entries(block).target(*at),
            None => file.root().target(self.root_at),
        }
    }

    /// The key that the index has for the data block.
    fn key<'a>(&'a self, file: &'a Reader) -> &'a [u8] {
        match self.inner.last() {
            Some((block, at)) => entries(block).key(*at),
            None => file.root().key(self.root_at),
        }
    }

    /// The key that the index has for the data block behind; `None` at the last.
    fn next_key<'a>(&'a self, file: &'a Reader) -> Option<&'a [u8]> {
        let inner = self.inner.iter().rev().map(|(block, at)| (entries(block), *at));
        inner
            .chain([(file.root(), self.root_at)])
            .find(|(index, at)| at + 1 < index.len())
            .map(|(index, at)| index.key(at + 1))
    }

    /// Goes to the last data block for whose key `is_before` holds, which a key of `row` decides. If there is none: to
    /// the first, if `or_first`. Returns whether there is such a block.
    fn seek(
        &mut self,
        file: &Arc<Reader>,
        source: &dyn BlockSource,
        row: &[u8],
        is_before: impl Fn(&[u8]) -> bool,
        or_first: bool,
    ) -> Step<bool> {
        self.inner.clear();
        match file.root().last_where_of(row, &is_before) {
            Some(at) => self.root_at = at,
            None if or_first && file.root().len() > 0 => self.root_at = 0,
            None => return Ok(false),
        }
        self.descend(file, source, |index| index.last_where_of(row, &is_before).unwrap_or(0))?;
        Ok(true)
    }

    /// Goes to the next data block; returns false, and is of no use any more, if there is none.
    fn next(&mut self, file: &Arc<Reader>, source: &dyn BlockSource) -> Step<bool> {
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

    /// Goes to the data block before; returns false, and is of no use any more, if there is none.
    fn previous(&mut self, file: &Arc<Reader>, source: &dyn BlockSource) -> Step<bool> {
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

    /// Completes the way from its lowest level down to a leaf; `pick` chooses an entry of each block.
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
            if !block.is_start_checked() {
                if index.key(0) != self.key(file) {
                    return Err(Fault::Damaged("index block starts with another key than its parent says")
                        .at(file.path(), target.offset)
                        .into());
                }
                block.set_start_checked();
            }
            let at = pick(index);
            self.inner.push((block, at));
        }
        Ok(())
    }
}
