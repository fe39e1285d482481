//! TCP as a [`Network`].
#![allow(clippy::disallowed_methods, reason = "this is the network that all others take through Env")]

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use base::BoxFuture;
use base::env::{Incoming, Listener, Network, Stream};
use tokio::net::{TcpListener, TcpStream};

/// TCP sockets of this machine. Small writes go out at once (no Nagle).
pub struct TcpNetwork;

impl Network for TcpNetwork {
    fn listen(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        Box::pin(async move {
            let listener = TcpListener::bind(address).await?;
            let local = listener.local_addr()?;
            Ok(Box::new(Tcp { listener, local }) as Box<dyn Listener>)
        })
    }

    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

struct Tcp {
    listener: TcpListener,
    local: SocketAddr,
}

impl Listener for Tcp {
    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn accept(&self) -> BoxFuture<'_, io::Result<Incoming>> {
        Box::pin(async move {
            match self.listener.accept().await {
                Ok((stream, peer)) => incoming(stream, peer, self.local),
                Err(error) => {
                    // Out of descriptors or the like: the next try would fail at once too, so give others time.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    Err(error)
                }
            }
        })
    }
}

/// Takes the socket out of the acceptor's runtime; it joins the runtime that opens it.
fn incoming(stream: TcpStream, peer: SocketAddr, listening: SocketAddr) -> io::Result<Incoming> {
    stream.set_nodelay(true)?;
    // A client that vanished without a word is noticed by the system some day.
    rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
    let local = stream.local_addr().unwrap_or(listening);
    let plain = stream.into_std()?;
    let open = Box::new(move || Ok(Box::new(TcpStream::from_std(plain)?) as Box<dyn Stream>));
    Ok(Incoming { peer, local, open })
}
