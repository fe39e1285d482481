//! Files and UDP sockets of this machine for metrics sinks.
#![allow(
    clippy::disallowed_methods,
    reason = "the user chooses the paths of these files; they are not in the data directory"
)]

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::sinks::{Datagrams, Files, Io, LineFile, Udp};

/// Files and sockets of this machine.
pub(super) fn local() -> Io {
    Io { files: Arc::new(LocalFiles), udp: Arc::new(UdpNetwork) }
}

/// Files of this machine.
struct LocalFiles;

impl Files for LocalFiles {
    fn append_to(&self, path: &Path) -> io::Result<Box<dyn LineFile>> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        let identity = identity(&file.metadata()?);
        Ok(Box::new(AppendFile { file, path: path.to_owned(), identity }))
    }
}

/// A file that every write appends to, even if another process changes its length.
struct AppendFile {
    file: File,
    path: PathBuf,
    identity: (u64, u64),
}

/// Device and inode. If they differ, the path names another file than before.
fn identity(of: &std::fs::Metadata) -> (u64, u64) {
    (of.dev(), of.ino())
}

impl Write for AppendFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl LineFile for AppendFile {
    fn is_in_place(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|there| identity(&there) == self.identity)
    }
}

/// UDP sockets of this machine.
struct UdpNetwork;

impl Udp for UdpNetwork {
    fn connect(&self, host: &str, port: u16) -> io::Result<Box<dyn Datagrams>> {
        let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
        for address in (host, port).to_socket_addrs()? {
            let any: SocketAddr = match address {
                SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
                SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
            };
            let connected = UdpSocket::bind(any).and_then(|socket| {
                socket.connect(address)?;
                // With a full buffer, lose the datagram rather than block.
                socket.set_nonblocking(true)?;
                Ok(socket)
            });
            match connected {
                Ok(socket) => return Ok(Box::new(UdpDatagrams(socket))),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

struct UdpDatagrams(UdpSocket);

impl Datagrams for UdpDatagrams {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        self.0.send(datagram).map(|_| ())
    }
}
