//! The server side of the wire formats: frames of calls, and packets of blocks.

use std::io;

use base::checksum::crc32c;
use base::env::Stream;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;
use tokio::io::AsyncReadExt;

use crate::connection::take_delimited;
use crate::generated::{PacketHeader, RpcResponseHeader};
use crate::packet::{CHUNK_BYTES, Packet};

const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Data bytes of a packet that is read.
pub(crate) const READ_PACKET_BYTES: usize = 8 * CHUNK_BYTES;

/// An exception's class and message.
pub(crate) type Exception = (&'static str, String);
/// A response, length-delimited, or an exception.
pub(crate) type Outcome = Result<Vec<u8>, Exception>;

pub(crate) fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// Reads a message of the data transfer protocol.
pub(crate) async fn read_message<M: Message + Default>(
    stream: &mut Box<dyn Stream>,
    inbound: &mut BytesMut,
) -> io::Result<M> {
    loop {
        if let Some(message) = take_delimited(inbound, MESSAGE_BYTES_MAX)? {
            return Ok(message);
        }
        if stream.read_buf(inbound).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Reads a packet, with its lengths.
pub(crate) async fn read_packet(stream: &mut Box<dyn Stream>) -> io::Result<Bytes> {
    let len = stream.read_u32().await?;
    let header_len = stream.read_u16().await?;
    let rest = (usize::from(header_len) + len as usize).checked_sub(4);
    let rest = rest.filter(|rest| *rest <= MESSAGE_BYTES_MAX).ok_or_else(|| invalid("packet length"))?;
    let mut packet = BytesMut::new();
    packet.put_u32(len);
    packet.put_u16(header_len);
    let start = packet.len();
    packet.resize(start + rest, 0);
    stream.read_exact(&mut packet[start..]).await?;
    Ok(packet.freeze())
}

/// Parses a packet, and verifies its lengths and checksums.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`].
pub(crate) fn parse_packet(packet: &[u8]) -> io::Result<(PacketHeader, Vec<u8>)> {
    let short = || invalid("a packet is too short");
    let (mut lens, rest) = packet.split_at_checked(6).ok_or_else(short)?;
    let (len, header_len) = (lens.get_u32() as usize, usize::from(lens.get_u16()));
    let (header, rest) = rest.split_at_checked(header_len).ok_or_else(short)?;
    let header = PacketHeader::decode(header).map_err(io::Error::other)?;
    let data_len = usize::try_from(header.data_len).map_err(|_| invalid("data length"))?;
    let sums_len = data_len.div_ceil(CHUNK_BYTES) * 4;
    if len != 4 + sums_len + data_len || rest.len() != sums_len + data_len {
        return Err(invalid("the lengths of a packet differ"));
    }
    let (sums, data) = rest.split_at(sums_len);
    let is_intact =
        data.chunks(CHUNK_BYTES).zip(sums.chunks(4)).all(|(chunk, sum)| crc32c(chunk).to_be_bytes() == *sum);
    if !is_intact {
        return Err(invalid("the data differs from its checksums"));
    }
    Ok((header, data.to_vec()))
}

/// Packet `seqno` of a read that began at `begin`.
pub(crate) fn read_response_packet(begin: u64, seqno: usize, data: &[u8], is_last: bool) -> Vec<u8> {
    let header = PacketHeader {
        offset_in_block: begin as i64 + (seqno * READ_PACKET_BYTES) as i64,
        seqno: seqno as i64,
        last_packet_in_block: is_last,
        data_len: data.len() as i32,
        sync_block: None,
    };
    let mut wire = Packet::new(&header, &[], Bytes::copy_from_slice(data)).wire();
    wire.copy_to_bytes(wire.remaining()).into()
}

/// Reads a frame of Hadoop's RPC, without its length.
pub(crate) async fn read_frame(stream: &mut Box<dyn Stream>) -> io::Result<Bytes> {
    let len = stream.read_u32().await? as usize;
    if len > MESSAGE_BYTES_MAX {
        return Err(invalid("a frame is too long"));
    }
    let mut frame = vec![0; len];
    stream.read_exact(&mut frame).await?;
    Ok(frame.into())
}

/// The frame of a response.
pub(crate) fn response(call_id: i32, outcome: Outcome) -> Vec<u8> {
    let mut header = RpcResponseHeader { call_id: call_id as u32, status: 0, ..RpcResponseHeader::default() };
    let mut body = Vec::new();
    match outcome {
        Ok(message) => body = message,
        Err((class, message)) => {
            header.status = 1;
            header.exception_class = Some(class.to_owned());
            header.error_message = Some(message);
        }
    }
    let payload = [header.encode_length_delimited_to_vec(), body].concat();
    [&(payload.len() as u32).to_be_bytes()[..], &payload].concat()
}

/// A length-delimited response.
pub(crate) fn encode(message: impl Message) -> Outcome {
    Ok(message.encode_length_delimited_to_vec())
}
