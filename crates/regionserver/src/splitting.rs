//! Requests a split from the master when a region has grown too large, after a flush or a
//! compaction.
//!
//! The master checks the request, and closes the region when its procedure starts. A refused
//! request is repeated after the next flush or compaction.
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
    /// Requests a split of a region if it has grown too large.
    pub(crate) fn consider_split(self: &Arc<Self>, region: &Arc<Region>) {
        let regions = self.regions().all();
        let of_table = regions.iter().filter(|other| other.info().table == region.info().table).count();
        let is_gone = !regions.iter().any(|online| Arc::ptr_eq(online, region));
        let is_unfit = is_gone || region.has_too_many_files();
        if regions.len() >= self.options().regions_max || is_unfit || !region.should_split(of_table) {
            return;
        }
        let (server, region) = (self.clone(), region.clone());
        self.env().spawn(TaskClass::Background, async move { server.request_split(&region).await });
    }

    async fn request_split(&self, region: &Region) {
        match region.split_point().await {
            Ok(Some(row)) => {
                let is_begun = self.send_split_request(region.info(), &row).await;
                region.instruments().count_split(is_begun);
            }
            Ok(None) => debug!(region = %region.name(), "large region has no split point"),
            Err(error) => warn!(region = %region.name(), %error, "cannot determine split point"),
        }
    }

    /// Requests the split, and returns whether the master accepted it.
    async fn send_split_request(&self, parent: &RegionInfo, row: &Bytes) -> bool {
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
            Ok(_) => info!(%region, %row, "requested split of large region"),
            Err(refused) => info!(%region, %row, %refused, "master refused to split large region"),
        }
        reported.is_ok()
    }
}
