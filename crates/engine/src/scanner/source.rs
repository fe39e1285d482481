//! One sorted run of cells that a merge reads: a memstore or a file, as far as the read point lets it be seen.

use std::sync::Arc;

use bytes::Bytes;
use cell::schema::BloomType;
use cell::{Cell, CellOrder};
use hfile::{BlockSource, FiltersAsked, Reader, Run, Stop};

use crate::half::HalfCursor;
use crate::memstore;
use crate::store::StoreFile;

/// Cells that a forward seek steps over before it searches: columns rarely have more versions, and a step costs a few
/// nanoseconds where a search costs hundreds.
const SEEK_STEPS: usize = 2;

/// A run of cells and where it goes next.
///
/// Orders are given first ([`Source::order`]) and carried out by [`Source::settle`], which may miss a block; it then is
/// called again, and goes on where it was.
pub(crate) struct Source {
    cursor: Cursor,
    // Cells with a greater sequence id are not there.
    visible_to: u64,
    order: Order,
    bloom: Bloom,
}

/// A file's Bloom filter, which is asked before the file is sought for the first time.
enum Bloom {
    Ask(Arc<BloomCheck>),
    Asked(FiltersAsked),
}

enum Cursor {
    Memstore(memstore::Cursor),
    File(hfile::Cursor),
    Half(HalfCursor),
    // A file that holds nothing wanted.
    Nothing,
}

/// Where a source goes next; keys are the merge's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// It stays.
    Stay,
    /// To the next cell.
    Next,
    /// To the first cell that is not before the key, wherever it is.
    Seek,
    /// The same for a key behind the current cell.
    SeekForward,
    /// To the last cell before the key, whether it may be seen or not.
    SeekBefore,
    /// On to a cell that may be seen, if the current one may not.
    PassInvisible,
}

/// What a file's Bloom filter is asked: does it hold the row, or one of these columns of it? Markers of the whole family
/// count as every column.
pub(crate) struct BloomCheck {
    pub(crate) row: Bytes,
    pub(crate) qualifiers: Option<Vec<Bytes>>,
}

impl Source {
    pub(crate) fn memstore(cursor: memstore::Cursor, read_point: u64) -> Source {
        Source {
            cursor: Cursor::Memstore(cursor),
            visible_to: read_point,
            order: Order::Stay,
            bloom: Bloom::of(None),
        }
    }

    pub(crate) fn file(file: &StoreFile, read_point: u64, bloom: Option<Arc<BloomCheck>>) -> Source {
        let cursor = match file.half() {
            None => Cursor::File(file.reader().cursor()),
            Some(half) => Cursor::Half(HalfCursor::new(file.reader(), half.clone())),
        };
        Source {
            cursor,
            visible_to: visible_to(file.reader(), read_point),
            order: Order::Stay,
            bloom: Bloom::of(bloom),
        }
    }

    /// Sets where it goes next; it has gone where it was to go before.
    #[inline]
    pub(crate) fn order(&mut self, order: Order) {
        debug_assert_eq!(self.order, Order::Stay, "one order after the other");
        self.order = order;
    }

    /// Whether this is where it goes next.
    pub(crate) fn is_ordered(&self, order: Order) -> bool {
        self.order == order
    }

    /// What its filter was asked and nobody was told yet.
    pub(crate) fn take_asked(&mut self) -> FiltersAsked {
        match &mut self.bloom {
            Bloom::Ask(_) => FiltersAsked::default(),
            Bloom::Asked(asked) => std::mem::take(asked),
        }
    }

    /// Whether its cells are those of a memstore.
    pub(crate) fn is_memstore(&self) -> bool {
        matches!(self.cursor, Cursor::Memstore(_))
    }

