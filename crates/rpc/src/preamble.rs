//! The first bytes of a connection, and the responses to unusual ones.
//!
//! ```text
//! "HBas" | version 1 (0) | auth code 1 (0x50 SIMPLE, 0x51 KERBEROS, 0x52 DIGEST)
//!                          no response if SIMPLE
//! "Regist"                 response: a frame with the cluster id, then close
//! "Securi"                 response: an exception if security is off; then an ordinary
//!                          preamble may follow
//! ```
//!
//! Anything else gets an exception with call id -1. Its text matters: clients of 2.6 and later
//! recognize an older server by `Expected HEADER=HBas`.

use std::net::SocketAddr;

use base::text::to_string_binary;
use bytes::{BufMut, Bytes, BytesMut};

use crate::fields::{put_bytes, put_varint};
use crate::frame::{self, ExceptionResponse};

/// Size in bytes of a preamble.
pub const PREAMBLE_LEN: usize = 6;
/// The first four bytes of an ordinary preamble.
pub const MAGIC: &[u8; 4] = b"HBas";
/// The only version.
pub const VERSION: u8 = 0;
/// Auth code for no authentication: the server trusts the user name.
pub const AUTH_SIMPLE: u8 = 0x50;
/// Auth code of Kerberos.
pub const AUTH_KERBEROS: u8 = 0x51;
/// Auth code of tokens.
pub const AUTH_DIGEST: u8 = 0x52;
/// Call id of responses that belong to no call (-1).
pub const CONNECTION_CALL_ID: u32 = u32::MAX;

/// Status SUCCESS and the code (-88) that makes a SASL client continue without SASL.
pub const SWITCH_TO_SIMPLE: [u8; 8] = [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xa8];

const FATAL_CONNECTION: &str = "org.apache.hadoop.hbase.ipc.FatalConnectionException";

/// The request that a preamble makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preamble {
    /// A connection without authentication; the header follows.
    Simple,
    /// A connection with SASL.
    Sasl,
    /// The cluster id, then the connection ends.
    Registry,
    /// The server's principal; another preamble may follow.
    Security,
    /// Not HBase's protocol.
    BadMagic([u8; 4]),
    /// A version that does not exist.
    BadVersion {
        /// The requested version.
        version: u8,
        /// The auth code after it.
        auth: u8,
    },
    /// An unknown authentication method.
    BadAuth {
        /// The auth code.
        auth: u8,
    },
}

/// Parses the first six bytes; `None` if there are fewer.
pub fn parse(bytes: &[u8]) -> Option<Preamble> {
    let [m0, m1, m2, m3, version, auth] = *bytes.first_chunk::<PREAMBLE_LEN>()?;
    Some(match (&[m0, m1, m2, m3], version, auth) {
        (b"Regi", b's', b't') => Preamble::Registry,
        (b"Secu", b'r', b'i') => Preamble::Security,
        (MAGIC, VERSION, AUTH_SIMPLE) => Preamble::Simple,
        (MAGIC, VERSION, AUTH_KERBEROS | AUTH_DIGEST) => Preamble::Sasl,
        (MAGIC, VERSION, _) => Preamble::BadAuth { auth },
        (MAGIC, _, _) => Preamble::BadVersion { version, auth },
        (magic, _, _) => Preamble::BadMagic(*magic),
    })
}

/// The preamble of a connection without authentication.
pub fn simple() -> [u8; PREAMBLE_LEN] {
    let [m0, m1, m2, m3] = *MAGIC;
    [m0, m1, m2, m3, VERSION, AUTH_SIMPLE]
}

