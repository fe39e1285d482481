//! A connection that several devices share.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::model::transfer_time;

/// A controller or bus with a bandwidth of its own, which its devices share.
#[derive(Debug)]
pub struct Bus {
    bytes_per_s: u64,
    // When the transfers that it has accepted end.
    free_at: Mutex<Duration>,
}

impl Bus {
    /// A bus that transfers `bytes_per_s`, reads and writes together.
    pub fn new(bytes_per_s: u64) -> Arc<Bus> {
        Arc::new(Bus { bytes_per_s, free_at: Mutex::default() })
    }

    /// Accepts a transfer that can begin at `from`; returns when it ends.
    pub(super) fn transfer(&self, from: Duration, bytes: u64) -> Duration {
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        *free_at = from.max(*free_at) + transfer_time(bytes, self.bytes_per_s);
        *free_at
    }
}
