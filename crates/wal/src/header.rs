//! The header of a log: `PWAL`, the length of the message, and HBase's message `WALHeader`.
//!
//! Our header has one more field, which HBase skips. The field identifies the file and has a
//! checksum of the header:
//!
//! ```text
//! PWAL 4 | length 1 | HBase's fields 80 | tag 2, length 1 of field 1000 |
//!   version 1 | salt 8 | number of the previous log 8 | durable end of the previous log 8 |
//!   crc32c of all before it 4
//! ```
//!
//! Apart from that field's content the header is the same in every file, and the field comes last.
//! So a header with a flipped bit is never mistaken for HBase's plain header: the field then fails
//! its check, or is an unknown field.

use base::checksum::{crc32c, matches};
use base::varint::{get_varint, put_varint};
use bytes::Bytes;

use crate::field::{self, Value};
use crate::mark::Salt;

const MAGIC: &[u8; 4] = b"PWAL";
const WRITER_CLASS: &str = "ProtobufLogWriter";
const CODEC_CLASS: &str = "org.apache.hadoop.hbase.regionserver.wal.WALCellCodec";

/// Number of our field in the header.
const CHECKS_FIELD: u32 = 1000;
/// First byte of our field; other values are other formats.
const CHECKS_VERSION: u8 = 1;
/// Bytes of our field's content.
const CHECKS_LEN: usize = 1 + 8 + 8 + 8 + 4;
/// Tag and length of our field. No entry begins this way, since a key begins with field 1.
const CHECKS_START: [u8; 3] = [0xc2, 0x3e, CHECKS_LEN as u8];
/// Bytes of the header that is written here.
pub(crate) const HEADER_LEN: usize = 4 + 1 + 80 + 3 + CHECKS_LEN;
const _: () = assert!(HEADER_LEN == 117);
/// Longest header that is read. HBase's have about 90 bytes, or a few hundred if they contain an
/// encryption key.
pub(crate) const HEADER_LEN_MAX: usize = 64 * 1024;

/// How the previous log of the same run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Previous {
    /// Its file number; 0 if there was none.
    pub number: u64,
    /// Its durable length.
    pub durable: u64,
}

impl Previous {
    pub(crate) const NONE: Previous = Previous { number: 0, durable: 0 };
}

/// How to read a log's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// Ours: every entry has a checksum.
    Checked { salt: Salt, previous: Previous },
    /// HBase's, without compression.
    Plain,
    /// HBase's, with dictionaries.
    Dictionary { tags: bool, values: bool },
}

/// What the first bytes of a file are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DecodedHeader {
    /// A header of `len` bytes; entries follow it.
    Header { format: LogFormat, len: u64 },
    /// The server was killed before the header was complete, so no entry was acknowledged.
    Torn,
    /// No valid header, although there should be one.
    Damaged(&'static str),
    /// A header of an unsupported log.
    Unsupported(String),
}

/// The header of a new log.
pub(crate) fn encode(salt: Salt, previous: Previous) -> Bytes {
    let mut message = Vec::with_capacity(HEADER_LEN);
    field::put_number(&mut message, 1, 0); // has_compression
    field::put_number(&mut message, 3, 0); // has_tag_compression
    field::put_bytes(&mut message, 4, WRITER_CLASS.as_bytes());
    field::put_bytes(&mut message, 5, CODEC_CLASS.as_bytes());
    field::put_number(&mut message, 6, 0); // has_value_compression
    let mut checks = vec![CHECKS_VERSION];
    checks.extend_from_slice(&salt.0);
    checks.extend_from_slice(&previous.number.to_be_bytes());
    checks.extend_from_slice(&previous.durable.to_be_bytes());
    checks.extend_from_slice(&[0; 4]);
    field::put_bytes(&mut message, CHECKS_FIELD, &checks);

    let mut out = Vec::with_capacity(HEADER_LEN);
    out.extend_from_slice(MAGIC);
    put_varint(&mut out, message.len() as u64);
    out.extend_from_slice(&message);
    let crc_at = out.len() - 4;
    let crc = crc32c(&out[..crc_at]);
    out[crc_at..].copy_from_slice(&crc.to_be_bytes());
    assert_eq!(out.len(), HEADER_LEN, "every header has the same length");
    out.into()
}