/// The frame that refuses a preamble; `None` if the preamble is accepted.
pub fn refusal(preamble: Preamble, peer: SocketAddr) -> Option<Bytes> {
    let (class, text) = match preamble {
        Preamble::Simple | Preamble::Sasl | Preamble::Registry => return None,
        Preamble::Security => {
            let class = "org.apache.hadoop.hbase.ipc.SecurityNotEnabledException";
            return Some(exception_frame(class, "security is not enabled", false));
        }
        Preamble::BadMagic(magic) => (
            FATAL_CONNECTION,
            format!("Expected HEADER=HBas but received HEADER={} from {peer}", to_string_binary(&magic)),
        ),
        Preamble::BadVersion { version, auth } => {
            ("org.apache.hadoop.hbase.ipc.WrongVersionException", unsupported(version, auth, peer))
        }
        Preamble::BadAuth { auth } => {
            ("org.apache.hadoop.hbase.ipc.BadAuthException", unsupported(VERSION, auth, peer))
        }
    };
    Some(exception_frame(class, &text, true))
}

/// The response to [`Preamble::Registry`].
pub fn registry_answer(cluster_id: Option<&str>) -> Bytes {
    let mut message = BytesMut::new();
    if let Some(cluster_id) = cluster_id {
        put_bytes(&mut message, 1, cluster_id.as_bytes());
    }
    frame::encode_response(CONNECTION_CALL_ID, &message)
}

/// The frame that rejects a compressor of cell blocks. (HBase 2.5 throws this exception but closes
/// the connection before writing it.)
pub fn unsupported_compressor(class: &str) -> Bytes {
    let name = "org.apache.hadoop.hbase.ipc.UnsupportedCompressionCodecException";
    exception_frame(name, &format!("{name}: {class}\n"), true)
}

/// The frame that rejects a connection for an unavailable service or an unknown codec.
///
/// HBase's servers throw `UnknownServiceException` and `UnsupportedCellCodecException`, which exist
/// only in server jars. The frame carries their superclass that all clients have: it fails the
/// connection's calls with the text.
pub fn refused_header(class: &str, what: &str) -> Bytes {
    exception_frame(FATAL_CONNECTION, &format!("org.apache.hadoop.hbase.ipc.{class}: {what}\n"), true)
}

fn exception_frame(class: &str, stack_trace: &str, do_not_retry: bool) -> Bytes {
    let exception = ExceptionResponse { class, stack_trace, do_not_retry, ..ExceptionResponse::default() };
    frame::encode_exception(CONNECTION_CALL_ID, &exception)
}

/// HBase's message for an unknown version or authentication method.
fn unsupported(version: u8, auth: u8, peer: SocketAddr) -> String {
    let known = matches!(auth, AUTH_SIMPLE | AUTH_KERBEROS | AUTH_DIGEST);
    format!(
        "serverVersion={VERSION}, clientVersion={version}, authMethod={auth}, authSupported={known} from {peer}"
    )
}

/// Appends a preamble without authentication and the header after it, as a client sends them.
pub fn put_opening(out: &mut BytesMut, header: &[u8]) {
    out.put_slice(&simple());
    out.put_u32(header.len() as u32);
    out.put_slice(header);
}

/// Appends the length of `message` as a varint, followed by `message`.
pub(crate) fn put_delimited(out: &mut BytesMut, message: &[u8]) {
    put_varint(out, message.len() as u64);
    out.put_slice(message);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_preamble_is_distinguished() {
        assert_eq!(parse(b"HBas\0P"), Some(Preamble::Simple));
        assert_eq!(parse(b"HBas\0Q"), Some(Preamble::Sasl));
        assert_eq!(parse(b"HBas\0R"), Some(Preamble::Sasl));
        assert_eq!(parse(b"Regist"), Some(Preamble::Registry));
        assert_eq!(parse(b"Securi"), Some(Preamble::Security));
        assert_eq!(parse(b"Regisx"), Some(Preamble::BadMagic(*b"Regi")));
        assert_eq!(parse(b"HBas\x01P"), Some(Preamble::BadVersion { version: 1, auth: 0x50 }));
        assert_eq!(parse(b"HBas\0T"), Some(Preamble::BadAuth { auth: 0x54 }));
        assert_eq!(parse(b"GET / HTTP"), Some(Preamble::BadMagic(*b"GET ")));
        assert_eq!(parse(b"HBas\0"), None);
    }
}
