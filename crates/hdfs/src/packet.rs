//! Packets of the data transfer protocol.
//!
//! A packet has 512-byte chunks, and a CRC32C of each. It begins at the start of a chunk: if the
//! bytes sent before end within a chunk, that part of the chunk is sent again. A DataNode
//! overwrites it with the same bytes.

use base::checksum::crc32c;
use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;

use crate::generated::PacketHeader;

/// Bytes that a checksum covers.
pub(crate) const CHUNK_BYTES: usize = 512;
/// Most data bytes of a packet.
pub(crate) const PACKET_DATA_MAX: usize = 64 << 10;
/// Sequence number of a heartbeat.
pub(crate) const HEARTBEAT: i64 = -1;

/// A packet with `data`, which is at `offset` in the block.
pub(crate) fn packet(header: &PacketHeader, data: &[u8]) -> Bytes {
    debug_assert_eq!(header.data_len as usize, data.len(), "the header states the length");
    let sums_len = data.len().div_ceil(CHUNK_BYTES) * 4;
    let header_len = header.encoded_len();
    let mut packet = BytesMut::with_capacity(6 + header_len + sums_len + data.len());
    packet.put_u32((4 + sums_len + data.len()) as u32);
    packet.put_u16(header_len as u16);
    packet.put_slice(&header.encode_to_vec());
    for chunk in data.chunks(CHUNK_BYTES) {
        packet.put_u32(crc32c(chunk));
    }
    packet.put_slice(data);
    packet.freeze()
}

/// The packet that keeps an idle block open.
pub(crate) fn heartbeat() -> Bytes {
    let header = PacketHeader {
        offset_in_block: 0,
        seqno: HEARTBEAT,
        last_packet_in_block: false,
        data_len: 0,
        sync_block: None,
    };
    packet(&header, &[])
}

/// Cuts the bytes of a block into packets.
#[derive(Default)]
pub(crate) struct Packetizer {
    /// Number of the next packet.
    next: i64,
    /// Bytes of the block that are in packets.
    len: u64,
    /// The bytes of the last chunk, if it is not full.
    partial: Vec<u8>,
}

impl Packetizer {
    /// Bytes of the block that are in packets.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Number of the last packet; -1 if there is none.
    pub(crate) fn last(&self) -> i64 {
        self.next - 1
    }

    /// The packets for more `data`. If `sync`, the DataNode syncs the block before it acknowledges
    /// the last one; then there is a packet even without data.
    pub(crate) fn cut(&mut self, data: &[u8], sync: bool) -> Vec<Bytes> {
        if data.is_empty() {
            let packets = sync.then(|| self.next_packet(self.len, &[], true, false));
            return packets.into_iter().collect();
        }
        let start = self.len - self.partial.len() as u64;
        let mut bytes = std::mem::take(&mut self.partial);
        bytes.extend_from_slice(data);
        self.len += data.len() as u64;
        let count = bytes.len().div_ceil(PACKET_DATA_MAX);
        let packets = bytes.chunks(PACKET_DATA_MAX).enumerate().map(|(index, part)| {
            let offset = start + (index * PACKET_DATA_MAX) as u64;
            self.next_packet(offset, part, sync && index + 1 == count, false)
        });
        let packets = packets.collect();
        self.partial = bytes.split_off(bytes.len() / CHUNK_BYTES * CHUNK_BYTES);
        packets
    }

    /// The packet that ends the block.
    pub(crate) fn end(&mut self, sync: bool) -> Bytes {
        self.next_packet(self.len, &[], sync, true)
    }

    fn next_packet(&mut self, offset: u64, data: &[u8], sync: bool, is_last: bool) -> Bytes {
        let seqno = self.next;
        self.next += 1;
        let header = PacketHeader {
            offset_in_block: offset as i64,
            seqno,
            last_packet_in_block: is_last,
            data_len: data.len() as i32,
            sync_block: sync.then_some(true),
        };
        packet(&header, data)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::parse_packet;

    #[test]
    fn a_packet_has_hadoops_layout() {
        let mut cutter = Packetizer::default();
        let packets = cutter.cut(b"abc", true);
        let expected = [
            &[0, 0, 0, 11, 0, 27][..],
            &[0x09, 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0x18, 0, 0x25, 3, 0, 0, 0, 0x28, 1],
            &crc32c(b"abc").to_be_bytes(),
            b"abc",
        ];
        assert_eq!(packets, [Bytes::from(expected.concat())]);
        assert_eq!(&heartbeat()[..6], [0, 0, 0, 4, 0, 25], "without a sync the header has 25 bytes");
    }

    #[test]
    fn a_partial_chunk_is_sent_again() {
        let mut cutter = Packetizer::default();
        cutter.cut(&[1; 700], false);
        let (header, data) = parse_packet(&cutter.cut(&[2; 400], false)[0]);
        assert_eq!((header.offset_in_block, header.seqno), (512, 1));
        assert_eq!(data, [&[1; 188][..], &[2; 400]].concat());
        let (header, data) = parse_packet(&cutter.cut(&[], true)[0]);
        assert_eq!((header.offset_in_block, header.data_len, header.sync_block), (1100, 0, Some(true)));
        assert!(data.is_empty());
        assert!(cutter.cut(&[], false).is_empty());
        let (header, _) = parse_packet(&cutter.end(false));
        assert_eq!((header.offset_in_block, header.last_packet_in_block), (1100, true));
        assert_eq!(cutter.last(), 3);
    }

    proptest! {
        #[test]
        fn packets_cover_all_bytes(lens in proptest::collection::vec(0usize..200_000, 1..8)) {
            let mut cutter = Packetizer::default();
            let (mut sent, mut received) = (Vec::new(), Vec::new());
            for (index, len) in lens.into_iter().enumerate() {
                let data = vec![index as u8; len];
                sent.extend_from_slice(&data);
                for packet in cutter.cut(&data, false) {
                    let (header, data) = parse_packet(&packet);
                    let offset = header.offset_in_block as usize;
                    prop_assert!(offset.is_multiple_of(CHUNK_BYTES) && offset <= received.len());
                    received.truncate(offset);
                    received.extend_from_slice(&data);
                }
            }
            prop_assert_eq!(cutter.len(), sent.len() as u64);
            prop_assert_eq!(received, sent);
        }
    }
}
