//! HBase's retention rules: a verdict on each cell of a store, in key order.
//!
//! One matcher serves user scans, raw scans, and compactions with flushes. The first checks (time
//! to live of the family and of the cell) are the same for all; the treatment of delete markers
//! differs. Sequence ids do not matter to deletes: a put that is written after a marker, with a
//! timestamp not above the marker's, stays hidden until the marker is compacted away. Families with
//! `NEW_VERSION_BEHAVIOR` are judged in write order instead
//! ([`write_order`](crate::scanner::write_order)).
//!
//! Source: HBase `ScanQueryMatcher` and its subclasses.

use std::ops::Deref;

use bytes::Bytes;
use cell::query::TimeRange;
use cell::schema::KeepDeletedCells;
use cell::{Cell, tags};

use crate::scanner::columns::{ColumnTracker, VersionLimits, is_delete};
use crate::scanner::deletes::{DeleteTracker, Fate};
use crate::scanner::rules::FamilyRules;
use crate::scanner::write_order::WriteOrder;

/// What to do with a cell, and where to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// Include the cell.
    Include,
    /// Include it, and skip the rest of its column (to [`Matcher::hint`]).
    IncludeAndNextColumn,
    /// Include it, and skip the rest of its row.
    IncludeAndNextRow,
    /// Skip the cell.
    Skip,
    /// Skip it and the rest of its column (to [`Matcher::hint`]).
    NextColumn,
    /// Skip it and the rest of its row.
    NextRow,
}

impl Match {
    /// Whether the cell is included.
    #[inline]
    pub(crate) fn includes(self) -> bool {
        matches!(self, Match::Include | Match::IncludeAndNextColumn | Match::IncludeAndNextRow)
    }

    /// The verdict with the same move that skips the cell.
    #[inline]
    pub(crate) fn skipped(self) -> Match {
        match self {
            Match::IncludeAndNextColumn => Match::NextColumn,
            Match::IncludeAndNextRow => Match::NextRow,
            Match::Include => Match::Skip,
            skipped => skipped,
        }
    }
}

/// How many versions of a column a read wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Versions {
    /// Maximum number of versions.
    pub(crate) wanted: u32,
    /// Whether a filter chooses among all versions that the family retains.
    pub(crate) filtered: bool,
}

impl Versions {
    /// Number of versions that are read, of a family that retains this many.
    fn read(self, retained: u32) -> u32 {
        if self.filtered { retained } else { self.returned(retained) }
    }

    /// Number of versions that are returned, of a family that retains this many.
    pub(crate) fn returned(self, retained: u32) -> u32 {
        self.wanted.min(retained)
    }
}

/// Judges the cells of one store, row by row. If single columns are wanted, `Q` holds their
/// qualifiers.
pub(crate) struct Matcher<Q = Vec<Bytes>> {
    mode: Mode,
    columns: ColumnTracker<Q>,
    deletes: DeleteTracker,
    // Replaces `columns` and `deletes` in families with `NEW_VERSION_BEHAVIOR`.
    write_order: Option<Box<WriteOrder>>,
    oldest_unexpired: i64,
    // How long a major compaction retains markers.
    purge_after_ms: i64,
    now_ms: i64,
}

#[derive(Clone, Copy)]
enum Mode {
    User { range: TimeRange, keep_deleted: bool },
    Raw { range: TimeRange },
    Compaction(Purge),
}

/// What a compaction or flush may drop.
#[derive(Clone, Copy, Debug)]
struct Purge {
    keep_deleted: KeepDeletedCells,
    // The oldest read point of open scanners. A newer cell is retained and hides nothing yet.
    smallest_read_point: u64,
    // Set if all files of the store are read, so that markers are dropped too.
    major: Option<Major>,
}

/// Input of a compaction of all files for dropping delete markers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Major {
    /// No put in the files is older than this.
    pub(crate) earliest_put: i64,
}

