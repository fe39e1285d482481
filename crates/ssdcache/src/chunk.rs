//! A chunk: the unit of writing. It begins with a table of its records, from which the index is
//! rebuilt after a restart.
//!
//! ```text
//! header: magic 8 | segment 4 | offset in the segment 4 | records 4 | bytes of the chunk 4
//!         | checksum 4 | zero 4
//! table:  per record: file 16 | offset 8 | record's offset in the segment 4
//!         | bytes of the block 4 | record's checksum 4
//! then the records
//! ```
//!
//! Numbers are little-endian. The checksum (CRC-32C) covers the fields before it and the table.

use base::checksum::{self, Crc32c};
use bytes::Bytes;

use crate::index::Location;
use crate::{BlockId, record};

/// Bytes of the header.
pub(crate) const HEADER_LEN: usize = 32;
/// Bytes of a table entry.
pub(crate) const ENTRY_LEN: usize = 36;
const MAGIC: [u8; 8] = *b"GrampSC1";
const CHECKED_LEN: usize = 24;

/// Bytes of a block in a chunk, with record and table entry.
pub(crate) fn len_in_chunk(block_len: usize) -> usize {
    ENTRY_LEN + record::HEADER_LEN + block_len
}

/// Builds the chunk of `blocks` at the offset `at` of a segment. Returns its bytes and where its
/// blocks are.
///
/// # Panics
/// If the segment would exceed 4 GiB.
pub(crate) fn build(segment: u32, at: u32, blocks: &[(BlockId, Bytes)]) -> (Vec<u8>, Vec<Location>) {
    let records_at = HEADER_LEN + blocks.len() * ENTRY_LEN;
    let len = HEADER_LEN + blocks.iter().map(|(_, block)| len_in_chunk(block.len())).sum::<usize>();
    let number = |number: usize| u32::try_from(number).expect("a segment has less than 4 GiB");
    assert!(at.checked_add(number(len)).is_some(), "a segment has less than 4 GiB");
    let mut out = Vec::with_capacity(len);
    out.resize(records_at, 0);
    let mut locations = Vec::with_capacity(blocks.len());
    for (index, (id, block)) in blocks.iter().enumerate() {
        let (record_at, block_len) = (at + number(out.len()), number(block.len()));
        let checksum = record::write(&mut out, *id, block);
        let entry = &mut out[HEADER_LEN + index * ENTRY_LEN..][..ENTRY_LEN];
        entry[..16].copy_from_slice(&id.file.to_le_bytes());
        entry[16..24].copy_from_slice(&id.offset.to_le_bytes());
        entry[24..28].copy_from_slice(&record_at.to_le_bytes());
        entry[28..32].copy_from_slice(&block_len.to_le_bytes());
        entry[32..].copy_from_slice(&checksum.to_le_bytes());
        locations.push(Location { key: id.key(), segment, at: record_at, len: block_len, checksum });
    }
    debug_assert_eq!(out.len(), len);
    out[..8].copy_from_slice(&MAGIC);
    for (field, value) in [segment, at, number(blocks.len()), number(len)].into_iter().enumerate() {
        out[8 + field * 4..][..4].copy_from_slice(&value.to_le_bytes());
    }
    let checksum = checksum_of(&out[..CHECKED_LEN], &out[HEADER_LEN..records_at]);
    out[CHECKED_LEN..CHECKED_LEN + 4].copy_from_slice(&checksum.to_le_bytes());
    (out, locations)
}

/// A chunk's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Bytes of the chunk.
    pub(crate) len: u32,
    records: u32,
    checksum: u32,
    fields: [u8; CHECKED_LEN],
}

