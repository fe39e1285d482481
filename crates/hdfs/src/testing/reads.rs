//! How a DataNode in memory serves reads.

use std::time::Duration;

use base::env::Stream;
use bytes::BytesMut;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::FakeDataNode;
use crate::generated::{BlockOpResponse, Checksum, ClientReadStatus, OpReadBlock, ReadChecksumInfo};
use crate::packet::CHUNK_BYTES;
use crate::simulated::wire::{READ_PACKET_BYTES, read_message, read_response_packet as packet};

/// How a DataNode responds to reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReadBehavior {
    #[default]
    Good,
    /// Changes a bit of the data.
    Corrupt,
    /// Sends packets that state a wrong position.
    Misplaced,
    /// Refuses the access token.
    ExpiredToken,
    /// Pauses for three seconds before each packet.
    Slow,
    /// Sends one packet, and then nothing.
    Stalls,
}

impl FakeDataNode {
    /// Serves reads on a connection, the operation of the first one already read.
    pub(super) async fn serve_reads(&self, mut stream: Box<dyn Stream>) -> std::io::Result<()> {
        let mut inbound = BytesMut::new();
        loop {
            let request: OpReadBlock = read_message(&mut stream, &mut inbound).await?;
            if !self.serve_read(&mut stream, &request).await? {
                return Ok(());
            }
            let status: ClientReadStatus = read_message(&mut stream, &mut inbound).await?;
            assert_eq!(status.status, 6);
            while inbound.len() < 3 {
                if stream.read_buf(&mut inbound).await? == 0 {
                    return Ok(());
                }
            }
            assert_eq!(&inbound.split_to(3)[..], [0, 28, 81]);
            if self.obey().await.is_none() {
                return Ok(());
            }
        }
    }

    /// Returns whether the data was sent.
    async fn serve_read(&self, stream: &mut Box<dyn Stream>, request: &OpReadBlock) -> std::io::Result<bool> {
        let block_id = request.header.base_header.block.block_id;
        let (bytes, behavior) = {
            let mut state = self.state.lock().unwrap();
            state.reads.push((request.offset, request.len));
            (state.blocks.get(&block_id).cloned(), state.read)
        };
        let (status, bytes) = match (behavior, bytes) {
            (ReadBehavior::ExpiredToken, _) => (5, Vec::new()),
            (_, Some(bytes)) => (0, bytes),
            (_, None) => (1, Vec::new()),
        };
        let begin = request.offset / CHUNK_BYTES as u64 * CHUNK_BYTES as u64;
        let checksum = Checksum { r#type: 2, bytes_per_checksum: CHUNK_BYTES as u32 };
        let read_checksum_info = Some(ReadChecksumInfo { checksum, chunk_offset: begin });
        let response = BlockOpResponse { status, read_checksum_info, ..BlockOpResponse::default() };
        stream.write_all(&response.encode_length_delimited_to_vec()).await?;
        if status != 0 {
            return Ok(false);
        }
        let end = (request.offset + request.len).next_multiple_of(CHUNK_BYTES as u64);
        let data = &bytes[begin as usize..bytes.len().min(end as usize)];
        for (seqno, part) in data.chunks(READ_PACKET_BYTES).enumerate() {
            let moved = if behavior == ReadBehavior::Misplaced { CHUNK_BYTES as u64 } else { 0 };
            let mut packet = packet(begin + moved, seqno, part, false);
            match behavior {
                ReadBehavior::Slow => self.env.clock.sleep(Duration::from_secs(3)).await,
                ReadBehavior::Stalls if seqno > 0 => std::future::pending().await,
                _ => {}
            }
            if behavior == ReadBehavior::Corrupt {
                *packet.last_mut().unwrap() ^= 1;
            }
            stream.write_all(&packet).await?;
        }
        stream.write_all(&packet(begin, 0, &[], true)).await?;
        Ok(true)
    }
}