impl Matcher {
    /// A matcher for raw scans, which return markers and the cells that they hide.
    pub(crate) fn raw(rules: &FamilyRules, range: TimeRange, versions: Versions, now_ms: i64) -> Matcher {
        // HBase's raw scans ignore the family's time to live: all cells since the epoch are alive.
        let max = versions.read(u32::MAX);
        let limits = VersionLimits { max, min: rules.min_versions, oldest_unexpired: 0 };
        Matcher {
            mode: Mode::Raw { range },
            columns: ColumnTracker::all(limits),
            deletes: DeleteTracker::default(),
            write_order: None,
            oldest_unexpired: 0,
            purge_after_ms: 0,
            now_ms,
        }
    }

    /// A matcher for a flush or compaction.
    pub(crate) fn compaction(
        rules: &FamilyRules,
        smallest_read_point: u64,
        major: Option<Major>,
        now_ms: i64,
    ) -> Matcher {
        let oldest_unexpired = rules.oldest_unexpired(now_ms);
        let limits = VersionLimits { max: rules.max_versions, min: rules.min_versions, oldest_unexpired };
        let write_order =
            rules.new_version_behavior.then(|| Box::new(WriteOrder::new(None, limits, rules.max_versions)));
        let purge = Purge { keep_deleted: rules.keep_deleted, smallest_read_point, major };
        Matcher {
            purge_after_ms: rules.purge_deletes_after_ms,
            mode: Mode::Compaction(purge),
            columns: ColumnTracker::all(limits),
            deletes: DeleteTracker::default(),
            write_order,
            oldest_unexpired,
            now_ms,
        }
    }
}

impl<Q: Deref<Target = [Bytes]>> Matcher<Q> {
    /// A matcher for a user's scan or get of the columns `qualifiers`, or of all columns.
    pub(crate) fn user(
        rules: &FamilyRules,
        qualifiers: Option<Q>,
        range: TimeRange,
        versions: Versions,
        now_ms: i64,
    ) -> Matcher<Q> {
        let oldest_unexpired = rules.oldest_unexpired(now_ms);
        let limits = VersionLimits {
            max: versions.read(rules.max_versions),
            min: rules.min_versions,
            oldest_unexpired,
        };
        let write_order = rules.new_version_behavior.then(|| {
            let kept = VersionLimits { max: rules.max_versions, ..limits };
            let returned = versions.returned(rules.max_versions);
            Box::new(WriteOrder::new(qualifiers.as_deref().map(<[_]>::to_vec), kept, returned))
        });
        let columns = match qualifiers {
            Some(qualifiers) => ColumnTracker::only(qualifiers, limits),
            None => ColumnTracker::all(limits),
        };
        let keep_deleted = rules.keep_deleted != KeepDeletedCells::False;
        Matcher {
            mode: Mode::User { range, keep_deleted },
            columns,
            deletes: DeleteTracker::default(),
            write_order,
            oldest_unexpired,
            purge_after_ms: 0,
            now_ms,
        }
    }

    /// The qualifiers of the wanted columns; `None` if all columns are wanted.
    pub(crate) fn qualifiers(&self) -> Option<&[Bytes]> {
        self.columns.qualifiers()
    }

    /// The qualifier of the only wanted column, if only its newest live version is wanted.
    pub(crate) fn one_cell(&self) -> Option<&Bytes> {
        self.columns.one_cell().filter(|_| self.write_order.is_none())
    }

    /// Begins a row.
    pub(crate) fn begin_row(&mut self) {
        self.deletes.clear();
        self.columns.clear();
        if let Some(order) = &mut self.write_order {
            order.clear();
        }
    }

    /// Skips the rest of the cell's column, whatever versions it has. Returns what follows.
    pub(crate) fn pass_column(&mut self, cell: &Cell<'_>) -> Match {
        if self.write_order.is_some() { Match::NextColumn } else { self.columns.pass_column(cell) }
    }

