//! Notifies systemd of the state of a `Type=notify` service: serving, stopping.
//!
//! Sends a datagram to the socket that `NOTIFY_SOCKET` names, and does nothing without that
//! variable. Failures are ignored: a missing listener is no reason not to serve.
//!
//! Source: sd_notify(3).

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The server answers on its ports.
pub const READY: &str = "READY=1\nSTATUS=serving";
/// The server is stopping.
pub const STOPPING: &str = "STOPPING=1\nSTATUS=flushing memstores";

/// Sends `state` to the service manager, if there is one.
pub fn send_state(state: &str) {
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET") {
        // The manager has its own timeout for a service that sends nothing.
        let _ = send(&socket, state);
    }
}

fn send(socket: &OsStr, state: &str) -> std::io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    let sender = UnixDatagram::unbound()?;
    sender.set_nonblocking(true)?;
    sender.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(listener: &UnixDatagram, socket: &OsStr) {
        send(socket, READY).unwrap();
        let mut told = [0; 100];
        let len = listener.recv(&mut told).unwrap();
        assert_eq!(&told[..len], READY.as_bytes());
    }

    #[test]
    fn named_and_abstract_sockets_are_supported() {
        let path = std::env::temp_dir().join(format!("grampus-notify-{}", std::process::id()));
        check(&UnixDatagram::bind(&path).unwrap(), path.as_os_str());
        let _ = std::fs::remove_file(&path);
        let name = format!("grampus-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        check(&UnixDatagram::bind_addr(&address).unwrap(), OsStr::new(&format!("@{name}")));
    }

    #[test]
    fn a_missing_socket_is_an_error() {
        assert!(send(OsStr::new("/nowhere/to/be/found"), STOPPING).is_err());
        assert!(send(OsStr::new(""), STOPPING).is_err());
    }
}
