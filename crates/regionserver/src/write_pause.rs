//! The pause of a call before it confirms its writes, while memstores fill faster than they are
//! flushed ([`engine::write_pace`]).

use std::time::Duration;

use engine::Region;

use crate::server::RegionServer;

/// The pause of a call. It waits once for all its writes: the time of one write is limited, but a
/// call may have writes to many regions.
#[derive(Default)]
pub(crate) struct WritePause {
    // On the monotonic clock; zero if the call need not wait.
    until: Duration,
}

impl WritePause {
    /// Adds a write of `bytes` bytes that the region accepted.
    pub(crate) fn add(&mut self, server: &RegionServer, region: &Region, bytes: usize) {
        let pause = region.write_pause(bytes);
        if !pause.is_zero() {
            self.until = self.until.max(server.env().clock.monotonic() + pause);
        }
    }

    /// Waits for all writes that were added.
    pub(crate) async fn wait(&mut self, server: &RegionServer) {
        if !self.until.is_zero() {
            let clock = &server.env().clock;
            let until = std::mem::take(&mut self.until);
            clock.sleep(until.saturating_sub(clock.monotonic())).await;
        }
    }
}
