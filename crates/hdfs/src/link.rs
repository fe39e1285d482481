//! A connection that writes a block to one DataNode, or to several through the first one.

use std::fmt;
use std::io;
use std::time::Duration;

use base::env::{Env, Stream};
use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::connection::take_delimited;
use crate::generated::{
    BaseHeader, BlockOpResponse, CachingStrategy, Checksum, ClientOperationHeader, DatanodeId, DatanodeInfo,
    ExtendedBlock, LocatedBlock, OpWriteBlock, PipelineAck,
};
use crate::packet::{CHUNK_BYTES, HEARTBEAT, Packet};

pub(crate) const VERSION: u16 = 28;
const OP_WRITE_BLOCK: u8 = 80;
pub(crate) const CHECKSUM_CRC32C: u32 = 2;
pub(crate) const SUCCESS: u32 = 0;
/// The bits of an acknowledgement's flag that have the status.
const STATUS_BITS: u32 = 0xf;
const INBOUND_BYTES: usize = 1 << 10;
/// Numbers of system errors: no descriptor is left in the process or in the system.
const EMFILE: i32 = 24;
const ENFILE: i32 = 23;
/// Maximum length of a DataNode's message. It has a few bytes for each node, or the text of an
/// exception.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 << 10;

impl DatanodeId {
    /// Where clients connect to it: its hostname, or the address by which the NameNode knows it.
    pub(crate) fn host(&self, by_hostname: bool) -> &str {
        if by_hostname { &self.host_name } else { &self.ip_addr }
    }
}

/// A DataNode that stores a replica.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) id: DatanodeId,
    /// The NameNode's encoding of the id, which has more fields.
    pub(crate) encoded_id: Bytes,
    /// The NameNode's description of it.
    pub(crate) info: Bytes,
    storage_type: Option<u32>,
    pub(crate) storage_id: Option<String>,
}

impl Node {
    /// The nodes of a block.
    ///
    /// # Errors
    /// If a description is invalid.
    pub(crate) fn all_of(block: &LocatedBlock) -> io::Result<Vec<Node>> {
        let node = |(index, info): (usize, &Bytes)| {
            let encoded_id = DatanodeInfo::decode(info.clone()).map_err(io::Error::other)?.id;
            let id = DatanodeId::decode(encoded_id.clone()).map_err(io::Error::other)?;
            let storage_type = block.storage_types.get(index).copied();
            let storage_id = block.storage_ids.get(index).cloned();
            Ok(Node { id, encoded_id, info: info.clone(), storage_type, storage_id })
        };
        block.locs.iter().enumerate().map(node).collect()
    }

    /// Whether it is one of these nodes.
    pub(crate) fn is_in(&self, nodes: &[Node]) -> bool {
        nodes.iter().any(|node| node.id.datanode_uuid == self.id.datanode_uuid)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataNode {}:{} ({})", self.id.ip_addr, self.id.xfer_port, self.id.host_name)
    }
}

/// Why a connection is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The block is new.
    Create,
    /// The block lost a DataNode, and gets more bytes. The replica has at least `acked` bytes and
    /// at most `sent`.
    Continue { stamp: u64, acked: u64, sent: u64 },
    /// The block lost a DataNode, and is complete. The replica has `len` bytes, and is finalized.
    Finalize { stamp: u64, len: u64 },
}

impl Stage {
    /// Hadoop's number.
    fn number(self) -> u32 {
        match self {
            Stage::Create => 6,
            Stage::Continue { .. } => 3,
            Stage::Finalize { .. } => 5,
        }
    }
}

/// What is written, and by which client.
pub(crate) struct Target<'a> {
    pub(crate) block: &'a ExtendedBlock,
    pub(crate) token: &'a Bytes,
    pub(crate) client_name: &'a str,
    /// Maximum number of bytes that the block will have.
    pub(crate) block_bytes: u64,
    /// Whether a DataNode on this machine may keep its replica in memory at first.
    pub(crate) is_lazy: bool,
    pub(crate) by_hostname: bool,
    pub(crate) stage: Stage,
}

/// Why a DataNode did not do its part.
#[derive(Debug)]
pub(crate) struct NodeFault {
    /// Index of the node in the link.
    pub(crate) node: usize,
    pub(crate) what: String,
    /// Whether a DataNode reported it. Otherwise the connection failed, and any node of the link
    /// may be the reason.
    pub(crate) is_reported: bool,
}

/// Why a connection could not be opened.
pub(crate) struct SetupFault {
    /// The node at fault. If there was no response in time, the first node of the link.
    pub(crate) node: Node,
    pub(crate) what: String,
    /// Whether there was only no response in time.
    pub(crate) is_late: bool,
    /// Whether this machine could not open a connection, which says nothing about the node.
    pub(crate) is_local: bool,
}

/// An open connection.
pub(crate) struct Link {
    pub(crate) nodes: Vec<Node>,
    stream: Box<dyn Stream>,
    inbound: BytesMut,
    /// Number of the last acknowledged packet.
    pub(crate) acked: i64,
    heartbeats_acked: u64,
}

