//! What clients wrote and read, and the checks of it.
//!
//! A *version* of a row is one put or delete of all its families, with the version as timestamp. So
//! the newest one wins, whatever the clocks of the servers show. In addition, each row has a
//! counter that clients increment and that is not deleted. Each put also writes its version to a
//! column in which all cells have the same timestamp, so that only the order of the writes decides
//! which one wins. The checks are, for each row:
//!
//! * a read that begins after a write was acknowledged sees this write or a newer one;
//! * a read sees at least what reads that had ended before it began have seen;
//! * a read sees no write that was not begun;
//! * all families have the same version, and exactly the values that were written;
//! * the last write wins: if a put was acknowledged before another one began, the first one is not
//!   read after the second one was acknowledged. A put that may have been sent twice is excepted:
//!   as in HBase, its second copy may be executed late;
//! * an increment returns more than what was visible when it began, and no more than all increments
//!   that were begun. So none is executed twice. Two of them may return the same value: a repeated
//!   call returns the value at that time. An increment that spans a restart of a server may be
//!   executed again: as in HBase, nonces survive a restart only in logs, which are removed when all
//!   their edits are flushed.
//!
//! A write whose result is unknown may be visible or not, and may become visible late. So a row
//! with such a put is not deleted any more: as in HBase, a put that is executed after a compaction
//! has removed the newer delete marker becomes visible.
//!
//! A region server whose clocks stood still cannot know that its session with ZooKeeper has ended.
//! Until it hears so, it may return old values. A read in this time is only checked for being whole
//! and written. Writes have no exception.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant.
    pub invariant: &'static str,
    /// What contradicts it.
    pub found: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "violated: {}: {}", self.invariant, self.found)
    }
}

/// A row as a client read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadRow {
    /// For each family, the version of its value; 0 if it has none, which may be the result of a
    /// delete.
    pub versions: Vec<u64>,
    /// The counter; 0 if it does not exist.
    pub counter: u64,
    /// The version of the last put; 0 if there is none.
    pub last_put: u64,
}

/// What a row must at least contain when a read begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Floor {
    version: u64,
    counter: u64,
    /// Puts that were acknowledged before this number of acknowledgements are overwritten.
    overwritten: u64,
    old_reads: OldReads,
}

/// How often servers began and ceased to be able to return old values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OldReads {
    begun: u64,
    ended: u64,
}

impl OldReads {
    /// Whether a read from `self` to `now` may have returned old values.
    fn were_possible_until(self, now: OldReads) -> bool {
        self.begun > self.ended || now.begun > self.begun
    }
}

/// The writes and reads of one run.
#[derive(Default)]
pub struct History {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    rows: BTreeMap<Arc<str>, RowHistory>,
    violations: Vec<Violation>,
    counts: Counts,
    old_reads: OldReads,
}

/// Numbers of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Acknowledged writes.
    pub writes: u64,
    /// Writes without a result.
    pub unknown: u64,
    /// Rows that were read.
    pub reads: u64,
}

#[derive(Default)]
struct RowHistory {
    /// The newest version that was begun.
    begun_version: u64,
    /// The versions that are deletes.
    deletes: BTreeSet<u64>,
    /// Puts that were begun and not acknowledged.
    pending_puts: u64,
    /// The number of acknowledged puts when each pending put was begun.
    acknowledged_at_begin: BTreeMap<u64, u64>,
    /// Number of acknowledged puts.
    acknowledged: u64,
    /// Acknowledged puts that are executed no more: how many were acknowledged before.
    acknowledged_before: BTreeMap<u64, u64>,
    /// Increments that were begun.
    begun_increments: u64,
    /// Increments that were acknowledged.
    increments: u64,
    /// Increments that were begun and have no result yet.
    pending_increments: u64,
    /// Increments that ended in the previous and in this period.
    ended_recently: [u64; 2],
    /// How often increments may have been executed again after a restart.
    repeated_max: u64,
    /// What each later read must contain.
    floor: Floor,
}

