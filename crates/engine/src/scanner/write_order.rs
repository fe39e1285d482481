//! Decides which cells of a column are alive in families with `NEW_VERSION_BEHAVIOR`, where the
//! order of writing matters.
//!
//! A marker hides only cells that were written before it. A version that exceeded the limit of
//! versions, when it was written or later, stays hidden, even if the versions that displaced it are
//! deleted afterwards. Cells still come in key order, so the markers that can hide a put, and the
//! versions with greater timestamps that can displace it, come before it. This module orders them
//! by sequence id.
//!
//! The history of a column, measured in sequence ids, is split into *spans*. Each span ends with a
//! marker of the whole column or family; the last one never ends. A put counts towards the limit of
//! versions in the span in which it was written and in each later span, until a marker or the limit
//! hides it. A marker of one version splits its span into two parts that count separately. The put
//! that it deletes counts only in the first part, and the versions that this put displaced there
//! stay hidden. Cells of one batch have the same sequence id and count as one.
//!
//! Source: HBase `NewVersionBehaviorTracker`, matched exactly even where it is odd: no marker of
//! the family hides cells with the empty qualifier.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use cell::{Cell, CellType};

use crate::scanner::columns::{VersionLimits, is_delete};
use crate::scanner::matcher::Match;

/// The end of the last span.
const NEVER: u64 = u64::MAX;

/// The state of the current row.
pub(crate) struct WriteOrder {
    limits: VersionLimits,
    // Maximum number of versions to return. At most `limits.max`, the number that is retained.
    returned: u32,
    // The wanted columns, sorted, if not all are wanted; and the index of the current one.
    wanted: Option<Vec<Bytes>>,
    at: usize,
    // Spans by the sequence id of the marker that ends them.
    family_spans: BTreeMap<u64, Span>,
    column_spans: BTreeMap<u64, Span>,
    last: Option<LastCell>,
    qualifier: Vec<u8>,
    count: u32,
}

/// The last cell, or the put that it duplicates.
#[derive(Clone, Copy)]
struct LastCell {
    timestamp: i64,
    type_code: u8,
    seq_id: u64,
}

/// The history up to a marker of the whole column or family.
#[derive(Clone, Debug)]
struct Span {
    // The marker hides all cells up to this timestamp.
    hides_to: i64,
    // Markers of one version: their sequence ids, by timestamp.
    versions: BTreeMap<i64, BTreeSet<u64>>,
    // For each part of the span, the sequence ids of the puts that count in it. The key is the
    // sequence id of the marker of one version that ends the part, and `NEVER` for the last part.
    counted: BTreeMap<u64, BTreeSet<u64>>,
}

impl Span {
    fn new(hides_to: i64) -> Span {
        let counted = BTreeMap::from([(NEVER, BTreeSet::new())]);
        Span { hides_to, versions: BTreeMap::new(), counted }
    }

    /// Adds a marker of one version. The put that it deletes counts only before the marker, but the
    /// versions that this put displaced there stay hidden.
    fn split_at(&mut self, marker: &Cell<'_>) {
        self.versions.entry(marker.timestamp()).or_default().insert(marker.seq_id);
        let next = self.counted.range(marker.seq_id..).next().map(|(_, counted)| counted);
        let earlier = next.into_iter().flat_map(|counted| counted.range(..marker.seq_id)).copied().collect();
        self.counted.insert(marker.seq_id, earlier);
    }

    /// Sequence id of the first marker of one version that hides `put`.
    fn hidden_at(&self, put: &Cell<'_>) -> Option<u64> {
        self.versions.get(&put.timestamp())?.range(put.seq_id..).next().copied()
    }

    /// Counts `put` in each part of the span up to `until`. Returns whether it was within the limit
    /// of versions in all of them.
    fn count(&mut self, put: &Cell<'_>, until: u64, max: u32) -> bool {
        // A put that was written after `until` counts in no part.
        if put.seq_id > until {
            return true;
        }
        for counted in self.counted.range_mut(put.seq_id..=until).map(|(_, counted)| counted) {
            if counted.len() >= max as usize {
                return false;
            }
            counted.insert(put.seq_id);
        }
        true
    }
}

impl WriteOrder {
    /// Judges the columns `wanted` (sorted), or all. Of the `limits.max` versions that are alive,
    /// it includes at most `returned`.
    pub(crate) fn new(wanted: Option<Vec<Bytes>>, limits: VersionLimits, returned: u32) -> WriteOrder {
        debug_assert!(returned <= limits.max, "all versions that are returned are retained");
        let mut order = WriteOrder {
            limits,
            returned,
            wanted,
            at: 0,
            family_spans: BTreeMap::new(),
            column_spans: BTreeMap::new(),
            last: None,
            qualifier: Vec::new(),
            count: 0,
        };
        order.clear();
        order
    }

    /// Begins a row.
    pub(crate) fn clear(&mut self) {
        self.column_spans.clear();
        self.family_spans.clear();
        self.family_spans.insert(NEVER, Span::new(i64::MIN));
        self.last = None;
        self.qualifier.clear();
        self.at = 0;
        self.count = 0;
    }

