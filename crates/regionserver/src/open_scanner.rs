//! What an open scanner holds between the calls of its client. [`scanners`](crate::scanners) leases
//! it, and the call `Scan` advances it.

use std::sync::Arc;

use base::budget::HeldBytes;
use engine::Region;
use engine::scanner::{RegionScanner, ReleasedViews};

/// A scanner between calls.
pub struct OpenScanner {
    pub(crate) region: Arc<Region>,
    pub(crate) scanner: RegionScanner,
    /// Limit of one response in bytes: the smaller of the client's and the server's.
    pub(crate) bytes_max: u64,
    pub(crate) wants_cursor: bool,
    /// The memory that it holds between calls, as accounted in the server's budget.
    #[expect(dead_code, reason = "it is released when the scanner is dropped")]
    pub(crate) held: HeldBytes,
}

impl OpenScanner {
    /// The region that it reads.
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// Releases the memstores and files that it pins, if the region has replaced them.
    pub fn release_if_outdated(&mut self) -> Option<ReleasedViews> {
        self.region.should_rest(&self.scanner).then(|| self.scanner.rest())
    }
}
