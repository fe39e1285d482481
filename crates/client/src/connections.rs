//! Connections to servers: one for each server and service, shared by all who ask, made anew when lost.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::BoxFuture;
use base::env::Env;
use bytes::Bytes;
use prost::Message;
use rpc::CellBlock;
use rpc::client::{ConnectOptions, Connection, Request};
use wire::exception::{Answer, JavaException, class};
use wire::service::Caller;

use crate::error::{Error, Result};

/// How urgent calls for `hbase:meta` are (`HConstants.HIGH_QOS`).
pub const HIGH_PRIORITY: u32 = 200;

/// How long a server that did not let itself be connected to is left alone
/// (`hbase.ipc.client.failed.servers.expiry`).
const FAILED_SERVER_EXPIRY: Duration = Duration::from_secs(2);

/// Connections by server and service. Cheap to clone.
#[derive(Clone)]
pub struct Connections {
    shared: Arc<Shared>,
}

struct Shared {
    env: Env,
    options: ConnectOptions,
    rpc_timeout: Duration,
    // By host. One slot a server and service; its lock is held while connecting, so that those who come then wait for it.
    slots: Mutex<HashMap<String, SlotsOfHost>>,
}

type SharedSlot = Arc<tokio::sync::Mutex<Slot>>;

/// By port and service.
type SlotsOfHost = BTreeMap<(u16, &'static str), SharedSlot>;

#[derive(Default)]
struct Slot {
    connection: Option<Connection>,
    // When connecting failed last, and how.
    failed: Option<(Duration, Error)>,
}

/// A call's message and cells, and how long to wait for it.
pub struct Outgoing<'a, M> {
    /// The service asked.
    pub service: &'static str,
    /// The method.
    pub method: &'static str,
    /// The request message.
    pub message: &'a M,
    /// Cells behind it.
    pub cells: CellBlock,
    /// 0 for user tables, [`HIGH_PRIORITY`] for `hbase:meta`.
    pub priority: u32,
}

impl<'a, M> Outgoing<'a, M> {
    /// A call without cells.
    pub fn new(service: &'static str, method: &'static str, message: &'a M) -> Outgoing<'a, M> {
        Outgoing { service, method, message, cells: CellBlock::new(), priority: 0 }
    }
}

impl Connections {
    /// None yet; each call waits at most `rpc_timeout`.
    pub fn new(env: Env, user: &str, rpc_timeout: Duration) -> Connections {
        Connections::with(env, ConnectOptions::for_user(user), rpc_timeout)
    }

    /// None yet; they will be made as `options` say.
    pub fn with(env: Env, options: ConnectOptions, rpc_timeout: Duration) -> Connections {
        Connections { shared: Arc::new(Shared { env, options, rpc_timeout, slots: Mutex::default() }) }
    }

    /// Calls a method; the answer's message and its cell block.
    ///
    /// # Errors
    /// [`Error::Remote`], [`Error::Connection`], [`Error::Malformed`].
    pub async fn call<M: Message, R: Message + Default>(
        &self,
        host: &str,
        port: u16,
        call: Outgoing<'_, M>,
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
            Ok(answer) => Ok((answer.message, answer.cells)),
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
        let of_host = match slots.get_mut(host) {
            Some(of_host) => of_host,
            None => slots.entry(host.to_string()).or_default(),
        };
        Arc::clone(of_host.entry((port, service)).or_default())
    }

    /// A server, to be called by way of the service traits.
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
        other => Error::Connection { host: host.to_string(), port, message: other.to_string() },
    }
}

/// One server. [`wire::service::Remote`] makes the service traits of it.
#[derive(Clone)]
pub struct Peer {
    connections: Connections,
    host: String,
    port: u16,
}

impl Peer {
    async fn call(
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
            Ok(answer) => Ok(answer),
            Err(Error::Remote(exception)) => Err(*exception),
            Err(other) => Err(JavaException::new(class::IO_EXCEPTION, other.to_string())),
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
