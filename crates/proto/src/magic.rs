//! The `PBUF` prefix of messages in files, znodes and cells, and messages behind their length.
//!
//! ```text
//! stored:     "PBUF" | message                  hbase:meta cells, znodes, hbase.id, hbase.version, .tabledesc
//! delimited:  varint length | message           frames, .regioninfo (behind "PBUF"), HFile trailer and file info
//! ```
//!
//! Source: HBase `ProtobufMagic`.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;
use prost::encoding::{decode_varint, encode_varint, encoded_len_varint};

/// What stored messages begin with.
pub const MAGIC: &[u8; 4] = b"PBUF";

/// Why bytes are not the message they should be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Undecodable {
    /// The prefix is missing: not a message, or written by HBase before 0.96.
    #[error("does not begin with PBUF")]
    NoMagic,
    /// The bytes end before the message does.
    #[error("ends within a message")]
    Cut,
    /// Not a message of this type.
    #[error("not a message of this type: {0}")]
    Message(#[from] prost::DecodeError),
}

/// The message behind `PBUF`.
pub fn with_magic(message: &impl Message) -> Bytes {
    let mut out = BytesMut::with_capacity(MAGIC.len() + message.encoded_len());
    out.put_slice(MAGIC);
    message.encode_raw(&mut out);
    out.freeze()
}

/// Takes `PBUF` and the message apart; the message's bytes fields share memory with `bytes`.
///
/// # Errors
/// [`Undecodable`] if the prefix is missing or the rest is not one message.
pub fn without_magic<M: Message + Default>(bytes: &Bytes) -> Result<M, Undecodable> {
    Ok(M::decode(strip_magic(bytes)?)?)
}

/// What follows `PBUF`.
///
/// # Errors
/// [`Undecodable::NoMagic`] if the prefix is missing.
pub fn strip_magic(bytes: &Bytes) -> Result<Bytes, Undecodable> {
    if bytes.starts_with(MAGIC) { Ok(bytes.slice(MAGIC.len()..)) } else { Err(Undecodable::NoMagic) }
}

/// The length of a message and the message, behind `PBUF`.
pub fn with_magic_delimited(message: &impl Message) -> Bytes {
    let mut out = BytesMut::with_capacity(MAGIC.len() + delimited_len(message));
    out.put_slice(MAGIC);
    write_delimited(message, &mut out);
    out.freeze()
}

/// Takes `PBUF`, a length and a message apart. Bytes behind the message are passed over.
///
/// # Errors
/// [`Undecodable`] if the prefix is missing, the length is past the end, or there is no such message.
pub fn without_magic_delimited<M: Message + Default>(bytes: &Bytes) -> Result<M, Undecodable> {
    read_delimited(&mut strip_magic(bytes)?)
}

/// Bytes of a message with its length.
pub fn delimited_len(message: &impl Message) -> usize {
    let len = message.encoded_len();
    encoded_len_varint(len as u64) + len
}

/// Appends the length of a message and the message.
pub fn write_delimited(message: &impl Message, out: &mut BytesMut) {
    out.reserve(delimited_len(message));
    encode_varint(message.encoded_len() as u64, out);
    message.encode_raw(out);
}

/// Takes a length and as many bytes off the front of `bytes`. On an error `bytes` may be cut anywhere.
///
/// # Errors
/// [`Undecodable::Cut`] if the bytes end before, [`Undecodable::Message`] if there is no length.
pub fn split_delimited(bytes: &mut Bytes) -> Result<Bytes, Undecodable> {
    if bytes.is_empty() {
        return Err(Undecodable::Cut);
    }
    let len = usize::try_from(decode_varint(bytes)?).map_err(|_| Undecodable::Cut)?;
    if len > bytes.remaining() {
        return Err(Undecodable::Cut);
    }
    Ok(bytes.split_to(len))
}

/// Takes a length and a message off the front of `bytes`. On an error `bytes` may be cut anywhere.
///
/// # Errors
/// [`Undecodable`] if the bytes end before the message or are no such message.
pub fn read_delimited<M: Message + Default>(bytes: &mut Bytes) -> Result<M, Undecodable> {
    Ok(M::decode(split_delimited(bytes)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HBaseVersionFileContent, ServerName};

    #[test]
    fn version_file_is_hbases() {
        let version = HBaseVersionFileContent { version: "8".into() };
        let bytes = with_magic(&version);
        assert_eq!(bytes.as_ref(), b"PBUF\x0a\x018");
        assert_eq!(without_magic::<HBaseVersionFileContent>(&bytes), Ok(version));
    }

    #[test]
    fn delimited_messages_are_read_one_by_one() {
        let server = ServerName { host_name: "h1".into(), port: Some(16020), start_code: Some(1) };
        let mut out = BytesMut::new();
        write_delimited(&server, &mut out);
        write_delimited(&ServerName::default(), &mut out);
        let mut bytes = out.freeze();
        assert_eq!(read_delimited::<ServerName>(&mut bytes), Ok(server));
        assert_eq!(read_delimited::<ServerName>(&mut bytes), Ok(ServerName::default()));
        assert_eq!(read_delimited::<ServerName>(&mut bytes), Err(Undecodable::Cut));
    }

    #[test]
    fn foreign_bytes_give_errors() {
        assert_eq!(strip_magic(&Bytes::from_static(b"PBU")), Err(Undecodable::NoMagic));
        for bytes in [&b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01rest"[..], b"\x05abcd", b"\x80", b""] {
            assert!(split_delimited(&mut Bytes::copy_from_slice(bytes)).is_err(), "{bytes:?}");
        }
        let endless = Bytes::from_static(&[0xff; 32]);
        assert!(matches!(split_delimited(&mut endless.clone()), Err(Undecodable::Message(_))));
    }
}
