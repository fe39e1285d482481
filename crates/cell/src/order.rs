//! HBase's total order of keys.
//!
//! Row, family and qualifier ascend; timestamp, type code and sequence id descend. Within a column
//! the newest version therefore comes first, and a delete marker comes before the put that it
//! hides. `hbase:meta` differs only in the order of rows.
//!
//! Source: HBase `CellComparatorImpl`, `MetaCellComparator`. Tests compare with samples that HBase
//! sorted.

use std::cmp::Ordering;

use crate::cell::{Cell, CellType};
use crate::key;

/// Row order of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum CellOrder {
    /// Rows compare as unsigned bytes: every table except `hbase:meta`.
    #[default]
    Plain,
    /// Rows of `hbase:meta`: table, start key and region id compare separately.
    Meta,
}

impl CellOrder {
    /// Compares two rows.
    #[inline]
    pub fn compare_rows(self, left: &[u8], right: &[u8]) -> Ordering {
        match self {
            CellOrder::Plain => left.cmp(right),
            CellOrder::Meta => compare_meta_rows(left, right),
        }
    }

    /// Compares two keys, ignoring sequence ids.
    #[inline]
    pub fn compare_keys(self, left: &[u8], right: &[u8]) -> Ordering {
        self.compare_rows(key::row(left), key::row(right)).then_with(|| compare_within_row(left, right))
    }

    /// Compares two cells. If the keys are equal, the greater sequence id comes first.
    #[inline]
    pub fn compare(self, left: &Cell<'_>, right: &Cell<'_>) -> Ordering {
        self.compare_keys(left.key, right.key).then_with(|| right.seq_id.cmp(&left.seq_id))
    }
}

/// Compares two keys of the same row by family, qualifier, timestamp and type.
#[inline]
pub fn compare_within_row(left: &[u8], right: &[u8]) -> Ordering {
    let (left_family, right_family) = (key::family(left), key::family(right));
    let (left_qualifier, right_qualifier) = (key::qualifier(left), key::qualifier(right));
    // The fake last cell of a row: type Minimum without a column.
    let is_last = |key, family: &[u8], qualifier: &[u8]| {
        key::type_code(key) == CellType::Minimum as u8 && family.is_empty() && qualifier.is_empty()
    };
    if is_last(left, left_family, left_qualifier) {
        return if is_last(right, right_family, right_qualifier) {
            Ordering::Equal
        } else {
            Ordering::Greater
        };
    }
    if is_last(right, right_family, right_qualifier) {
        return Ordering::Less;
    }
    left_family
        .cmp(right_family)
        .then_with(|| left_qualifier.cmp(right_qualifier))
        .then_with(|| key::timestamp(right).cmp(&key::timestamp(left)))
        .then_with(|| key::type_code(right).cmp(&key::type_code(left)))
}

/// Compares rows of `hbase:meta`: `table,start key,region id`. They are split at the first and the
/// last comma, because a start key may contain commas.
fn compare_meta_rows(left: &[u8], right: &[u8]) -> Ordering {
    let (left_table, left_rest) = split_table(left);
    let (right_table, right_rest) = split_table(right);
    left_table.cmp(right_table).then_with(|| match (left_rest, right_rest) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some(left_at), Some(right_at)) => {
            let (left_start, left_id) = split_start_and_id(left, left_at);
            let (right_start, right_id) = split_start_and_id(right, right_at);
            left_start.cmp(right_start).then_with(|| left_id.cmp(right_id))
        }
    })
}

/// The part before the first comma, and the offset after that comma.
fn split_table(row: &[u8]) -> (&[u8], Option<usize>) {
    match row.iter().position(|byte| *byte == b',') {
        Some(at) => (&row[..at], Some(at + 1)),
        None => (row, None),
    }
}

/// The start key and the region id of a row whose first comma is just before `at`. With only one
/// comma the rest is the start key and, as in HBase, the whole row is used as the id.
fn split_start_and_id(row: &[u8], at: usize) -> (&[u8], &[u8]) {
    match row[at..].iter().rposition(|byte| *byte == b',') {
        Some(last) => (&row[at..at + last], &row[at + last + 1..]),
        None => (&row[at..], row),
    }
}
