//! Reads a range of a block from one DataNode.
//!
//! The DataNode sends packets of whole chunks, each with a checksum. So the first packet can begin
//! before the range, and the last one can end after it.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::checksum::{crc32, crc32c};
use base::env::{Env, Stream};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::connection::take_delimited;
use crate::generated::{
    BaseHeader, BlockOpResponse, Checksum, ClientOperationHeader, ClientReadStatus, OpReadBlock, PacketHeader,
};
use crate::idle::IdleConnections;
use crate::link::{CHECKSUM_CRC32C, MESSAGE_BYTES_MAX, Node, SUCCESS, VERSION, has_no_descriptor, is_local};
use crate::located::Replicated;
use crate::packet::PACKET_DATA_MAX;

const OP_READ_BLOCK: u8 = 81;
const CHECKSUM_NONE: u32 = 0;
const CHECKSUM_CRC32: u32 = 1;
/// The client has verified the checksums.
const STATUS_CHECKSUM_OK: u32 = 6;
const STATUS_ACCESS_TOKEN: u32 = 5;
/// Maximum number of bytes that one checksum may cover.
const CHUNK_BYTES_MAX: usize = 1 << 20;
/// Maximum number of data bytes in a packet (HDFS `PacketReceiver.MAX_PACKET_SIZE`).
const PACKET_MAX: usize = 16 << 20;
const HEADER_MAX: usize = 1 << 10;
/// Size of the receive buffer: the header and the checksums of a packet of usual size. Data that
/// has arrived with them is copied from the buffer. The rest is read from the connection directly
/// into the result.
const INBOUND_BYTES: usize = PACKET_DATA_MAX / 512 * 4 + 64;

/// Why a replica could not be read.
#[derive(Debug)]
pub(crate) enum ReplicaFault {
    /// The DataNode does not respond as it should.
    Node(String),
    /// The bytes differ from their checksums.
    Corrupt(String),
    /// The access token has expired.
    Token,
    /// The DataNode refused the read, for example because it does not have the replica.
    Refused(String),
    /// This process has no connection for the read, which says nothing about the DataNode.
    Local(String),
    /// The process (or the system) has no free file descriptor.
    NoDescriptor,
}

/// Is called whenever bytes of a response have arrived.
pub(crate) type OnBytes<'a> = dyn Fn() + Sync + 'a;

/// When a read last received bytes, in nanoseconds on the monotonic clock. A long read may take
/// any time as long as bytes arrive (HDFS: `dfs.client.socket-timeout`).
pub(crate) struct Progress<'a> {
    env: &'a Env,
    at: AtomicU64,
}

impl Progress<'_> {
    pub(crate) fn begin(env: &Env) -> Progress<'_> {
        let progress = Progress { env, at: AtomicU64::new(0) };
        progress.note();
        progress
    }

    fn note(&self) {
        let now = self.env.clock.monotonic().as_nanos();
        self.at.store(u64::try_from(now).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The time since bytes were received.
    fn idle(&self) -> Duration {
        let at = Duration::from_nanos(self.at.load(Ordering::Relaxed));
        self.env.clock.monotonic().saturating_sub(at)
    }

    /// The result of `read`; `None` if it receives nothing for `limit`.
    pub(crate) async fn within<T>(&self, limit: Duration, read: impl Future<Output = T>) -> Option<T> {
        let mut read = std::pin::pin!(read);
        loop {
            let left = limit.saturating_sub(self.idle());
            if left.is_zero() {
                return None;
            }
            if let Some(done) = self.env.timeout(left, &mut read).await {
                return Some(done);
            }
        }
    }
}

/// What all reads of a client have in common.
pub(crate) struct ReadContext<'a> {
    pub(crate) env: &'a Env,
    pub(crate) idle: &'a IdleConnections,
    pub(crate) client_name: &'a str,
    pub(crate) by_hostname: bool,
}

