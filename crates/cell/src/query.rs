//! Reads of a region: columns, time ranges, versions, rows.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::filter::Filter;

/// A range of timestamps `[from, to)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// Smallest timestamp in the range.
    pub from: i64,
    /// First timestamp after the range; `i64::MAX` means no bound.
    pub to: i64,
}

impl TimeRange {
    /// All timestamps.
    pub const ALL: TimeRange = TimeRange { from: 0, to: i64::MAX };

    /// Whether `timestamp` is in the range. [`TimeRange::ALL`] contains every timestamp, including
    /// negative ones.
    #[inline]
    pub fn contains(&self, timestamp: i64) -> bool {
        self.is_all() || (timestamp >= self.from && (timestamp < self.to || self.to == i64::MAX))
    }

    /// Whether this is [`TimeRange::ALL`].
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

/// The requested columns of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyColumns {
    /// The family.
    pub family: Bytes,
    /// Qualifiers, sorted and without duplicates; `None` for the whole family.
    pub qualifiers: Option<Vec<Bytes>>,
}

/// The part that Get and Scan share: which cells of a row to return.
#[derive(Clone, Debug, PartialEq)]
pub struct CellSelection {
    /// Families and columns, sorted by family; empty for all families.
    pub columns: Vec<FamilyColumns>,
    /// Time range of the cells to return.
    pub time_range: TimeRange,
    /// Time ranges of single families, which override `time_range`.
    pub family_time_ranges: Vec<(Bytes, TimeRange)>,
    /// Maximum number of versions of a column; the family's own limit also applies.
    pub max_versions: u32,
    /// Maximum number of cells of each family and row.
    pub store_limit: Option<u32>,
    /// Number of cells to skip at the start of each family and row.
    pub store_offset: u32,
    /// Whether the blocks read are added to the block cache.
    pub cache_blocks: bool,
    /// Filter of rows and cells.
    pub filter: Option<Arc<Filter>>,
    /// Whether families that the filter does not read may be read after the others. `None` lets the
    /// server decide.
    pub load_families_on_demand: Option<bool>,
    /// How references to MOB files are returned.
    pub mob: MobReads,
}

/// How a read returns references to MOB files. The default resolves them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MobReads {
    /// The references are returned as they are stored (`hbase.mob.scan.raw`).
    pub raw: bool,
    /// Families with MOB files return no other cells (`hbase.mob.scan.ref.only`).
    pub references_only: bool,
    /// A value that is missing in its MOB file is returned empty instead of failing the read
    /// (`empty.value.on.mobcell.miss`).
    pub empty_if_missing: bool,
    /// Blocks of MOB files that are read are cached (`hbase.mob.cache.blocks`).
    pub cache_blocks: bool,
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
            mob: MobReads::default(),
        }
    }
}

impl CellSelection {
    /// The time range that applies to `family`.
    pub fn time_range_of(&self, family: &[u8]) -> TimeRange {
        let own = self.family_time_ranges.iter().find(|(name, _)| name == family);
        own.map_or(self.time_range, |(_, range)| *range)
    }

    /// The requested columns of `family`. `None` if the family is not requested; `Some(None)` for
    /// all its columns.
    pub fn qualifiers_of(&self, family: &[u8]) -> Option<Option<&[Bytes]>> {
        if self.columns.is_empty() {
            return Some(None);
        }
        let entry = self.columns.iter().find(|entry| entry.family == family)?;
        Some(entry.qualifiers.as_deref())
    }
}

/// The parts of a column `family:qualifier`: the family, and the qualifier if there is a colon.
pub fn column_parts(column: &Bytes) -> (Bytes, Option<Bytes>) {
    match column.iter().position(|byte| *byte == b':') {
        None => (column.clone(), None),
        Some(at) => (column.slice(..at), Some(column.slice(at + 1..))),
    }
}

