//! The orders of the master to open and close regions.
//!
//! An order has a number that is higher than those of all earlier orders for the same region. So a
//! late or repeated order is recognized and changes nothing. The numbers are the procedure ids of
//! HBase's messages.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use proto::exception::{Answer, JavaException};
use tokio::sync::{RwLock, RwLockReadGuard};

/// The number of an order that has none.
pub(crate) const NO_ORDER: i64 = -1;

/// How an order relates to the orders that this server has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Novelty {
    /// It is newer than all others for its region.
    New,
    /// It is the newest one and was received before.
    Repeated,
    /// A newer order was received before.
    Outdated,
}

/// The newest order for each region.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    // By encoded name.
    newest: Mutex<HashMap<String, i64>>,
    // When the newest master that gave an order became active, in milliseconds since the Unix
    // epoch.
    master_since_ms: RwLock<i64>,
}

impl Orders {
    /// Records an order for a region. An order without a number (zero or negative) is always new.
    pub(crate) fn record(&self, encoded: &str, id: i64) -> Novelty {
        if id <= 0 {
            return Novelty::New;
        }
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        match newest.get_mut(encoded) {
            Some(known) if *known > id => Novelty::Outdated,
            Some(known) if *known == id => Novelty::Repeated,
            Some(known) => {
                *known = id;
                Novelty::New
            }
            None => {
                newest.insert(encoded.to_string(), id);
                Novelty::New
            }
        }
    }

    /// Whether an order for the region that is newer than order `id` was received. An order waits
    /// for earlier ones, so it must check this again before it changes anything.
    pub(crate) fn is_outdated(&self, encoded: &str, id: i64) -> bool {
        id > 0 && self.newest(encoded) > id
    }

    /// Refuses a call of a master that was replaced by another one. While the result is held, no
    /// call of a later master is accepted: so all changes of a master are completed before its
    /// successor reads them.
    ///
    /// # Errors
    /// `IOException` if a master that became active later has called. It is not final: after a
    /// final error, a procedure is rolled back, and would remove what the later master has created.
    pub(crate) async fn check_master(&self, active_since_ms: i64) -> Answer<RwLockReadGuard<'_, i64>> {
        loop {
            let newest = self.master_since_ms.read().await;
            if active_since_ms == *newest {
                return Ok(newest);
            }
            if active_since_ms < *newest {
                let message = format!(
                    "the call is from a master that became active at {active_since_ms}; another one became active \
                     at {newest}"
                );
                return Err(JavaException::io(message));
            }
            drop(newest);
            let mut newest = self.master_since_ms.write().await;
            *newest = active_since_ms.max(*newest);
        }
    }

    /// The number of the newest order for a region; [`NO_ORDER`] if there is none.
    fn newest(&self, encoded: &str) -> i64 {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.get(encoded).copied().unwrap_or(NO_ORDER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_replaced_master_gives_no_orders() {
        let orders = Orders::default();
        for (since_ms, is_accepted) in [(5, true), (5, true), (7, true), (6, false), (7, true)] {
            let checked = orders.check_master(since_ms).await;
            assert_eq!(checked.is_ok(), is_accepted, "{since_ms}");
            assert!(!checked.is_err_and(|refused| refused.do_not_retry), "no procedure is rolled back");
        }
    }

    #[tokio::test]
    async fn the_changes_of_a_master_end_before_its_successor_is_accepted() {
        let orders = Orders::default();
        let change = orders.check_master(5).await.unwrap();
        let successor = orders.check_master(7);
        tokio::pin!(successor);
        assert!(poll_once(&mut successor).await.is_none(), "it waits for the change");
        drop(change);
        assert!(successor.await.is_ok());
    }

    /// Polls a future once.
    async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        tokio::select! {
            biased;
            output = future => Some(output),
            () = std::future::ready(()) => None,
        }
    }

    #[test]
    fn late_and_repeated_orders_are_recognized() {
        let orders = Orders::default();
        let seen = [5, 5, 7, 5, 7, 8].map(|id| orders.record("r", id));
        use Novelty::*;
        assert_eq!(seen, [New, Repeated, New, Outdated, Repeated, New]);
        assert_eq!((orders.record("other", 1), orders.newest("r"), orders.newest("x")), (New, 8, -1));
        assert_eq!([orders.record("r", 0), orders.record("r", -1)], [New, New]);
        assert_eq!([7, 8, 0, -1].map(|id| orders.is_outdated("r", id)), [true, false, false, false]);
    }
}
