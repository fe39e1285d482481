//! Which writes may be read: sequence ids are given out here, and the read point follows what the log made durable.
//!
//! A write draws its sequence id and joins the log's queue under the region's publish lock, so the order of ids, of the
//! log and of the memstore is one. The log tells the edits of a region as committed in that same order; only then does
//! the read point move over them, and only then is the writer answered. Invariants:
//!
//! * `read_point <= write_point`; both only grow.
//! * All writes up to the read point are durable (or were asked not to be) and wholly in the memstore or in files.
//! * After a failed log the read point stands still for ever and every waiter, present or later, gets the error.
//!
//! Not here: the publish lock itself and what is done under it (`region::write`).

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::error::{Error, Result};

/// Sequence ids, the read point, who waits for it and who reads at an older one.
pub struct Mvcc {
    // The last id given out. Changed under the region's publish lock only.
    write_point: AtomicU64,
    // Changed under `parties` only; read without.
    read_point: AtomicU64,
    parties: Mutex<Parties>,
    // Set once `Parties::failed` is.
    has_failed: AtomicBool,
}

#[derive(Default)]
struct Parties {
    // By sequence id, then ticket: all up to the read point are woken together.
    waiting: BTreeMap<(u64, u64), Waker>,
    next_ticket: u64,
    // Registered readers: read points in order, each with a count. A vector, since a map would allocate for every get.
    readers: Vec<(u64, usize)>,
    failed: Option<Error>,
}

impl Mvcc {
    /// Begins behind `last`, the highest id that is in use already.
    pub fn new(last: u64) -> Arc<Mvcc> {
        Arc::new(Mvcc {
            write_point: AtomicU64::new(last),
            read_point: AtomicU64::new(last),
            parties: Mutex::default(),
            has_failed: AtomicBool::new(false),
        })
    }

    /// Begins anew behind `last`: a region being opened learns late which ids were used.
    ///
    /// # Panics
    /// If ids were given out already.
    pub(crate) fn begin(&self, last: u64) {
        let _parties = self.parties();
        assert_eq!(self.write_point(), self.read_point(), "no writes before the region is open");
        self.write_point.store(last, Ordering::Release);
        self.read_point.store(last, Ordering::Release);
    }

