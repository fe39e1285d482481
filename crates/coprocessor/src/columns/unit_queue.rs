//! Distributes the units of a scan among tasks in order, until none is left or a task stops.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use analytics::{Plan, Unit};
use base::env::Clock;
use bytes::Bytes;

use crate::error::Error;

/// Units of a scan, and the state of their distribution.
pub(super) struct UnitQueue {
    plan: Plan,
    // Time on the monotonic clock.
    deadline: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    // Index of the next unit.
    next: usize,
    is_stopped: bool,
    // Whether the result is no longer needed.
    is_canceled: bool,
    failed: Option<Error>,
    // Resume row within a distributed unit, if any.
    resume_row: Option<Bytes>,
}

impl UnitQueue {
    pub(super) fn new(plan: Plan, deadline: Duration) -> UnitQueue {
        UnitQueue { plan, deadline, state: Mutex::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.plan.units.len()
    }

    /// Takes the next unit with its index. The task must read all of it, unless it [stops within
    /// it](UnitQueue::stop_at_last_unit). `None` if no unit is left, a task has stopped, or the
    /// time is up. The first unit is returned even then, so that every call makes progress.
    pub(super) fn take(&self, clock: &dyn Clock) -> Option<(usize, &Unit)> {
        let mut state = self.state();
        state.is_stopped |= state.next > 0 && self.is_expired(clock);
        let at = state.next;
        let unit = self.plan.units.get(at).filter(|_| !state.is_stopped)?;
        state.next += 1;
        Some((at, unit))
    }

    /// Whether the time is up.
    pub(super) fn is_expired(&self, clock: &dyn Clock) -> bool {
        clock.monotonic() >= self.deadline
    }

    /// Whether the time has been up for `grace`, so that units in progress must be abandoned.
    pub(super) fn is_expired_by(&self, clock: &dyn Clock, grace: Duration) -> bool {
        clock.monotonic() >= self.deadline.saturating_add(grace)
    }

    /// Stops the distribution of units.
    pub(super) fn stop(&self) {
        self.state().is_stopped = true;
    }

    /// Stops the distribution of units. Returns whether `unit` is the last one that was
    /// distributed. If so, its reader may stop within it, and the next call resumes there.
    pub(super) fn stop_at_last_unit(&self, unit: usize) -> bool {
        let mut state = self.state();
        debug_assert!(unit < state.next, "only a unit that was taken is left");
        state.is_stopped = true;
        state.next == unit + 1
    }

    /// Sets the row at which the next call resumes.
    pub(super) fn set_resume_row(&self, row: Bytes) {
        let earlier = self.state().resume_row.replace(row);
        debug_assert!(earlier.is_none(), "only the last unit is left before its end");
    }

    /// Cancels the call, because its result is no longer needed.
    pub(super) fn cancel(&self) {
        let mut state = self.state();
        (state.is_stopped, state.is_canceled) = (true, true);
    }

    /// Whether the call was canceled.
    pub(super) fn is_canceled(&self) -> bool {
        self.state().is_canceled
    }

    /// Records a failure and cancels the call. The first failure is retained.
    pub(super) fn fail(&self, error: Error) {
        self.state().failed.get_or_insert(error);
        self.cancel();
    }

    /// Takes the recorded failure, if any.
    pub(super) fn failed(&self) -> Option<Error> {
        self.state().failed.take()
    }

    /// The first row that was not read; `None` if all were read. Valid after all tasks have ended.
    pub(super) fn resume_row(&self) -> Option<Bytes> {
        let state = self.state();
        let next_unit_row = || self.plan.units.get(state.next).map(|unit| unit.start_row().clone());
        state.resume_row.clone().or_else(next_unit_row).or_else(|| self.plan.next_row.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Consistent after any panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