impl History {
    /// Begins a put; returns its version.
    pub fn begin_put(&self, row: &Arc<str>) -> u64 {
        let mut state = self.lock();
        let history = state.rows.entry(row.clone()).or_default();
        history.begun_version += 1;
        history.pending_puts += 1;
        history.acknowledged_at_begin.insert(history.begun_version, history.acknowledged);
        history.begun_version
    }

    /// The put of a version was acknowledged. It was sent once.
    pub fn end_put(&self, row: &Arc<str>, version: u64) {
        let mut state = self.lock();
        let history = state.row(row);
        history.acknowledged_before.insert(version, history.acknowledged);
        drop(state);
        self.end_repeated_put(row, version);
    }

    /// The same of a put that may have been sent several times, and may be executed again.
    pub fn end_repeated_put(&self, row: &Arc<str>, version: u64) {
        let mut state = self.lock();
        let history = state.row(row);
        history.pending_puts -= 1;
        history.acknowledged += 1;
        let overwritten = history.acknowledged_at_begin.remove(&version).unwrap_or(0);
        history.floor.overwritten = history.floor.overwritten.max(overwritten);
        drop(state);
        self.end_version(row, version);
    }

    /// Begins a delete; returns its version. `None` if a put of the row has no result yet.
    pub fn begin_delete(&self, row: &Arc<str>) -> Option<u64> {
        let mut state = self.lock();
        let history = state.rows.entry(row.clone()).or_default();
        if history.pending_puts > 0 {
            return None;
        }
        history.begun_version += 1;
        history.deletes.insert(history.begun_version);
        Some(history.begun_version)
    }

    /// The put or delete of a version was acknowledged.
    pub fn end_version(&self, row: &Arc<str>, version: u64) {
        let mut state = self.lock();
        state.counts.writes += 1;
        let floor = &mut state.row(row).floor;
        floor.version = floor.version.max(version);
    }

    /// Begins an increment by one.
    pub fn begin_increment(&self, row: &Arc<str>) -> Floor {
        let mut state = self.lock();
        let history = state.rows.entry(row.clone()).or_default();
        history.begun_increments += 1;
        history.pending_increments += 1;
        history.floor
    }

    /// A server has been restarted: it may have forgotten that pending increments were executed.
    pub fn count_restart(&self) {
        for history in self.lock().rows.values_mut() {
            history.repeated_max += history.pending_increments;
        }
    }

    /// Called periodically, with whether regions were closed or opened since the last call: then
    /// the new server of a region may have forgotten which increments were executed.
    pub fn tick(&self, has_moved: bool) {
        for history in self.lock().rows.values_mut() {
            if has_moved {
                let ended: u64 = history.ended_recently.iter().sum();
                history.repeated_max += history.pending_increments + ended;
            }
            history.ended_recently = [history.ended_recently[1], 0];
        }
    }

    /// An increment that began at `floor` was acknowledged, and returned the new value.
    pub fn end_increment(&self, row: &Arc<str>, floor: Floor, value: u64) {
        let mut state = self.lock();
        state.counts.writes += 1;
        let history = state.row(row);
        history.increments += 1;
        history.pending_increments -= 1;
        history.ended_recently[1] += 1;
        let is_possible = value > floor.counter && value <= history.counter_max();
        history.floor.counter = history.floor.counter.max(value).max(history.increments);
        let (begun, floor) = (history.counter_max(), floor.counter);
        if !is_possible {
            let found = format!("{row}: {value} after {floor}, of {begun} increments");
            state.violate("increments are executed once", found);
        }
    }

    /// A put or a delete has no result: it may have been executed, or may be executed later.
    pub fn lose_version(&self) {
        self.lock().counts.unknown += 1;
    }

    /// The same of an increment. The client repeats it no more.
    pub fn lose_increment(&self, row: &Arc<str>) {
        let mut state = self.lock();
        state.counts.unknown += 1;
        state.row(row).pending_increments -= 1;
    }

