//! A DataNode that stores blocks in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use base::env::{Env, Stream, TaskClass};
use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{loopback, parse_packet};
use crate::connection::take_delimited;
use crate::generated::{
    BlockOpResponse, Checksum, ClientReadStatus, OpReadBlock, OpWriteBlock, PacketHeader, PipelineAck,
    ReadChecksumInfo,
};
use crate::packet::{CHUNK_BYTES, packet};

/// What a DataNode does with the next packet or connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Behavior {
    #[default]
    Good,
    /// Does not respond.
    Frozen,
    /// Closes connections.
    Dead,
    /// Responds to a setup with an error of this other node, if one is given.
    RejectsSetup { bad_link: Option<String> },
    /// Acknowledges with an error.
    RejectsPackets,
}

/// How a DataNode responds to reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReadBehavior {
    #[default]
    Good,
    /// Changes a bit of the data.
    Corrupt,
    /// Refuses the access token.
    ExpiredToken,
}

#[derive(Default)]
pub(crate) struct Stored {
    pub(crate) behavior: Behavior,
    pub(crate) setups: Vec<OpWriteBlock>,
    pub(crate) read: ReadBehavior,
    /// Offsets and lengths of all reads.
    pub(crate) reads: Vec<(u64, u64)>,
    /// The bytes of all blocks, by id.
    pub(crate) blocks: HashMap<u64, Vec<u8>>,
    /// Id of the last block.
    pub(crate) block_id: u64,
    /// Bytes of the last block.
    pub(crate) bytes: Vec<u8>,
    /// How much of it was synced to disk.
    pub(crate) synced: usize,
    pub(crate) is_final: bool,
    pub(crate) heartbeats: usize,
}

#[derive(Clone)]
pub(crate) struct FakeDataNode {
    pub(crate) state: Arc<Mutex<Stored>>,
}

impl FakeDataNode {
    pub(crate) async fn start(env: &Env, port: u16) -> FakeDataNode {
        let listener = env.net.listen(loopback(port)).await.unwrap();
        let node = FakeDataNode { state: Arc::default() };
        let (env, serving) = (env.clone(), node.clone());
        env.clone().spawn(TaskClass::Service, async move {
            loop {
                let stream = (listener.accept().await.unwrap().open)().unwrap();
                let node = serving.clone();
                env.spawn(TaskClass::Service, async move {
                    let _ = node.serve(stream).await;
                });
            }
        });
        node
    }

    pub(crate) fn set(&self, behavior: Behavior) {
        self.state.lock().unwrap().behavior = behavior;
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.state.lock().unwrap().bytes.clone()
    }

    async fn obey(&self) -> Option<Behavior> {
        let behavior = self.state.lock().unwrap().behavior.clone();
        match behavior {
            Behavior::Dead => None,
            Behavior::Frozen => std::future::pending().await,
            other => Some(other),
        }
    }

    async fn serve(&self, mut stream: Box<dyn Stream>) -> std::io::Result<()> {
        let Some(behavior) = self.obey().await else { return Ok(()) };
        assert_eq!(stream.read_u16().await?, 28);
        match stream.read_u8().await? {
            80 => {}
            81 => return self.serve_reads(stream).await,
            other => panic!("unexpected operation {other}"),
        }
        let setup: OpWriteBlock = read_message(&mut stream, &mut BytesMut::new()).await?;
        let nodes = setup.pipeline_size as usize;
        {
            let mut state = self.state.lock().unwrap();
            let block_id = setup.header.base_header.block.block_id;
            state.setups.push(setup);
            let old = std::mem::take(&mut *state);
            let Stored { behavior, read, setups, blocks, reads, .. } = old;
            *state = Stored { behavior, read, setups, blocks, reads, block_id, ..Stored::default() };
        }
        let (status, first_bad_link) = match behavior {
            Behavior::RejectsSetup { bad_link } => (1, bad_link),
            _ => (0, Some(String::new())),
        };
        let response = BlockOpResponse { status, first_bad_link, ..BlockOpResponse::default() };
        stream.write_all(&response.encode_length_delimited_to_vec()).await?;
        if status != 0 {
            return Ok(());
        }
        loop {
            let packet = read_packet(&mut stream).await?;
            let Some(behavior) = self.obey().await else { return Ok(()) };
            let status = u32::from(behavior == Behavior::RejectsPackets);
            let seqno = self.store(&packet);
            let ack = PipelineAck { seqno, reply: vec![status; nodes], flag: Vec::new() };
            stream.write_all(&ack.encode_length_delimited_to_vec()).await?;
        }
    }

