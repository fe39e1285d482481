//! Row locks: a write locks its rows before it reads them, and unlocks them when it is published
//! (in the memstores and in the log's queue). Other writers of these rows wait.
//!
//! Every write locks its rows, whether or not it reads them. Locks are striped by a hash of the
//! row, so their memory does not grow with the number of rows. Two rows of one stripe merely wait
//! for each other. Invariants:
//!
//! * Stripes are locked in ascending order, so batches cannot deadlock.
//! * A lock is held for computation only, never across an await. A write is visible to the next
//!   holder of its row lock as soon as it is published, durable or not. The log keeps the order of
//!   the two writes, so the second is not acknowledged before the first.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use base::checksum::crc32c;
use base::env::Clock;
use base::spent::{self, Phase};

/// Number of stripes, each one bit of a `u64`.
const STRIPES: usize = 64;

/// The row locks of one region.
pub struct RowLocks {
    stripes: [Mutex<()>; STRIPES],
    // Measures lock waits.
    clock: Arc<dyn Clock>,
}

/// Rows to be locked together. It allocates nothing, however many rows it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowSet {
    // One bit for each stripe that has a row of the set.
    stripes: u64,
}

impl RowSet {
    /// Adds a row.
    #[inline]
    pub fn add(&mut self, row: &[u8]) {
        self.stripes |= 1 << stripe_of(row);
    }

    /// Whether no row was added.
    pub fn is_empty(self) -> bool {
        self.stripes == 0
    }
}

impl<'r> FromIterator<&'r [u8]> for RowSet {
    fn from_iter<I: IntoIterator<Item = &'r [u8]>>(rows: I) -> RowSet {
        let mut set = RowSet::default();
        rows.into_iter().for_each(|row| set.add(row));
        set
    }
}

/// Row locks, held until this is dropped.
#[must_use = "the rows are locked only as long as this lives"]
pub struct RowGuards<'a> {
    // Most batches write one row, which then needs no allocation.
    _first: Option<MutexGuard<'a, ()>>,
    _others: Vec<MutexGuard<'a, ()>>,
}

impl RowLocks {
    /// All rows unlocked. Lock waits are measured by `clock` and added to the account of the
    /// current call.
    pub fn new(clock: Arc<dyn Clock>) -> RowLocks {
        RowLocks { stripes: [const { Mutex::new(()) }; STRIPES], clock }
    }

    /// Locks all of `rows`. Blocks while another thread holds one of them.
    pub fn lock(&self, rows: RowSet) -> RowGuards<'_> {
        let mut wanted = rows.stripes;
        let mut take_lowest = || {
            let stripe = wanted.trailing_zeros() as usize;
            let guard = self.stripes.get(stripe).map(|stripe| self.lock_stripe(stripe))?;
            wanted &= wanted - 1;
            Some(guard)
        };
        RowGuards { _first: take_lowest(), _others: std::iter::from_fn(take_lowest).collect() }
    }

    fn lock_stripe<'a>(&self, stripe: &'a Mutex<()>) -> MutexGuard<'a, ()> {
        // The lock guards no data, so a panicked holder leaves nothing inconsistent.
        match stripe.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => spent::timed(Phase::Blocked, &*self.clock, || {
                stripe.lock().unwrap_or_else(PoisonError::into_inner)
            }),
        }
    }
}

fn stripe_of(row: &[u8]) -> usize {
    crc32c(row) as usize % STRIPES
}

#[cfg(test)]
mod tests {
    use base::testing;

    use super::*;

    fn unlocked() -> RowLocks {
        RowLocks::new(testing::env(1).clock)
    }

    #[test]
    fn rows_of_one_stripe_are_locked_once() {
        let locks = unlocked();
        let guards = locks.lock([&b"a"[..], b"a", b"b"].into_iter().collect());
        drop(guards);
        let _again = locks.lock([&b"b"[..], b"a"].into_iter().collect());
    }

    #[test]
    fn a_locked_row_blocks_other_writers() {
        let locks = unlocked();
        let guards = locks.lock([&b"row"[..]].into_iter().collect());
        assert!(locks.stripes[stripe_of(b"row")].try_lock().is_err());
        drop(guards);
        assert!(locks.stripes[stripe_of(b"row")].try_lock().is_ok());
    }

    #[test]
    fn batches_in_any_order_do_not_deadlock() {
        let locks = unlocked();
        let rows: Vec<Vec<u8>> = (0..200u32).map(|row| row.to_be_bytes().to_vec()).collect();
        let total = Mutex::new(0u32);
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let (locks, rows, total) = (&locks, &rows, &total);
                scope.spawn(move || {
                    for round in 0..50 {
                        let chosen = (0..9).map(|at| rows[(at * 7 + worker * 13 + round) % 200].as_slice());
                        let chosen: Vec<&[u8]> =
                            if worker % 2 == 0 { chosen.rev().collect() } else { chosen.collect() };
                        let _held = locks.lock(chosen.into_iter().collect());
                        *total.lock().unwrap() += 1;
                    }
                });
            }
        });
        assert_eq!(*total.lock().unwrap(), 200);
    }
}
