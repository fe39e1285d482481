//! A checksum in small files that have none of their own.
//!
//! ```text
//! ["PBUF"] | key of an unknown protobuf field, 5 bytes | CRC-32C of the message, 4 bytes | message
//! ```
//!
//! Readers of protobuf ignore unknown fields, so HBase reads a sealed file as any other. It drops the seal when it rewrites
//! the file; a file without a seal is read as it is.
//!
//! A descriptor or a manifest in which one byte changed is often still a valid message: one with another attribute, row key
//! or fewer regions. The seal makes this an error.

use base::checksum::crc32c;
use bytes::{BufMut, Bytes, BytesMut};
use fs::FilePath;
use proto::magic::MAGIC;

use crate::{Result, corrupt};

/// The key of field 216394269, type fixed32: five bytes, so that no other file begins like this.
const KEY: [u8; 5] = [0xed, 0xa1, 0xbd, 0xb9, 0x06];
const SEAL_LEN: usize = KEY.len() + 4;

/// The content with its checksum.
pub(crate) fn seal(content: &Bytes) -> Bytes {
    let at = message_at(content);
    let mut sealed = BytesMut::with_capacity(content.len() + SEAL_LEN);
    sealed.put_slice(&content[..at]);
    sealed.put_slice(&KEY);
    sealed.put_u32_le(crc32c(&content[at..]));
    sealed.put_slice(&content[at..]);
    sealed.freeze()
}

/// Checks the content of a file that may be sealed; the message stays where it is, behind the seal.
///
/// # Errors
/// [`Error::Corrupt`](crate::Error::Corrupt) if the checksum does not match, or the seal itself is damaged.
pub(crate) fn check(path: &FilePath, content: &Bytes) -> Result<()> {
    let rest = &content[message_at(content)..];
    let found = rest.iter().zip(&KEY).filter(|(byte, key)| byte == key).count();
    // One byte of the key differs: damage, for no message begins so by itself.
    if found + 1 < KEY.len() {
        return Ok(());
    }
    let stored =
        rest.get(KEY.len()..SEAL_LEN).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")));
    let is_whole = found == KEY.len() && stored.is_some_and(|stored| stored == crc32c(&rest[SEAL_LEN..]));
    if is_whole { Ok(()) } else { Err(corrupt(path, "its checksum does not match its content")) }
}

/// Where the message begins.
fn message_at(content: &[u8]) -> usize {
    if content.starts_with(MAGIC) { MAGIC.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;
    use proto::magic::{with_magic, without_magic};
    use proto::{HBaseVersionFileContent, SnapshotDescription};

    #[test]
    fn the_key_is_that_of_a_field_of_four_bytes() {
        let mut key = &KEY[..];
        let (number, wire_type) = prost::encoding::decode_key(&mut key).unwrap();
        assert_eq!((number, wire_type), (216_394_269, prost::encoding::WireType::ThirtyTwoBit));
        assert!(key.is_empty());
    }

    #[test]
    fn a_sealed_message_is_read_as_before() {
        let version = HBaseVersionFileContent { version: "8".into() };
        let sealed = seal(&with_magic(&version));
        check(&FilePath::new("f"), &sealed).unwrap();
        assert_eq!(without_magic::<HBaseVersionFileContent>(&sealed), Ok(version));
    }

    #[test]
    fn any_changed_byte_and_any_missing_end_is_noticed() {
        let snapshot =
            SnapshotDescription { name: "s".into(), table: Some("t".into()), ..Default::default() };
        let (plain, path) = (Bytes::from(snapshot.encode_to_vec()), FilePath::new("f"));
        check(&path, &plain).unwrap();
        let sealed = seal(&plain);
        for at in 0..sealed.len() {
            for bit in 0..8 {
                let mut damaged = sealed.to_vec();
                damaged[at] ^= 1 << bit;
                assert!(check(&path, &damaged.into()).is_err(), "byte {at}, bit {bit}");
            }
        }
        for len in KEY.len()..sealed.len() {
            assert!(check(&path, &sealed.slice(..len)).is_err(), "{len} bytes");
        }
    }
}
