//! The units of a scan, handed out in order to several tasks, until there are no more or somebody has had enough.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::env::Clock;
use bytes::Bytes;
use engine::columns::{Plan, Unit};

use crate::error::Error;

/// Units and who stops.
pub(super) struct Turns {
    plan: Plan,
    // On the monotonic clock.
    deadline: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    // The unit to be handed out next.
    next: usize,
    is_stopped: bool,
    // Nobody wants what is found.
    is_given_up: bool,
    failed: Option<Error>,
    // The row to go on at, if it is within a unit that was handed out.
    rest: Option<Bytes>,
}

impl Turns {
    pub(super) fn new(plan: Plan, deadline: Duration) -> Turns {
        Turns { plan, deadline, state: Mutex::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.plan.units.len()
    }

    /// The next unit with its number; whoever takes one reads all of it, unless he [leaves off](Turns::leave_off). None when all are
    /// taken, when time is over (but for the first, so that every call comes further) or when somebody stopped.
    pub(super) fn take(&self, clock: &dyn Clock) -> Option<(usize, &Unit)> {
        let mut state = self.state();
        state.is_stopped |= state.next > 0 && self.is_over(clock);
        let at = state.next;
        let unit = self.plan.units.get(at).filter(|_| !state.is_stopped)?;
        state.next += 1;
        Some((at, unit))
    }

    /// Whether time is over.
    pub(super) fn is_over(&self, clock: &dyn Clock) -> bool {
        clock.monotonic() >= self.deadline
    }

    /// Whether it is over by so much that who reads a unit still need not end it.
    pub(super) fn is_over_by(&self, clock: &dyn Clock, grace: Duration) -> bool {
        clock.monotonic() >= self.deadline.saturating_add(grace)
    }

    /// No more units are handed out.
    pub(super) fn stop(&self) {
        self.state().is_stopped = true;
    }

    /// The same, and whoever reads one can stop, if it is the last that was handed out: then the call goes on within it. Whether
    /// it is.
    pub(super) fn leave_off(&self, unit: usize) -> bool {
        let mut state = self.state();
        state.is_stopped = true;
        state.next == unit + 1
    }

    /// The row to go on at, by who left off.
    pub(super) fn go_on_at(&self, row: Bytes) {
        self.state().rest = Some(row);
    }

    /// Nobody waits for an answer any more.
    pub(super) fn give_up(&self) {
        let mut state = self.state();
        (state.is_stopped, state.is_given_up) = (true, true);
    }

    /// Whether what is being read is of no use.
    pub(super) fn is_given_up(&self) -> bool {
        self.state().is_given_up
    }

    /// Something failed: the first to tell is heard.
    pub(super) fn fail(&self, error: Error) {
        self.state().failed.get_or_insert(error);
        self.give_up();
    }

    /// Why it failed, if it did.
    pub(super) fn failed(&self) -> Option<Error> {
        self.state().failed.take()
    }

    /// The first row that nobody read; none if all are. When all tasks are done.
    pub(super) fn rest(&self) -> Option<Bytes> {
        let state = self.state();
        let of_unit = || self.plan.units.get(state.next).map(|unit| unit.start_row().clone());
        state.rest.clone().or_else(of_unit).or_else(|| self.plan.next_row.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whole after any panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
