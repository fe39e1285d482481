//! Events in the order of their times.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use super::TaskId;
use super::timer::Timer;

/// Something that happens at a point in time.
pub(super) enum Event {
    /// A task that was held back is ready.
    Ready(TaskId),
    /// A sleep ends.
    Timer(Arc<Timer>),
    /// An event of the world.
    Call(Box<dyn FnOnce() + Send>),
}

/// The events of the future.
#[derive(Default)]
pub(super) struct EventQueue {
    heap: BinaryHeap<Reverse<Scheduled>>,
    pushed: u64,
}

struct Scheduled {
    at: Duration,
    number: u64,
    event: Event,
}

impl EventQueue {
    pub(super) fn push(&mut self, at: Duration, event: Event) {
        self.pushed += 1;
        self.heap.push(Reverse(Scheduled { at, number: self.pushed, event }));
    }

    /// The next event, if it is due at `now`.
    pub(super) fn pop_due(&mut self, now: Duration) -> Option<Event> {
        if self.next_time()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(scheduled)| scheduled.event)
    }

    /// The time of the next event. Sleeps that were dropped do not count.
    pub(super) fn next_time(&mut self) -> Option<Duration> {
        while let Some(Reverse(next)) = self.heap.peek() {
            match &next.event {
                Event::Timer(timer) if timer.is_dropped() => drop(self.heap.pop()),
                _ => return Some(next.at),
            }
        }
        None
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Scheduled) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Scheduled) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Scheduled) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scheduled {}
