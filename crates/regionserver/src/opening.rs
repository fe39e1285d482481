//! Opens and closes regions for the master.
//!
//! The master's call only registers the request. A separate task does the work and reports the
//! outcome. It repeats the report until the master has recorded the outcome in `hbase:meta`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::env::TaskClass;
use cell::region::{RegionInfo, ServerName};
use engine::Region;
use engine::region::{FlushReason, Maintenance};
use proto::region_state_transition::TransitionCode;
use tracing::{error, info, warn};

use crate::orders::Novelty;
use crate::regions::OpeningStep;
use crate::server::RegionServer;

/// The first pause before a failed report is repeated. It doubles with each failure.
const REPORT_PAUSE_MIN: Duration = Duration::from_millis(100);
/// The longest pause before a failed report is repeated. Each region has a report of its own, and a
/// new master that loads `hbase:meta` rejects all of them.
const REPORT_PAUSE_MAX: Duration = Duration::from_secs(2);
/// Time between two log lines about failed reports, of all regions together.
const REPORT_LOG_PERIOD: Duration = Duration::from_secs(60);

/// The pause before an order checks again whether an earlier one for the same region is completed.
const ORDER_PAUSE: Duration = Duration::from_millis(20);

/// The pause before a failed close is retried.
const CLOSE_PAUSE: Duration = Duration::from_secs(1);

/// The outcome of opening or closing a region.
enum Outcome {
    /// The region is online; its open sequence id.
    Opened(u64),
    /// The region cannot be served.
    Failed(engine::Error),
    /// The region is offline.
    Closed,
}

impl Outcome {
    fn code(&self) -> TransitionCode {
        match self {
            Outcome::Opened(_) => TransitionCode::Opened,
            Outcome::Failed(_) => TransitionCode::FailedOpen,
            Outcome::Closed => TransitionCode::Closed,
        }
    }

    /// The report to the master, without the region.
    fn transition(&self) -> proto::RegionStateTransition {
        let mut transition =
            proto::RegionStateTransition { transition_code: self.code() as i32, ..Default::default() };
        match self {
            Outcome::Opened(open_seq_num) => transition.open_seq_num = Some(*open_seq_num),
            Outcome::Failed(error) => {
                transition.failure = Some(error.to_string());
                transition.damaged = Some(is_damage(error));
            }
            Outcome::Closed => {}
        }
        transition
    }
}

/// Whether files must be repaired before the region can open. `Unsupported` counts as damage, too,
/// because a damaged version field looks like an unsupported version.
fn is_damage(error: &engine::Error) -> bool {
    matches!(error, engine::Error::Corrupt { .. } | engine::Error::Unsupported { .. })
}

/// An order to open a region.
pub(crate) struct OpenOrder {
    /// The number of the order, see [`orders`](crate::orders).
    pub(crate) id: i64,
    /// Dead servers whose logs may have edits of the region.
    pub(crate) dead_servers: Vec<ServerName>,
}

/// An order to close a region.
pub(crate) struct CloseOrder {
    /// The number of the order, see [`orders`](crate::orders).
    pub(crate) id: i64,
    /// The region, for the report if it is not open here.
    pub(crate) info: Option<RegionInfo>,
    /// The server that will open the region next, if it is known.
    pub(crate) destination: Option<ServerName>,
}

impl RegionServer {
    /// Starts to open a region and reports the outcome. A region that is already open is only
    /// reported: the master may have missed the report. A late or repeated order changes nothing:
    /// the first one is answered until the master has recorded the outcome. If a repeated order
    /// opened a region after the first one had failed, the master could already have ordered
    /// another server to open it.
    pub(crate) fn begin_open(self: &Arc<Self>, info: RegionInfo, order: OpenOrder) {
        let encoded = info.encoded_name();
        let novelty = self.orders().record(&encoded, order.id);
        if novelty != Novelty::New {
            return info!(region = %encoded, id = order.id, ?novelty, "ignored an order to open a region");
        }
        let server = self.clone();
        self.env().spawn(TaskClass::Background, async move {
            server.wait_while_closing(&encoded).await;
            if server.is_replaced(&encoded, order.id) {
                return;
            }
            let answer = match server.regions().begin_opening(&encoded, order.id) {
                OpeningStep::Open => server.open(&info, &order.dead_servers).await,
                OpeningStep::Online(region) => Some((Outcome::Opened(region.open_seq_id()), order.id)),
                // A server that stops does not report: the master recovers its regions when it has
                // ended.
                OpeningStep::Joined | OpeningStep::Stopping => None,
            };
            if let Some((outcome, id)) = answer {
                server.report_transition(&info, &outcome, id).await;
            }
        });
    }

