//! Sequence ids and read points: which writes readers may see.
//!
//! A write gets its sequence id and enters the log's queue while it holds the region's publish
//! lock. Ids, log entries, and memstore inserts therefore have the same order. The log reports a
//! region's edits as committed in that order. Each report moves the read point past the edit. Only
//! then is the writer acknowledged. Invariants:
//!
//! * `read_point <= write_point`; both only grow.
//! * Every write up to the read point is complete in the memstore or in files. It is durable,
//!   unless its client waived that.
//! * After a log failure the read point never moves again. Every present or later waiter for a
//!   write above the read point gets the error.
//!
//! Not here: the publish lock and the work done under it (`region::write`).

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::error::{Error, Result};

/// Sequence ids, the read point, its waiters, and the registered readers.
pub struct Mvcc {
    // The last assigned id. Changes only under the region's publish lock.
    write_point: AtomicU64,
    // Changes only under the `state` lock; read without it.
    read_point: AtomicU64,
    state: Mutex<WaitersAndReaders>,
    // Set when `WaitersAndReaders::failed` is set.
    has_failed: AtomicBool,
}

#[derive(Default)]
struct WaitersAndReaders {
    // The key is the awaited sequence id and the waiter's ticket.
    waiting: BTreeMap<(u64, u64), Waker>,
    // Number of the last waiter. Distinguishes waiters for the same sequence id.
    last_ticket: u64,
    // The read points of registered readers, ascending, each with its number of readers. A map
    // would allocate memory for every reader.
    readers: Vec<(u64, usize)>,
    failed: Option<Error>,
}

impl Mvcc {
    /// Starts after `last`, the highest id already in use.
    pub fn new(last: u64) -> Arc<Mvcc> {
        Arc::new(Mvcc {
            write_point: AtomicU64::new(last),
            read_point: AtomicU64::new(last),
            state: Mutex::default(),
            has_failed: AtomicBool::new(false),
        })
    }

    /// Continues after `last`, the highest sequence id used before the region was opened. Called
    /// while the region opens.
    ///
    /// # Panics
    /// If an assigned id is not visible yet, or if the read point is greater than `last`.
    pub(crate) fn continue_after(&self, last: u64) {
        let _state = self.state();
        assert_eq!(self.write_point(), self.read_point(), "no writes before the region is open");
        assert!(last >= self.read_point(), "the read point does not go back");
        self.write_point.store(last, Ordering::Release);
        self.read_point.store(last, Ordering::Release);
    }

