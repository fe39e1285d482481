//! A DataNode that stores one block in memory.

use std::sync::{Arc, Mutex};

use base::env::{Env, Stream, TaskClass};
use bytes::{BufMut, BytesMut};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{loopback, parse_packet};
use crate::connection::take_delimited;
use crate::generated::{BlockOpResponse, OpWriteBlock, PipelineAck};

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

#[derive(Default)]
pub(crate) struct Stored {
    pub(crate) behavior: Behavior,
    pub(crate) setups: Vec<OpWriteBlock>,
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
        assert_eq!((stream.read_u16().await?, stream.read_u8().await?), (28, 80));
        let mut inbound = BytesMut::new();
        let setup: OpWriteBlock = loop {
            match take_delimited(&mut inbound)? {
                Some(setup) => break setup,
                None => assert!(stream.read_buf(&mut inbound).await? > 0),
            }
        };
        let nodes = setup.pipeline_size as usize;
        {
            let mut state = self.state.lock().unwrap();
            state.setups.push(setup);
            let (behavior, setups) = (state.behavior.clone(), std::mem::take(&mut state.setups));
            *state = Stored { behavior, setups, ..Stored::default() };
        }
        let (status, first_bad_link) = match behavior {
            Behavior::RejectsSetup { bad_link } => (1, bad_link),
            _ => (0, Some(String::new())),
        };
        let response = BlockOpResponse { status, first_bad_link, message: None };
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