impl Link {
    /// Connects to the first of `nodes` and sets up the block on all of them. If there is no
    /// response in time, any of them may be the reason.
    pub(crate) async fn open(
        env: &Env,
        nodes: Vec<Node>,
        target: &Target<'_>,
        limit: Duration,
    ) -> Result<Link, SetupFault> {
        let (first, count) = (nodes[0].clone(), nodes.len());
        let failed =
            |node: &Node, what| SetupFault { node: node.clone(), what, is_late: false, is_local: false };
        let opened = env.timeout(limit, async {
            let stream = connect(env, &first.id, target.by_hostname).await;
            let unconnected = |error: io::Error| SetupFault {
                is_local: is_local(&error),
                ..failed(&first, error.to_string())
            };
            let stream = stream.map_err(unconnected)?;
            let mut link = Link::new(nodes, stream);
            match link.set_up(target).await {
                Ok(()) => Ok(link),
                Err(fault) => Err(failed(&link.nodes[fault.node], fault.what)),
            }
        });
        match opened.await {
            Some(opened) => opened,
            None => {
                let waited_ms = limit.as_millis();
                let what = format!("no response to the setup within {waited_ms} ms (pipeline of {count})");
                Err(SetupFault { is_late: true, ..failed(&first, what) })
            }
        }
    }

    /// A link over an open connection to the first of `nodes`.
    pub(crate) fn new(nodes: Vec<Node>, stream: Box<dyn Stream>) -> Link {
        let inbound = BytesMut::with_capacity(INBOUND_BYTES);
        Link { nodes, stream, inbound, acked: HEARTBEAT, heartbeats_acked: 0 }
    }

    /// Sets up the block on all nodes.
    pub(crate) async fn set_up(&mut self, target: &Target<'_>) -> Result<(), NodeFault> {
        let failed = |error: io::Error| fault(0, error.to_string());
        let request = setup_request(&self.nodes, target);
        self.stream.write_all(&request).await.map_err(failed)?;
        self.stream.flush().await.map_err(failed)?;
        let response: BlockOpResponse = self.receive().await.map_err(failed)?;
        let bad = response.first_bad_link.filter(|link| !link.is_empty());
        if response.status == SUCCESS && bad.is_none() {
            return Ok(());
        }
        let is_bad =
            |node: &Node| bad.as_ref() == Some(&format!("{}:{}", node.id.ip_addr, node.id.xfer_port));
        let at = self.nodes.iter().position(is_bad).unwrap_or(0);
        let message = response.message.unwrap_or_default();
        Err(reported(at, format!("setup failed with status {}: {message}", response.status)))
    }

    /// Sends packets, then waits until all nodes have acknowledged packet `until`.
    pub(crate) async fn exchange(&mut self, packets: &[Packet], until: i64) -> Result<(), NodeFault> {
        self.send(packets).await?;
        while self.acked < until {
            self.receive_ack().await?;
        }
        Ok(())
    }

    /// Sends a heartbeat and waits until `count` heartbeats are acknowledged.
    pub(crate) async fn beat(&mut self, packet: &Packet, count: u64) -> Result<(), NodeFault> {
        self.send(std::slice::from_ref(packet)).await?;
        while self.heartbeats_acked < count {
            self.receive_ack().await?;
        }
        Ok(())
    }

    async fn send(&mut self, packets: &[Packet]) -> Result<(), NodeFault> {
        let failed = |error: io::Error| fault(0, error.to_string());
        for packet in packets {
            self.stream.write_all_buf(&mut packet.wire()).await.map_err(failed)?;
        }
        self.stream.flush().await.map_err(failed)
    }

    async fn receive_ack(&mut self) -> Result<(), NodeFault> {
        let ack: PipelineAck = self.receive().await.map_err(|error| fault(0, error.to_string()))?;
        if let Some((node, status)) = first_error(&ack) {
            let node = node.min(self.nodes.len() - 1);
            return Err(reported(node, format!("packet {} failed with status {status}", ack.seqno)));
        }
        if ack.reply.len() < self.nodes.len() {
            let what = format!("packet {} was acknowledged without this DataNode", ack.seqno);
            return Err(reported(ack.reply.len(), what));
        }
        match ack.seqno {
            HEARTBEAT => self.heartbeats_acked += 1,
            next if next == self.acked + 1 => self.acked = next,
            other => return Err(fault(0, format!("acknowledged packet {other} after {}", self.acked))),
        }
        Ok(())
    }

    async fn receive<M: Message + Default>(&mut self) -> io::Result<M> {
        loop {
            if let Some(message) = take_delimited(&mut self.inbound, MESSAGE_BYTES_MAX)? {
                return Ok(message);
            }
            if self.stream.read_buf(&mut self.inbound).await? == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed"));
            }
        }
    }
}

