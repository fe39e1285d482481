//! Where the time of a call went, and what it used, added up while it is at work.
//!
//! The account of the call at work is its thread's current one: whoever waits, or makes use of something, adds to it
//! without being handed anything. Who polls a call's future [opens](open) the account before and [closes](close) it
//! behind. A wait looks at the clock only if there is one: what is ready at once costs nothing here.
//!
//! Work that no call waits for (flushes, compactions) adds to an account that nobody reads.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::num::NonZeroU64;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use crate::env::Clock;
use crate::metrics::{COUNTING, Took};

/// What a call's time goes to within its work. The rest of the work is computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Making sense of a long request: decompressing and decoding it.
    Decode,
    /// Waiting for others to be done with the same change.
    Lock,
    /// Standing still until others let go of rows: the thread with it, so that it is a part of [`Work`](Phase::Work).
    Blocked,
    /// Waiting for blocks of files.
    Disk,
    /// Asking filters about rows and cells; measured now and then, and multiplied.
    Filter,
    /// Waiting for the log to be durable.
    Log,
    /// Being polled: the processor's time, and what was taken of it by others.
    Work,
}

/// What a call uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Use {
    /// Rows that were looked at, whether or not they were returned.
    Rows,
    /// Blocks found in the cache.
    BlocksFound,
    /// Blocks that were not, and were read.
    BlocksRead,
    /// Bytes of both, as they are in memory.
    BlockBytes,
    /// Long stretches of a scan (64 KiB of cells) at the end of which it was among the memstore's cells.
    MemstoreSlices,
    /// Those at the end of which it was in a block.
    BlockSlices,
    /// Steps of regular expressions beyond what harmless ones take.
    FilterSteps,
}

const PHASES: usize = Phase::Work as usize + 1;
const USES: usize = Use::FilterSteps as usize + 1;
const SUBJECT: usize = PHASES + USES;
const LEN: usize = SUBJECT + 1;

/// An account: nanoseconds by phase, then uses, then what it is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent([u64; LEN]);

thread_local! {
    static CURRENT: Cell<[u64; LEN]> = const { Cell::new([0; LEN]) };
    // Since when it is being polled: a time of the monotonic clock.
    static RESUMED: Cell<u64> = const { Cell::new(0) };
    // Its end, if who worked on it looked at the clock then.
    static ENDED: Cell<Option<End>> = const { Cell::new(None) };
}

/// When a call was done, but for telling its client.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// A time of the monotonic clock.
    pub at: Duration,
    /// How long that was after it was begun.
    pub took: Took,
}

impl Spent {
    /// What went to a phase so far.
    pub fn time(&self, phase: Phase) -> Duration {
        Duration::from_nanos(self.0[phase as usize])
    }

    /// How much was used so far.
    pub fn used(&self, what: Use) -> u64 {
        self.0[PHASES + what as usize]
    }

    /// The number of what it is about, if that is known.
    pub fn subject(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(self.0[SUBJECT])
    }

    /// Adds to a phase.
    pub fn add(&mut self, phase: Phase, time: Duration) {
        self.0[phase as usize] += nanos(time);
    }
}

/// Opens an empty account for a call that begins at `now`, a time of the monotonic clock.
#[inline]
pub fn begin(now: Duration) {
    if COUNTING {
        RESUMED.set(nanos(now));
        ENDED.set(None);
        CURRENT.set([0; LEN]);
    }
}

/// Makes `spent` the account of the call at work on this thread, from `now` on, which is a time of the monotonic clock.
#[inline]
pub fn open(spent: &Spent, now: Duration) {
    if COUNTING {
        RESUMED.set(nanos(now));
        ENDED.set(None);
        CURRENT.set(spent.0);
    }
}

/// The account of the call that was at work last on this thread.
#[inline]
pub fn close() -> Spent {
    Spent(CURRENT.get())
}

/// The call at work is done: who accounts for it need not look at the clock again.
#[inline]
pub fn end(end: End) {
    if COUNTING {
        ENDED.set(Some(end));
    }
}

/// When the call that was at work last on this thread was done, if it said so.
#[inline]
pub fn ended() -> Option<End> {
    ENDED.get()
}

/// The call at work spent `time` on a phase.
pub fn add(phase: Phase, time: Duration) {
    add_at(phase as usize, nanos(time));
}

/// For how many nanoseconds the call at work was polled in all until `now`, but for those in which it was blocked. For one that nobody opened an account for, only differences mean
/// anything.
#[inline]
pub fn work_nanos_until(now: Duration) -> u64 {
    let [work, blocked] = [Phase::Work, Phase::Blocked]
        .map(|phase| CURRENT.with(|current| current.as_array_of_cells()[phase as usize].get()));
    (work + nanos(now).saturating_sub(RESUMED.get())).saturating_sub(blocked)
}