    /// Serves reads on a connection, the operation of the first one already read.
    async fn serve_reads(&self, mut stream: Box<dyn Stream>) -> std::io::Result<()> {
        let mut inbound = BytesMut::new();
        loop {
            let request: OpReadBlock = read_message(&mut stream, &mut inbound).await?;
            let block_id = request.header.base_header.block.block_id;
            let (bytes, read) = {
                let mut state = self.state.lock().unwrap();
                state.reads.push((request.offset, request.len));
                (state.blocks.get(&block_id).cloned(), state.read.clone())
            };
            let (status, bytes) = match (read, bytes) {
                (ReadBehavior::ExpiredToken, _) => (5, Vec::new()),
                (_, Some(bytes)) => (0, bytes),
                (_, None) => (1, Vec::new()),
            };
            let begin = request.offset / CHUNK_BYTES as u64 * CHUNK_BYTES as u64;
            let checksum = Checksum { r#type: 2, bytes_per_checksum: CHUNK_BYTES as u32 };
            let info = ReadChecksumInfo { checksum, chunk_offset: begin };
            let response =
                BlockOpResponse { status, read_checksum_info: Some(info), ..BlockOpResponse::default() };
            stream.write_all(&response.encode_length_delimited_to_vec()).await?;
            if status != 0 {
                return Ok(());
            }
            let end = (request.offset + request.len).next_multiple_of(CHUNK_BYTES as u64);
            let data = &bytes[begin as usize..bytes.len().min(end as usize)];
            for (seqno, part) in data.chunks(CHUNK_BYTES * 8).enumerate() {
                let mut packet = read_packet_of(begin, seqno, part, false).to_vec();
                if self.state.lock().unwrap().read == ReadBehavior::Corrupt {
                    *packet.last_mut().unwrap() ^= 1;
                }
                stream.write_all(&packet).await?;
            }
            stream.write_all(&read_packet_of(begin, 0, &[], true)).await?;
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

    fn store(&self, packet: &[u8]) -> i64 {
        let (header, data) = parse_packet(packet);
        let mut state = self.state.lock().unwrap();
        if header.seqno < 0 {
            state.heartbeats += 1;
            return header.seqno;
        }
        assert!(!state.is_final, "no packet follows the last one");
        let offset = header.offset_in_block as usize;
        assert!(offset <= state.bytes.len(), "the block has no gap");
        assert!(offset + data.len() >= state.bytes.len(), "the block does not shrink");
        state.bytes.truncate(offset);
        state.bytes.extend_from_slice(&data);
        if header.sync_block() {
            state.synced = state.bytes.len();
        }
        state.is_final = header.last_packet_in_block;
        let (id, bytes) = (state.block_id, state.bytes.clone());
        state.blocks.insert(id, bytes);
        header.seqno
    }
}

async fn read_packet(stream: &mut Box<dyn Stream>) -> std::io::Result<Vec<u8>> {
    let len = stream.read_u32().await?;
    let header_len = stream.read_u16().await?;
    let mut packet = Vec::new();
    packet.put_u32(len);
    packet.put_u16(header_len);
    let start = packet.len();
    packet.resize(start + usize::from(header_len) + len as usize - 4, 0);
    stream.read_exact(&mut packet[start..]).await?;
    Ok(packet)
}

/// A packet of a read that began at `begin`.
fn read_packet_of(begin: u64, seqno: usize, data: &[u8], is_last: bool) -> Bytes {
    let header = PacketHeader {
        offset_in_block: begin as i64 + (seqno * CHUNK_BYTES * 8) as i64,
        seqno: seqno as i64,
        last_packet_in_block: is_last,
        data_len: data.len() as i32,
        sync_block: None,
    };
    packet(&header, data)
}

async fn read_message<M: Message + Default>(
    stream: &mut Box<dyn Stream>,
    inbound: &mut BytesMut,
) -> std::io::Result<M> {
    loop {
        if let Some(message) = take_delimited(inbound, 1 << 20)? {
            return Ok(message);
        }
        if stream.read_buf(inbound).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}
