//! Background flushes and compactions for regions that are used without a server.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::env::{Env, TaskClass};
use bytes::Bytes;
use tracing::error;

use crate::compaction::SelectionRequest;
use crate::region::{FlushReason, Maintenance, Region, Unthrottled};

/// Runs each request in its own background task. A request that is already running is ignored.
pub struct Chores {
    env: Env,
    running: Arc<RunningChores>,
}

/// Running tasks: the encoded name of the region, and for a compaction the family.
#[derive(Default)]
struct RunningChores(Mutex<HashSet<(Arc<str>, Option<Bytes>)>>);

impl Chores {
    /// Runs its tasks on the background threads of `env`.
    pub fn new(env: Env) -> Chores {
        Chores { env, running: Arc::default() }
    }

    fn start<F>(&self, region: &Arc<Region>, family: Option<Bytes>, chore: impl FnOnce(Arc<Region>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let key = (region.encoded_name().clone(), family);
        if !self.running.lock().insert(key.clone()) {
            return;
        }
        let (running, chore) = (self.running.clone(), chore(region.clone()));
        self.env.spawn(TaskClass::Background, async move {
            chore.await;
            running.lock().remove(&key);
        });
    }
}

impl RunningChores {
    fn lock(&self) -> MutexGuard<'_, HashSet<(Arc<str>, Option<Bytes>)>> {
        // A set of names: consistent after any panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Maintenance for Chores {
    fn request_flush(&self, region: &Arc<Region>, _: FlushReason) {
        self.start(region, None, |region| async move {
            region.wait_for_fewer_files().await;
            if let Err(error) = region.flush().await {
                error!(region = %region.name(), %error, "flush failed; edits stay in memory until the next flush");
            }
            region.request_compactions();
        });
    }

    fn request_compaction(&self, region: &Arc<Region>, family: &[u8]) {
        let family = Bytes::copy_from_slice(family);
        self.start(region, Some(family.clone()), |region| async move {
            let compacted = match region.select_compaction(&family, SelectionRequest::default()).await {
                Ok(Some(selected)) => region.run_compaction(selected, &Unthrottled).await.map(drop),
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = compacted {
                error!(region = %region.name(), %error, "compaction failed; the store's files are unchanged");
            }
        });
    }
}
