//! The queue of a device: which requests are in service, which wait, and how fast the device is.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::env::Clock;
use tokio::sync::oneshot;

use super::device_class::DeviceClass;
use super::request::{Action, Request};
use super::speed::Speed;
use super::waiting::{FreeSlots, Key, Waiter, WaitingRequests};
use crate::{Error, IoClass, Result, Traffic};

/// The queue of a device. The file systems on the same device share it.
pub struct DeviceQueue {
    limits: DeviceClass,
    clock: Arc<dyn Clock>,
    files: AtomicU64,
    state: Mutex<State>,
}

/// Metrics of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeviceLoad {
    /// Requests that wait for a slot.
    pub waiting_requests: usize,
    /// Their bytes.
    pub waiting_bytes: u64,
    /// Requests in service.
    pub served_requests: usize,
    /// Their bytes.
    pub served_bytes: u64,
    /// Bytes that were written to the page cache and are not synced yet (estimate).
    pub unsynced_bytes: u64,
    /// Completed requests.
    pub completed: u64,
    /// Completed requests that failed with an I/O error.
    pub errors: u64,
    /// Bytes per second while the device was busy; recent requests count most.
    pub bytes_per_s: f64,
    /// Average time from the arrival of a request to its completion; recent requests count most.
    pub latency: Duration,
    /// The part of `latency` in service.
    pub service_time: Duration,
    /// Age of the oldest request that is not completed.
    pub oldest: Option<Duration>,
    /// Successful reads and writes of each class, in the order of [`IoClass::ALL`].
    pub traffic: [Traffic; IoClass::ALL.len()],
}

struct State {
    waiting: WaitingRequests,
    // Start times by ticket: the first is the oldest.
    started: BTreeMap<u64, Duration>,
    tickets: u64,
    served: Served,
    unsynced_bytes: u64,
    position: Option<(u64, u64)>,
    speed: Speed,
    last_completion: Duration,
    completed: u64,
    errors: u64,
    traffic: [Traffic; IoClass::ALL.len()],
}

/// Counts of the requests in service.
#[derive(Default)]
struct Served {
    requests: usize,
    logs: usize,
    names: usize,
    background: usize,
    writers: usize,
    bytes: u64,
    cost: u64,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// An I/O error of the device.
    DeviceError,
    /// An error of the caller, or no space.
    OtherError,
}

/// A request in service, until it is finished or dropped.
pub(super) struct Admitted {
    queue: Arc<DeviceQueue>,
    request: Request,
    ticket: u64,
    cost: u64,
    arrived: Duration,
    started: Duration,
    ended: bool,
}

/// A request that waits; leaves the queue when it is dropped.
struct Turn<'a> {
    queue: &'a DeviceQueue,
    key: Key,
    granted: oneshot::Receiver<Admitted>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.queue.state().waiting.remove(self.key);
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if !self.ended {
            self.queue.complete(self, None);
        }
    }
}

impl DeviceQueue {
    /// The queue of an idle device of class `limits`.
    pub fn new(limits: DeviceClass, clock: Arc<dyn Clock>) -> Arc<DeviceQueue> {
        let now = clock.monotonic();
        let state = State {
            waiting: WaitingRequests::default(),
            started: BTreeMap::new(),
            tickets: 0,
            served: Served::default(),
            unsynced_bytes: 0,
            position: None,
            speed: Speed::new(&limits, now),
            last_completion: now,
            completed: 0,
            errors: 0,
            traffic: Default::default(),
        };
        Arc::new(DeviceQueue { limits, clock, files: AtomicU64::new(0), state: Mutex::new(state) })
    }

    /// The limits.
    pub fn limits(&self) -> &DeviceClass {
        &self.limits
    }

    /// The metrics at `now`, on the monotonic clock.
    pub fn load(&self, now: Duration) -> DeviceLoad {
        let state = self.state();
        let since = |time: Duration| now.saturating_sub(time);
        DeviceLoad {
            waiting_requests: state.waiting.requests,
            waiting_bytes: state.waiting.bytes,
            served_requests: state.served.requests,
            served_bytes: state.served.bytes,
            unsynced_bytes: state.unsynced_bytes,
            completed: state.completed,
            errors: state.errors,
            bytes_per_s: state.speed.bytes_per_s(),
            latency: state.speed.latency(),
            service_time: state.speed.service_time(),
            oldest: state.waiting.oldest().into_iter().chain(state.oldest_started()).min().map(since),
            traffic: state.traffic,
        }
    }

