//! One single-threaded runtime per core for connections, one for services, and background threads
//! of lower priority.
//!
//! An accepted connection stays on its runtime; there is no work stealing. Background threads
//! compute (flush, compaction, scans) at a lower priority, so they get the CPU time that
//! connections leave. They also yield often, so that no connection waits long for them.
#![allow(clippy::disallowed_methods, reason = "implements the spawner that all other code gets through Env")]

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle as ThreadHandle;
use std::{io, thread};

use base::BoxFuture;
use base::env::{MakeTask, Spawner, TaskClass};
use base::threads::lower_priority;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The runtimes of the process.
pub struct Runtimes {
    connections: Group,
    service: Group,
    background: Group,
    scan: Group,
}

/// Runtimes of one class, used round-robin.
struct Group {
    handles: Vec<Handle>,
    next: AtomicUsize,
    // Dropped with the group, which ends the threads.
    _stops: Vec<oneshot::Sender<()>>,
    _threads: Vec<ThreadHandle<()>>,
}

impl Runtimes {
    /// Starts the threads: `cores` for connections, `cores` for scans of whole tables, one for
    /// services, and `background` for other long computations.
    ///
    /// # Errors
    /// The system's error if it has no threads or descriptors left.
    pub fn start(cores: usize, background: usize) -> io::Result<Runtimes> {
        Ok(Runtimes {
            connections: Group::start("connection", cores.max(1), || {})?,
            service: Group::start("service", 1, || {})?,
            background: Group::start("background", background.max(1), lower_priority)?,
            scan: Group::start("scan", cores.max(1), lower_priority)?,
        })
    }

    /// Waits until each thread for connections and services has run a task. It does not return if
    /// one of them hangs.
    pub async fn respond(&self) {
        let handles = self.connections.handles.iter().chain(&self.service.handles);
        let tasks: Vec<_> = handles.map(|handle| handle.spawn(async {})).collect();
        for task in tasks {
            // A task without code cannot fail.
            let _ = task.await;
        }
    }

    fn group(&self, class: TaskClass) -> &Group {
        match class {
            TaskClass::Connection => &self.connections,
            TaskClass::Service => &self.service,
            TaskClass::Background => &self.background,
            TaskClass::Scan => &self.scan,
        }
    }
}

impl Spawner for Runtimes {
    fn spawn_with(&self, class: TaskClass, make: MakeTask) -> JoinHandle<()> {
        let runtime = self.group(class).next();
        match class {
            TaskClass::Connection | TaskClass::Service => runtime.spawn(async move { make().await }),
            TaskClass::Background | TaskClass::Scan => runtime.spawn(async move { yielding(make()).await }),
        }
    }
}

/// Runs `task`, and yields the core to other threads whenever the task yields to other tasks.
///
/// A low priority alone is not enough. It entitles a thread to about a tenth of a contended core,
/// but the kernel grants that share in one piece, from one timer tick to the next. That is 4 ms on
/// many machines, in which calls wait. Tasks that compute for long yield about every 0.1 ms, so
/// they get the same share in small pieces.
async fn yielding(mut task: BoxFuture<'static, ()>) {
    poll_fn(|cx| {
        let polled = task.as_mut().poll(cx);
        if polled.is_pending() {
            thread::yield_now();
        }
        polled
    })
    .await;
}

impl Group {
    fn start(name: &str, count: usize, prepare: fn()) -> io::Result<Group> {
        let mut group =
            Group { handles: vec![], next: AtomicUsize::new(0), _stops: vec![], _threads: vec![] };
        for index in 0..count {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let (stop, stopped) = oneshot::channel::<()>();
            group.handles.push(runtime.handle().clone());
            group._stops.push(stop);
            group._threads.push(thread::Builder::new().name(format!("{name}-{index}")).spawn(move || {
                prepare();
                // Returns when the sender is dropped.
                let _ = runtime.block_on(stopped);
            })?);
        }
        Ok(group)
    }

    fn next(&self) -> &Handle {
        &self.handles[self.next.fetch_add(1, Ordering::Relaxed) % self.handles.len()]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_hanging_thread_does_not_respond() {
        let runtimes = Runtimes::start(2, 1).unwrap();
        runtimes.respond().await;
        let (resume, wait) = channel::<()>();
        let make: MakeTask = Box::new(move || {
            let _ = wait.recv();
            Box::pin(async {})
        });
        let hanging = runtimes.spawn_with(TaskClass::Connection, make);
        let responded = tokio::time::timeout(Duration::from_millis(200), runtimes.respond()).await;
        assert!(responded.is_err(), "one of two threads hangs");
        resume.send(()).unwrap();
        hanging.await.unwrap();
        runtimes.respond().await;
    }
}
