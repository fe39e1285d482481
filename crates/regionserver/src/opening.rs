//! Opening and closing regions for the master.
//!
//! The master's call only takes note; a task of its own does the work and reports what became of it, again and again
//! until the master has taken note in `hbase:meta`.

use std::sync::Arc;
use std::time::Duration;

use base::env::TaskClass;
use cell::region::RegionInfo;
use engine::Region;
use proto::region_state_transition::TransitionCode;
use tracing::{error, info, warn};

use crate::server::RegionServer;

/// The pause before a report that was not taken is made again.
const REPORT_PAUSE: Duration = Duration::from_millis(100);

/// The pause before a close that failed is tried again.
const CLOSE_PAUSE: Duration = Duration::from_secs(1);

/// The end of a transition of a region.
enum Outcome {
    /// It is served, from this sequence id on.
    Opened(u64),
    /// It cannot be served.
    Failed(engine::Error),
    /// It is served no more.
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

    /// What the master is told, without the region.
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
    /// Begins to open a region; the outcome is reported. Nothing happens if it is open or being opened.
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
                // References above all, so that the regions they lead to can go.
                region.want_compactions();
                Outcome::Opened(open_seq_id)
            }
            Err(error) => {
                warn!(region = %info.name().escape_ascii(), %error, "cannot open region; the master retries");
                self.regions().cancel_opening(&info.encoded_name());
                Outcome::Failed(error)
            }
        }
    }

    /// Begins to close a region; the outcome is reported. A region that is not here counts as closed.
    pub(crate) fn begin_close(self: &Arc<Self>, encoded: &str) {
        let Some(region) = self.regions().remove(encoded) else { return };
        let server = self.clone();
        self.env().spawn(TaskClass::Background, async move {
            server.close(&region).await;
            server.report_transition(region.info(), &Outcome::Closed).await;
        });
    }

    async fn close(&self, region: &Arc<Region>) {
        // Not given up: opened again in this process, the region would lack what is in this process's log only.
        while let Err(error) = region.close().await {
            warn!(region = %region.name(), %error, "a region cannot be closed; tried again");
            self.env().clock.sleep(CLOSE_PAUSE).await;
        }
        // Not before: the last flush keeps what they see, so that their clients can go on elsewhere at the same read point.
        let now = self.env().clock.monotonic();
        self.scanners().forget_where(now, |scanner| Arc::ptr_eq(scanner.region(), region));
        region.archive_retired().await;
        self.recovered().settle(&region.info().encoded_name());
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
                Ok(answer) => return self.after_report(info, code, answer.error_message).await,
                Err(error) => {
                    let region = info.encoded_name();
                    warn!(%region, ?code, %error, "cannot report region transition to master; retrying");
                    self.env().clock.sleep(REPORT_PAUSE).await;
                }
            }
        }
    }

    /// A region that the master does not want here is not served.
    async fn after_report(&self, info: &RegionInfo, code: TransitionCode, refused: Option<String>) {
        let Some(why) = refused else { return };
        error!(region = %info.encoded_name(), ?code, why, "the master refused the report of a region");
        if code == TransitionCode::Opened
            && let Some(region) = self.regions().remove(&info.encoded_name())
        {
            self.close(&region).await;
        }
    }
}
