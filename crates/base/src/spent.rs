//! Latency breakdown and resource use of a call, accumulated while it runs.
//!
//! Each thread has a current account, that of the running call. Code that waits or uses a resource
//! adds to it without extra parameters. The task that polls a call's future [opens](open) the
//! account before the poll and [closes](close) it after. A wait reads the clock only if the future
//! was pending: a future that is ready on the first poll costs nothing here.
//!
//! Work that no call waits for (flushes, compactions) adds to an account that is never read.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::num::NonZeroU64;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use crate::env::Clock;
use crate::metrics::{COUNTING, RecordedDuration};

/// A phase of a call. The remaining time of the call is computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Decompressing and decoding a long request.
    Decode,
    /// Waiting for another call with the same nonce to finish its change.
    Lock,
    /// Waiting for row locks. This blocks the thread, so the time is also part of
    /// [`Work`](Phase::Work).
    Blocked,
    /// Waiting for file blocks.
    Disk,
    /// Evaluating filters on rows and cells; sampled and extrapolated.
    Filter,
    /// Waiting for the log to be durable.
    Log,
    /// Being polled: CPU time, plus time for which the thread was preempted.
    Work,
}

/// A resource that a call uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Use {
    /// Rows read, whether or not they were returned.
    Rows,
    /// Block cache hits.
    BlockHits,
    /// Block cache misses, which were read from the file system.
    BlocksRead,
    /// Uncompressed bytes of the blocks from cache hits and misses.
    BlockBytes,
    /// Long stretches of a scan (64 KiB of cells) that ended in the memstore.
    MemstoreSlices,
    /// Long stretches of a scan that ended in a file block.
    BlockSlices,
    /// Regular-expression steps beyond those of a harmless expression.
    FilterSteps,
}

const PHASES: usize = Phase::Work as usize + 1;
const USES: usize = Use::FilterSteps as usize + 1;
const SUBJECT: usize = PHASES + USES;
const LEN: usize = SUBJECT + 1;

/// An account: nanoseconds by phase, then resource uses, then the subject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent([u64; LEN]);

thread_local! {
    static CURRENT: Cell<[u64; LEN]> = const { Cell::new([0; LEN]) };
    // Start of the current poll, on the monotonic clock.
    static RESUMED: Cell<u64> = const { Cell::new(0) };
    // End of the call, if the code that finished it read the clock.
    static ENDED: Cell<Option<CallEnd>> = const { Cell::new(None) };
}

/// When a call was done, except for sending the response.
#[derive(Clone, Copy, Debug)]
pub struct CallEnd {
    /// Time on the monotonic clock.
    pub at: Duration,
    /// Duration since the call began.
    pub took: RecordedDuration,
}

impl Spent {
    /// Time spent in a phase so far.
    pub fn time(&self, phase: Phase) -> Duration {
        Duration::from_nanos(self.0[phase as usize])
    }

    /// Amount of a resource used so far.
    pub fn used(&self, what: Use) -> u64 {
        self.0[PHASES + what as usize]
    }

    /// Number of the call's subject, if known.
    pub fn subject(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(self.0[SUBJECT])
    }

    /// Adds to a phase.
    pub fn add(&mut self, phase: Phase, time: Duration) {
        self.0[phase as usize] += nanos(time);
    }
}

/// Opens an empty account for a call that begins at `now` on the monotonic clock.
#[inline]
pub fn begin(now: Duration) {
    if COUNTING {
        RESUMED.set(nanos(now));
        ENDED.set(None);
        CURRENT.set([0; LEN]);
    }
}

/// Makes `spent` the account of the running call on this thread, from `now` on the monotonic clock.
#[inline]
pub fn open(spent: &Spent, now: Duration) {
    if COUNTING {
        RESUMED.set(nanos(now));
        ENDED.set(None);
        CURRENT.set(spent.0);
    }
}

/// The account of the call that this thread ran last.
#[inline]
pub fn close() -> Spent {
    Spent(CURRENT.get())
}

