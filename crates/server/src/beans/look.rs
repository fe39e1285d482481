//! The figures of a server's regions, made once for all beans that are made of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use engine::Region;
use engine::region::RegionFigures;
use regionserver::RegionServer;

/// Asks regions for their figures. With ten thousand of them that takes as long as all else of a look.
pub(super) struct Regions {
    server: Arc<RegionServer>,
    last: Mutex<Option<Look>>,
}

/// What the regions said, by table and start key.
#[derive(Clone)]
pub(super) struct Look {
    at: Duration,
    regions: Arc<Vec<(Weak<Region>, RegionFigures)>>,
}

impl Regions {
    pub(super) fn of(server: &Arc<RegionServer>) -> Arc<Regions> {
        Arc::new(Regions { server: server.clone(), last: Mutex::default() })
    }

    pub(super) fn server(&self) -> &RegionServer {
        &self.server
    }

    /// The figures for a look at `now`, by the monotonic clock: those that another bean had made for it, if one had.
    pub(super) fn look(&self, now: Duration) -> Look {
        if let Some(last) = self.last().as_ref().filter(|last| last.at == now) {
            return last.clone();
        }
        let regions = self.server.regions().all();
        // Not to keep closed regions until the next look.
        let figures = regions.iter().map(|region| (Arc::downgrade(region), region.figures()));
        let look = Look { at: now, regions: Arc::new(figures.collect()) };
        *self.last() = Some(look.clone());
        look
    }

    /// Nobody else is to make anything of the last look.
    pub(super) fn forget(&self) {
        *self.last() = None;
    }

    fn last(&self) -> MutexGuard<'_, Option<Look>> {
        // Whole after any panic: it is replaced at once.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Look {
    /// The figures alone.
    pub(super) fn figures(&self) -> impl Iterator<Item = &RegionFigures> + Clone {
        self.regions.iter().map(|(_, figures)| figures)
    }

    /// Regions that are still there, and their figures.
    pub(super) fn regions(&self) -> impl Iterator<Item = (Arc<Region>, &RegionFigures)> {
        self.regions.iter().filter_map(|(region, figures)| Some((region.upgrade()?, figures)))
    }
}
