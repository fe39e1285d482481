//! A device at work: its queue, its heads, and when each request ends.
//!
//! The model has a time axis of its own. Each request in service has a slot, and the requests of a
//! slot follow each other without gaps or overlaps. Timers are coarse ([`TICK`]), so a request ends
//! up to one tick early on the clock, and a late timer lets the next request of the slot begin in
//! the past. The average rates are therefore exact, while single latencies have the resolution of
//! a tick.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::env::Clock;
use tokio::sync::oneshot;

use super::bus::Bus;
use super::model::{Device, transfer_time};
use super::pauses::Pauses;
use crate::IoClass;

/// Resolution of the runtime's timers.
const TICK: Duration = Duration::from_millis(1);
/// At most this much delay of a timer is made good: two ticks, because the runtime rounds up.
const LATE_MAX: Duration = Duration::from_millis(2);

/// A device of a given model. Several file systems can share it.
pub struct PacedDevice {
    bus: Option<Arc<Bus>>,
    files: AtomicU64,
    state: Mutex<State>,
}

/// Counters of a device since its creation, and its current queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Calls that read.
    pub reads: u64,
    /// Calls that wrote, including those that also synced.
    pub writes: u64,
    /// Calls that synced.
    pub syncs: u64,
    /// Calls of other kinds, such as creating a file.
    pub other_calls: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written, including reserved zeros.
    pub written_bytes: u64,
    /// Movements of the heads.
    pub seeks: u64,
    /// Requests that wait now.
    pub waiting: usize,
    /// Requests in service now.
    pub in_service: usize,
    /// Maximum number of requests that waited at a time.
    pub max_waiting: usize,
    /// Time with at least one request in service, including the planned time of current ones.
    pub busy: Duration,
}

/// A consecutive part of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) file: u64,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Read(Extent),
    Write(Extent),
    WriteAndSync(Extent),
    Sync,
    Other,
}

struct State {
    model: Device,
    idle: Vec<Slot>,
    in_service: usize,
    // By rank (if requests are ordered by class) and arrival.
    waiting: BTreeMap<(usize, u64), oneshot::Sender<InService>>,
    arrivals: u64,
    // File and offset after the previous access.
    position: (u64, u64),
    // When the bandwidth, and the heads, are free.
    free_at: Duration,
    busy_until: Duration,
    pauses: Option<Pauses>,
    counters: DeviceCounters,
}

/// One of the requests that the device serves at a time.
#[derive(Clone, Copy, Default)]
struct Slot {
    // End of its last request on the model's time axis.
    free_at: Duration,
    // How late the timer of that request was.
    late: Duration,
}

/// Occupies a slot until it is dropped.
struct InService {
    device: Arc<PacedDevice>,
    slot: Slot,
}

impl Drop for InService {
    fn drop(&mut self) {
        self.device.release(self.slot);
    }
}

impl PacedDevice {
    /// An idle device.
    pub fn new(model: Device) -> Arc<PacedDevice> {
        PacedDevice::with(model, None)
    }

    /// An idle device that shares the bandwidth of `bus` with other devices.
    pub fn on_bus(model: Device, bus: Arc<Bus>) -> Arc<PacedDevice> {
        PacedDevice::with(model, Some(bus))
    }

    fn with(model: Device, bus: Option<Arc<Bus>>) -> Arc<PacedDevice> {
        let state = State {
            pauses: model.stalls.clone().map(|stalls| Pauses::new(stalls, Duration::ZERO)),
            model,
            idle: Vec::new(),
            in_service: 0,
            waiting: BTreeMap::new(),
            arrivals: 0,
            position: (0, 0),
            free_at: Duration::ZERO,
            busy_until: Duration::ZERO,
            counters: DeviceCounters::default(),
        };
        // File 0 is the position of a device that was not accessed yet.
        Arc::new(PacedDevice { bus, files: AtomicU64::new(1), state: Mutex::new(state) })
    }

    /// Replaces the model, for requests whose service begins later. `now` is a time on the
    /// monotonic clock of the device's file systems; new stalls begin after it.
    pub fn set_model(&self, model: Device, now: Duration) {
        let mut state = self.state();
        if state.model.stalls != model.stalls {
            state.pauses = model.stalls.clone().map(|stalls| Pauses::new(stalls, now));
        }
        state.model = model;
    }

    /// The counters, at this moment.
    pub fn counters(&self) -> DeviceCounters {
        let state = self.state();
        DeviceCounters { waiting: state.waiting.len(), in_service: state.in_service, ..state.counters }
    }

    /// A number for an open file.
    pub(super) fn open_file(&self) -> u64 {
        self.files.fetch_add(1, Relaxed)
    }

    /// Does `work` as a request of the device: it ends when both `work` and the modelled service
    /// have ended.
    pub(super) async fn serve<T>(
        self: &Arc<PacedDevice>,
        clock: &dyn Clock,
        class: IoClass,
        action: Action,
        work: impl Future<Output = T>,
    ) -> T {
        let mut in_service = self.admit(class).await;
        let ends = self.begin(&mut in_service.slot, action, clock.monotonic());
        let result = work.await;
        let left = ends.saturating_sub(clock.monotonic());
        if left >= TICK {
            clock.sleep(left).await;
        }
        in_service.slot.late = clock.monotonic().saturating_sub(ends).min(LATE_MAX);
        result
    }

