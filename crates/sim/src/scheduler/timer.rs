//! Sleeps and wakers.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::queue::Event;
use super::{Scheduler, TaskId};

/// The waker of a sleep. Shared by the sleep and the scheduler.
#[derive(Default)]
pub(super) struct Timer(Mutex<Sleeper>);

#[derive(Default)]
enum Sleeper {
    #[default]
    Dropped,
    Waiting(Waker),
}

impl Timer {
    pub(super) fn fire(&self) {
        let sleeper = std::mem::take(&mut *self.lock());
        if let Sleeper::Waiting(waker) = sleeper {
            waker.wake();
        }
    }

    pub(super) fn is_dropped(&self) -> bool {
        matches!(*self.lock(), Sleeper::Dropped)
    }

    fn lock(&self) -> MutexGuard<'_, Sleeper> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until a point in virtual time.
pub(crate) struct Sleep {
    scheduler: Arc<Scheduler>,
    until: Duration,
    timer: Option<Arc<Timer>>,
}

impl Sleep {
    pub(super) fn new(scheduler: Arc<Scheduler>, until: Duration) -> Sleep {
        Sleep { scheduler, until, timer: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let scheduler = self.scheduler.clone();
        let mut state = scheduler.lock();
        if state.now >= self.until {
            return Poll::Ready(());
        }
        let until = self.until;
        let timer = self.timer.get_or_insert_with(|| {
            let timer = Arc::new(Timer::default());
            state.events.push(until, Event::Timer(timer.clone()));
            timer
        });
        *timer.lock() = Sleeper::Waiting(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = &self.timer {
            let waker = std::mem::take(&mut *timer.lock());
            drop(waker);
        }
    }
}

/// Tasks that were woken since the scheduler last checked.
#[derive(Default)]
pub(super) struct WokenTasks(Mutex<Vec<TaskId>>);

impl WokenTasks {
    pub(super) fn drain_into(&self, ready: &mut Vec<TaskId>) {
        ready.append(&mut self.lock());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<TaskId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a task ready.
pub(super) struct TaskWaker {
    id: TaskId,
    // Whether the task is ready, or will be when it is resumed or no longer held back.
    is_woken: AtomicBool,
    woken: Arc<WokenTasks>,
}

impl TaskWaker {
    /// The waker of a task that is ready.
    pub(super) fn new(id: TaskId, woken: Arc<WokenTasks>) -> Arc<TaskWaker> {
        Arc::new(TaskWaker { id, is_woken: AtomicBool::new(true), woken })
    }

    /// From now on, a wake makes the task ready again.
    pub(super) fn begin_poll(&self) {
        self.is_woken.store(false, Ordering::Relaxed);
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_woken.swap(true, Ordering::Relaxed) {
            self.woken.lock().push(self.id);
        }
    }
}
