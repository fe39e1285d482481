//! The cells that increments and appends write: the newest version of each column, changed.
//!
//! A new cell is newer than the old one: its timestamp is the server's clock, or the old timestamp
//! plus 1 if that is later. Its tags are those of the request, then those of the old cell. A TTL in
//! the request replaces the TTLs in these tags. A column without a version gets the value and the
//! timestamp of the request.
//!
//! Source: HBase `HRegion.reckonDeltas`.

use cell::mutation::{Mutation, MutationKind};
use cell::query::{CellSelection, Get};
use cell::{Cell, CellType, KeyValue, LATEST_TIMESTAMP, tags};

use crate::error::{Error, Result};
use crate::region::Region;
use crate::region::change::columns_of;
use crate::region::encode::{self, TimestampRule};
use crate::region::write::{Warm, WriteAbort};

impl Region {
    /// The cells that an increment or append writes, in order, each with the index of its store and
    /// the rule for its timestamp. The caller must hold the row lock.
    pub(super) fn compute(
        &self,
        mutation: &Mutation,
        warm: &Warm,
    ) -> std::result::Result<Vec<(usize, KeyValue, TimestampRule)>, WriteAbort> {
        let selection = CellSelection {
            columns: columns_of(mutation),
            time_range: mutation.time_range,
            ..CellSelection::default()
        };
        if selection.columns.is_empty() {
            return Ok(Vec::new());
        }
        let get = Get { row: mutation.row.clone(), selection: selection.into(), existence_only: false };
        let stored = self.read_published(&get, warm)?;
        let order = self.table.order();
        let mut deltas: Vec<Cell<'_>> = mutation.cells.iter().map(|cell| cell.view(0)).collect();
        deltas.sort_by(|left, right| order.compare(left, right));
        let mut computed = Vec::with_capacity(deltas.len());
        for delta in &deltas {
            let current = stored
                .cells
                .iter()
                .map(|(cell, _)| cell.view(0))
                .find(|cell| (cell.family(), cell.qualifier()) == (delta.family(), delta.qualifier()));
            let (cell, rule) = new_cell(mutation, delta, current.as_ref())?;
            self.check_new_size(&cell)?;
            computed.push((self.store_of(delta.family())?, cell, rule));
        }
        Ok(computed)
    }

    fn check_new_size(&self, cell: &KeyValue) -> Result<()> {
        let limit = self.options().cell_bytes_max;
        let bytes = encode::LENGTH_LEN + cell.bytes().len();
        if limit > 0 && bytes as u64 > limit {
            let what =
                format!("Cell with size {bytes} exceeds limit of {limit} bytes in region {}", self.name);
            return Err(Error::bad_request(what));
        }
        Ok(())
    }
}

fn new_cell(
    mutation: &Mutation,
    delta: &Cell<'_>,
    current: Option<&Cell<'_>>,
) -> Result<(KeyValue, TimestampRule)> {
    let value = match mutation.kind {
        MutationKind::Increment => sum(delta.value, current.map(|cell| cell.value))?.to_be_bytes().to_vec(),
        _ => joined(current.map_or(&[], |cell| cell.value), delta.value)?,
    };
    let old_tags = current.map_or(&[][..], |cell| cell.tags);
    let tags = tags::joined(&[delta.tags, old_tags], mutation.ttl_ms).ok_or_else(encode::too_many_tags)?;
    let (timestamp, rule) = match current {
        // The greatest timestamp has a special meaning in requests and seek keys, so no cell gets
        // it.
        Some(cell) => (
            LATEST_TIMESTAMP,
            TimestampRule::NotBefore(cell.timestamp().saturating_add(1).min(LATEST_TIMESTAMP - 1)),
        ),
        None => (delta.timestamp(), encode::timestamp_rule_of(delta.timestamp())),
    };
    let cell = KeyValue::with_tags(
        delta.row(),
        delta.family(),
        delta.qualifier(),
        timestamp,
        CellType::Put,
        &value,
        &tags,
    );
    Ok((cell, rule))
}

fn sum(delta: &[u8], current: Option<&[u8]>) -> Result<i64> {
    let delta = number(delta)?;
    Ok(match current {
        Some(current) => number(current)?.wrapping_add(delta),
        None => delta,
    })
}

fn number(value: &[u8]) -> Result<i64> {
    let bytes = value
        .try_into()
        .map_err(|_| Error::bad_request(format!("Field is not a long, it's {} bytes wide", value.len())))?;
    Ok(i64::from_be_bytes(bytes))
}

fn joined(current: &[u8], suffix: &[u8]) -> Result<Vec<u8>> {
    // If cell sizes are unlimited, the limit of a log edit still applies.
    if current.len() + suffix.len() > wal::CELLS_LEN_MAX {
        return Err(Error::bad_request("a value exceeds the maximum size of a log edit"));
    }
    Ok([current, suffix].concat())
}
