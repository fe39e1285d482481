//! One connection to a NameNode or DataNode: Hadoop's RPC (version 9) without SASL.
//!
//! Concurrent calls share a connection. One task writes requests and one reads responses, so a call
//! whose caller stops waiting leaves no partial request.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::env::{Clock, Env, Stream, TaskClass};
use base::varint::get_varint;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot};

use crate::failure::Failure;
use crate::generated::{
    ConnectionContext, RequestHeader, RpcRequestHeader, RpcResponseHeader, UserInformation,
};
use crate::options::Address;

/// The calls of a client to a NameNode.
pub(crate) const CLIENT_PROTOCOL: &str = "org.apache.hadoop.hdfs.protocol.ClientProtocol";
/// The calls of a client to a DataNode.
pub(crate) const CLIENT_DATANODE_PROTOCOL: &str = "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol";
const PROTOCOL_VERSION: u64 = 1;
/// Magic, version of the RPC, service class, and no authentication.
const PREAMBLE: [u8; 7] = *b"hrpc\x09\0\0";
const CONTEXT_CALL_ID: i32 = -3;
const KIND_PROTOCOL_BUFFERS: u32 = 2;
const SUCCESS: u32 = 0;
/// Exceptions with which a server refuses every connection of this client: another attempt at this
/// server would have the same result.
const REFUSALS: [&str; 3] = ["AccessControlException", "AuthorizationException", "VersionMismatch"];
/// Hadoop's default for `ipc.maximum.response.length`.
const RESPONSE_BYTES_MAX: usize = 128 << 20;

/// The client as servers know it.
pub(crate) struct Identity {
    pub(crate) user: String,
    /// Random; with the id of a call, it identifies the call in a NameNode's cache of results.
    pub(crate) client_id: [u8; 16],
}

/// A call, which may be sent several times.
#[derive(Clone, Copy)]
pub(crate) struct CallId {
    pub(crate) id: i32,
    /// How often it was sent before.
    pub(crate) retries: i32,
}

/// Why a call has no response.
#[derive(Clone)]
pub(crate) enum CallError {
    /// The server returned an exception for this call.
    Remote(Failure),
    /// The server refuses the connections of this client. It has not executed the call.
    Refused(Failure),
    /// The connection failed; the call may have been executed.
    Broken(String),
}

pub(crate) type Response = Result<Bytes, CallError>;

#[derive(Default)]
struct Calls {
    // Ordered, so that calls fail in the same order in each run of a simulation.
    waiting: BTreeMap<i32, oneshot::Sender<Response>>,
    // When the last response arrived, or else the connection was opened, on the monotonic clock.
    last_response: Duration,
    // Why the connection failed.
    broken: Option<CallError>,
}

/// An open connection. Dropping it closes it.
pub(crate) struct Connection {
    client_id: [u8; 16],
    protocol: &'static str,
    requests: mpsc::UnboundedSender<Bytes>,
    calls: Arc<Mutex<Calls>>,
    // Whether later calls need a new connection.
    is_retired: AtomicBool,
    // Ends the reading task when it is dropped.
    _end: oneshot::Sender<()>,
}

