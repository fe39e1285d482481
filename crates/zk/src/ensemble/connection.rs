//! One client of the library, which can be given up.
//!
//! The library reconnects a client until the session must have expired, and closes the session when
//! the client is dropped. Its watches panic if its task is dropped. So a client that is given up is
//! not polled any more, but the client and its task exist until its last user ended.

use std::future::pending;
use std::ops::Deref;
use std::sync::Arc;

use base::BoxFuture;
use tokio::sync::watch;
use zookeeper_client::Client;

/// A client, for the session, for an operation or for a watch.
#[derive(Clone)]
pub(super) struct Connection {
    client: Arc<Client>,
    end: End,
    given_up: GivenUp,
}

/// Gives a client up. The value is that client: it must exist as long as its task.
pub(super) type End = Arc<watch::Sender<Option<Arc<Client>>>>;

/// Notifies a user of a client that it is given up, and keeps the task of the client until then.
#[derive(Clone)]
pub(super) struct GivenUp(watch::Receiver<Option<Arc<Client>>>);

impl Connection {
    /// A client whose task is [`serve`] with the same `end`.
    pub(super) fn new(client: Client, end: End) -> Connection {
        let given_up = GivenUp(end.subscribe());
        Connection { client: Arc::new(client), end, given_up }
    }

    /// Stops the task of the client, without closing the session.
    pub(super) fn give_up(self) {
        self.end.send_replace(Some(self.client));
    }

    /// Notifies of [`Connection::give_up`].
    pub(super) fn given_up(&self) -> GivenUp {
        self.given_up.clone()
    }
}

impl Deref for Connection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl GivenUp {
    /// Whether the client is given up.
    pub(super) fn is_given_up(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits until the client is given up.
    pub(super) async fn wait(&mut self) {
        let has_ended = self.0.wait_for(Option::is_some).await.is_err();
        if has_ended {
            // The client ended, and nothing can give it up.
            pending::<()>().await;
        }
    }
}

/// The library's task of a client.
pub(super) async fn serve(mut task: BoxFuture<'static, ()>, end: End) {
    let mut given_up = GivenUp(end.subscribe());
    tokio::select! {
        biased;
        () = given_up.wait() => {}
        () = &mut task => return,
    }
    drop(given_up);
    end.closed().await;
    drop(task);
}