    /// Expected time until a new request of `bytes` bytes would be completed, if it has the least
    /// urgent class: all requests that the device has now are served before it.
    pub fn expected_completion(&self, bytes: u64) -> Duration {
        self.expected_completion_for(IoClass::Scrub, bytes)
    }

    /// The same for a request of `class`, which is served before waiting ones of less urgent
    /// classes.
    pub fn expected_completion_for(&self, class: IoClass, bytes: u64) -> Duration {
        let now = self.clock.monotonic();
        self.state().expected_completion(&self.limits, class, bytes, now)
    }

    /// Whether the device has had requests for [`DeviceClass::stuck_after`] and completed none;
    /// `now` is a time on the monotonic clock.
    pub fn is_stuck(&self, now: Duration) -> bool {
        let state = self.state();
        let idle_until = state.oldest_started().map(|started| started.max(state.last_completion));
        idle_until.is_some_and(|since| now.saturating_sub(since) >= self.limits.stuck_after)
    }

    /// A number for an open file.
    pub(super) fn open_file(&self) -> u64 {
        self.files.fetch_add(1, Relaxed)
    }

    /// Does `work` when the device has a slot for it. Also returns how many of the written bytes
    /// are only in the page cache.
    pub(super) async fn run<T>(
        self: &Arc<DeviceQueue>,
        request: Request,
        work: impl Future<Output = Result<T>>,
    ) -> (Result<T>, u64) {
        let admitted = self.admit(request).await;
        let result = work.await;
        let outcome = match &result {
            Ok(_) => Outcome::Done,
            Err(Error::Io { .. }) => Outcome::DeviceError,
            Err(_) => Outcome::OtherError,
        };
        let unsynced = admitted.finish(outcome);
        (result, unsynced)
    }

    /// A writer is dropped with this many bytes in the page cache.
    pub(super) fn forget_unsynced(&self, bytes: u64) {
        let mut state = self.state();
        state.unsynced_bytes = state.unsynced_bytes.saturating_sub(bytes);
    }

    async fn admit(self: &Arc<DeviceQueue>, request: Request) -> Admitted {
        let now = self.clock.monotonic();
        let mut turn = {
            let mut state = self.state();
            let free = state.served.free(&self.limits);
            let writes = request.writes();
            if request.is_exempt() || state.waiting.may_pass(request.class, writes, &free) {
                return self.start(&mut state, request, now, now);
            }
            let (turn, granted) = oneshot::channel();
            state.tickets += 1;
            let key = Key { class: request.class, writes, number: state.tickets };
            let cost = request.cost(&self.limits, None);
            state.waiting.insert(key, Waiter { request, cost, arrived: now, turn });
            Turn { queue: self, key, granted }
        };
        (&mut turn.granted).await.expect("a request leaves the queue only with a slot")
    }

    fn start(
        self: &Arc<DeviceQueue>,
        state: &mut State,
        request: Request,
        arrived: Duration,
        now: Duration,
    ) -> Admitted {
        let cost = request.cost(&self.limits, state.position);
        state.position = request.end().or(state.position);
        state.speed.pass(now, state.served.requests > 0);
        state.served.add(&request, cost);
        state.waiting.charge(request.class, cost, &self.limits);
        state.tickets += 1;
        let ticket = state.tickets;
        state.started.insert(ticket, now);
        Admitted { queue: self.clone(), request, ticket, cost, arrived, started: now, ended: false }
    }

