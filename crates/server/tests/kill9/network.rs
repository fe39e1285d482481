//! TCP for the client in the test. Clock, random numbers and tasks come from `base::testing`, whose
//! clock is the real one if the runtime is not paused.
#![allow(
    clippy::disallowed_methods,
    reason = "the server under test is another process, reached through real sockets"
)]

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use base::BoxFuture;
use base::env::{Env, Listener, Network, Stream};
use tokio::net::TcpStream;

/// An environment of the current runtime that can connect to other processes.
pub fn env(seed: u64) -> Env {
    Env { net: Arc::new(Outgoing), ..base::testing::env(seed) }
}

struct Outgoing;

impl Network for Outgoing {
    fn listen(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        let refused =
            io::Error::new(io::ErrorKind::Unsupported, format!("{address}: a client does not listen"));
        Box::pin(async move { Err(refused) })
    }

    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}
