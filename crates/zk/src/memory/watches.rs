//! The watches of one session.

use std::collections::{BTreeSet, HashMap};

use tokio::sync::watch;

/// The watched paths of a session. While the session is suspended, changes are recorded, and
/// reported when it resumes, as by a real ensemble.
#[derive(Default)]
pub(super) struct Watches {
    /// By path: the number of changes so far. Paths without a watch have no entry.
    changes: HashMap<String, watch::Sender<u64>>,
    /// The paths that changed while the session was suspended; `None` if it is connected.
    missed: Option<BTreeSet<String>>,
}

impl Watches {
    pub(super) fn subscribe(&mut self, path: &str) -> watch::Receiver<u64> {
        self.changes.entry(path.to_string()).or_insert_with(|| watch::channel(0).0).subscribe()
    }

    /// Reports a change of `path`, and forgets its watches if all are dropped.
    pub(super) fn notify(&mut self, path: &str) {
        let Some(changes) = self.changes.get(path) else { return };
        if changes.is_closed() {
            self.changes.remove(path);
            return;
        }
        match &mut self.missed {
            Some(missed) => _ = missed.insert(path.to_string()),
            None => changes.send_modify(|changes| *changes += 1),
        }
    }

    pub(super) fn suspend(&mut self) {
        self.missed.get_or_insert_default();
    }

    /// Reports the changes since the suspension.
    pub(super) fn resume(&mut self) {
        for path in self.missed.take().unwrap_or_default() {
            self.notify(&path);
        }
    }
}
