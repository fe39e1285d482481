//! Stopping a server: flushes and closes all regions, then closes the logs. This takes bounded time
//! even if the disk does not respond. Edits that cannot be flushed are in the log, and the next
//! start replays them.

use std::sync::Arc;
use std::time::Duration;

use engine::Region;
use tracing::{info, warn};

use crate::server::RegionServer;

/// Time for which failed flushes are retried. Then the remaining regions are closed without a
/// flush.
const FLUSH_RETRY_LIMIT: Duration = Duration::from_secs(5);
/// Time for flushes before regions are closed.
const EARLY_FLUSH_LIMIT: Duration = Duration::from_secs(20);
/// The pause between two attempts to flush.
const RETRY_PAUSE: Duration = Duration::from_millis(250);
/// The pause between two checks whether regions are still being closed.
const CLOSING_PAUSE: Duration = Duration::from_millis(10);
/// Maximum number of regions that the error of a stop names.
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
    /// Flushes all regions while they are served, so that [`stop`](RegionServer::stop) takes little
    /// time. Ends at the first error, and after a limited time.
    pub async fn flush_while_serving(&self) {
        let flush = async {
            for region in self.regions().all() {
                if region.memstore_bytes() == 0 {
                    continue;
                }
                if let Err(error) = region.flush().await {
                    return info!(region = %region.name(), %error, "not flushed before the stop");
                }
            }
        };
        if self.env().timeout(EARLY_FLUSH_LIMIT, flush).await.is_none() {
            info!("not all regions were flushed before the stop");
        }
    }

    /// Flushes and closes all regions, `hbase:meta` last, then closes the logs. Nothing is served
    /// after that.
    ///
    /// # Errors
    /// Names regions that were closed without a flush, with the reasons. The log has their edits.
    pub async fn stop(&self) -> Result<(), String> {
        self.regions().begin_stop();
        let deadline = self.env().clock.monotonic() + FLUSH_RETRY_LIMIT;
        // A region whose close takes longer has its edits in the log.
        while self.regions().is_any_closing() && self.env().clock.monotonic() < deadline {
            self.env().clock.sleep(CLOSING_PAUSE).await;
        }
        let (meta, users): (Vec<_>, Vec<_>) =
            self.regions().all().into_iter().partition(|region| region.info().table.is_meta());
        let mut unflushed = Unflushed::default();
        let mut unflushable = None;
        for region in users.into_iter().chain(meta) {
            self.regions().remove(region.encoded_name());
            let closed = match &unflushable {
                Some(why) => Err(String::clone(why)),
                None => tokio::select! {
                    biased;
                    closed = self.close_until(&region, deadline) => closed,
                    why = self.wait_until_unflushable() => {
                        unflushable = Some(why.clone());
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
        self.close_second_level_cache().await;
        info!(server = %self.name(), unflushed = unflushed.regions, "region server stopped");
        match unflushed.regions {
            0 => Ok(()),
            regions => Err(format!(
                "{regions} regions were not flushed; their edits are in the log, and the next start replays it ({})",
                unflushed.named.join("; ")
            )),
        }
    }

    /// Closes a region. Retries a failed flush until `deadline`, and makes at least one attempt.
    async fn close_until(&self, region: &Arc<Region>, deadline: Duration) -> Result<(), String> {
        let clock = &self.env().clock;
        loop {
            match region.close_once().await {
                Ok(()) => return Ok(()),
                Err(error) if clock.monotonic() >= deadline => return Err(error.to_string()),
                Err(_) => clock.sleep(RETRY_PAUSE).await,
            }
        }
    }

    /// Waits until no flush can succeed, and returns the reason.
    async fn wait_until_unflushable(&self) -> String {
        let clock = &self.env().clock;
        let mut waits_since = None;
        loop {
            if let Some(reason) = self.disk().space.lost() {
                return format!("the data directory is lost: {reason}");
            }
            let now = clock.monotonic();
            waits_since = self.waits_for_space().then(|| waits_since.unwrap_or(now));
            if waits_since.is_some_and(|since| now >= since + FLUSH_RETRY_LIMIT) {
                return "the disk is full, and the log waits for space".into();
            }
            clock.sleep(RETRY_PAUSE).await;
        }
    }
}
