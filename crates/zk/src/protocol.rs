//! ZooKeeper's frames: the requests that HBase's clients send, and the responses.
//!
//! ```text
//! frame:    int32 length | body, both ways; the client speaks first
//! connect:  int32 protocol version | int64 last zxid seen | int32 timeout ms | int64 session
//!           | buffer password [| bool]
//! response: int32 protocol version | int32 timeout ms | int64 session
//!           | buffer password [| bool, if the request has one]
//! request:  int32 xid | int32 type | ...
//! reply:    int32 xid | int64 zxid | int32 error | ... (if no error)
//! string, buffer: int32 length (-1: null) | bytes
//! ```
//!
//! Source: ZooKeeper's `zookeeper.jute`, and captures of three clients.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::coordinator::Stat;

/// Maximum length of a frame from a client, in bytes: paths and names, never values.
pub const REQUEST_LEN_MAX: usize = 64 * 1024;
/// Bytes of a session's password.
pub const PASSWORD_LEN: usize = 16;
/// Bytes of a [`Stat`].
pub const STAT_LEN: usize = 68;
/// `xid` of a ping and of its reply.
pub const PING_XID: i32 = -2;

/// Error codes of replies.
pub mod code {
    /// Success.
    pub const OK: i32 = 0;
    /// The server does not support the request.
    pub const UNIMPLEMENTED: i32 = -6;
    /// The path is invalid.
    pub const BAD_ARGUMENTS: i32 = -8;
    /// No such znode.
    pub const NO_NODE: i32 = -101;
    /// Not allowed.
    pub const NO_AUTH: i32 = -102;
    /// The session has expired.
    pub const SESSION_EXPIRED: i32 = -112;
    /// The znodes cannot be read now.
    pub const SYSTEM_ERROR: i32 = -1;
}

/// Types of requests.
pub mod kind {
    /// Create a znode; its variants are 15, 19, 20 and 21.
    pub const CREATE: i32 = 1;
    /// Delete a znode.
    pub const DELETE: i32 = 2;
    /// Whether a znode exists.
    pub const EXISTS: i32 = 3;
    /// Read a znode's value.
    pub const GET_DATA: i32 = 4;
    /// Replace a znode's value.
    pub const SET_DATA: i32 = 5;
    /// Set a znode's permissions.
    pub const SET_ACL: i32 = 7;
    /// List a znode's children.
    pub const GET_CHILDREN: i32 = 8;
    /// Wait for earlier changes.
    pub const SYNC: i32 = 9;
    /// Keep the session alive.
    pub const PING: i32 = 11;
    /// List a znode's children and read its metadata.
    pub const GET_CHILDREN2: i32 = 12;
    /// Several changes in one request.
    pub const MULTI: i32 = 14;
    /// Create a znode; the reply has its metadata.
    pub const CREATE2: i32 = 15;
    /// Authenticate the client.
    pub const AUTH: i32 = 100;
    /// Restore the watches of an earlier connection.
    pub const SET_WATCHES: i32 = 101;
    /// The same, in the newer form.
    pub const SET_WATCHES2: i32 = 105;
    /// Close the session.
    pub const CLOSE: i32 = -11;
}

/// Bytes that cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed: {0}")]
pub struct Malformed(pub &'static str);

/// The first request of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectRequest {
    /// The highest zxid that the client has seen.
    pub last_zxid: i64,
    /// The requested session timeout.
    pub timeout_ms: i32,
    /// A session to resume; 0 for a new one.
    pub session: i64,
    /// That session's password.
    pub password: Bytes,
    /// The read-only flag of newer clients. If the request has it, so does the response.
    pub read_only: Option<bool>,
}

impl ConnectRequest {
    /// Decodes the body of the first frame.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(body: &Bytes) -> Result<ConnectRequest, Malformed> {
        let mut fields = Fields(body.clone());
        fields.int()?;
        let request = ConnectRequest {
            last_zxid: fields.long()?,
            timeout_ms: fields.int()?,
            session: fields.long()?,
            password: fields.buffer()?.unwrap_or_default(),
            read_only: fields.rest_as_flag()?,
        };
        if request.password.len() > PASSWORD_LEN {
            return Err(Malformed("a session password is 16 bytes"));
        }
        Ok(request)
    }

    /// Encodes this request as a frame.
    pub fn encode(&self) -> Bytes {
        frame(|out| {
            out.put_i32(0);
            out.put_i64(self.last_zxid);
            out.put_i32(self.timeout_ms);
            out.put_i64(self.session);
            put_buffer(out, &self.password);
            if let Some(flag) = self.read_only {
                out.put_u8(u8::from(flag));
            }
        })
    }
}

