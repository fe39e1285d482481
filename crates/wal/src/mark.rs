//! Marks in a log, which state how long its content is.
//!
//! A **durability mark** states the offset up to which the file was synced when the mark was
//! written. It is in the first entry of each group, in the trailer, and after the end mark of an
//! idle log. It has its own checksum and can be found without decoding the bytes before it, even if
//! they are damaged:
//!
//! ```text
//! salt 8 (as in the header) | offset of this mark 8 | offset known durable 8
//! | crc32c of these 24 bytes 4
//! ```
//!
//! The **end mark** follows the content of a file with reserved zeros. HBase reads it as an
//! entry that is truncated by the end of the file, as at the end of a killed server's log. It is
//! `varint(L) 0a varint(L')`: a key of L bytes, whose first field has L' bytes. Both lengths exceed
//! the length of any log.
//!
//! The **trailer** ends a log that was closed: HBase's `WALTrailer` message, its length in 4 bytes,
//! `LAWP`. The message has two fields that HBase skips. The first also serves as an end mark. It is
//! needed until the file is closed: reserved zeros follow the trailer until then, and HBase finds a
//! trailer only at the end of a file. The second field is a durability mark.

use base::checksum::{crc32c, matches};
use bytes::Bytes;

use crate::field;
use crate::window::Window;

/// The random number of one file. It distinguishes the file's bytes from those of any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Salt(pub(crate) [u8; 8]);

const SALT_LEN: usize = size_of::<Salt>();
const OFFSET_LEN: usize = size_of::<u64>();
const CHECKED_LEN: usize = SALT_LEN + 2 * OFFSET_LEN;
/// Bytes of a durability mark.
pub(crate) const MARK_LEN: usize = CHECKED_LEN + size_of::<u32>();
const _: () = assert!(MARK_LEN == 28);

/// Number of the durability mark's field in a `WALKey` and in the `WALTrailer`.
pub(crate) const MARK_FIELD: u32 = 1000;

/// Appends the mark whose position in the file is `offset`. It states that all bytes below
/// `durable` were synced.
pub(crate) fn put_mark(out: &mut Vec<u8>, salt: Salt, offset: u64, durable: u64) {
    let start = out.len();
    out.extend_from_slice(&salt.0);
    out.extend_from_slice(&offset.to_be_bytes());
    out.extend_from_slice(&durable.to_be_bytes());
    let crc = crc32c(&out[start..]);
    out.extend_from_slice(&crc.to_be_bytes());
}

/// The durable offset that a mark at `offset` of the file states; `None` if the bytes are not a
/// valid mark.
pub(crate) fn read_mark(bytes: &[u8], salt: Salt, offset: u64) -> Option<u64> {
    let bytes: &[u8; MARK_LEN] = bytes.first_chunk()?;
    let (checked, crc) = bytes.split_last_chunk()?;
    debug_assert_eq!(checked.len(), CHECKED_LEN);
    let word = |at: usize| u64::from_be_bytes(checked[at..at + OFFSET_LEN].try_into().expect("eight bytes"));
    let is_valid = checked[..SALT_LEN] == salt.0
        && word(SALT_LEN) == offset
        && matches(crc32c(checked), u32::from_be_bytes(*crc))
        && word(SALT_LEN + OFFSET_LEN) <= offset;
    is_valid.then(|| word(SALT_LEN + OFFSET_LEN))
}

/// The highest durable offset that any mark at or after `from` states; 0 if there is no mark.
pub(crate) async fn search(window: &mut Window, salt: Salt, from: u64) -> fs::Result<u64> {
    let mut highest = 0;
    let mut at = from;
    while at + MARK_LEN as u64 <= window.len() {
        window.fill(at, MARK_LEN).await?;
        let loaded = window.loaded(at);
        for found in occurrences(loaded, &salt.0) {
            if let Some(durable) = read_mark(&loaded[found..], salt, at + found as u64) {
                highest = highest.max(durable);
            }
        }
        // The last bytes are searched again, because they may be the start of a mark.
        at += (loaded.len() - MARK_LEN + 1) as u64;
    }
    Ok(highest)
}

/// The positions of `needle` in `bytes`. Most bytes are reserved zeros, which are skipped eight at
/// a time.
fn occurrences<'a>(bytes: &'a [u8], needle: &'a [u8; SALT_LEN]) -> impl Iterator<Item = usize> + 'a {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let next: &[u8; SALT_LEN] = bytes.get(at..)?.first_chunk()?;
            let found = at;
            if next == needle {
                at += 1;
                return Some(found);
            }
            at += if *next == [0; SALT_LEN] && needle[0] != 0 { SALT_LEN } else { 1 };
        }
    })
}

/// The end mark. Readers decode it as an entry that is truncated by the end of the file.
pub(crate) const END_MARK: [u8; 11] = [0xff, 0xff, 0xff, 0xff, 0x07, 0x0a, 0xf9, 0xff, 0xff, 0xff, 0x07];

/// The end mark at offset `end`, followed by a durability mark for all bytes before it.
pub(crate) fn idle_end_mark(salt: Salt, end: u64) -> Bytes {
    let mut out = Vec::with_capacity(END_MARK.len() + MARK_LEN);
    out.extend_from_slice(&END_MARK);
    put_mark(&mut out, salt, end + END_MARK.len() as u64, end);
    out.into()
}

