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

impl RegionServer {
    /// Begins to open a region; the outcome is reported. Nothing happens if it is open or being opened.
    pub(crate) fn begin_open(self: &Arc<Self>, info: RegionInfo) {
        if !self.regions().begin_opening(&info.encoded_name()) {
            return;
        }
        let server = self.clone();
        self.env().spawn(TaskClass::Background, async move {
            let (code, open_seq_num) = server.open(&info).await;
            server.report_transition(&info, code, open_seq_num).await;
        });
    }

    async fn open(&self, info: &RegionInfo) -> (TransitionCode, Option<u64>) {
        let start = self.env().clock.monotonic();
        match self.open_region(info).await {
            Ok(region) => {
                let took = self.env().clock.monotonic() - start;
                info!(region = %region.name(), open_seq_id = region.open_seq_id(), ?took, "region opened");
                let open_seq_id = region.open_seq_id();
                self.regions().insert(region.clone());
                // References above all, so that the regions they lead to can go.
                region.want_compactions();
                (TransitionCode::Opened, Some(open_seq_id))
            }
            Err(error) => {
                error!(region = %info.name().escape_ascii(), %error, "region failed to open; mend what it names and \
                       enable the table again, or restart");
                self.regions().cancel_opening(&info.encoded_name());
                (TransitionCode::FailedOpen, None)
            }
        }
    }

    /// Begins to close a region; the outcome is reported. A region that is not here counts as closed.
    pub(crate) fn begin_close(self: &Arc<Self>, encoded: &str) {
        let Some(region) = self.regions().remove(encoded) else { return };
        let server = self.clone();
        self.env().spawn(TaskClass::Background, async move {
            server.close(&region).await;
            server.report_transition(region.info(), TransitionCode::Closed, None).await;
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

    async fn report_transition(&self, info: &RegionInfo, code: TransitionCode, open_seq_num: Option<u64>) {
        let transition = proto::RegionStateTransition {
            transition_code: code as i32,
            region_info: vec![info.into()],
            open_seq_num,
            ..proto::RegionStateTransition::default()
        };
        let request = proto::ReportRegionStateTransitionRequest {
            server: self.name().into(),
            transition: vec![transition],
        };
        while let Err(error) = self.master().report_region_state_transition(request.clone()).await {
            warn!(region = %info.encoded_name(), ?code, %error, "the master did not take a report; made again");
            self.env().clock.sleep(REPORT_PAUSE).await;
        }
    }
}