/// Columns as a selection: families, or columns if there is a qualifier. As in HBase's client, the
/// last entry of a family decides whether the whole family is selected.
pub fn selected_columns(columns: impl IntoIterator<Item = (Bytes, Option<Bytes>)>) -> Vec<FamilyColumns> {
    let mut families: BTreeMap<Bytes, Option<Vec<Bytes>>> = BTreeMap::new();
    for (family, qualifier) in columns {
        match qualifier {
            None => {
                families.insert(family, None);
            }
            Some(qualifier) => families.entry(family).or_default().get_or_insert_default().push(qualifier),
        }
    }
    let sorted = |(family, qualifiers): (Bytes, Option<Vec<Bytes>>)| FamilyColumns {
        family,
        qualifiers: qualifiers.map(|mut qualifiers| {
            qualifiers.sort();
            qualifiers.dedup();
            qualifiers
        }),
    };
    families.into_iter().map(sorted).collect()
}

/// A read of one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Get {
    /// The row.
    pub row: Bytes,
    /// The cells to return. Shared, because reads of many rows mostly have the same selection.
    pub selection: Arc<CellSelection>,
    /// Return only whether such cells exist.
    pub existence_only: bool,
}

/// Reads of several rows with the same selection.
///
/// The first is a [`Get`]. For each other row only its position in the request message is stored:
/// there can be millions of rows, and a `Get` for each would cost as much as its response.
#[derive(Clone, Debug)]
pub struct MultiGet {
    first: Get,
    message: Bytes,
    // Positions of the other rows in the message.
    other_rows: Vec<Range<usize>>,
}

impl MultiGet {
    /// Contains only `first` until rows of `message` are added.
    pub fn new(first: Get, message: Bytes) -> MultiGet {
        MultiGet { first, message, other_rows: Vec::new() }
    }

    /// Adds the row at position `at` in the message.
    ///
    /// # Panics
    /// If `at` is outside the message.
    #[inline]
    pub fn push(&mut self, at: Range<usize>) {
        assert!(at.start <= at.end && at.end <= self.message.len(), "row position is outside the message");
        self.other_rows.push(at);
    }

    /// Number of rows; at least 1.
    #[allow(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        1 + self.other_rows.len()
    }

    /// The first read.
    #[inline]
    pub fn first(&self) -> &Get {
        &self.first
    }

    /// The last row.
    #[inline]
    pub fn last_row(&self) -> &[u8] {
        self.row(self.other_rows.len())
    }

    /// The row of read `at`.
    ///
    /// # Panics
    /// If `at` is not less than [`len`](Self::len).
    #[inline]
    pub fn row(&self, at: usize) -> &[u8] {
        match at.checked_sub(1) {
            None => &self.first.row,
            Some(at) => &self.message[self.other_rows[at].clone()],
        }
    }

    /// Read `at` as a [`Get`].
    ///
    /// # Panics
    /// If `at` is not less than [`len`](Self::len).
    pub fn get(&self, at: usize) -> Get {
        let mut get = self.first.clone();
        if let Some(at) = at.checked_sub(1) {
            get.row = self.message.slice(self.other_rows[at].clone());
        }
        get
    }
}

/// A read of rows in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Scan {
    /// First row; empty for the first row of the table (the last one if reversed).
    pub start_row: Bytes,
    /// Whether the scan includes `start_row`.
    pub include_start_row: bool,
    /// Last row; empty for the last row of the table (the first one if reversed).
    pub stop_row: Bytes,
    /// Whether the scan includes `stop_row`.
    pub include_stop_row: bool,
    /// Whether rows are returned in descending order.
    pub reversed: bool,
    /// Which cells of a row to return.
    pub selection: CellSelection,
    /// Maximum number of cells in one result; larger rows are split into several results. 0 for no
    /// limit.
    pub batch: u32,
    /// Whether to also return delete markers and the cells that they hide (up to `max_versions`).
    pub raw: bool,
    /// Read point to use instead of the newest, for a scanner that continues an earlier one.
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
    /// The scan that is equivalent to a Get.
    pub fn of(get: &Get) -> Scan {
        let mut selection = CellSelection::clone(&get.selection);
        // The answer contains no value, so none is read from a MOB file.
        selection.mob.raw |= get.existence_only;
        Scan {
            start_row: get.row.clone(),
            stop_row: get.row.clone(),
            include_stop_row: true,
            selection,
            ..Scan::default()
        }
    }

    /// Whether the scan reads one row: start and stop are the same row and are both included.
    pub fn is_single_row(&self) -> bool {
        !self.start_row.is_empty()
            && self.start_row == self.stop_row
            && self.include_start_row
            && self.include_stop_row
    }
}
