//! Finds the rows of a stretch that have cells elsewhere: in a memstore or another file.

use std::sync::Arc;

use bytes::Bytes;
use cell::{CellOrder, KeyBuf};
use hfile::Stop;

use crate::columns::plan::RowRange;
use crate::columns::reading::Reading;
use crate::error::Result;
use crate::scanner::{Order, Source, may_have_rows};
use crate::store::{StoreFile, StoreView};

/// Maximum number of such rows for which the vectors of the stretch are used; the rows are then
/// read one by one.
pub(super) const ROWS_MAX: usize = 512;

/// The rows in `range` that have cells in `view` outside of `file`, in order. `None` if they are
/// many.
pub(super) async fn rows_in_other_sources(
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
