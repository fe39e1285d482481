//! What is asked of a region: columns, times, versions, rows.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::filter::Filter;

/// A range of timestamps `[from, to)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// Smallest timestamp wanted.
    pub from: i64,
    /// Timestamp behind the largest one wanted; `i64::MAX` means no bound.
    pub to: i64,
}

impl TimeRange {
    /// All of time.
    pub const ALL: TimeRange = TimeRange { from: 0, to: i64::MAX };

    /// Whether `timestamp` lies in the range. The whole range holds every timestamp, negative ones too.
    #[inline]
    pub fn contains(&self, timestamp: i64) -> bool {
        self.is_all() || (timestamp >= self.from && (timestamp < self.to || self.to == i64::MAX))
    }

    /// Whether this is all of time.
    #[inline]
    pub fn is_all(&self) -> bool {
        *self == TimeRange::ALL
    }
}

impl Default for TimeRange {
    fn default() -> TimeRange {
        TimeRange::ALL
    }
}

/// The columns of one family that are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyColumns {
    /// The family.
    pub family: Bytes,
    /// Qualifiers, sorted and without doubles; `None` for the whole family.
    pub qualifiers: Option<Vec<Bytes>>,
}

/// What Get and Scan have in common: which cells of a row are wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct CellSelection {
    /// Families and columns, sorted by family; empty for all families.
    pub columns: Vec<FamilyColumns>,
    /// Timestamps wanted.
    pub time_range: TimeRange,
    /// Timestamps wanted of single families, instead of `time_range`.
    pub family_time_ranges: Vec<(Bytes, TimeRange)>,
    /// Newest versions wanted of a column; the family's own limit applies too.
    pub max_versions: u32,
    /// Cells at most of each family and row.
    pub store_limit: Option<u32>,
    /// Cells passed over at the start of each family and row.
    pub store_offset: u32,
    /// Whether blocks read stay in the cache.
    pub cache_blocks: bool,
    /// What else is left out.
    pub filter: Option<Arc<Filter>>,
    /// Whether families that the filter does not look at may be read behind the others; `None` for as the server likes.
    pub load_families_on_demand: Option<bool>,
}

impl Default for CellSelection {
    fn default() -> CellSelection {
        CellSelection {
            columns: Vec::new(),
            time_range: TimeRange::ALL,
            family_time_ranges: Vec::new(),
            max_versions: 1,
            store_limit: None,
            store_offset: 0,
            cache_blocks: true,
            filter: None,
            load_families_on_demand: None,
        }
    }
}

impl CellSelection {
    /// The time range that holds for `family`.
    pub fn time_range_of(&self, family: &[u8]) -> TimeRange {
        let own = self.family_time_ranges.iter().find(|(name, _)| name == family);
        own.map_or(self.time_range, |(_, range)| *range)
    }

    /// The columns wanted of `family`: `None` if none are, else the entry, where an empty selection means all.
    pub fn wants(&self, family: &[u8]) -> Option<Option<&[Bytes]>> {
        if self.columns.is_empty() {
            return Some(None);
        }
        let entry = self.columns.iter().find(|entry| entry.family == family)?;
        Some(entry.qualifiers.as_deref())
    }
}

/// A read of one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Get {
    /// The row.
    pub row: Bytes,
    /// Which of its cells. Shared: those who read many rows mostly want the same of each.
    pub selection: Arc<CellSelection>,
    /// Only whether there are any.
    pub existence_only: bool,
}

/// Reads of several rows, of each of which the same is asked.
///
/// One of them is a Get. Of the others only is known where the row stands in a message that has them all: they come by the
/// million, and a Get for each would cost as much as its answer.
#[derive(Clone, Debug)]
pub struct GetsAlike {
    first: Get,
    message: Bytes,
    // Rows in the message.
    others: Vec<Range<usize>>,
}

impl GetsAlike {
    /// Only `first`, as long as no other row of `message` is added.
    pub fn new(first: Get, message: Bytes) -> GetsAlike {
        GetsAlike { first, message, others: Vec::new() }
    }

    /// Adds the row that is at `at` in the message.
    ///
    /// # Panics
    /// If the message ends before.
    #[inline]
    pub fn push(&mut self, at: Range<usize>) {
        assert!(at.start <= at.end && at.end <= self.message.len(), "a row outside of its message");
        self.others.push(at);
    }

    /// How many there are; one at least.
    #[allow(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        1 + self.others.len()
    }

    /// The first of them.
    #[inline]
    pub fn first(&self) -> &Get {
        &self.first
    }

    /// The row of the last of them.
    #[inline]
    pub fn last_row(&self) -> &[u8] {
        self.row(self.others.len())
    }

    /// The row of the one at `at`.
    ///
    /// # Panics
    /// If there are not so many.
    #[inline]
    pub fn row(&self, at: usize) -> &[u8] {
        match at.checked_sub(1) {
            None => &self.first.row,
            Some(at) => &self.message[self.others[at].clone()],
        }
    }

    /// The one at `at`.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn get(&self, at: usize) -> Get {
        let mut get = self.first.clone();
        if let Some(at) = at.checked_sub(1) {
            get.row = self.message.slice(self.others[at].clone());
        }
        get
    }
}

/// A read of rows in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Scan {
    /// Where to begin; empty for the first row (the last one if reversed).
    pub start_row: Bytes,
    /// Whether `start_row` itself is wanted.
    pub include_start_row: bool,
    /// Where to end; empty for the last row (the first one if reversed).
    pub stop_row: Bytes,
    /// Whether `stop_row` itself is wanted.
    pub include_stop_row: bool,
    /// From large rows to small ones.
    pub reversed: bool,
    /// Which cells of a row.
    pub selection: CellSelection,
    /// Cells at most of one result; larger rows come in several. 0 for no limit.
    pub batch: u32,
    /// Delete markers and all that they hide too (up to `max_versions`).
    pub raw: bool,
    /// The read point to use in place of the newest (a scanner that goes on where another one stopped).
    pub read_point: Option<u64>,
}

impl Default for Scan {
    fn default() -> Scan {
        Scan {
            start_row: Bytes::new(),
            include_start_row: true,
            stop_row: Bytes::new(),
            include_stop_row: false,
            reversed: false,
            selection: CellSelection::default(),
            batch: 0,
            raw: false,
            read_point: None,
        }
    }
}

impl Scan {
    /// The scan that a Get is: its one row.
    pub fn of(get: &Get) -> Scan {
        Scan {
            start_row: get.row.clone(),
            stop_row: get.row.clone(),
            include_stop_row: true,
            selection: CellSelection::clone(&get.selection),
            ..Scan::default()
        }
    }

    /// Whether only one row is wanted: start and stop are the same row and belong to it.
    pub fn is_single_row(&self) -> bool {
        !self.start_row.is_empty()
            && self.start_row == self.stop_row
            && self.include_start_row
            && self.include_stop_row
    }
}
