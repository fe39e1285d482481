//! Work of endpoints on threads of low priority, so that reads and writes of the same server keep their time.

use std::sync::Arc;

use base::env::{Clock, Env, TaskClass};
use base::spent;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use wire::exception::{JavaException, class};

use crate::error::Result;

/// Pieces of work at once; others wait in line. Each may hold the blocks that a scan stands on, and what it read ahead.
const AT_ONCE_MAX: usize = 8;

/// Runs work of endpoints.
pub(crate) struct Background {
    env: Env,
    places: Arc<Semaphore>,
}

/// Ends a task when it is dropped.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Background {
    /// Runs on the threads for scans of `env`.
    pub(crate) fn new(env: Env) -> Background {
        Background { env, places: Arc::new(Semaphore::new(AT_ONCE_MAX)) }
    }

    /// The clock by which it runs.
    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.env.clock
    }

    /// Runs `work` to its end, which must let others have their turn now and then. It ends early when this future is dropped, as
    /// it is when the client leaves. What it uses and where its time goes is the caller's.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let place = self.places.clone().acquire_owned().await.expect("places are never taken away");
        let (done, mut outcome) = oneshot::channel();
        let clock = self.env.clock.clone();
        let mut task = Task(self.env.spawn(TaskClass::Scan, async move {
            // Held until the work is gone, whoever ends it.
            let _place = place;
            // Nobody may be there to hear of it.
            let _ = done.send(spent::account_of(&*clock, work).await);
        }));
        let ended = (&mut task.0).await;
        match (outcome.try_recv(), ended) {
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
