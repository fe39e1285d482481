//! Rows of a stretch that something else has cells of: a memstore, or another file.

use std::sync::Arc;

use bytes::Bytes;
use cell::{CellOrder, KeyBuf};
use columnar::{Bits, Values, Vector};
use hfile::Stop;

use crate::columns::plan::RowRange;
use crate::columns::scan::Reading;
use crate::error::Result;
use crate::scanner::{Order, Source, may_have_rows};
use crate::store::{StoreFile, StoreView};

/// Such rows of a stretch up to which the rest is read from its vectors, and they one by one.
const ROWS_MAX: usize = 512;

/// The rows in `range` that anything but `file` has cells of, in order; `None` if they are many.
pub(super) async fn rows_of_others(
    range: &RowRange,
    file: &Arc<StoreFile>,
    view: &StoreView,
    read_point: u64,
    reading: &mut Reading,
) -> Result<Option<Vec<Bytes>>> {
    let memstores = std::iter::once(&view.active).chain(&view.snapshot);
    let memstores = memstores.filter(|memstore| !memstore.is_empty());
    let mut others: Vec<Source> =
        memstores.map(|memstore| Source::memstore(memstore.cursor(), read_point)).collect();
    let files = view.files.iter().filter(|other| !Arc::ptr_eq(other, file));
    let files = files.filter(|file| may_have_rows(file, CellOrder::Plain, &range.start, &range.stop));
    others.extend(files.map(|file| Source::file(file, read_point, None)));
    let mut rows = Vec::new();
    for other in &mut others {
        let mut next = range.start.to_vec();
        while let Some(row) = row_from(other, &next, reading).await?.filter(|row| row < &range.stop) {
            if rows.len() >= ROWS_MAX {
                return Ok(None);
            }
            next.clear();
            next.extend_from_slice(&row);
            next.push(0);
            rows.push(row);
        }
    }
    rows.sort();
    rows.dedup();
    Ok(Some(rows))
}

/// The first row of `source` that is not before `row`.
async fn row_from(source: &mut Source, row: &[u8], reading: &mut Reading) -> Result<Option<Bytes>> {
    let key = KeyBuf::first_on_row(row);
    source.order(Order::Seek);
    loop {
        match source.settle(CellOrder::Plain, key.as_slice(), reading.blocks()) {
            Ok(()) => break,
            Err(Stop::Failed(error)) => return Err(error.into()),
            Err(Stop::Miss(miss)) => reading.load(&miss).await?,
        }
    }
    reading.step_succeeded();
    Ok(source.cell().map(|cell| Bytes::copy_from_slice(cell.row())))
}

/// All rows of a stretch but `others`; `keys` are the keys of its rows, in order.
pub(super) fn all_but(others: &[Bytes], keys: &Vector) -> Bits {
    let mut without = Bits::ones(keys.len());
    let Values::Raw(keys) = keys.values() else { return without };
    let mut taken = Bits::zeros(without.len());
    for other in others {
        let at = first_at_or_behind(without.len(), |row| keys.get(row) >= &other[..]);
        if at < without.len() && keys.get(at) == &other[..] {
            taken.set(at);
        }
    }
    without.and_not(&taken);
    without
}

/// The first of `len` rows for which `is_behind` holds; it holds for all after it.
fn first_at_or_behind(len: usize, is_behind: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_behind(middle) { high = middle } else { low = middle + 1 }
    }
    low
}
