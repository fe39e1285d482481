//! The orders of the master to open and close regions.
//!
//! An order has a number that is higher than those of all earlier orders for the same region. So a
//! late or repeated order is recognized and changes nothing. The numbers are the procedure ids of
//! HBase's messages.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use proto::exception::{Answer, JavaException};

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
    // When the newest master that gave an order became active, in milliseconds since the Unix epoch.
    master_since_ms: AtomicI64,
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

    /// Refuses orders of a master that was replaced by another one.
    ///
    /// # Errors
    /// `DoNotRetryIOException` if a master that became active later has given an order.
    pub(crate) fn check_master(&self, active_since_ms: i64) -> Answer<()> {
        let newest = self.master_since_ms.fetch_max(active_since_ms, Ordering::AcqRel);
        if active_since_ms < newest {
            let message = format!(
                "the order is from a master that became active at {active_since_ms}; another one became active \
                 at {newest}"
            );
            return Err(JavaException::do_not_retry(message));
        }
        Ok(())
    }

    /// The number of the newest order for a region; -1 if there is none.
    pub(crate) fn newest(&self, encoded: &str) -> i64 {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.get(encoded).copied().unwrap_or(-1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_master_gives_no_orders() {
        let orders = Orders::default();
        let accepted = [5, 5, 7, 6, 7].map(|since_ms| orders.check_master(since_ms).is_ok());
        assert_eq!(accepted, [true, true, true, false, true]);
    }

    #[test]
    fn late_and_repeated_orders_are_recognized() {
        let orders = Orders::default();
        let seen = [5, 5, 7, 5, 7, 8].map(|id| orders.record("r", id));
        use Novelty::*;
        assert_eq!(seen, [New, Repeated, New, Outdated, Repeated, New]);
        assert_eq!((orders.record("other", 1), orders.newest("r"), orders.newest("x")), (New, 8, -1));
        assert_eq!([orders.record("r", 0), orders.record("r", -1)], [New, New]);
    }
}
