//! Bytes of requests that the server holds, all connections together.
//!
//! A frame is admitted before it is buffered, and given back when its call is done. A connection takes from the shared
//! number in steps, and gives all back when it has nothing to do, so that the calls of a busy one do not each write to
//! memory that all cores share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a connection takes at a time.
const STEP: usize = 64 * 1024;

/// The shared number of bytes.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    used: AtomicUsize,
}

impl Budget {
    /// At most `limit` bytes.
    pub fn new(limit: usize) -> Arc<Budget> {
        Arc::new(Budget { limit, used: AtomicUsize::new(0) })
    }

    /// Bytes taken now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes that are left now.
    fn left(&self) -> usize {
        self.limit.saturating_sub(self.used())
    }

    fn take(&self, bytes: usize) -> bool {
        let add = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// One connection's share of a [`Budget`]; given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    taken: usize,
    used: usize,
}

impl Share {
    pub(crate) fn of(budget: &Arc<Budget>) -> Share {
        Share { budget: Arc::clone(budget), taken: 0, used: 0 }
    }

    /// Takes `bytes`; `false` if there are not that many left.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let lacking = (self.used + bytes).saturating_sub(self.taken);
        if lacking > 0 {
            // Near the limit a whole step may not be there while the bytes themselves are.
            let step = [lacking.max(STEP), lacking].into_iter().find(|step| self.budget.take(*step));
            let Some(step) = step else { return false };
            self.taken += step;
        }
        self.used += bytes;
        true
    }

    /// Bytes that could be taken now.
    pub(crate) fn left(&self) -> usize {
        self.budget.left() + (self.taken - self.used)
    }

    /// Gives `bytes` back.
    pub(crate) fn give(&mut self, bytes: usize) {
        self.used -= bytes;
        let spare = self.taken - self.used;
        let returned = match self.used {
            0 => spare,
            _ => spare.saturating_sub(STEP),
        };
        if returned > 0 {
            self.taken -= returned;
            self.budget.give(returned);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.give(self.taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_never_exceed_the_budget_and_come_back() {
        let budget = Budget::new(100_000);
        let (mut a, mut b) = (Share::of(&budget), Share::of(&budget));
        assert!(a.take(60_000));
        assert!(b.take(30_000), "the bytes are there although a step is not");
        assert!(!b.take(5_000));
        a.give(60_000);
        assert!(b.take(5_000));
        assert!(budget.used() <= 100_000);
        drop(b);
        assert_eq!(budget.used(), 0);
        assert!(!a.take(usize::MAX - 70_000));
    }
}
