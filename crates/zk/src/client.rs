//! Reads single znodes: what our own client needs to find a cluster.
//!
//! A session is made for a few reads and closed again, as other small clients do it; there are no pings, no watches and
//! no reconnects. Of several servers the first that answers is used.

use std::io;
use std::time::Duration;

use base::env::{Env, Stream};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::protocol::{ConnectRequest, ConnectResponse, Malformed, PASSWORD_LEN, Reply, Request, code, kind};

/// Bytes of the longest answer taken (ZooKeeper's own limit of a value is 1 MiB).
const ANSWER_LEN_MAX: u32 = 4 << 20;
/// The session timeout asked for: the session is over long before.
const SESSION_TIMEOUT_MS: i32 = 30_000;

/// Why a znode could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is none at this path.
    #[error("no znode {0}")]
    NoNode(String),
    /// ZooKeeper answered with another code.
    #[error("ZooKeeper refuses to tell {path}: error {code}")]
    Refused {
        /// The path asked for.
        path: String,
        /// ZooKeeper's code.
        code: i32,
    },
    /// No server answered.
    #[error("no ZooKeeper server answers: {0}")]
    Unavailable(String),
}

/// A session.
pub struct Client {
    env: Env,
    stream: Box<dyn Stream>,
    timeout: Duration,
    last_xid: i32,
}

impl Client {
    /// Opens a session at the first of `servers` (host and port) that grants one within `timeout`.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn connect(env: &Env, servers: &[(String, u16)], timeout: Duration) -> Result<Client, Error> {
        let mut failures = Vec::new();
        for (host, port) in servers {
            match env.timeout(timeout, open(env, host, *port)).await {
                Some(Ok(stream)) => return Ok(Client { env: env.clone(), stream, timeout, last_xid: 0 }),
                Some(Err(error)) => failures.push(format!("{host}:{port}: {error}")),
                None => failures.push(format!("{host}:{port}: no answer within {timeout:?}")),
            }
        }
        Err(Error::Unavailable(failures.join("; ")))
    }

    /// The value at `path`.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn get_data(&mut self, path: &str) -> Result<Bytes, Error> {
        self.ask(kind::GET_DATA, path).await?.data().map_err(unavailable)
    }

    /// The names of the children of `path`.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn get_children(&mut self, path: &str) -> Result<Vec<String>, Error> {
        self.ask(kind::GET_CHILDREN, path).await?.children().map_err(unavailable)
    }

    /// Ends the session.
    pub async fn close(mut self) {
        let farewell = Request::encode(self.last_xid.wrapping_add(1), kind::CLOSE, None);
        // Nothing is lost if it fails: the session ends by itself.
        let _ = self.exchange(&farewell).await;
    }

    async fn ask(&mut self, kind: i32, path: &str) -> Result<Reply, Error> {
        self.last_xid = self.last_xid.wrapping_add(1);
        let reply = self.exchange(&Request::encode(self.last_xid, kind, Some(path))).await?;
        match reply.error {
            code::OK if reply.xid == self.last_xid => Ok(reply),
            code::OK => Err(unavailable("an answer to another request")),
            code::NO_NODE => Err(Error::NoNode(path.to_string())),
            code => Err(Error::Refused { path: path.to_string(), code }),
        }
    }

    async fn exchange(&mut self, request: &[u8]) -> Result<Reply, Error> {
        let stream = &mut self.stream;
        let exchanging = async {
            stream.write_all(request).await?;
            stream.flush().await?;
            read_frame(stream).await
        };
        match self.env.timeout(self.timeout, exchanging).await {
            Some(Ok(body)) => Reply::parse(&body).map_err(unavailable),
            Some(Err(error)) => Err(unavailable(error)),
            None => Err(unavailable(format!("no answer within {:?}", self.timeout))),
        }
    }
}

fn unavailable(error: impl ToString) -> Error {
    Error::Unavailable(error.to_string())
}

async fn open(env: &Env, host: &str, port: u16) -> io::Result<Box<dyn Stream>> {
    let mut stream = env.net.connect(host, port).await?;
    let request = ConnectRequest {
        last_zxid: 0,
        timeout_ms: SESSION_TIMEOUT_MS,
        session: 0,
        password: Bytes::from_static(&[0; PASSWORD_LEN]),
        read_only: Some(false),
    };
    stream.write_all(&request.encode()).await?;
    stream.flush().await?;
    let body = read_frame(&mut stream).await?;
    let response = ConnectResponse::parse(&body).map_err(invalid)?;
    if response.session == 0 {
        return Err(invalid(Malformed("no session was granted")));
    }
    Ok(stream)
}

async fn read_frame(stream: &mut Box<dyn Stream>) -> io::Result<Bytes> {
    let len = stream.read_u32().await?;
    if len > ANSWER_LEN_MAX {
        return Err(invalid(Malformed("an answer is too long")));
    }
    // Grows with what arrives, not with what is claimed.
    let mut body = Vec::new();
    (&mut *stream).take(u64::from(len)).read_to_end(&mut body).await?;
    if body.len() < len as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(body.into())
}

fn invalid(error: Malformed) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
