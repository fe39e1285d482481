//! Metrics of a server's regions, sampled once for all beans that are derived from them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use engine::Region;
use engine::region::RegionMetrics;
use regionserver::RegionServer;

/// Samples the metrics of all regions. With ten thousand regions, this takes as long as the rest of
/// a scrape.
pub(super) struct RegionSampler {
    server: Arc<RegionServer>,
    last: Mutex<Option<RegionSample>>,
}

/// The metrics of all regions at one moment, by table and start key.
#[derive(Clone)]
pub(super) struct RegionSample {
    at: Duration,
    regions: Arc<Vec<(Weak<Region>, RegionMetrics)>>,
}

impl RegionSampler {
    pub(super) fn new(server: &Arc<RegionServer>) -> Arc<RegionSampler> {
        Arc::new(RegionSampler { server: server.clone(), last: Mutex::default() })
    }

    pub(super) fn server(&self) -> &RegionServer {
        &self.server
    }

    /// The sample for a scrape at `now`, a monotonic time. All beans of one scrape share the
    /// sample.
    pub(super) fn sample(&self, now: Duration) -> RegionSample {
        if let Some(last) = self.last().as_ref().filter(|last| last.at == now) {
            return last.clone();
        }
        let regions = self.server.regions().all();
        // Weak references, so that the sample does not keep closed regions alive until the next
        // scrape.
        let metrics = regions.iter().map(|region| (Arc::downgrade(region), region.metrics()));
        let sample = RegionSample { at: now, regions: Arc::new(metrics.collect()) };
        *self.last() = Some(sample.clone());
        sample
    }

    /// Drops the sample. The last bean of a scrape calls this.
    pub(super) fn forget(&self) {
        *self.last() = None;
    }

    fn last(&self) -> MutexGuard<'_, Option<RegionSample>> {
        // Valid after a panic: it is only ever replaced as a whole.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RegionSample {
    /// The metrics alone.
    pub(super) fn metrics(&self) -> impl Iterator<Item = &RegionMetrics> + Clone {
        self.regions.iter().map(|(_, metrics)| metrics)
    }

    /// The regions that still exist, with their metrics.
    pub(super) fn regions(&self) -> impl Iterator<Item = (Arc<Region>, &RegionMetrics)> {
        self.regions.iter().filter_map(|(region, metrics)| Some((region.upgrade()?, metrics)))
    }
}