    /// The current cell, once it has settled.
    #[inline]
    pub(crate) fn cell(&self) -> Option<Cell<'_>> {
        match &self.cursor {
            Cursor::Memstore(cursor) => cursor.cell(),
            Cursor::File(cursor) => cursor.cell(),
            Cursor::Half(cursor) => cursor.cell(),
            Cursor::Nothing => None,
        }
    }

    /// The value of the current cell with the memory that it is part of, if it is worth keeping that for it.
    pub(crate) fn large_value(&self) -> Option<Bytes> {
        match &self.cursor {
            Cursor::File(cursor) => cursor.large_value(),
            Cursor::Half(cursor) => cursor.large_value(),
            Cursor::Memstore(_) | Cursor::Nothing => None,
        }
    }

    /// The rows from the current cell on and before the row `stop` (empty for all), if they can be walked through: all may
    /// be seen, and lie in one block.
    pub(crate) fn run(&self, stop: &[u8]) -> Option<Run> {
        match &self.cursor {
            Cursor::File(cursor) if self.visible_to == u64::MAX && self.order == Order::Stay => {
                cursor.run(stop)
            }
            _ => None,
        }
    }

    /// Goes to where a run came that began at the current cell.
    pub(crate) fn resume(&mut self, run: &Run) {
        if let Cursor::File(cursor) = &mut self.cursor {
            cursor.resume(run);
        }
    }

    /// Goes where it was ordered to; `key` is the key of its order.
    #[inline]
    pub(crate) fn settle(
        &mut self,
        cells: CellOrder,
        key: &[u8],
        blocks: &dyn BlockSource,
    ) -> Result<(), Stop> {
        match self.order {
            Order::Stay => return Ok(()),
            Order::PassInvisible => {}
            Order::Next => self.next(blocks)?,
            Order::SeekForward => self.seek_forward(cells, key, blocks)?,
            Order::Seek => {
                self.check_bloom(blocks)?;
                self.seek(key, blocks)?;
            }
            Order::SeekBefore => {
                self.check_bloom(blocks)?;
                self.seek_before(key, blocks)?;
                self.order = Order::Stay;
                return Ok(());
            }
        }
        self.order = Order::PassInvisible;
        if self.visible_to != u64::MAX {
            while self.cell().is_some_and(|cell| cell.seq_id > self.visible_to) {
                self.next(blocks)?;
            }
        }
        self.order = Order::Stay;
        Ok(())
    }

    #[inline]
    fn next(&mut self, blocks: &dyn BlockSource) -> Result<(), Stop> {
        match &mut self.cursor {
            Cursor::Memstore(cursor) => cursor.next(),
            Cursor::File(cursor) => cursor.next(blocks)?,
            Cursor::Half(cursor) => cursor.next(blocks)?,
            Cursor::Nothing => {}
        }
        Ok(())
    }

    fn seek(&mut self, key: &[u8], blocks: &dyn BlockSource) -> Result<(), Stop> {
        match &mut self.cursor {
            Cursor::Memstore(cursor) => cursor.seek(key),
            Cursor::File(cursor) => cursor.seek(key, blocks)?,
            Cursor::Half(cursor) => cursor.seek(key, blocks)?,
            Cursor::Nothing => {}
        }
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8], blocks: &dyn BlockSource) -> Result<(), Stop> {
        match &mut self.cursor {
            Cursor::Memstore(cursor) => cursor.seek_before(key),
            Cursor::File(cursor) => cursor.seek_before(key, blocks)?,
            Cursor::Half(cursor) => cursor.seek_before(key, blocks)?,
            Cursor::Nothing => {}
        }
        Ok(())
    }

    fn seek_forward(&mut self, cells: CellOrder, key: &[u8], blocks: &dyn BlockSource) -> Result<(), Stop> {
        let cursor = match &mut self.cursor {
            Cursor::Memstore(cursor) => {
                cursor.seek_forward(key);
                return Ok(());
            }
            Cursor::File(cursor) => cursor,
            // The rows of a half are written anew soon: the search is fast enough.
            Cursor::Half(cursor) => return cursor.seek(key, blocks),
            Cursor::Nothing => return Ok(()),
        };
        let is_before = |cursor: &hfile::Cursor| {
            cursor.cell().is_some_and(|cell| cells.compare_keys(cell.key, key).is_lt())
        };
        for _ in 0..SEEK_STEPS {
            if !is_before(cursor) {
                return Ok(());
            }
            match cursor.next(blocks) {
                Ok(()) => {}
                // The key may lie far behind the next block: the search names the right one.
                Err(Stop::Miss(_)) => break,
                Err(failed) => return Err(failed),
            }
        }
        if is_before(cursor) { cursor.seek(key, blocks) } else { Ok(()) }
    }

    fn check_bloom(&mut self, blocks: &dyn BlockSource) -> Result<(), Stop> {
        let Bloom::Ask(check) = &self.bloom else { return Ok(()) };
        let file = match &self.cursor {
            Cursor::File(cursor) => cursor.file(),
            Cursor::Half(cursor) => cursor.file(),
            Cursor::Memstore(_) | Cursor::Nothing => return Ok(()),
        };
        let mut asked = FiltersAsked::default();
        if !check.may_have(file, blocks, &mut asked)? {
            self.cursor = Cursor::Nothing;
        }
        self.bloom = Bloom::Asked(asked);
        Ok(())
    }
}

/// The greatest sequence id of a file that may be seen.
fn visible_to(reader: &Reader, read_point: u64) -> u64 {
    if all_visible(reader, read_point) { u64::MAX } else { read_point }
}

/// Whether all cells of a file may be seen, so that they need no look each: those of most files are older than any read
/// point. Those of a bulk loaded file have an id that stands in no cell.
pub(crate) fn all_visible(reader: &Reader, read_point: u64) -> bool {
    reader.info().max_memstore_ts <= read_point && reader.info().bulk_load_time_ms.is_none()
}

impl Bloom {
    fn of(check: Option<Arc<BloomCheck>>) -> Bloom {
        check.map_or(Bloom::Asked(FiltersAsked::default()), Bloom::Ask)
    }
}

impl BloomCheck {
    fn may_have(
        &self,
        file: &Arc<Reader>,
        blocks: &dyn BlockSource,
        asked: &mut FiltersAsked,
    ) -> Result<bool, Stop> {
        may_have(file, &self.row, self.qualifiers.as_deref(), blocks, asked)
    }
}

/// What the file's Bloom filter says of the row, or of these columns of it. What was asked is added to `asked` in the end: none of it
/// where more is needed first, for then all is asked again.
///
/// # Errors
/// [`Stop::Miss`] if a part of the filter is needed.
pub(crate) fn may_have(
    file: &Arc<Reader>,
    row: &[u8],
    qualifiers: Option<&[Bytes]>,
    blocks: &dyn BlockSource,
    asked: &mut FiltersAsked,
) -> Result<bool, Stop> {
    let mut now = FiltersAsked::default();
    let may_have = match qualifiers.filter(|_| file.info().bloom == BloomType::RowCol) {
        None => file.may_have_row(row, blocks, &mut now)?,
        Some(qualifiers) => may_have_any(file, row, qualifiers, blocks, &mut now)?,
    };
    *asked += now;
    Ok(may_have)
}

fn may_have_any(
    file: &Arc<Reader>,
    row: &[u8],
    qualifiers: &[Bytes],
    blocks: &dyn BlockSource,
    asked: &mut FiltersAsked,
) -> Result<bool, Stop> {
    for qualifier in qualifiers {
        if file.may_have_column(row, qualifier, blocks, asked)? {
            return Ok(true);
        }
    }
    Ok(false)
}
