//! Calls between the processes of a cluster.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::BoxFuture;
use base::env::{Env, TaskClass};
use bytes::Bytes;
use cell::region::ServerName;
use client::connections::Peer;
use master::Connections;
use proto::exception::{Answer, JavaException, class};
use rpc::client::ConnectOptions;
use tokio::sync::watch;
use tracing::{info, warn};
use wire::service::{AdminService, Caller, ClientService, Remote};
use zk::servers::MasterTracker;

/// The user as which the processes of a cluster call each other.
const USER: &str = "grampus";
/// The longest time that a call between two processes takes (`hbase.rpc.timeout`).
pub const RPC_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest time that a call waits for an active master.
const MASTER_WAIT: Duration = Duration::from_secs(10);
/// The pause before another attempt to find the active master.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// One server. Calls to it fail as soon as it is given up.
struct Server {
    peer: Peer,
    given_up: watch::Sender<bool>,
}

impl Server {
    fn new(env: &Env, name: &ServerName, rpc_timeout: Duration) -> Server {
        // A late write to hbase:meta must not follow a newer one.
        let options = ConnectOptions { silence_max: None, ..ConnectOptions::for_user(USER) };
        // Each process gets a pool of its own, so that the failures of an earlier process at the
        // same address do not delay calls.
        let pool = client::Connections::with_options(env.clone(), options, rpc_timeout);
        Server { peer: pool.peer(&name.host, name.port), given_up: watch::Sender::new(false) }
    }

    async fn call(
        &self,
        (service, method): (&'static str, &'static str),
        param: Bytes,
        cells: Bytes,
    ) -> Answer<(Bytes, Bytes)> {
        let mut given_up = self.given_up.subscribe();
        tokio::select! {
            biased;
            _ = given_up.wait_for(|given_up| *given_up) => {
                Err(JavaException::new(class::CONNECT_EXCEPTION, "the server is dead"))
            }
            answer = self.peer.call(service, method, param, cells) => answer,
        }
    }
}

/// The connections of a master to region servers.
pub struct RemoteServers {
    env: Env,
    rpc_timeout: Duration,
    servers: Mutex<HashMap<ServerName, Arc<Server>>>,
}

impl RemoteServers {
    /// No connections. Each call waits at most `rpc_timeout`.
    pub fn new(env: Env, rpc_timeout: Duration) -> RemoteServers {
        RemoteServers { env, rpc_timeout, servers: Mutex::default() }
    }

    fn server(&self, name: &ServerName) -> Arc<Server> {
        let new = || Arc::new(Server::new(&self.env, name, self.rpc_timeout));
        self.lock().entry(name.clone()).or_insert_with(new).clone()
    }

    /// Calls one server.
    pub fn caller(&self, server: &ServerName) -> ServerCaller {
        ServerCaller(self.server(server))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ServerName, Arc<Server>>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A [`Caller`] of one server.
pub struct ServerCaller(Arc<Server>);

impl Caller for ServerCaller {
    fn call(
        &self,
        service: &'static str,
        method: &'static str,
        param: Bytes,
        cells: Bytes,
    ) -> BoxFuture<'_, Answer<(Bytes, Bytes)>> {
        Box::pin(self.0.call((service, method), param, cells))
    }
}

impl Connections for RemoteServers {
    fn admin(&self, server: &ServerName) -> Arc<dyn AdminService> {
        Arc::new(Remote(self.caller(server)))
    }

    fn client(&self, server: &ServerName) -> Arc<dyn ClientService> {
        Arc::new(Remote(self.caller(server)))
    }

    fn forget(&self, server: &ServerName) {
        if let Some(server) = self.lock().remove(server) {
            server.given_up.send_replace(true);
        }
    }
}

/// Calls the master that is active at the time of the call.
pub struct ActiveMasterCaller {
    env: Env,
    rpc_timeout: Duration,
    name: watch::Receiver<Option<ServerName>>,
    current: Mutex<Option<(ServerName, Arc<Server>)>>,
}

impl ActiveMasterCaller {
    /// Follows the znode of the active master.
    pub fn follow(env: &Env, tracker: MasterTracker, rpc_timeout: Duration) -> ActiveMasterCaller {
        let (found, name) = watch::channel(None);
        env.spawn(TaskClass::Service, follow(env.clone(), tracker, found));
        ActiveMasterCaller { env: env.clone(), rpc_timeout, name, current: Mutex::default() }
    }

    /// The active master. Waits for one, but not for long: the caller repeats its call anyway.
    async fn server(&self) -> Answer<Arc<Server>> {
        let mut name = self.name.clone();
        let found = self.env.timeout(MASTER_WAIT, name.wait_for(Option::is_some)).await;
        let Some(Ok(Some(name))) = found.map(|found| found.map(|name| name.clone())) else {
            return Err(JavaException::new(class::MASTER_NOT_RUNNING, "no master is active"));
        };
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        match &*current {
            Some((known, server)) if *known == name => Ok(server.clone()),
            _ => {
                let server = Arc::new(Server::new(&self.env, &name, self.rpc_timeout));
                *current = Some((name, server.clone()));
                Ok(server)
            }
        }
    }

    async fn call(
        &self,
        method: (&'static str, &'static str),
        param: Bytes,
        cells: Bytes,
    ) -> Answer<(Bytes, Bytes)> {
        let server = self.server().await?;
        let mut name = self.name.clone();
        name.mark_unchanged();
        tokio::select! {
            biased;
            answer = server.call(method, param, cells) => answer,
            // A paused master does not answer. Its successor does.
            _ = name.changed() => Err(JavaException::new(class::IO_EXCEPTION, "another master became active")),
        }
    }
}

impl Caller for ActiveMasterCaller {
    fn call(
        &self,
        service: &'static str,
        method: &'static str,
        param: Bytes,
        cells: Bytes,
    ) -> BoxFuture<'_, Answer<(Bytes, Bytes)>> {
        Box::pin(self.call((service, method), param, cells))
    }
}

async fn follow(env: Env, mut tracker: MasterTracker, found: watch::Sender<Option<ServerName>>) {
    loop {
        match tracker.current().await {
            Ok(master) => {
                let is_new = found.send_if_modified(|known| {
                    let is_new = *known != master;
                    known.clone_from(&master);
                    is_new
                });
                if let (true, Some(master)) = (is_new, &master) {
                    info!(%master, "active master");
                }
                if tracker.changed().await.is_ok() {
                    continue;
                }
            }
            Err(zk::Error::SessionExpired) => return,
            Err(error) => warn!(%error, "cannot find the active master; retrying"),
        }
        env.clock.sleep(RETRY_PAUSE).await;
    }
}
