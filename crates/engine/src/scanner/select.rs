//! Selects the memstores and files of a store that a scan has to read.
//!
//! Excludes those that cannot hold a wanted cell, by time range, time to live and row range. For
//! single rows, Bloom filters exclude files too. They may need blocks, so the source checks them
//! when it first moves.

use std::sync::Arc;

use bytes::Bytes;
use cell::CellOrder;
use cell::query::{Scan, TimeRange};
use hfile::Reader;

use crate::scanner::rules::FamilyRules;
use crate::scanner::source::{BloomCheck, Source};
use crate::store::{StoreFile, StoreView};

/// Maximum number of wanted columns for which a row-column Bloom filter is checked.
pub(crate) const BLOOM_COLUMNS_MAX: usize = 8;

/// The sources of a store for a scan, newest first.
pub(crate) fn select(
    view: &StoreView,
    order: CellOrder,
    rules: &FamilyRules,
    scan: &Scan,
    qualifiers: Option<&[Bytes]>,
    read_point: u64,
    now_ms: i64,
) -> Vec<Source> {
    let range = scan.selection.time_range_of(&rules.family);
    let oldest = if scan.raw { 0 } else { rules.oldest_wanted(now_ms) };
    let (low, high) = match scan.reversed {
        false => (&scan.start_row, &scan.stop_row),
        true => (&scan.stop_row, &scan.start_row),
    };
    let mut sources = Vec::with_capacity(2 + view.files.len());
    for memstore in std::iter::once(&view.active).chain(&view.snapshot) {
        if memstore.may_have_time(range, oldest) {
            sources.push(Source::memstore(memstore.cursor(), read_point));
        }
    }
    let single_row = scan.is_single_row() && !view.files.is_empty();
    let bloom = single_row.then(|| {
        let few = qualifiers.filter(|wanted| wanted.len() <= BLOOM_COLUMNS_MAX);
        Arc::new(BloomCheck { row: scan.start_row.clone(), qualifiers: few.map(<[Bytes]>::to_vec) })
    });
    for file in view.files.iter().rev() {
        if may_have_time(file.reader(), range, oldest) && may_have_rows(file, order, low, high) {
            sources.push(Source::file(file, read_point, bloom.clone()));
        }
    }
    sources
}

pub(crate) fn may_have_time(file: &Reader, range: TimeRange, oldest: i64) -> bool {
    let held = file.info().time_range;
    held.max >= oldest
        && (range.is_all() || ((held.min < range.to || range.to == i64::MAX) && held.max >= range.from))
}

/// Whether the row range of the file overlaps the range from `low` to `high`. An empty bound is no
/// bound.
pub(crate) fn may_have_rows(file: &StoreFile, order: CellOrder, low: &[u8], high: &[u8]) -> bool {
    let (Some(first), Some(last)) = (file.reader().first_row(), file.reader().last_row()) else {
        return false;
    };
    // Both bounds count as included. The scan excludes them; here one row too many does no harm.
    if let Some(half) = file.half() {
        let (low, high) =
            (if low.is_empty() { first } else { low }, if high.is_empty() { last } else { high });
        if !half.may_have_rows(order, low, high) {
            return false;
        }
    }
    (low.is_empty() || order.compare_rows(last, low).is_ge())
        && (high.is_empty() || order.compare_rows(first, high).is_le())
}