/// Decodes the header of a file of `file_len` bytes. `bytes` is the start of the file: all bytes,
/// or [`HEADER_LEN_MAX`] of them.
pub(crate) fn decode(bytes: &[u8], file_len: u64) -> DecodedHeader {
    if bytes.iter().all(|byte| *byte == 0) {
        // The file is empty or has only reserved zeros. Entries are written only after the header
        // is synced. So if the header was zeroed later, entries may follow it.
        return if file_len <= bytes.len() as u64 {
            DecodedHeader::Torn
        } else {
            DecodedHeader::Damaged("the header is all zeros")
        };
    }
    let short = file_len < HEADER_LEN as u64;
    let cut = |what| if short { DecodedHeader::Torn } else { DecodedHeader::Damaged(what) };
    let Some(mut input) = bytes.strip_prefix(MAGIC) else {
        return if short && MAGIC.starts_with(bytes) {
            DecodedHeader::Torn
        } else {
            DecodedHeader::Damaged("the file does not begin with PWAL")
        };
    };
    let Some(message_len) = get_varint(&mut input) else { return cut("the header's length is truncated") };
    let prefix_len = bytes.len() - input.len();
    match usize::try_from(message_len).ok().and_then(|len| input.get(..len)) {
        Some(message) => {
            let (all, rest) = bytes.split_at(prefix_len + message.len());
            // If the length is damaged, the header may end before our field and look like HBase's.
            if rest.starts_with(&CHECKS_START) {
                return DecodedHeader::Damaged("the header's length is too small");
            }
            decode_message(message, all)
        }
        None => cut("the header is longer than the file"),
    }
}

fn decode_message(message: &[u8], all: &[u8]) -> DecodedHeader {
    match Fields::read(message) {
        Err(what) => DecodedHeader::Damaged(what),
        Ok(fields) => match fields.checks {
            Some(checks) => decode_checks(checks, message, all),
            None => fields.plain_format(all.len() as u64),
        },
    }
}

fn decode_checks(checks: &[u8], message: &[u8], all: &[u8]) -> DecodedHeader {
    if checks.first().is_some_and(|version| *version != CHECKS_VERSION) && checks.len() != CHECKS_LEN {
        return DecodedHeader::Unsupported(format!(
            "its checksum format has the unknown version {}",
            checks[0]
        ));
    }
    let Ok(checks) = <&[u8; CHECKS_LEN]>::try_from(checks) else {
        return DecodedHeader::Damaged("the header's checksum field has a wrong length");
    };
    let word = |at: usize| -> [u8; 8] { checks[at..at + 8].try_into().expect("eight bytes") };
    let (covered, crc) = all.split_last_chunk().expect("it contains the checks, which are longer");
    // The field comes last, so its checksum is at the header's end.
    if !message.ends_with(checks) || !matches(crc32c(covered), u32::from_be_bytes(*crc)) {
        return DecodedHeader::Damaged("the header fails its check");
    }
    if checks[0] != CHECKS_VERSION {
        return DecodedHeader::Unsupported(format!(
            "its checksum format has the unknown version {}",
            checks[0]
        ));
    }
    let previous = Previous { number: u64::from_be_bytes(word(9)), durable: u64::from_be_bytes(word(17)) };
    DecodedHeader::Header {
        format: LogFormat::Checked { salt: Salt(word(1)), previous },
        len: all.len() as u64,
    }
}

/// The fields of a `WALHeader`.
#[derive(Default)]
struct Fields<'a> {
    has_compression: bool,
    has_tag_compression: bool,
    has_value_compression: bool,
    encrypted: bool,
    writer: &'a [u8],
    codec: &'a [u8],
    value_algorithm: u64,
    checks: Option<&'a [u8]>,
}

/// HBase's ordinal of GZ among its compressions, the only supported one for values.
const GZ: u64 = 1;