/// The response to a [`ConnectRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectResponse {
    /// The granted session timeout; 0 if the requested session has expired.
    pub timeout_ms: i32,
    /// The session; 0 if the requested one has expired.
    pub session: i64,
    /// The session's password.
    pub password: [u8; PASSWORD_LEN],
    /// Present if the request has the flag. Encoded as false.
    pub read_only: Option<bool>,
}

impl ConnectResponse {
    /// Encodes this response as a frame.
    pub fn encode(&self) -> Bytes {
        frame(|out| {
            out.put_i32(0);
            out.put_i32(self.timeout_ms);
            out.put_i64(self.session);
            put_buffer(out, &self.password);
            if self.read_only.is_some() {
                out.put_u8(0);
            }
        })
    }

    /// Decodes the body of the first response.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(body: &Bytes) -> Result<ConnectResponse, Malformed> {
        let mut fields = Fields(body.clone());
        fields.int()?;
        let (timeout_ms, session) = (fields.int()?, fields.long()?);
        let password = fields.buffer()?.unwrap_or_default();
        let password = password.first_chunk().copied().ok_or(Malformed("a session password is 16 bytes"))?;
        Ok(ConnectResponse { timeout_ms, session, password, read_only: fields.rest_as_flag()? })
    }
}

/// A request after the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The client's number for it, echoed in the reply.
    pub xid: i32,
    /// What it requests.
    pub operation: Operation,
}

/// The operation of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Whether a znode exists.
    Exists(String),
    /// A znode's value.
    GetData(String),
    /// A znode's children, and its metadata if `stat`.
    GetChildren {
        /// The znode.
        path: String,
        /// Whether to return its metadata.
        stat: bool,
    },
    /// Wait until earlier changes are visible.
    Sync(String),
    /// Keep the session alive.
    Ping,
    /// The client's credentials; accepted and ignored.
    Auth,
    /// Watches of an earlier connection; accepted, never fired.
    SetWatches,
    /// Close the session.
    Close,
    /// A change, which clients may not make here.
    Change,
    /// Anything else.
    Unknown(i32),
}

impl Request {
    /// Decodes the body of a frame.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(body: &Bytes) -> Result<Request, Malformed> {
        let mut fields = Fields(body.clone());
        let (xid, kind) = (fields.int()?, fields.int()?);
        let operation = match kind {
            kind::EXISTS => Operation::Exists(fields.path_and_watch()?),
            kind::GET_DATA => Operation::GetData(fields.path_and_watch()?),
            kind::GET_CHILDREN | kind::GET_CHILDREN2 => {
                Operation::GetChildren { path: fields.path_and_watch()?, stat: kind == kind::GET_CHILDREN2 }
            }
            kind::SYNC => Operation::Sync(fields.string()?),
            kind::PING => Operation::Ping,
            kind::AUTH => Operation::Auth,
            kind::SET_WATCHES | kind::SET_WATCHES2 => Operation::SetWatches,
            kind::CLOSE => Operation::Close,
            kind::CREATE | kind::DELETE | kind::SET_DATA | kind::SET_ACL | kind::MULTI | kind::CREATE2 => {
                Operation::Change
            }
            other => Operation::Unknown(other),
        };
        Ok(Request { xid, operation })
    }

    /// Encodes a request for one path (watch not set), or for none.
    pub fn encode(xid: i32, kind: i32, path: Option<&str>) -> Bytes {
        frame(|out| {
            out.put_i32(xid);
            out.put_i32(kind);
            if let Some(path) = path {
                put_buffer(out, path.as_bytes());
                out.put_u8(0);
            }
        })
    }
}

/// Appends a reply frame; `payload` is called only if there is no error.
pub fn put_reply(out: &mut BytesMut, xid: i32, zxid: i64, error: i32, payload: impl FnOnce(&mut BytesMut)) {
    put_frame(out, |out| {
        out.put_i32(xid);
        out.put_i64(zxid);
        out.put_i32(error);
        if error == code::OK {
            payload(out);
        }
    });
}

