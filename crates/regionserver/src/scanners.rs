//! Open scanners between client calls: ids, call sequence numbers, leases.
//!
//! A call takes its scanner out and puts it back at the end, so the lease does not run during a
//! call. A scanner with an expired lease is dropped. The id of a scanner that ended normally is
//! remembered for one lease, because clients close such scanners again (asynchbase always does).
//!
//! A client that lost the response to a call, or could not decode it, repeats the call with the
//! same sequence number. It must not mistake the response for that of the next call. So an ended
//! scanner keeps its expected number, and the repeated call fails instead of returning no rows.
//!
//! Source: HBase `RSRpcServices`; the responses were compared with those of a running HBase.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Why a call cannot use a scanner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeError {
    /// The scanner was never opened here, or its lease expired.
    Unknown,
    /// The scanner ended normally, so there are no more rows to return.
    Ended,
    /// The call has the wrong sequence number.
    OutOfOrder {
        /// The sequence number that the scanner expects.
        expected: u64,
    },
    /// The scanner has ended, and the call has the wrong sequence number, so it repeats an earlier
    /// call.
    OutOfOrderEnded {
        /// The sequence number that the scanner expects.
        expected: u64,
    },
    /// Another call is using it.
    InUse,
    /// Its region is not online here any more. Reported only once.
    Moved,
}

/// Maximum number of ended scanners whose ids are remembered. Beyond this, an ended scanner is
/// forgotten immediately.
const ENDED_MAX: usize = 1 << 20;

/// The open scanners of a server; `S` is the state that the next call needs.
pub struct Scanners<S> {
    lease: Duration,
    open_max: usize,
    next_id: AtomicU64,
    slots: Mutex<Slots<S>>,
}

/// The slots by id. An ended scanner keeps its slot for one lease.
struct Slots<S> {
    by_id: HashMap<u64, Slot<S>>,
    ended: usize,
}

struct Slot<S> {
    state: State<S>,
    next_call_seq: u64,
    expires: Duration,
}

enum State<S> {
    Idle(S),
    InUse,
    Ended,
    // Its region has moved. Counts as ended.
    Moved,
}

impl<S> Slots<S> {
    fn open(&self) -> usize {
        debug_assert!(self.ended <= self.by_id.len(), "an ended scanner has a slot");
        self.by_id.len() - self.ended
    }
}

impl<S> Scanners<S> {
    /// Ids count up from `first_id`, which must be greater than the ids of any earlier run.
    pub fn new(lease: Duration, open_max: usize, first_id: u64) -> Scanners<S> {
        Scanners {
            lease,
            open_max,
            next_id: AtomicU64::new(first_id),
            slots: Mutex::new(Slots { by_id: HashMap::new(), ended: 0 }),
        }
    }

    /// The time after which an idle scanner expires.
    pub fn lease(&self) -> Duration {
        self.lease
    }

