//! Connections without HTTP: receives calls and sends responses, one after the other.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base::budget::BudgetShare;
use base::env::Stream;
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tracing::debug;
use web::open_connections::ConnectionActivity;

use crate::bounds::Bounds;
use crate::gateway::Gateway;
use crate::protocol::{Fault, Protocol};
use crate::transport::Transport;

/// The length of a frame's length.
const FRAME_HEADER: usize = 4;
/// Free space for each read, and the memory that an idle connection may keep.
const READ_BYTES: usize = 16 << 10;
/// Time limit for a message, in addition to the time that its bytes take at
/// [`BYTES_PER_SECOND_MIN`].
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// The slowest accepted transfer of a long message.
const BYTES_PER_SECOND_MIN: u64 = 64 << 10;

/// Why a connection ends.
type Ended<T> = Result<T, String>;

/// A connection of a client.
pub(crate) struct Connection {
    gateway: Arc<Gateway>,
    stream: Box<dyn Stream>,
    peer: IpAddr,
    activity: Arc<ConnectionActivity>,
    /// Received bytes of the next messages.
    buffer: BytesMut,
}

impl Connection {
    pub(crate) fn new(
        gateway: Arc<Gateway>,
        stream: Box<dyn Stream>,
        peer: IpAddr,
        activity: Arc<ConnectionActivity>,
    ) -> Connection {
        Connection { gateway, stream, peer, activity, buffer: BytesMut::new() }
    }

    /// Detects the transport; `None` if the client sends nothing, or no Thrift.
    pub(crate) async fn transport(&mut self) -> Option<Transport> {
        loop {
            match Transport::detect(&self.buffer) {
                Ok(Some(transport)) => return Some(transport),
                Ok(None) => {}
                Err(reason) => {
                    debug!(peer = %self.peer, reason, "closing a connection");
                    return None;
                }
            }
            match self.receive(self.gateway.options.idle_limit()).await {
                Ok(true) => {}
                Ok(false) | Err(_) => return None,
            }
        }
    }

    /// The stream, and the bytes that were read from it.
    pub(crate) fn into_parts(self) -> (Box<dyn Stream>, Bytes) {
        (self.stream, self.buffer.freeze())
    }

    /// Serves the connection until it ends.
    pub(crate) async fn serve(mut self, transport: Transport) {
        loop {
            match self.serve_call(transport).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(reason) => {
                    debug!(peer = %self.peer, reason, "closing a connection");
                    return;
                }
            }
        }
    }

    /// Serves one call. Returns whether there was one.
    async fn serve_call(&mut self, transport: Transport) -> Ended<bool> {
        if self.buffer.is_empty() {
            // A long message must not leave its memory to an idle connection.
            if self.buffer.capacity() > READ_BYTES {
                self.buffer = BytesMut::new();
            }
            if !self.receive(self.gateway.options.idle_limit()).await? {
                return Ok(false);
            }
        }
        let mut memory = BudgetShare::of(&self.gateway.budget);
        let message = match transport {
            Transport::Framed => self.frame(&mut memory).await?,
            _ => self.message(&mut memory).await?,
        };
        let reserved = if transport == Transport::Framed { FRAME_HEADER } else { 0 };
        let execution = self.activity.execute();
        let response = self.gateway.respond(message, &mut memory, self.peer, reserved).await;
        drop(execution);
        let mut response = response.ok_or("the message is no call")?;
        if transport == Transport::Framed {
            let len = u32::try_from(response.len() - FRAME_HEADER).map_err(|_| "the response is too long")?;
            response[..FRAME_HEADER].copy_from_slice(&len.to_be_bytes());
        }
        self.stream.write_all(&response).await.map_err(|error| error.to_string())?;
        self.stream.flush().await.map_err(|error| error.to_string())?;
        Ok(true)
    }

    /// Receives the next frame.
    async fn frame(&mut self, memory: &mut BudgetShare) -> Ended<Bytes> {
        self.complete(memory, |buffer, gateway| {
            let Some(header) = buffer.first_chunk::<FRAME_HEADER>() else { return Ok(None) };
            let len = u32::from_be_bytes(*header) as usize;
            if len > gateway.options.frame_bytes_max {
                return Err(Fault::TooLong);
            }
            Ok((buffer.len() >= FRAME_HEADER + len).then_some(FRAME_HEADER + len))
        })
        .await
        .map(|frame| frame.slice(FRAME_HEADER..))
    }

    /// Receives the next message without a frame.
    async fn message(&mut self, memory: &mut BudgetShare) -> Ended<Bytes> {
        let mut bounds = None;
        self.complete(memory, move |buffer, gateway| {
            let Some(first) = buffer.first() else { return Ok(None) };
            let protocol = Protocol::of(*first)?;
            let bytes_max = gateway.options.request_bytes_max;
            bounds.get_or_insert_with(|| Bounds::of_message(protocol, bytes_max)).advance(buffer)
        })
        .await
    }

    /// Receives until `end_of` finds the end of the next message.
    async fn complete(
        &mut self,
        memory: &mut BudgetShare,
        mut end_of: impl FnMut(&[u8], &Gateway) -> Result<Option<usize>, Fault>,
    ) -> Ended<Bytes> {
        let clock = self.gateway.env.clock.clone();
        let started = clock.monotonic();
        loop {
            let received = self.buffer.len();
            if received > memory.used() && !memory.take_large(received - memory.used()) {
                return Err(Fault::NoMemory.text().into());
            }
            if let Some(end) = end_of(&self.buffer, &self.gateway).map_err(Fault::text)? {
                return Ok(self.buffer.split_to(end).freeze());
            }
            let allowed = TIME_LIMIT + Duration::from_secs(received as u64 / BYTES_PER_SECOND_MIN);
            let left = allowed.checked_sub(clock.monotonic().saturating_sub(started));
            let left = left.ok_or("the client sends too slowly")?.min(self.gateway.options.idle_limit());
            if !self.receive(left).await? {
                return Err("the connection ended within a message".into());
            }
        }
    }

    /// Receives more bytes; returns whether there were any.
    async fn receive(&mut self, limit: Duration) -> Ended<bool> {
        self.buffer.reserve(READ_BYTES);
        let read = self.gateway.env.timeout(limit, self.stream.read_buf(&mut self.buffer)).await;
        let read = read.ok_or("the client is idle")?;
        read.map(|len| len > 0).map_err(|error| error.to_string())
    }
}
