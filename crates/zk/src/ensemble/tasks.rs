//! The library's task on the threads of [`Env`].
//!
//! The library starts a task for its session, through the crate `spawns-core`, which looks for the
//! thread's current spawner. Without it, the library would need a feature that starts the task on
//! the tokio runtime that happens to call it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;

use base::env::{Env, TaskClass};
use spawns_core::{Spawn, Task};
use tokio::sync::watch;
use zookeeper_client::{Client, Error};

use super::connection::{self, Connection, End};

struct ServiceThreads {
    env: Env,
    end: End,
}

impl Spawn for ServiceThreads {
    fn spawn(&self, task: Task) {
        let task = connection::serve(Box::into_pin(task.future), Arc::clone(&self.end));
        self.env.spawn(TaskClass::Service, task);
    }
}

/// Waits for a client. Its task runs on the service threads.
///
/// # Errors
/// Those of `connecting`.
pub(super) async fn connect(
    env: &Env,
    connecting: impl Future<Output = Result<Client, Error>>,
) -> Result<Connection, Error> {
    let end = Arc::new(watch::channel(None).0);
    let spawner = ServiceThreads { env: env.clone(), end: Arc::clone(&end) };
    let mut connecting = pin!(connecting);
    let client = poll_fn(|context| {
        let _scope = spawns_core::enter(&spawner);
        connecting.as_mut().poll(context)
    })
    .await?;
    Ok(Connection::new(client, end))
}
