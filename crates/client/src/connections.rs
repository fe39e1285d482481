//! Connections to servers: one per server and service, shared by all callers, and reopened when
//! lost.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::BoxFuture;
use base::env::Env;
use bytes::Bytes;
use prost::Message;
use proto::exception::{Answer, JavaException, class};
use rpc::CellBlock;
use rpc::client::{ConnectOptions, Connection, Request};
use wire::service::Caller;

use crate::error::{Error, Result};

/// Priority of calls for `hbase:meta` (`HConstants.HIGH_QOS`).
pub const HIGH_PRIORITY: u32 = 200;

/// Time during which a server is not contacted again after a failed connection attempt
/// (`hbase.ipc.client.failed.servers.expiry`).
const FAILED_SERVER_EXPIRY: Duration = Duration::from_secs(2);

/// Connections, keyed by server and service. Cheap to clone.
#[derive(Clone)]
pub struct Connections {
    shared: Arc<Shared>,
}

struct Shared {
    env: Env,
    options: ConnectOptions,
    rpc_timeout: Duration,
    // By host, with one slot per server and service. The slot's lock is held while connecting, so
    // that concurrent callers wait for that connection.
    slots: Mutex<HashMap<String, HostSlots>>,
}

type SharedSlot = Arc<tokio::sync::Mutex<Slot>>;

/// Slots, keyed by port and service.
type HostSlots = BTreeMap<(u16, &'static str), SharedSlot>;

#[derive(Default)]
struct Slot {
    connection: Option<Connection>,
    // Time and error of the last failed attempt to connect.
    failed: Option<(Duration, Error)>,
}

/// An outgoing call: message, cells and priority.
pub struct OutgoingCall<'a, M> {
    /// The service's name.
    pub service: &'static str,
    /// The method's name.
    pub method: &'static str,
    /// The request message.
    pub message: &'a M,
    /// Cells that follow the message.
    pub cells: CellBlock,
    /// 0 for user tables, [`HIGH_PRIORITY`] for `hbase:meta`.
    pub priority: u32,
}

impl<'a, M> OutgoingCall<'a, M> {
    /// A call without cells, with priority 0.
    pub fn new(service: &'static str, method: &'static str, message: &'a M) -> OutgoingCall<'a, M> {
        OutgoingCall { service, method, message, cells: CellBlock::new(), priority: 0 }
    }
}

impl Connections {
    /// Creates an empty pool; each call waits at most `rpc_timeout`.
    pub fn new(env: Env, user: &str, rpc_timeout: Duration) -> Connections {
        Connections::with_options(env, ConnectOptions::for_user(user), rpc_timeout)
    }

    /// Creates an empty pool that connects with `options`.
    pub fn with_options(env: Env, options: ConnectOptions, rpc_timeout: Duration) -> Connections {
        Connections { shared: Arc::new(Shared { env, options, rpc_timeout, slots: Mutex::default() }) }
    }

    /// Calls a method; returns the response message and its cell block.
    ///
    /// # Errors
    /// [`Error::Remote`], [`Error::Connection`], [`Error::Malformed`].
    pub async fn call<M: Message, R: Message + Default>(
        &self,
        host: &str,
        port: u16,
        call: OutgoingCall<'_, M>,
    ) -> Result<(R, Bytes)> {
        let request = Request {
            method: rpc::Method::of_static(call.method),
            param: call.message.encode_to_vec().into(),
            cells: call.cells,
            timeout: self.shared.rpc_timeout,
            priority: call.priority,
        };
        let (message, cells) = self.call_raw(host, port, call.service, request).await?;
        let message =
            R::decode(message).map_err(|error| Error::Malformed(format!("{}: {error}", call.method)))?;
        Ok((message, cells))
    }

    async fn call_raw(
        &self,
        host: &str,
        port: u16,
        service: &'static str,
        request: Request,
    ) -> Result<(Bytes, Bytes)> {
        let connection = self.connection(host, port, service).await?;
        match connection.call(request).await {
            Ok(response) => Ok((response.message, response.cells)),
            Err(error) => Err(failed(host, port, error)),
        }
    }

