//! Which columns of a row are wanted and how many versions of each were met.
//!
//! Source: HBase `ScanWildcardColumnTracker` and `ExplicitColumnTracker`, whose answers are kept to the letter: what a
//! scan looks at behind the last cell of a row shows in the partial flags of its results.

use std::ops::Deref;

use bytes::Bytes;
use cell::Cell;

use crate::scanner::matcher::Match;

/// The versions met of the columns of a row. Where single columns are wanted, `Q` holds their qualifiers.
pub(crate) struct Columns<Q = Vec<Bytes>> {
    wanted: Wanted<Q>,
    limits: VersionLimits,
    // Versions met of the current column.
    count: u32,
    // Timestamp and type of the last version accepted, to tell doubles.
    last: Option<(i64, u8)>,
}

/// How many versions live.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VersionLimits {
    pub(crate) max: u32,
    pub(crate) min: u32,
    /// The oldest timestamp whose time to live is not over.
    pub(crate) oldest_unexpired: i64,
}

enum Wanted<Q> {
    // All; the qualifier of the current column, if one was met in this row.
    All { current: Vec<u8>, met: bool },
    // These, sorted; the index of the one looked for now.
    Only { qualifiers: Q, at: usize },
}

impl VersionLimits {
    #[inline]
    fn expired(&self, timestamp: i64) -> bool {
        timestamp < self.oldest_unexpired
    }
}

impl<Q: Deref<Target = [Bytes]>> Columns<Q> {
    /// All columns.
    pub(crate) fn all(limits: VersionLimits) -> Columns<Q> {
        Columns { wanted: Wanted::All { current: Vec::new(), met: false }, limits, count: 0, last: None }
    }

    /// The columns of these qualifiers, which are sorted.
    pub(crate) fn only(qualifiers: Q, limits: VersionLimits) -> Columns<Q> {
        debug_assert!(qualifiers.is_sorted());
        Columns { wanted: Wanted::Only { qualifiers, at: 0 }, limits, count: 0, last: None }
    }

    /// The qualifiers of the columns; `None` for all columns.
    pub(crate) fn qualifiers(&self) -> Option<&[Bytes]> {
        match &self.wanted {
            Wanted::All { .. } => None,
            Wanted::Only { qualifiers, .. } => Some(qualifiers),
        }
    }

    /// The qualifier of the column, where only one is wanted and one version of it.
    pub(crate) fn one_cell(&self) -> Option<&Bytes> {
        match &self.wanted {
            Wanted::Only { qualifiers, .. } if qualifiers.len() == 1 && self.limits.max == 1 => {
                qualifiers.first()
            }
            _ => None,
        }
    }

    /// A new row begins.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.last = None;
        match &mut self.wanted {
            Wanted::All { met, .. } => *met = false,
            Wanted::Only { at, .. } => *at = 0,
        }
    }

    /// Whether all columns that are wanted were met in this row.
    #[inline]
    pub(crate) fn done(&self) -> bool {
        self.wanted_now() == Some(None)
    }

    /// With single columns wanted: the one looked for now, `Some(None)` behind the last.
    #[inline]
    fn wanted_now(&self) -> Option<Option<&Bytes>> {
        match &self.wanted {
            Wanted::All { .. } => None,
            Wanted::Only { qualifiers, at } => Some(qualifiers.get(*at)),
        }
    }

    /// The qualifier to go to when the current column is done with; `None` for whichever comes next.
    #[inline]
    pub(crate) fn hint(&self) -> Option<&[u8]> {
        self.wanted_now().flatten().map(|qualifier| &qualifier[..])
    }

    /// Whether no cell of this timestamp or older lives, however few versions there are.
    #[inline]
    pub(crate) fn too_old(&self, timestamp: i64) -> bool {
        self.limits.min == 0 && self.limits.expired(timestamp)
    }

    /// The rest of the cell's column does not matter: what comes next.
    pub(crate) fn pass_column(&mut self, cell: &Cell<'_>) -> Match {
        if let Wanted::Only { qualifiers, at } = &mut self.wanted {
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
        let Wanted::Only { qualifiers, at } = &mut self.wanted else {
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

    /// Counts a version of a column that is wanted. Uncounted ones are too new to count: they are kept in any case.
    #[inline]
    pub(crate) fn check_version(&mut self, cell: &Cell<'_>, uncounted: bool) -> Match {
        match &mut self.wanted {
            Wanted::All { current, met } => {
                if !*met || current != cell.qualifier() {
                    current.clear();
                    current.extend_from_slice(cell.qualifier());
                    *met = true;
                    self.count = 0;
                    self.last = None;
                }
                if uncounted { Match::Include } else { self.count_any(cell) }
            }
            Wanted::Only { .. } if uncounted => Match::Include,
            Wanted::Only { .. } => self.count_wanted(cell),
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
        let Wanted::Only { qualifiers, at } = &mut self.wanted else {
            unreachable!("called for single columns only");
        };
        *at += 1;
        self.count = 0;
        self.last = None;
        if *at == qualifiers.len() { Match::IncludeAndNextRow } else { Match::IncludeAndNextColumn }
    }
}

/// Whether a type code is a marker's.
#[inline]
pub(crate) fn is_delete(type_code: u8) -> bool {
    (8..=14).contains(&type_code)
}
