//! Open scanners between the calls of their clients: ids, call sequence numbers, leases.
//!
//! A call takes its scanner out and puts it back when it is done, so the lease does not run while a call does. A scanner
//! whose lease runs out is dropped. Ids of scanners that ended in good order are remembered for one lease, because
//! clients close them once more (and asynchbase always does).
//!
//! A client that lost the answer of a call, or could not decode it, sends the call's number again. It
//! must not take the answer to that for the next one: an ended scanner keeps the number that is due,
//! so that the repeated call fails instead of returning no rows.
//!
//! Source: HBase `RSRpcServices`; the answers were compared with a running one.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Why a scanner cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Never opened here, or its lease ran out.
    Unknown,
    /// Ended in good order: the call needs no rows any more.
    Ended,
    /// The call is not the next one: `expected` was due.
    OutOfOrder {
        /// The sequence number that was due.
        expected: u64,
    },
    /// The scanner ended, and the call repeats one that it had answered: `expected` was due.
    OutOfOrderEnded {
        /// The sequence number that was due.
        expected: u64,
    },
    /// Another call is using it.
    InUse,
    /// Its region is not served here any more; said once.
    Moved,
}

/// Ids of ended scanners that are remembered at most; beyond, a scanner that ends is forgotten at once.
const ENDED_MAX: usize = 1 << 20;

/// The open scanners of a server; `S` is what a call needs to go on.
pub struct Scanners<S> {
    lease: Duration,
    open_max: usize,
    next_id: AtomicU64,
    slots: Mutex<Slots<S>>,
}

/// The slots by id. Scanners that ended have one too, for a lease.
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
    // Its region is gone. Counts as ended.
    Moved,
}

impl<S> Slots<S> {
    fn open(&self) -> usize {
        self.by_id.len() - self.ended
    }
}

impl<S> Scanners<S> {
    /// Ids begin at a number that no earlier run of the server used: they count up from `first_id`.
    pub fn new(lease: Duration, open_max: usize, first_id: u64) -> Scanners<S> {
        Scanners {
            lease,
            open_max,
            next_id: AtomicU64::new(first_id),
            slots: Mutex::new(Slots { by_id: HashMap::new(), ended: 0 }),
        }
    }

    /// How long a client may be silent.
    pub fn lease(&self) -> Duration {
        self.lease
    }

    /// A new id, in use by the call that opens the scanner; `None` if there are too many open ones.
    /// `numbered` says whether that call has a number, which is 0 then.
    pub fn begin(&self, numbered: bool, now: Duration) -> Option<u64> {
        let mut slots = self.lock();
        if slots.open() >= self.open_max {
            return None;
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let next_call_seq = u64::from(numbered);
        slots.by_id.insert(id, Slot { state: State::InUse, next_call_seq, expires: now + self.lease });
        Some(id)
    }

    /// Takes scanner `id` out for a call; `call_seq` is checked if the client sent one.
    ///
    /// # Errors
    /// [`Refused`] tells which answer the client gets; the scanner stays as it is.
    pub fn take(&self, id: u64, call_seq: Option<u64>) -> Result<S, Refused> {
        let mut slots = self.lock();
        let slot = slots.by_id.get_mut(&id).ok_or(Refused::Unknown)?;
        // The call that ended a scanner was the last one due: HBase takes only the number after the
        // next for a call that is not a repetition.
        let expected = slot.next_call_seq + u64::from(matches!(slot.state, State::Ended));
        let is_due = call_seq.is_none_or(|seq| seq == expected);
        match std::mem::replace(&mut slot.state, State::InUse) {
            State::InUse => Err(Refused::InUse),
            State::Moved => {
                slots.by_id.remove(&id);
                slots.ended -= 1;
                Err(Refused::Moved)
            }
            State::Ended => {
                slot.state = State::Ended;
                Err(if is_due { Refused::Ended } else { Refused::OutOfOrderEnded { expected } })
            }
            State::Idle(scanner) if is_due => {
                slot.next_call_seq += u64::from(call_seq.is_some());
                Ok(scanner)
            }
            idle @ State::Idle(_) => {
                slot.state = idle;
                Err(Refused::OutOfOrder { expected })
            }
        }
    }

    /// Puts a scanner back after a call and begins its lease anew.
    pub fn put_back(&self, id: u64, scanner: S, now: Duration) {
        if let Some(slot) = self.lock().by_id.get_mut(&id) {
            slot.state = State::Idle(scanner);
            slot.expires = now + self.lease;
        }
    }

    /// Puts a scanner back from a call that was refused and did nothing; `numbered` says whether it had a number, which
    /// is due again then.
    pub fn give_back(&self, id: u64, scanner: S, numbered: bool, now: Duration) {
        if let Some(slot) = self.lock().by_id.get_mut(&id) {
            slot.next_call_seq -= u64::from(numbered);
            slot.state = State::Idle(scanner);
            slot.expires = now + self.lease;
        }
    }

    /// Ends a scanner in good order; its id is remembered for one lease.
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

    /// Forgets a scanner at once: a later call gets [`Refused::Unknown`].
    pub fn forget(&self, id: u64) {
        let mut slots = self.lock();
        if slots.by_id.remove(&id).is_some_and(|slot| matches!(slot.state, State::Ended | State::Moved)) {
            slots.ended -= 1;
        }
    }

    /// Drops the scanners whose lease ran out and the ids remembered long enough; returns how many scanners.
    pub fn expire(&self, now: Duration) -> usize {
        let mut slots = self.lock();
        let is_dead = |slot: &Slot<S>| slot.expires <= now && !matches!(slot.state, State::InUse);
        let dead: Vec<_> = slots.by_id.extract_if(|_, slot| is_dead(slot)).collect();
        let idle = dead.iter().filter(|(_, slot)| matches!(slot.state, State::Idle(_))).count();
        slots.ended -= dead.len() - idle;
        drop(slots);
        idle
    }

    /// Drops the idle scanners that `is_dead` picks (their region moved or closed). Their ids are remembered for one
    /// lease: the next call gets [`Refused::Moved`], as from HBase, and goes on elsewhere.
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
        // Behind the lock: what scanners hold is let go of.
        drop(dead);
    }

