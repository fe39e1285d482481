//! A DataNode that stores blocks in memory, and forwards them to the next one of a pipeline.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::env::{Env, Stream, TaskClass};
use bytes::BytesMut;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::reads::ReadBehavior;
use super::{loopback, parse_packet};
use crate::generated::{BlockOpResponse, DatanodeId, DatanodeInfo, OpWriteBlock, PipelineAck};
use crate::simulated::wire::{read_message, read_packet};

const CREATE: u32 = 6;
const CONTINUE: u32 = 3;
const FINALIZE: u32 = 5;

/// What a DataNode does with the next packet or connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Behavior {
    #[default]
    Good,
    /// Does not respond.
    Frozen,
    /// Closes connections.
    Dead,
    /// Stores this many bytes of the block, then is [`Behavior::Dead`].
    DiesAfter(usize),
    /// Is [`Behavior::Dead`] when the block ends.
    DiesAtEnd,
    /// Responds to a setup only after this time.
    SetsUpAfter(Duration),
    /// Responds to a setup with an error of this other node, if one is given.
    RejectsSetup { bad_link: Option<String> },
    /// Acknowledges with an error.
    RejectsPackets,
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
    block_id: u64,
    pub(crate) stamp: u64,
    /// Bytes of the last block.
    pub(crate) bytes: Vec<u8>,
    /// How much of it was synced to disk.
    pub(crate) synced: usize,
    pub(crate) is_final: bool,
    pub(crate) heartbeats: usize,
}

#[derive(Clone)]
pub(crate) struct FakeDataNode {
    pub(super) env: Env,
    pub(crate) state: Arc<Mutex<Stored>>,
}