    /// The qualifier to go to when the current column is finished; `None` for the next one.
    pub(crate) fn hint(&self) -> Option<&[u8]> {
        match &self.write_order {
            Some(order) => order.hint(),
            None => self.columns.hint(),
        }
    }

    /// Judges the next cell of the row.
    #[inline]
    pub(crate) fn check(&mut self, cell: &Cell<'_>) -> Match {
        if self.write_order.is_some() {
            return self.check_in_write_order(cell);
        }
        if self.columns.done() {
            return Match::NextRow;
        }
        let timestamp = cell.timestamp();
        if !cell.is_readable() {
            return self.pass_unreadable();
        }
        if self.columns.too_old(timestamp) {
            return self.columns.pass_column(cell);
        }
        if self.is_own_ttl_expired(cell) {
            return Match::Skip;
        }
        match self.mode {
            Mode::User { range, keep_deleted } => self.check_for_user(cell, range, keep_deleted),
            Mode::Raw { range } => self.check_wanted(cell, range),
            Mode::Compaction(purge) => self.check_for_compaction(cell, &purge),
        }
    }

    /// Judges a cell that no client can decode. It hides nothing and is no version, but files
    /// retain it.
    #[cold]
    fn pass_unreadable(&self) -> Match {
        match self.mode {
            Mode::Compaction(_) => Match::Include,
            Mode::User { .. } | Mode::Raw { .. } => Match::Skip,
        }
    }

    #[inline]
    fn is_own_ttl_expired(&self, cell: &Cell<'_>) -> bool {
        !cell.tags.is_empty()
            && tags::ttl_ms(cell.tags).is_some_and(|ttl| cell.timestamp().saturating_add(ttl) < self.now_ms)
    }

    /// The same for families with `NEW_VERSION_BEHAVIOR`. No cell is skipped before it is judged,
    /// because an older version may have been written later.
    fn check_in_write_order(&mut self, cell: &Cell<'_>) -> Match {
        let purge = match self.mode {
            // A flush or a compaction of some files does not know what was written before and
            // after.
            Mode::Compaction(Purge { major: None, .. }) => return Match::Include,
            Mode::Compaction(purge) => Some(purge),
            Mode::User { .. } | Mode::Raw { .. } => None,
        };
        if self.write_order.as_ref().is_some_and(|order| order.done()) {
            return Match::NextRow;
        }
        if !cell.is_readable() {
            return self.pass_unreadable();
        }
        if self.is_own_ttl_expired(cell) {
            return Match::Skip;
        }
        if is_delete(cell.type_code()) {
            return self.check_marker_in_write_order(cell, purge);
        }
        let too_new = purge.is_some_and(|purge| cell.seq_id > purge.smallest_read_point);
        let Some(order) = self.write_order.as_mut().filter(|_| !too_new) else {
            return Match::Include;
        };
        if !order.lives(cell) {
            return Match::Skip;
        }
        if let Mode::User { range, .. } = self.mode {
            if !range.contains(cell.timestamp()) {
                return if cell.timestamp() < range.from { Match::NextColumn } else { Match::Skip };
            }
            match order.check_column(cell) {
                Match::Include => {}
                elsewhere => return elsewhere,
            }
        }
        order.check_version(cell)
    }

    fn check_marker_in_write_order(&mut self, marker: &Cell<'_>, purge: Option<Purge>) -> Match {
        let timestamp = marker.timestamp();
        let (counts, verdict) = match (self.mode, purge) {
            (Mode::User { range, keep_deleted: true }, _) => (range.contains(timestamp), Match::Skip),
            (Mode::User { range, .. }, _) => (within_or_after(range, timestamp), Match::Skip),
            (_, Some(purge)) if marker.seq_id <= purge.smallest_read_point => {
                let verdict =
                    purge.major.and_then(|major| self.check_droppable(marker, purge.keep_deleted, major));
                // Retained markers are not versions.
                (self.is_tracked(marker, &purge), verdict.unwrap_or(Match::Include))
            }
            _ => (false, Match::Include),
        };
        if let Some(order) = self.write_order.as_mut().filter(|_| counts) {
            order.add(marker);
        }
        verdict
    }