impl Header {
    /// The header at the start of `bytes`, if it is that of a chunk at this position.
    pub(crate) fn parse(bytes: &[u8], segment: u32, at: u32) -> Option<Header> {
        let fields: &[u8; CHECKED_LEN] = bytes.first_chunk()?;
        let field = |from: usize| bytes.get(from..from + 4)?.try_into().ok().map(u32::from_le_bytes);
        let header = Header { len: field(20)?, records: field(16)?, checksum: field(24)?, fields: *fields };
        let is_here = fields[..8] == MAGIC && field(8)? == segment && field(12)? == at;
        (is_here && header.table_end() <= header.len as usize).then_some(header)
    }

    /// Bytes of header and table.
    pub(crate) fn table_end(&self) -> usize {
        HEADER_LEN + self.records as usize * ENTRY_LEN
    }

    /// Where the records are. `start` must be header and table. `None` if the table is damaged.
    pub(crate) fn locations(&self, start: &[u8], segment: u32, at: u32) -> Option<Vec<Location>> {
        let table = start.get(HEADER_LEN..self.table_end())?;
        if !checksum::matches(checksum_of(&self.fields, table), self.checksum) {
            return None;
        }
        let end = u64::from(at) + u64::from(self.len);
        table.chunks_exact(ENTRY_LEN).map(|entry| location(entry, segment, end)).collect()
    }
}

/// The location in a table entry, if its record ends at or before `end`.
fn location(entry: &[u8], segment: u32, end: u64) -> Option<Location> {
    let (file, rest) = entry.split_first_chunk::<16>()?;
    let (offset, rest) = rest.split_first_chunk::<8>()?;
    let field = |index: usize| rest.get(index * 4..index * 4 + 4)?.try_into().ok().map(u32::from_le_bytes);
    let id = BlockId { file: u128::from_le_bytes(*file), offset: u64::from_le_bytes(*offset) };
    let location = Location { key: id.key(), segment, at: field(0)?, len: field(1)?, checksum: field(2)? };
    let fits = u64::from(location.at) + location.record_len() as u64 <= end;
    fits.then_some(location)
}

fn checksum_of(fields: &[u8], table: &[u8]) -> u32 {
    let mut checksum = Crc32c::new();
    checksum.update(fields);
    checksum.update(table);
    checksum.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> Vec<(BlockId, Bytes)> {
        let block = |file, offset, len| (BlockId { file, offset }, Bytes::from(vec![len; len as usize]));
        vec![block(1, 0, 100), block(1, 5000, 0), block(u128::MAX, 7, 30)]
    }

    #[test]
    fn the_table_locates_the_records() {
        let (bytes, built) = build(3, 1000, &blocks());
        let header = Header::parse(&bytes, 3, 1000).unwrap();
        assert_eq!(header.len as usize, bytes.len());
        let found = header.locations(&bytes[..header.table_end()], 3, 1000).unwrap();
        assert_eq!(found, built);
        for (location, (id, block)) in found.into_iter().zip(blocks()) {
            let record = &bytes[location.at as usize - 1000..][..location.record_len()];
            let parsed = record::parse(&record.to_vec().into(), location.checksum);
            assert_eq!((location.key, parsed), (id.key(), Some((id, block))));
        }
    }

    #[test]
    fn a_chunk_counts_only_at_its_position_and_undamaged() {
        let (bytes, _) = build(3, 1000, &blocks());
        assert_eq!(Header::parse(&bytes, 3, 1001), None);
        assert_eq!(Header::parse(&bytes, 4, 1000), None);
        let table_end = Header::parse(&bytes, 3, 1000).unwrap().table_end();
        for at in (0..28).chain(HEADER_LEN..table_end) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            let locations = Header::parse(&damaged, 3, 1000)
                .and_then(|header| header.locations(damaged.get(..header.table_end())?, 3, 1000));
            assert_eq!(locations, None, "byte {at}");
        }
    }

    #[test]
    fn the_length_in_a_chunk_is_exact() {
        let blocks = blocks();
        let len: usize = blocks.iter().map(|(_, block)| len_in_chunk(block.len())).sum();
        assert_eq!(build(0, 0, &blocks).0.len(), HEADER_LEN + len);
    }
}
