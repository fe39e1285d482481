//! The start of a log: `PWAL`, and HBase's `WALHeader` behind its length.
//!
//! Ours has a field that HBase skips, with all that tells the file from others and lets it be checked:
//!
//! ```text
//! PWAL 4 | length 1 | HBase's fields 80 | tag 2, length 1 of field 1000 |
//!   version 1 | salt 8 | number of the log before 8 | durable end of the log before 8 | crc32c of all before it 4
//! ```
//!
//! All of it but that field's content is the same in every file, and the field comes last. So a header with a flipped
//! bit is never taken for HBase's plain one: the field then fails its check, or is a field that nobody knows.

use base::checksum::{crc32c, matches};
use base::varint::{get_varint, put_varint};
use bytes::Bytes;

use crate::field::{self, Value};
use crate::mark::Salt;

const MAGIC: &[u8; 4] = b"PWAL";
const WRITER_CLASS: &str = "ProtobufLogWriter";
const CODEC_CLASS: &str = "org.apache.hadoop.hbase.regionserver.wal.WALCellCodec";

/// Field of our part of the header.
const CHECKS_FIELD: u32 = 1000;
/// First byte of our part of the header; other numbers are other formats.
const CHECKS_VERSION: u8 = 1;
/// Bytes of our part of the header.
const CHECKS_LEN: usize = 1 + 8 + 8 + 8 + 4;
/// How the field with our part begins; no entry begins so, since a key begins with field 1.
const CHECKS_START: [u8; 3] = [0xc2, 0x3e, CHECKS_LEN as u8];
/// Bytes of the header as written here.
pub(crate) const HEADER_LEN: usize = 4 + 1 + 80 + 3 + CHECKS_LEN;
const _: () = assert!(HEADER_LEN == 117);
/// Longest header that is read; HBase's have about 90 bytes, with a wrapped key some hundreds.
pub(crate) const HEADER_LEN_MAX: usize = 64 * 1024;

/// What the log before this one of the same run ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Previous {
    /// Its file number; 0 if there was none.
    pub number: u64,
    /// All of it below this offset is durable.
    pub durable: u64,
}

impl Previous {
    pub(crate) const NONE: Previous = Previous { number: 0, durable: 0 };
}

/// How a log's entries are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Ours: every entry is checked.
    Checked { salt: Salt, previous: Previous },
    /// HBase's, without compression.
    Plain,
    /// HBase's, with dictionaries.
    Dictionary { tags: bool, values: bool },
}

