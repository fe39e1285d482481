//! The pause of a call before its writes, while memstores fill faster than they are flushed
//! ([`engine::write_pace`]).
//!
//! It comes before the writes and not before the confirmation: in the meantime, a flush could
//! archive the log, and with it the nonce by which a restarted server recognizes a retry. For the
//! same reason a call does not pause again after the writes that follow its first pause.

use engine::Region;

use crate::server::RegionServer;

/// Whether a call has paused. A call may write to many regions, and pauses once.
#[derive(Default)]
pub(crate) struct WritePause {
    is_over: bool,
}

impl WritePause {
    /// Waits before a write of `bytes` bytes to the region, unless the call has waited before.
    pub(crate) async fn before(&mut self, server: &RegionServer, region: &Region, bytes: usize) {
        // Also counts the bytes of a write that does not wait, so that the next call waits longer.
        let pause = region.write_pause(bytes);
        if !pause.is_zero() && !self.is_over {
            self.is_over = true;
            server.env().clock.sleep(pause).await;
        }
    }
}
