//! The chores of regions used without a server: flush and compact in the background when a region wishes it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::env::{Env, TaskClass};
use bytes::Bytes;
use tracing::error;

use crate::budget::{FlushReason, Maintenance};
use crate::compaction::Ask;
use crate::region::{Region, Unhurried};

/// Does each wish in a background task of its own, the same wish only once at a time.
pub struct Chores {
    env: Env,
    running: Arc<Running>,
}

/// Encoded names of regions being flushed, with the family of stores being compacted.
#[derive(Default)]
struct Running(Mutex<HashSet<(Arc<str>, Option<Bytes>)>>);

impl Chores {
    /// Chores whose tasks run on the background threads of `env`.
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

impl Running {
    fn lock(&self) -> MutexGuard<'_, HashSet<(Arc<str>, Option<Bytes>)>> {
        // A set of names: whole after any panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Maintenance for Chores {
    fn flush_wanted(&self, region: &Arc<Region>, _: FlushReason) {
        self.start(region, None, |region| async move {
            region.wait_for_fewer_files().await;
            if let Err(error) = region.flush().await {
                error!(region = %region.name(), %error, "flush failed; the memstore is kept until the next one");
            }
            region.want_compactions();
        });
    }

    fn compaction_wanted(&self, region: &Arc<Region>, family: &[u8]) {
        let family = Bytes::copy_from_slice(family);
        self.start(region, Some(family.clone()), |region| async move {
            let compacted = match region.select_compaction(&family, Ask::default()).await {
                Ok(Some(selected)) => region.run_compaction(selected, &Unhurried).await.map(drop),
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = compacted {
                error!(region = %region.name(), %error, "compaction failed; the files are as they were");
            }
        });
    }
}
