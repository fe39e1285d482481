//! Durable steps of processes: changes of names and syncs. A trap acts at one of them.

use std::collections::BTreeSet;

use fs::FilePath;

use super::{CallKind, Disk};

/// Whether a trap acts before the step takes effect, or after it and before the caller has the
/// result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The step has no effect if its caller is killed.
    Before,
    /// The step is durable.
    After,
}

/// What happens at one of the steps that are counted. It gets a description of the step.
pub type Spring = Box<dyn FnOnce(&str) + Send>;

/// Acts at one of the steps that are counted.
pub struct Trap {
    /// The number of the step; the first one is 1.
    pub step: u64,
    /// When it acts.
    pub moment: Moment,
    /// What it does.
    pub spring: Spring,
}

/// The steps that are counted.
#[derive(Default)]
pub(super) struct Steps {
    processes: BTreeSet<String>,
    count: u64,
    trap: Option<Trap>,
}

/// A step at which a trap acts.
pub(super) struct Sprung {
    pub(super) moment: Moment,
    spring: Spring,
    description: String,
}

impl Sprung {
    pub(super) fn act(self) {
        (self.spring)(&self.description);
    }
}

impl Disk {
    /// Counts the durable steps of these processes, from 1. The trap of an earlier count is
    /// removed.
    pub fn count_steps(&self, processes: impl IntoIterator<Item = String>, trap: Option<Trap>) {
        let steps = Steps { processes: processes.into_iter().collect(), count: 0, trap };
        self.lock().steps = steps;
    }

    /// The number of steps so far. Removes the trap, and ends the count.
    pub fn end_count(&self) -> u64 {
        std::mem::take(&mut self.lock().steps).count
    }

    /// Counts a call of a process, if it is a durable step. Returns the trap of this step.
    pub(super) fn reach_step(
        &self,
        process: &str,
        kind: CallKind,
        operation: &str,
        path: &FilePath,
    ) -> Option<Sprung> {
        let mut state = self.lock();
        let steps = &mut state.steps;
        if kind == CallKind::Quick || !steps.processes.contains(process) {
            return None;
        }
        steps.count += 1;
        let (at, count) = (steps.trap.as_ref()?.step, steps.count);
        let Trap { moment, spring, .. } = steps.trap.take_if(|_| at == count)?;
        let place = if moment == Moment::Before { "before" } else { "after" };
        let description = format!("{place} step {count}, {operation} {} by {process}", path.as_str());
        Some(Sprung { moment, spring, description })
    }
}
