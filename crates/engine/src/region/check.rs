//! Checks of a mutation before it is encoded.

use bytes::Bytes;
use cell::cell::ROW_LEN_MAX;
use cell::filter::Filter;
use cell::mutation::Mutation;
use cell::{Cell, LATEST_TIMESTAMP};

use crate::error::{Error, Result};
use crate::region::Region;
use crate::region::encode::LENGTH_LEN;

pub(super) fn check_row(region: &Region, row: &Bytes) -> Result<()> {
    if row.is_empty() {
        return Err(Error::bad_request("Row length is 0"));
    }
    if row.len() > ROW_LEN_MAX {
        return Err(Error::bad_request(format!("Row length {} is > {ROW_LEN_MAX}", row.len())));
    }
    region.check_contains(row)
}

/// Maximum number of regular expressions in a filter. Compiling each takes time and memory.
const FILTER_REGEXES_MAX: usize = 1_000;

/// Checks that a filter is not too large to be evaluated for each cell.
pub(super) fn check_filter(filter: &Filter, elements_max: usize) -> Result<()> {
    let size = filter.size();
    if size.elements > elements_max {
        return Err(Error::bad_request(format!(
            "filter with {} elements exceeds limit of {elements_max} elements (grampus.filter.elements.max, grampus.memory)",
            size.elements
        )));
    }
    if size.regexes > FILTER_REGEXES_MAX {
        return Err(Error::bad_request(format!(
            "filter with {} regular expressions exceeds limit of {FILTER_REGEXES_MAX}",
            size.regexes
        )));
    }
    Ok(())
}

/// A cell in HBase's format, in which a timestamp may be the placeholder for the server's clock.
fn format_cell(cell: &Cell<'_>) -> String {
    if cell.timestamp() != LATEST_TIMESTAMP {
        return format!("{cell:?}");
    }
    let (row, family) = (cell.row().escape_ascii(), cell.family().escape_ascii());
    let (qualifier, kind, value_len) = (cell.qualifier().escape_ascii(), cell.kind(), cell.value.len());
    format!("{row}/{family}:{qualifier}/LATEST_TIMESTAMP/{kind:?}/vlen={value_len}/seqid={}", cell.seq_id)
}

/// Checks the size of a cell as sent by the client, without anything the server adds.
///
/// Source: HBase `RSRpcServices.checkCellSizeLimit`.
pub(super) fn check_size(region: &Region, cell: &Cell<'_>) -> Result<()> {
    let limit = region.options().cell_bytes_max;
    let bytes = LENGTH_LEN + cell.serialized_len();
    if limit > 0 && bytes as u64 > limit {
        return Err(Error::bad_request(format!(
            "Cell[{}] with size {bytes} exceeds limit of {limit} bytes",
            format_cell(cell)
        )));
    }
    Ok(())
}

/// Checks that a cell fits its mutation.
#[inline]
pub(super) fn check_cell(mutation: &Mutation, cell: &Cell<'_>) -> Result<()> {
    mutation.kind.check_cell(&mutation.row, cell).map_err(|fault| Error::bad_request(fault.to_string()))
}

/// Checks the timestamp of a delete of a whole row.
pub(super) fn check_timestamp(timestamp: i64) -> Result<()> {
    if timestamp < 0 {
        return Err(Error::bad_request(format!("Timestamp cannot be negative. ts={timestamp}")));
    }
    Ok(())
}
