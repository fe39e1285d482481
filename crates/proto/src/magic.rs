//! Messages with the prefix `PBUF` in files, znodes and cells, and length-delimited messages.
//!
//! ```text
//! stored:    "PBUF" | message        hbase:meta cells, znodes, hbase.id, hbase.version, .tabledesc
//! delimited: varint length | message frames, .regioninfo (after "PBUF"), HFile trailer, file info
//! ```
//!
//! Source: HBase `ProtobufMagic`.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;
use prost::encoding::{decode_varint, encode_varint, encoded_len_varint};

/// Prefix of stored messages.
pub const MAGIC: &[u8; 4] = b"PBUF";

/// Reason why bytes cannot be decoded as a message.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Undecodable {
    /// The prefix is missing: not a message, or written by HBase before 0.96.
    #[error("does not begin with PBUF")]
    NoMagic,
    /// The bytes end before the message does.
    #[error("ends within a message")]
    Cut,
    /// The bytes are not a message of this type.
    #[error("not a message of this type: {0}")]
    Message(#[from] prost::DecodeError),
}

/// Encodes `PBUF` and the message.
pub fn with_magic(message: &impl Message) -> Bytes {
    let mut out = BytesMut::with_capacity(MAGIC.len() + message.encoded_len());
    out.put_slice(MAGIC);
    message.encode_raw(&mut out);
    out.freeze()
}

/// Decodes a message with the prefix `PBUF`; its bytes fields share memory with `bytes`.
///
/// # Errors
/// [`Undecodable`] if the prefix is missing or the rest is not one message.
pub fn without_magic<M: Message + Default>(bytes: &Bytes) -> Result<M, Undecodable> {
    Ok(M::decode(strip_magic(bytes)?)?)
}

/// The bytes after `PBUF`.
///
/// # Errors
/// [`Undecodable::NoMagic`] if the prefix is missing.
pub fn strip_magic(bytes: &Bytes) -> Result<Bytes, Undecodable> {
    if bytes.starts_with(MAGIC) { Ok(bytes.slice(MAGIC.len()..)) } else { Err(Undecodable::NoMagic) }
}

/// Encodes `PBUF`, the message's length, and the message.
pub fn with_magic_delimited(message: &impl Message) -> Bytes {
    let mut out = BytesMut::with_capacity(MAGIC.len() + delimited_len(message));
    out.put_slice(MAGIC);
    write_delimited(message, &mut out);
    out.freeze()
}

/// Decodes `PBUF`, a length and a message. Bytes after the message are ignored.
///
/// # Errors
/// [`Undecodable`] if the prefix is missing, the length is past the end, or the message is invalid.
pub fn without_magic_delimited<M: Message + Default>(bytes: &Bytes) -> Result<M, Undecodable> {
    read_delimited(&mut strip_magic(bytes)?)
}

/// Encoded bytes of a message and its length.
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

/// Splits a length-delimited message off the front of `bytes`. After an error the position of
/// `bytes` is undefined.
///
/// # Errors
/// [`Undecodable::Cut`] if the bytes end too early, [`Undecodable::Message`] if the length is
/// invalid.
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

/// Decodes a length-delimited message from the front of `bytes`. After an error the position of
/// `bytes` is undefined.
///
/// # Errors
/// [`Undecodable`] if the bytes end too early or are not a valid message.
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
