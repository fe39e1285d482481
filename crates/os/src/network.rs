//! TCP as a [`Network`].
#![allow(clippy::disallowed_methods, reason = "implements the network that all other code gets through Env")]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use base::BoxFuture;
use base::env::{Incoming, Listener, Network, Stream};
use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpStream};

/// Idle time after which the kernel probes a peer. This is also shorter than the time after which
/// firewalls forget an idle connection.
const PROBE_AFTER: Duration = Duration::from_secs(20);
/// The same for a client that has connected. Until a client that vanished is detected, its
/// connection counts against the maximum. The kernel's default is two hours.
const PROBE_CLIENT_AFTER: Duration = Duration::from_secs(60);
/// Time between two probes.
const PROBE_EVERY: Duration = Duration::from_secs(10);
/// Time after which a connection breaks if the peer acknowledges neither bytes nor probes. The
/// kernel's default is about 15 minutes. Callers wait for a response for about 60 s; after that,
/// no old request may arrive (`rpc::client`).
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(50);

/// TCP sockets of this machine. Small writes are sent immediately (no Nagle delay).
pub struct TcpNetwork;

impl Network for TcpNetwork {
    fn listen(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        Box::pin(async move {
            let listener = TcpListener::bind(address).await?;
            let local = listener.local_addr()?;
            Ok(Box::new(TcpAcceptor { listener, local }) as Box<dyn Listener>)
        })
    }

    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move { Ok(Box::new(connect(host, port).await?) as Box<dyn Stream>) })
    }

    fn resolves_here<'a>(&'a self, host: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let Ok(found) = tokio::net::lookup_host((host, 0)).await else { return false };
            let addresses: Vec<IpAddr> = found.map(|found| found.ip()).collect();
            addresses.iter().any(|address| !address.is_loopback() && self.has_address(*address))
        })
    }

    fn has_address(&self, address: IpAddr) -> bool {
        // The kernel binds sockets only to addresses of the machine.
        UdpSocket::bind((address, 0)).is_ok()
    }
}

async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = match host.eq_ignore_ascii_case("localhost") {
        true => connect_to_loopback(port).await?,
        false => TcpStream::connect((host, port)).await?,
    };
    stream.set_nodelay(true)?;
    // The kernel detects a server that vanished, and a connection that a firewall dropped.
    probe(&stream, PROBE_AFTER)?;
    sockopt::set_tcp_user_timeout(&stream, UNACKNOWLEDGED_MAX.as_millis() as u32)?;
    Ok(stream)
}

/// Lets the kernel probe an idle peer (TCP keepalive).
fn probe(stream: &TcpStream, after: Duration) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, after)?;
    sockopt::set_tcp_keepintvl(stream, PROBE_EVERY)?;
    Ok(())
}

/// Connects to this machine. A static binary without `/etc/hosts` cannot resolve `localhost`, which
/// always is a loopback address (RFC 6761, section 6.3).
async fn connect_to_loopback(port: u16) -> io::Result<TcpStream> {
    match TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
        Ok(stream) => Ok(stream),
        Err(error) => TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.map_err(|_| error),
    }
}

struct TcpAcceptor {
    listener: TcpListener,
    local: SocketAddr,
}

impl Listener for TcpAcceptor {
    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn accept(&self) -> BoxFuture<'_, io::Result<Incoming>> {
        Box::pin(async move {
            match self.listener.accept().await {
                Ok((stream, peer)) => incoming(stream, peer, self.local),
                Err(error) => {
                    // Probably out of descriptors. An immediate retry would fail too, so wait for
                    // some to be freed.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    Err(error)
                }
            }
        })
    }
}

/// The kernel detects a client that vanished without closing.
fn prepare_accepted(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    probe(stream, PROBE_CLIENT_AFTER)
}

/// Detaches the socket from the acceptor's runtime; the runtime that opens it registers it.
fn incoming(stream: TcpStream, peer: SocketAddr, listening: SocketAddr) -> io::Result<Incoming> {
    prepare_accepted(&stream)?;
    let local = stream.local_addr().unwrap_or(listening);
    let plain = stream.into_std()?;
    let open = Box::new(move || Ok(Box::new(TcpStream::from_std(plain)?) as Box<dyn Stream>));
    Ok(Incoming { peer, local, open })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_other_machines_are_recognized() {
        assert!(TcpNetwork.has_address(Ipv4Addr::LOCALHOST.into()));
        // Reserved for documentation (RFC 5737).
        assert!(!TcpNetwork.has_address(Ipv4Addr::new(192, 0, 2, 1).into()));
    }

    #[tokio::test]
    async fn names_that_other_machines_cannot_use_do_not_resolve_here() {
        for host in ["localhost", "127.0.0.1", "192.0.2.1"] {
            assert!(!TcpNetwork.resolves_here(host).await, "{host}");
        }
    }

    #[tokio::test]
    async fn localhost_is_any_loopback_address() {
        for address in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
            let Ok(listener) = TcpNetwork.listen(SocketAddr::new(address, 0)).await else {
                assert!(address.is_ipv6(), "only IPv6 may be off");
                continue;
            };
            TcpNetwork.connect("LocalHost", listener.local_addr().port()).await.unwrap();
        }
        let error = TcpNetwork.connect("localhost", 1).await.map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[tokio::test]
    async fn a_connection_without_an_answer_breaks_before_a_call_times_out() {
        let listener = TcpNetwork.listen(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).await.unwrap();
        let stream = connect("localhost", listener.local_addr().port()).await.unwrap();
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), PROBE_AFTER);
        assert_eq!(sockopt::tcp_user_timeout(&stream).unwrap(), 50_000);
    }

    #[tokio::test]
    async fn a_client_that_vanished_is_detected_within_minutes() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let _client = connect("localhost", listener.local_addr().unwrap().port()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        prepare_accepted(&accepted).unwrap();
        assert!(sockopt::socket_keepalive(&accepted).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&accepted).unwrap(), PROBE_CLIENT_AFTER);
        assert_eq!(sockopt::tcp_keepintvl(&accepted).unwrap(), PROBE_EVERY);
    }
}