    /// Begins a read of a row.
    pub fn begin_read(&self, row: &Arc<str>) -> Floor {
        let state = self.lock();
        let floor = state.rows.get(row).map(|history| history.floor).unwrap_or_default();
        Floor { old_reads: state.old_reads, ..floor }
    }

    /// Begins a read of all rows. Rows that are not in the result have no floor.
    pub fn begin_scan(&self) -> BTreeMap<Arc<str>, Floor> {
        let state = self.lock();
        let floor = |history: &RowHistory| Floor { old_reads: state.old_reads, ..history.floor };
        state.rows.iter().map(|(row, history)| (row.clone(), floor(history))).collect()
    }

    /// A region server whose clocks stood still continues: from now on it may return old values.
    pub fn begin_old_reads(&self) {
        self.lock().old_reads.begun += 1;
    }

    /// The server has heard from ZooKeeper, or its session has ended by its own clock.
    pub fn end_old_reads(&self) {
        self.lock().old_reads.ended += 1;
    }

    /// For a read that begins now and is checked elsewhere: see [`may_be_old`](Self::may_be_old).
    pub fn old_reads(&self) -> OldReads {
        self.lock().old_reads
    }

    /// Whether a read that ends now may have returned old values; `begun` is from its begin.
    pub fn may_be_old(&self, begun: OldReads) -> bool {
        begun.were_possible_until(self.lock().old_reads)
    }

    /// Checks the result of a read that began at `floor`.
    pub fn end_read(&self, row: &Arc<str>, floor: Floor, read: &ReadRow) {
        let mut state = self.lock();
        state.counts.reads += 1;
        let may_be_old = floor.old_reads.were_possible_until(state.old_reads);
        let history = state.rows.entry(row.clone()).or_default();
        let floor = if may_be_old { Floor::default() } else { floor };
        let violated = history.check(floor, read);
        if !may_be_old {
            let version = history.version_of(floor, read);
            history.floor.version = history.floor.version.max(version);
            history.floor.counter = history.floor.counter.max(read.counter);
        }
        if let Some((invariant, found)) = violated {
            state.violate(invariant, format!("{row}: {found}"));
        }
    }

    /// Records a violation that a client found.
    pub fn violate(&self, invariant: &'static str, found: String) {
        self.lock().violate(invariant, found);
    }

    /// The violations so far.
    pub fn violations(&self) -> Vec<Violation> {
        self.lock().violations.clone()
    }

    /// Numbers of operations so far.
    pub fn counts(&self) -> Counts {
        self.lock().counts
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn row(&mut self, row: &Arc<str>) -> &mut RowHistory {
        self.rows.get_mut(row).expect("a write has begun")
    }

    fn violate(&mut self, invariant: &'static str, found: String) {
        self.violations.push(Violation { invariant, found });
    }
}

impl RowHistory {
    /// The greatest value that the counter can have.
    fn counter_max(&self) -> u64 {
        self.begun_increments + self.repeated_max
    }

    /// The version that a read has seen. If the row had no values, it is the first delete that was
    /// not excluded by `floor`; 0 if there is none.
    fn version_of(&self, floor: Floor, read: &ReadRow) -> u64 {
        match read.versions.first().copied().unwrap_or(0) {
            0 if floor.version > 0 => self.deletes.range(floor.version..).next().copied().unwrap_or(0),
            version => version,
        }
    }

    fn check(&self, floor: Floor, read: &ReadRow) -> Option<(&'static str, String)> {
        let value = read.versions.first().copied().unwrap_or(0);
        if read.versions.iter().any(|other| *other != value) {
            return Some(("rows are written as a whole", format!("versions {:?}", read.versions)));
        }
        if self.deletes.contains(&value) {
            return Some(("only written values are read", format!("version {value} is a delete")));
        }
        if let Some(violated) = self.check_last_put(floor, read.last_put) {
            return Some(violated);
        }
        let version = self.version_of(floor, read);
        for (what, value, floor, begun) in [
            ("version", version, floor.version, self.begun_version),
            ("counter", read.counter, floor.counter, self.counter_max()),
        ] {
            if value < floor {
                let found = format!("{what} {value} was read, but {floor} was acknowledged or read before");
                return Some(("acknowledged writes are visible", found));
            }
            if value > begun {
                return Some(("only written values are read", format!("{what} {value} of {begun}")));
            }
        }
        None
    }