/// Reports the end of the running call, so that its accounting need not read the clock again.
#[inline]
pub fn report_end(end: CallEnd) {
    if COUNTING {
        ENDED.set(Some(end));
    }
}

/// The end of the call that this thread ran last, if it was reported.
#[inline]
pub fn reported_end() -> Option<CallEnd> {
    ENDED.get()
}

/// Adds `time` to a phase of the running call.
pub fn add(phase: Phase, time: Duration) {
    add_at(phase as usize, nanos(time));
}

/// Nanoseconds for which the running call has been polled until `now`, without blocked time. On a
/// thread without an open account only differences are meaningful.
#[inline]
pub fn work_nanos_until(now: Duration) -> u64 {
    let [work, blocked] = [Phase::Work, Phase::Blocked]
        .map(|phase| CURRENT.with(|current| current.as_array_of_cells()[phase as usize].get()));
    (work + nanos(now).saturating_sub(RESUMED.get())).saturating_sub(blocked)
}

/// Adds to a resource use of the running call.
#[inline]
pub fn used(what: Use, amount: u64) {
    add_at(PHASES + what as usize, amount);
}

/// How much of a resource the current call has used so far. On a thread without an open account
/// this only grows.
#[inline]
pub fn used_so_far(what: Use) -> u64 {
    CURRENT.with(|current| current.as_array_of_cells()[PHASES + what as usize].get())
}

/// Sets the subject of the running call to this number (of a region). The last call to this
/// function wins.
#[inline]
pub fn set_subject(subject: NonZeroU64) {
    if COUNTING {
        CURRENT.with(|current| current.as_array_of_cells()[SUBJECT].set(subject.get()));
    }
}

#[inline]
fn add_at(at: usize, amount: u64) {
    if COUNTING {
        CURRENT.with(|current| {
            let total = &current.as_array_of_cells()[at];
            total.set(total.get().wrapping_add(amount));
        });
    }
}

/// Converts a time to nanoseconds.
#[inline]
pub fn nanos(time: Duration) -> u64 {
    // Not `as_nanos`, which uses 128 bits. Wraps after 500 years.
    time.as_secs().wrapping_mul(1_000_000_000).wrapping_add(u64::from(time.subsec_nanos()))
}

/// Awaits `future`. If it is not ready on the first poll, adds the waiting time to `phase` of the
/// running call.
pub async fn timed_wait<F: Future>(phase: Phase, clock: &dyn Clock, future: F) -> F::Output {
    let mut future = pin!(future);
    let mut begun = None;
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Pending => {
            begun.get_or_insert_with(|| clock.monotonic());
            Poll::Pending
        }
        Poll::Ready(output) => {
            if let Some(begun) = begun {
                add(phase, clock.monotonic().saturating_sub(begun));
            }
            Poll::Ready(output)
        }
    })
    .await
}

/// Awaits `future` on an account of its own, for work on another thread than the call's. Returns
/// the account, with the time of polling as [`Phase::Work`].
pub async fn account_of<F: Future>(clock: &dyn Clock, future: F) -> (F::Output, Spent) {
    let mut future = pin!(future);
    let mut spent = Spent::default();
    poll_fn(|cx| {
        let begun = clock.monotonic();
        open(&spent, begun);
        let polled = future.as_mut().poll(cx);
        add(Phase::Work, clock.monotonic().saturating_sub(begun));
        spent = close();
        polled.map(|output| (output, spent))
    })
    .await
}

/// Adds the account of work on another thread to the running call.
pub fn absorb(spent: &Spent) {
    spent.0[..SUBJECT].iter().enumerate().for_each(|(at, amount)| add_at(at, *amount));
}

