//! Follows the changes of one znode.

use std::sync::Arc;

use bytes::Bytes;

use crate::coordinator::{Coordinator, Error, Watch};

/// A znode that its owner reads again after each change. It has no task: while no function is
/// called, it costs nothing but its watch.
///
/// ```text
/// loop {
///     act_on(tracker.value().await?);
///     tracker.changed().await?;
/// }
/// ```
///
/// No change is missed: the watch is armed before the first read, and remains armed. A read that
/// failed, or whose future was dropped, counts as not made. The znode need not exist.
pub struct ZnodeTracker {
    coordinator: Arc<dyn Coordinator>,
    path: String,
    watch: Option<Watch>,
    // Whether a read has succeeded since the last reported change.
    is_read: bool,
}

impl ZnodeTracker {
    /// Follows the znode at `path`. Nothing is read yet.
    pub fn new(coordinator: Arc<dyn Coordinator>, path: String) -> ZnodeTracker {
        ZnodeTracker { coordinator, path, watch: None, is_read: false }
    }

    /// Reads the value; `None` if there is no znode.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::SessionExpired`].
    pub async fn value(&mut self) -> Result<Option<Bytes>, Error> {
        self.prepare().await?;
        let value = match self.coordinator.get(&self.path).await {
            Ok(znode) => Some(znode.data),
            Err(Error::NoNode { .. }) => None,
            Err(error) => return Err(error),
        };
        self.is_read = true;
        Ok(value)
    }

    /// Reads the sorted names of the children; none if there is no znode.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::SessionExpired`].
    pub async fn children(&mut self) -> Result<Vec<String>, Error> {
        self.prepare().await?;
        let names = match self.coordinator.children(&self.path).await {
            Ok((names, _)) => names,
            Err(Error::NoNode { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        self.is_read = true;
        Ok(names)
    }

    /// Waits until the znode has changed since the last read. Several changes may be reported as
    /// one, and a change that was read may be reported. Before the first read, completes
    /// immediately.
    ///
    /// The future can be dropped and created again.
    ///
    /// # Errors
    /// [`Error::SessionExpired`].
    pub async fn changed(&mut self) -> Result<(), Error> {
        let Some(watch) = self.watch.as_mut().filter(|_| self.is_read) else { return Ok(()) };
        watch.changed().await?;
        self.is_read = false;
        Ok(())
    }

    /// Whether the last read is current: no change is reported since, and the session is connected,
    /// so changes are reported.
    pub fn is_current(&self) -> bool {
        self.is_read && self.watch.as_ref().is_some_and(Watch::is_unchanged)
    }

    /// Before a read: arms the watch.
    async fn prepare(&mut self) -> Result<(), Error> {
        self.is_read = false;
        match &mut self.watch {
            Some(watch) => watch.discard_reports(),
            None => self.watch = Some(self.coordinator.watch(&self.path).await?),
        }
        Ok(())
    }
}
