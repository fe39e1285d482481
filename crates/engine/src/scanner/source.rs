//! One input of a merge: the cells of a memstore or file that the read point may see, in order.

use std::sync::Arc;

use bytes::Bytes;
use cell::schema::BloomType;
use cell::{Cell, CellOrder};
use hfile::{BlockSource, FilterCounts, Reader, RowSlice, Stop};

use crate::half::HalfCursor;
use crate::memstore;
use crate::store::StoreFile;

/// Cells that a forward seek steps over before it searches. Columns rarely have more versions, and
/// a step costs a few nanoseconds where a search costs hundreds.
const SEEK_STEPS: usize = 2;

/// A sorted sequence of cells, with the next move.
///
/// [`Source::order`] sets the next move and [`Source::settle`] performs it. If `settle` misses a
/// block, it is called again and continues where it was.
pub(crate) struct Source {
    cursor: Cursor,
    // Cells with a greater sequence id are skipped.
    visible_to: u64,
    order: Order,
    bloom: Bloom,
}

/// A file's Bloom filter, which is checked before the first seek in the file.
enum Bloom {
    Unchecked(Arc<BloomCheck>),
    Checked(FilterCounts),
}

enum Cursor {
    Memstore(memstore::Cursor),
    File(hfile::Cursor),
    Half(HalfCursor),
    // A file that has no wanted cell.
    Nothing,
}

/// The next move of a source. Keys are passed to [`Source::settle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// None.
    Stay,
    /// To the next cell.
    Next,
    /// To the first cell that is not before the key, wherever it is.
    Seek,
    /// To the first cell that is not before the key, which is after the current cell.
    SeekForward,
    /// To the last cell before the key, visible or not.
    SeekBefore,
    /// To the first visible cell, from the current one on.
    PassInvisible,
}

/// A query to a file's Bloom filter: does the file have the row, or one of these columns of it?
/// Markers of the whole family count as every column.
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

    /// Sets the next move. The previous one must have settled.
    #[inline]
    pub(crate) fn order(&mut self, order: Order) {
        debug_assert_eq!(self.order, Order::Stay, "the previous order must settle first");
        self.order = order;
    }

    /// Whether `order` is the next move.
    pub(crate) fn is_ordered(&self, order: Order) -> bool {
        self.order == order
    }

    /// Takes the counts of Bloom filter checks that were not reported yet.
    pub(crate) fn take_filter_lookups(&mut self) -> FilterCounts {
        match &mut self.bloom {
            Bloom::Unchecked(_) => FilterCounts::default(),
            Bloom::Checked(lookups) => std::mem::take(lookups),
        }
    }

    /// Whether the source is a memstore.
    pub(crate) fn is_memstore(&self) -> bool {
        matches!(self.cursor, Cursor::Memstore(_))
    }

    /// The current cell. Valid once the source has settled.
    #[inline]
    pub(crate) fn cell(&self) -> Option<Cell<'_>> {
        match &self.cursor {
            Cursor::Memstore(cursor) => cursor.cell(),
            Cursor::File(cursor) => cursor.cell(),
            Cursor::Half(cursor) => cursor.cell(),
            Cursor::Nothing => None,
        }
    }

    /// The value of the current cell, sharing the memory of its block, if it fills enough of the
    /// block.
    pub(crate) fn large_value(&self) -> Option<Bytes> {
        match &self.cursor {
            Cursor::File(cursor) => cursor.large_value(),
            Cursor::Half(cursor) => cursor.large_value(),
            Cursor::Memstore(_) | Cursor::Nothing => None,
        }
    }

    /// The whole rows from the current cell up to the row `stop` (exclusive; empty: no bound), if
    /// all their cells are visible and lie in one block.
    pub(crate) fn row_slice(&self, stop: &[u8]) -> Option<RowSlice> {
        match &self.cursor {
            Cursor::File(cursor) if self.visible_to == u64::MAX && self.order == Order::Stay => {
                cursor.row_slice(stop)
            }
            _ => None,
        }
    }

    /// Moves to the position of `slice`, which began at the current cell.
    pub(crate) fn resume(&mut self, slice: &RowSlice) {
        if let Cursor::File(cursor) = &mut self.cursor {
            cursor.resume(slice);
        }
    }

    /// Performs the ordered move. `key` is its target.
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
            // The rows of a half are soon rewritten, so a search is fast enough.
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
                // The key may be far after the next block: the search names the right block.
                Err(Stop::Miss(_)) => break,
                Err(failed) => return Err(failed),
            }
        }
        if is_before(cursor) { cursor.seek(key, blocks) } else { Ok(()) }
    }

    fn check_bloom(&mut self, blocks: &dyn BlockSource) -> Result<(), Stop> {
        let Bloom::Unchecked(check) = &self.bloom else { return Ok(()) };
        let file = match &self.cursor {
            Cursor::File(cursor) => cursor.file(),
            Cursor::Half(cursor) => cursor.file(),
            Cursor::Memstore(_) | Cursor::Nothing => return Ok(()),
        };
        let mut lookups = FilterCounts::default();
        if !check.may_have(file, blocks, &mut lookups)? {
            self.cursor = Cursor::Nothing;
        }
        self.bloom = Bloom::Checked(lookups);
        Ok(())
    }
}

/// The greatest visible sequence id of a file.
fn visible_to(reader: &Reader, read_point: u64) -> u64 {
    if all_visible(reader, read_point) { u64::MAX } else { read_point }
}

/// Whether all cells of a file are visible, so that none needs a check. This is true for most
/// files, which are older than any read point. A bulk load assigns one sequence id to all cells.
pub(crate) fn all_visible(reader: &Reader, read_point: u64) -> bool {
    match reader.assigned_seq_id() {
        Some(seq_id) => seq_id <= read_point,
        None => reader.info().max_memstore_ts <= read_point && reader.info().bulk_load_time_ms.is_none(),
    }
}

impl Bloom {
    fn of(check: Option<Arc<BloomCheck>>) -> Bloom {
        check.map_or(Bloom::Checked(FilterCounts::default()), Bloom::Unchecked)
    }
}

impl BloomCheck {
    fn may_have(
        &self,
        file: &Arc<Reader>,
        blocks: &dyn BlockSource,
        lookups: &mut FilterCounts,
    ) -> Result<bool, Stop> {
        may_have(file, &self.row, self.qualifiers.as_deref(), blocks, lookups)
    }
}

/// Checks the Bloom filter of `file` for the row, or for these columns of it. Adds the checks to
/// `lookups` only on success, because after a miss all checks are repeated.
///
/// # Errors
/// [`Stop::Miss`] if a part of the filter is needed.
pub(crate) fn may_have(
    file: &Arc<Reader>,
    row: &[u8],
    qualifiers: Option<&[Bytes]>,
    blocks: &dyn BlockSource,
    lookups: &mut FilterCounts,
) -> Result<bool, Stop> {
    let mut now = FilterCounts::default();
    let may_have = match qualifiers.filter(|_| file.info().bloom == BloomType::RowCol) {
        None => file.may_have_row(row, blocks, &mut now)?,
        Some(qualifiers) => may_have_any(file, row, qualifiers, blocks, &mut now)?,
    };
    *lookups += now;
    Ok(may_have)
}

fn may_have_any(
    file: &Arc<Reader>,
    row: &[u8],
    qualifiers: &[Bytes],
    blocks: &dyn BlockSource,
    lookups: &mut FilterCounts,
) -> Result<bool, Stop> {
    for qualifier in qualifiers {
        if file.may_have_column(row, qualifier, blocks, lookups)? {
            return Ok(true);
        }
    }
    Ok(false)
}
