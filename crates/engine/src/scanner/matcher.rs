//! HBase's retention rules: what becomes of each cell of a store, in key order.
//!
//! One matcher for three readers: user scans, raw scans, and compactions with flushes. All agree on the first checks
//! (time to live, of the family and of the cell) and differ in what they do with delete markers. Sequence ids do not
//! matter to deletes: a put written after a marker with a timestamp not above the marker's stays hidden, until the
//! marker is compacted away. Families with `NEW_VERSION_BEHAVIOR` are judged in the order of writing instead
//! ([`write_order`](crate::scanner::write_order)).
//!
//! Source: HBase `ScanQueryMatcher` and what derives from it.

use std::ops::Deref;

use bytes::Bytes;
use cell::query::TimeRange;
use cell::schema::KeepDeletedCells;
use cell::{Cell, tags};

use crate::scanner::columns::{Columns, VersionLimits, is_delete};
use crate::scanner::deletes::{Deletes, Fate};
use crate::scanner::rules::FamilyRules;
use crate::scanner::write_order::WriteOrder;

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

/// Judges the cells of one store, row by row. Where single columns are wanted, `Q` holds their qualifiers.
pub(crate) struct Matcher<Q = Vec<Bytes>> {
    mode: Mode,
    columns: Columns<Q>,
    deletes: Deletes,
    // Takes the place of both where the order of writing counts.
    write_order: Option<Box<WriteOrder>>,
    oldest_unexpired: i64,
    // How long a major compaction leaves markers in place.
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
    /// For a raw scan: markers and what they hide.
    pub(crate) fn raw(rules: &FamilyRules, range: TimeRange, versions: Versions, now_ms: i64) -> Matcher {
        // HBase's raw scans know no family's time to live: all from the epoch on lives.
        let max = versions.looked_at(u32::MAX);
        let limits = VersionLimits { max, min: rules.min_versions, oldest_unexpired: 0 };
        Matcher {
            mode: Mode::Raw { range },
            columns: Columns::all(limits),
            deletes: Deletes::default(),
            write_order: None,
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
        let write_order =
            rules.new_version_behavior.then(|| Box::new(WriteOrder::new(None, limits, rules.max_versions)));
        let purge = Purge { keep_deleted: rules.keep_deleted, smallest_read_point, major };
        Matcher {
            purge_after_ms: rules.purge_deletes_after_ms,
            mode: Mode::Compaction(purge),
            columns: Columns::all(limits),
            deletes: Deletes::default(),
            write_order,
            oldest_unexpired,
            now_ms,
        }
    }
}

impl<Q: Deref<Target = [Bytes]>> Matcher<Q> {
    /// For a user's scan or get of `columns` (all or single ones).
    pub(crate) fn user(
        rules: &FamilyRules,
        qualifiers: Option<Q>,
        range: TimeRange,
        versions: Versions,
        now_ms: i64,
    ) -> Matcher<Q> {
        let oldest_unexpired = rules.oldest_unexpired(now_ms);
        let limits = VersionLimits {
            max: versions.looked_at(rules.max_versions),
            min: rules.min_versions,
            oldest_unexpired,
        };
        let write_order = rules.new_version_behavior.then(|| {
            let kept = VersionLimits { max: rules.max_versions, ..limits };
            let returned = versions.returned(rules.max_versions);
            Box::new(WriteOrder::new(qualifiers.as_deref().map(<[_]>::to_vec), kept, returned))
        });
        let columns = match qualifiers {
            Some(qualifiers) => Columns::only(qualifiers, limits),
            None => Columns::all(limits),
        };
        let keep_deleted = rules.keep_deleted != KeepDeletedCells::False;
        Matcher {
            mode: Mode::User { range, keep_deleted },
            columns,
            deletes: Deletes::default(),
            write_order,
            oldest_unexpired,
            purge_after_ms: 0,
            now_ms,
        }
    }

    /// The qualifiers of the columns that are wanted; `None` if all are.
    pub(crate) fn qualifiers(&self) -> Option<&[Bytes]> {
        self.columns.qualifiers()
    }

    /// The qualifier of the one column that is wanted, of which the first version that lives is all that is looked at.
    pub(crate) fn one_cell(&self) -> Option<&Bytes> {
        self.columns.one_cell().filter(|_| self.write_order.is_none())
    }

    /// A new row begins.
    pub(crate) fn begin_row(&mut self) {
        self.deletes.clear();
        self.columns.clear();
        if let Some(order) = &mut self.write_order {
            order.clear();
        }
    }

    /// The rest of the cell's column does not matter, whatever its versions are: what comes next.
    pub(crate) fn pass_column(&mut self, cell: &Cell<'_>) -> Match {
        if self.write_order.is_some() { Match::NextColumn } else { self.columns.pass_column(cell) }
    }

    /// The qualifier to go to when the current column is done with; `None` for whichever comes next.
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
        if self.own_ttl_over(cell) {
            return Match::Skip;
        }
        match self.mode {
            Mode::User { range, keep_deleted } => self.check_for_user(cell, range, keep_deleted),
            Mode::Raw { range } => self.check_wanted(cell, range),
            Mode::Compaction(purge) => self.check_for_compaction(cell, &purge),
        }
    }

    /// A cell that no client can decode hides nothing and counts as no version. Files retain it.
    #[cold]
    fn pass_unreadable(&self) -> Match {
        match self.mode {
            Mode::Compaction(_) => Match::Include,
            Mode::User { .. } | Mode::Raw { .. } => Match::Skip,
        }
    }

    #[inline]
    fn own_ttl_over(&self, cell: &Cell<'_>) -> bool {
        !cell.tags.is_empty()
            && tags::ttl_ms(cell.tags).is_some_and(|ttl| cell.timestamp().saturating_add(ttl) < self.now_ms)
    }

    /// The same where the order of writing counts. Nothing is passed over before it was judged: an older version may
    /// have been written later.
    fn check_in_write_order(&mut self, cell: &Cell<'_>) -> Match {
        let purge = match self.mode {
            // A flush or a compaction of some files cannot know what was written before and after.
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
        if self.own_ttl_over(cell) {
            return Match::Skip;
        }
        if is_delete(cell.type_code()) {
            return self.note_in_write_order(cell, purge);
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

    fn note_in_write_order(&mut self, marker: &Cell<'_>, purge: Option<Purge>) -> Match {
        let timestamp = marker.timestamp();
        let (counts, verdict) = match (self.mode, purge) {
            (Mode::User { range, keep_deleted: true }, _) => (range.contains(timestamp), Match::Skip),
            (Mode::User { range, .. }, _) => (within_or_after(range, timestamp), Match::Skip),
            (_, Some(purge)) if marker.seq_id <= purge.smallest_read_point => {
                let verdict =
                    purge.major.and_then(|major| self.check_droppable(marker, purge.keep_deleted, major));
                // Markers that stay are no versions.
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

    /// Where deleted cells are kept only versions and time to live take cells away, not markers.
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
            // All that follows in the column are markers too, of puts that are gone.
            true if timestamp < major.earliest_put && self.write_order.is_some() => Some(Match::Skip),
            true if timestamp < major.earliest_put => Some(self.columns.pass_column(marker)),
            true => None,
        }
    }
}

/// Whether `timestamp` is in the range or behind its end.
fn within_or_after(range: TimeRange, timestamp: i64) -> bool {
    range.is_all() || timestamp >= range.from
}
