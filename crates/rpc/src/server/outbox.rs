//! Outgoing responses: batched, then written with as few system calls as possible.
//!
//! Headers, messages and small cells are copied into one buffer. Large pieces are written without a
//! copy.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use base::env::Stream;
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncWrite;

use crate::call::Reply;
use crate::frame::{self, ExceptionResponse};
use crate::pieces;
use proto::exception::JavaException;

/// Minimum size of a piece that is not copied. Copying this many bytes costs about as much as
/// another entry in a vectored write.
const COPY_BELOW: usize = 2048;
/// Maximum number of pieces in one vectored write.
const PIECES_MAX: usize = 64;
/// Maximum memory that an idle connection keeps for its next responses.
const REUSED_CAPACITY_MAX: usize = 64 * 1024;

/// Responses not yet written to the socket: pieces in order, followed by a growing tail.
#[derive(Default)]
pub(super) struct Outbox {
    pieces: VecDeque<Bytes>,
    tail: BytesMut,
    unsent: usize,
    // Total bytes sent.
    sent_bytes: u64,
}

impl Outbox {
    /// Bytes not written to the socket yet.
    pub(super) fn unsent(&self) -> usize {
        self.unsent
    }

    /// Total bytes written to the socket on this connection.
    pub(super) fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Adds the response to a call.
    pub(super) fn push(&mut self, call_id: u32, outcome: Result<Reply, JavaException>) {
        match outcome {
            Ok(reply) => self.push_reply(call_id, reply),
            Err(failure) => self.push_failure(call_id, &failure),
        }
    }

    fn push_reply(&mut self, call_id: u32, reply: Reply) {
        let before = self.tail.len();
        frame::put_response_head(&mut self.tail, call_id, reply.message.len(), reply.cells.len());
        self.unsent += self.tail.len() - before;
        let end = self.unsent + reply.message.len() + reply.cells.len();
        self.push_piece(reply.message);
        match reply.cells.as_single() {
            Some(cells) if cells.len() < COPY_BELOW => self.push_copy(cells),
            _ => reply.cells.into_pieces().into_iter().for_each(|piece| self.push_piece(piece)),
        }
        debug_assert_eq!(self.unsent, end, "a response has the length that its head states");
    }

    /// Adds the failure of a call. The text has the form of a Java stack trace without frames.
    pub(super) fn push_failure(&mut self, call_id: u32, failure: &JavaException) {
        let exception = ExceptionResponse {
            class: &failure.class,
            stack_trace: &format!("{failure}\n"),
            location: failure.location.as_ref().map(|(host, port)| (host.as_str(), *port)),
            do_not_retry: failure.do_not_retry,
            server_overloaded: failure.server_overloaded,
        };
        self.push_piece(frame::encode_exception(call_id, &exception));
    }

    fn push_piece(&mut self, piece: Bytes) {
        if piece.len() < COPY_BELOW {
            return self.push_copy(&piece);
        }
        if !self.tail.is_empty() {
            self.pieces.push_back(self.tail.split().freeze());
        }
        self.unsent += piece.len();
        self.pieces.push_back(piece);
    }

    fn push_copy(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        self.unsent += bytes.len();
    }

    /// Writes as much as the socket accepts; returns whether it accepted anything. Fails if the
    /// connection is lost.
    pub(super) fn poll_send(
        &mut self,
        stream: &mut Box<dyn Stream>,
        cx: &mut Context<'_>,
    ) -> Result<bool, io::Error> {
        debug_assert_eq!(
            self.unsent,
            self.pieces.iter().map(Bytes::len).sum::<usize>() + self.tail.len(),
            "pieces and tail are what remains to be sent"
        );
        let mut sent_any = false;
        while self.unsent > 0 {
            let written = match self.poll_write(stream, cx) {
                Poll::Pending => return Ok(sent_any),
                Poll::Ready(written) => written?,
            };
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.sent(written);
            sent_any = true;
        }
        if sent_any {
            // Sockets need no flush; other streams may complete it at the next write.
            if let Poll::Ready(flushed) = Pin::new(stream).poll_flush(cx) {
                flushed?;
            }
        }
        Ok(sent_any)
    }

    fn poll_write(&self, stream: &mut Box<dyn Stream>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.pieces.is_empty() {
            return Pin::new(stream).poll_write(cx, &self.tail);
        }
        let mut slices = [IoSlice::new(&[]); PIECES_MAX];
        let mut count = 0;
        let tail = (!self.tail.is_empty()).then_some(&self.tail[..]);
        for (slot, piece) in slices.iter_mut().zip(self.pieces.iter().map(|piece| &piece[..]).chain(tail)) {
            *slot = IoSlice::new(piece);
            count += 1;
        }
        Pin::new(stream).poll_write_vectored(cx, &slices[..count])
    }

    fn sent(&mut self, mut written: usize) {
        debug_assert!(written <= self.unsent);
        self.unsent -= written;
        self.sent_bytes += written as u64;
        while let Some(piece) = self.pieces.front_mut() {
            if written < piece.len() {
                piece.advance(written);
                return;
            }
            written -= piece.len();
            self.pieces.pop_front().into_iter().for_each(pieces::recycle);
        }
        self.tail.advance(written);
        if self.unsent == 0 {
            match self.tail.capacity() > REUSED_CAPACITY_MAX {
                true => self.tail = BytesMut::new(),
                false => self.tail.clear(),
            }
        }
    }
}
