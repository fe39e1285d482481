//! Bytes that a server holds for its clients, all connections together: one number for requests, one for answers.
//!
//! A request's frame is admitted before it is buffered, and given back when its call is done. An answer is admitted as it
//! grows by whoever makes it, and counted, there being nothing to refuse any more, until its client has taken it. Each
//! taker has a [`Share`]: it takes from the shared number in steps, and gives all back when it has nothing to do, so that
//! the calls of a busy connection do not each write to memory that all cores share.

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

    /// Bytes at most. What is [forced](Share::force) goes beyond.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes that are left now.
    pub fn left(&self) -> usize {
        self.limit.saturating_sub(self.used())
    }

    /// Bytes up to which what is large may go.
    pub fn large_limit(&self) -> usize {
        self.limit / 4 * 3
    }

    /// Whether so little is left that who holds much and does not go on should be parted with.
    pub fn is_tight(&self) -> bool {
        self.used() > self.limit / 2
    }

    fn take(&self, bytes: usize, limit: usize) -> bool {
        let add = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Budget {
    /// Holds `bytes`, none more, for as long as the returned value lives; `None` if there are not that many left. What is
    /// large leaves a quarter of all bytes to others.
    pub fn hold(self: &Arc<Budget>, bytes: usize) -> Option<Held> {
        let limit = if bytes > STEP { self.large_limit() } else { self.limit };
        self.take(bytes, limit).then(|| Held { budget: Arc::clone(self), bytes })
    }
}

/// Bytes of a [`Budget`] that are held for long; given back when dropped.
#[derive(Debug)]
pub struct Held {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.give(self.bytes);
    }
}

/// One taker's share of a [`Budget`]; given back when dropped.
#[derive(Debug)]
pub struct Share {
    budget: Arc<Budget>,
    taken: usize,
    used: usize,
}

impl Share {
    /// Nothing yet.
    pub fn of(budget: &Arc<Budget>) -> Share {
        Share { budget: Arc::clone(budget), taken: 0, used: 0 }
    }

    /// Takes `bytes`; `false` if there are not that many left.
    pub fn take(&mut self, bytes: usize) -> bool {
        self.take_within(bytes, self.budget.limit)
    }

    /// The same for what is large: it leaves a quarter of all bytes to others.
    pub fn take_large(&mut self, bytes: usize) -> bool {
        self.take_within(bytes, self.budget.large_limit())
    }

    fn take_within(&mut self, bytes: usize, limit: usize) -> bool {
        let lacking = (self.used + bytes).saturating_sub(self.taken);
        if lacking > 0 {
            // Near the limit a whole step may not be there while the bytes themselves are.
            let step = [lacking.max(STEP), lacking].into_iter().find(|step| self.budget.take(*step, limit));
            let Some(step) = step else { return false };
            self.taken += step;
        }
        self.used += bytes;
        true
    }

    /// Takes `bytes` that are there already, whether there is room for them or not.
    pub fn force(&mut self, bytes: usize) {
        if self.take(bytes) {
            return;
        }
        let lacking = self.used + bytes - self.taken;
        self.budget.used.fetch_add(lacking, Ordering::Relaxed);
        self.taken += lacking;
        self.used += bytes;
    }

    /// Takes or gives so that `bytes` are in use; they are there already.
    pub fn set(&mut self, bytes: usize) {
        match bytes.checked_sub(self.used) {
            Some(more) => self.force(more),
            None => self.give(self.used - bytes),
        }
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Bytes that could be taken now.
    pub fn left(&self) -> usize {
        self.budget.left() + (self.taken - self.used)
    }

    /// The same for what is large.
    pub fn left_large(&self) -> usize {
        (self.budget.large_limit() + self.taken - self.used).saturating_sub(self.budget.used())
    }

    /// Gives `bytes` back.
    pub fn give(&mut self, bytes: usize) {
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
        if self.taken > 0 {
            self.budget.give(self.taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_comes_back_when_it_is_dropped() {
        let budget = Budget::new(1_000_000);
        let large = budget.hold(750_000).unwrap();
        assert!(budget.hold(100_000).is_none(), "what is large leaves a quarter");
        let small: Vec<_> = (0..5).map(|_| budget.hold(50_000).unwrap()).collect();
        assert_eq!(budget.used(), 1_000_000);
        assert!(budget.hold(1).is_none());
        drop((large, small));
        assert_eq!(budget.used(), 0);
    }

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
        a.set(150_000);
        assert_eq!((budget.used(), budget.left()), (150_000, 0), "what is there is counted, room or not");
        assert!(budget.is_tight() && !a.take(1));
        assert_eq!(a.left_large(), 0);
        a.set(0);
        assert!(!budget.is_tight() && !a.take_large(75_001) && a.take_large(75_000) && a.take(25_000));
        drop(a);
        assert_eq!(budget.used(), 0);
    }
}