/// What the first bytes of a file are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// A header: entries begin behind its `len` bytes.
    Header { form: Form, len: u64 },
    /// The header was not wholly written when the server died, so nothing behind it can have been acknowledged.
    Torn,
    /// No header, though there should be one.
    Damaged(&'static str),
    /// A header of what is not read here.
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

/// Reads the start of a file of `file_len` bytes, of which `bytes` are the first (all, or [`HEADER_LEN_MAX`]).
pub(crate) fn decode(bytes: &[u8], file_len: u64) -> Start {
    if bytes.iter().all(|byte| *byte == 0) {
        // Nothing, or reserved zeros. An entry is only ever written behind a header that was synced; should zeros
        // stand in its place all the same, what is behind them says so.
        return if file_len <= bytes.len() as u64 {
            Start::Torn
        } else {
            Start::Damaged("zeros for a header")
        };
    }
    let short = file_len < HEADER_LEN as u64;
    let cut = |what| if short { Start::Torn } else { Start::Damaged(what) };
    let Some(mut input) = bytes.strip_prefix(MAGIC) else {
        return if short && MAGIC.starts_with(bytes) {
            Start::Torn
        } else {
            Start::Damaged("no PWAL at the start")
        };
    };
    let Some(message_len) = get_varint(&mut input) else { return cut("the header's length is cut") };
    let prefix_len = bytes.len() - input.len();
    match usize::try_from(message_len).ok().and_then(|len| input.get(..len)) {
        Some(message) => {
            let (all, behind) = bytes.split_at(prefix_len + message.len());
            // A header whose length was damaged may end before our field, and look like one of HBase's.
            if behind.starts_with(&CHECKS_START) {
                return Start::Damaged("the header is shorter than it was");
            }
            decode_message(message, all)
        }
        None => cut("the header is longer than the file"),
    }
}

fn decode_message(message: &[u8], all: &[u8]) -> Start {
    match Fields::read(message) {
        Err(what) => Start::Damaged(what),
        Ok(fields) => match fields.checks {
            Some(checks) => decode_checks(checks, message, all),
            None => fields.plain_form(all.len() as u64),
        },
    }
}

fn decode_checks(checks: &[u8], message: &[u8], all: &[u8]) -> Start {
    if checks.first().is_some_and(|version| *version != CHECKS_VERSION) && checks.len() != CHECKS_LEN {
        return Start::Unsupported(format!("its checks are of version {}", checks[0]));
    }
    let Ok(checks) = <&[u8; CHECKS_LEN]>::try_from(checks) else {
        return Start::Damaged("the header's checks have a wrong length");
    };
    let word = |at: usize| -> [u8; 8] { checks[at..at + 8].try_into().expect("eight bytes") };
    let (covered, crc) = all.split_last_chunk().expect("the checks, which are longer, are in it");
    // The field comes last, so the check stands at the header's end.
    if !message.ends_with(checks) || !matches(crc32c(covered), u32::from_be_bytes(*crc)) {
        return Start::Damaged("the header fails its check");
    }
    if checks[0] != CHECKS_VERSION {
        return Start::Unsupported(format!("its checks are of version {}", checks[0]));
    }
    let previous = Previous { number: u64::from_be_bytes(word(9)), durable: u64::from_be_bytes(word(17)) };
    Start::Header { form: Form::Checked { salt: Salt(word(1)), previous }, len: all.len() as u64 }
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

/// HBase's ordinal of GZ among its compressions, the only one that values are read with.
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
                // HBase would skip it. Here it may be our own field with a flipped bit.
                _ => return Err("the header has a field that nobody knows"),
            }
        }
        Ok(fields)
    }

    fn plain_form(&self, len: u64) -> Start {
        let writer = String::from_utf8_lossy(self.writer);
        let codec = String::from_utf8_lossy(self.codec);
        if self.encrypted || writer.starts_with("Secure") {
            return Start::Unsupported("it is encrypted".into());
        }
        if !matches!(&*writer, "ProtobufLogWriter" | "AsyncProtobufLogWriter") {
            return Start::Unsupported(format!("it was written by {writer:?}"));
        }
        if codec != CODEC_CLASS {
            return Start::Unsupported(format!("its cells are coded by {codec:?}"));
        }
        if !self.has_compression {
            return Start::Header { form: Form::Plain, len };
        }
        if self.has_value_compression && self.value_algorithm != GZ {
            return Start::Unsupported(format!(
                "its values are compressed with number {}",
                self.value_algorithm
            ));
        }
        let form = Form::Dictionary { tags: self.has_tag_compression, values: self.has_value_compression };
        Start::Header { form, len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: Salt = Salt([1, 2, 3, 4, 5, 6, 7, 8]);
    const PREVIOUS: Previous = Previous { number: 17, durable: 4711 };

    #[test]
    fn ours_comes_back_and_begins_as_that_of_hbase() {
        let bytes = encode(SALT, PREVIOUS);
        let form = Form::Checked { salt: SALT, previous: PREVIOUS };
        assert_eq!(decode(&bytes, 5000), Start::Header { form, len: HEADER_LEN as u64 });
        let hbase = include_bytes!("../tests/vectors/wal-plain.wal");
        assert_eq!(bytes[5..85], hbase[5..85], "HBase's own fields, in its order");
        assert_eq!(bytes[85..88], CHECKS_START);
        assert_eq!(decode(&hbase[..], hbase.len() as u64), Start::Header { form: Form::Plain, len: 85 });
    }

    #[test]
    fn a_flipped_bit_is_never_a_header() {
        let bytes = encode(SALT, PREVIOUS);
        // Whatever follows: entries, zeros, nothing.
        for rest in [&b"\x46\x0a\x20"[..], &[0; 300], &[0xff; 300], &b""[..]] {
            for at in 0..bytes.len() {
                for bit in 0..8 {
                    let mut flipped = [&bytes[..], rest].concat();
                    flipped[at] ^= 1 << bit;
                    let start = decode(&flipped, flipped.len() as u64);
                    assert!(matches!(start, Start::Damaged(_)), "bit {bit} of byte {at} gives {start:?}");
                }
            }
        }
    }

    #[test]
    fn a_file_shorter_than_a_header_was_torn() {
        let bytes = encode(SALT, PREVIOUS);
        for len in 0..bytes.len() {
            assert_eq!(decode(&bytes[..len], len as u64), Start::Torn, "{len} bytes");
        }
        assert_eq!(decode(&[0; 4096], 4096), Start::Torn);
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let mut message = Vec::new();
        field::put_bytes(&mut message, 4, b"SecureProtobufLogWriter");
        field::put_bytes(&mut message, 5, CODEC_CLASS.as_bytes());
        let bytes = [&MAGIC[..], &[message.len() as u8], &message].concat();
        assert_eq!(decode(&bytes, 1000), Start::Unsupported("it is encrypted".into()));
    }
}
