//! The required content of a table: for each row the last acknowledged write, and the writes that
//! were sent but not acknowledged.
//!
//! A row has one writer, which sends one write at a time. So after a kill the row must have the
//! content that was acknowledged last, or that of a later write without a response. Content that a
//! reader saw after a kill counts as acknowledged: it must not disappear either.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;

use crate::cells::RowContent;

/// The content of a row: a version, or nothing.
pub type Content = Option<u64>;

/// The rows of a table, as their writers know them.
#[derive(Default)]
pub struct Ledger {
    rows: BTreeMap<Bytes, Entry>,
    last_version: u64,
}

/// The acknowledged content of a row at some moment.
#[derive(Clone, Copy, Debug)]
pub struct Floor {
    /// The last acknowledged content.
    pub acknowledged: Content,
    is_deleted_at_times: bool,
}

impl Floor {
    /// Whether the row must exist from then on.
    pub fn must_exist(&self) -> bool {
        self.acknowledged.is_some() && !self.is_deleted_at_times
    }

    /// Extends the moment to an interval at whose end `later` applies: a delete may have been sent
    /// in it.
    pub fn extended_to(self, later: Option<&Floor>) -> Floor {
        let is_deleted = later.is_none_or(|later| later.is_deleted_at_times);
        Floor { is_deleted_at_times: self.is_deleted_at_times || is_deleted, ..self }
    }
}

#[derive(Default)]
struct Entry {
    acknowledged: Content,
    // Whether a delete was ever sent.
    is_deleted_at_times: bool,
    // In sending order.
    open: Vec<Content>,
    // The newest version sent, whatever its outcome.
    newest: u64,
}

/// A violation of a guarantee.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// An acknowledged write is missing.
    Lost { row: Bytes, acknowledged: Content, seen: Content },
    /// A row has parts of several writes, or is incomplete.
    Torn { row: Bytes, columns: String },
    /// Content that was never written.
    Invented { row: Bytes, what: String },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Lost { row, acknowledged, seen } => {
                write!(f, "lost: {} acknowledged {acknowledged:?}, seen {seen:?}", row.escape_ascii())
            }
            Violation::Torn { row, columns } => write!(f, "torn: {} has {columns}", row.escape_ascii()),
            Violation::Invented { row, what } => write!(f, "invented: {} has {what}", row.escape_ascii()),
        }
    }
}

impl Ledger {
    /// Returns a version that no write has used.
    pub fn next_version(&mut self) -> u64 {
        self.last_version += 1;
        self.last_version
    }

    /// Records that a write is about to be sent.
    pub fn record_sent(&mut self, row: &Bytes, content: Content) {
        let entry = self.rows.entry(row.clone()).or_default();
        entry.open.push(content);
        entry.is_deleted_at_times |= content.is_none();
        entry.newest = entry.newest.max(content.unwrap_or(0));
    }

    /// Records that the last write sent was acknowledged.
    pub fn record_acknowledged(&mut self, row: &Bytes) {
        let entry = self.rows.get_mut(row).expect("the write was sent");
        entry.acknowledged = entry.open.pop().expect("the write was sent");
        entry.open.clear();
    }

    /// The acknowledged content of every row.
    pub fn floor(&self) -> BTreeMap<Bytes, Floor> {
        let floor = |entry: &Entry| Floor {
            acknowledged: entry.acknowledged,
            is_deleted_at_times: entry.is_deleted_at_times,
        };
        self.rows.iter().map(|(row, entry)| (row.clone(), floor(entry))).collect()
    }

    /// The newest version assigned.
    pub fn newest(&self) -> u64 {
        self.last_version
    }

    /// Removes all rows. Versions continue to increase.
    pub fn clear(&mut self) {
        self.rows.clear();
    }

    /// Number of rows ever written.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Every `step`-th of the rows ever written.
    pub fn sample(&self, step: usize) -> Vec<Bytes> {
        self.rows.keys().step_by(step.max(1)).cloned().collect()
    }

    /// Compares the content of the whole table with the required content.
    pub fn check(&self, seen: &BTreeMap<Bytes, RowContent>) -> Vec<Violation> {
        let unknown = seen.keys().filter(|row| !self.rows.contains_key(*row));
        let unknown = unknown
            .map(|row| Violation::Invented { row: row.clone(), what: "cells, and was never written".into() });
        let known = self.rows.iter().filter_map(|(row, entry)| entry.check(row, seen.get(row)));
        unknown.chain(known).collect()
    }

    /// Records that the content seen was correct and must stay. There are no unanswered writes any
    /// more.
    pub fn settle(&mut self, seen: &BTreeMap<Bytes, RowContent>) {
        for (row, entry) in &mut self.rows {
            entry.open.clear();
            entry.acknowledged = match seen.get(row) {
                Some(RowContent::Version(version)) => Some(*version),
                _ => None,
            };
        }
    }
}