impl ReadContext<'_> {
    /// Reads `len` bytes from `offset` of a block at one of its nodes. Fails if nothing arrives for
    /// `limit`. The caller has a slot of the node.
    pub(crate) async fn read(
        &self,
        node: &Node,
        block: &Replicated,
        (offset, len): (u64, usize),
        limit: Duration,
    ) -> Result<Bytes, ReplicaFault> {
        let progress = Progress::begin(self.env);
        let read = progress.within(limit, self.read_with(&progress, node, block, (offset, len))).await;
        let late = || ReplicaFault::Node(format!("no data within {} ms", limit.as_millis()));
        read.unwrap_or_else(|| Err(late()))
    }

    async fn read_with(
        &self,
        progress: &Progress<'_>,
        node: &Node,
        block: &Replicated,
        (offset, len): (u64, usize),
    ) -> Result<Bytes, ReplicaFault> {
        let request = self.request(block, offset, len);
        let on_bytes: &OnBytes<'_> = &|| progress.note();
        let (uuid, clock) = (&node.id.datanode_uuid, &self.env.clock);
        if let Some(stream) = self.idle.take(uuid, clock.monotonic()) {
            // The DataNode may just have closed it.
            match exchange(stream, on_bytes, &request, offset, len).await {
                Err(ReplicaFault::Node(_)) => {}
                read => return self.finish(uuid, read),
            }
        }
        let port = u16::try_from(node.id.xfer_port);
        let port = port.map_err(|_| ReplicaFault::Node("invalid port".to_owned()))?;
        let connected = self.env.net.connect(node.id.host(self.by_hostname), port).await;
        let stream = connected.map_err(unconnected)?;
        let read = exchange(stream, on_bytes, &request, offset, len).await;
        self.finish(uuid, read)
    }

    fn finish(
        &self,
        uuid: &str,
        read: Result<(Bytes, Box<dyn Stream>), ReplicaFault>,
    ) -> Result<Bytes, ReplicaFault> {
        let (bytes, stream) = read?;
        self.idle.put(self.env, uuid, stream);
        Ok(bytes)
    }

    fn request(&self, block: &Replicated, offset: u64, len: usize) -> Bytes {
        let request = OpReadBlock {
            header: ClientOperationHeader {
                base_header: BaseHeader { block: block.block.clone(), token: Some(block.token.clone()) },
                client_name: self.client_name.to_owned(),
            },
            offset,
            len: len as u64,
            send_checksums: Some(true),
        };
        let mut bytes = BytesMut::new();
        bytes.put_u16(VERSION);
        bytes.put_u8(OP_READ_BLOCK);
        bytes.put_slice(&request.encode_length_delimited_to_vec());
        bytes.freeze()
    }
}

/// Sends a request to read `len` bytes from `offset`, and receives them. Returns them with the
/// connection, on which nothing is outstanding.
pub(crate) async fn exchange(
    mut stream: Box<dyn Stream>,
    on_bytes: &OnBytes<'_>,
    request: &Bytes,
    offset: u64,
    len: usize,
) -> Result<(Bytes, Box<dyn Stream>), ReplicaFault> {
    stream.write_all(request).await.map_err(broken)?;
    stream.flush().await.map_err(broken)?;
    let mut inbound = Inbound { stream, on_bytes, bytes: BytesMut::with_capacity(INBOUND_BYTES) };
    let response = inbound.response().await.map_err(broken)?;
    let message = || response.message.clone().unwrap_or_default();
    match (response.status, response.read_checksum_info) {
        (SUCCESS, Some(info)) => {
            let chunks = Chunks::of(info.checksum)?;
            let data = inbound.receive(&chunks, info.chunk_offset, offset, len).await?;
            match inbound.bytes.is_empty() {
                true => Ok((data, inbound.stream)),
                false => Err(ReplicaFault::Node("more bytes after the end of the response".to_owned())),
            }
        }
        (SUCCESS, None) => Err(ReplicaFault::Node("a response without checksums".to_owned())),
        (STATUS_ACCESS_TOKEN, _) => Err(ReplicaFault::Token),
        (status, _) => Err(ReplicaFault::Refused(format!("status {status}: {}", message()))),
    }
}

/// The size of the data's chunks in bytes, and the function that computes a chunk's checksum. There
/// is no function if the data has no checksums.
struct Chunks {
    bytes: usize,
    sum: Option<fn(&[u8]) -> u32>,
}

impl Chunks {
    fn of(checksum: Checksum) -> Result<Chunks, ReplicaFault> {
        let bytes = checksum.bytes_per_checksum as usize;
        if bytes == 0 || bytes > CHUNK_BYTES_MAX {
            return Err(ReplicaFault::Node(format!("a checksum for each {bytes} bytes")));
        }
        let sum: Option<fn(&[u8]) -> u32> = match checksum.r#type {
            CHECKSUM_NONE => None,
            CHECKSUM_CRC32 => Some(crc32),
            CHECKSUM_CRC32C => Some(crc32c),
            other => return Err(ReplicaFault::Node(format!("checksums of type {other}"))),
        };
        Ok(Chunks { bytes, sum })
    }

    fn sums_len(&self, data_len: usize) -> usize {
        if self.sum.is_some() { data_len.div_ceil(self.bytes) * 4 } else { 0 }
    }

    fn verify(&self, data: &[u8], mut sums: impl Buf) -> Result<(), ReplicaFault> {
        let Some(sum) = self.sum else { return Ok(()) };
        match data.chunks(self.bytes).all(|chunk| sum(chunk) == sums.get_u32()) {
            true => Ok(()),
            false => Err(ReplicaFault::Corrupt("the data differs from its checksums".to_owned())),
        }
    }
}

struct Inbound<'a> {
    stream: Box<dyn Stream>,
    on_bytes: &'a OnBytes<'a>,
    bytes: BytesMut,
}

