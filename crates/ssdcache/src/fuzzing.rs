//! Entry points of the fuzz targets: what a restart and a read accept from the SSD.

use bytes::Bytes;

use crate::chunk::{self, Header};
use crate::{BlockId, record};

/// The bytes of a segment, as a sequence of chunks: what is accepted as a chunk has its records
/// within the segment's addresses, and what is accepted as a record is written in the same way.
pub fn segment(number: u32, bytes: &[u8]) {
    let mut at = 0;
    while let Some(rest) = bytes.get(at as usize..) {
        let Some(header) = Header::parse(rest, number, at) else { return };
        let Some(locations) = header.locations(rest, number, at) else { return };
        for location in locations {
            let end = location.at as usize + location.record_len();
            assert!(end as u64 <= u64::from(at) + u64::from(header.len));
            if let Some(bytes) = bytes.get(location.at as usize..end) {
                record(Bytes::copy_from_slice(bytes), location.checksum);
            }
        }
        let Some(next) = at.checked_add(header.len).filter(|next| *next > at) else { return };
        at = next;
    }
}

fn record(bytes: Bytes, checksum: u32) {
    let Some((id, block)) = record::parse(&bytes, checksum) else { return };
    let mut written = Vec::new();
    record::write(&mut written, id, &block);
    assert_eq!(written.len(), bytes.len());
    // Without the checksum and the unused bytes: the fuzzer's checksums always match.
    assert_eq!(written[..32], bytes[..32]);
    assert_eq!(written[record::HEADER_LEN..], bytes[record::HEADER_LEN..]);
}

/// Blocks made of the input are found again in the chunk that is built of them.
pub fn build(data: &[u8]) {
    let blocks: Vec<(BlockId, Bytes)> = data
        .chunks(37)
        .enumerate()
        .map(|(at, block)| {
            (BlockId { file: at as u128, offset: block.len() as u64 }, Bytes::copy_from_slice(block))
        })
        .collect();
    let (chunk, built) = chunk::build(7, 0, &blocks);
    let header = Header::parse(&chunk, 7, 0).expect("a built chunk must be readable");
    assert_eq!(header.locations(&chunk, 7, 0), Some(built));
    segment(7, &chunk);
}
