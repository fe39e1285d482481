//! Bytes in, frames out, and the admission between them.
//!
//! One read takes all that the socket has (up to [`READ_LEN`]) by way of the stack, so that a connection without a
//! partial frame holds no memory. Frames are slices of the bytes of their read. A frame that is larger than a read is
//! admitted against the server's budget as its bytes arrive: what it only claims to hold costs nothing. A frame that
//! is not admitted is skipped as it comes, and its call answered from its header.

use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base::env::Stream;
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

use crate::fields::VARINT_LEN_MAX;
use crate::frame::{self, BadRequest, LENGTH_LEN, Request, RequestHeader};
use base::budget::{Budget, Share};

/// Bytes of one read; on the stack.
const READ_LEN: usize = 64 * 1024;
/// What a call costs besides the bytes of its frame: its task, its buffers, its place in the queues.
const CALL_COST: usize = 1024;

/// What comes next.
pub(super) enum Next {
    /// A request, admitted; its cost is to be given back when it is done.
    Request {
        /// The request, or what is wrong with it.
        request: Result<Request, BadRequest>,
        /// What it was admitted for.
        cost: usize,
    },
    /// There is no room for this request: answer it so; it is skipped.
    NoRoom(RequestHeader),
    /// The request is longer than any may be: answer it so, then close.
    TooBig {
        /// The request's head.
        header: RequestHeader,
        /// Bytes that it claims.
        len: u32,
    },
    /// Rubbish: close.
    Broken,
    /// Nothing yet: read more.
    NeedBytes,
}

/// Bytes read and not yet taken, and the connection's share of the budget.
pub(super) struct Inbox {
    bytes: BytesMut,
    max_request_bytes: u32,
    share: Share,
    // Admitted for the frame that is partly in `bytes`.
    partial_cost: usize,
    // Bytes of a frame not admitted that are still to come.
    skipping: usize,
    // All that was ever read.
    read_bytes: u64,
}

impl Inbox {
    pub(super) fn new(max_request_bytes: u32, budget: &Arc<Budget>) -> Inbox {
        Inbox {
            bytes: BytesMut::new(),
            max_request_bytes,
            share: Share::of(budget),
            partial_cost: 0,
            skipping: 0,
            read_bytes: 0,
        }
    }

    /// Whether a frame has begun to arrive and not ended.
    pub(super) fn in_frame(&self) -> bool {
        !self.bytes.is_empty() || self.skipping > 0
    }

    /// Bytes read since the connection began.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Bytes of the frame that has begun to arrive which are still to come; at least 1.
    pub(super) fn missing_bytes(&self) -> u64 {
        let len = self.bytes.first_chunk::<LENGTH_LEN>().map_or(0, |len| u32::from_be_bytes(*len) as usize);
        let missing = (LENGTH_LEN + len).saturating_sub(self.bytes.len()) + self.skipping;
        missing.max(1) as u64
    }

    /// Gives back the cost of a request that is done.
    pub(super) fn done(&mut self, cost: usize) {
        self.share.give(cost);
    }

    /// Takes the next frame from what was read.
    pub(super) fn next(&mut self) -> Next {
        self.skip();
        let Some(len) = self.bytes.first_chunk::<LENGTH_LEN>().map(|len| u32::from_be_bytes(*len)) else {
            return Next::NeedBytes;
        };
        if len > self.max_request_bytes {
            return self.refuse(LENGTH_LEN + len as usize, |header| Next::TooBig { header, len });
        }
        let total = LENGTH_LEN + len as usize;
        if self.bytes.len() < total {
            return self.next_partial(total);
        }
        if !self.admit(total + CALL_COST) {
            return self.refuse_and_skip(total);
        }
        let frame = self.bytes.split_to(total).freeze().slice(LENGTH_LEN..);
        let cost = std::mem::take(&mut self.partial_cost);
        Next::Request { request: frame::parse_request(&frame), cost }
    }

    /// The frame is not all here. Beyond one read's length its bytes are admitted before they are made room for.
    fn next_partial(&mut self, total: usize) -> Next {
        if self.bytes.len() < READ_LEN {
            return Next::NeedBytes;
        }
        let room = total.min(self.bytes.len() * 2);
        if !self.admit(room + CALL_COST) {
            return self.refuse_and_skip(total);
        }
        self.bytes.reserve(room - self.bytes.len());
        Next::NeedBytes
    }

    /// Raises what the frame at the front is admitted for. Large frames leave room for small ones.
    fn admit(&mut self, cost: usize) -> bool {
        let more = cost.saturating_sub(self.partial_cost);
        let admitted = if cost > 2 * READ_LEN { self.share.take_large(more) } else { self.share.take(more) };
        if admitted {
            self.partial_cost += more;
        }
        admitted
    }

    fn refuse_and_skip(&mut self, total: usize) -> Next {
        let next = self.refuse(total, Next::NoRoom);
        if matches!(next, Next::NoRoom(_)) {
            self.skipping = total;
            self.skip();
            self.share.give(std::mem::take(&mut self.partial_cost));
        }
        next
    }

    /// Answers the frame at the front from its header alone.
    fn refuse(&self, total: usize, answer: impl FnOnce(RequestHeader) -> Next) -> Next {
        let end = total.min(LENGTH_LEN + frame::REQUEST_HEADER_LEN_MAX + VARINT_LEN_MAX);
        let here = end.min(self.bytes.len());
        let start = Bytes::copy_from_slice(&self.bytes[LENGTH_LEN..here]);
        match frame::peek_header(&start) {
            Ok(Some((header, _))) => answer(header),
            Ok(None) if here < end => Next::NeedBytes,
            Ok(None) | Err(_) => Next::Broken,
        }
    }

    fn skip(&mut self) {
        let here = self.skipping.min(self.bytes.len());
        self.bytes.advance(here);
        self.skipping -= here;
    }

    /// Reads once; the number of bytes, 0 at the end of the stream.
    pub(super) fn poll_read(
        &mut self,
        stream: &mut Box<dyn Stream>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let room = self.bytes.capacity() - self.bytes.len();
        if self.bytes.len() >= READ_LEN && room > 0 {
            // Room was made for the rest of a large frame: straight into it.
            let read = ready!(pin!(stream.read_buf(&mut self.bytes)).poll(cx))?;
            self.read_bytes += read as u64;
            return Poll::Ready(Ok(read));
        }
        let mut space = [MaybeUninit::uninit(); READ_LEN];
        let mut buffer = ReadBuf::uninit(&mut space);
        ready!(Pin::new(stream).poll_read(cx, &mut buffer))?;
        let read = buffer.filled();
        let skipped = self.skipping.min(read.len());
        self.skipping -= skipped;
        self.bytes.extend_from_slice(&read[skipped..]);
        self.read_bytes += read.len() as u64;
        Poll::Ready(Ok(read.len()))
    }
}