impl<'a> Fields<'a> {
    fn read(mut message: &'a [u8]) -> Result<Fields<'a>, &'static str> {
        let mut fields = Fields { value_algorithm: GZ, ..Fields::default() };
        while let Some((number, value)) = field::next(&mut message)? {
            match (number, value) {
                (1, Value::Number(flag)) => fields.has_compression = flag != 0,
                (2, Value::Bytes(key)) => fields.encrypted = !key.is_empty(),
                (3, Value::Number(flag)) => fields.has_tag_compression = flag != 0,
                (4, Value::Bytes(class)) => fields.writer = class,
                (5, Value::Bytes(class)) => fields.codec = class,
                (6, Value::Number(flag)) => fields.has_value_compression = flag != 0,
                (7, Value::Number(code)) => fields.value_algorithm = code,
                (CHECKS_FIELD, Value::Bytes(checks)) => fields.checks = Some(checks),
                // HBase skips unknown fields, but this may be our field with a flipped bit.
                _ => return Err("the header has an unknown field"),
            }
        }
        Ok(fields)
    }

    fn plain_format(&self, len: u64) -> DecodedHeader {
        let writer = String::from_utf8_lossy(self.writer);
        let codec = String::from_utf8_lossy(self.codec);
        if self.encrypted || writer.starts_with("Secure") {
            return DecodedHeader::Unsupported("it is encrypted".into());
        }
        if !matches!(&*writer, "ProtobufLogWriter" | "AsyncProtobufLogWriter") {
            return DecodedHeader::Unsupported(format!("its writer class is {writer:?}"));
        }
        if codec != CODEC_CLASS {
            return DecodedHeader::Unsupported(format!("its cell codec is {codec:?}"));
        }
        if !self.has_compression {
            return DecodedHeader::Header { format: LogFormat::Plain, len };
        }
        if self.has_value_compression && self.value_algorithm != GZ {
            return DecodedHeader::Unsupported(format!(
                "its values use compression algorithm {}",
                self.value_algorithm
            ));
        }
        let format =
            LogFormat::Dictionary { tags: self.has_tag_compression, values: self.has_value_compression };
        DecodedHeader::Header { format, len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: Salt = Salt([1, 2, 3, 4, 5, 6, 7, 8]);
    const PREVIOUS: Previous = Previous { number: 17, durable: 4711 };

    #[test]
    fn our_header_is_read_back_and_begins_like_that_of_hbase() {
        let bytes = encode(SALT, PREVIOUS);
        let format = LogFormat::Checked { salt: SALT, previous: PREVIOUS };
        assert_eq!(decode(&bytes, 5000), DecodedHeader::Header { format, len: HEADER_LEN as u64 });
        let hbase = include_bytes!("../tests/vectors/wal-plain.wal");
        assert_eq!(bytes[5..85], hbase[5..85], "HBase's own fields, in its order");
        assert_eq!(bytes[85..88], CHECKS_START);
        assert_eq!(
            decode(&hbase[..], hbase.len() as u64),
            DecodedHeader::Header { format: LogFormat::Plain, len: 85 }
        );
    }

    #[test]
    fn a_flipped_bit_is_never_a_header() {
        let bytes = encode(SALT, PREVIOUS);
        // With any bytes after it: entries, zeros, nothing.
        for rest in [&b"\x46\x0a\x20"[..], &[0; 300], &[0xff; 300], &b""[..]] {
            for at in 0..bytes.len() {
                for bit in 0..8 {
                    let mut flipped = [&bytes[..], rest].concat();
                    flipped[at] ^= 1 << bit;
                    let start = decode(&flipped, flipped.len() as u64);
                    assert!(
                        matches!(start, DecodedHeader::Damaged(_)),
                        "bit {bit} of byte {at} gives {start:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_file_shorter_than_a_header_was_torn() {
        let bytes = encode(SALT, PREVIOUS);
        for len in 0..bytes.len() {
            assert_eq!(decode(&bytes[..len], len as u64), DecodedHeader::Torn, "{len} bytes");
        }
        assert_eq!(decode(&[0; 4096], 4096), DecodedHeader::Torn);
    }

    #[test]
    fn unsupported_features_are_named() {
        let mut message = Vec::new();
        field::put_bytes(&mut message, 4, b"SecureProtobufLogWriter");
        field::put_bytes(&mut message, 5, CODEC_CLASS.as_bytes());
        let bytes = [&MAGIC[..], &[message.len() as u8], &message].concat();
        assert_eq!(decode(&bytes, 1000), DecodedHeader::Unsupported("it is encrypted".into()));
    }
}
