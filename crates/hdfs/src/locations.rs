//! Where the blocks of an open file are, as the NameNode listed them last.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::env::TaskClass;
use fs::{Error, FilePath, Result};
use tracing::debug;

use crate::file::Shared;
use crate::link::Node;
use crate::located::{Located, locate};

/// The pause between two refreshes of a file's locations. A NameNode lists the replicas of a dead
/// DataNode for 10 minutes, so a refresh may change nothing.
const REFRESH_PERIOD: Duration = Duration::from_secs(60);

/// The locations of a file's blocks.
pub(crate) struct Locations {
    shared: Arc<Shared>,
    path: FilePath,
    // The path that names the file by its inode: `/.reserved/.inodes/ID`.
    inode: String,
    len: u64,
    state: Mutex<State>,
}

struct State {
    located: Arc<Located>,
    // Before this time no refresh begins.
    next_refresh: Duration,
}

impl Locations {
    /// The locations of the file at `inode`, a path of the form `/.reserved/.inodes/ID`.
    pub(crate) fn new(shared: Arc<Shared>, path: FilePath, inode: String, located: Located) -> Locations {
        let len = located.len;
        let state = State { located: Arc::new(located), next_refresh: Duration::ZERO };
        Locations { shared, path, inode, len, state: Mutex::new(state) }
    }

    /// Length of the file when it was opened.
    pub(crate) fn file_len(&self) -> u64 {
        self.len
    }

    /// The newest locations.
    pub(crate) fn current(&self) -> Arc<Located> {
        self.state().located.clone()
    }

    /// Requests new locations.
    pub(crate) async fn locate_again(&self) -> Result<Arc<Located>> {
        let located = Arc::new(locate(&self.shared, &self.path, &self.inode).await?);
        if located.len < self.len {
            let message = format!("the file has only {} bytes now", located.len);
            return Err(Error::io(&self.path, "read", message));
        }
        self.state().located = located.clone();
        Ok(located)
    }

    /// Reads try the replica at `node` after all others, until there are new locations.
    pub(crate) fn put_last(&self, block_id: u64, node: &Node) {
        Arc::make_mut(&mut self.state().located).put_last(block_id, node);
    }

    /// Requests new locations in the background, because a replica could not be read: it may have
    /// been moved, or its DataNode may be dead.
    pub(crate) fn refresh_later(self: &Arc<Self>) {
        let now = self.shared.env.clock.monotonic();
        let mut state = self.state();
        if now < state.next_refresh {
            return;
        }
        // No other refresh begins before this one ends.
        state.next_refresh = Duration::MAX;
        drop(state);
        let this = self.clone();
        self.shared.env.spawn(TaskClass::Background, async move {
            if let Err(error) = this.locate_again().await {
                debug!(path = %this.path, %error, "cannot locate the blocks of a file again");
            }
            this.state().next_refresh = this.shared.env.clock.monotonic() + REFRESH_PERIOD;
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
