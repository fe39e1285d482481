//! Which cells of a column live where markers and versions count in the order in which they were written.
//!
//! That is what families with `NEW_VERSION_BEHAVIOR` ask for: a marker hides only what was written before it, and a
//! version that was one too many when it was written, or became so later, stays hidden, even if those that pushed it out are
//! deleted afterwards. Cells still come in key order, so every marker that could matter to a put was met before it, and
//! every newer version too; what they say is sorted here by sequence id.
//!
//! The time of a column, as sequence ids, is cut into *spans*: each ends with a marker of the whole column or family, the last one
//! never. A put counts in every span from its own on, until a marker takes it away. Markers of one version cut a span
//! further, for what was hidden before them remains so. Cells written in one batch have one sequence id and count as one.
//!
//! Source: HBase `NewVersionBehaviorTracker`, kept to the letter also where that is odd: no marker of the family hides
//! what has the empty qualifier.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use cell::{Cell, CellType};

use crate::scanner::columns::{VersionLimits, is_delete};
use crate::scanner::matcher::Match;

/// The end of the last span.
const NEVER: u64 = u64::MAX;

/// What is known of the row that is read.
pub(crate) struct WriteOrder {
    limits: VersionLimits,
    // Versions returned of a column, at most as many as `limits.max`, which are kept.
    returned: u32,
    // With single columns wanted: these, sorted, and the index of the one looked for now.
    wanted: Option<Vec<Bytes>>,
    at: usize,
    // By the sequence id of the marker that ends the span.
    of_family: BTreeMap<u64, Span>,
    of_column: BTreeMap<u64, Span>,
    last: Option<Met>,
    qualifier: Vec<u8>,
    count: u32,
}

/// The cell looked at before.
#[derive(Clone, Copy)]
struct Met {
    timestamp: i64,
    type_code: u8,
    seq_id: u64,
}

/// The time up to a marker of the whole column or family.
#[derive(Clone, Debug)]
struct Span {
    // What the marker hides: all up to this timestamp.
    hides_to: i64,
    // Markers of one version: by timestamp, their sequence ids.
    versions: BTreeMap<i64, BTreeSet<u64>>,
    // By the sequence id of such a marker, and of the end: the puts seen then.
    seen: BTreeMap<u64, BTreeSet<u64>>,
}

impl Span {
    fn new(hides_to: i64) -> Span {
        let seen = BTreeMap::from([(NEVER, BTreeSet::new())]);
        Span { hides_to, versions: BTreeMap::new(), seen }
    }

    /// A marker of one version: from here on its put counts no longer, but what it pushed out stays out.
    fn cut(&mut self, marker: &Cell<'_>) {
        self.versions.entry(marker.timestamp()).or_default().insert(marker.seq_id);
        let next = self.seen.range(marker.seq_id..).next().map(|(_, seen)| seen);
        let earlier = next.into_iter().flat_map(|seen| seen.range(..marker.seq_id)).copied().collect();
        self.seen.insert(marker.seq_id, earlier);
    }

    /// The first marker of one version that hides `put`.
    fn hidden_at(&self, put: &Cell<'_>) -> Option<u64> {
        self.versions.get(&put.timestamp())?.range(put.seq_id..).next().copied()
    }

    /// Counts `put` in all that was seen up to `until`; whether it was never one too many.
    fn count(&mut self, put: &Cell<'_>, until: u64, max: u32) -> bool {
        // A put of an earlier sequence id than `until` may have none: then there is nothing to count.
        if put.seq_id > until {
            return true;
        }
        for seen in self.seen.range_mut(put.seq_id..=until).map(|(_, seen)| seen) {
            if seen.len() >= max as usize {
                return false;
            }
            seen.insert(put.seq_id);
        }
        true
    }
}

