//! Stopping a server: flushes and closes all regions, then closes the logs. Edits that cannot be
//! flushed are in the log, and the next start replays them. Edits of `SKIP_WAL` writes are not: a
//! stop with a limit waits until they are flushed.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use engine::Region;
use engine::region::RegionState;
use futures_util::stream::{self, StreamExt};
use tracing::{info, warn};

use crate::server::RegionServer;

/// Time for which failed flushes are retried. Then the remaining regions are closed without a
/// flush.
const FLUSH_RETRY_LIMIT: Duration = Duration::from_secs(5);
/// Time for closing the logs after regions had to be abandoned.
const FILES_LIMIT: Duration = Duration::from_secs(2);
/// Time for flushes before regions are closed.
const EARLY_FLUSH_LIMIT: Duration = Duration::from_secs(20);
/// The pause between two attempts to flush.
const RETRY_PAUSE: Duration = Duration::from_millis(250);
/// The pause between two checks whether regions are still being closed.
const CLOSING_PAUSE: Duration = Duration::from_millis(10);
/// Regions that are flushed or closed at the same time. A close mostly waits for the storage.
const REGIONS_AT_ONCE: usize = 8;
/// Maximum number of regions that the error of a stop names.
const NAMED_MAX: usize = 3;

/// Regions that were closed without a flush, and the reasons of some.
#[derive(Default)]
struct Unflushed {
    regions: usize,
    named: Vec<String>,
}

impl Unflushed {
    fn add(&mut self, region: &Region, why: &str) {
        self.regions += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(format!("{}: {why}", region.name()));
        }
    }
}

/// How the stop of a server has ended.
#[derive(Default)]
struct Stopped {
    /// Their edits are in the log.
    logged: Unflushed,
    /// They had edits that are in no file and in no log.
    lost: Unflushed,
}

impl Stopped {
    /// Stops serving a region that cannot be flushed.
    fn abandon(&mut self, region: &Region, why: &str) {
        match region.abandon_if_logged() {
            true => {
                warn!(region = %region.name(), error = why, "region closed without a flush; the log has its edits");
                self.logged.add(region, why);
            }
            false => {
                region.abandon();
                self.add_lost(region, why);
            }
        }
    }

    fn add_lost(&mut self, region: &Region, why: &str) {
        warn!(region = %region.name(), error = why, "region closed without a flush; its SKIP_WAL edits are lost");
        self.lost.add(region, why);
    }

    /// # Errors
    /// Names regions that have lost edits.
    fn check_lost(&self) -> Result<(), String> {
        match self.lost.regions {
            0 => Ok(()),
            regions => Err(format!(
                "{regions} regions were not flushed; their SKIP_WAL edits are lost ({})",
                self.lost.named.join("; ")
            )),
        }
    }

    /// # Errors
    /// Names regions that were not flushed.
    fn check_flushed(&self) -> Result<(), String> {
        self.check_lost()?;
        match self.logged.regions {
            0 => Ok(()),
            regions => Err(format!(
                "{regions} regions were not flushed; their edits are in the log, and the next start replays it ({})",
                self.logged.named.join("; ")
            )),
        }
    }
}

/// How the close of a region has ended.
enum Ending {
    Closed,
    Abandoned,
}

