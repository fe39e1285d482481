//! Runs all tasks of the world on one thread, in an order that depends only on the seed.
//!
//! Each task belongs to an [`Owner`]: a life of a process, or the world itself. Time is virtual: it
//! advances by [`POLL_TIME`] with each poll, and to the next event when no task is ready. Timers
//! have the resolution of the clock, nanoseconds.
//!
//! * The next task is chosen at random among those that are ready. A task is sometimes held back,
//!   as by a busy CPU.
//! * The tasks of a paused owner are not polled. Wakes are remembered until it is resumed, so its
//!   timers fire late.
//! * When an owner is killed, its tasks are dropped at the await at which they are.
//! * An *event* of the world (a message arrives, a disk completes a write) happens at its time,
//!   whatever the state of the processes.
//!
//! The tasks run outside of any tokio runtime, whose timers have a resolution of a millisecond and
//! whose order of tasks is fixed. A runtime exists only because [`Spawner`](base::env::Spawner)
//! returns tokio's join handles: for each task, it runs a small task that waits for the end of the
//! real one.

mod queue;
mod timer;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use base::BoxFuture;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use self::queue::{Event, EventQueue};
pub(crate) use self::timer::Sleep;
use self::timer::{TaskWaker, WokenTasks};
use crate::random::RandomSource;

/// Virtual time that each poll of a task takes.
pub const POLL_TIME: Duration = Duration::from_micros(1);
/// On average, one in this many polls is held back.
const HELD_ONE_IN: u64 = 24;
/// Maximum time for which a poll is held back.
const HELD_MAX: Duration = Duration::from_micros(400);

/// The owner of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner(u64);

impl Owner {
    /// The world outside of all processes. It cannot be paused or killed.
    pub const WORLD: Owner = Owner(0);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskId(u64);

/// The scheduler of one world. See the module's documentation.
pub struct Scheduler {
    state: Mutex<State>,
    woken: Arc<WokenTasks>,
    random: RandomSource,
    join_handles: tokio::runtime::Runtime,
}

#[derive(Default)]
struct State {
    now: Duration,
    polls: u64,
    last_task: u64,
    last_owner: u64,
    tasks: BTreeMap<TaskId, Task>,
    // May contain tasks that have ended.
    ready: Vec<TaskId>,
    // Only owners that are alive, except the world.
    owners: BTreeMap<Owner, OwnerState>,
    events: EventQueue,
}

struct Task {
    owner: Owner,
    // None while the task is being polled.
    future: Option<BoxFuture<'static, ()>>,
    waker: Arc<TaskWaker>,
    ended: oneshot::Sender<()>,
}

struct OwnerState {
    name: Arc<str>,
    is_paused: bool,
    // Tasks that became ready during the pause.
    parked: Vec<TaskId>,
}

impl Scheduler {
    /// A scheduler without tasks at time 0.
    pub fn new(seed: u64) -> Arc<Scheduler> {
        // One `block_on` runs all tasks that are ready, unless there are more than this interval.
        let join_handles = tokio::runtime::Builder::new_current_thread().event_interval(1 << 20).build();
        let join_handles = join_handles.expect("a runtime without I/O needs no resources");
        Arc::new(Scheduler {
            state: Mutex::default(),
            woken: Arc::default(),
            random: RandomSource::new(seed, "scheduler"),
            join_handles,
        })
    }

    /// Virtual time since the start of the world.
    pub fn now(&self) -> Duration {
        self.lock().now
    }

    /// Polls of tasks so far.
    pub fn polls(&self) -> u64 {
        self.lock().polls
    }

    /// Completes `duration` from now.
    pub fn sleep(self: &Arc<Self>, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(Sleep::new(self.clone(), self.now().saturating_add(duration)))
    }

    /// Runs `event` at virtual time `at`; events of the same time in the order of the calls.
    pub fn at(&self, at: Duration, event: impl FnOnce() + Send + 'static) {
        self.lock().events.push(at, Event::Call(Box::new(event)));
    }

