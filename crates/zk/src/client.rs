//! Reads single znodes: what our own client needs to find a cluster.
//!
//! A session is opened for a few reads and then closed, as in other small clients. There are no
//! pings, no watches and no reconnects. Of several servers, the first that responds is used.

use std::io;
use std::pin::pin;
use std::time::Duration;

use base::BoxFuture;
use base::env::{Env, Stream};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::protocol::{ConnectRequest, ConnectResponse, Malformed, PASSWORD_LEN, Reply, Request, code, kind};

/// Maximum length of a response, in bytes (ZooKeeper itself limits values to 1 MiB).
const ANSWER_LEN_MAX: u32 = 4 << 20;
/// The requested session timeout. Sessions end long before.
const SESSION_TIMEOUT_MS: i32 = 30_000;

/// Time after which the next server is contacted too.
const HEAD_START: Duration = Duration::from_secs(1);

/// Why a znode could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The znode does not exist.
    #[error("no znode {0}")]
    NoNode(String),
    /// ZooKeeper returned another error.
    #[error("cannot read znode {path}: ZooKeeper error {code}")]
    Refused {
        /// The requested path.
        path: String,
        /// ZooKeeper's error code.
        code: i32,
    },
    /// No server responded, or the response was invalid.
    #[error("no ZooKeeper server is available: {0}")]
    Unavailable(String),
}

/// A session with one server.
pub struct Client {
    env: Env,
    stream: Box<dyn Stream>,
    timeout: Duration,
    last_xid: i32,
    server: usize,
}

impl Client {
    /// Opens a session at the first of `servers` (host and port) that grants one within `timeout`.
    /// They are contacted in sequence: each after the previous one failed or was silent for a
    /// second.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn connect(env: &Env, servers: &[(String, u16)], timeout: Duration) -> Result<Client, Error> {
        let (server, stream) = open_any(env, servers, timeout).await.map_err(Error::Unavailable)?;
        Ok(Client { env: env.clone(), stream, timeout, last_xid: 0, server })
    }

    /// Which of the servers granted the session, as an index.
    pub fn server(&self) -> usize {
        self.server
    }

    /// The value at `path`.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn get_data(&mut self, path: &str) -> Result<Bytes, Error> {
        self.request(kind::GET_DATA, path).await?.data().map_err(unavailable)
    }

    /// The names of the children of `path`.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn get_children(&mut self, path: &str) -> Result<Vec<String>, Error> {
        self.request(kind::GET_CHILDREN, path).await?.children().map_err(unavailable)
    }

    /// Ends the session.
    pub async fn close(mut self) {
        let farewell = Request::encode(self.last_xid.wrapping_add(1), kind::CLOSE, None);
        // A failure is harmless: the session then times out.
        let _ = self.exchange(&farewell).await;
    }

    async fn request(&mut self, kind: i32, path: &str) -> Result<Reply, Error> {
        self.last_xid = self.last_xid.wrapping_add(1);
        let reply = self.exchange(&Request::encode(self.last_xid, kind, Some(path))).await?;
        match reply.error {
            code::OK if reply.xid == self.last_xid => Ok(reply),
            code::OK => Err(unavailable("the response is to another request")),
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
            None => Err(unavailable(format!("no response within {:?}", self.timeout))),
        }
    }
}

fn unavailable(error: impl ToString) -> Error {
    Error::Unavailable(error.to_string())
}

/// Opens a session at one of the servers. Returns its index.
fn open_any<'a>(
    env: &'a Env,
    servers: &'a [(String, u16)],
    timeout: Duration,
) -> BoxFuture<'a, Result<(usize, Box<dyn Stream>), String>> {
    Box::pin(async move {
        let Some((server, others)) = servers.split_first() else {
            return Err("no server is configured".into());
        };
        let mut first = pin!(open_in_time(env, server, timeout));
        if others.is_empty() {
            return Ok((0, first.await?));
        }
        let mut failures = [None, None];
        match env.timeout(HEAD_START, first.as_mut()).await {
            Some(Ok(stream)) => return Ok((0, stream)),
            Some(Err(failure)) => failures[0] = Some(failure),
            None => {}
        }
        let mut others = open_any(env, others, timeout);
        while failures.contains(&None) {
            tokio::select! {
                biased;
                opened = first.as_mut(), if failures[0].is_none() => match opened {
                    Ok(stream) => return Ok((0, stream)),
                    Err(failure) => failures[0] = Some(failure),
                },
                opened = &mut others, if failures[1].is_none() => match opened {
                    Ok((server, stream)) => return Ok((server + 1, stream)),
                    Err(failure) => failures[1] = Some(failure),
                },
            }
        }
        Err(failures.map(Option::unwrap_or_default).join("; "))
    })
}

async fn open_in_time(
    env: &Env,
    (host, port): &(String, u16),
    timeout: Duration,
) -> Result<Box<dyn Stream>, String> {
    match env.timeout(timeout, open(env, host, *port)).await {
        Some(opened) => opened.map_err(|error| format!("{host}:{port}: {error}")),
        None => Err(format!("{host}:{port}: no response within {timeout:?}")),
    }
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
        return Err(invalid(Malformed("a response is too long")));
    }
    // Grows with the bytes that arrive, not with the claimed length.
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
