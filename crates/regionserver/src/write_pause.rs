//! The pause of a call before its writes, while memstores fill faster than they are flushed
//! ([`engine::write_pace`]).
//!
//! It comes before the writes and not before the confirmation: in the meantime, a flush could
//! archive the log, and with it the nonce by which a restarted server recognizes a retry. For the
//! same reason a call does not pause again after the writes that follow its first pause.

use std::sync::Arc;
use std::time::Duration;

use engine::Region;

use crate::server::RegionServer;

/// How often a pause checks whether the flush has ended meanwhile, and the shortest time between
/// two checks.
const CHECKS: u32 = 10;
const CHECK_PERIOD_MIN: Duration = Duration::from_millis(50);

/// Whether a call has paused. A call may write to many regions, and pauses once.
pub(crate) struct WritePause {
    is_over: bool,
    /// How long the call may still pause.
    left: Duration,
}

impl WritePause {
    /// The pause of a call with this timeout: at most half of it, so that the client still gets the
    /// response, which may be that the region is too busy.
    pub(crate) fn within(timeout: Option<Duration>) -> WritePause {
        WritePause { is_over: false, left: timeout.map_or(Duration::MAX, |timeout| timeout / 2) }
    }

    /// Allows the call to pause again, because it has waited for its writes so far.
    pub(crate) fn allow_again(&mut self) {
        self.is_over = false;
    }

    /// Waits before the first write of a call to several regions, for the one with the longest
    /// pause. After that the call does not pause, even if it did not have to wait here.
    pub(crate) async fn before_all(&mut self, server: &RegionServer, regions: &[Arc<Region>]) {
        // The writes themselves count their bytes.
        let pause = || regions.iter().map(|region| region.write_pause(0)).max().unwrap_or_default();
        self.wait(server, pause(), pause).await;
        self.is_over = true;
    }

    /// Waits before a write of `bytes` bytes to the region, unless the call has waited before.
    pub(crate) async fn before(&mut self, server: &RegionServer, region: &Region, bytes: usize) {
        // Also counts the bytes of a write that does not wait, so that the next call waits longer.
        self.wait(server, region.write_pause(bytes), || region.write_pause(0)).await;
    }

    /// Waits for `pause`, and not longer than a new call would have to wait (`present`).
    async fn wait(&mut self, server: &RegionServer, pause: Duration, present: impl Fn() -> Duration) {
        if self.is_over || pause.is_zero() {
            return;
        }
        self.is_over = true;
        let mut pause = pause.min(self.left);
        let check_period = (pause / CHECKS).max(CHECK_PERIOD_MIN);
        while !pause.is_zero() {
            let part = pause.min(check_period);
            server.env().clock.sleep(part).await;
            self.left -= part;
            pause = (pause - part).min(present());
        }
    }
}
