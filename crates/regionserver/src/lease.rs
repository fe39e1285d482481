//! Whether this server may still answer clients.
//!
//! When the session of a server with the coordination service expires, the master opens its regions
//! elsewhere. A server that was paused meanwhile does not know that yet. So each response is sent
//! only if the session was still valid after the response was computed: then everything in it was
//! read before another server could serve the region.

use std::sync::Arc;

use proto::exception::{Answer, JavaException, class};

/// The lease of a server on its regions.
#[derive(Clone, Default)]
pub struct Lease(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Lease {
    /// A lease that never ends, for a server that is the only one.
    pub fn unlimited() -> Lease {
        Lease(None)
    }

    /// A lease that is valid while `is_valid` returns true. It is called for each response.
    pub fn new(is_valid: impl Fn() -> bool + Send + Sync + 'static) -> Lease {
        Lease(Some(Arc::new(is_valid)))
    }

    /// Whether the lease can end.
    pub(crate) fn is_limited(&self) -> bool {
        self.0.is_some()
    }

    /// Checks that the lease is valid.
    ///
    /// # Errors
    /// `RegionServerStoppedException`, after which clients locate the region again.
    pub(crate) fn check(&self) -> Answer<()> {
        match &self.0 {
            Some(is_valid) if !is_valid() => Err(JavaException::new(
                class::REGION_SERVER_STOPPED,
                "this server has lost its session with ZooKeeper; another server may serve the region",
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_lease_ends() {
        let valid = Arc::new(AtomicBool::new(true));
        let shared = valid.clone();
        let lease = Lease::new(move || shared.load(Ordering::Relaxed));
        assert!(lease.check().is_ok() && lease.is_limited());
        valid.store(false, Ordering::Relaxed);
        assert!(lease.check().unwrap_err().is(class::REGION_SERVER_STOPPED));
        assert!(Lease::unlimited().check().is_ok() && !Lease::unlimited().is_limited());
    }
}
