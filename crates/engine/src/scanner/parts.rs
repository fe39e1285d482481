//! What a region passes to each of its scanners.

use std::sync::Arc;

use base::env::Clock;
use base::metrics::Counts;
use cell::CellOrder;

use crate::instruments::StoreCounts;
use crate::mob::MobResolver;
use crate::mvcc::ReadGuard;
use crate::scanner::load::BlockLoader;

/// The parts of a [`RegionScanner`](super::RegionScanner) that do not depend on the scan's rows.
pub struct ScannerParts {
    /// The order of the region's cells.
    pub order: CellOrder,
    /// The read point, registered so that compactions keep the cells that it sees.
    pub guard: ReadGuard,
    /// The time by which cells expire.
    pub now_ms: i64,
    /// Loads blocks that are not cached.
    pub loader: Arc<BlockLoader>,
    /// Maximum bytes of one store's cells in a result (HBase's limit for rows).
    pub store_bytes_max: u64,
    /// The scanner keeps its views while it is idle. Required if the read point was not the newest
    /// one when it was registered: only these views are known to have all that it may see.
    pub pins_views: bool,
    /// Seed for filters that select rows at random.
    pub seed: u64,
    /// Measures waits for blocks, and the time of filters.
    pub clock: Arc<dyn Clock>,
    /// Resolves references to MOB files; `None` if no family has any.
    pub(crate) mob: Option<Arc<MobResolver>>,
    /// Counters of reads, for all stores of the region in order of names.
    pub(crate) counts: Arc<[Counts<StoreCounts>]>,
}
