//! Bounded threads for calls that block: local disks, name look-ups, long computations off the
//! runtimes.
//!
//! A thread is started when there is a job and no idle thread, up to the given bound. It then lives
//! as long as the pool. Jobs start in the order of submission. The thread that became idle last
//! takes the next job, so that a stream of small jobs stays on one thread with warm CPU caches.
//! Invariants:
//!
//! * a submitted job runs even if no task waits for its result any more (a write must not stop
//!   half-way);
//! * a panic in a job ends neither its thread nor other jobs; it propagates to the task that waits
//!   for the job;
//! * dropping the pool lets queued jobs finish, without waiting for them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use tokio::sync::oneshot;

use crate::BoxFuture;
use crate::threads::lower_priority;

/// A job. It returns a closure that reports its result to the waiting task.
type Job = Box<dyn FnOnce() -> Notify + Send>;
type Notify = Box<dyn FnOnce()>;

/// Threads that run blocking calls; see the module's documentation.
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    threads_max: usize,
    is_background: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    threads: usize,
    // Sleeping threads; the last one became idle most recently.
    idle: Vec<Thread>,
    // Threads that were started or woken and have not reached the queue yet.
    waking: usize,
    closed: bool,
}

impl Pool {
    /// A pool of at most `threads` threads, named `name-0`, `name-1`, …
    ///
    /// # Panics
    /// If `threads` is 0.
    pub fn new(name: &str, threads: usize) -> Pool {
        Pool::of(name, threads, false)
    }

    /// The same with threads of lower priority, for long computations that no client waits for.
    ///
    /// # Panics
    /// If `threads` is 0.
    pub fn background(name: &str, threads: usize) -> Pool {
        Pool::of(name, threads, true)
    }

    fn of(name: &str, threads_max: usize, is_background: bool) -> Pool {
        assert!(threads_max > 0, "a pool needs a thread");
        let state = Mutex::new(State::default());
        Pool { shared: Arc::new(Shared { name: name.to_owned(), threads_max, is_background, state }) }
    }