/// Calls `work` and adds its duration to `phase` of the running call.
pub fn timed<T>(phase: Phase, clock: &dyn Clock, work: impl FnOnce() -> T) -> T {
    let begun = clock.monotonic();
    let output = work();
    add(phase, clock.monotonic().saturating_sub(begun));
    output
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::{Context, Waker};

    use super::*;
    use crate::testing;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn only_waiting_adds_time() {
        let clock = testing::env(1).clock;
        open(&Spent::default(), Duration::ZERO);
        timed_wait(Phase::Disk, &*clock, ready(())).await;
        assert_eq!(close(), Spent::default());
        timed_wait(Phase::Disk, &*clock, clock.sleep(SECOND)).await;
        timed_wait(Phase::Log, &*clock, clock.sleep(2 * SECOND)).await;
        let spent = close();
        assert!(spent.time(Phase::Disk) >= SECOND && spent.time(Phase::Disk) < 2 * SECOND);
        assert!(spent.time(Phase::Log) >= 2 * SECOND && spent.time(Phase::Lock).is_zero());
    }

    #[tokio::test(start_paused = true)]
    async fn accounts_of_interleaved_calls_are_separate() {
        let clock = testing::env(1).clock;
        let mut accounts = [Spent::default(); 2];
        for round in 1..=3 {
            for (at, account) in accounts.iter_mut().enumerate() {
                open(account, Duration::ZERO);
                set_subject(NonZeroU64::MIN.saturating_add(at as u64));
                used(Use::Rows, round * (at as u64 + 1));
                timed(Phase::Filter, &*clock, || used(Use::BlockHits, 1));
                *account = close();
            }
        }
        assert_eq!(accounts.map(|account| account.used(Use::Rows)), [6, 12]);
        assert_eq!(accounts.map(|account| account.used(Use::BlockHits)), [3, 3]);
        assert_eq!(accounts.map(|account| account.subject().map(NonZeroU64::get)), [Some(1), Some(2)]);
    }

    #[tokio::test(start_paused = true)]
    async fn work_on_other_threads_is_added_to_the_call() {
        let clock = testing::env(1).clock;
        let work = async {
            used(Use::Rows, 5);
            timed_wait(Phase::Disk, &*clock, clock.sleep(SECOND)).await;
            set_subject(NonZeroU64::MIN);
            "done"
        };
        open(&Spent::default(), Duration::ZERO);
        used(Use::Rows, 2);
        let call = close();
        let (output, spent) = account_of(&*clock, work).await;
        assert_eq!((output, spent.used(Use::Rows)), ("done", 5));
        open(&call, Duration::ZERO);
        absorb(&spent);
        let call = close();
        assert!(call.time(Phase::Disk) >= SECOND);
        assert_eq!((call.used(Use::Rows), call.subject()), (7, None));
    }

    #[test]
    fn work_time_resumes_where_it_stopped() {
        open(&Spent::default(), SECOND);
        assert_eq!(work_nanos_until(3 * SECOND), 2_000_000_000);
        add(Phase::Work, 2 * SECOND);
        open(&close(), 10 * SECOND);
        assert_eq!(work_nanos_until(11 * SECOND), 3_000_000_000);
        add(Phase::Blocked, SECOND);
        assert_eq!(work_nanos_until(12 * SECOND), 3_000_000_000);
    }

    #[test]
    fn a_reported_end_belongs_to_the_last_call() {
        begin(SECOND);
        let reported = || reported_end().map(|end| (end.at, end.took.nanos()));
        assert_eq!(reported(), None);
        report_end(CallEnd { at: 2 * SECOND, took: RecordedDuration::of_nanos(7) });
        assert_eq!(reported(), Some((2 * SECOND, 7)));
        open(&close(), 3 * SECOND);
        assert_eq!(reported(), None);
    }

    #[test]
    fn a_dropped_call_is_not_counted() {
        let clock = testing::env(1).clock;
        open(&Spent::default(), Duration::ZERO);
        let mut wait = Box::pin(timed_wait(Phase::Lock, &*clock, pending::<()>()));
        assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(wait);
        assert_eq!(close(), Spent::default());
    }
}