impl Entry {
    fn check(&self, row: &Bytes, seen: Option<&RowContent>) -> Option<Violation> {
        let row = row.clone();
        let content = match seen {
            None => None,
            Some(RowContent::Version(version)) => Some(*version),
            Some(RowContent::Torn(columns)) => {
                return Some(Violation::Torn { row, columns: columns.clone() });
            }
            Some(RowContent::Foreign(what)) => return Some(Violation::Invented { row, what: what.clone() }),
        };
        if content == self.acknowledged || self.open.contains(&content) {
            return None;
        }
        if content > Some(self.newest) {
            return Some(Violation::Invented { row, what: format!("version {content:?}, not sent yet") });
        }
        Some(Violation::Lost { row, acknowledged: self.acknowledged, seen: content })
    }
}

#[cfg(test)]
mod tests {
    use cell::KeyValue;
    use client::Row;

    use super::*;
    use crate::cells::{self, Timestamps};

    /// The rows that a server would return after these puts.
    fn seen(puts: &[(&str, u64)]) -> BTreeMap<Bytes, RowContent> {
        let put = |(row, version): &(&str, u64)| {
            let row = Bytes::copy_from_slice(row.as_bytes());
            let cells = cells::put(&row, *version, Timestamps::Versions).cells;
            (row, RowContent::from_row(&Row { cells }))
        };
        puts.iter().map(put).collect()
    }

    /// Steps: `row=version` a put sent, `row-` a delete sent, `row!` the row's last write
    /// acknowledged.
    fn ledger(steps: &str) -> Ledger {
        let mut ledger = Ledger::default();
        for step in steps.split_whitespace() {
            let row = |end: &str| Bytes::copy_from_slice(step.trim_end_matches(end).as_bytes());
            if let Some((row, version)) = step.split_once('=') {
                ledger.record_sent(&Bytes::copy_from_slice(row.as_bytes()), Some(version.parse().unwrap()));
            } else if step.ends_with('-') {
                ledger.record_sent(&row("-"), None);
            } else {
                ledger.record_acknowledged(&row("!"));
            }
        }
        ledger
    }

    fn check(steps: &str, puts: &[(&str, u64)], expected: &[&str]) {
        let found = ledger(steps).check(&seen(puts));
        let kinds: Vec<_> = found.iter().map(|violation| violation.to_string()).collect();
        let kinds: Vec<_> = kinds.iter().map(|text| text.split(" acknowledged").next().unwrap()).collect();
        assert_eq!(kinds.len(), expected.len(), "{steps}: {found:?}");
        assert!(kinds.iter().zip(expected).all(|(found, wanted)| found.starts_with(wanted)), "{found:?}");
    }

    #[test]
    fn acknowledged_and_later_sent_content_is_correct() {
        check("r=1 r!", &[("r", 1)], &[]);
        check("r=1 r! r=2", &[("r", 1)], &[]);
        check("r=1 r! r=2", &[("r", 2)], &[]);
        check("r=1", &[], &[]);
        check("r=1 r! r-", &[], &[]);
        check("r=1 r! r-", &[("r", 1)], &[]);
        check("r=1 r! r- r!", &[], &[]);
    }

    #[test]
    fn a_lost_acknowledged_write_is_reported() {
        check("r=1 r!", &[], &["lost: r"]);
        check("r=1 r! r=2 r!", &[("r", 1)], &["lost: r"]);
        check("r=1 r! r- r!", &[("r", 1)], &["lost: r"]);
        check("r=1 r! r=2 r! s=3 s!", &[("r", 1)], &["lost: r", "lost: s"]);
    }

    #[test]
    fn an_invented_row_is_reported() {
        check("", &[("r", 1)], &["invented: r"]);
        check("r=1 r!", &[("r", 2)], &["invented: r"]);
        let row = Bytes::from_static(b"r");
        let mut cells = cells::put(&row, 1, Timestamps::Versions).cells;
        let strange = cells[2].view(0);
        cells[2] = KeyValue::new(b"r", b"b", b"n", strange.timestamp(), strange.kind(), b"r#1#rubbish");
        let seen = BTreeMap::from([(row, RowContent::from_row(&Row { cells }))]);
        assert!(matches!(ledger("r=1 r!").check(&seen)[..], [Violation::Invented { .. }]));
    }

    #[test]
    fn a_torn_row_is_reported() {
        let row = Bytes::from_static(b"r");
        let of = |version| cells::put(&row, version, Timestamps::Versions).cells;
        let mixed = vec![of(2)[0].clone(), of(2)[1].clone(), of(1)[2].clone()];
        let short = of(2)[..2].to_vec();
        for cells in [mixed, short] {
            let seen = BTreeMap::from([(row.clone(), RowContent::from_row(&Row { cells }))]);
            let found = ledger("r=1 r! r=2 r!").check(&seen);
            assert!(matches!(found[..], [Violation::Torn { .. }]), "{found:?}");
        }
    }

    #[test]
    fn content_read_once_must_stay() {
        let mut ledger = ledger("r=1 r! r=2");
        ledger.settle(&seen(&[("r", 2)]));
        assert!(matches!(ledger.check(&seen(&[("r", 1)]))[..], [Violation::Lost { .. }]));
    }
}