impl Inbound<'_> {
    async fn response(&mut self) -> io::Result<BlockOpResponse> {
        loop {
            if let Some(message) = take_delimited(&mut self.bytes, MESSAGE_BYTES_MAX)? {
                return Ok(message);
            }
            self.read_more().await?;
        }
    }

    /// Receives all packets, the first of which is at `begin` in the block. Returns the `len` bytes
    /// from `offset`.
    async fn receive(
        &mut self,
        chunks: &Chunks,
        begin: u64,
        offset: u64,
        len: usize,
    ) -> Result<Bytes, ReplicaFault> {
        let skipped = offset.checked_sub(begin).filter(|skipped| *skipped < chunks.bytes as u64);
        let Some(skipped) = skipped.map(|skipped| skipped as usize) else {
            return Err(ReplicaFault::Node("the data begins at a wrong position".to_owned()));
        };
        // The last packet ends with a whole chunk.
        let most = skipped + len + chunks.bytes;
        let mut data = BytesMut::with_capacity(most);
        loop {
            let (header, sums_len) = self.packet(chunks).await?;
            let data_len = header.data_len as usize;
            if data.len() + data_len > most {
                return Err(ReplicaFault::Node("more data than requested".to_owned()));
            }
            // Checksums do not cover the position: a packet for another position would pass them.
            if data_len > 0 && header.offset_in_block as u64 != begin + data.len() as u64 {
                return Err(ReplicaFault::Node("a packet at a wrong position".to_owned()));
            }
            let sums = self.take(sums_len).await.map_err(broken)?;
            let verified = data.len();
            self.copy(&mut data, data_len).await.map_err(broken)?;
            chunks.verify(&data[verified..], sums)?;
            if header.last_packet_in_block {
                break;
            }
        }
        if data.len() < skipped + len {
            return Err(ReplicaFault::Refused(format!("the replica has only {} of {len} bytes", data.len())));
        }
        let status = ClientReadStatus { status: STATUS_CHECKSUM_OK };
        self.stream.write_all(&status.encode_length_delimited_to_vec()).await.map_err(broken)?;
        self.stream.flush().await.map_err(broken)?;
        Ok(data.freeze().slice(skipped..skipped + len))
    }

    /// The header of the next packet, and the length of its checksums.
    async fn packet(&mut self, chunks: &Chunks) -> Result<(PacketHeader, usize), ReplicaFault> {
        let mut lens = self.take(6).await.map_err(broken)?;
        let (packet_len, header_len) = (lens.get_u32() as usize, usize::from(lens.get_u16()));
        if header_len > HEADER_MAX {
            return Err(ReplicaFault::Node(format!("a packet with a header of {header_len} bytes")));
        }
        let header = self.take(header_len).await.map_err(broken)?;
        let header = PacketHeader::decode(header).map_err(|error| ReplicaFault::Node(error.to_string()))?;
        let data_len = usize::try_from(header.data_len).ok().filter(|len| *len <= PACKET_MAX);
        let sums_len = data_len.map(|len| chunks.sums_len(len));
        match (data_len, sums_len) {
            (Some(data_len), Some(sums_len)) if packet_len == 4 + sums_len + data_len => {
                Ok((header, sums_len))
            }
            _ => Err(ReplicaFault::Node(format!(
                "a packet of {packet_len} bytes that states {} bytes of data",
                header.data_len
            ))),
        }
    }

    async fn take(&mut self, len: usize) -> io::Result<Bytes> {
        while self.bytes.len() < len {
            self.read_more().await?;
        }
        Ok(self.bytes.split_to(len).freeze())
    }

    /// Appends the next `len` bytes to `data`: what has arrived, then directly from the connection.
    async fn copy(&mut self, data: &mut BytesMut, len: usize) -> io::Result<()> {
        let arrived = self.bytes.split_to(len.min(self.bytes.len()));
        data.put_slice(&arrived);
        let mut rest = (&mut self.stream).take((len - arrived.len()) as u64);
        while rest.limit() > 0 {
            if rest.read_buf(data).await? == 0 {
                return Err(closed());
            }
            (self.on_bytes)();
        }
        Ok(())
    }

    async fn read_more(&mut self) -> io::Result<()> {
        self.bytes.reserve(INBOUND_BYTES);
        match self.stream.read_buf(&mut self.bytes).await? {
            0 => Err(closed()),
            _ => {
                (self.on_bytes)();
                Ok(())
            }
        }
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed")
}

/// The fault if no connection could be opened.
fn unconnected(error: io::Error) -> ReplicaFault {
    if has_no_descriptor(&error) {
        ReplicaFault::NoDescriptor
    } else if is_local(&error) {
        ReplicaFault::Local(error.to_string())
    } else {
        broken(error)
    }
}

fn broken(error: io::Error) -> ReplicaFault {
    ReplicaFault::Node(error.to_string())
}
