//! The library's task on the threads of [`Env`].
//!
//! The library starts a task for its session, through the crate `spawns-core`, which looks for the
//! thread's current spawner. Without it, the library would need a feature that starts the task on
//! the tokio runtime that happens to call it.

use std::future::{Future, poll_fn};
use std::pin::pin;

use base::env::{Env, TaskClass};
use spawns_core::{Spawn, Task};

struct ServiceThreads(Env);

impl Spawn for ServiceThreads {
    fn spawn(&self, task: Task) {
        self.0.spawn(TaskClass::Service, Box::into_pin(task.future));
    }
}

/// Waits for `future`. The tasks that it starts through the library run on the service threads.
pub(super) async fn on_service_threads<T>(env: &Env, future: impl Future<Output = T>) -> T {
    let spawner = ServiceThreads(env.clone());
    let mut future = pin!(future);
    poll_fn(|context| {
        let _scope = spawns_core::enter(&spawner);
        future.as_mut().poll(context)
    })
    .await
}
