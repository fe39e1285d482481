//! Accepts connections.

use std::sync::Arc;
use std::time::Duration;

use base::BoxFuture;
use base::env::{Env, Listener, Stream, TaskClass};
use web::HostGuard;
use web::connections::{ConnectedClient, ConnectionLimits, accept_streams, serve_http};

use crate::connection::Connection;
use crate::gateway::Gateway;
use crate::http::{HttpCalls, Rewound};
use crate::options::CONNECTION_LIMIT;
use crate::transport::Transport;

/// Maximum size of the header of an HTTP request (`DEFAULT_HTTP_MAX_HEADER_SIZE`).
pub(crate) const HEADER_BYTES_MAX: usize = 64 << 10;
/// Time limit for a client that reads nothing of a response.
const STALL_LIMIT: Duration = Duration::from_secs(30);
/// The pause between searches for unused scanners.
const CLEANING_PERIOD: Duration = Duration::from_secs(5);

/// Serves Thrift on `listener` until the task is dropped.
pub async fn serve(env: Env, listener: Box<dyn Listener>, gateway: Arc<Gateway>) {
    let limits = ConnectionLimits {
        connections_max: gateway.options.connections_max,
        header_time: gateway.options.idle_limit().max(Duration::from_secs(1)),
        stall_time: STALL_LIMIT,
        connection_time: CONNECTION_LIMIT,
        // Longer ones get a response if possible, instead of the end of the connection.
        header_bytes_max: 2 * HEADER_BYTES_MAX,
        title_case_headers: true,
        class: TaskClass::Connection,
    };
    let hosts = Arc::new(HostGuard::new(&gateway.options.hosts));
    let (cleaned, http_limits) = (gateway.clone(), limits.clone());
    let handler_of = move |client: ConnectedClient| {
        let (gateway, hosts, limits) = (gateway.clone(), hosts.clone(), http_limits.clone());
        move |stream: Box<dyn Stream>| -> BoxFuture<'static, ()> {
            Box::pin(serve_connection(gateway, hosts, limits, stream, client))
        }
    };
    let clock = env.clock.clone();
    let cleaning = async {
        loop {
            clock.sleep(CLEANING_PERIOD).await;
            cleaned.close_expired_scanners();
        }
    };
    tokio::join!(accept_streams(env, listener, handler_of, limits), cleaning);
}

async fn serve_connection(
    gateway: Arc<Gateway>,
    hosts: Arc<HostGuard>,
    limits: ConnectionLimits,
    stream: Box<dyn Stream>,
    client: ConnectedClient,
) {
    let (peer, activity) = (client.address.ip(), client.activity);
    let mut connection = Connection::new(gateway.clone(), stream, peer, activity.clone());
    match connection.transport().await {
        None => {}
        Some(Transport::Http) => {
            let (stream, read) = connection.into_parts();
            let service = HttpCalls { gateway, hosts, peer, activity };
            serve_http(Box::new(Rewound { read, stream }), service, &limits).await;
        }
        Some(transport) => connection.serve(transport).await,
    }
}
