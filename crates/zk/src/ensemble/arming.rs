//! ZooKeeper's one-shot watches of one path.
//!
//! Two of them report every change of a znode: one reports its creation, deletion and value, and
//! the other, which needs the znode to exist, its list of children. After a reconnect the library
//! restores both, and ZooKeeper reports changes that were made in between. A client that is given
//! up reports nothing more: then the metadata show whether there were changes.
//!
//! The library's watches panic if its task is dropped before them, which happens only when the
//! runtime of the service threads ends. The panic ends the task of the watch.

use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use zookeeper_client::WatchedEvent;

use super::connection::{Connection, GivenUp};
use super::session::Session;
use super::translate;
use crate::coordinator::{Error, Stat};

type Event = Pin<Box<dyn Future<Output = WatchedEvent> + Send>>;

/// The armed watches of a path. `None` if a watch reported a change, or the znode is missing.
#[derive(Default)]
pub(super) struct Armed {
    node: Option<Event>,
    children: Option<Event>,
    /// Of the client of both; it is dropped after them.
    given_up: Option<GivenUp>,
    /// The newest metadata, read when a part was armed. `None`: the znode is missing.
    stat: Option<Stat>,
    /// Whether the metadata changed since [`Armed::take_changed`].
    is_changed: bool,
}

impl Armed {
    /// Arms the watches that are not armed.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::SessionExpired`]. A part may be armed.
    pub(super) async fn arm(&mut self, session: &Session, path: &str) -> Result<(), Error> {
        let client = session.client()?;
        self.use_client(&client);
        // Both requests are sent here, before the first response.
        let node = self.node.is_none().then(|| client.check_and_watch_stat(path));
        let children = self.children.is_none().then(|| client.get_and_watch_children(path));
        if let Some(response) = node {
            let response = session.response(&client, response).await;
            let (stat, watcher) = response.map_err(|error| translate::error("watch", path, error))?;
            self.node = Some(Box::pin(watcher.changed()));
            self.compare(stat.map(|stat| session.seen(&stat)));
        }
        if let Some(response) = children {
            match session.response(&client, response).await {
                Ok((_, stat, watcher)) => {
                    self.children = Some(Box::pin(watcher.changed()));
                    self.compare(Some(session.seen(&stat)));
                }
                // The other watch reports its creation, or the deletion between the two requests.
                Err(zookeeper_client::Error::NoNode) => self.compare(None),
                Err(error) => return Err(translate::error("watch the children of", path, error)),
            }
        }
        Ok(())
    }

    /// Waits for a change; returns its zxid, or 0 if the server does not report it (before 3.9).
    /// Returns `None` if the client is given up: there may be changes.
    pub(super) async fn fired(&mut self) -> Option<i64> {
        let Armed { node, children, given_up, .. } = self;
        let change = poll_fn(|context| {
            let node = poll(node, context);
            // A deletion is reported by both, as one change.
            let children = poll(children, context);
            match node.max(children) {
                Some(zxid) => Poll::Ready(zxid.max(0)),
                None => Poll::Pending,
            }
        });
        tokio::select! {
            biased;
            zxid = change => Some(zxid),
            () = wait(given_up) => None,
        }
    }

    /// Whether the metadata changed since the last call.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// Disarms the watches of a client that is given up.
    fn use_client(&mut self, client: &Connection) {
        if self.given_up.as_ref().is_some_and(GivenUp::is_given_up) {
            self.node = None;
            self.children = None;
        }
        self.given_up = Some(client.given_up());
    }

    fn compare(&mut self, stat: Option<Stat>) {
        self.is_changed |= self.stat != stat;
        self.stat = stat;
    }
}

async fn wait(given_up: &mut Option<GivenUp>) {
    match given_up {
        Some(given_up) => given_up.wait().await,
        None => pending().await,
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