/// A reply: its header and the bytes after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The number of the request.
    pub xid: i32,
    /// Zxid of the last change when the reply was made.
    pub zxid: i64,
    /// One of the codes in [`code`].
    pub error: i32,
    /// The bytes after the header.
    pub payload: Bytes,
}

impl Reply {
    /// Decodes the body of a frame.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(body: &Bytes) -> Result<Reply, Malformed> {
        let mut fields = Fields(body.clone());
        let (xid, zxid, error) = (fields.int()?, fields.long()?, fields.int()?);
        Ok(Reply { xid, zxid, error, payload: fields.0 })
    }

    /// Decodes the payload of a getData: the value.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn data(&self) -> Result<Bytes, Malformed> {
        Ok(Fields(self.payload.clone()).buffer()?.unwrap_or_default())
    }

    /// Decodes the payload of a getChildren: the names.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn children(&self) -> Result<Vec<String>, Malformed> {
        let mut fields = Fields(self.payload.clone());
        let count = fields.int()?;
        let mut names = Vec::new();
        for _ in 0..count.max(0) {
            names.push(fields.string()?);
        }
        Ok(names)
    }
}

/// Appends a buffer or a string.
pub fn put_buffer(out: &mut BytesMut, bytes: &[u8]) {
    out.put_i32(bytes.len() as i32);
    out.put_slice(bytes);
}

/// Appends a vector of strings.
pub fn put_strings(out: &mut BytesMut, strings: &[String]) {
    out.put_i32(strings.len() as i32);
    for string in strings {
        put_buffer(out, string.as_bytes());
    }
}

/// Appends a [`Stat`].
pub fn put_stat(out: &mut BytesMut, stat: &Stat) {
    let start = out.len();
    out.put_i64(stat.created_zxid);
    out.put_i64(stat.modified_zxid);
    out.put_i64(stat.created_ms);
    out.put_i64(stat.modified_ms);
    out.put_i32(stat.version);
    out.put_i32(stat.children_version);
    out.put_i32(stat.acl_version);
    out.put_i64(stat.ephemeral_owner);
    out.put_i32(stat.data_len);
    out.put_i32(stat.children);
    out.put_i64(stat.children_zxid);
    debug_assert_eq!(out.len() - start, STAT_LEN);
}

fn frame(body: impl FnOnce(&mut BytesMut)) -> Bytes {
    let mut out = BytesMut::new();
    put_frame(&mut out, body);
    out.freeze()
}

fn put_frame(out: &mut BytesMut, body: impl FnOnce(&mut BytesMut)) {
    let at = out.len();
    out.put_i32(0);
    body(out);
    let len = out.len() - at - 4;
    out[at..at + 4].copy_from_slice(&(len as u32).to_be_bytes());
}

/// The part of a body that is not decoded yet.
struct Fields(Bytes);

impl Fields {
    fn int(&mut self) -> Result<i32, Malformed> {
        self.0.try_get_i32().map_err(|_| Malformed("an int is truncated"))
    }

    fn long(&mut self) -> Result<i64, Malformed> {
        self.0.try_get_i64().map_err(|_| Malformed("a long is truncated"))
    }

    fn buffer(&mut self) -> Result<Option<Bytes>, Malformed> {
        match usize::try_from(self.int()?) {
            Ok(len) if len <= self.0.len() => Ok(Some(self.0.split_to(len))),
            Ok(_) => Err(Malformed("a buffer is longer than its frame")),
            Err(_) => Ok(None),
        }
    }

    fn string(&mut self) -> Result<String, Malformed> {
        let bytes = self.buffer()?.ok_or(Malformed("a string is null"))?;
        std::str::from_utf8(&bytes).map(str::to_string).map_err(|_| Malformed("a string is not UTF-8"))
    }

    fn path_and_watch(&mut self) -> Result<String, Malformed> {
        let path = self.string()?;
        self.rest_as_flag()?;
        Ok(path)
    }

    fn rest_as_flag(&mut self) -> Result<Option<bool>, Malformed> {
        match self.0[..] {
            [] => Ok(None),
            [flag] => Ok(Some(flag != 0)),
            _ => Err(Malformed("bytes after the end")),
        }
    }
}
