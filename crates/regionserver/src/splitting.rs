//! Asking the master to split regions that have grown too large, after a flush or a compaction.
//!
//! Only a wish: the master checks it, and closes the region when its turn has come. A wish that is refused is uttered
//! again after the next flush or compaction.
//!
//! Source: HBase `CompactSplit.requestSplit`, `SplitRequest`.

use std::sync::Arc;

use base::env::TaskClass;
use bytes::Bytes;
use cell::region::RegionInfo;
use engine::Region;
use proto::region_state_transition::TransitionCode;
use tracing::{debug, info, warn};

use crate::server::RegionServer;

impl RegionServer {
    /// Asks for a region to be split if it has grown too large.
    pub(crate) fn consider_split(self: &Arc<Self>, region: &Arc<Region>) {
        let regions = self.regions().all();
        let of_table = regions.iter().filter(|other| other.info().table == region.info().table).count();
        let is_gone = !regions.iter().any(|online| Arc::ptr_eq(online, region));
        let is_unfit = is_gone || region.has_too_many_files();
        if regions.len() >= self.options().regions_max || is_unfit || !region.should_split(of_table) {
            return;
        }
        let (server, region) = (self.clone(), region.clone());
        self.env().spawn(TaskClass::Background, async move { server.ask_to_split(&region).await });
    }

    async fn ask_to_split(&self, region: &Region) {
        match region.split_point().await {
            Ok(Some(row)) => {
                let is_begun = self.report_grown(region.info(), &row).await;
                region.instruments().note_split(is_begun);
            }
            Ok(None) => debug!(region = %region.name(), "no row to split a large region at"),
            Err(error) => warn!(region = %region.name(), %error, "no row to split a large region at"),
        }
    }

    /// Whether the master took it.
    async fn report_grown(&self, parent: &RegionInfo, row: &Bytes) -> bool {
        let id = self.env().clock.now_ms().max(parent.region_id + 1);
        let daughter = |start: &Bytes, end: &Bytes| {
            proto::RegionInfo::from(&RegionInfo::new(parent.table.clone(), start.clone(), end.clone(), id))
        };
        let (low, high) = (daughter(&parent.start_key, row), daughter(row, &parent.end_key));
        let transition = proto::RegionStateTransition {
            transition_code: TransitionCode::ReadyToSplit as i32,
            region_info: vec![parent.into(), low, high],
            ..proto::RegionStateTransition::default()
        };
        let request = proto::ReportRegionStateTransitionRequest {
            server: self.name().into(),
            transition: vec![transition],
        };
        let (region, row) = (parent.encoded_name(), row.escape_ascii());
        let reported = self.master().report_region_state_transition(request).await;
        match &reported {
            Ok(_) => info!(%region, %row, "asked to be split"),
            Err(refused) => info!(%region, %row, %refused, "a large region is not split"),
        }
        reported.is_ok()
    }
}
