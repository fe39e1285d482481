//! What systemd is told of a service of `Type=notify`: that it serves, that it stops.
//!
//! A datagram to the socket that `NOTIFY_SOCKET` names; nothing where it names none. That nobody listens is no reason not
//! to serve, so failures are passed over.
//!
//! Source: sd_notify(3).

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The server answers on its ports.
pub const READY: &str = "READY=1\nSTATUS=serving";
/// The server was told to stop.
pub const STOPPING: &str = "STOPPING=1\nSTATUS=flushing what is in memory";

/// Tells the service manager, if there is one.
pub fn tell(state: &str) {
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET") {
        // The manager has its own time limits for a service that stays silent.
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
    fn a_socket_by_its_name_and_an_abstract_one() {
        let path = std::env::temp_dir().join(format!("grampus-notify-{}", std::process::id()));
        check(&UnixDatagram::bind(&path).unwrap(), path.as_os_str());
        let _ = std::fs::remove_file(&path);
        let name = format!("grampus-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        check(&UnixDatagram::bind_addr(&address).unwrap(), OsStr::new(&format!("@{name}")));
    }

    #[test]
    fn a_socket_that_is_not_there_is_an_error_and_no_panic() {
        assert!(send(OsStr::new("/nowhere/to/be/found"), STOPPING).is_err());
        assert!(send(OsStr::new(""), STOPPING).is_err());
    }
}
