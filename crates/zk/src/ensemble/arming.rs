//! ZooKeeper's one-shot watches of one path.
//!
//! Two of them report every change of a znode: one reports its creation, deletion and value, and
//! the other, which needs the znode to exist, its list of children. After a reconnect the library
//! restores both, and ZooKeeper reports changes that were made in between.
//!
//! The library's watches panic if its task is dropped, which happens only when the runtime of the
//! service threads ends. The panic ends the task of the watch.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use zookeeper_client::WatchedEvent;

use super::session::Session;
use super::translate;
use crate::coordinator::Error;

type Event = Pin<Box<dyn Future<Output = WatchedEvent> + Send>>;

/// The armed watches of a path. `None` if a watch reported a change, or the znode is missing.
#[derive(Default)]
pub(super) struct Armed {
    node: Option<Event>,
    children: Option<Event>,
}

impl Armed {
    /// Arms the watches that are not armed.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::SessionExpired`]. A part may be armed.
    pub(super) async fn arm(&mut self, session: &Session, path: &str) -> Result<(), Error> {
        let client = session.client()?;
        // Both requests are sent here, before the first response.
        let node = self.node.is_none().then(|| client.check_and_watch_stat(path));
        let children = self.children.is_none().then(|| client.get_and_watch_children(path));
        if let Some(response) = node {
            let response = session.response(response).await;
            let (stat, watcher) = response.map_err(|error| translate::error("watch", path, error))?;
            stat.map(|stat| session.seen(&stat));
            self.node = Some(Box::pin(watcher.changed()));
        }
        if let Some(response) = children {
            match session.response(response).await {
                Ok((_, stat, watcher)) => {
                    session.seen(&stat);
                    self.children = Some(Box::pin(watcher.changed()));
                }
                // The other watch reports its creation, or the deletion between the two requests.
                Err(zookeeper_client::Error::NoNode) => {}
                Err(error) => return Err(translate::error("watch the children of", path, error)),
            }
        }
        Ok(())
    }

    /// Waits for a change; returns its zxid, or 0 if the server does not report it (before 3.9).
    pub(super) async fn fired(&mut self) -> i64 {
        poll_fn(|context| {
            let node = poll(&mut self.node, context);
            // A deletion is reported by both, as one change.
            let children = poll(&mut self.children, context);
            match node.max(children) {
                Some(zxid) => Poll::Ready(zxid.max(0)),
                None => Poll::Pending,
            }
        })
        .await
    }
}

/// The zxid of the event, if there is one. Disarms the watch.
fn poll(event: &mut Option<Event>, context: &mut Context<'_>) -> Option<i64> {
    match event.as_mut()?.as_mut().poll(context) {
        Poll::Ready(reported) => {
            *event = None;
            Some(reported.zxid)
        }
        Poll::Pending => None,
    }
}