impl RegionServer {
    /// Flushes all regions while they are served, so that [`stop`](RegionServer::stop) takes little
    /// time. Ends at the first error, and after a limited time.
    pub async fn flush_while_serving(&self) {
        let flush = async {
            let mut regions = self.regions().all();
            regions.retain(|region| region.memstore_bytes() > 0);
            let flushes = stream::iter(regions).map(|region| async move {
                let flushed = region.flush().await;
                (region, flushed)
            });
            let mut flushes = flushes.buffer_unordered(REGIONS_AT_ONCE);
            while let Some((region, flushed)) = flushes.next().await {
                if let Err(error) = flushed {
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
    /// Names regions that were closed without a flush, with the reasons. The log has their edits,
    /// except those that skip it.
    pub async fn stop(&self) -> Result<(), String> {
        self.close_all(Duration::MAX).await.check_flushed()
    }

    /// The same for a server of a cluster, in which the next server of a region reads its edits
    /// from the log. So regions that are not closed after `limit` are abandoned, unless they have
    /// edits that skip the log. Soon after, the logs are abandoned, too.
    ///
    /// # Errors
    /// Names regions that have lost edits which skip the log, with the reasons.
    pub async fn stop_within(&self, limit: Duration) -> Result<(), String> {
        self.close_all(limit).await.check_lost()
    }

    async fn close_all(&self, limit: Duration) -> Stopped {
        self.regions().begin_stop();
        let now = self.env().clock.monotonic();
        let (deadline, end) = (now + FLUSH_RETRY_LIMIT, now.saturating_add(limit));
        // A region whose close takes longer has its edits in the log, except those that skip it.
        while self.regions().is_any_closing() && self.env().clock.monotonic() < deadline {
            self.env().clock.sleep(CLOSING_PAUSE).await;
        }
        let (meta, mut users): (Vec<_>, Vec<_>) =
            self.regions().all().into_iter().partition(|region| region.info().table.is_meta());
        // First those that must be flushed.
        users.sort_by_cached_key(|region| !region.has_unlogged());
        let mut stopped = Stopped::default();
        for regions in [users, meta] {
            self.close_regions(&regions, (deadline, end), &mut stopped).await;
        }
        for region in self.regions().closing().iter().filter(|region| region.has_unlogged()) {
            stopped.add_lost(region, "the close that the master ordered has not ended");
        }
        self.close_files(end).await;
        self.regions().end_stop();
        let unflushed = stopped.logged.regions + stopped.lost.regions;
        info!(server = %self.name(), unflushed, "region server stopped");
        stopped
    }

    /// Closes regions, some at the same time. Retries a failed flush until `deadline`. If no flush
    /// can succeed, closes them without one. After `end`, regions are abandoned.
    async fn close_regions(
        &self,
        regions: &[Arc<Region>],
        (deadline, end): (Duration, Duration),
        stopped: &mut Stopped,
    ) {
        let closes = stream::iter(regions.to_vec()).map(|region| async move {
            self.regions().remove(region.encoded_name());
            let closed = tokio::select! {
                biased;
                () = self.abandon_at(end, &region) => Ok(Ending::Abandoned),
                closed = self.close_until(&region, deadline) => closed.map(|()| Ending::Closed),
            };
            (region, closed)
        });
        let mut closes = closes.buffer_unordered(REGIONS_AT_ONCE);
        let mut unflushable = pin!(self.wait_until_unflushable());
        let mut abandoned = 0;
        let why = loop {
            tokio::select! {
                biased;
                closed = closes.next() => match closed {
                    Some((_, Ok(Ending::Closed))) => {}
                    Some((_, Ok(Ending::Abandoned))) => abandoned += 1,
                    Some((region, Err(why))) => stopped.abandon(&region, &why),
                    None => break None,
                },
                why = &mut unflushable => break Some(why),
            }
        };
        drop(closes);
        if abandoned > 0 {
            info!(regions = abandoned, "no time to close regions; the log has their edits");
        }
        let Some(why) = why else { return };
        for region in regions.iter().filter(|region| region.state() != RegionState::Closed) {
            self.regions().remove(region.encoded_name());
            stopped.abandon(region, &why);
        }
    }

    /// Closes the logs and the second-level cache. After `end`, this takes a short time at most:
    /// the next servers of the regions fence the logs, and cannot begin before the session has
    /// ended.
    async fn close_files(&self, end: Duration) {
        let closes = async {
            for log in self.logs() {
                log.close().await;
            }
            self.close_second_level_cache().await;
        };
        let limit = end.max(self.env().clock.monotonic() + FILES_LIMIT);
        tokio::select! {
            biased;
            () = closes => {}
            () = self.wait_until(limit) => warn!("no time to close the logs; their edits are read from them"),
        }
    }

    /// Waits until `end`, and then stops serving a region. Does not return if the region has edits
    /// that are only in memory.
    async fn abandon_at(&self, end: Duration, region: &Region) {
        self.wait_until(end).await;
        if !region.abandon_if_logged() {
            pending().await
        }
    }

    /// Waits until `end` by the monotonic clock; for ever if that is too far.
    async fn wait_until(&self, end: Duration) {
        if end == Duration::MAX {
            return pending().await;
        }
        self.env().clock.sleep(end.saturating_sub(self.env().clock.monotonic())).await;
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
