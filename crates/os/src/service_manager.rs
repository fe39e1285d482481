//! systemd, or another service manager with its protocols: the state of a `Type=notify` service,
//! its watchdog, and logs in the journal.
//!
//! A state is a datagram to the socket that `NOTIFY_SOCKET` names. Without that variable nothing is
//! sent. Failures are ignored: a missing listener is no reason not to serve.
//!
//! Sources: sd_notify(3), sd_watchdog_enabled(3), systemd.exec(5) on `JOURNAL_STREAM`.

use std::ffi::{OsStr, OsString};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The server answers on its ports.
pub const READY: &str = "READY=1\nSTATUS=serving";
/// The server is stopping.
pub const STOPPING: &str = "STOPPING=1\nSTATUS=flushing memstores";
/// The service responds. See [`watchdog_timeout`].
pub const ALIVE: &str = "WATCHDOG=1";

/// Sends `state` to the service manager, if there is one.
pub fn send_state(state: &str) {
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET") {
        // The manager has its own timeout for a service that sends nothing.
        let _ = send(&socket, state);
    }
}

/// The time after which the service manager ends a service that has not sent [`ALIVE`]; `None` if
/// it does not watch this process.
pub fn watchdog_timeout() -> Option<Duration> {
    timeout_of(std::env::var_os("WATCHDOG_USEC"), std::env::var_os("WATCHDOG_PID"), std::process::id())
}

/// Whether standard error is connected to the journal, which records the time of each line, and its
/// level if the line begins with `<0>` to `<7>`.
pub fn logs_to_journal() -> bool {
    let Ok(status) = rustix::fs::fstat(std::io::stderr()) else { return false };
    std::env::var_os("JOURNAL_STREAM").is_some_and(|stream| is_stream(&stream, status.st_dev, status.st_ino))
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

fn timeout_of(micros: Option<OsString>, watched: Option<OsString>, own: u32) -> Option<Duration> {
    let number = |text: OsString| text.to_str()?.parse::<u64>().ok();
    let is_other = watched.is_some_and(|watched| number(watched) != Some(u64::from(own)));
    let micros = number(micros?).filter(|micros| *micros > 0)?;
    (!is_other).then(|| Duration::from_micros(micros))
}

/// Whether `stream` (`DEVICE:INODE`) is the file with these numbers.
fn is_stream(stream: &OsStr, device: u64, inode: u64) -> bool {
    stream.to_str() == Some(&format!("{device}:{inode}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(listener: &UnixDatagram, socket: &OsStr) {
        send(socket, READY).unwrap();
        let mut message = [0; 100];
        let len = listener.recv(&mut message).unwrap();
        assert_eq!(&message[..len], READY.as_bytes());
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
    fn only_the_watched_process_has_a_watchdog() {
        let of = |micros: &str, watched: Option<&str>| {
            timeout_of(Some(micros.into()), watched.map(OsString::from), 17)
        };
        assert_eq!(of("60000000", None), Some(Duration::from_secs(60)));
        assert_eq!(of("60000000", Some("17")), Some(Duration::from_secs(60)));
        assert_eq!(of("60000000", Some("18")), None);
        assert_eq!(of("60000000", Some("")), None);
        assert_eq!(of("0", None), None);
        assert_eq!(of("a minute", None), None);
        assert_eq!(timeout_of(None, None, 17), None);
    }

    #[test]
    fn the_journal_is_recognized_by_device_and_inode() {
        assert!(is_stream(OsStr::new("8:1234"), 8, 1234));
        assert!(!is_stream(OsStr::new("8:12345"), 8, 1234));
        assert!(!is_stream(OsStr::new("journal"), 8, 1234));
    }
}