impl WriteOrder {
    /// Of the columns `wanted` (sorted), or of all: no more than `returned` versions of the `limits.max` that live.
    pub(crate) fn new(wanted: Option<Vec<Bytes>>, limits: VersionLimits, returned: u32) -> WriteOrder {
        let mut order = WriteOrder {
            limits,
            returned,
            wanted,
            at: 0,
            of_family: BTreeMap::new(),
            of_column: BTreeMap::new(),
            last: None,
            qualifier: Vec::new(),
            count: 0,
        };
        order.clear();
        order
    }

    /// A new row begins.
    pub(crate) fn clear(&mut self) {
        self.of_column.clear();
        self.of_family.clear();
        self.of_family.insert(NEVER, Span::new(i64::MIN));
        self.last = None;
        self.qualifier.clear();
        self.at = 0;
        self.count = 0;
    }

    /// Whether all columns that are wanted were met in this row.
    pub(crate) fn done(&self) -> bool {
        self.wanted.as_ref().is_some_and(|wanted| self.at >= wanted.len())
    }

    /// The qualifier to go to from the column that was judged last; `None` for whichever comes next.
    pub(crate) fn hint(&self) -> Option<&[u8]> {
        let next = self.wanted.as_ref()?.get(self.at)?;
        (next[..] > self.qualifier[..]).then_some(&next[..])
    }

    /// Takes note of a marker.
    pub(crate) fn add(&mut self, marker: &Cell<'_>) {
        self.meet(marker);
        const DELETE_FAMILY: u8 = CellType::DeleteFamily as u8;
        const DELETE_FAMILY_VERSION: u8 = CellType::DeleteFamilyVersion as u8;
        const DELETE_COLUMN: u8 = CellType::DeleteColumn as u8;
        let (spans, is_whole) = match marker.type_code() {
            DELETE_FAMILY => (&mut self.of_family, true),
            DELETE_FAMILY_VERSION => (&mut self.of_family, false),
            DELETE_COLUMN => (&mut self.of_column, true),
            _ => (&mut self.of_column, false),
        };
        if is_whole {
            spans.insert(marker.seq_id, Span::new(marker.timestamp()));
        } else if let Some((_, span)) = spans.range_mut(marker.seq_id..).next() {
            span.cut(marker);
        } else {
            // Only behind markers of the family, at the empty qualifier. HBase cannot read such a row.
            let mut span = Span::new(i64::MIN);
            span.cut(marker);
            spans.insert(NEVER, span);
        }
    }

    /// Whether neither markers nor versions hide `put`. Asked once of each put, in key order.
    pub(crate) fn lives(&mut self, put: &Cell<'_>) -> bool {
        let double_of = self.meet(put);
        for span in self.of_column.range_mut(put.seq_id..).map(|(_, span)| span) {
            let hidden_at = span.hidden_at(put);
            let until = hidden_at.unwrap_or(NEVER).min(double_of.unwrap_or(NEVER));
            let was_always_wanted = span.count(put, until, self.limits.max);
            if !was_always_wanted || hidden_at.is_some() || put.timestamp() <= span.hides_to {
                return false;
            }
        }
        double_of.is_none()
    }

    /// Notes the cell as the last one; the sequence id of the one before, if it is a put of the same version.
    fn meet(&mut self, cell: &Cell<'_>) -> Option<u64> {
        let (timestamp, type_code) = (cell.timestamp(), cell.type_code());
        if self.is_other_column(cell) {
            self.of_column.clone_from(&self.of_family);
            self.count = 0;
        } else if let Some(last) = self.last
            && !is_delete(last.type_code)
            && last.type_code == type_code
            && last.timestamp == timestamp
        {
            return Some(last.seq_id);
        }
        self.last = Some(Met { timestamp, type_code, seq_id: cell.seq_id });
        self.qualifier.clear();
        self.qualifier.extend_from_slice(cell.qualifier());
        None
    }

    /// The empty qualifier is none that one changes to, unless with a marker of its own.
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

    /// Counts a version that lives.
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