    /// Queues `job` immediately and returns a future of its result. Dropping the future does not
    /// stop the job.
    ///
    /// # Panics
    /// The future panics if the job did.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> BoxFuture<'static, T> {
        let (send, receive) = oneshot::channel();
        self.queue(Box::new(move || {
            let result = catch_unwind(AssertUnwindSafe(job));
            // The send fails if the receiver was dropped; then no task needs the result.
            Box::new(move || drop(send.send(result)))
        }));
        Box::pin(async move {
            match receive.await.expect("a queued job runs before its thread ends") {
                Ok(value) => value,
                Err(panic) => resume_unwind(panic),
            }
        })
    }

    /// Queues `job`, whose completion no task waits for. A panic in it is logged.
    pub fn execute(&self, job: impl FnOnce() + Send + 'static) {
        self.queue(Box::new(move || {
            job();
            Box::new(|| {})
        }));
    }

    fn queue(&self, job: Job) {
        let mut state = self.shared.lock();
        debug_assert!(state.idle.len() + state.waking <= state.threads, "a thread is idle, waking or busy");
        state.queue.push_back(job);
        if let Some(thread) = state.idle.pop() {
            state.waking += 1;
            drop(state);
            thread.unpark();
        } else if state.queue.len() > state.waking && state.threads < self.shared.threads_max {
            self.start_thread(&mut state);
        }
    }

    /// Number of queued jobs that have no thread yet.
    pub fn queued(&self) -> usize {
        self.shared.lock().queue.len()
    }

    // The only code that starts threads directly: they block, so no runtime can run them.
    #[allow(clippy::disallowed_methods)]
    fn start_thread(&self, state: &mut State) {
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new().name(format!("{}-{}", self.shared.name, state.threads));
        match thread.spawn(move || shared.work_until_closed()) {
            Ok(_) => {
                state.threads += 1;
                state.waking += 1;
            }
            // The existing threads will run the job.
            Err(error) if state.threads > 0 => {
                tracing::warn!(pool = self.shared.name, %error, "cannot start another thread; queued jobs wait for existing ones");
            }
            Err(error) => panic!("cannot start a thread for pool {}: {error}", self.shared.name),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        let idle = std::mem::take(&mut state.idle);
        state.waking += idle.len();
        drop(state);
        idle.iter().for_each(Thread::unpark);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock, and the state is valid between statements anyway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work_until_closed(&self) {
        if self.is_background {
            lower_priority();
        }
        self.lock().waking -= 1;
        let mut notify: Notify = Box::new(|| {});
        while let Some(job) = self.next_job(notify) {
            notify = catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|_| {
                tracing::error!(pool = self.name, "job panicked");
                Box::new(|| {})
            });
        }
    }

    /// The next job; `None` once the pool is closed and the queue is empty.
    ///
    /// The result of the last job is reported only after this thread is marked idle. The waiting
    /// task can then submit its next job to this thread, on the same CPU. This saves the task a
    /// thread switch, and the job the start of another thread.
    fn next_job(&self, notify: Notify) -> Option<Job> {
        let mut state = self.lock();
        let mut job = state.queue.pop_front();
        let is_idle = job.is_none() && !state.closed;
        if is_idle {
            state.idle.push(thread::current());
        }
        drop(state);
        notify();
        if is_idle {
            job = self.job_when_woken();
        }
        job
    }

    /// The next job, for a thread that is in the idle list.
    fn job_when_woken(&self) -> Option<Job> {
        loop {
            let mut state = self.sleep();
            // Another thread may have taken the job.
            let job = state.queue.pop_front();
            if job.is_some() || state.closed {
                return job;
            }
            state.idle.push(thread::current());
        }
    }

    /// Sleeps until this thread has been removed from the idle list.
    fn sleep(&self) -> MutexGuard<'_, State> {
        let this = thread::current().id();
        loop {
            thread::park();
            let mut state = self.lock();
            // `park` may return spuriously.
            if !state.idle.iter().any(|thread| thread.id() == this) {
                state.waking -= 1;
                return state;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn results_reach_the_waiter() {
        let pool = Pool::new("test", 2);
        let futures: Vec<_> = (0..100).map(|i| pool.run(move || i * 2)).collect();
        for (i, future) in futures.into_iter().enumerate() {
            assert_eq!(future.await, i * 2);
        }
    }

    #[tokio::test]
    async fn threads_are_bounded() {
        let pool = Pool::new("test", 3);
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        // The barrier holds each job until three run concurrently: fewer threads would hang here.
        let three = Arc::new(Barrier::new(3));
        let jobs: Vec<_> = (0..30)
            .map(|_| {
                let (running, most, three) = (running.clone(), most.clone(), three.clone());
                pool.run(move || {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    three.wait();
                    running.fetch_sub(1, Ordering::SeqCst);
                })
            })
            .collect();
        for job in jobs {
            job.await;
        }
        assert_eq!(most.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn a_panic_reaches_its_waiter_only() {
        let pool = Pool::new("test", 1);
        let panicking = pool.run(|| panic!("as planned"));
        let other = pool.run(|| 7);
        let mut panicking = panicking;
        let outcome = std::future::poll_fn(|context| {
            match catch_unwind(AssertUnwindSafe(|| panicking.as_mut().poll(context))) {
                Ok(std::task::Poll::Pending) => std::task::Poll::Pending,
                Ok(std::task::Poll::Ready(())) => std::task::Poll::Ready(false),
                Err(_) => std::task::Poll::Ready(true),
            }
        });
        assert!(outcome.await, "the waiter panics too");
        assert_eq!(other.await, 7);
    }

    #[tokio::test]
    async fn a_job_runs_without_waiter_and_after_the_pool_is_dropped() {
        let pool = Pool::new("test", 1);
        let (send, receive) = oneshot::channel();
        drop(pool.run(move || send.send(1).unwrap()));
        drop(pool);
        assert_eq!(receive.await, Ok(1));
    }

    #[tokio::test]
    async fn waking_and_idle_threads_are_counted_exactly() {
        for threads in 1..4 {
            let pool = Pool::new("test", threads);
            for round in 0..50 {
                let futures: Vec<_> = (0..round % 7).map(|at| pool.run(move || at)).collect();
                for (at, future) in futures.into_iter().enumerate() {
                    assert_eq!(future.await, at);
                }
            }
            let shared = pool.shared.clone();
            drop(pool.run(|| {}));
            drop(pool);
            // The threads hold the other references; each thread decrements the counters before it
            // ends.
            while Arc::strong_count(&shared) > 1 {
                tokio::task::yield_now().await;
            }
            let state = shared.lock();
            assert_eq!((state.waking, state.idle.len(), state.queue.len()), (0, 0, 0));
        }
    }
}
