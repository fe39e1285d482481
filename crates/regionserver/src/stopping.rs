//! Stop: all regions are flushed and closed, and the logs. It ends in bounded time, whatever the disk does: what cannot
//! be flushed is in the log, and the next start replays it.

use std::sync::Arc;
use std::time::Duration;

use engine::Region;
use tracing::{info, warn};

use crate::server::RegionServer;

/// How long flushes may fail, all together, before the rest is left to the log.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause between two tries.
const RETRY_PAUSE: Duration = Duration::from_millis(250);
/// Regions that the error of a stop names.
const NAMED_MAX: usize = 3;

/// Regions that were closed without a flush.
#[derive(Default)]
struct Unflushed {
    regions: usize,
    named: Vec<String>,
}

impl Unflushed {
    fn add(&mut self, region: &Region, why: &str) {
        warn!(region = %region.name(), error = why, "region closed without a flush; the log has its edits");
        region.abandon();
        self.regions += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(format!("{}: {why}", region.name()));
        }
    }
}

impl RegionServer {
    /// Flushes and closes all regions, `hbase:meta` last, and the logs. Nothing is served any more.
    ///
    /// # Errors
    /// Which regions were closed without a flush, and why; the log has their edits.
    pub async fn stop(&self) -> Result<(), String> {
        let (meta, users): (Vec<_>, Vec<_>) =
            self.regions().all().into_iter().partition(|region| region.info().table.is_meta());
        let give_up_at = self.env().clock.monotonic() + PATIENCE;
        let mut unflushed = Unflushed::default();
        let mut hopeless = None;
        for region in users.into_iter().chain(meta) {
            self.regions().remove(region.encoded_name());
            let closed = match &hopeless {
                Some(why) => Err(String::clone(why)),
                None => tokio::select! {
                    biased;
                    closed = self.close_until(&region, give_up_at) => closed,
                    why = self.hopeless() => {
                        hopeless = Some(why.clone());
                        Err(why)
                    }
                },
            };
            if let Err(why) = closed {
                unflushed.add(&region, &why);
            }
        }
        for log in self.logs() {
            log.close().await;
        }
        info!(server = %self.name(), unflushed = unflushed.regions, "region server stopped");
        match unflushed.regions {
            0 => Ok(()),
            regions => Err(format!(
                "{regions} regions were not flushed; their edits are in the log, and the next start replays it ({})",
                unflushed.named.join("; ")
            )),
        }
    }

    /// Closes a region; a flush that fails is retried until `give_up_at`, at least once.
    async fn close_until(&self, region: &Arc<Region>, give_up_at: Duration) -> Result<(), String> {
        let clock = &self.env().clock;
        loop {
            match region.close_once().await {
                Ok(()) => return Ok(()),
                Err(error) if clock.monotonic() >= give_up_at => return Err(error.to_string()),
                Err(_) => clock.sleep(RETRY_PAUSE).await,
            }
        }
    }

    /// Waits until nothing can be flushed any more; why.
    async fn hopeless(&self) -> String {
        let clock = &self.env().clock;
        let mut waits_since = None;
        loop {
            if let Some(reason) = self.disk().space.lost() {
                return format!("the data directory is lost: {reason}");
            }
            let now = clock.monotonic();
            waits_since = self.waits_for_room().then(|| waits_since.unwrap_or(now));
            if waits_since.is_some_and(|since| now >= since + PATIENCE) {
                return "the disk is full, and the log waits for room".into();
            }
            clock.sleep(RETRY_PAUSE).await;
        }
    }
}
