//! Reports to the service manager's watchdog that the server responds, as long as it does.
//!
//! A timer alone would report a server whose threads hang. So the server calls its own ports over
//! new connections, and each of its threads for connections must run a task. Only a missing
//! response is a failure: a refused connection or an exception is the response of an overloaded or
//! degraded server, which a restart does not help.
//!
//! Writes are not tried. A log that cannot be written ends the process by itself, and a restart
//! does not repair a disk.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::env::{Env, TaskClass};
use cell::query::Get;
use cell::region::RegionInfo;
use client::Connections;
use client::connections::{HIGH_PRIORITY, OutgoingCall};
use os::{Runtimes, service_manager};
use rpc::client::ConnectOptions;
use tracing::warn;
use wire::convert;

use crate::health::reachable;

/// Periods within the watchdog's timeout. A probe that fails takes a whole period, and the next one
/// begins a period later. So one probe may fail, but not two in a row.
const PERIODS_PER_TIMEOUT: u32 = 4;

/// A call to one of the process's own ports.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Probe {
    /// A client's first call to a master, active or not.
    Master(SocketAddr),
    /// A call to a region server.
    RegionServer(SocketAddr),
    /// A read of `hbase:meta` from a region server.
    Meta(SocketAddr),
}

/// The task that reports to the service manager.
pub(crate) struct Watchdog {
    is_stopping: Arc<AtomicBool>,
}

impl Watchdog {
    /// Starts it, if the service manager watches this process.
    pub(crate) fn start(env: &Env, runtimes: Arc<Runtimes>, probes: Vec<Probe>) -> Watchdog {
        let is_stopping = Arc::new(AtomicBool::new(false));
        if let Some(timeout) = service_manager::watchdog_timeout() {
            let (env_of_task, is_stopping) = (env.clone(), is_stopping.clone());
            env.spawn(TaskClass::Service, async move {
                watch(&env_of_task, &runtimes, &probes, timeout, &is_stopping).await;
            });
        }
        Watchdog { is_stopping }
    }

    /// From now on, only threads must respond: the ports are being closed.
    pub(crate) fn enter_stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }
}

async fn watch(
    env: &Env,
    runtimes: &Runtimes,
    probes: &[Probe],
    timeout: Duration,
    is_stopping: &AtomicBool,
) {
    let period = timeout / PERIODS_PER_TIMEOUT;
    loop {
        let probes = if is_stopping.load(Ordering::Relaxed) { &[] } else { probes };
        if responds(env, runtimes, probes, period).await {
            service_manager::send_state(service_manager::ALIVE);
        } else if !is_stopping.load(Ordering::Relaxed) {
            warn!(
                ?period,
                "the server does not respond to its own calls; the service manager restarts it after {timeout:?}"
            );
        }
        env.clock.sleep(period).await;
    }
}

/// Whether all threads for connections and all ports respond within `limit`.
async fn responds(env: &Env, runtimes: &Runtimes, probes: &[Probe], limit: Duration) -> bool {
    let responses = async {
        runtimes.respond().await;
        // The limit of a call is longer, so that its end is not taken for a response.
        call_all(env, probes, limit * PERIODS_PER_TIMEOUT).await;
    };
    env.timeout(limit, responses).await.is_some()
}

/// Calls all ports over new connections. Returns when each has responded in some way.
async fn call_all(env: &Env, probes: &[Probe], timeout: Duration) {
    let options = ConnectOptions { connect_timeout: timeout, ..ConnectOptions::for_user("watchdog") };
    let connections = Connections::with_options(env.clone(), options, timeout);
    for probe in probes {
        // Any outcome is a response; the caller limits the time.
        let _ = call(&connections, *probe).await;
    }
}

async fn call(connections: &Connections, probe: Probe) -> client::Result<()> {
    let (Probe::Master(address) | Probe::RegionServer(address) | Probe::Meta(address)) = probe;
    let (host, port) = (reachable(address.ip()).to_string(), address.port());
    match probe {
        Probe::Master(_) => {
            let request = proto::GetClusterIdRequest::default();
            let call = OutgoingCall::new("ClientMetaService", "GetClusterId", &request);
            connections.call(&host, port, call).await.map(|_: (proto::GetClusterIdResponse, _)| ())
        }
        Probe::RegionServer(_) => {
            let request = proto::GetServerInfoRequest::default();
            let call = OutgoingCall::new("AdminService", "GetServerInfo", &request);
            connections.call(&host, port, call).await.map(|_: (proto::GetServerInfoResponse, _)| ())
        }
        Probe::Meta(_) => {
            // A row that does not exist: the response only proves that the region is read.
            let get = Get { row: "watchdog".into(), selection: Default::default(), existence_only: true };
            let request = proto::GetRequest {
                region: convert::region_specifier(&RegionInfo::meta()),
                get: convert::to_proto::get(&get),
            };
            let call = OutgoingCall {
                priority: HIGH_PRIORITY,
                ..OutgoingCall::new("ClientService", "Get", &request)
            };
            connections.call(&host, port, call).await.map(|_: (proto::GetResponse, _)| ())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn only_a_missing_response_is_a_failure() {
        let runtimes = Arc::new(Runtimes::start(1, 1).unwrap());
        let env = os::env(runtimes.clone());
        let limit = Duration::from_millis(300);
        os::block_on(async {
            let listener = env.net.listen((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
            let address = listener.local_addr();
            // The system accepts the connection, and nothing responds.
            for probe in [Probe::Master(address), Probe::RegionServer(address), Probe::Meta(address)] {
                assert!(!responds(&env, &runtimes, &[probe], limit).await, "{probe:?}");
            }
            assert!(responds(&env, &runtimes, &[], limit).await, "without ports, the threads respond");
            drop(listener);
            let probes = [Probe::Master(address), Probe::Meta(address)];
            assert!(responds(&env, &runtimes, &probes, limit).await, "a refused connection is a response");
        });
    }
}