    async fn admit(self: &Arc<PacedDevice>, class: IoClass) -> InService {
        let turn = {
            let mut state = self.state();
            match state.take_slot() {
                Some(slot) => return InService { device: self.clone(), slot },
                None => state.wait(class),
            }
        };
        turn.await.expect("a waiting request is removed only with a slot")
    }

    fn release(self: &Arc<PacedDevice>, slot: Slot) {
        let next = self.state().release(slot);
        if let Some(next) = next {
            // If its receiver is gone, the slot is dropped here, and released to the next one.
            let _ = next.send(InService { device: self.clone(), slot });
        }
    }

    /// Plans the service of a request; returns when it ends.
    fn begin(&self, slot: &mut Slot, action: Action, now: Duration) -> Duration {
        let mut state = self.state();
        let start = slot.free_at.max(now.saturating_sub(slot.late));
        // The slots are up to this much late. Bandwidth that was free meanwhile is still theirs.
        let from = now.saturating_sub(LATE_MAX);
        let mut end = state.plan(start, from, action);
        let bytes = action.extent().map_or(0, |extent| extent.bytes);
        if let Some(bus) = &self.bus {
            end = end.max(bus.transfer(from, bytes));
        }
        state.count(action, start, end);
        *slot = Slot { free_at: end, late: Duration::ZERO };
        end
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The idle slot that was used last: a caller whose requests follow each other gets the same
    /// slot again, although its previous request ended early on the clock.
    fn take_slot(&mut self) -> Option<Slot> {
        if self.in_service >= self.model.queue_depth.max(1) {
            return None;
        }
        self.in_service += 1;
        let last = (0..self.idle.len()).max_by_key(|index| self.idle[*index].free_at);
        Some(last.map_or_else(Slot::default, |index| self.idle.swap_remove(index)))
    }

    fn wait(&mut self, class: IoClass) -> oneshot::Receiver<InService> {
        let (turn, receiver) = oneshot::channel();
        let rank = if self.model.by_class { class.index() } else { 0 };
        self.arrivals += 1;
        self.waiting.insert((rank, self.arrivals), turn);
        self.counters.max_waiting = self.counters.max_waiting.max(self.waiting.len());
        receiver
    }

    /// Frees a slot, or returns the waiting request that gets it.
    fn release(&mut self, slot: Slot) -> Option<oneshot::Sender<InService>> {
        while self.in_service <= self.model.queue_depth.max(1) {
            match self.waiting.pop_first() {
                Some((_, next)) if next.is_closed() => {}
                Some((_, next)) => return Some(next),
                None => break,
            }
        }
        self.in_service -= 1;
        self.idle.push(slot);
        None
    }

    fn plan(&mut self, start: Duration, from: Duration, action: Action) -> Duration {
        let seek = self.move_heads(action);
        let model = &self.model;
        let transfer = match action {
            Action::Read(extent) => transfer_time(extent.bytes, model.read_bytes_per_s),
            Action::Write(extent) | Action::WriteAndSync(extent) => {
                transfer_time(extent.bytes, model.write_bytes_per_s)
            }
            Action::Sync | Action::Other => Duration::ZERO,
        };
        let sync = if action.syncs() { model.sync } else { Duration::ZERO };
        let exclusive = seek + transfer + if model.is_spindle() { sync } else { Duration::ZERO };
        let service = model.call + seek + transfer + sync;
        self.free_at = self.after(from.max(self.free_at), exclusive);
        self.after(start, service).max(self.free_at)
    }

    /// When `work` is done that begins at `from`.
    fn after(&mut self, from: Duration, work: Duration) -> Duration {
        match &mut self.pauses {
            Some(pauses) => pauses.end_of(from, work),
            None => from + work,
        }
    }

    /// Moves the heads to the end of the request; returns how long the movement to its start takes.
    fn move_heads(&mut self, action: Action) -> Duration {
        let Some(extent) = action.extent() else { return Duration::ZERO };
        let is_sequential = self.position == (extent.file, extent.offset);
        self.position = (extent.file, extent.offset.saturating_add(extent.bytes));
        if is_sequential || !self.model.is_spindle() {
            return Duration::ZERO;
        }
        self.counters.seeks += 1;
        self.model.seek
    }

    fn count(&mut self, action: Action, start: Duration, end: Duration) {
        let counters = &mut self.counters;
        match action {
            Action::Read(extent) => {
                counters.reads += 1;
                counters.read_bytes += extent.bytes;
            }
            Action::Write(extent) | Action::WriteAndSync(extent) => {
                counters.writes += 1;
                counters.written_bytes += extent.bytes;
            }
            Action::Sync => {}
            Action::Other => counters.other_calls += 1,
        }
        counters.syncs += u64::from(action.syncs());
        counters.busy += end.saturating_sub(start.max(self.busy_until));
        self.busy_until = self.busy_until.max(end);
    }
}

impl Action {
    fn extent(self) -> Option<Extent> {
        match self {
            Action::Read(extent) | Action::Write(extent) | Action::WriteAndSync(extent) => Some(extent),
            Action::Sync | Action::Other => None,
        }
    }

    fn syncs(self) -> bool {
        matches!(self, Action::Sync | Action::WriteAndSync(_))
    }
}