/// Connects to a DataNode.
pub(crate) async fn connect(env: &Env, node: &DatanodeId, by_hostname: bool) -> io::Result<Box<dyn Stream>> {
    let invalid = |_| io::Error::new(io::ErrorKind::InvalidData, "invalid port");
    let port = u16::try_from(node.xfer_port).map_err(invalid)?;
    env.net.connect(node.host(by_hostname), port).await
}

/// Whether a connection could not be opened because no descriptor is left.
pub(crate) fn has_no_descriptor(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EMFILE | ENFILE))
}

/// Whether a connection could not be opened because of this machine: it has no descriptor, or all
/// its ports are in use.
pub(crate) fn is_local(error: &io::Error) -> bool {
    has_no_descriptor(error) || error.kind() == io::ErrorKind::AddrNotAvailable
}

fn fault(node: usize, what: String) -> NodeFault {
    NodeFault { node, what, is_reported: false }
}

fn reported(node: usize, what: String) -> NodeFault {
    NodeFault { node, what, is_reported: true }
}

/// Index and status of the first node that failed.
fn first_error(ack: &PipelineAck) -> Option<(usize, u32)> {
    let status = |(index, reply): (usize, &u32)| {
        let status = ack.flag.get(index).map_or(*reply, |flag| flag & STATUS_BITS);
        (status != SUCCESS).then_some((index, status))
    };
    ack.reply.iter().enumerate().find_map(status)
}

fn setup_request(nodes: &[Node], target: &Target<'_>) -> Bytes {
    let (first, rest) = nodes.split_first().expect("a link has a node");
    let block = ExtendedBlock { num_bytes: Some(target.block_bytes), ..target.block.clone() };
    let (stamp, acked, sent) = match target.stage {
        Stage::Create => (block.generation_stamp, 0, 0),
        Stage::Continue { stamp, acked, sent } => (stamp, acked, sent),
        Stage::Finalize { stamp, len } => (stamp, len, len),
    };
    let request = OpWriteBlock {
        header: ClientOperationHeader {
            base_header: BaseHeader { block, token: Some(target.token.clone()) },
            client_name: target.client_name.to_owned(),
        },
        targets: rest.iter().map(|node| node.info.clone()).collect(),
        stage: target.stage.number(),
        pipeline_size: nodes.len() as u32,
        min_bytes_rcvd: acked,
        max_bytes_rcvd: sent,
        latest_generation_stamp: stamp,
        requested_checksum: Checksum { r#type: CHECKSUM_CRC32C, bytes_per_checksum: CHUNK_BYTES as u32 },
        caching_strategy: Some(CachingStrategy { drop_behind: None }),
        storage_type: first.storage_type,
        target_storage_types: rest.iter().filter_map(|node| node.storage_type).collect(),
        allow_lazy_persist: Some(target.is_lazy),
        storage_id: first.storage_id.clone(),
        target_storage_ids: rest.iter().filter_map(|node| node.storage_id.clone()).collect(),
    };
    let mut bytes = BytesMut::new();
    bytes.put_u16(VERSION);
    bytes.put_u8(OP_WRITE_BLOCK);
    bytes.put_slice(&request.encode_length_delimited_to_vec());
    bytes.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::located;

    #[test]
    fn the_first_node_that_failed_is_at_fault() {
        let ack = |reply: &[u32], flag: &[u32]| {
            first_error(&PipelineAck { seqno: 0, reply: reply.to_vec(), flag: flag.to_vec() })
        };
        assert_eq!(ack(&[0, 0], &[]), None);
        assert_eq!(ack(&[0, 1, 1], &[]), Some((1, 1)));
        // Congestion is reported in higher bits.
        assert_eq!(ack(&[1, 1], &[0x20, 0x40]), None);
        assert_eq!(ack(&[0, 0], &[0x20, 0x42]), Some((1, 2)));
    }

    /// A link to three nodes whose connection has these bytes.
    fn link(inbound: &[u8]) -> Link {
        let nodes = Node::all_of(&located(1, &[1, 2, 3])).unwrap();
        let stream = tokio::io::join(std::io::Cursor::new(inbound.to_vec()), tokio::io::sink());
        Link::new(nodes, Box::new(stream))
    }

    #[tokio::test]
    async fn an_acknowledgement_without_all_nodes_is_a_fault() {
        let ack = |replies| PipelineAck { seqno: 0, reply: vec![0; replies], flag: Vec::new() };
        let mut complete = link(&ack(3).encode_length_delimited_to_vec());
        complete.exchange(&[], 0).await.unwrap();
        let mut short = link(&ack(2).encode_length_delimited_to_vec());
        assert_eq!(short.exchange(&[], 0).await.unwrap_err().node, 2);
    }

    #[tokio::test]
    async fn a_long_message_is_rejected_before_it_is_read() {
        let mut long = BytesMut::new();
        prost::encode_length_delimiter(MESSAGE_BYTES_MAX + 1, &mut long).unwrap();
        let failed = link(&long).exchange(&[], 0).await.unwrap_err();
        assert!(failed.what.contains("65537 bytes"), "{}", failed.what);
    }
}