    #[inline]
    fn check_for_user(&mut self, cell: &Cell<'_>, range: TimeRange, keep_deleted: bool) -> Match {
        if is_delete(cell.type_code()) {
            let timestamp = cell.timestamp();
            // If deleted cells are retained, a scan of a past time range ignores later markers.
            let counts =
                if keep_deleted { range.contains(timestamp) } else { within_or_after(range, timestamp) };
            if counts {
                self.deletes.add(cell);
            }
            return Match::Skip;
        }
        match self.check_deleted(cell) {
            Some(hidden) => hidden,
            None => self.check_wanted(cell, range),
        }
    }

    #[inline]
    fn check_deleted(&mut self, put: &Cell<'_>) -> Option<Match> {
        if self.deletes.is_empty() {
            return None;
        }
        match self.deletes.fate(put) {
            Fate::Lives => None,
            Fate::ColumnHidden => Some(self.columns.pass_column(put)),
            Fate::VersionHidden => Some(Match::Skip),
        }
    }

    #[inline]
    fn check_wanted(&mut self, cell: &Cell<'_>, range: TimeRange) -> Match {
        if !range.contains(cell.timestamp()) {
            return if cell.timestamp() < range.from { self.columns.pass_column(cell) } else { Match::Skip };
        }
        match self.columns.check_column(cell) {
            Match::Include => self.columns.check_version(cell, false),
            elsewhere => elsewhere,
        }
    }

    fn check_for_compaction(&mut self, cell: &Cell<'_>, purge: &Purge) -> Match {
        let too_new = cell.seq_id > purge.smallest_read_point;
        if is_delete(cell.type_code()) {
            if too_new {
                return Match::Include;
            }
            if self.is_tracked(cell, purge) {
                self.deletes.add(cell);
            }
            let Some(major) = purge.major else {
                return Match::Include;
            };
            if let Some(verdict) = self.check_droppable(cell, purge.keep_deleted, major) {
                return verdict;
            }
        } else if let Some(hidden) = self.check_deleted(cell) {
            return hidden;
        }
        self.columns.check_version(cell, too_new)
    }

    /// Whether a compaction lets the marker hide cells. If deleted cells are retained, only the
    /// limit of versions and the time to live drop cells.
    fn is_tracked(&self, marker: &Cell<'_>, purge: &Purge) -> bool {
        match purge.keep_deleted {
            KeepDeletedCells::False => true,
            KeepDeletedCells::Ttl => marker.timestamp() < self.oldest_unexpired,
            KeepDeletedCells::True => false,
        }
    }

    /// Whether a major compaction drops a marker; `None` if its versions decide.
    fn check_droppable(&mut self, marker: &Cell<'_>, keep: KeepDeletedCells, major: Major) -> Option<Match> {
        let timestamp = marker.timestamp();
        if self.purge_after_ms > 0 && self.now_ms.saturating_sub(timestamp) <= self.purge_after_ms {
            return Some(Match::Include);
        }
        let kept = match keep {
            KeepDeletedCells::False => false,
            KeepDeletedCells::True => true,
            KeepDeletedCells::Ttl => timestamp >= self.oldest_unexpired,
        };
        match kept {
            false => Some(Match::Skip),
            // All that follows in the column are markers too, of puts that no longer exist.
            true if timestamp < major.earliest_put && self.write_order.is_some() => Some(Match::Skip),
            true if timestamp < major.earliest_put => Some(self.columns.pass_column(marker)),
            true => None,
        }
    }
}

/// Whether `timestamp` is in the range or after its end.
fn within_or_after(range: TimeRange, timestamp: i64) -> bool {
    range.is_all() || timestamp >= range.from
}
