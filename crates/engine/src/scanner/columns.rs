//! Which columns of a row are wanted, and how many versions of each were found.
//!
//! Source: HBase `ScanWildcardColumnTracker` and `ExplicitColumnTracker`. All verdicts are exactly
//! theirs: how far a scan reads after the last cell of a row is visible in the partial flags of its
//! results.

use std::ops::Deref;

use bytes::Bytes;
use cell::Cell;

use crate::scanner::matcher::Match;

/// Counts the versions of a row's columns. If single columns are wanted, `Q` holds their
/// qualifiers.
pub(crate) struct ColumnTracker<Q = Vec<Bytes>> {
    wanted: WantedColumns<Q>,
    limits: VersionLimits,
    // Versions of the current column so far.
    count: u32,
    // Timestamp and type of the last accepted version, to detect duplicates.
    last: Option<(i64, u8)>,
}

/// How many versions of a column are alive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VersionLimits {
    pub(crate) max: u32,
    pub(crate) min: u32,
    /// The oldest timestamp that has not expired.
    pub(crate) oldest_unexpired: i64,
}

enum WantedColumns<Q> {
    // All columns. The qualifier of the current column, and whether this row has had a column.
    All { current: Vec<u8>, has_column: bool },
    // These columns, sorted, and the index of the current one.
    Only { qualifiers: Q, at: usize },
}

impl VersionLimits {
    #[inline]
    fn expired(&self, timestamp: i64) -> bool {
        timestamp < self.oldest_unexpired
    }
}

impl<Q: Deref<Target = [Bytes]>> ColumnTracker<Q> {
    /// Tracks all columns.
    pub(crate) fn all(limits: VersionLimits) -> ColumnTracker<Q> {
        ColumnTracker {
            wanted: WantedColumns::All { current: Vec::new(), has_column: false },
            limits,
            count: 0,
            last: None,
        }
    }

    /// Tracks the columns of these qualifiers, which must be sorted.
    pub(crate) fn only(qualifiers: Q, limits: VersionLimits) -> ColumnTracker<Q> {
        debug_assert!(qualifiers.is_sorted());
        ColumnTracker { wanted: WantedColumns::Only { qualifiers, at: 0 }, limits, count: 0, last: None }
    }

    /// The qualifiers of the columns; `None` for all columns.
    pub(crate) fn qualifiers(&self) -> Option<&[Bytes]> {
        match &self.wanted {
            WantedColumns::All { .. } => None,
            WantedColumns::Only { qualifiers, .. } => Some(qualifiers),
        }
    }

    /// The qualifier, if only one version of only one column is wanted.
    pub(crate) fn one_cell(&self) -> Option<&Bytes> {
        match &self.wanted {
            WantedColumns::Only { qualifiers, .. } if qualifiers.len() == 1 && self.limits.max == 1 => {
                qualifiers.first()
            }
            _ => None,
        }
    }