impl FakeDataNode {
    pub(crate) async fn start(env: &Env, port: u16) -> FakeDataNode {
        let listener = env.net.listen(loopback(port)).await.unwrap();
        let node = FakeDataNode { env: env.clone(), state: Arc::default() };
        let serving = node.clone();
        env.spawn(TaskClass::Service, async move {
            loop {
                let stream = (listener.accept().await.unwrap().open)().unwrap();
                let node = serving.clone();
                serving.env.spawn(TaskClass::Service, async move {
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

    pub(super) async fn obey(&self) -> Option<Behavior> {
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
        self.state.lock().unwrap().setups.push(setup.clone());
        if let Behavior::SetsUpAfter(time) = &behavior {
            self.env.clock.sleep(*time).await;
        }
        let (status, bad_link) = match behavior {
            Behavior::RejectsSetup { bad_link } => (1, bad_link),
            _ => (u32::from(!self.set_up(&setup)), Some(String::new())),
        };
        let (mut next, bad_link) = match status {
            0 => match self.forward_setup(&setup).await {
                Ok(next) => (next, bad_link),
                Err(link) => (None, Some(link)),
            },
            _ => (None, bad_link),
        };
        let status = status.max(u32::from(bad_link.as_ref().is_some_and(|link| !link.is_empty())));
        let response = BlockOpResponse { status, first_bad_link: bad_link, ..BlockOpResponse::default() };
        stream.write_all(&response.encode_length_delimited_to_vec()).await?;
        if status != 0 || setup.stage == FINALIZE {
            return Ok(());
        }
        let mut from_next = BytesMut::new();
        loop {
            let packet = read_packet(&mut stream).await?;
            let Some(behavior) = self.obey().await else { return Ok(()) };
            if self.state.lock().unwrap().stamp != setup.latest_generation_stamp {
                // Another connection continues the block.
                return Ok(());
            }
            let Some(seqno) = self.store(&packet) else {
                self.set(Behavior::Dead);
                return Ok(());
            };
            let mut reply = vec![u32::from(behavior == Behavior::RejectsPackets)];
            if let Some(next) = &mut next {
                match forward(next, &mut from_next, &packet).await {
                    Ok(ack) => reply.extend(ack.reply),
                    Err(_) => reply.push(1),
                }
            }
            let ack = PipelineAck { seqno, reply, flag: Vec::new() };
            stream.write_all(&ack.encode_length_delimited_to_vec()).await?;
        }
    }

    /// Whether the block can be set up.
    fn set_up(&self, setup: &OpWriteBlock) -> bool {
        let mut state = self.state.lock().unwrap();
        let block = &setup.header.base_header.block;
        let stamp = setup.latest_generation_stamp;
        if setup.stage == CREATE {
            let Stored { behavior, setups, read, reads, blocks, .. } = std::mem::take(&mut *state);
            let kept = Stored { behavior, setups, read, reads, blocks, ..Stored::default() };
            *state = Stored { block_id: block.block_id, stamp, ..kept };
            return true;
        }
        let len = state.bytes.len() as u64;
        let fits = match setup.stage {
            CONTINUE => !state.is_final && (setup.min_bytes_rcvd..=setup.max_bytes_rcvd).contains(&len),
            FINALIZE => len == setup.min_bytes_rcvd,
            other => panic!("unexpected stage {other}"),
        };
        let is_right = block.block_id == state.block_id
            && (block.generation_stamp..stamp).contains(&state.stamp)
            && fits;
        if is_right {
            state.stamp = stamp;
            state.is_final = setup.stage == FINALIZE;
        }
        is_right
    }

    /// Sets up the block on the next node, if there is one. An error has the address of that node.
    async fn forward_setup(&self, setup: &OpWriteBlock) -> Result<Option<Box<dyn Stream>>, String> {
        let Some((next, rest)) = setup.targets.split_first() else { return Ok(None) };
        let id = DatanodeInfo::decode(next.clone()).unwrap().id;
        let id = DatanodeId::decode(id).unwrap();
        let link = format!("{}:{}", id.ip_addr, id.xfer_port);
        let setup = OpWriteBlock { targets: rest.to_vec(), ..setup.clone() };
        let request = [&[0, 28, 80][..], &setup.encode_length_delimited_to_vec()].concat();
        let connected = async {
            let mut stream = self.env.net.connect(&id.ip_addr, id.xfer_port as u16).await?;
            stream.write_all(&request).await?;
            let response: BlockOpResponse = read_message(&mut stream, &mut BytesMut::new()).await?;
            Ok::<_, std::io::Error>((stream, response))
        };
        match connected.await {
            Ok((stream, response)) if response.status == 0 => Ok(Some(stream)),
            Ok((_, response)) => Err(response.first_bad_link.filter(|bad| !bad.is_empty()).unwrap_or(link)),
            Err(_) => Err(link),
        }
    }

    /// Stores a packet, and returns its number; `None` if the node dies.
    fn store(&self, packet: &[u8]) -> Option<i64> {
        let (header, data) = parse_packet(packet);
        let mut state = self.state.lock().unwrap();
        if header.seqno < 0 {
            state.heartbeats += 1;
            return Some(header.seqno);
        }
        assert!(!state.is_final, "no packet follows the last one");
        let offset = header.offset_in_block as usize;
        assert!(offset <= state.bytes.len(), "the block has no gap");
        match state.behavior {
            Behavior::DiesAfter(len) if offset + data.len() > len => return None,
            Behavior::DiesAtEnd if header.last_packet_in_block => return None,
            _ => {}
        }
        // A packet that is sent again after the loss of a node may already be here.
        if offset + data.len() > state.bytes.len() {
            state.bytes.truncate(offset);
            state.bytes.extend_from_slice(&data);
        }
        if header.sync_block() {
            state.synced = state.bytes.len();
        }
        state.is_final = header.last_packet_in_block;
        let (id, bytes) = (state.block_id, state.bytes.clone());
        state.blocks.insert(id, bytes);
        Some(header.seqno)
    }
}

async fn forward(
    next: &mut Box<dyn Stream>,
    inbound: &mut BytesMut,
    packet: &[u8],
) -> std::io::Result<PipelineAck> {
    next.write_all(packet).await?;
    read_message(next, inbound).await
}
