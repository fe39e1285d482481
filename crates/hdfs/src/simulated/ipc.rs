//! The server side of Hadoop's RPC, and calls between the servers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use base::BoxFuture;
use base::env::{Env, Listener, Stream, TaskClass};
use bytes::Bytes;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::wire::{Outcome, invalid, read_frame, response};
use crate::connection::{CLIENT_PROTOCOL, CallError, CallId, Connection, Identity};
use crate::failure::Failure;
use crate::generated::{RequestHeader, RpcRequestHeader};
use crate::options::Address;

/// How long a call between two servers waits.
const CALL_LIMIT: Duration = Duration::from_secs(5);

/// A call that arrived.
pub(super) struct Call {
    pub(super) client_id: Bytes,
    pub(super) id: i32,
    pub(super) method: String,
    /// Length-delimited.
    pub(super) request: Bytes,
}

impl Call {
    /// The request.
    ///
    /// # Errors
    /// An exception if it cannot be decoded.
    pub(super) fn decode<M: Message + Default>(&self) -> Result<M, super::wire::Exception> {
        let decoded = M::decode_length_delimited(&mut self.request.clone());
        decoded.map_err(|error| ("java.io.IOException", format!("{}: {error}", self.method)))
    }
}

/// What executes calls.
pub(super) trait Service: Send + Sync + 'static {
    fn call(&self, call: Call) -> BoxFuture<'_, Outcome>;
}

/// Serves connections until the process ends.
pub(super) fn serve(env: &Env, listener: Box<dyn Listener>, service: Arc<dyn Service>) {
    let spawning = env.clone();
    env.spawn(TaskClass::Service, async move {
        loop {
            let Ok(incoming) = listener.accept().await else { continue };
            let Ok(stream) = (incoming.open)() else { continue };
            let service = service.clone();
            spawning.spawn(TaskClass::Service, async move {
                // A client that closes its connection is no fault.
                let _ = serve_connection(stream, service).await;
            });
        }
    });
}

async fn serve_connection(mut stream: Box<dyn Stream>, service: Arc<dyn Service>) -> io::Result<()> {
    let mut preamble = [0; 7];
    stream.read_exact(&mut preamble).await?;
    if &preamble != b"hrpc\x09\0\0" {
        return Err(invalid("preamble"));
    }
    let _context = read_frame(&mut stream).await?;
    loop {
        let mut request = read_frame(&mut stream).await?;
        let header = RpcRequestHeader::decode_length_delimited(&mut request).map_err(io::Error::other)?;
        let method = RequestHeader::decode_length_delimited(&mut request).map_err(io::Error::other)?;
        let (client_id, id) = (header.client_id, header.call_id);
        let outcome = service.call(Call { client_id, id, method: method.method_name, request }).await;
        stream.write_all(&response(id, outcome)).await?;
    }
}

/// Calls of one server to another, on one connection.
pub(super) struct Peer {
    env: Env,
    address: Address,
    connection: tokio::sync::Mutex<Option<Arc<Connection>>>,
    next: AtomicI32,
}

impl Peer {
    pub(super) fn new(env: &Env, host: &str, port: u16) -> Peer {
        let address = Address { host: host.to_owned(), port };
        Peer { env: env.clone(), address, connection: Default::default(), next: AtomicI32::new(0) }
    }

    /// Calls once.
    ///
    /// # Errors
    /// The exception, or [`Failure::Unreachable`].
    pub(super) async fn call<A: Message + Default>(
        &self,
        method: &str,
        request: &impl Message,
    ) -> Result<A, Failure> {
        let called = self.env.timeout(CALL_LIMIT, self.call_now(method, request)).await;
        let called = called.unwrap_or_else(|| Err(CallError::Broken("no response".to_owned())));
        if matches!(called, Err(CallError::Broken(_))) {
            *self.connection.lock().await = None;
        }
        let mut response = called.map_err(|error| match error {
            CallError::Remote(failure) | CallError::Refused(failure) => failure,
            CallError::Broken(message) => Failure::Unreachable { message },
        })?;
        A::decode_length_delimited(&mut response)
            .map_err(|error| Failure::Unreachable { message: error.to_string() })
    }

    async fn call_now(&self, method: &str, request: &impl Message) -> crate::connection::Response {
        let connection = {
            let mut connection = self.connection.lock().await;
            match connection.as_ref().filter(|open| open.is_usable()) {
                Some(open) => open.clone(),
                None => {
                    let mut client_id = [0; 16];
                    self.env.random.fill(&mut client_id);
                    let identity = Identity { user: "hdfs".to_owned(), client_id };
                    let opened = Connection::open(&self.env, &self.address, &identity, CLIENT_PROTOCOL).await;
                    let opened = opened.map_err(|error| CallError::Broken(error.to_string()))?;
                    connection.insert(Arc::new(opened)).clone()
                }
            }
        };
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        connection.call(method, CallId { id, retries: 0 }, request).await
    }
}
