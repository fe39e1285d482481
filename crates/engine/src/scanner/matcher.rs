//! HBase's retention rules: what becomes of each cell of a store, in key order.
//!
//! One matcher for three readers: user scans, raw scans, and compactions with flushes. All agree on the first checks
//! (time to live, of the family and of the cell) and differ in what they do with delete markers. Sequence ids do not
//! matter to deletes: a put written after a marker with a timestamp not above the marker's stays hidden, until the
//! marker is compacted away.
//!
//! Source: HBase `ScanQueryMatcher` and what derives from it.

use cell::query::TimeRange;
use cell::schema::KeepDeletedCells;
use cell::{Cell, LATEST_TIMESTAMP, OLDEST_TIMESTAMP, tags};

use crate::scanner::columns::{Columns, VersionLimits, is_delete};
use crate::scanner::deletes::{Deletes, Fate};
use crate::scanner::rules::FamilyRules;

/// What to do with a cell, and where to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// Take it.
    Include,
    /// Take it, and pass over the rest of its column (to [`Matcher::hint`]).
    IncludeAndNextColumn,
    /// Take it, and pass over the rest of its row.
    IncludeAndNextRow,
    /// Pass over it.
    Skip,
    /// Pass over it and the rest of its column (to [`Matcher::hint`]).
    NextColumn,
    /// Pass over it and the rest of its row.
    NextRow,
}

impl Match {
    /// Whether the cell is taken.
    #[inline]
    pub(crate) fn includes(self) -> bool {
        matches!(self, Match::Include | Match::IncludeAndNextColumn | Match::IncludeAndNextRow)
    }
}

/// How many versions of a column a read is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Versions {
    /// Wanted at most.
    pub(crate) wanted: u32,
    /// Whether a filter chooses among all that the family keeps.
    pub(crate) filtered: bool,
}

impl Versions {
    /// How many are looked at of a family that keeps `kept`.
    fn looked_at(self, kept: u32) -> u32 {
        if self.filtered { kept } else { self.returned(kept) }
    }

    /// How many are returned of a family that keeps `kept`.
    pub(crate) fn returned(self, kept: u32) -> u32 {
        self.wanted.min(kept)
    }
}

/// Judges the cells of one store, row by row.
pub(crate) struct Matcher {
    mode: Mode,
    columns: Columns,
    deletes: Deletes,
    oldest_unexpired: i64,
    // How long a major compaction leaves markers in place.
    purge_after_ms: i64,
    now_ms: i64,
}

enum Mode {
    User { range: TimeRange, keep_deleted: bool },
    Raw { range: TimeRange },
    Compaction(Purge),
}

/// What a compaction or flush may drop.
#[derive(Clone, Copy, Debug)]
struct Purge {
    keep_deleted: KeepDeletedCells,
    // Open scanners may be as old as this: what is newer is kept and hides nothing yet.
    smallest_read_point: u64,
    // Markers go too, as all files of the store are read.
    major: Option<Major>,
}

/// What a compaction of all files needs to know to drop delete markers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Major {
    /// No put in the files is older.
    pub(crate) earliest_put: i64,
}

impl Matcher {
    /// For a user's scan or get of `columns` (all or single ones).
    pub(crate) fn user(
        rules: &FamilyRules,
        qualifiers: Option<&[bytes::Bytes]>,
        range: TimeRange,
        versions: Versions,
        now_ms: i64,
    ) -> Matcher {
        let oldest_unexpired = rules.oldest_unexpired(now_ms);
        let limits = VersionLimits {
            max: versions.looked_at(rules.max_versions),
            min: rules.min_versions,
            oldest_unexpired,
        };
        let columns = match qualifiers {
            Some(qualifiers) => Columns::only(qualifiers.to_vec(), limits),
            None => Columns::all(limits),
        };
        let keep_deleted = rules.keep_deleted != KeepDeletedCells::False;
        Matcher {
            mode: Mode::User { range, keep_deleted },
            columns,
            deletes: Deletes::default(),
            oldest_unexpired,
            purge_after_ms: 0,
            now_ms,
        }
    }

