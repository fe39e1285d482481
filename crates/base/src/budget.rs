//! Limits on the bytes that all client connections hold together: one budget for requests, one for
//! responses.
//!
//! A request's frame is admitted before it is buffered, and released when its call is done. A
//! response is admitted by its producer as it grows. A complete response can no longer be refused;
//! its bytes stay counted until the client has received them.
//!
//! Each holder has a [`BudgetShare`]. A share takes from the shared counter in steps and returns
//! everything when it is idle. So the calls of a busy connection do not all write to memory that
//! all cores share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that a share takes at a time.
const STEP_BYTES: usize = 64 * 1024;

/// The shared counter of bytes.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    used: AtomicUsize,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: usize) -> Arc<Budget> {
        Arc::new(Budget { limit, used: AtomicUsize::new(0) })
    }

    /// Bytes in use, including the spare bytes of shares.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Maximum bytes in use. [Forced](BudgetShare::force) bytes may exceed it.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes available now.
    pub fn available(&self) -> usize {
        self.limit.saturating_sub(self.used())
    }

    /// Maximum bytes in use after a large request is admitted.
    pub fn large_limit(&self) -> usize {
        self.limit / 4 * 3
    }

    /// Whether memory is short: more than half is in use. Connections that hold memory without
    /// making progress should then be closed sooner.
    pub fn is_short(&self) -> bool {
        self.used() > self.limit / 2
    }

    fn take(&self, bytes: usize, limit: usize) -> bool {
        let add = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    fn release(&self, bytes: usize) {
        let before = self.used.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(bytes <= before, "only bytes that were taken are released");
    }
}

impl Budget {
    /// Holds exactly `bytes` until the returned value is dropped; `None` if they are not available.
    /// A large request must leave a quarter of the budget free.
    pub fn hold(self: &Arc<Budget>, bytes: usize) -> Option<HeldBytes> {
        let limit = if bytes > STEP_BYTES { self.large_limit() } else { self.limit };
        self.take(bytes, limit).then(|| HeldBytes { budget: Arc::clone(self), bytes })
    }
}

/// Bytes of a [`Budget`] that are held for long; released when dropped.
#[derive(Debug)]
pub struct HeldBytes {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

/// One holder's share of a [`Budget`]; released when dropped.
#[derive(Debug)]
pub struct BudgetShare {
    budget: Arc<Budget>,
    taken: usize,
    used: usize,
}

impl BudgetShare {
    /// An empty share.
    pub fn of(budget: &Arc<Budget>) -> BudgetShare {
        BudgetShare { budget: Arc::clone(budget), taken: 0, used: 0 }
    }

    /// Takes `bytes`; `false` if they are not available.
    pub fn take(&mut self, bytes: usize) -> bool {
        self.take_within(bytes, self.budget.limit)
    }

    /// Like [`take`](Self::take) for a large request, which must leave a quarter of the budget
    /// free.
    pub fn take_large(&mut self, bytes: usize) -> bool {
        self.take_within(bytes, self.budget.large_limit())
    }

    fn take_within(&mut self, bytes: usize, limit: usize) -> bool {
        let lacking = (self.used + bytes).saturating_sub(self.taken);
        if lacking > 0 {
            // Near the limit the bytes may be available although a whole step is not.
            let step =
                [lacking.max(STEP_BYTES), lacking].into_iter().find(|step| self.budget.take(*step, limit));
            let Some(step) = step else { return false };
            self.taken += step;
        }
        self.used += bytes;
        debug_assert!(self.used <= self.taken, "a share uses at most what it has taken");
        true
    }

    /// Takes `bytes` that are allocated already, even beyond the limit.
    pub fn force(&mut self, bytes: usize) {
        if self.take(bytes) {
            return;
        }
        let lacking = self.used + bytes - self.taken;
        self.budget.used.fetch_add(lacking, Ordering::Relaxed);
        self.taken += lacking;
        self.used += bytes;
    }

    /// Takes or releases bytes so that `bytes` are in use; they are allocated already.
    pub fn set(&mut self, bytes: usize) {
        match bytes.checked_sub(self.used) {
            Some(more) => self.force(more),
            None => self.release(self.used - bytes),
        }
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Bytes that could be taken now.
    pub fn available(&self) -> usize {
        self.budget.available() + (self.taken - self.used)
    }

    /// Bytes that a large request could take now.
    pub fn available_large(&self) -> usize {
        (self.budget.large_limit() + self.taken - self.used).saturating_sub(self.budget.used())
    }

    /// Releases `bytes`.
    pub fn release(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.used, "a share releases at most what it uses");
        self.used -= bytes;
        let spare = self.taken - self.used;
        let returned = match self.used {
            0 => spare,
            _ => spare.saturating_sub(STEP_BYTES),
        };
        if returned > 0 {
            self.taken -= returned;
            self.budget.release(returned);
        }
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        if self.taken > 0 {
            self.budget.release(self.taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_bytes_are_released_on_drop() {
        let budget = Budget::new(1_000_000);
        let large = budget.hold(750_000).unwrap();
        assert!(budget.hold(100_000).is_none(), "a large request must leave a quarter free");
        let small: Vec<_> = (0..5).map(|_| budget.hold(50_000).unwrap()).collect();
        assert_eq!(budget.used(), 1_000_000);
        assert!(budget.hold(1).is_none());
        drop((large, small));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn shares_never_exceed_the_budget_and_are_released() {
        let budget = Budget::new(100_000);
        let (mut a, mut b) = (BudgetShare::of(&budget), BudgetShare::of(&budget));
        assert!(a.take(60_000));
        assert!(b.take(30_000), "the bytes are available although a whole step is not");
        assert!(!b.take(5_000));
        a.release(60_000);
        assert!(b.take(5_000));
        assert!(budget.used() <= 100_000);
        drop(b);
        assert_eq!(budget.used(), 0);
        assert!(!a.take(usize::MAX - 70_000));
        a.set(150_000);
        assert_eq!((budget.used(), budget.available()), (150_000, 0), "counted even beyond the limit");
        assert!(budget.is_short() && !a.take(1));
        assert_eq!(a.available_large(), 0);
        a.set(0);
        assert!(!budget.is_short() && !a.take_large(75_001) && a.take_large(75_000) && a.take(25_000));
        drop(a);
        assert_eq!(budget.used(), 0);
    }
}
