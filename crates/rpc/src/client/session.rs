//! The task of a client's connection: requests out, answers in.

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

/// Bytes of room made before a read; a large answer gets more as it arrives.
const READ_LEN: usize = 64 * 1024;
/// Requests gathered for one write.
const GATHERED_LEN: usize = 256 * 1024;

/// A request on its way to the socket.
pub(super) struct Outgoing {
    pub(super) header: RequestHeader,
    pub(super) param: Bytes,
    pub(super) cells: CellBlock,
}

/// The two halves of a connection and the calls that wait for its answers.
pub(super) struct Session {
    reader: ReadHalf<Box<dyn Stream>>,
    writer: WriteHalf<Box<dyn Stream>>,
    queue: mpsc::Receiver<Outgoing>,
    calls: Arc<Calls>,
    max_response_bytes: u32,
}

#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the server closed it")]
    Closed,
    #[error("the answer is {0}")]
    Malformed(#[from] Malformed),
    #[error("an answer of {0} bytes is longer than is taken")]
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

    /// Runs until the connection is lost or nobody holds it any more.
    pub(super) async fn run(self) {
        let Session { mut reader, mut writer, mut queue, calls, max_response_bytes } = self;
        let failed = {
            let reading = read_answers(&mut reader, &calls, max_response_bytes);
            let writing = write_requests(&mut writer, &mut queue);
            tokio::select! {
                failed = reading => failed,
                Err(failed) = writing => failed.into(),
                else => Failed::Closed,
            }
        };
        calls.lose(Error::Lost(failed.to_string().into()));
        // The other end sees the close at once.
        let _ = writer.shutdown().await;
    }
}

/// Writes what is queued, all that is there at once. Ends when the connection's last holder is gone.
async fn write_requests(
    writer: &mut WriteHalf<Box<dyn Stream>>,
    queue: &mut mpsc::Receiver<Outgoing>,
) -> io::Result<()> {
    let mut gathered = BytesMut::new();
    while let Some(first) = queue.recv().await {
        gather(&mut gathered, first);
        while gathered.len() < GATHERED_LEN {
            match queue.try_recv() {
                Ok(next) => gather(&mut gathered, next),
                Err(_) => break,
            }
        }
        writer.write_all(&gathered).await?;
        writer.flush().await?;
        gathered.clear();
        if gathered.capacity() > 2 * GATHERED_LEN {
            gathered = BytesMut::new();
        }
    }
    Err(io::Error::other("no longer used"))
}

fn gather(out: &mut BytesMut, request: Outgoing) {
    frame::put_request(out, &request.header, &request.param);
    for piece in request.cells.into_pieces() {
        out.extend_from_slice(&piece);
    }
}

/// Hands each answer to its call; returns why it cannot go on.
async fn read_answers(
    reader: &mut ReadHalf<Box<dyn Stream>>,
    calls: &Calls,
    max_response_bytes: u32,
) -> Failed {
    let mut bytes = BytesMut::new();
    loop {
        match hand_out(&mut bytes, calls, max_response_bytes) {
            Ok(room) => bytes.reserve(room),
            Err(failed) => return failed,
        }
        match reader.read_buf(&mut bytes).await {
            Ok(0) => return Failed::Closed,
            Ok(_) => {}
            Err(error) => return error.into(),
        }
    }
}

/// Hands out all complete answers in `bytes`; the room to make for what follows.
fn hand_out(bytes: &mut BytesMut, calls: &Calls, max_response_bytes: u32) -> Result<usize, Failed> {
    loop {
        let Some(len) = bytes.first_chunk::<LENGTH_LEN>().map(|len| u32::from_be_bytes(*len)) else {
            return Ok(READ_LEN);
        };
        if len > max_response_bytes {
            return Err(Failed::TooLong(len));
        }
        let total = LENGTH_LEN + len as usize;
        if bytes.len() < total {
            // What the frame only claims to hold is not made room for.
            return Ok((total - bytes.len()).min(bytes.len()).max(READ_LEN));
        }
        let mut frame = bytes.split_to(total).freeze();
        frame.advance(LENGTH_LEN);
        let response = frame::parse_response(&frame)?;
        let outcome = match response.outcome {
            Ok((message, cells)) => Ok(Answer { message, cells }),
            Err(exception) => Err(Error::Remote(Arc::new(exception))),
        };
        match outcome {
            // It belongs to no call: the server gives up on the connection.
            Err(error) if response.call_id == CONNECTION_CALL_ID => calls.lose(error),
            outcome => calls.answer(response.call_id, outcome),
        }
    }
}