    async fn connection(&self, host: &str, port: u16, service: &'static str) -> Result<Connection> {
        let slot = self.slot(host, port, service);
        let mut slot = slot.lock().await;
        if let Some(connection) = slot.connection.as_ref().filter(|connection| !connection.is_lost()) {
            return Ok(connection.clone());
        }
        let now = self.shared.env.clock.monotonic();
        if let Some((since, error)) = &slot.failed
            && now.saturating_sub(*since) < FAILED_SERVER_EXPIRY
        {
            return Err(error.clone());
        }
        let connecting =
            Connection::connect(&self.shared.env, host, port, service, &self.shared.options).await;
        match connecting {
            Ok(connection) => {
                *slot = Slot { connection: Some(connection.clone()), failed: None };
                Ok(connection)
            }
            Err(error) => {
                let error = failed(host, port, error);
                *slot = Slot {
                    connection: None,
                    failed: Some((self.shared.env.clock.monotonic(), error.clone())),
                };
                Err(error)
            }
        }
    }

    fn slot(&self, host: &str, port: u16, service: &'static str) -> SharedSlot {
        let mut slots = self.shared.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let host_slots = match slots.get_mut(host) {
            Some(host_slots) => host_slots,
            None => slots.entry(host.to_string()).or_default(),
        };
        Arc::clone(host_slots.entry((port, service)).or_default())
    }

    /// A handle for calls to one server through the service traits.
    pub fn peer(&self, host: &str, port: u16) -> Peer {
        Peer { connections: self.clone(), host: host.to_string(), port }
    }
}

fn failed(host: &str, port: u16, error: rpc::client::Error) -> Error {
    match error {
        rpc::client::Error::Remote(remote) => {
            let response = proto::ExceptionResponse {
                exception_class_name: Some(remote.class.clone()),
                stack_trace: Some(remote.stack_trace.clone()),
                hostname: remote.location.as_ref().map(|(host, _)| host.clone()),
                port: remote.location.as_ref().map(|(_, port)| i32::from(*port)),
                do_not_retry: Some(remote.do_not_retry),
                server_overloaded: Some(remote.server_overloaded),
            };
            JavaException::from_response(&response).into()
        }
        // Each attempt would get the same response.
        too_long @ rpc::client::Error::TooLong { .. } => Error::Malformed(too_long.to_string()),
        other => Error::Connection { host: host.to_string(), port, message: other.to_string() },
    }
}

/// A single server. [`wire::service::Remote`] implements the service traits on it.
#[derive(Clone)]
pub struct Peer {
    connections: Connections,
    host: String,
    port: u16,
}

impl Peer {
    /// Calls a method of the server with an encoded message and a cell block. Returns the encoded
    /// response and its cell block.
    ///
    /// # Errors
    /// The server's exception, or an `IOException` if the call failed in transit: it is unknown
    /// then whether it was executed.
    pub async fn call(
        &self,
        service: &'static str,
        method: &'static str,
        param: Bytes,
        cells: Bytes,
    ) -> Answer<(Bytes, Bytes)> {
        let request = Request {
            method: rpc::Method::of_static(method),
            param,
            cells: cells.into(),
            timeout: self.connections.shared.rpc_timeout,
            priority: HIGH_PRIORITY,
        };
        match self.connections.call_raw(&self.host, self.port, service, request).await {
            Ok(response) => Ok(response),
            Err(Error::Remote(exception)) => Err(*exception),
            Err(other) => Err(JavaException::new(class::CONNECT_EXCEPTION, other.to_string())),
        }
    }
}

impl Caller for Peer {
    fn call(
        &self,
        service: &'static str,
        method: &'static str,
        param: Bytes,
        cells: Bytes,
    ) -> BoxFuture<'_, Answer<(Bytes, Bytes)>> {
        Box::pin(self.call(service, method, param, cells))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Reaction;

    #[test]
    fn a_call_whose_response_is_too_long_is_not_repeated() {
        let too_long = failed("host", 16020, rpc::client::Error::TooLong { bytes: 300, max: 200 });
        assert_eq!(too_long.reaction(), Reaction::Fail);
        let lost = failed("host", 16020, rpc::client::Error::Lost("reset".into()));
        assert_eq!(lost.reaction(), Reaction::ServerGone);
    }
}