/// The call at work made use of something.
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

/// The call at work is about what has this number (a region); of several, the last one counts.
#[inline]
pub fn about(subject: NonZeroU64) {
    if COUNTING {
        CURRENT.with(|current| current.as_array_of_cells()[SUBJECT].set(subject.get()));
    }
}

#[inline]
fn add_at(at: usize, amount: u64) {
    if COUNTING {
        CURRENT.with(|current| {
            let place = &current.as_array_of_cells()[at];
            place.set(place.get().wrapping_add(amount));
        });
    }
}

/// A time in nanoseconds.
#[inline]
pub fn nanos(time: Duration) -> u64 {
    // Not by as_nanos, which counts in 128 bits. Of a process that runs for 500 years they wrap.
    time.as_secs().wrapping_mul(1_000_000_000).wrapping_add(u64::from(time.subsec_nanos()))
}

/// Awaits `future`; what that took, if it was not ready at once, goes to `phase` of the call at work.
pub async fn waited<F: Future>(phase: Phase, clock: &dyn Clock, future: F) -> F::Output {
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

/// Awaits `future` on an account of its own, for work on another thread than the call's; what it spent, its being polled as
/// [`Phase::Work`].
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

/// What others spent for the call at work becomes its own.
pub fn absorb(spent: &Spent) {
    spent.0[..SUBJECT].iter().enumerate().for_each(|(at, amount)| add_at(at, *amount));
}

/// Calls `work`; what that took goes to `phase` of the call at work.
pub fn took<T>(phase: Phase, clock: &dyn Clock, work: impl FnOnce() -> T) -> T {
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
    async fn only_what_is_waited_for_is_time() {
        let clock = testing::env(1).clock;
        open(&Spent::default(), Duration::ZERO);
        waited(Phase::Disk, &*clock, ready(())).await;
        assert_eq!(close(), Spent::default());
        waited(Phase::Disk, &*clock, clock.sleep(SECOND)).await;
        waited(Phase::Log, &*clock, clock.sleep(2 * SECOND)).await;
        let spent = close();
        assert!(spent.time(Phase::Disk) >= SECOND && spent.time(Phase::Disk) < 2 * SECOND);
        assert!(spent.time(Phase::Log) >= 2 * SECOND && spent.time(Phase::Lock).is_zero());
    }

    #[tokio::test(start_paused = true)]
    async fn accounts_of_calls_that_take_turns_are_kept_apart() {
        let clock = testing::env(1).clock;
        let mut accounts = [Spent::default(); 2];
        for turn in 1..=3 {
            for (at, account) in accounts.iter_mut().enumerate() {
                open(account, Duration::ZERO);
                about(NonZeroU64::MIN.saturating_add(at as u64));
                used(Use::Rows, turn * (at as u64 + 1));
                took(Phase::Filter, &*clock, || used(Use::BlocksFound, 1));
                *account = close();
            }
        }
        assert_eq!(accounts.map(|account| account.used(Use::Rows)), [6, 12]);
        assert_eq!(accounts.map(|account| account.used(Use::BlocksFound)), [3, 3]);
        assert_eq!(accounts.map(|account| account.subject().map(NonZeroU64::get)), [Some(1), Some(2)]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_others_spend_is_the_calls_own() {
        let clock = testing::env(1).clock;
        let work = async {
            used(Use::Rows, 5);
            waited(Phase::Disk, &*clock, clock.sleep(SECOND)).await;
            about(NonZeroU64::MIN);
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
    fn work_goes_on_where_it_stopped() {
        open(&Spent::default(), SECOND);
        assert_eq!(work_nanos_until(3 * SECOND), 2_000_000_000);
        add(Phase::Work, 2 * SECOND);
        open(&close(), 10 * SECOND);
        assert_eq!(work_nanos_until(11 * SECOND), 3_000_000_000);
        add(Phase::Blocked, SECOND);
        assert_eq!(work_nanos_until(12 * SECOND), 3_000_000_000);
    }

    #[test]
    fn an_end_is_that_of_the_call_that_was_at_work_last() {
        begin(SECOND);
        let told = || ended().map(|end| (end.at, end.took.nanos()));
        assert_eq!(told(), None);
        end(End { at: 2 * SECOND, took: Took::of_nanos(7) });
        assert_eq!(told(), Some((2 * SECOND, 7)));
        open(&close(), 3 * SECOND);
        assert_eq!(told(), None);
    }

    #[test]
    fn what_is_given_up_is_not_counted() {
        let clock = testing::env(1).clock;
        open(&Spent::default(), Duration::ZERO);
        let mut wait = Box::pin(waited(Phase::Lock, &*clock, pending::<()>()));
        assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(wait);
        assert_eq!(close(), Spent::default());
    }
}