    fn check_last_put(&self, floor: Floor, last_put: u64) -> Option<(&'static str, String)> {
        if last_put == 0 && floor.overwritten > 0 {
            return Some(("acknowledged writes are visible", "no put is read".to_string()));
        }
        if last_put > self.begun_version {
            let found = format!("put {last_put} of {}", self.begun_version);
            return Some(("only written values are read", found));
        }
        let before = self.acknowledged_before.get(&last_put)?;
        (*before < floor.overwritten).then(|| {
            let found = format!("put {last_put} was read, but a later one was acknowledged before");
            ("the last write wins", found)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Arc<str> {
        "r".into()
    }

    fn read(version: u64, counter: u64) -> ReadRow {
        ReadRow { versions: vec![version; 2], counter, last_put: 0 }
    }

    fn violated(act: impl FnOnce(&History)) -> Vec<&'static str> {
        let history = History::default();
        for _ in 0..3 {
            history.begin_put(&row());
            history.begin_increment(&row());
        }
        history.begin_increment(&"other".into());
        history.end_put(&row(), 2);
        act(&history);
        history.violations().iter().map(|violation| violation.invariant).collect()
    }

    #[test]
    fn acknowledged_and_pending_writes_may_be_read() {
        let violations = violated(|history| {
            let floor = history.begin_read(&row());
            history.end_read(&row(), floor, &read(2, 0));
            history.end_read(&row(), floor, &read(3, 3));
            history.end_read(&"other".into(), Floor::default(), &read(0, 0));
        });
        assert!(violations.is_empty(), "{violations:?}");
    }

    #[test]
    fn a_lost_write_is_found() {
        let violations = violated(|history| {
            history.end_read(&row(), history.begin_read(&row()), &read(1, 0));
        });
        assert_eq!(violations, ["acknowledged writes are visible"]);
        let violations = violated(|history| {
            let floors = history.begin_scan();
            history.end_read(&row(), floors[&row()], &ReadRow::default());
        });
        assert_eq!(violations, ["acknowledged writes are visible"]);
    }

    #[test]
    fn a_deleted_row_stays_deleted_until_a_later_put() {
        let violations = violated(|history| {
            let before = history.begin_read(&row());
            // A put has no result yet.
            assert_eq!(history.begin_delete(&row()), None);
            history.end_put(&row(), 1);
            history.end_put(&row(), 3);
            let deleted = history.begin_delete(&row()).unwrap();
            // Visible before it is acknowledged.
            history.end_read(&row(), before, &read(0, 0));
            history.end_version(&row(), deleted);
            history.end_read(&row(), history.begin_read(&row()), &read(0, 0));
            let later = history.begin_put(&row());
            history.end_read(&row(), history.begin_read(&row()), &read(later, 0));
        });
        assert!(violations.is_empty(), "{violations:?}");
    }

    #[test]
    fn a_put_that_returns_after_its_delete_is_found() {
        let violations = violated(|history| {
            history.end_put(&row(), 1);
            history.end_put(&row(), 3);
            history.begin_delete(&row()).unwrap();
            history.end_read(&row(), history.begin_read(&row()), &read(0, 0));
            history.end_read(&row(), history.begin_read(&row()), &read(3, 0));
        });
        assert_eq!(violations, ["acknowledged writes are visible"]);
    }

    #[test]
    fn the_last_write_wins_unless_an_earlier_one_may_be_executed_again() {
        let read_last = |history: &History, version, last_put| {
            history.end_read(&row(), history.begin_read(&row()), &ReadRow { last_put, ..read(version, 0) });
        };
        let violations = violated(|history| {
            // Concurrent with the put of version 2, so either may be the last one.
            history.end_put(&row(), 3);
            read_last(history, 3, 2);
            let later = history.begin_put(&row());
            read_last(history, later, 2);
            history.end_put(&row(), later);
            read_last(history, later, later);
            // Without a result, it may be executed late.
            read_last(history, later, 1);
            read_last(history, later, 2);
            read_last(history, later, 0);
        });
        assert_eq!(violations, ["the last write wins", "acknowledged writes are visible"]);
        let violations = violated(|history| {
            history.end_repeated_put(&row(), 3);
            let later = history.begin_put(&row());
            history.end_put(&row(), later);
            read_last(history, later, 3);
        });
        assert!(violations.is_empty(), "{violations:?}");
    }

    #[test]
    fn reads_never_go_back() {
        let violations = violated(|history| {
            let early = history.begin_read(&row());
            history.end_read(&row(), early, &read(3, 1));
            // Concurrent with the first read.
            history.end_read(&row(), early, &read(2, 0));
            history.end_read(&row(), history.begin_read(&row()), &read(3, 0));
        });
        assert_eq!(violations, ["acknowledged writes are visible"]);
    }

    #[test]
    fn a_read_while_a_server_may_return_old_values_can_be_old_and_raises_no_floor() {
        let violations = violated(|history| {
            let across = history.begin_read(&row());
            history.begin_old_reads();
            history.end_read(&row(), across, &read(1, 0));
            let within = history.begin_read(&row());
            history.end_read(&row(), within, &read(3, 3));
            history.end_old_reads();
            history.end_read(&row(), within, &read(1, 0));
            // The values of the old reads are no floor.
            history.end_read(&row(), history.begin_read(&row()), &read(2, 0));
        });
        assert!(violations.is_empty(), "{violations:?}");
        let violations = violated(|history| {
            history.begin_old_reads();
            let within = history.begin_scan()[&row()];
            history.end_read(&row(), within, &ReadRow { versions: vec![1, 2], ..ReadRow::default() });
            history.end_read(&row(), within, &read(4, 0));
            history.end_old_reads();
            history.end_read(&row(), history.begin_read(&row()), &read(1, 0));
        });
        let whole = "rows are written as a whole";
        assert_eq!(violations, [whole, "only written values are read", "acknowledged writes are visible"]);
    }

    #[test]
    fn torn_rows_and_values_from_nowhere_are_found() {
        let violations = violated(|history| {
            let floor = history.begin_read(&row());
            history.end_read(&row(), floor, &ReadRow { versions: vec![2, 3], ..ReadRow::default() });
            history.end_read(&row(), floor, &read(4, 0));
            history.end_read(&row(), floor, &read(2, 4));
        });
        let nowhere = "only written values are read";
        assert_eq!(violations, ["rows are written as a whole", nowhere, nowhere]);
    }

    #[test]
    fn a_pending_increment_may_be_repeated_by_a_restarted_server() {
        let violations = violated(|history| {
            history.end_increment(&row(), Floor::default(), 1);
            history.lose_increment(&row());
            let floor = history.begin_read(&row());
            history.end_read(&row(), floor, &read(2, 4));
            history.count_restart();
            history.end_read(&row(), floor, &read(2, 4));
            history.end_read(&row(), floor, &read(2, 5));
        });
        assert_eq!(violations, ["only written values are read"; 2]);
    }

    #[test]
    fn increments_count_once() {
        let violations = violated(|history| {
            let early = history.begin_read(&row());
            history.end_increment(&row(), early, 1);
            history.end_increment(&row(), early, 2);
            history.end_read(&row(), history.begin_read(&row()), &read(2, 1));
            let late = history.begin_increment(&row());
            history.end_increment(&row(), late, 2);
            history.end_increment(&row(), early, 5);
        });
        let once = "increments are executed once";
        assert_eq!(violations, ["acknowledged writes are visible", once, once]);
    }
}