    /// Opens a region. Returns the outcome, and the number of the newest order that it answers.
    /// `None` if the server stops meanwhile; then the region is not online.
    async fn open(&self, info: &RegionInfo, dead_servers: &[ServerName]) -> Option<(Outcome, i64)> {
        let start = self.env().clock.monotonic();
        match self.open_region(info, dead_servers).await {
            Ok(region) => {
                let took = self.env().clock.monotonic() - start;
                info!(region = %region.name(), open_seq_id = region.open_seq_id(), ?took, "region opened");
                let open_seq_id = region.open_seq_id();
                let Some(answered) = self.regions().insert(region.clone()) else {
                    region.abandon();
                    return None;
                };
                if self.dead_servers().are_needed_by(&region) {
                    self.schedule().request_flush(&region, FlushReason::Recovery);
                }
                // This compacts, above all, reference files of a split, so that the parent region
                // can be removed.
                region.request_compactions();
                Some((Outcome::Opened(open_seq_id), answered))
            }
            Err(error) => {
                warn!(region = %info.name().escape_ascii(), %error, "cannot open region; the master retries");
                let answered = self.regions().cancel_opening(&info.encoded_name());
                Some((Outcome::Failed(error), answered))
            }
        }
    }

    /// Starts to close a region and reports the outcome. A region that is not open here is reported
    /// as closed if the order has a number (`id` > 0). A late or repeated order changes nothing.
    pub(crate) fn begin_close(self: &Arc<Self>, encoded: &str, order: CloseOrder) {
        let novelty = self.orders().record(encoded, order.id);
        if novelty == Novelty::Outdated {
            return info!(region = encoded, id = order.id, "ignored an outdated order to close a region");
        }
        let (server, encoded) = (self.clone(), encoded.to_string());
        self.env().spawn(TaskClass::Background, async move {
            server.wait_while_opening(&encoded).await;
            server.wait_while_closing(&encoded).await;
            if server.is_replaced(&encoded, order.id) {
                return;
            }
            let closed = match server.regions().begin_closing(&encoded, order.destination.as_ref()) {
                Some(region) => {
                    server.close(&region).await;
                    server.regions().end_closing(&encoded);
                    Some(region.info().clone())
                }
                // The stop may not have written all edits of the region yet.
                None if server.regions().is_stopping() => return,
                None => order.info.filter(|_| order.id > 0),
            };
            if let Some(info) = closed {
                server.report_transition(&info, &Outcome::Closed, order.id).await;
            }
        });
    }

    /// Whether a newer order came while order `id` waited for earlier ones. If so, only the outcome
    /// of the newer order is reported. For example, a repeated order to close a region must not
    /// close the region after it was opened again.
    fn is_replaced(&self, encoded: &str, id: i64) -> bool {
        let is_replaced = self.orders().is_outdated(encoded, id);
        if is_replaced {
            info!(region = encoded, id, "ignored an order that was replaced while it waited");
        }
        is_replaced
    }

    /// Waits until no earlier order closes the region. The region has then written its edits, and
    /// can be opened again.
    async fn wait_while_closing(&self, encoded: &str) {
        while self.regions().is_closing(encoded) {
            self.env().clock.sleep(ORDER_PAUSE).await;
        }
    }

    async fn wait_while_opening(&self, encoded: &str) {
        while self.regions().is_opening(encoded) {
            self.env().clock.sleep(ORDER_PAUSE).await;
        }
    }

