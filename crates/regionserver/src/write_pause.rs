//! The pauses of a call before its writes, while memstores fill faster than they are flushed
//! ([`engine::write_pace`]).
//!
//! They come before the writes and not before the confirmation: in the meantime, a flush could
//! archive the log, and with it the nonce by which a restarted server recognizes a retry.

use std::time::Duration;

use engine::Region;
use engine::write_pace::PAUSE_MAX;

use crate::server::RegionServer;

/// The time that a call may still wait. The limit is for all its writes together, because a call
/// may write to many regions.
pub(crate) struct WritePause {
    left: Duration,
}

impl Default for WritePause {
    /// Before the first write.
    fn default() -> WritePause {
        WritePause { left: PAUSE_MAX }
    }
}

impl WritePause {
    /// Waits before a write of `bytes` bytes to the region.
    pub(crate) async fn before(&mut self, server: &RegionServer, region: &Region, bytes: usize) {
        let pause = region.write_pause(bytes).min(self.left);
        if !pause.is_zero() {
            self.left -= pause;
            server.env().clock.sleep(pause).await;
        }
    }
}
