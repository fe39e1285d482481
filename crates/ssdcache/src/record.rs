//! A block in a segment, with its identity and a checksum.
//!
//! ```text
//! magic 4 | length of the block 4 | file 16 | offset 8 | checksum 4 | zero 4 | block
//! ```
//!
//! Numbers are little-endian. The checksum (CRC-32C) covers length, file, offset and block. So a
//! record that was torn, overwritten or belongs to another block is recognized.

use base::checksum::{self, Crc32c};
use bytes::Bytes;

use crate::BlockId;

/// Bytes before the block.
pub(crate) const HEADER_LEN: usize = 40;
const MAGIC: [u8; 4] = *b"GbR1";

/// Appends a record to `out`. Returns its checksum.
///
/// # Panics
/// If the block has 4 GiB or more.
pub(crate) fn write(out: &mut Vec<u8>, id: BlockId, block: &[u8]) -> u32 {
    let start = out.len();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&u32::try_from(block.len()).expect("a block has less than 4 GiB").to_le_bytes());
    out.extend_from_slice(&id.file.to_le_bytes());
    out.extend_from_slice(&id.offset.to_le_bytes());
    let checksum = checksum_of(&out[start + MAGIC.len()..], block);
    out.extend_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(block);
    checksum
}

/// The block in `record`, which must be exactly one record with the checksum `expected`. `None` if
/// it is not.
pub(crate) fn parse(record: &Bytes, expected: u32) -> Option<(BlockId, Bytes)> {
    let (header, block) = record.split_at_checked(HEADER_LEN)?;
    let (magic, rest) = header.split_first_chunk::<4>()?;
    let (len, rest) = rest.split_first_chunk::<4>()?;
    let (file, rest) = rest.split_first_chunk::<16>()?;
    let (offset, rest) = rest.split_first_chunk::<8>()?;
    let stored = u32::from_le_bytes(*rest.first_chunk::<4>()?);
    if *magic != MAGIC || u32::from_le_bytes(*len) as usize != block.len() || stored != expected {
        return None;
    }
    let found = checksum_of(&header[MAGIC.len()..32], block);
    let id = BlockId { file: u128::from_le_bytes(*file), offset: u64::from_le_bytes(*offset) };
    checksum::matches(found, stored).then(|| (id, record.slice(HEADER_LEN..)))
}

fn checksum_of(fields: &[u8], block: &[u8]) -> u32 {
    let mut checksum = Crc32c::new();
    checksum.update(fields);
    checksum.update(block);
    checksum.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: BlockId = BlockId { file: 0x1234_5678_9abc_def0_1122_3344_5566_7788, offset: 77 };

    #[test]
    fn a_record_has_its_block() {
        let mut out = vec![];
        let checksum = write(&mut out, ID, b"block");
        assert_eq!(out.len(), HEADER_LEN + 5);
        assert_eq!(parse(&out.into(), checksum), Some((ID, Bytes::from_static(b"block"))));
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let mut out = vec![];
        let checksum = write(&mut out, ID, b"block");
        // The last four bytes of the header have no meaning.
        for at in (0..36).chain(HEADER_LEN..out.len()) {
            for bit in 0..8 {
                let mut damaged = out.clone();
                damaged[at] ^= 1 << bit;
                assert_eq!(parse(&damaged.into(), checksum), None, "byte {at} bit {bit}");
            }
        }
    }

    #[test]
    fn other_lengths_and_checksums_are_rejected() {
        let mut out = vec![];
        let checksum = write(&mut out, ID, b"block");
        for len in 0..out.len() {
            assert_eq!(parse(&out[..len].to_vec().into(), checksum), None, "{len}");
        }
        assert_eq!(parse(&out.into(), checksum ^ 1), None);
    }
}