    /// The next sequence id.
    ///
    /// REQUIRES: the region's publish lock, held until the id is in the log's queue.
    pub fn next_seq_id(&self) -> u64 {
        self.write_point.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The last sequence id given out.
    pub fn write_point(&self) -> u64 {
        self.write_point.load(Ordering::Acquire)
    }

    /// The newest write that may be read.
    pub fn read_point(&self) -> u64 {
        self.read_point.load(Ordering::Acquire)
    }

    /// Whether the log still holds.
    ///
    /// # Errors
    /// The log's, once it has failed.
    pub fn check(&self) -> Result<()> {
        // Asked for on every read and write, so it is no lock that answers.
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        self.parties().failed.clone().map_or(Ok(()), Err)
    }

    /// Completes when the read point has reached `seq_id`.
    ///
    /// # Errors
    /// [`Error::Log`] if the log failed before.
    pub fn wait_visible(self: &Arc<Mvcc>, seq_id: u64) -> impl Future<Output = Result<()>> + Send + use<> {
        Visible { mvcc: self.clone(), seq_id, ticket: None }
    }

    /// Registers a reader at `read_point`, or at the newest one: what it may see is not dropped by a flush or a
    /// compaction that begins while the guard lives.
    pub fn register_reader(self: &Arc<Mvcc>, read_point: Option<u64>) -> ReadGuard {
        let mut parties = self.parties();
        // Under the lock: a flush that asks for the smallest read point now sees this reader or comes before it.
        let read_point = read_point.unwrap_or_else(|| self.read_point());
        match parties.readers.binary_search_by_key(&read_point, |(known, _)| *known) {
            Ok(at) => parties.readers[at].1 += 1,
            Err(at) => parties.readers.insert(at, (read_point, 1)),
        }
        ReadGuard { mvcc: self.clone(), read_point }
    }

    /// The oldest read point of a registered reader, or the newest one if there are none. What no reader at or behind
    /// it can see may be dropped.
    pub fn smallest_read_point(&self) -> u64 {
        let parties = self.parties();
        let oldest = parties.readers.first().map_or(u64::MAX, |(read_point, _)| *read_point);
        oldest.min(self.read_point())
    }

    /// Moves the read point to `seq_id` and wakes who waited for it. Called in the order of ids.
    fn advance(&self, seq_id: u64) {
        let mut parties = self.parties();
        assert!(seq_id > self.read_point(), "the log tells the edits of a region in order, each once");
        // Behind an edit that failed nothing may become visible, whatever the log says of it.
        if parties.failed.is_some() {
            return;
        }
        self.read_point.store(seq_id, Ordering::Release);
        let later = parties.waiting.split_off(&(seq_id + 1, 0));
        let ready = std::mem::replace(&mut parties.waiting, later);
        drop(parties);
        ready.into_values().for_each(Waker::wake);
    }

    /// Stops for ever: all waiters, present and later, get `error`.
    pub(crate) fn fail(&self, error: Error) {
        let mut parties = self.parties();
        parties.failed.get_or_insert(error);
        self.has_failed.store(true, Ordering::Release);
        let waiting = std::mem::take(&mut parties.waiting);
        drop(parties);
        waiting.into_values().for_each(Waker::wake);
    }

    fn parties(&self) -> MutexGuard<'_, Parties> {
        // Every change of `Parties` is one step, so a panic elsewhere leaves it whole.
        self.parties.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl wal::Committed for Mvcc {
    fn committed(&self, seq_id: u64) {
        self.advance(seq_id);
    }

    fn committed_together(&self, edits: &[wal::Edit]) {
        if let Some(last) = edits.last() {
            self.advance(last.seq_id);
        }
    }

    fn failed(&self, _seq_id: u64, error: &wal::Error) {
        self.fail(Error::log(error));
    }
}

/// A registered reader; dropping it ends the registration.
pub struct ReadGuard {
    mvcc: Arc<Mvcc>,
    read_point: u64,
}

impl ReadGuard {
    /// The newest write that the reader may see.
    pub fn read_point(&self) -> u64 {
        self.read_point
    }
}

impl Drop for ReadGuard {
    fn drop(&mut self) {
        let mut parties = self.mvcc.parties();
        let found = parties.readers.binary_search_by_key(&self.read_point, |(known, _)| *known);
        let at = found.expect("registered as long as its guard lives");
        parties.readers[at].1 -= 1;
        if parties.readers[at].1 == 0 {
            parties.readers.remove(at);
        }
    }
}

/// The future of [`Mvcc::wait_visible`].
struct Visible {
    mvcc: Arc<Mvcc>,
    seq_id: u64,
    ticket: Option<u64>,
}

impl Future for Visible {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        if self.mvcc.read_point() >= self.seq_id {
            return Poll::Ready(Ok(()));
        }
        let mvcc = self.mvcc.clone();
        let mut parties = mvcc.parties();
        // Again, now that the read point cannot move.
        if mvcc.read_point() >= self.seq_id {
            return Poll::Ready(Ok(()));
        }
        if let Some(error) = &parties.failed {
            return Poll::Ready(Err(error.clone()));
        }
        let ticket = *self.ticket.get_or_insert_with(|| {
            parties.next_ticket += 1;
            parties.next_ticket
        });
        parties.waiting.insert((self.seq_id, ticket), context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Visible {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.mvcc.parties().waiting.remove(&(self.seq_id, ticket));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(future: &mut Pin<Box<impl Future<Output = Result<()>>>>) -> Poll<Result<()>> {
        future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_write_is_visible_when_it_and_all_before_it_are_committed() {
        let mvcc = Mvcc::new(10);
        assert_eq!((mvcc.next_seq_id(), mvcc.next_seq_id()), (11, 12));
        let mut second = Box::pin(mvcc.wait_visible(12));
        assert!(poll(&mut second).is_pending());
        mvcc.advance(11);
        assert_eq!(mvcc.read_point(), 11);
        assert!(poll(&mut second).is_pending());
        mvcc.advance(12);
        assert!(matches!(poll(&mut second), Poll::Ready(Ok(()))));
        assert!(mvcc.parties().waiting.is_empty());
    }

    #[test]
    fn waiters_given_up_leave_nothing_behind() {
        let mvcc = Mvcc::new(0);
        let mut waiting = Box::pin(mvcc.wait_visible(mvcc.next_seq_id()));
        assert!(poll(&mut waiting).is_pending());
        drop(waiting);
        assert!(mvcc.parties().waiting.is_empty());
    }

    #[test]
    fn a_failed_log_fails_present_and_later_waiters_but_not_what_was_visible() {
        let mvcc = Mvcc::new(0);
        mvcc.next_seq_id();
        mvcc.next_seq_id();
        let mut present = Box::pin(mvcc.wait_visible(2));
        assert!(poll(&mut present).is_pending());
        mvcc.advance(1);
        mvcc.fail(Error::log("disk gone"));
        assert!(matches!(poll(&mut present), Poll::Ready(Err(Error::Log { .. }))));
        let mut later = Box::pin(mvcc.wait_visible(2));
        assert!(matches!(poll(&mut later), Poll::Ready(Err(Error::Log { .. }))));
        let mut before = Box::pin(mvcc.wait_visible(1));
        assert!(matches!(poll(&mut before), Poll::Ready(Ok(()))));
        mvcc.advance(2);
        assert_eq!(mvcc.read_point(), 1);
        assert!(mvcc.check().is_err() && Mvcc::new(0).check().is_ok());
    }

    #[test]
    fn the_smallest_read_point_is_the_oldest_readers() {
        let mvcc = Mvcc::new(5);
        let old = mvcc.register_reader(None);
        mvcc.next_seq_id();
        mvcc.advance(6);
        let new = mvcc.register_reader(None);
        let twin = mvcc.register_reader(Some(5));
        assert_eq!((old.read_point(), new.read_point(), mvcc.smallest_read_point()), (5, 6, 5));
        drop(old);
        assert_eq!(mvcc.smallest_read_point(), 5);
        drop(twin);
        assert_eq!(mvcc.smallest_read_point(), 6);
        drop(new);
        assert_eq!(mvcc.smallest_read_point(), 6);
    }
}