    /// Begins a row.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.last = None;
        match &mut self.wanted {
            WantedColumns::All { has_column, .. } => *has_column = false,
            WantedColumns::Only { at, .. } => *at = 0,
        }
    }

    /// Whether all wanted columns of this row are finished.
    #[inline]
    pub(crate) fn done(&self) -> bool {
        self.current_wanted() == Some(None)
    }

    /// If single columns are wanted: the current one, or `Some(None)` after the last.
    #[inline]
    fn current_wanted(&self) -> Option<Option<&Bytes>> {
        match &self.wanted {
            WantedColumns::All { .. } => None,
            WantedColumns::Only { qualifiers, at } => Some(qualifiers.get(*at)),
        }
    }

    /// The qualifier to go to when the current column is finished; `None` for the next one.
    #[inline]
    pub(crate) fn hint(&self) -> Option<&[u8]> {
        self.current_wanted().flatten().map(|qualifier| &qualifier[..])
    }

    /// Whether no cell of this timestamp or older is alive, however few versions there are.
    #[inline]
    pub(crate) fn too_old(&self, timestamp: i64) -> bool {
        self.limits.min == 0 && self.limits.expired(timestamp)
    }

    /// Skips the rest of the cell's column. Returns what follows.
    pub(crate) fn pass_column(&mut self, cell: &Cell<'_>) -> Match {
        if let WantedColumns::Only { qualifiers, at } = &mut self.wanted {
            let passed =
                qualifiers[*at..].iter().take_while(|wanted| wanted[..] <= *cell.qualifier()).count();
            *at += passed;
            self.count = if passed > 0 { 0 } else { self.count };
            self.last = None;
        }
        if self.done() { Match::NextRow } else { Match::NextColumn }
    }

    /// Whether the cell's column is wanted: `Include`, or where to go instead.
    #[inline]
    pub(crate) fn check_column(&mut self, cell: &Cell<'_>) -> Match {
        let WantedColumns::Only { qualifiers, at } = &mut self.wanted else {
            return Match::Include;
        };
        let qualifier = cell.qualifier();
        while let Some(wanted) = qualifiers.get(*at) {
            match qualifier.cmp(wanted) {
                std::cmp::Ordering::Equal => return Match::Include,
                std::cmp::Ordering::Less => {
                    self.last = None;
                    return Match::NextColumn;
                }
                std::cmp::Ordering::Greater => {
                    self.last = None;
                    self.count = 0;
                    *at += 1;
                }
            }
        }
        Match::NextRow
    }

    /// Counts a version of a wanted column. `uncounted` versions are too new to count, and are
    /// always included.
    #[inline]
    pub(crate) fn check_version(&mut self, cell: &Cell<'_>, uncounted: bool) -> Match {
        match &mut self.wanted {
            WantedColumns::All { current, has_column } => {
                if !*has_column || current != cell.qualifier() {
                    current.clear();
                    current.extend_from_slice(cell.qualifier());
                    *has_column = true;
                    self.count = 0;
                    self.last = None;
                }
                if uncounted { Match::Include } else { self.count_any(cell) }
            }
            WantedColumns::Only { .. } if uncounted => Match::Include,
            WantedColumns::Only { .. } => self.count_wanted(cell),
        }
    }

    #[inline]
    fn count_any(&mut self, cell: &Cell<'_>) -> Match {
        let (timestamp, type_code) = (cell.timestamp(), cell.type_code());
        if self.last == Some((timestamp, type_code)) {
            return Match::Skip;
        }
        self.count += u32::from(!is_delete(type_code));
        if self.count > self.limits.max {
            return Match::NextColumn;
        }
        if self.count > self.limits.min && self.limits.expired(timestamp) {
            return Match::NextColumn;
        }
        self.last = Some((timestamp, type_code));
        Match::Include
    }

    #[inline]
    fn count_wanted(&mut self, cell: &Cell<'_>) -> Match {
        let (timestamp, type_code) = (cell.timestamp(), cell.type_code());
        if self.last.is_some_and(|(last, _)| last == timestamp) {
            return Match::Skip;
        }
        self.count += 1;
        let enough = self.count >= self.limits.max
            || (self.count >= self.limits.min && self.limits.expired(timestamp));
        if !enough {
            self.last = Some((timestamp, type_code));
            return Match::Include;
        }
        let WantedColumns::Only { qualifiers, at } = &mut self.wanted else {
            unreachable!("called for single columns only");
        };
        debug_assert!(*at < qualifiers.len(), "versions are counted of wanted columns only");
        *at += 1;
        self.count = 0;
        self.last = None;
        if *at == qualifiers.len() { Match::IncludeAndNextRow } else { Match::IncludeAndNextColumn }
    }
}

/// Whether a type code is that of a delete marker.
#[inline]
pub(crate) fn is_delete(type_code: u8) -> bool {
    (8..=14).contains(&type_code)
}
