//! The interface between the server and a service: requests and responses.

use std::fmt;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::BoxFuture;
use bytes::Bytes;
use proto::exception::JavaException;

use crate::cellblock::CellBlock;
use crate::compressor::Compressor;
use crate::header::{ClientVersion, Codec};

/// Answers the calls of one service.
///
/// A future that is ready at its first poll needs no task and no wake-up. Its response is sent
/// together with those of the other requests of the same read. Other futures run concurrently with
/// the connection's other calls, on the same thread. A call that has started runs to completion
/// even if its client disconnects.
pub trait Service: Send + Sync + 'static {
    /// The name that clients request, such as `ClientService`.
    fn name(&self) -> &'static str;
    /// A service instance for this connection, if the service has one per connection. Called once,
    /// when the connection is opened.
    fn of_connection(&self, _connection: &Arc<ConnectionInfo>) -> Option<Arc<dyn Service>> {
        None
    }
    /// Answers one call. The future must not block, and should yield during long computations.
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, JavaException>>;
}

/// The name of a method, as a slice of its frame.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Method(Bytes);

impl Method {
    /// A name that is known at compile time.
    pub const fn of_static(name: &'static str) -> Method {
        Method(Bytes::from_static(name.as_bytes()))
    }

    /// The method `name`, a slice of `frame`.
    pub(crate) fn of_slice(frame: &Bytes, name: &str) -> Method {
        Method(frame.slice_ref(name.as_bytes()))
    }
}

impl Method {
    /// The name as bytes, for comparisons with known names.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&str> for Method {
    fn from(name: &str) -> Method {
        Method(Bytes::copy_from_slice(name.as_bytes()))
    }
}

impl Deref for Method {
    type Target = str;
    fn deref(&self) -> &str {
        std::str::from_utf8(&self.0).expect("method names are valid UTF-8")
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &**self)
    }
}

/// The client of a connection, and the parameters negotiated with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// The client's address.
    pub peer: SocketAddr,
    /// The local address that it connected to.
    pub local: SocketAddr,
    /// The requested service.
    pub service: &'static str,
    /// The user name that the client claims, unverified.
    pub claimed_user: Option<String>,
    /// The identity that the handshake verified. `None` on a connection without authentication.
    pub principal: Option<Principal>,
    /// Its version; only HBase's own clients send one.
    pub version: Option<ClientVersion>,
    /// The codec of cell blocks; `None` means that cells are inside the messages, in both
    /// directions.
    pub codec: Option<Codec>,
    /// The compressor of cell blocks, in both directions; services see them uncompressed.
    pub compressor: Option<Compressor>,
    /// Whether the client has disconnected.
    pub presence: Presence,
}

/// An authenticated identity, such as `alice/host@REALM`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal(pub String);

/// Decides whether a call may run.
///
/// The server asks before each call, on the thread of its connection, so a decision must not block.
/// Only calls over the network are asked for: calls within the process come from the server itself.
pub trait Authorizer: fmt::Debug + Send + Sync + 'static {
    /// Allows the call.
    ///
    /// # Errors
    /// The exception for the client, if the call may not run.
    fn authorize(&self, call: &Call) -> Result<(), JavaException>;
}

/// Allows every call.
#[derive(Debug, Default, Clone, Copy)]
pub struct AllowAll;

impl Authorizer for AllowAll {
    #[inline]
    fn authorize(&self, _: &Call) -> Result<(), JavaException> {
        Ok(())
    }
}

/// Whether a client is still connected. Calls that only read end early once it has disconnected.
#[derive(Debug, Default)]
pub struct Presence {
    has_left: AtomicBool,
}

impl Presence {
    /// Whether the client closed its connection or lost it.
    pub fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Relaxed)
    }

    pub(crate) fn leave(&self) {
        self.has_left.store(true, Ordering::Relaxed);
    }
}

impl Clone for Presence {
    fn clone(&self) -> Presence {
        Presence { has_left: AtomicBool::new(self.has_left()) }
    }
}

/// Always equal: connections are compared by their negotiated parameters, whether they are open or
/// not.
impl PartialEq for Presence {
    fn eq(&self, _: &Presence) -> bool {
        true
    }
}

impl Eq for Presence {}

impl ConnectionInfo {
    /// The name under which calls are counted and limited: that of the claimed user.
    pub fn user(&self) -> Option<&str> {
        self.claimed_user.as_deref()
    }

    /// Whether the client sent a version that is at least this one.
    pub fn version_at_least(&self, major: u32, minor: u32) -> bool {
        self.version.as_ref().is_some_and(|version| (version.major, version.minor) >= (major, minor))
    }
}

/// One request. It owns its frame: `param` and `cells` are slices of it. Copy data that must
/// outlive the call. Otherwise the frame, and others of the same read, stay in memory with it.
#[derive(Debug, Clone)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// The request message, protobuf.
    pub param: Bytes,
    /// The request's cell block, decompressed; empty if there is none.
    pub cells: Bytes,
    /// The connection of the client.
    pub connection: Arc<ConnectionInfo>,
    /// The client's trace information, protobuf (`RPCTInfo`); usually empty.
    pub trace_info: Bytes,
    /// The priority that the client requests; 0 for user tables, 200 for `hbase:meta`.
    pub priority: u32,
    /// When the request was read, on the monotonic clock.
    pub received: Duration,
    /// When the client gives up, on the monotonic clock; `None` without a timeout.
    pub deadline: Option<Duration>,
    /// When the call was started, on the monotonic clock.
    pub begun: Duration,
}

impl Call {
    /// The client's timeout for the call, if it sent one.
    pub fn timeout(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_sub(self.received))
    }
}

/// A successful response.
#[derive(Debug, Default, Clone)]
pub struct Reply {
    /// The response message, protobuf.
    pub message: Bytes,
    /// The response's cells; only for a connection with a codec.
    pub cells: CellBlock,
}

impl Reply {
    /// A response without cells.
    pub fn message(message: impl Into<Bytes>) -> Reply {
        Reply { message: message.into(), ..Reply::default() }
    }
}
