//! Holders: named consumers of archived logs, such as replication, that retain the logs that they
//! still have to read.
//!
//! A log is archived when the edits in it are flushed, and deleted some time later, unless a holder
//! retains it. A holder that is never released retains its logs forever. To make it visible,
//! [`LogHolders::held`] lists the holders.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Which holders retain which logs.
#[derive(Debug, Default)]
pub struct LogHolders {
    // By holder: the file names of its logs.
    logs: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

impl LogHolders {
    /// Retains the log with this file name for `holder`.
    pub fn hold(&self, holder: &str, log: &str) {
        self.lock().entry(holder.to_owned()).or_default().insert(log.to_owned());
    }

    /// Releases one log of `holder`. Does nothing if it does not hold the log.
    pub fn release(&self, holder: &str, log: &str) {
        let mut logs = self.lock();
        if let Some(held) = logs.get_mut(holder) {
            held.remove(log);
            if held.is_empty() {
                logs.remove(holder);
            }
        }
    }

    /// Releases all logs of `holder`.
    pub fn release_all(&self, holder: &str) {
        self.lock().remove(holder);
    }

    /// The holders that retain a log.
    pub fn holders_of(&self, log: &str) -> Vec<String> {
        let logs = self.lock();
        logs.iter().filter(|(_, held)| held.contains(log)).map(|(holder, _)| holder.clone()).collect()
    }

    /// Each holder with the number of logs that it retains.
    pub fn held(&self) -> Vec<(String, usize)> {
        self.lock().iter().map(|(holder, held)| (holder.clone(), held.len())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, BTreeSet<String>>> {
        // Sets of names are valid after any panic.
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_retained_until_its_last_holder_releases_it() {
        let holders = LogHolders::default();
        holders.hold("peer-1", "log.1");
        holders.hold("peer-2", "log.1");
        holders.hold("peer-2", "log.2");
        assert_eq!(holders.holders_of("log.1"), ["peer-1", "peer-2"]);
        holders.release("peer-1", "log.1");
        holders.release("peer-1", "log.9");
        assert_eq!(holders.holders_of("log.1"), ["peer-2"]);
        assert_eq!(holders.held(), [("peer-2".to_owned(), 2)]);
        holders.release_all("peer-2");
        assert!(holders.holders_of("log.2").is_empty() && holders.held().is_empty());
    }
}
