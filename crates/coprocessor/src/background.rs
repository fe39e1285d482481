//! Runs endpoint work on low-priority threads, so that it does not slow down reads and writes of
//! the server.

use std::sync::Arc;

use base::env::{Clock, Env, TaskClass};
use base::spent;
use proto::exception::{JavaException, class};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

use crate::error::Result;

/// Maximum number of concurrent calls; others wait. Each may pin the blocks that its scan reads,
/// and prefetched blocks.
const CONCURRENT_MAX: usize = 8;

/// Executor of endpoint work.
pub(crate) struct Background {
    env: Env,
    permits: Arc<Semaphore>,
}

/// Aborts a task when dropped.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Background {
    /// Uses the scan threads of `env`.
    pub(crate) fn new(env: Env) -> Background {
        Background { env, permits: Arc::new(Semaphore::new(CONCURRENT_MAX)) }
    }

    /// The environment's clock.
    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.env.clock
    }

    /// Runs `work`, which must yield regularly, to completion. It is aborted when this future is
    /// dropped, which happens when the client disconnects. Its resource usage and time are charged
    /// to the caller.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let permit = self.permits.clone().acquire_owned().await.expect("the semaphore is never closed");
        let (done, mut outcome) = oneshot::channel();
        let clock = self.env.clock.clone();
        let mut task = Task(self.env.spawn(TaskClass::Scan, async move {
            // Held until the work is dropped, even if it is aborted.
            let _permit = permit;
            // The receiver may be gone.
            let _ = done.send(spent::account_of(&*clock, work).await);
        }));
        let task_result = (&mut task.0).await;
        match (outcome.try_recv(), task_result) {
            (Ok((output, spent)), _) => {
                spent::absorb(&spent);
                output
            }
            (Err(_), Err(failed)) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
            (Err(_), _) => {
                Err(JavaException::new(class::REGION_SERVER_STOPPED, "the server is stopping").into())
            }
        }
    }
}