fn locked(calls: &Mutex<Calls>) -> MutexGuard<'_, Calls> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    pub(crate) async fn open(
        env: &Env,
        address: &Address,
        identity: &Identity,
        protocol: &'static str,
    ) -> io::Result<Connection> {
        let mut stream = env.net.connect(&address.host, address.port).await?;
        let start = [&PREAMBLE[..], &context(identity, protocol)].concat();
        stream.write_all(&start).await?;
        stream.flush().await?;
        let (reading, writing) = tokio::io::split(stream);
        let (requests, queue) = mpsc::unbounded_channel();
        let (end, ended) = oneshot::channel();
        let now = env.clock.monotonic();
        let calls = Arc::new(Mutex::new(Calls { last_response: now, ..Calls::default() }));
        let (reader_calls, writer_calls) = (calls.clone(), calls.clone());
        let clock = env.clock.clone();
        env.spawn(TaskClass::Service, async move {
            let error = tokio::select! {
                biased;
                _ = ended => closed(),
                error = receive_all(reading, &*clock, &reader_calls) => error,
            };
            fail_all(&reader_calls, error);
        });
        env.spawn(TaskClass::Service, async move {
            if let Err(error) = send_all(writing, queue).await {
                fail_all(&writer_calls, CallError::Broken(error.to_string()));
            }
        });
        let (client_id, is_retired) = (identity.client_id, AtomicBool::new(false));
        Ok(Connection { client_id, protocol, requests, calls, is_retired, _end: end })
    }

    /// Whether a new call can be sent.
    pub(crate) fn is_usable(&self) -> bool {
        !self.is_retired.load(Ordering::Relaxed) && locked(&self.calls).broken.is_none()
    }

    /// Makes later calls open a new connection, because this one may be lost. The calls that were
    /// sent still wait for their responses.
    pub(crate) fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
    }

    /// When the last response arrived, or else the connection was opened, on the monotonic clock.
    pub(crate) fn last_response(&self) -> Duration {
        locked(&self.calls).last_response
    }

    /// Sends a call, and returns its length-delimited response.
    pub(crate) async fn call(&self, method: &str, call: CallId, request: &impl Message) -> Response {
        response_of(&mut self.send(method, call, request)).await
    }

    /// Sends a call. [`response_of`] waits for its response.
    pub(crate) fn send(
        &self,
        method: &str,
        call: CallId,
        request: &impl Message,
    ) -> oneshot::Receiver<Response> {
        let (done, response) = oneshot::channel();
        {
            let mut calls = locked(&self.calls);
            if let Some(error) = &calls.broken {
                let _ = done.send(Err(error.clone()));
                return response;
            }
            calls.waiting.insert(call.id, done);
        }
        // Without a task that sends it, the reading task has failed or will fail the call.
        let _ = self.requests.send(self.frame(method, call, request));
        response
    }

    fn frame(&self, method: &str, call: CallId, request: &impl Message) -> Bytes {
        let header = RequestHeader {
            method_name: method.to_owned(),
            declaring_class_protocol_name: self.protocol.to_owned(),
            client_protocol_version: PROTOCOL_VERSION,
        };
        let mut body = rpc_header(self.client_id, call).encode_length_delimited_to_vec();
        body.extend(header.encode_length_delimited_to_vec());
        body.extend(request.encode_length_delimited_to_vec());
        frame(&body)
    }
}

/// The length-delimited response of a call that was sent.
pub(crate) async fn response_of(sent: &mut oneshot::Receiver<Response>) -> Response {
    sent.await.unwrap_or_else(|_| Err(closed()))
}

fn closed() -> CallError {
    CallError::Broken("closed".to_owned())
}

fn rpc_header(client_id: [u8; 16], call: CallId) -> RpcRequestHeader {
    RpcRequestHeader {
        rpc_kind: Some(KIND_PROTOCOL_BUFFERS),
        rpc_op: Some(0),
        call_id: call.id,
        client_id: Bytes::copy_from_slice(&client_id),
        retry_count: Some(call.retries),
    }
}

fn frame(body: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(4 + body.len());
    framed.put_u32(u32::try_from(body.len()).expect("requests are small"));
    framed.put_slice(body);
    framed.freeze()
}

fn context(identity: &Identity, protocol: &str) -> Bytes {
    let call = CallId { id: CONTEXT_CALL_ID, retries: -1 };
    let user = UserInformation { effective_user: Some(identity.user.clone()), real_user: None };
    let context = ConnectionContext { user_info: Some(user), protocol: Some(protocol.to_owned()) };
    let mut body = rpc_header(identity.client_id, call).encode_length_delimited_to_vec();
    body.extend(context.encode_length_delimited_to_vec());
    frame(&body)
}

async fn send_all(
    mut stream: WriteHalf<Box<dyn Stream>>,
    mut queue: mpsc::UnboundedReceiver<Bytes>,
) -> io::Result<()> {
    while let Some(request) = queue.recv().await {
        stream.write_all(&request).await?;
        stream.flush().await?;
    }
    stream.shutdown().await
}

/// Reads responses until the connection fails; returns why.
async fn receive_all(
    mut stream: ReadHalf<Box<dyn Stream>>,
    clock: &dyn Clock,
    calls: &Mutex<Calls>,
) -> CallError {
    loop {
        let response = match receive(&mut stream).await {
            Ok(response) => response,
            Err(error) => return CallError::Broken(error.to_string()),
        };
        match parse_response(response) {
            Ok((id, response)) => {
                let waiting = {
                    let mut calls = locked(calls);
                    calls.last_response = clock.monotonic();
                    calls.waiting.remove(&id)
                };
                // The caller may have stopped waiting.
                let _ = waiting.map(|done| done.send(response));
            }
            Err(error) => return error,
        }
    }
}

async fn receive(stream: &mut ReadHalf<Box<dyn Stream>>) -> io::Result<Bytes> {
    let len = stream.read_u32().await? as usize;
    if len > RESPONSE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a response of {len} bytes")));
    }
    let mut response = vec![0; len];
    stream.read_exact(&mut response).await?;
    Ok(response.into())
}

