//! An end of a connection as a program uses it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::SimNetwork;
use super::connection::{ConnectionId, Segment, Side};

/// On average, one in this many reads and writes transfers only a part.
const PARTIAL_ONE_IN: u64 = 16;

/// An end of a connection. Dropping it closes the end.
pub(super) struct SimStream {
    network: Arc<SimNetwork>,
    id: ConnectionId,
    side: Side,
}

impl SimStream {
    pub(super) fn new(network: Arc<SimNetwork>, id: ConnectionId, side: Side) -> SimStream {
        SimStream { network, id, side }
    }

    /// `len`, or sometimes less.
    fn part_of(&self, len: usize) -> usize {
        let random = &self.network.random;
        if len > 1 && random.one_in(PARTIAL_ONE_IN) { 1 + random.index(len - 1) } else { len }
    }
}

impl AsyncRead for SimStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let len = self.part_of(buffer.remaining());
        let mut state = self.network.lock();
        let connection = state.connections.get_mut(&self.id).ok_or(io::ErrorKind::NotConnected)?;
        let Some(read) = connection.read(self.side, len, buffer) else {
            connection.wait_to_read(self.side, cx.waker());
            return Poll::Pending;
        };
        let read = read?;
        let hosts = connection.hosts();
        let is_blocked = state.is_blocked(hosts[self.side as usize], hosts[self.side.other() as usize]);
        state.connection(self.id).acknowledge(self.side, read, is_blocked);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SimStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.network.lock();
        let connection = state.connections.get_mut(&self.id).ok_or(io::ErrorKind::NotConnected)?;
        let room = connection.room(self.side)?;
        if room == 0 && !bytes.is_empty() {
            connection.wait_to_write(self.side, cx.waker());
            return Poll::Pending;
        }
        let len = self.part_of(bytes.len().min(room));
        if len > 0 {
            let segment = Segment::Data(Bytes::copy_from_slice(&bytes[..len]));
            self.network.send(&mut state, self.id, self.side, segment);
        }
        Poll::Ready(Ok(len))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.network.lock();
        let connection = state.connections.get(&self.id).ok_or(io::ErrorKind::NotConnected)?;
        if connection.room(self.side).is_ok() {
            self.network.send(&mut state, self.id, self.side, Segment::End);
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        let mut state = self.network.lock();
        let is_open =
            state.connections.get(&self.id).is_some_and(|connection| !connection.is_closed(self.side));
        if is_open {
            self.network.close(&mut state, self.id, self.side, false);
        }
    }
}