    /// Returns a new id for the call that opens the scanner, and marks it in use; `None` if too
    /// many scanners are open. `has_call_seq`: the call has a sequence number, which is then 0.
    pub fn begin(&self, has_call_seq: bool, now: Duration) -> Option<u64> {
        let mut slots = self.lock();
        if slots.open() >= self.open_max {
            return None;
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let next_call_seq = u64::from(has_call_seq);
        let slot = Slot { state: State::InUse, next_call_seq, expires: now + self.lease };
        let earlier = slots.by_id.insert(id, slot);
        debug_assert!(earlier.is_none(), "no two scanners have the same id");
        Some(id)
    }

    /// Takes scanner `id` out for a call. Checks `call_seq` if the client sent one.
    ///
    /// # Errors
    /// The [`TakeError`] value determines the client's response. The scanner stays unchanged.
    pub fn take(&self, id: u64, call_seq: Option<u64>) -> Result<S, TakeError> {
        let mut slots = self.lock();
        let slot = slots.by_id.get_mut(&id).ok_or(TakeError::Unknown)?;
        // After the call that ended a scanner, HBase expects one more than the next number. It
        // treats every other number as a repeated call.
        let expected = slot.next_call_seq + u64::from(matches!(slot.state, State::Ended));
        let is_due = call_seq.is_none_or(|seq| seq == expected);
        match std::mem::replace(&mut slot.state, State::InUse) {
            State::InUse => Err(TakeError::InUse),
            State::Moved => {
                slots.by_id.remove(&id);
                slots.ended -= 1;
                Err(TakeError::Moved)
            }
            State::Ended => {
                slot.state = State::Ended;
                Err(if is_due { TakeError::Ended } else { TakeError::OutOfOrderEnded { expected } })
            }
            State::Idle(scanner) if is_due => {
                slot.next_call_seq += u64::from(call_seq.is_some());
                Ok(scanner)
            }
            idle @ State::Idle(_) => {
                slot.state = idle;
                Err(TakeError::OutOfOrder { expected })
            }
        }
    }

    /// Puts a scanner back after a call and renews its lease.
    pub fn put_back(&self, id: u64, scanner: S, now: Duration) {
        if let Some(slot) = self.lock().by_id.get_mut(&id) {
            debug_assert!(matches!(slot.state, State::InUse), "only the call that took a scanner has it");
            slot.state = State::Idle(scanner);
            slot.expires = now + self.lease;
        }
    }

    /// Puts a scanner back after a call that was refused and had no effect. `has_call_seq`: the
    /// call had a sequence number, which is then expected again.
    pub fn put_back_unused(&self, id: u64, scanner: S, has_call_seq: bool, now: Duration) {
        if let Some(slot) = self.lock().by_id.get_mut(&id) {
            debug_assert!(matches!(slot.state, State::InUse), "only the call that took a scanner has it");
            slot.next_call_seq -= u64::from(has_call_seq);
            slot.state = State::Idle(scanner);
            slot.expires = now + self.lease;
        }
    }

    /// Ends a scanner normally. Its id is remembered for one lease.
    pub fn end(&self, id: u64, now: Duration) {
        let mut slots = self.lock();
        if slots.ended >= ENDED_MAX {
            drop(slots);
            return self.forget(id);
        }
        if let Some(slot) = slots.by_id.get_mut(&id) {
            slot.expires = now + self.lease;
            if !matches!(std::mem::replace(&mut slot.state, State::Ended), State::Ended | State::Moved) {
                slots.ended += 1;
            }
        }
    }

    /// Forgets a scanner immediately: later calls get [`TakeError::Unknown`].
    pub fn forget(&self, id: u64) {
        let mut slots = self.lock();
        if slots.by_id.remove(&id).is_some_and(|slot| matches!(slot.state, State::Ended | State::Moved)) {
            slots.ended -= 1;
        }
    }

    /// Drops scanners with an expired lease, and remembered ids that are old enough. Returns the
    /// number of dropped scanners.
    pub fn expire(&self, now: Duration) -> usize {
        let mut slots = self.lock();
        let is_dead = |slot: &Slot<S>| slot.expires <= now && !matches!(slot.state, State::InUse);
        let dead: Vec<_> = slots.by_id.extract_if(|_, slot| is_dead(slot)).collect();
        let idle = dead.iter().filter(|(_, slot)| matches!(slot.state, State::Idle(_))).count();
        slots.ended -= dead.len() - idle;
        drop(slots);
        idle
    }

    /// Drops the idle scanners that `is_dead` selects, because their region has moved or closed.
    /// Their ids are remembered for one lease. The next call gets [`TakeError::Moved`], as in
    /// HBase, and the client continues on another server.
    pub fn forget_where(&self, now: Duration, is_dead: impl Fn(&S) -> bool) {
        let mut slots = self.lock();
        let mut dead = Vec::new();
        let Slots { by_id, ended } = &mut *slots;
        for slot in by_id.values_mut() {
            if matches!(&slot.state, State::Idle(scanner) if is_dead(scanner)) {
                dead.push(std::mem::replace(&mut slot.state, State::Moved));
                slot.expires = now + self.lease;
                *ended += 1;
            }
        }
        drop(slots);
        // Release the scanners' resources outside the lock.
        drop(dead);
    }

    /// Calls `work` on each idle scanner under the lock and collects the results.
    pub fn with_idle<T>(&self, mut work: impl FnMut(&mut S) -> Option<T>) -> Vec<T> {
        let mut slots = self.lock();
        let idle = slots.by_id.values_mut().filter_map(|slot| match &mut slot.state {
            State::Idle(scanner) => Some(scanner),
            State::InUse | State::Ended | State::Moved => None,
        });
        idle.filter_map(&mut work).collect()
    }

    /// The number of open scanners.
    pub fn open_count(&self) -> usize {
        self.lock().open()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Slots<S>> {
        self.slots.lock().expect("no holder of this lock panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(60);
    const NOW: Duration = Duration::from_secs(1000);

    fn one_open() -> (Scanners<&'static str>, u64) {
        let scanners = Scanners::new(LEASE, 10, 77);
        let id = scanners.begin(false, NOW).unwrap();
        scanners.put_back(id, "rows", NOW);
        (scanners, id)
    }

    #[test]
    fn numbered_calls_must_be_in_order() {
        let (scanners, id) = one_open();
        assert_eq!(scanners.take(id, Some(0)), Ok("rows"));
        scanners.put_back(id, "rows", NOW);
        assert_eq!(scanners.take(id, Some(0)), Err(TakeError::OutOfOrder { expected: 1 }));
        assert_eq!(scanners.take(id, None), Ok("rows"), "unnumbered calls are not checked");
        assert_eq!(scanners.take(id, Some(1)), Err(TakeError::InUse));
        assert_eq!(scanners.take(id, Some(7)), Err(TakeError::InUse));
    }

    #[test]
    fn a_call_that_repeats_the_last_one_is_refused() {
        let (scanners, id) = one_open();
        let rows = scanners.take(id, Some(0)).unwrap();
        scanners.put_back(id, rows, NOW);
        scanners.take(id, Some(1)).unwrap();
        scanners.end(id, NOW);
        for repeated in [0, 1, 2] {
            assert_eq!(scanners.take(id, Some(repeated)), Err(TakeError::OutOfOrderEnded { expected: 3 }));
        }
        assert_eq!(scanners.take(id, Some(3)), Err(TakeError::Ended));
    }

    #[test]
    fn an_ended_scanner_is_remembered_for_a_lease() {
        let (scanners, id) = one_open();
        scanners.end(id, NOW);
        assert_eq!(scanners.take(id, None), Err(TakeError::Ended));
        for repeated in [0, 2, 5] {
            let refused = TakeError::OutOfOrderEnded { expected: 1 };
            assert_eq!(scanners.take(id, Some(repeated)), Err(refused));
        }
        assert_eq!(scanners.take(id, Some(1)), Err(TakeError::Ended));
        assert_eq!(scanners.take(id, Some(1)), Err(TakeError::Ended), "an ended scanner counts no calls");
        assert_eq!(scanners.expire(NOW + LEASE), 0);
        assert_eq!(scanners.take(id, None), Err(TakeError::Unknown));
    }

    #[test]
    fn leases_run_only_between_calls() {
        let (scanners, id) = one_open();
        let rows = scanners.take(id, None).unwrap();
        assert_eq!(scanners.expire(NOW + 2 * LEASE), 0, "in use by a call");
        scanners.put_back(id, rows, NOW + 2 * LEASE);
        assert_eq!(scanners.expire(NOW + 3 * LEASE), 1);
        assert_eq!(scanners.take(id, None), Err(TakeError::Unknown));
    }

    #[test]
    fn a_refused_call_keeps_its_number() {
        let (scanners, id) = one_open();
        let rows = scanners.take(id, Some(0)).unwrap();
        scanners.put_back_unused(id, rows, true, NOW);
        let rows = scanners.take(id, Some(0)).unwrap();
        scanners.put_back(id, rows, NOW);
        let rows = scanners.take(id, None).unwrap();
        scanners.put_back_unused(id, rows, false, NOW);
        assert_eq!(scanners.take(id, Some(1)), Ok("rows"));
    }

    #[test]
    fn a_moved_scanner_is_reported_once() {
        let (scanners, id) = one_open();
        scanners.forget_where(NOW, |_| true);
        assert_eq!(scanners.open_count(), 0);
        assert_eq!(scanners.take(id, Some(0)), Err(TakeError::Moved));
        assert_eq!(scanners.take(id, Some(0)), Err(TakeError::Unknown));
        let (scanners, id) = one_open();
        scanners.forget_where(NOW, |_| true);
        assert_eq!(scanners.expire(NOW + LEASE), 0);
        assert_eq!(scanners.take(id, Some(0)), Err(TakeError::Unknown));
        assert_eq!(scanners.open_count(), 0);
    }

    #[test]
    fn only_idle_scanners_are_visited() {
        let (scanners, idle) = one_open();
        let in_use = scanners.begin(false, NOW).unwrap();
        let ended = scanners.begin(false, NOW).unwrap();
        scanners.end(ended, NOW);
        let visited = scanners.with_idle(|rows| Some(std::mem::replace(rows, "seen")));
        assert_eq!(visited, ["rows"]);
        scanners.put_back(in_use, "more", NOW);
        assert_eq!(scanners.take(idle, None), Ok("seen"));
        assert_eq!(scanners.with_idle(|rows| (*rows == "seen").then_some(())), []);
    }

    #[test]
    fn open_scanners_are_limited() {
        let scanners = Scanners::<()>::new(LEASE, 1, 0);
        let first = scanners.begin(false, NOW).unwrap();
        assert_eq!(scanners.begin(false, NOW), None);
        scanners.end(first, NOW);
        assert!(scanners.begin(false, NOW).is_some());
    }
}
