//! Reads the requests of a connection, and admits them against the server's budget.
//!
//! One read takes all bytes that the socket has (up to [`READ_LEN`]) into a stack buffer, so that a
//! connection without a partial frame holds no memory. Frames are slices of the bytes of their
//! read. A frame that arrives in parts is admitted as its bytes arrive: the length that it claims
//! costs nothing. If a frame is not admitted, its bytes are skipped as they arrive, and its
//! call fails. This needs only the frame's header.

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
use base::budget::{Budget, BudgetShare};

/// Maximum size in bytes of one read; the buffer is on the stack.
const READ_LEN: usize = 64 * 1024;
/// Size in bytes from which an incomplete frame is admitted. Smaller ones cost nothing, because a
/// connection reserves in steps that are much larger.
const FREE_PARTIAL_LEN: usize = 8 * 1024;
/// Estimated memory of a call in addition to its frame: its task, its buffers, its queue entries.
const CALL_COST: usize = 1024;

/// The next event of the input.
pub(super) enum InboxEvent {
    /// An admitted request. The caller returns its cost when the call is done.
    Request {
        /// The request, or what is wrong with it.
        request: Result<Request, BadRequest>,
        /// The bytes reserved for it.
        cost: usize,
    },
    /// The budget does not allow this request: reject it. Its bytes are skipped.
    OverBudget(RequestHeader),
    /// The request exceeds the maximum size: reject it, then close the connection.
    TooBig {
        /// The request's header.
        header: RequestHeader,
        /// The length in bytes that it claims.
        len: u32,
    },
    /// Invalid input: close the connection.
    Invalid,
    /// No complete frame yet: read more.
    NeedBytes,
}

/// Bytes that were read but not consumed, and the connection's share of the budget.
pub(super) struct Inbox {
    bytes: BytesMut,
    max_request_bytes: u32,
    share: BudgetShare,
    // Bytes reserved for the partial frame in `bytes`.
    partial_cost: usize,
    // Remaining bytes of a rejected frame.
    skipping: usize,
    // Total bytes read.
    read_bytes: u64,
}

impl Inbox {
    pub(super) fn new(max_request_bytes: u32, budget: &Arc<Budget>) -> Inbox {
        Inbox {
            bytes: BytesMut::new(),
            max_request_bytes,
            share: BudgetShare::of(budget),
            partial_cost: 0,
            skipping: 0,
            read_bytes: 0,
        }
    }

    /// Whether a frame has started to arrive and is incomplete.
    pub(super) fn in_frame(&self) -> bool {
        !self.bytes.is_empty() || self.skipping > 0
    }

    /// Total bytes read on this connection.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Bytes of the incomplete frame that have not arrived yet; at least 1.
    pub(super) fn missing_bytes(&self) -> u64 {
        let len = self.bytes.first_chunk::<LENGTH_LEN>().map_or(0, |len| u32::from_be_bytes(*len) as usize);
        let missing = (LENGTH_LEN + len).saturating_sub(self.bytes.len()) + self.skipping;
        missing.max(1) as u64
    }

    /// Releases the cost of a request that is done.
    pub(super) fn done(&mut self, cost: usize) {
        self.share.release(cost);
    }

    /// Takes the next frame from the bytes that were read.
    pub(super) fn next(&mut self) -> InboxEvent {
        self.skip();
        let Some(len) = self.bytes.first_chunk::<LENGTH_LEN>().map(|len| u32::from_be_bytes(*len)) else {
            return InboxEvent::NeedBytes;
        };
        if len > self.max_request_bytes {
            return self.refuse(LENGTH_LEN + len as usize, |header| InboxEvent::TooBig { header, len });
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
        debug_assert_eq!(cost, total + CALL_COST, "a request is charged for its frame and its call");
        InboxEvent::Request { request: frame::parse_request(&frame), cost }
    }

    /// Handles an incomplete frame. Its bytes are admitted. If it is longer than one read, the next
    /// bytes are admitted before memory is reserved for them.
    fn next_partial(&mut self, total: usize) -> InboxEvent {
        let len = self.bytes.len();
        if len < FREE_PARTIAL_LEN {
            return InboxEvent::NeedBytes;
        }
        let capacity = if len < READ_LEN { len } else { total.min(len * 2) };
        if !self.admit(capacity + CALL_COST) {
            return self.refuse_and_skip(total);
        }
        self.bytes.reserve(capacity - len);
        InboxEvent::NeedBytes
    }

    /// Raises the reservation of the current frame to `cost`. Large frames cannot take the last
    /// quarter of the budget.
    fn admit(&mut self, cost: usize) -> bool {
        let more = cost.saturating_sub(self.partial_cost);
        let admitted = if cost > 2 * READ_LEN { self.share.take_large(more) } else { self.share.take(more) };
        if admitted {
            self.partial_cost += more;
        }
        admitted
    }

    fn refuse_and_skip(&mut self, total: usize) -> InboxEvent {
        let next = self.refuse(total, InboxEvent::OverBudget);
        if matches!(next, InboxEvent::OverBudget(_)) {
            self.skipping = total;
            self.skip();
            self.share.release(std::mem::take(&mut self.partial_cost));
        }
        next
    }

    /// Rejects the current frame. This needs only the frame's header.
    fn refuse(&self, total: usize, answer: impl FnOnce(RequestHeader) -> InboxEvent) -> InboxEvent {
        let end = total.min(LENGTH_LEN + frame::REQUEST_HEADER_LEN_MAX + VARINT_LEN_MAX);
        let here = end.min(self.bytes.len());
        let start = Bytes::copy_from_slice(&self.bytes[LENGTH_LEN..here]);
        match frame::peek_header(&start) {
            Ok(Some((header, _))) => answer(header),
            Ok(None) if here < end => InboxEvent::NeedBytes,
            Ok(None) | Err(_) => InboxEvent::Invalid,
        }
    }

    fn skip(&mut self) {
        let here = self.skipping.min(self.bytes.len());
        self.bytes.advance(here);
        self.skipping -= here;
    }

    /// Reads once; returns the number of bytes, 0 at the end of the stream.
    pub(super) fn poll_read(
        &mut self,
        stream: &mut Box<dyn Stream>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        debug_assert!(self.skipping == 0 || self.bytes.is_empty(), "skipped bytes are not in memory");
        let spare = self.bytes.capacity() - self.bytes.len();
        if self.bytes.len() >= READ_LEN && spare > 0 {
            // Memory was reserved for the rest of a large frame: read directly into it.
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
