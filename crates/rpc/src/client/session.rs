//! The task of a client connection: writes requests and reads responses.

use std::io;
use std::sync::Arc;

use base::env::Stream;
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

use super::{Answer, Calls, Error};
use crate::cellblock::CellBlock;
use crate::fields::Malformed;
use crate::frame::{self, LENGTH_LEN, RequestHeader};
use crate::preamble::CONNECTION_CALL_ID;

/// Capacity in bytes reserved before a read; a large response gets more as it arrives.
const READ_LEN: usize = 64 * 1024;
/// Maximum bytes of requests in one write.
const BATCH_LEN: usize = 256 * 1024;

/// A request to be written to the socket.
pub(super) struct Outgoing {
    pub(super) header: RequestHeader,
    pub(super) param: Bytes,
    pub(super) cells: CellBlock,
}

/// The two halves of a connection and its pending calls.
pub(super) struct Session {
    reader: ReadHalf<Box<dyn Stream>>,
    writer: WriteHalf<Box<dyn Stream>>,
    queue: mpsc::Receiver<Outgoing>,
    calls: Arc<Calls>,
    max_response_bytes: u32,
}

#[derive(Debug, thiserror::Error)]
enum SessionError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("closed by the server")]
    Closed,
    #[error("invalid response: {0}")]
    Malformed(#[from] Malformed),
    #[error("response of {0} bytes exceeds the limit")]
    TooLong(u32),
}

impl Session {
    pub(super) fn new(
        stream: Box<dyn Stream>,
        queue: mpsc::Receiver<Outgoing>,
        calls: Arc<Calls>,
        max_response_bytes: u32,
    ) -> Session {
        let (reader, writer) = tokio::io::split(stream);
        Session { reader, writer, queue, calls, max_response_bytes }
    }

    /// Runs until the connection is lost or no caller holds it any more.
    pub(super) async fn run(self) {
        let Session { mut reader, mut writer, mut queue, calls, max_response_bytes } = self;
        let failed = {
            let reading = read_answers(&mut reader, &calls, max_response_bytes);
            let writing = write_requests(&mut writer, &mut queue);
            tokio::select! {
                biased;
                failed = reading => failed,
                Err(failed) = writing => failed.into(),
                else => SessionError::Closed,
            }
        };
        calls.lose(Error::Lost(failed.to_string().into()));
        // Lets the other end notice the close immediately.
        let _ = writer.shutdown().await;
    }
}

/// Writes all queued requests in batches. Ends when the last owner of the connection drops it.
async fn write_requests(
    writer: &mut WriteHalf<Box<dyn Stream>>,
    queue: &mut mpsc::Receiver<Outgoing>,
) -> io::Result<()> {
    let mut batch = BytesMut::new();
    while let Some(first) = queue.recv().await {
        append_request(&mut batch, first);
        while batch.len() < BATCH_LEN {
            match queue.try_recv() {
                Ok(next) => append_request(&mut batch, next),
                Err(_) => break,
            }
        }
        writer.write_all(&batch).await?;
        writer.flush().await?;
        batch.clear();
        if batch.capacity() > 2 * BATCH_LEN {
            batch = BytesMut::new();
        }
    }
    Err(io::Error::other("no longer used"))
}

fn append_request(out: &mut BytesMut, request: Outgoing) {
    frame::put_request(out, &request.header, &request.param);
    for piece in request.cells.into_pieces() {
        out.extend_from_slice(&piece);
    }
}

/// Delivers each response to its call; returns why it cannot continue.
async fn read_answers(
    reader: &mut ReadHalf<Box<dyn Stream>>,
    calls: &Calls,
    max_response_bytes: u32,
) -> SessionError {
    let mut inbox = Inbox { calls, max_response_bytes, bytes: BytesMut::new(), skip_bytes: 0 };
    loop {
        match inbox.deliver_responses() {
            Ok(capacity) => inbox.bytes.reserve(capacity),
            Err(failed) => return failed,
        }
        match reader.read_buf(&mut inbox.bytes).await {
            Ok(0) => return SessionError::Closed,
            Ok(_) => calls.received(),
            Err(error) => return error.into(),
        }
    }
}

/// The bytes that were read and have not been delivered.
struct Inbox<'a> {
    calls: &'a Calls,
    max_response_bytes: u32,
    bytes: BytesMut,
    // Remaining bytes of a response that is too long.
    skip_bytes: usize,
}

impl Inbox<'_> {
    /// Delivers all complete responses; returns the capacity to reserve for the next read.
    fn deliver_responses(&mut self) -> Result<usize, SessionError> {
        loop {
            let skipped = self.skip_bytes.min(self.bytes.len());
            self.bytes.advance(skipped);
            self.skip_bytes -= skipped;
            let Some(len) = self.bytes.first_chunk::<LENGTH_LEN>().map(|len| u32::from_be_bytes(*len)) else {
                return Ok(READ_LEN);
            };
            if len > self.max_response_bytes {
                match self.refuse_response(len)? {
                    true => continue,
                    false => return Ok(READ_LEN),
                }
            }
            let total = LENGTH_LEN + len as usize;
            if self.bytes.len() < total {
                // Do not reserve memory for a length that the frame only claims.
                return Ok((total - self.bytes.len()).min(self.bytes.len()).max(READ_LEN));
            }
            let mut frame = self.bytes.split_to(total).freeze();
            frame.advance(LENGTH_LEN);
            self.deliver(&frame)?;
        }
    }

    fn deliver(&self, frame: &Bytes) -> Result<(), SessionError> {
        let response = frame::parse_response(frame)?;
        let outcome = match response.outcome {
            Ok((message, cells)) => Ok(Answer { message, cells }),
            Err(exception) => Err(Error::Remote(Arc::new(exception))),
        };
        match outcome {
            // The exception belongs to no call: the server gives up on the connection.
            Err(error) if response.call_id == CONNECTION_CALL_ID => self.calls.lose(error),
            outcome => self.calls.answer(response.call_id, outcome),
        }
        Ok(())
    }

    /// Fails the call of a response that is too long. The connection continues, because other calls
    /// share it. Returns false if more bytes are needed to know the call.
    fn refuse_response(&mut self, len: u32) -> Result<bool, SessionError> {
        let call_id = frame::peek_response_call(&self.bytes[LENGTH_LEN..])?;
        // A Java server sends no longer frame.
        if i32::try_from(len).is_err() || call_id == Some(CONNECTION_CALL_ID) {
            return Err(SessionError::TooLong(len));
        }
        let Some(call_id) = call_id else { return Ok(false) };
        self.calls.answer(call_id, Err(Error::TooLong { bytes: len, max: self.max_response_bytes }));
        self.skip_bytes = LENGTH_LEN + len as usize;
        Ok(true)
    }
}