    /// Runs `event` after `delay`.
    pub fn after(&self, delay: Duration, event: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        let at = state.now.saturating_add(delay);
        state.events.push(at, Event::Call(Box::new(event)));
    }

    /// Creates an owner. Its name appears in log lines.
    pub fn add_owner(&self, name: &str) -> Owner {
        let mut state = self.lock();
        state.last_owner += 1;
        let owner = Owner(state.last_owner);
        state.owners.insert(owner, OwnerState { name: name.into(), is_paused: false, parked: Vec::new() });
        owner
    }

    /// Whether `owner` was not killed.
    pub fn is_alive(&self, owner: Owner) -> bool {
        owner == Owner::WORLD || self.lock().owners.contains_key(&owner)
    }

    /// Whether `owner` is paused.
    pub fn is_paused(&self, owner: Owner) -> bool {
        self.lock().owners.get(&owner).is_some_and(|owner| owner.is_paused)
    }

    /// Pauses an owner: none of its tasks is polled until it is resumed.
    pub fn pause(&self, owner: Owner) {
        if let Some(owner) = self.lock().owners.get_mut(&owner) {
            owner.is_paused = true;
        }
    }

    /// Resumes an owner.
    pub fn resume(&self, owner: Owner) {
        let mut state = self.lock();
        if let Some(owner) = state.owners.get_mut(&owner) {
            owner.is_paused = false;
            let parked = std::mem::take(&mut owner.parked);
            state.ready.extend(parked);
        }
    }

    /// Kills an owner: drops all its tasks, and ignores tasks that it starts later. If one of its
    /// tasks is being polled, that task is dropped after the poll.
    pub fn kill(&self, owner: Owner) {
        let mut state = self.lock();
        state.owners.remove(&owner);
        let own = state.tasks.extract_if(.., |_, task| task.owner == owner);
        let killed: Vec<Task> = own.map(|(_, task)| task).collect();
        drop(state);
        // The tasks' destructors may call the scheduler.
        drop(killed);
    }

    /// Starts a task. Dropping the handle does not end it, aborting the handle does.
    pub fn spawn(
        self: &Arc<Self>,
        owner: Owner,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        let mut state = self.lock();
        if owner != Owner::WORLD && !state.owners.contains_key(&owner) {
            drop(state);
            return self.join_handles.spawn(std::future::ready(()));
        }
        state.last_task += 1;
        let id = TaskId(state.last_task);
        let (ended, end) = oneshot::channel();
        let waker = TaskWaker::new(id, self.woken.clone());
        state.ready.push(id);
        state.tasks.insert(id, Task { owner, future: Some(Box::pin(future)), waker, ended });
        drop(state);
        let abort = AbortOnDrop { task: Some((Arc::downgrade(self), id)) };
        self.join_handles.spawn(async move {
            let _ = end.await;
            abort.disarm();
        })
    }

