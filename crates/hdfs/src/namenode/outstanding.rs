//! A call to one NameNode, from its first transmission to its response.
//!
//! A NameNode that pauses or has a long queue still executes the calls that it has received. So a
//! call that timed out is not sent again: its later attempts continue to wait for the same
//! response. A new connection would put the call at the end of the queue, because a NameNode skips
//! the queued calls of a connection that was closed.
//!
//! But a connection on which nothing arrives may be lost, for example in a firewall. It is silent
//! if no response to any call has arrived in the second half of an attempt, and it is then
//! replaced. If the next one is silent too, the NameNode is probably only slow, so each further
//! connection gets twice as many attempts.

use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use tokio::sync::oneshot;

use crate::connection::{CallId, Connection, Response, response_of};

/// The largest number of silent attempts before a connection is replaced.
const SILENT_ATTEMPTS_MAX: u32 = 16;

/// A call to one NameNode.
pub(super) struct Outstanding {
    sent: Option<Sent>,
    /// The number of silent attempts after which the connection is replaced.
    silent_max: u32,
}

/// The last transmission of the call.
struct Sent {
    connection: Arc<Connection>,
    response: oneshot::Receiver<Response>,
    silent_attempts: u32,
}

impl Default for Outstanding {
    fn default() -> Outstanding {
        Outstanding { sent: None, silent_max: 1 }
    }
}

impl Outstanding {
    /// Whether the call was sent, and its response was not returned yet.
    pub(super) fn is_sent(&self) -> bool {
        self.sent.is_some()
    }

    pub(super) fn send(
        &mut self,
        connection: Arc<Connection>,
        method: &str,
        call: CallId,
        request: &impl Message,
    ) {
        let response = connection.send(method, call, request);
        self.sent = Some(Sent { connection, response, silent_attempts: 0 });
    }

    /// Waits for the response; `None` if the call was not sent. A cancelled wait can be continued.
    pub(super) async fn response(&mut self) -> Option<Response> {
        let response = response_of(&mut self.sent.as_mut()?.response).await;
        self.sent = None;
        Some(response)
    }

    /// Records that an attempt of this length got no response. If the connection may be lost, it is
    /// retired, and the next attempt sends the call again.
    pub(super) fn record_timeout(&mut self, attempt: Duration, now: Duration) {
        let Some(sent) = &mut self.sent else { return };
        if sent.connection.last_response() + attempt / 2 > now {
            sent.silent_attempts = 0;
            return;
        }
        sent.silent_attempts += 1;
        if sent.silent_attempts >= self.silent_max {
            sent.connection.retire();
            self.sent = None;
            self.silent_max = (self.silent_max * 2).min(SILENT_ATTEMPTS_MAX);
        }
    }
}
