//! The requests that wait for a device, and which of them is next.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::oneshot;

use super::device_class::DeviceClass;
use super::queue::Admitted;
use super::request::Request;
use crate::IoClass;

/// A request that waits.
pub(super) struct Waiter {
    pub(super) request: Request,
    pub(super) cost: u64,
    pub(super) arrived: Duration,
    pub(super) turn: oneshot::Sender<Admitted>,
}

/// Identifies a waiting request; numbers ascend with the arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) class: IoClass,
    pub(super) writes: bool,
    pub(super) number: u64,
}

/// The requests of a class, in order of arrival. Reads and writes have different limits, so they
/// do not wait for each other.
#[derive(Default)]
struct ClassQueue {
    reads: BTreeMap<u64, Waiter>,
    writes: BTreeMap<u64, Waiter>,
    // What the class may use of the device before more urgent ones.
    credit: f64,
}

/// The waiting requests of all classes.
#[derive(Default)]
pub(super) struct WaitingRequests {
    classes: [ClassQueue; IoClass::ALL.len()],
    pub(super) requests: usize,
    pub(super) bytes: u64,
}

/// Which slots a device has free.
#[derive(Clone, Copy, Debug)]
pub(super) struct FreeSlots {
    /// One for any class.
    pub(super) any: bool,
    /// One for a class that is below its minimum share.
    pub(super) for_share: bool,
    /// One for a background class.
    pub(super) background: bool,
    /// One for a request that writes.
    pub(super) writer: bool,
}

impl FreeSlots {
    /// Whether a request fits, apart from the total number.
    fn admit(&self, class: IoClass, writes: bool) -> bool {
        (self.background || !class.is_background()) && (self.writer || !writes)
    }
}

impl ClassQueue {
    fn queue(&mut self, writes: bool) -> &mut BTreeMap<u64, Waiter> {
        if writes { &mut self.writes } else { &mut self.reads }
    }

    fn waiters(&self) -> impl Iterator<Item = &Waiter> {
        self.reads.values().chain(self.writes.values())
    }

    /// The first request that fits, as its kind, number and cost.
    fn first(&self, class: IoClass, free: &FreeSlots) -> Option<(bool, u64, u64)> {
        [(false, &self.reads), (true, &self.writes)]
            .into_iter()
            .filter(|(writes, _)| free.admit(class, *writes))
            .filter_map(|(writes, queue)| {
                queue.first_key_value().map(|first| (writes, *first.0, first.1.cost))
            })
            .min_by_key(|(_, number, _)| *number)
    }
}

impl WaitingRequests {
    /// Whether a new request may begin immediately: there is a slot, and no request of the same
    /// kind waits for one.
    pub(super) fn may_pass(&self, class: IoClass, writes: bool, free: &FreeSlots) -> bool {
        let queue = &self.classes[class.index()];
        let waiting = if writes { &queue.writes } else { &queue.reads };
        free.any && free.admit(class, writes) && waiting.is_empty()
    }

    pub(super) fn insert(&mut self, key: Key, waiter: Waiter) {
        self.requests += 1;
        self.bytes += waiter.request.bytes;
        self.classes[key.class.index()].queue(key.writes).insert(key.number, waiter);
    }

    /// Removes a request if it still waits.
    pub(super) fn remove(&mut self, key: Key) -> Option<Waiter> {
        let class = &mut self.classes[key.class.index()];
        let removed = class.queue(key.writes).remove(&key.number)?;
        if class.reads.is_empty() && class.writes.is_empty() {
            class.credit = 0.0;
        }
        self.requests -= 1;
        self.bytes -= removed.request.bytes;
        Some(removed)
    }

    /// Removes and returns the next request, if a free slot admits one: of the most urgent class
    /// that has earned its share, else of the most urgent class.
    pub(super) fn next(&mut self, free: &FreeSlots) -> Option<Waiter> {
        if self.requests == 0 {
            return None;
        }
        let mut urgent = None;
        let mut earned = None;
        for class in IoClass::ALL {
            let queue = &self.classes[class.index()];
            let Some((writes, number, cost)) = queue.first(class, free) else { continue };
            let key = Key { class, writes, number };
            urgent = urgent.or(Some(key));
            if queue.credit >= cost as f64 {
                earned = earned.or(Some(key));
            }
        }
        let key = earned.filter(|_| free.for_share).or(urgent.filter(|_| free.any))?;
        self.remove(key)
    }

    /// Counts the cost of a request that begins service: the waiting classes earn their shares of
    /// it.
    pub(super) fn charge(&mut self, class: IoClass, cost: u64, limits: &DeviceClass) {
        if self.requests == 0 {
            return;
        }
        for (index, queue) in self.classes.iter_mut().enumerate() {
            if index == class.index() {
                queue.credit = (queue.credit - cost as f64).max(0.0);
                continue;
            }
            // Credit for more than one request would be a burst later.
            let enough = queue.waiters().next().map_or(0.0, |first| first.cost as f64);
            if queue.credit < enough {
                queue.credit += cost as f64 * limits.min_shares[index];
            }
        }
    }

    /// Bytes and cost of the requests that are not served after one of `class`.
    pub(super) fn before(&self, class: IoClass) -> (u64, u64) {
        let waiters = self.classes[..=class.index()].iter().flat_map(ClassQueue::waiters);
        waiters.fold((0, 0), |(bytes, cost), waiter| (bytes + waiter.request.bytes, cost + waiter.cost))
    }

    /// When the request arrived that waits longest.
    pub(super) fn oldest(&self) -> Option<Duration> {
        let queues = self.classes.iter().flat_map(|class| [&class.reads, &class.writes]);
        queues.filter_map(|queue| queue.values().next()).map(|first| first.arrived).min()
    }
}