/// Last bytes of a closed log.
const TRAILER_MAGIC: &[u8; 4] = b"LAWP";
/// Bytes after the trailer's message: its length and the magic.
pub(crate) const TRAILER_TAIL_LEN: usize = size_of::<u32>() + TRAILER_MAGIC.len();
/// Number of the trailer's first field. The field's tag, read as the length of a key, exceeds the
/// length of any log, as in the end mark.
const TRAILER_END_FIELD: u32 = (1 << 28) - 1;
/// Content of the trailer's first field. The byte before it is its length, 10. If the trailer is
/// read as a truncated key, this byte is the tag of the key's first field, and the first five bytes
/// of the content are the length of the key's first field.
const TRAILER_END: [u8; 10] = [0xf4, 0xff, 0xff, 0xff, 0x07, 0, 0, 0, 0, 0];
/// Position of the durability mark in a trailer. Before it are the first field (5 bytes of tag, 1
/// byte of length, the content), and the tag (2 bytes) and length (1 byte) of the second field.
const TRAILER_MARK_AT: usize = 6 + TRAILER_END.len() + 3;
/// Bytes of a trailer that is written here.
pub(crate) const TRAILER_LEN: usize = TRAILER_MARK_AT + MARK_LEN + TRAILER_TAIL_LEN;
const _: () = assert!(TRAILER_LEN == 55);

/// The trailer of a log whose content ends at `end` and is durable.
pub(crate) fn trailer(salt: Salt, end: u64) -> Bytes {
    let mut mark = Vec::with_capacity(MARK_LEN);
    put_mark(&mut mark, salt, end + TRAILER_MARK_AT as u64, end);
    let mut out = Vec::with_capacity(TRAILER_LEN);
    field::put_bytes(&mut out, TRAILER_END_FIELD, &TRAILER_END);
    field::put_bytes(&mut out, MARK_FIELD, &mark);
    let message_len = out.len() as u32;
    out.extend_from_slice(&message_len.to_be_bytes());
    out.extend_from_slice(TRAILER_MAGIC);
    debug_assert_eq!(out.len(), TRAILER_LEN);
    out.into()
}

/// Whether `bytes`, the rest of a file, are a trailer.
pub(crate) fn is_trailer(bytes: &[u8]) -> bool {
    trailer_len(bytes) == Some(bytes.len() as u64)
}

/// Whether `bytes`, the rest of a file, are a truncated trailer of HBase.
pub(crate) fn is_truncated_trailer(bytes: &[u8]) -> bool {
    bytes.len() < TRAILER_TAIL_LEN && b"\0\0\0\0LAWP".starts_with(bytes)
}

/// Length of the trailer according to `last`, the last bytes of a file; `None` if there is no
/// trailer.
pub(crate) fn trailer_len(last: &[u8]) -> Option<u64> {
    let tail = last.last_chunk::<TRAILER_TAIL_LEN>()?;
    let (len, magic) = tail.split_first_chunk::<4>()?;
    (magic == TRAILER_MAGIC).then(|| u64::from(u32::from_be_bytes(*len)) + TRAILER_TAIL_LEN as u64)
}

#[cfg(test)]
mod tests {
    use base::varint::get_varint;

    use super::*;

    const SALT: Salt = Salt(*b"saltsalt");

    #[test]
    fn a_mark_is_valid_only_unchanged_and_at_its_offset() {
        let mut bytes = Vec::new();
        put_mark(&mut bytes, SALT, 100, 64);
        assert_eq!(bytes.len(), MARK_LEN);
        assert_eq!(read_mark(&bytes, SALT, 100), Some(64));
        assert_eq!(read_mark(&bytes, SALT, 101), None);
        assert_eq!(read_mark(&bytes, Salt(*b"saltsalu"), 100), None);
        for at in 0..MARK_LEN {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                assert_eq!(read_mark(&flipped, SALT, 100), None, "bit {bit} of byte {at}");
            }
        }
        let mut beyond = Vec::new();
        put_mark(&mut beyond, SALT, 100, 101);
        assert_eq!(read_mark(&beyond, SALT, 100), None, "nothing is durable beyond what was written");
    }

    #[test]
    fn needles_are_found_among_zeros_and_at_any_alignment() {
        let mut bytes = vec![0; 1000];
        for at in [0, 13, 100, 992] {
            bytes[at..at + 8].copy_from_slice(b"saltsalt");
        }
        assert_eq!(occurrences(&bytes, &SALT.0).collect::<Vec<_>>(), [0, 13, 100, 992]);
        // A needle that begins with zeros.
        let needle = [0, 0, 0, 0, 0, 0, 0, 1];
        let mut bytes = vec![0; 100];
        bytes[50] = 1;
        assert_eq!(occurrences(&bytes, &needle).collect::<Vec<_>>(), [43]);
    }

    #[test]
    fn the_end_mark_is_a_key_longer_than_any_log() {
        let mut input = &END_MARK[..];
        let key_len = get_varint(&mut input).unwrap();
        assert_eq!(key_len, i32::MAX as u64);
        assert_eq!(input[0], 0x0a);
        input = &input[1..];
        // The field fits the key exactly, so that a reader needs more bytes instead of finding the
        // key malformed.
        assert_eq!(get_varint(&mut input), Some(key_len - 6));
        assert!(input.is_empty());
    }

    #[test]
    fn trailers_are_recognized() {
        let ours = trailer(SALT, 1000);
        assert!(is_trailer(&ours));
        assert_eq!(read_mark(&ours[19..], SALT, 1019), Some(1000));
        // Its start is an end mark: a length, field 1, a length, with nothing left over in the key.
        let mut input = &ours[..];
        let key_len = get_varint(&mut input).unwrap();
        assert_eq!((key_len, input[0]), (i32::MAX as u64 - 5, 10));
        input = &input[1..];
        assert_eq!(get_varint(&mut input), Some(key_len - 6));
        assert!(is_trailer(b"\0\0\0\0LAWP"));
        assert!(!is_trailer(b"\0\0\0\0\0LAWP"));
        assert!(!is_trailer(b"LAWP"));
        assert_eq!(trailer_len(b"some\0\0\0\x04LAWP"), Some(12));
    }
}
