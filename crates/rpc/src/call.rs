//! What a service sees of a request, and what it gives back.

use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::BoxFuture;
use bytes::Bytes;

use crate::cellblock::CellBlock;
use crate::compressor::Compressor;
use crate::header::{ClientVersion, Codec};

/// Answers the calls of one service.
///
/// A future that is ready when it is first polled costs no task and no wake-up: the answer goes out with those of the
/// other requests that came in the same read. One that is not ready runs on beside its connection's other calls, on
/// the same thread. A call that has begun runs to its end even if its client goes away.
pub trait Service: Send + Sync + 'static {
    /// The name clients ask for, such as `ClientService`.
    fn name(&self) -> &'static str;
    /// The service as this connection has it, where each has its own; asked once, when it is opened.
    fn of_connection(&self, _connection: &Arc<ConnectionInfo>) -> Option<Arc<dyn Service>> {
        None
    }
    /// Answers one call. The future must not block, and should yield after long computing.
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, Failure>>;
}

/// The name of a method, in the bytes of its frame.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Method(Bytes);

impl Method {
    /// A name that is known when the program is built.
    pub const fn of_static(name: &'static str) -> Method {
        Method(Bytes::from_static(name.as_bytes()))
    }

    /// `name`, which lies within `frame`.
    pub(crate) fn of_slice(frame: &Bytes, name: &str) -> Method {
        Method(frame.slice_ref(name.as_bytes()))
    }
}

impl Method {
    /// The name as bytes, for those who compare it with names that they know.
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
        std::str::from_utf8(&self.0).expect("made of text only")
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

/// Who is at the other end of a connection, and what was agreed with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// The client's address.
    pub peer: SocketAddr,
    /// The address it connected to.
    pub local: SocketAddr,
    /// The service it asked for.
    pub service: &'static str,
    /// The user it says it is.
    pub user: Option<String>,
    /// Its version; clients other than HBase's own do not tell one.
    pub version: Option<ClientVersion>,
    /// How cells travel; `None` means as protobuf only, in both directions.
    pub codec: Option<Codec>,
    /// How cell blocks are compressed, in both directions; services see them plain.
    pub compressor: Option<Compressor>,
    /// Whether the client has gone.
    pub presence: Presence,
}

/// Whether a client is still connected. Calls that only read end early once it is not.
#[derive(Debug, Default)]
pub struct Presence {
    has_left: AtomicBool,
}

impl Presence {
    /// Whether the client closed its connection, or lost it.
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

/// Connections are compared by what was agreed, whether they are open or not.
impl PartialEq for Presence {
    fn eq(&self, _: &Presence) -> bool {
        true
    }
}

impl Eq for Presence {}

impl ConnectionInfo {
    /// Whether the client told a version, and one not before this one.
    pub fn version_at_least(&self, major: u32, minor: u32) -> bool {
        self.version.as_ref().is_some_and(|version| (version.major, version.minor) >= (major, minor))
    }
}

/// One request. It owns its frame: `param` and `cells` are slices of it. What must outlive the call should be copied,
/// or the frame (and others that came in the same read) stays in memory with it.
#[derive(Debug, Clone)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// The request message, protobuf.
    pub param: Bytes,
    /// The request's cell block, decompressed; empty if there is none.
    pub cells: Bytes,
    /// Who asks.
    pub connection: Arc<ConnectionInfo>,
    /// What the client says of its trace, protobuf (`RPCTInfo`); mostly nothing.
    pub trace_info: Bytes,
    /// How urgent the client thinks it is; 0 for user tables, 200 for `hbase:meta`.
    pub priority: u32,
    /// When the request was read, on the monotonic clock.
    pub received: Duration,
    /// When the client gives up, on the monotonic clock; `None` if it did not say.
    pub deadline: Option<Duration>,
    /// When it was begun, by the monotonic clock.
    pub begun: Duration,
}

impl Call {
    /// How long the client waits altogether, if it said so.
    pub fn timeout(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_sub(self.received))
    }
}

/// A good answer.
#[derive(Debug, Default, Clone)]
pub struct Reply {
    /// The response message, protobuf.
    pub message: Bytes,
    /// Cells behind it; only for a connection with a codec.
    pub cells: CellBlock,
}

impl Reply {
    /// An answer without cells.
    pub fn message(message: impl Into<Bytes>) -> Reply {
        Reply { message: message.into(), ..Reply::default() }
    }
}

/// A failed call: a Java exception by the name that the client makes it again from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The Java class; it must exist in the client's jar.
    pub class: Cow<'static, str>,
    /// The message, without the class.
    pub message: String,
    /// Whether trying again is useless.
    pub do_not_retry: bool,
    /// Where the region is now, if it moved.
    pub location: Option<(String, u16)>,
    /// Whether the client should wait longer before it tries again.
    pub server_overloaded: bool,
}

impl Failure {
    /// A failure of `class`, which may be tried again.
    pub fn new(class: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Failure {
        Failure {
            class: class.into(),
            message: message.into(),
            do_not_retry: false,
            location: None,
            server_overloaded: false,
        }
    }

    /// A plain `DoNotRetryIOException`.
    pub fn do_not_retry(message: impl Into<String>) -> Failure {
        Failure { do_not_retry: true, ..Failure::new(crate::DO_NOT_RETRY_IO_EXCEPTION, message) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message.trim_end_matches('\n') {
            "" => f.write_str(&self.class),
            message => write!(f, "{}: {message}", self.class),
        }
    }
}
