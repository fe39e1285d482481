//! What the roles, master and region server, have in common with any process that runs them: their
//! RPC services, status pages and listening sockets.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use base::config::Config;
use base::env::{Env, Listener, TaskClass};
use base::metrics::Registry as Metrics;
use cell::region::ServerName;
use console::{Identity, MasterPages, Peers, RegionServerPages, beans};
use master::Master;
use regionserver::RegionServer;
use regionserver::slow_calls::SlowCalls;
use roles::services::{
    INTERNAL_ADMIN_METHODS, Internal, client_meta, master_services, region_server_services,
};
use rpc::{ServerOptions, Service};
use zk::Coordinator;
use zk::names::Names;

use crate::logging;
use crate::settings::{Limits, slow_log_options};
use crate::sinks::Sinks;

/// The process in which roles run.
pub(crate) struct Host<'a> {
    pub(crate) env: &'a Env,
    pub(crate) config: &'a Config,
    pub(crate) limits: &'a Limits,
    pub(crate) sinks: &'a Sinks,
    pub(crate) coordinator: &'a Arc<dyn Coordinator>,
    pub(crate) names: &'a Names,
    pub(crate) identity: Identity,
    /// The pages of the other role, for links.
    pub(crate) peers: Peers,
    /// Whether the servers of the cluster call each other over the network.
    pub(crate) accepts_internal_calls: bool,
}

impl Host<'_> {
    /// The service for a client's first calls.
    pub(crate) fn client_meta(&self) -> Arc<dyn Service> {
        client_meta(self.coordinator, self.names)
    }

    fn internal(&self, methods: Internal) -> Internal {
        if self.accepts_internal_calls { Internal::None } else { methods }
    }

    /// The RPC services of a master.
    pub(crate) fn master_services(&self, master: &Arc<Master>) -> Vec<Arc<dyn Service>> {
        let (status, admin) = (self.internal(Internal::All), self.internal(INTERNAL_ADMIN_METHODS));
        let mut services = vec![self.client_meta()];
        services.extend(master_services(master, status, admin));
        services
    }

    /// An RPC server for the services of a role.
    pub(crate) fn rpc_server(
        &self,
        role: &'static str,
        host: &str,
        services: Vec<Arc<dyn Service>>,
        watch: Option<rpc::server::Watch>,
    ) -> Arc<rpc::Server> {
        let services = self.sinks.traced(self.env, role, host, services);
        let options = ServerOptions { watch, ..self.limits.rpc.clone() };
        let shared = self.limits.shared.clone();
        let cluster_id = Some(self.identity.cluster_id.clone());
        rpc::Server::sharing(self.env.clone(), services, options, cluster_id, shared)
    }

    /// The RPC server of a region server.
    pub(crate) fn region_server_rpc(&self, server: &Arc<RegionServer>) -> Arc<rpc::Server> {
        let mut services = vec![self.client_meta()];
        services.extend(region_server_services(server, self.internal(INTERNAL_ADMIN_METHODS)));
        let watch = slow_log_options(self.config).watch(Arc::new(SlowCalls(server.clone())));
        self.rpc_server("RegionServer", &server.name().host, services, Some(watch))
    }

    /// Starts the status pages of a master, if there is a listener. Returns its metrics.
    pub(crate) fn serve_master_pages(
        &self,
        master: &Arc<Master>,
        rpc: &Arc<rpc::Server>,
        listener: Option<Box<dyn Listener>>,
    ) -> Arc<Metrics> {
        let metrics = Arc::new(beans::master::beans(self.env, master, rpc, &self.identity));
        if let Some(listener) = listener {
            self.serve_pages(listener, Arc::new(self.master_pages(master, rpc, metrics.clone())));
        }
        metrics
    }

    /// The status pages of a master.
    pub(crate) fn master_pages(
        &self,
        master: &Arc<Master>,
        rpc: &Arc<rpc::Server>,
        metrics: Arc<Metrics>,
    ) -> MasterPages {
        MasterPages::new(self.env, master.clone(), metrics, rpc, self.config, &self.peers)
    }

    /// Starts status pages.
    pub(crate) fn serve_pages(&self, listener: Box<dyn Listener>, pages: Arc<dyn web::RoleInfo>) {
        serve_pages(self.env, self.limits, listener, pages);
    }

    /// Starts the status pages of a region server, if there is a listener. Returns its metrics.
    pub(crate) fn serve_region_server_pages(
        &self,
        server: &Arc<RegionServer>,
        rpc: &Arc<rpc::Server>,
        listener: Option<Box<dyn Listener>>,
    ) -> Arc<Metrics> {
        let metrics = Arc::new(beans::region_server::beans(self.env, server, rpc, &self.identity));
        if let Some(listener) = listener {
            self.serve_pages(listener, Arc::new(self.region_server_pages(server, rpc, metrics.clone())));
        }
        metrics
    }

    /// The status pages of a region server.
    pub(crate) fn region_server_pages(
        &self,
        server: &Arc<RegionServer>,
        rpc: &Arc<rpc::Server>,
        metrics: Arc<Metrics>,
    ) -> RegionServerPages {
        let (identity, peers) = (&self.identity, &self.peers);
        RegionServerPages::new(self.env, server.clone(), metrics, rpc, self.config, identity, peers)
    }
}

/// Starts status pages.
pub(crate) fn serve_pages(
    env: &Env,
    limits: &Limits,
    listener: Box<dyn Listener>,
    pages: Arc<dyn web::RoleInfo>,
) {
    env.spawn(TaskClass::Service, web::serve(env.clone(), listener, pages, limits.pages.clone()));
}

/// Listens on an address. `key` is the option of the port.
///
/// # Errors
/// One line that states why, and what to change.
pub(crate) async fn listen(
    env: &Env,
    address: IpAddr,
    port: u16,
    key: &str,
) -> Result<Box<dyn Listener>, String> {
    let address = SocketAddr::new(address, port);
    env.net.listen(address).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => format!(
            "{address} is in use by another process (a running server?); choose another port with --set \
             {key}=PORT, or shift all ports with --port-offset N"
        ),
        _ => format!("cannot listen on {address} ({key}): {error}"),
    })
}

/// URL of the status pages at `listener`.
pub(crate) fn pages_url(server: &ServerName, listener: Option<&dyn Listener>) -> Option<String> {
    listener.map(|listener| Peers::address(server, listener.local_addr().port()) + "/")
}

pub(crate) fn port_of(listener: Option<&dyn Listener>) -> u16 {
    listener.map_or(0, |listener| listener.local_addr().port())
}

/// Ends the process because it must not continue: for example, its write-ahead log failed. The
/// acknowledged writes are on disk, and are replayed later. If the process continued, it could
/// acknowledge writes that are not durable.
pub(crate) fn end_process(why: &str) {
    logging::print_fatal(&format!("exiting: {why}"));
    std::process::exit(1);
}
