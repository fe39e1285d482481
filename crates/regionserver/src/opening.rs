//! Opens and closes regions for the master.
//!
//! The master's call only registers the request. A separate task does the work and reports the
//! outcome. It repeats the report until the master has recorded the outcome in `hbase:meta`.

use std::sync::Arc;
use std::time::Duration;

use base::env::TaskClass;
use cell::region::RegionInfo;
use engine::Region;
use proto::region_state_transition::TransitionCode;
use tracing::{error, info, warn};

use crate::server::RegionServer;

/// The pause before a failed report is repeated.
const REPORT_PAUSE: Duration = Duration::from_millis(100);

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
                transition.damaged = Some(matches!(error, engine::Error::Corrupt { .. }));
            }
            Outcome::Closed => {}
        }
        transition
    }
}

impl RegionServer {
    /// Starts to open a region and reports the outcome. Does nothing if it is already open or being
    /// opened.
    pub(crate) fn begin_open(self: &Arc<Self>, info: RegionInfo) {
        if !self.regions().begin_opening(&info.encoded_name()) {
            return;
        }
        let server = self.clone();
        self.env().spawn(TaskClass::Background, async move {
            let outcome = server.open(&info).await;
            server.report_transition(&info, &outcome).await;
        });
    }

    async fn open(&self, info: &RegionInfo) -> Outcome {
        let start = self.env().clock.monotonic();
        match self.open_region(info).await {
            Ok(region) => {
                let took = self.env().clock.monotonic() - start;
                info!(region = %region.name(), open_seq_id = region.open_seq_id(), ?took, "region opened");
                let open_seq_id = region.open_seq_id();
                self.regions().insert(region.clone());
                // This compacts, above all, reference files of a split, so that the parent region
                // can be removed.
                region.request_compactions();
                Outcome::Opened(open_seq_id)
            }
            Err(error) => {
                warn!(region = %info.name().escape_ascii(), %error, "cannot open region; the master retries");
                self.regions().cancel_opening(&info.encoded_name());
                Outcome::Failed(error)
            }
        }
    }

    /// Starts to close a region and reports the outcome. Does nothing if the region is not online
    /// here.
    pub(crate) fn begin_close(self: &Arc<Self>, encoded: &str) {
        let Some(region) = self.regions().remove(encoded) else { return };
        let server = self.clone();
        self.env().spawn(TaskClass::Background, async move {
            server.close(&region).await;
            server.report_transition(region.info(), &Outcome::Closed).await;
        });
    }

    async fn close(&self, region: &Arc<Region>) {
        // Retry without limit: if the region were reopened in this process, it would lack the edits
        // that only this process's log has.
        while let Err(error) = region.close().await {
            warn!(region = %region.name(), %error, "cannot close region; retrying");
            self.env().clock.sleep(CLOSE_PAUSE).await;
        }
        // Forget the scanners only after the last flush. The flush retains what they see, so that
        // their clients can continue on another server at the same read point.
        let now = self.env().clock.monotonic();
        self.scanners().forget_where(now, |scanner| Arc::ptr_eq(scanner.region(), region));
        region.archive_retired().await;
        self.recovered().mark_closed(&region.info().encoded_name());
        info!(region = %region.name(), "region closed");
    }

    async fn report_transition(&self, info: &RegionInfo, outcome: &Outcome) {
        let code = outcome.code();
        let transition =
            proto::RegionStateTransition { region_info: vec![info.into()], ..outcome.transition() };
        let request = proto::ReportRegionStateTransitionRequest {
            server: self.name().into(),
            transition: vec![transition],
        };
        loop {
            match self.master().report_region_state_transition(request.clone()).await {
                Ok(answer) => return self.close_if_rejected(info, code, answer.error_message).await,
                Err(error) => {
                    let region = info.encoded_name();
                    warn!(%region, ?code, %error, "cannot report region transition to master; retrying");
                    self.env().clock.sleep(REPORT_PAUSE).await;
                }
            }
        }
    }

    /// Closes a region again if the master rejected the report that it is open.
    async fn close_if_rejected(&self, info: &RegionInfo, code: TransitionCode, refused: Option<String>) {
        let Some(why) = refused else { return };
        error!(region = %info.encoded_name(), ?code, why, "the master rejected a region transition");
        if code == TransitionCode::Opened
            && let Some(region) = self.regions().remove(&info.encoded_name())
        {
            self.close(&region).await;
        }
    }
}