    async fn close(&self, region: &Arc<Region>) {
        // Retry without limit. If this task gave up, the master could order this process to open
        // the region again, and the region would then lack the edits that are only in this
        // process's log.
        while let Err(error) = region.close().await {
            warn!(region = %region.name(), %error, "cannot close region; retrying");
            self.env().clock.sleep(CLOSE_PAUSE).await;
        }
        // Forget the scanners only after the last flush. The flush retains what they see, so that
        // their clients can continue on another server at the same read point.
        let now = self.env().clock.monotonic();
        self.scanners().forget_where(now, |scanner| Arc::ptr_eq(scanner.region(), region));
        region.archive_retired().await;
        let encoded = region.info().encoded_name();
        self.recovered().mark_closed(&encoded);
        self.dead_servers().record_closed(&encoded);
        info!(region = %region.name(), "region closed");
    }

    /// Reports an outcome to the master, as the answer to order `id`. If a newer order has come,
    /// the report is outdated, and that order gets an answer of its own.
    async fn report_transition(&self, info: &RegionInfo, outcome: &Outcome, id: i64) {
        let (code, encoded) = (outcome.code(), info.encoded_name());
        let mut pause = REPORT_PAUSE_MIN;
        loop {
            let transition = proto::RegionStateTransition {
                region_info: vec![info.into()],
                proc_id: vec![id],
                ..outcome.transition()
            };
            let request = proto::ReportRegionStateTransitionRequest {
                server: self.name().into(),
                transition: vec![transition],
            };
            match self.master().report_region_state_transition(request).await {
                Ok(answer) => {
                    if let Some(why) = answer.error_message {
                        error!(region = %encoded, ?code, why, "the master rejected a region transition");
                        self.close_rejected(&encoded, code, id).await;
                    }
                    return;
                }
                Err(error) => {
                    if self.failed_reports().is_log_due(self.env().clock.monotonic()) {
                        warn!(
                            region = %encoded, ?code, %error,
                            "cannot report region transitions to master; retrying"
                        );
                    }
                    self.env().clock.sleep(jittered(pause, self.env().random.next_u64())).await;
                    pause = REPORT_PAUSE_MAX.min(pause * 2);
                }
            }
        }
    }

    /// Closes a region again whose report, that order `id` opened it, was rejected by the master.
    /// If a newer order has come, the rejection is late: the region may have moved away and back.
    async fn close_rejected(&self, encoded: &str, code: TransitionCode, id: i64) {
        if code == TransitionCode::Opened
            && !self.orders().is_outdated(encoded, id)
            && let Some(region) = self.regions().begin_closing(encoded, None)
        {
            self.close(&region).await;
            self.regions().end_closing(encoded);
        }
    }
}

/// Limits the log lines about failed reports.
#[derive(Default)]
pub(crate) struct FailedReports {
    /// When the last one was logged.
    logged: Mutex<Option<Duration>>,
}

impl FailedReports {
    /// Whether a failure at `now` is logged.
    fn is_log_due(&self, now: Duration) -> bool {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = logged.is_none_or(|logged| now >= logged + REPORT_LOG_PERIOD);
        if is_due {
            *logged = Some(now);
        }
        is_due
    }
}

/// Between half of `pause` and all of it, so that the reports of many regions are spread.
fn jittered(pause: Duration, random: u64) -> Duration {
    let half = pause / 2;
    half + half * (random % 1001) as u32 / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_spread_over_half_of_their_length() {
        let pause = Duration::from_secs(2);
        assert_eq!(jittered(pause, 0), pause / 2);
        assert_eq!(jittered(pause, 1000), pause);
        assert!((0..5000).all(|random| (pause / 2..=pause).contains(&jittered(pause, random))));
    }

    #[test]
    fn failed_reports_of_all_regions_are_logged_once_a_minute() {
        let failed = FailedReports::default();
        let seconds = [100, 100, 159, 160, 161, 300];
        let logged = seconds.map(|second| failed.is_log_due(Duration::from_secs(second)));
        assert_eq!(logged, [true, false, false, true, false, true]);
    }
}