    /// For a raw scan: markers and what they hide.
    pub(crate) fn raw(rules: &FamilyRules, range: TimeRange, versions: Versions, now_ms: i64) -> Matcher {
        // HBase's raw scans know no family's time to live: all from the epoch on lives.
        let max = versions.looked_at(u32::MAX);
        let limits = VersionLimits { max, min: rules.min_versions, oldest_unexpired: 0 };
        Matcher {
            mode: Mode::Raw { range },
            columns: Columns::all(limits),
            deletes: Deletes::default(),
            oldest_unexpired: 0,
            purge_after_ms: 0,
            now_ms,
        }
    }

    /// For a flush or compaction.
    pub(crate) fn compaction(
        rules: &FamilyRules,
        smallest_read_point: u64,
        major: Option<Major>,
        now_ms: i64,
    ) -> Matcher {
        let oldest_unexpired = rules.oldest_unexpired(now_ms);
        let limits = VersionLimits { max: rules.max_versions, min: rules.min_versions, oldest_unexpired };
        let purge = Purge { keep_deleted: rules.keep_deleted, smallest_read_point, major };
        Matcher {
            purge_after_ms: rules.purge_deletes_after_ms,
            mode: Mode::Compaction(purge),
            columns: Columns::all(limits),
            deletes: Deletes::default(),
            oldest_unexpired,
            now_ms,
        }
    }

    /// A new row begins.
    pub(crate) fn begin_row(&mut self) {
        self.deletes.clear();
        self.columns.clear();
    }

    /// The rest of the cell's column does not matter, whatever its versions are: what comes next.
    pub(crate) fn pass_column(&mut self, cell: &Cell<'_>) -> Match {
        self.columns.pass_column(cell)
    }

    /// The qualifier to go to when the current column is done with; `None` for whichever comes next.
    pub(crate) fn hint(&self) -> Option<&[u8]> {
        self.columns.hint()
    }

    /// Judges the next cell of the row.
    pub(crate) fn check(&mut self, cell: &Cell<'_>) -> Match {
        if self.columns.done() {
            return Match::NextRow;
        }
        let timestamp = cell.timestamp();
        if timestamp == OLDEST_TIMESTAMP || timestamp == LATEST_TIMESTAMP {
            // Timestamps of seek keys; no stored cell counts with them.
            return Match::NextColumn;
        }
        if self.columns.too_old(timestamp) {
            return self.columns.pass_column(cell);
        }
        if !cell.tags.is_empty()
            && tags::ttl_ms(cell.tags).is_some_and(|ttl| timestamp.saturating_add(ttl) < self.now_ms)
        {
            return Match::Skip;
        }
        match self.mode {
            Mode::User { range, keep_deleted } => self.check_for_user(cell, range, keep_deleted),
            Mode::Raw { range } => self.check_wanted(cell, range),
            Mode::Compaction(purge) => self.check_for_compaction(cell, &purge),
        }
    }

    fn check_for_user(&mut self, cell: &Cell<'_>, range: TimeRange, keep_deleted: bool) -> Match {
        if is_delete(cell.type_code()) {
            let timestamp = cell.timestamp();
            // With deleted cells kept a scan of the past looks past markers of its future.
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
            self.track_for_compaction(cell, purge);
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

    /// Where deleted cells are kept only versions and time to live take cells away, not markers.
    fn track_for_compaction(&mut self, marker: &Cell<'_>, purge: &Purge) {
        let tracked = match purge.keep_deleted {
            KeepDeletedCells::False => true,
            KeepDeletedCells::Ttl => marker.timestamp() < self.oldest_unexpired,
            KeepDeletedCells::True => false,
        };
        if tracked {
            self.deletes.add(marker);
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
            // All that follows in the column are markers too, of puts that are gone.
            true if timestamp < major.earliest_put => Some(self.columns.pass_column(marker)),
            true => None,
        }
    }
}

/// Whether `timestamp` is in the range or behind its end.
fn within_or_after(range: TimeRange, timestamp: i64) -> bool {
    range.is_all() || timestamp >= range.from
}