    /// Runs the world until `main`, a task of the world, has ended. Returns its result.
    ///
    /// # Panics
    /// If a task panics, or if no task can ever become ready.
    pub fn run<T: Send + 'static>(self: &Arc<Self>, main: impl Future<Output = T> + Send + 'static) -> T {
        let result = Arc::new(Mutex::new(None));
        let slot = result.clone();
        self.spawn(Owner::WORLD, async move {
            let value = main.await;
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        });
        loop {
            self.step();
            if let Some(value) = result.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return value;
            }
        }
    }

    /// Drops all tasks and events. Nothing can be started afterwards.
    pub fn shut_down(&self) {
        loop {
            let mut state = self.lock();
            let (tasks, events) = (std::mem::take(&mut state.tasks), std::mem::take(&mut state.events));
            state.owners.clear();
            drop(state);
            // Destructors may start tasks of the world.
            if tasks.is_empty() && events.is_empty() {
                return;
            }
            drop((tasks, events));
        }
    }

    /// Polls one task, or advances the time to the next event.
    fn step(&self) {
        self.run_due_events();
        self.woken.drain_into(&mut self.lock().ready);
        if let Some(task) = self.choose() {
            self.poll(task);
            return;
        }
        self.run_join_handles();
        if self.woken.is_empty() {
            let mut state = self.lock();
            let next = state.events.next_time().expect("deadlock: all tasks wait, and no event will come");
            state.now = state.now.max(next);
        }
    }

    fn run_due_events(&self) {
        loop {
            let mut state = self.lock();
            let now = state.now;
            let Some(event) = state.events.pop_due(now) else { return };
            match event {
                Event::Ready(task) => state.ready.push(task),
                Event::Timer(timer) => {
                    drop(state);
                    timer.fire();
                }
                Event::Call(call) => {
                    drop(state);
                    call();
                }
            }
        }
    }

    /// Takes the task that is polled next out of the ready tasks.
    fn choose(&self) -> Option<TaskId> {
        let mut state = self.lock();
        while !state.ready.is_empty() {
            let chosen = self.random.index(state.ready.len());
            let id = state.ready.swap_remove(chosen);
            let Some(owner) = state.tasks.get(&id).map(|task| task.owner) else { continue };
            if let Some(owner) = state.owners.get_mut(&owner)
                && owner.is_paused
            {
                owner.parked.push(id);
            } else if self.random.one_in(HELD_ONE_IN) {
                let at = state.now + self.random.between(POLL_TIME, HELD_MAX);
                state.events.push(at, Event::Ready(id));
            } else {
                return Some(id);
            }
        }
        None
    }

    fn poll(&self, id: TaskId) {
        let (mut future, waker) = {
            let mut state = self.lock();
            state.now += POLL_TIME;
            state.polls += 1;
            let (now, state) = (state.now, &mut *state);
            let Some(task) = state.tasks.get_mut(&id) else { return };
            current::set(now, state.owners.get(&task.owner).map(|owner| owner.name.clone()));
            // Only the scheduler polls, so no other poll has taken the future.
            let Some(future) = task.future.take() else { return };
            (future, task.waker.clone())
        };
        waker.begin_poll();
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker.into()));
        let mut state = self.lock();
        let ended = match (state.tasks.get_mut(&id), polled) {
            // Killed while it was polled.
            (None, _) => None,
            (Some(task), Poll::Pending) => {
                task.future = Some(future);
                return;
            }
            (Some(_), Poll::Ready(())) => state.tasks.remove(&id),
        };
        drop(state);
        drop(future);
        if let Some(task) = ended {
            let _ = task.ended.send(());
        }
    }

    /// Completes join handles of tasks that have ended, and aborts tasks.
    fn run_join_handles(&self) {
        self.join_handles.block_on(tokio::task::yield_now());
    }

    fn abort(&self, id: TaskId) {
        let task = self.lock().tasks.remove(&id);
        drop(task);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Aborts a task when its join handle is aborted.
struct AbortOnDrop {
    task: Option<(Weak<Scheduler>, TaskId)>,
}

impl AbortOnDrop {
    fn disarm(mut self) {
        self.task = None;
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some((scheduler, id)) = self.task.take()
            && let Some(scheduler) = scheduler.upgrade()
        {
            scheduler.abort(id);
        }
    }
}

/// The task that is being polled on this thread, for log lines.
pub mod current {
    use std::cell::RefCell;
    use std::sync::Arc;
    use std::time::Duration;

    thread_local! {
        static CURRENT: RefCell<(Duration, Option<Arc<str>>)> = const { RefCell::new((Duration::ZERO, None)) };
    }

    pub(super) fn set(now: Duration, owner: Option<Arc<str>>) {
        CURRENT.replace((now, owner));
    }

    /// The virtual time, and the name of the running process (`None`: the world).
    pub fn get() -> (Duration, Option<Arc<str>>) {
        CURRENT.with_borrow(Clone::clone)
    }
}

#[cfg(test)]
mod tests;
