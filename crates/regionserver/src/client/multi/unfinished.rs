//! Regions of a `Multi` whose mutations are submitted and may not be durable yet.
//!
//! The regions of a server write to the same log. If a call waited for the mutations of one region
//! before it submitted those of the next one, it would wait for one sync of the log per region.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::Region;

use super::mutation_batch::MutationBatch;
use super::parts::RegionAnswer;
use crate::server::RegionServer;
use crate::users::ClientIdentity;

/// The results of a region action, and a batch whose results are not known yet.
pub(super) struct UnfinishedRegion {
    pub(super) answer: RegionAnswer,
    // Boxed, because calls that only read have none.
    batch: Option<Box<(Arc<Region>, MutationBatch)>>,
}

impl From<RegionAnswer> for UnfinishedRegion {
    /// A region action without a batch.
    fn from(answer: RegionAnswer) -> UnfinishedRegion {
        UnfinishedRegion { answer, batch: None }
    }
}

impl UnfinishedRegion {
    /// The results of a region action before its last batch, all chunks of which are submitted.
    pub(super) fn new(answer: RegionAnswer, region: &Arc<Region>, batch: MutationBatch) -> UnfinishedRegion {
        UnfinishedRegion { answer, batch: (!batch.is_empty()).then(|| Box::new((region.clone(), batch))) }
    }

    /// Whether all results are known.
    pub(super) fn is_finished(&self) -> bool {
        self.batch.is_none()
    }

    /// Waits for the batch. Returns all results.
    pub(super) async fn finish(self, server: &RegionServer, client: Option<&ClientIdentity>) -> RegionAnswer {
        let UnfinishedRegion { mut answer, batch } = self;
        if let Some(batch) = batch {
            let (region, batch) = *batch;
            batch.finish(server, &region, client, &mut answer).await;
        }
        answer
    }
}

/// The region actions of a call from the first unfinished one on, in the order of the request.
#[derive(Default)]
pub(super) struct UnfinishedRegions {
    regions: Vec<UnfinishedRegion>,
    // Encoded names of the regions that have a batch.
    with_batch: BTreeSet<Arc<str>>,
    len_bytes: usize,
}

impl UnfinishedRegions {
    pub(super) fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    /// Bytes of the known results.
    pub(super) fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Whether a batch of this region is not finished. The next actions of the region must see its
    /// mutations.
    pub(super) fn has_batch_of(&self, region: &Region) -> bool {
        self.with_batch.contains(region.encoded_name())
    }

    pub(super) fn push(&mut self, unfinished: UnfinishedRegion) {
        self.len_bytes += unfinished.answer.len();
        if let Some((region, _)) = unfinished.batch.as_deref() {
            let is_new = self.with_batch.insert(region.encoded_name().clone());
            debug_assert!(is_new, "a region's batch is finished before its next actions run");
        }
        self.regions.push(unfinished);
    }

    /// Removes all regions.
    pub(super) fn take(&mut self) -> Vec<UnfinishedRegion> {
        std::mem::take(self).regions
    }
}