    /// Ends a request, and starts the next ones. `outcome` is `None` for a cancelled request.
    fn complete(self: &Arc<DeviceQueue>, ended: &Admitted, outcome: Option<Outcome>) -> u64 {
        let now = self.clock.monotonic();
        let mut next = Vec::new();
        let unsynced = {
            let mut state = self.state();
            let unsynced = state.end(ended, outcome, now);
            while let Some(waiter) = state.next(&self.limits) {
                let admitted = self.start(&mut state, waiter.request, waiter.arrived, now);
                next.push((waiter.turn, admitted));
            }
            unsynced
        };
        for (turn, admitted) in next {
            // A waiter that is gone drops the slot here, which starts the next request.
            let _ = turn.send(admitted);
        }
        unsynced
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admitted {
    fn finish(mut self, outcome: Outcome) -> u64 {
        self.ended = true;
        let queue = self.queue.clone();
        queue.complete(&self, Some(outcome))
    }
}

impl State {
    fn oldest_started(&self) -> Option<Duration> {
        self.started.values().next().copied()
    }

    fn next(&mut self, limits: &DeviceClass) -> Option<Waiter> {
        let free = self.served.free(limits);
        self.waiting.next(&free)
    }

    /// Ends a request. Returns how many of its written bytes are only in the page cache.
    fn end(&mut self, ended: &Admitted, outcome: Option<Outcome>, now: Duration) -> u64 {
        let request = &ended.request;
        self.speed.pass(now, true);
        self.started.remove(&ended.ticket);
        self.served.remove(request, ended.cost);
        let Some(outcome) = outcome else { return 0 };
        self.last_completion = now;
        self.completed += 1;
        self.errors += u64::from(outcome == Outcome::DeviceError);
        if outcome == Outcome::Done {
            self.traffic[request.class.index()] += request.traffic();
        }
        if request.action == Action::Names {
            return 0;
        }
        let (latency, service) = (now.saturating_sub(ended.arrived), now.saturating_sub(ended.started));
        let excess = self.speed.complete(request.bytes, ended.cost, latency, service);
        if request.syncs() {
            self.unsynced_bytes = self.unsynced_bytes.saturating_sub(request.unsynced);
            return 0;
        }
        let unsynced = if request.action == Action::Write { excess.min(request.bytes) } else { 0 };
        self.unsynced_bytes += unsynced;
        unsynced
    }

    fn expected_completion(
        &self,
        limits: &DeviceClass,
        class: IoClass,
        bytes: u64,
        now: Duration,
    ) -> Duration {
        let rate = self.speed.cost_per_s((self.served.requests == 0).then_some(now));
        let served_for = self.oldest_started().map(|started| now.saturating_sub(started));
        let since = self.oldest_started().map_or(now, |started| started.max(self.last_completion));
        let progress = now.saturating_sub(since).as_secs_f64() * rate;
        let served_cost = (self.served.cost as f64 - progress).max(0.0);
        let (waiting_bytes, waiting_cost) = self.waiting.before(class);
        let cost = served_cost + (waiting_cost + self.unsynced_bytes + bytes + limits.access_bytes) as f64;
        // Many small requests at a time overlap their latencies, but not their transfers.
        let transferred = (waiting_bytes + self.unsynced_bytes + bytes) as f64;
        let seconds = (cost / rate).max(transferred / limits.max_bytes_per_s as f64);
        Duration::from_secs_f64(seconds).max(served_for.unwrap_or_default())
    }
}

impl Served {
    fn free(&self, limits: &DeviceClass) -> FreeSlots {
        let served = self.requests - self.names;
        FreeSlots {
            any: served < limits.max_requests.max(1),
            for_share: served - self.logs < limits.max_requests.max(1),
            background: self.background < limits.max_background.max(1),
            writer: self.writers < limits.max_writers.max(1),
        }
    }

    fn add(&mut self, request: &Request, cost: u64) {
        self.requests += 1;
        self.bytes += request.bytes;
        self.cost += cost;
        if let Some(count) = self.limited(request) {
            *count += 1;
            return;
        }
        self.background += usize::from(request.class.is_background());
        self.writers += usize::from(request.writes());
    }

    fn remove(&mut self, request: &Request, cost: u64) {
        self.requests -= 1;
        self.bytes -= request.bytes;
        self.cost -= cost;
        if let Some(count) = self.limited(request) {
            *count -= 1;
            return;
        }
        self.background -= usize::from(request.class.is_background());
        self.writers -= usize::from(request.writes());
    }

    /// The count of an exempt request.
    fn limited(&mut self, request: &Request) -> Option<&mut usize> {
        match request.is_exempt() {
            true if request.action == Action::Names => Some(&mut self.names),
            true => Some(&mut self.logs),
            false => None,
        }
    }
}