    /// Assigns the next sequence id.
    ///
    /// The caller must hold the region's publish lock until the id is in the log's queue.
    pub fn next_seq_id(&self) -> u64 {
        self.write_point.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The last assigned sequence id.
    pub fn write_point(&self) -> u64 {
        self.write_point.load(Ordering::Acquire)
    }

    /// The sequence id of the newest visible write.
    pub fn read_point(&self) -> u64 {
        self.read_point.load(Ordering::Acquire)
    }

    /// Checks that the log has not failed.
    ///
    /// # Errors
    /// The log's error, once it has failed.
    pub fn check_log(&self) -> Result<()> {
        // Every read and write calls this, so it takes no lock while the log works.
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        self.state().failed.clone().map_or(Ok(()), Err)
    }

    /// Completes when the read point reaches `seq_id`.
    ///
    /// # Errors
    /// [`Error::Log`] if the log failed before that.
    pub fn wait_visible(self: &Arc<Mvcc>, seq_id: u64) -> impl Future<Output = Result<()>> + Send + use<> {
        WaitVisible { mvcc: self.clone(), seq_id, ticket: None }
    }

    /// Registers a reader at `read_point`, or at the current read point if `None`. A flush or
    /// compaction that begins while the guard lives keeps every version that the reader may see.
    pub fn register_reader(self: &Arc<Mvcc>, read_point: Option<u64>) -> ReadGuard {
        let mut state = self.state();
        // Under the lock: between this line and the registration, no flush may compute the
        // smallest read point.
        let read_point = read_point.unwrap_or_else(|| self.read_point());
        match state.readers.binary_search_by_key(&read_point, |(known, _)| *known) {
            Ok(at) => state.readers[at].1 += 1,
            Err(at) => state.readers.insert(at, (read_point, 1)),
        }
        debug_assert!(
            state.readers.is_sorted_by(|left, right| left.0 < right.0),
            "readers are in the order of their read points"
        );
        ReadGuard { mvcc: self.clone(), read_point }
    }

    /// The oldest read point of a registered reader, or the current read point if there is none.
    /// A version that is visible neither at this read point nor at a newer one may be dropped.
    pub fn smallest_read_point(&self) -> u64 {
        let state = self.state();
        let oldest = state.readers.first().map_or(u64::MAX, |(read_point, _)| *read_point);
        oldest.min(self.read_point())
    }

    /// Moves the read point to `seq_id` and wakes the waiters up to it. Called in ascending order
    /// of ids.
    fn advance(&self, seq_id: u64) {
        let mut state = self.state();
        assert!(seq_id > self.read_point(), "the log reports a region's edits in order, each once");
        debug_assert!(seq_id <= self.write_point(), "only an assigned id becomes visible");
        // After a failure no edit may become visible, whatever the log reports.
        if state.failed.is_some() {
            return;
        }
        self.read_point.store(seq_id, Ordering::Release);
        let later = state.waiting.split_off(&(seq_id + 1, 0));
        let ready = std::mem::replace(&mut state.waiting, later);
        drop(state);
        ready.into_values().for_each(Waker::wake);
    }

    /// Stops the read point permanently. All waiters, present and later, get `error`.
    pub(crate) fn fail(&self, error: Error) {
        let mut state = self.state();
        state.failed.get_or_insert(error);
        self.has_failed.store(true, Ordering::Release);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_values().for_each(Waker::wake);
    }

    fn state(&self) -> MutexGuard<'_, WaitersAndReaders> {
        // Each change of `WaitersAndReaders` is one step, so a panicked holder leaves it
        // consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl wal::Committed for Mvcc {
    fn committed(&self, seq_id: u64) {
        self.advance(seq_id);
    }

    fn committed_together(&self, edits: &[wal::Edit]) {
        debug_assert!(
            edits.is_sorted_by(|left, right| left.seq_id < right.seq_id),
            "the edits of a region are in the order of their sequence ids"
        );
        if let Some(last) = edits.last() {
            self.advance(last.seq_id);
        }
    }

    fn failed(&self, _seq_id: u64, error: &wal::Error) {
        self.fail(Error::log(error));
    }
}

/// A registered reader. Dropping it ends the registration.
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
        let mut state = self.mvcc.state();
        let found = state.readers.binary_search_by_key(&self.read_point, |(known, _)| *known);
        let at = found.expect("a reader stays registered while its guard lives");
        state.readers[at].1 -= 1;
        if state.readers[at].1 == 0 {
            state.readers.remove(at);
        }
    }
}

/// The future of [`Mvcc::wait_visible`].
struct WaitVisible {
    mvcc: Arc<Mvcc>,
    seq_id: u64,
    ticket: Option<u64>,
}

impl Future for WaitVisible {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        if self.mvcc.read_point() >= self.seq_id {
            return Poll::Ready(Ok(()));
        }
        let mvcc = self.mvcc.clone();
        let mut state = mvcc.state();
        // Check again: while this thread holds the lock, the read point does not move.
        if mvcc.read_point() >= self.seq_id {
            return Poll::Ready(Ok(()));
        }
        if let Some(error) = &state.failed {
            return Poll::Ready(Err(error.clone()));
        }
        let ticket = *self.ticket.get_or_insert_with(|| {
            state.last_ticket += 1;
            state.last_ticket
        });
        state.waiting.insert((self.seq_id, ticket), context.waker().clone());
        Poll::Pending
    }
}

impl Drop for WaitVisible {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.mvcc.state().waiting.remove(&(self.seq_id, ticket));
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
    fn a_write_is_visible_when_it_and_all_earlier_writes_are_committed() {
        let mvcc = Mvcc::new(10);
        assert_eq!((mvcc.next_seq_id(), mvcc.next_seq_id()), (11, 12));
        let mut second = Box::pin(mvcc.wait_visible(12));
        assert!(poll(&mut second).is_pending());
        mvcc.advance(11);
        assert_eq!(mvcc.read_point(), 11);
        assert!(poll(&mut second).is_pending());
        mvcc.advance(12);
        assert!(matches!(poll(&mut second), Poll::Ready(Ok(()))));
        assert!(mvcc.state().waiting.is_empty());
    }

    #[test]
    fn dropped_waiters_leave_no_entry() {
        let mvcc = Mvcc::new(0);
        let mut waiting = Box::pin(mvcc.wait_visible(mvcc.next_seq_id()));
        assert!(poll(&mut waiting).is_pending());
        drop(waiting);
        assert!(mvcc.state().waiting.is_empty());
    }

    #[test]
    fn a_failed_log_fails_present_and_later_waiters_but_not_visible_writes() {
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
        assert!(mvcc.check_log().is_err() && Mvcc::new(0).check_log().is_ok());
    }

    #[test]
    fn the_smallest_read_point_is_that_of_the_oldest_reader() {
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
