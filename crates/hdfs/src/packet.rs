//! Packets of the data transfer protocol.
//!
//! A packet has 512-byte chunks, and a CRC32C of each. It begins at the start of a chunk: if the
//! bytes sent before end within a chunk, that part of the chunk is sent again. A DataNode
//! overwrites it with the same bytes.

use base::checksum::{Crc32c, crc32c};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;

use crate::generated::PacketHeader;

/// Bytes that a checksum covers.
pub(crate) const CHUNK_BYTES: usize = 512;
/// Maximum number of data bytes in a packet.
pub(crate) const PACKET_DATA_MAX: usize = 64 << 10;
/// Sequence number of a heartbeat.
pub(crate) const HEARTBEAT: i64 = -1;

/// A packet that can be sent. Copies share its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// The lengths, the header, the checksums, and the bytes that are sent again.
    head: Bytes,
    /// The bytes that are sent for the first time; they are not copied.
    data: Bytes,
    pub(crate) seqno: i64,
    /// Length of the block with this packet.
    pub(crate) end: u64,
}

impl Packet {
    /// A packet whose data are `again`, which is less than a chunk, and `data`.
    pub(crate) fn new(header: &PacketHeader, again: &[u8], data: Bytes) -> Packet {
        let data_len = again.len() + data.len();
        debug_assert_eq!(header.data_len as usize, data_len, "the header states the length");
        let sums_len = data_len.div_ceil(CHUNK_BYTES) * 4;
        let header_len = header.encoded_len();
        let mut head = BytesMut::with_capacity(6 + header_len + sums_len + again.len());
        head.put_u32((4 + sums_len + data_len) as u32);
        head.put_u16(header_len as u16);
        header.encode(&mut head).expect("the buffer grows");
        let mut chunks = &data[..];
        if !again.is_empty() {
            let (first, rest) = data.split_at(data.len().min(CHUNK_BYTES - again.len()));
            let mut sum = Crc32c::new();
            sum.update(again);
            sum.update(first);
            head.put_u32(sum.finish());
            chunks = rest;
        }
        for chunk in chunks.chunks(CHUNK_BYTES) {
            head.put_u32(crc32c(chunk));
        }
        head.put_slice(again);
        let end = header.offset_in_block as u64 + data_len as u64;
        Packet { head: head.freeze(), data, seqno: header.seqno, end }
    }

    /// The bytes on the wire.
    pub(crate) fn wire(&self) -> impl Buf + use<> {
        self.head.clone().chain(self.data.clone())
    }
}

/// The packet that keeps an idle block open.
pub(crate) fn heartbeat() -> Packet {
    let header = PacketHeader {
        offset_in_block: 0,
        seqno: HEARTBEAT,
        last_packet_in_block: false,
        data_len: 0,
        sync_block: None,
    };
    Packet::new(&header, &[], Bytes::new())
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
    pub(crate) fn cut(&mut self, mut data: Bytes, sync: bool) -> Vec<Packet> {
        if data.is_empty() {
            return sync.then(|| self.empty_packet(true, false)).into_iter().collect();
        }
        let mut packets = Vec::with_capacity(data.len() / PACKET_DATA_MAX + 2);
        while !data.is_empty() {
            let room = PACKET_DATA_MAX - self.partial.len();
            let part = data.split_to(data.len().min(room));
            packets.push(self.data_packet(part, sync && data.is_empty()));
        }
        packets
    }

    /// The packet that ends the block.
    pub(crate) fn end(&mut self, sync: bool) -> Packet {
        self.empty_packet(sync, true)
    }

    fn data_packet(&mut self, data: Bytes, sync: bool) -> Packet {
        let again = std::mem::take(&mut self.partial);
        let offset = self.len - again.len() as u64;
        let data_len = again.len() + data.len();
        self.len += data.len() as u64;
        let partial_len = data_len % CHUNK_BYTES;
        self.partial = match data.len().checked_sub(partial_len) {
            Some(full_len) => data[full_len..].to_vec(),
            // The chunk is still not full.
            None => [&again[..], &data].concat(),
        };
        let header = self.next_header(offset, data_len, sync, false);
        Packet::new(&header, &again, data)
    }

    fn empty_packet(&mut self, sync: bool, is_last: bool) -> Packet {
        let header = self.next_header(self.len, 0, sync, is_last);
        Packet::new(&header, &[], Bytes::new())
    }

    fn next_header(&mut self, offset: u64, data_len: usize, sync: bool, is_last: bool) -> PacketHeader {
        let seqno = self.next;
        self.next += 1;
        PacketHeader {
            offset_in_block: offset as i64,
            seqno,
            last_packet_in_block: is_last,
            data_len: data_len as i32,
            sync_block: sync.then_some(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing;

    fn bytes_of(packet: &Packet) -> Bytes {
        let mut wire = packet.wire();
        wire.copy_to_bytes(wire.remaining())
    }

    fn parse_packet(packet: &Packet) -> (PacketHeader, Vec<u8>) {
        testing::parse_packet(&bytes_of(packet))
    }

    #[test]
    fn a_packet_has_hadoops_layout() {
        let mut cutter = Packetizer::default();
        let packets = cutter.cut(Bytes::from_static(b"abc"), true);
        let expected = [
            &[0, 0, 0, 11, 0, 27][..],
            &[0x09, 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0x18, 0, 0x25, 3, 0, 0, 0, 0x28, 1],
            &crc32c(b"abc").to_be_bytes(),
            b"abc",
        ];
        assert_eq!(packets.len(), 1);
        assert_eq!(bytes_of(&packets[0]), expected.concat());
        assert_eq!(
            bytes_of(&heartbeat())[..6],
            [0, 0, 0, 4, 0, 25],
            "without a sync the header has 25 bytes"
        );
    }

    #[test]
    fn a_partial_chunk_is_sent_again() {
        let mut cutter = Packetizer::default();
        cutter.cut(vec![1; 700].into(), false);
        let (header, data) = parse_packet(&cutter.cut(vec![2; 400].into(), false)[0]);
        assert_eq!((header.offset_in_block, header.seqno), (512, 1));
        assert_eq!(data, [&[1; 188][..], &[2; 400]].concat());
        let (header, data) = parse_packet(&cutter.cut(Bytes::new(), true)[0]);
        assert_eq!((header.offset_in_block, header.data_len, header.sync_block), (1100, 0, Some(true)));
        assert!(data.is_empty());
        assert!(cutter.cut(Bytes::new(), false).is_empty());
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
                for packet in cutter.cut(data.into(), false) {
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
