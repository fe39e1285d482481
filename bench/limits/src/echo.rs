//! An echo server with HBase's frames: it parses only the call id of a request, and responds with
//! constant bytes. It responds to all requests of one read with one write.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::synced::{Log, Member};

/// "HBas", version, authentication type.
const PREAMBLE_LEN: usize = 6;
/// Bytes of the length before a frame.
const LENGTH_LEN: usize = 4;
/// Maximum bytes of a header or request; the load generator sends no longer ones.
const FRAME_LEN_MAX: usize = 1 << 20;
/// Bytes of one read from a socket.
const READ_LEN: usize = 64 << 10;

/// Serves all connections, forever. With a log, it responds once all connections have sent a
/// request and these are synced.
///
/// # Errors
/// If it cannot listen on the address or create the log.
#[allow(clippy::disallowed_methods, reason = "a bare server is what this is about")]
pub fn serve(listen: SocketAddr, reply_len: usize, log: Option<&Path>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(listen).await?;
        let log = log.map(Log::begin).transpose()?;
        println!("{}", listener.local_addr()?);
        let message = Arc::new(delimited(&vec![b'v'; reply_len]));
        loop {
            let (stream, _) = listener.accept().await?;
            let (message, member) = (Arc::clone(&message), log.as_ref().map(Log::join));
            // An error ends only its connection.
            tokio::spawn(async move { answer(stream, &message, member).await });
        }
    })
}

async fn answer(mut stream: TcpStream, message: &[u8], member: Option<Member>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut preamble = [0; PREAMBLE_LEN];
    stream.read_exact(&mut preamble).await?;
    let header_len = stream.read_u32().await? as usize;
    let mut header = vec![0; checked(header_len)?];
    stream.read_exact(&mut header).await?;
    let (mut received, mut answers) = (Vec::with_capacity(READ_LEN), Vec::new());
    while stream.read_buf(&mut received).await? > 0 {
        let mut at = 0;
        while let Some(frame) = frame_at(&received[at..]) {
            put_answer(&mut answers, call_id(frame)?, message);
            at += LENGTH_LEN + frame.len();
        }
        received.drain(..at);
        checked(received.len())?;
        if !answers.is_empty() {
            if let Some(member) = &member {
                member.synced(at).await;
            }
            stream.write_all(&answers).await?;
            answers.clear();
        }
        received.reserve(READ_LEN);
    }
    Ok(())
}

fn checked(len: usize) -> io::Result<usize> {
    let too_long = || io::Error::new(io::ErrorKind::InvalidData, "frame too long");
    (len <= FRAME_LEN_MAX).then_some(len).ok_or_else(too_long)
}

/// The frame at the start of `bytes`, if it is complete.
fn frame_at(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH_LEN>()?;
    rest.get(..u32::from_be_bytes(*length) as usize)
}

/// The call id of a request: the first field of its header.
fn call_id(frame: &[u8]) -> io::Result<u64> {
    let parsed = || {
        let (_, header) = varint(frame)?;
        let (tag, field) = header.split_first()?;
        let (id, _) = varint(field)?;
        (*tag == 8).then_some(id)
    };
    parsed().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "request without a call id"))
}

fn put_answer(out: &mut Vec<u8>, call_id: u64, message: &[u8]) {
    let mut header = vec![8];
    put_varint(&mut header, call_id);
    let header = delimited(&header);
    out.extend(((header.len() + message.len()) as u32).to_be_bytes());
    out.extend(header);
    out.extend(message);
}

/// Bytes, prefixed with their length.
fn delimited(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 5);
    put_varint(&mut out, bytes.len() as u64);
    out.extend(bytes);
    out
}

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let len = bytes.iter().take(10).position(|byte| byte & 0x80 == 0)? + 1;
    let number = bytes[..len].iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f));
    Some((number, &bytes[len..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX)] {
            let mut out = Vec::new();
            put_varint(&mut out, number);
            assert_eq!(varint(&out), Some((number, &[][..])));
        }
    }

    #[test]
    fn an_answer_carries_the_call_id_of_its_request() {
        let mut answer = Vec::new();
        put_answer(&mut answer, 300, &delimited(b"message"));
        let frame = frame_at(&answer).unwrap();
        assert_eq!(call_id(frame).unwrap(), 300);
        assert!(frame.ends_with(b"message") && frame_at(&answer[..answer.len() - 1]).is_none());
        assert!(call_id(&[2, 16, 1]).is_err());
        assert!(checked(FRAME_LEN_MAX).is_ok() && checked(FRAME_LEN_MAX + 1).is_err());
    }
}