    /// Whether all wanted columns of this row are finished.
    pub(crate) fn done(&self) -> bool {
        self.wanted.as_ref().is_some_and(|wanted| self.at >= wanted.len())
    }

    /// The qualifier to go to after the column that was judged last; `None` for the next one.
    pub(crate) fn hint(&self) -> Option<&[u8]> {
        let next = self.wanted.as_ref()?.get(self.at)?;
        (next[..] > self.qualifier[..]).then_some(&next[..])
    }

    /// Adds a marker.
    pub(crate) fn add(&mut self, marker: &Cell<'_>) {
        self.set_last(marker);
        const DELETE_FAMILY: u8 = CellType::DeleteFamily as u8;
        const DELETE_FAMILY_VERSION: u8 = CellType::DeleteFamilyVersion as u8;
        const DELETE_COLUMN: u8 = CellType::DeleteColumn as u8;
        let (spans, is_whole) = match marker.type_code() {
            DELETE_FAMILY => (&mut self.family_spans, true),
            DELETE_FAMILY_VERSION => (&mut self.family_spans, false),
            DELETE_COLUMN => (&mut self.column_spans, true),
            _ => (&mut self.column_spans, false),
        };
        if is_whole {
            spans.insert(marker.seq_id, Span::new(marker.timestamp()));
        } else if let Some((_, span)) = spans.range_mut(marker.seq_id..).next() {
            span.split_at(marker);
        } else {
            // No span includes the marker. This happens only for a marker of the column with the
            // empty qualifier, in a row whose first cell is no such marker. HBase cannot read this
            // row.
            let mut span = Span::new(i64::MIN);
            span.split_at(marker);
            spans.insert(NEVER, span);
        }
    }

    /// Whether neither markers nor versions with greater timestamps hide `put`. To be called once
    /// for each put, in key order.
    pub(crate) fn lives(&mut self, put: &Cell<'_>) -> bool {
        let duplicate_of = self.set_last(put);
        for span in self.column_spans.range_mut(put.seq_id..).map(|(_, span)| span) {
            let hidden_at = span.hidden_at(put);
            let until = hidden_at.unwrap_or(NEVER).min(duplicate_of.unwrap_or(NEVER));
            let was_always_within_limit = span.count(put, until, self.limits.max);
            if !was_always_within_limit || hidden_at.is_some() || put.timestamp() <= span.hides_to {
                return false;
            }
        }
        duplicate_of.is_none()
    }

    /// Records `cell` as the last cell. But if the last cell is a put with the same column, type
    /// and timestamp, keeps that put as the last cell and returns that put's sequence id.
    fn set_last(&mut self, cell: &Cell<'_>) -> Option<u64> {
        let (timestamp, type_code) = (cell.timestamp(), cell.type_code());
        if self.is_other_column(cell) {
            self.column_spans.clone_from(&self.family_spans);
            self.count = 0;
        } else if let Some(last) = self.last
            && !is_delete(last.type_code)
            && last.type_code == type_code
            && last.timestamp == timestamp
        {
            return Some(last.seq_id);
        }
        self.last = Some(LastCell { timestamp, type_code, seq_id: cell.seq_id });
        self.qualifier.clear();
        self.qualifier.extend_from_slice(cell.qualifier());
        None
    }

    /// Whether the cell begins another column. Cells with the empty qualifier at the start of a row
    /// do not count as the beginning of a column, unless the first cell is a marker of this column.
    fn is_other_column(&self, cell: &Cell<'_>) -> bool {
        let type_code = cell.type_code();
        let is_of_column = type_code == CellType::DeleteColumn as u8 || type_code == CellType::Delete as u8;
        let is_first_marker = self.last.is_none() && cell.qualifier().is_empty() && is_of_column;
        is_first_marker || self.qualifier != cell.qualifier()
    }

    /// Whether the cell's column is wanted: `Include`, or where to go instead.
    pub(crate) fn check_column(&mut self, cell: &Cell<'_>) -> Match {
        let Some(wanted) = &self.wanted else {
            return Match::Include;
        };
        while let Some(next) = wanted.get(self.at) {
            match cell.qualifier().cmp(next) {
                std::cmp::Ordering::Less => return Match::NextColumn,
                std::cmp::Ordering::Equal => return Match::Include,
                std::cmp::Ordering::Greater => self.at += 1,
            }
        }
        Match::NextRow
    }

    /// Counts a version that is alive.
    pub(crate) fn check_version(&mut self, put: &Cell<'_>) -> Match {
        self.count += 1;
        if put.timestamp() < self.limits.oldest_unexpired && self.count >= self.limits.min {
            return match self.count == self.limits.min {
                true => Match::IncludeAndNextColumn,
                false => Match::NextColumn,
            };
        }
        match self.count.cmp(&self.returned) {
            std::cmp::Ordering::Less => Match::Include,
            std::cmp::Ordering::Equal => Match::IncludeAndNextColumn,
            std::cmp::Ordering::Greater => Match::NextColumn,
        }
    }
}