    /// Does something to all idle scanners, under the lock, and gives what comes of it.
    pub fn with_idle<T>(&self, mut work: impl FnMut(&mut S) -> Option<T>) -> Vec<T> {
        let mut slots = self.lock();
        let idle = slots.by_id.values_mut().filter_map(|slot| match &mut slot.state {
            State::Idle(scanner) => Some(scanner),
            State::InUse | State::Ended | State::Moved => None,
        });
        idle.filter_map(&mut work).collect()
    }

    /// Scanners that are open.
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

    fn one() -> (Scanners<&'static str>, u64) {
        let scanners = Scanners::new(LEASE, 10, 77);
        let id = scanners.begin(false, NOW).unwrap();
        scanners.put_back(id, "rows", NOW);
        (scanners, id)
    }

    #[test]
    fn calls_come_in_order_if_they_are_numbered() {
        let (scanners, id) = one();
        assert_eq!(scanners.take(id, Some(0)), Ok("rows"));
        scanners.put_back(id, "rows", NOW);
        assert_eq!(scanners.take(id, Some(0)), Err(Refused::OutOfOrder { expected: 1 }));
        assert_eq!(scanners.take(id, None), Ok("rows"), "unnumbered calls are not checked");
        assert_eq!(scanners.take(id, Some(1)), Err(Refused::InUse));
        assert_eq!(scanners.take(id, Some(7)), Err(Refused::InUse));
    }

    #[test]
    fn a_call_that_repeats_the_last_one_is_refused() {
        let (scanners, id) = one();
        let rows = scanners.take(id, Some(0)).unwrap();
        scanners.put_back(id, rows, NOW);
        scanners.take(id, Some(1)).unwrap();
        scanners.end(id, NOW);
        for repeated in [0, 1, 2] {
            assert_eq!(scanners.take(id, Some(repeated)), Err(Refused::OutOfOrderEnded { expected: 3 }));
        }
        assert_eq!(scanners.take(id, Some(3)), Err(Refused::Ended));
    }

    #[test]
    fn an_ended_scanner_is_remembered_for_a_lease() {
        let (scanners, id) = one();
        scanners.end(id, NOW);
        assert_eq!(scanners.take(id, None), Err(Refused::Ended));
        for repeated in [0, 2, 5] {
            let refused = Refused::OutOfOrderEnded { expected: 1 };
            assert_eq!(scanners.take(id, Some(repeated)), Err(refused));
        }
        assert_eq!(scanners.take(id, Some(1)), Err(Refused::Ended));
        assert_eq!(scanners.take(id, Some(1)), Err(Refused::Ended), "nothing is counted any more");
        assert_eq!(scanners.expire(NOW + LEASE), 0);
        assert_eq!(scanners.take(id, None), Err(Refused::Unknown));
    }

    #[test]
    fn leases_run_only_between_calls() {
        let (scanners, id) = one();
        let rows = scanners.take(id, None).unwrap();
        assert_eq!(scanners.expire(NOW + 2 * LEASE), 0, "a call is using it");
        scanners.put_back(id, rows, NOW + 2 * LEASE);
        assert_eq!(scanners.expire(NOW + 3 * LEASE), 1);
        assert_eq!(scanners.take(id, None), Err(Refused::Unknown));
    }

    #[test]
    fn a_call_that_is_refused_keeps_its_number() {
        let (scanners, id) = one();
        let rows = scanners.take(id, Some(0)).unwrap();
        scanners.give_back(id, rows, true, NOW);
        let rows = scanners.take(id, Some(0)).unwrap();
        scanners.put_back(id, rows, NOW);
        let rows = scanners.take(id, None).unwrap();
        scanners.give_back(id, rows, false, NOW);
        assert_eq!(scanners.take(id, Some(1)), Ok("rows"));
    }

    #[test]
    fn a_scanner_whose_region_is_gone_says_so_once() {
        let (scanners, id) = one();
        scanners.forget_where(NOW, |_| true);
        assert_eq!(scanners.open_count(), 0);
        assert_eq!(scanners.take(id, Some(0)), Err(Refused::Moved));
        assert_eq!(scanners.take(id, Some(0)), Err(Refused::Unknown));
        let (scanners, id) = one();
        scanners.forget_where(NOW, |_| true);
        assert_eq!(scanners.expire(NOW + LEASE), 0);
        assert_eq!(scanners.take(id, Some(0)), Err(Refused::Unknown));
        assert_eq!(scanners.open_count(), 0);
    }

    #[test]
    fn idle_ones_are_visited_and_no_others() {
        let (scanners, idle) = one();
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
    fn there_is_a_most() {
        let scanners = Scanners::<()>::new(LEASE, 1, 0);
        let first = scanners.begin(false, NOW).unwrap();
        assert_eq!(scanners.begin(false, NOW), None);
        scanners.end(first, NOW);
        assert!(scanners.begin(false, NOW).is_some());
    }
}
