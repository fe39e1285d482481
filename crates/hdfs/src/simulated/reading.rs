//! Reads of blocks at a DataNode.

use std::io;

use base::env::Stream;
use bytes::BytesMut;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::DiskAccess;
use super::datanode::{DataNode, exception};
use super::wire::{READ_PACKET_BYTES, invalid, read_message, read_response_packet};
use crate::generated::{BlockOpResponse, Checksum, ClientReadStatus, OpReadBlock, ReadChecksumInfo};
use crate::packet::CHUNK_BYTES;

const ERROR: u32 = 1;
const CHECKSUM_CRC32C: u32 = 2;
/// The version and the operation at the start of another read.
const READ: [u8; 3] = [0, 28, 81];

impl DataNode {
    /// Serves reads on a connection. The operation of the first one was received.
    pub(super) async fn serve_reads(&self, mut stream: Box<dyn Stream>) -> io::Result<()> {
        let mut inbound = BytesMut::new();
        loop {
            let request: OpReadBlock = read_message(&mut stream, &mut inbound).await?;
            match self.read(&request).await {
                Ok((begin, data)) => send(&mut stream, begin, &data).await?,
                Err(why) => {
                    let response =
                        BlockOpResponse { status: ERROR, message: Some(why), ..BlockOpResponse::default() };
                    stream.write_all(&response.encode_length_delimited_to_vec()).await?;
                    return stream.shutdown().await;
                }
            }
            let _: ClientReadStatus = read_message(&mut stream, &mut inbound).await?;
            while inbound.len() < READ.len() {
                if stream.read_buf(&mut inbound).await? == 0 {
                    return Ok(());
                }
            }
            if inbound.split_to(READ.len())[..] != READ {
                return Err(invalid("another operation on a connection of reads"));
            }
        }
    }

    /// The chunks with the requested bytes, and the position of the first one.
    async fn read(&self, request: &OpReadBlock) -> Result<(u64, Vec<u8>), String> {
        self.disk.access(DiskAccess::Read).await.map_err(|error| error.to_string())?;
        let block = &request.header.base_header.block;
        let bytes = self.store.read(block.block_id, block.generation_stamp);
        let bytes = bytes.map_err(|refused| exception(refused).1)?;
        let end = request.offset.saturating_add(request.len);
        if end > bytes.len() as u64 {
            return Err(format!("a read to {end} of block {} with {} bytes", block.block_id, bytes.len()));
        }
        let chunk = CHUNK_BYTES as u64;
        let begin = request.offset / chunk * chunk;
        let end = end.next_multiple_of(chunk).min(bytes.len() as u64);
        Ok((begin, bytes[begin as usize..end as usize].to_vec()))
    }
}

/// Sends the response to a read.
async fn send(stream: &mut Box<dyn Stream>, begin: u64, data: &[u8]) -> io::Result<()> {
    let checksum = Checksum { r#type: CHECKSUM_CRC32C, bytes_per_checksum: CHUNK_BYTES as u32 };
    let read_checksum_info = Some(ReadChecksumInfo { checksum, chunk_offset: begin });
    let response = BlockOpResponse { read_checksum_info, ..BlockOpResponse::default() };
    stream.write_all(&response.encode_length_delimited_to_vec()).await?;
    let packets = data.chunks(READ_PACKET_BYTES);
    let count = packets.len();
    for (seqno, part) in packets.enumerate() {
        stream.write_all(&read_response_packet(begin, seqno, part, false)).await?;
    }
    stream.write_all(&read_response_packet(begin, count, &[], true)).await
}