/// The id of the call, and its response; an error ends the connection.
pub(crate) fn parse_response(mut response: Bytes) -> Result<(i32, Response), CallError> {
    let header = RpcResponseHeader::decode_length_delimited(&mut response)
        .map_err(|error| CallError::Broken(format!("invalid response header: {error}")))?;
    // Ids of calls are never negative; a negative one reports a problem with the connection itself.
    let id = header.call_id as i32;
    if header.status == SUCCESS {
        return Ok((id, Ok(response)));
    }
    let class = header.exception_class.unwrap_or_default();
    let message = header.error_message.unwrap_or_default();
    let failure = Failure::Remote { class, message };
    match id {
        0.. => Ok((id, Err(CallError::Remote(failure)))),
        _ if REFUSALS.iter().any(|name| failure.is(name)) => Err(CallError::Refused(failure)),
        _ => Err(CallError::Broken(format!("rejected by the server: {}", failure.message()))),
    }
}

fn fail_all(calls: &Mutex<Calls>, error: CallError) {
    let waiting = {
        let mut calls = locked(calls);
        calls.broken.get_or_insert_with(|| error.clone());
        std::mem::take(&mut calls.waiting)
    };
    for done in waiting.into_values() {
        // The caller may have stopped waiting.
        let _ = done.send(Err(error.clone()));
    }
}

/// Removes a length-delimited message of at most `bytes_max` bytes from the front of `buffer`, if
/// all of it is there.
///
/// # Errors
/// If the bytes are not such a message.
pub(crate) fn take_delimited<M: Message + Default>(
    buffer: &mut BytesMut,
    bytes_max: usize,
) -> io::Result<Option<M>> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut rest = &buffer[..];
    let Some(len) = get_varint(&mut rest) else {
        return match buffer.len() >= base::varint::VARINT_LEN_MAX {
            true => Err(invalid("invalid length of a message".to_owned())),
            false => Ok(None),
        };
    };
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    if len > bytes_max {
        return Err(invalid(format!("a message of {len} bytes")));
    }
    if rest.len() < len {
        return Ok(None);
    }
    let prefix = buffer.len() - rest.len();
    buffer.advance(prefix);
    let message = M::decode(buffer.split_to(len).freeze());
    message.map(Some).map_err(|error| invalid(format!("invalid message: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated::BoolResponse;

    #[test]
    fn a_message_is_taken_only_when_it_is_complete() {
        let bytes = BoolResponse { result: true }.encode_length_delimited_to_vec();
        let mut buffer = BytesMut::new();
        for byte in &bytes {
            assert_eq!(take_delimited::<BoolResponse>(&mut buffer, 2).unwrap(), None);
            buffer.put_u8(*byte);
        }
        buffer.put_u8(7);
        assert_eq!(take_delimited(&mut buffer, 2).unwrap(), Some(BoolResponse { result: true }));
        assert_eq!(&buffer[..], [7]);
        let mut invalid = BytesMut::from(&[0xff; 10][..]);
        assert!(take_delimited::<BoolResponse>(&mut invalid, usize::MAX).is_err());
        let mut long = BytesMut::from(&bytes[..]);
        assert!(take_delimited::<BoolResponse>(&mut long, 1).is_err());
    }

    #[test]
    fn the_first_bytes_are_those_of_hadoops_client() {
        let identity = Identity { user: "u".to_owned(), client_id: [1; 16] };
        let sent = context(&identity, CLIENT_PROTOCOL);
        assert_eq!(sent.len(), 4 + u32::from_be_bytes(sent[..4].try_into().unwrap()) as usize);
        // Header: kind 2, op 0, call id -3 as sint32, client id, retry count -1 as sint32.
        let header = [&[26, 0x08, 2, 0x10, 0, 0x18, 5, 0x22, 16][..], &[1; 16], &[0x28, 1]].concat();
        assert_eq!(&sent[4..4 + header.len()], header);
    }

    #[test]
    fn a_response_about_the_connection_ends_it() {
        let response = |id: i32, status, class: &str| {
            let header = RpcResponseHeader {
                call_id: id as u32,
                status,
                exception_class: Some(class.to_owned()),
                ..RpcResponseHeader::default()
            };
            parse_response(header.encode_length_delimited_to_vec().into())
        };
        assert!(matches!(response(4, 0, "a.B"), Ok((4, Ok(_)))));
        assert!(matches!(response(4, 1, "a.B"), Ok((4, Err(CallError::Remote(failure)))) if failure.is("B")));
        assert!(matches!(response(-1, 2, "a.B"), Err(CallError::Broken(why)) if why.contains("B")));
        for refusal in [
            "org.apache.hadoop.security.AccessControlException",
            "org.apache.hadoop.security.authorize.AuthorizationException",
            "org.apache.hadoop.ipc.RPC$VersionMismatch",
        ] {
            assert!(matches!(response(-1, 2, refusal), Err(CallError::Refused(_))), "{refusal}");
        }
    }
}
