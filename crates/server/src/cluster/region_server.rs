//! `grampus regionserver`: a region server of a cluster.
//!
//! The order of its start: it waits for the active master, marks its process as alive, registers
//! with the master, publishes its znode, starts its logs, and then serves. A server registers
//! before it has logs, so that a master never finds logs of a server that it does not know.

use std::sync::Arc;
use std::time::Duration;

use base::env::{Env, Listener, TaskClass};
use cell::query::Scan;
use cell::region::ServerName;
use client::{Client, ClientOptions};
use console::{Identity, Peers};
use proto::exception::class;
use regionserver::{Lease, QuotaReader, RegionServer, RegionServerParts};
use tracing::{info, warn};
use wire::service::{RegionServerStatusService, Remote};
use zk::servers::{MasterTracker, register_region_server};
use zk::{Coordinator, Names};

use super::remote::{ActiveMaster, RPC_TIMEOUT};
use super::{session, watchdog};
use crate::address::advertised_host;
use crate::arguments::ServerArguments;
use crate::data::{DataDirectory, Users};
use crate::notify;
use crate::roles::{Host, end_process, listen, pages_url, port_of};
use crate::settings::{Limits, region_server_options};
use crate::signals::Stop;
use crate::standalone::Process;

/// The pause before another attempt to register.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Runs a region server until a stop is requested.
///
/// # Errors
/// One line that states why it cannot run.
pub fn run(arguments: &ServerArguments) -> Result<(), String> {
    let process = Process::start(arguments)?;
    os::block_on(serve(process))
}

async fn serve(process: Process) -> Result<(), String> {
    let Process { env, config, sinks, open_files_max } = process;
    let started = env.clock.monotonic();
    let limits = Limits::from_config(&config, open_files_max);
    let (address, port) = (config.region_server_address, config.region_server_port);
    let listener = listen(&env, address, port, "hbase.regionserver.port").await?;
    let page_listener = match config.region_server_info_port {
        Some(port) => {
            let address = config.region_server_info_address;
            Some(listen(&env, address, port, "hbase.regionserver.info.port").await?)
        }
        None => None,
    };
    let name = server_name(&env, config.region_server_host.as_deref(), &*listener);
    let names = session::names(&config);
    let ensemble = session::open(&env, &config).await?;
    let coordinator: Arc<dyn Coordinator> = ensemble.clone();
    session::wait_for_znode(&*coordinator, &names.hbaseid()).await?;
    session::wait_for_znode(&*coordinator, &names.running()).await?;
    let tracker = MasterTracker::new(coordinator.clone(), &names);
    let master = ActiveMaster::follow(&env, tracker, RPC_TIMEOUT);
    let master: Arc<dyn RegionServerStatusService> = Arc::new(Remote(MasterCaller(master)));
    let reserve = format!("{},{}", name.host, name.port);
    let data = DataDirectory::open(&env, &config, Users::Cluster(&reserve)).await?;
    let _alive = watchdog::mark_alive(&*data.fs, &data.root, &name).await?;
    register(&env, &*master, &name).await?;
    let info_port = port_of(page_listener.as_deref());
    register_region_server(&*coordinator, &names, &env, &name, info_port)
        .await
        .map_err(|error| format!("cannot publish the server in ZooKeeper: {error}"))?;
    let stop = Stop::new();
    let on_stop = stop.clone();
    let lease = ensemble.clone();
    let server = RegionServer::start(RegionServerParts {
        env: env.clone(),
        fs: data.fs.clone(),
        disk: data.disk.clone(),
        root: data.root.clone(),
        name: name.clone(),
        dead_log_dirs: Vec::new(),
        dead_log_records: Vec::new(),
        log_records: data.root.log_records_of(&name),
        info_port,
        lease: Lease::new(move || lease.is_valid()),
        quota_reader: Some(quota_reader(&env, coordinator.clone(), &names)),
        options: region_server_options(&config, &limits.memory),
        response_budget: limits.shared.response_budget().clone(),
        on_fatal: Arc::new(end_process),
        on_stop: Arc::new(move |why| on_stop.request(why)),
    })
    .await
    .map_err(|error| format!("cannot start the region server: {error}"))?;
    let host = Host {
        env: &env,
        config: &config,
        limits: &limits,
        sinks: &sinks,
        coordinator: &coordinator,
        names: &names,
        identity: Identity {
            cluster_id: data.cluster_id.clone(),
            zookeeper_quorum: config.zookeeper_quorum.clone(),
            memory: limits.memory,
            shared: limits.shared.clone(),
            sinks: sinks.count(),
            files: data.instruments.clone(),
        },
        peers: Peers { master: None, region_server: pages_url(&name, page_listener.as_deref()) },
        accepts_internal_calls: true,
    };
    let rpc = host.region_server_rpc(&server);
    rpc.serve(listener);
    let metrics = host.serve_region_server_pages(&server, &rpc, page_listener);
    drop(host);
    server.report_fatal_errors_to(master.clone());
    server.join(master);
    sinks.start(&env, vec![("RegionServer", metrics)]);
    stop_with_cluster(&env, coordinator.clone(), &names, stop.clone());
    let stop_signal = stop.listen().map_err(|error| format!("cannot wait for signals: {error}"))?;
    println!("grampus {} region server {name} is ready after {} ms", env!("CARGO_PKG_VERSION"), {
        (env.clock.monotonic() - started).as_millis()
    });
    notify::send_state(notify::READY);
    let reason = stop_signal.wait().await;
    notify::send_state(notify::STOPPING);
    println!("stopping ({reason}): flushing memstores");
    server.flush_while_serving().await;
    let stopped = server.stop().await;
    rpc.stop().await;
    // The master opens the regions elsewhere when the session ends.
    ensemble.close().await;
    info!("stopped");
    stopped
}

/// Reads `hbase:quota` as a client of the cluster.
fn quota_reader(env: &Env, coordinator: Arc<dyn Coordinator>, names: &Names) -> QuotaReader {
    let registry = client::Registry::Coordinator { coordinator, names: names.clone() };
    // The next period comes soon enough.
    let options = ClientOptions { retries_max: 3, ..ClientOptions::default() };
    let client = Client::new(env.clone(), registry, options);
    Arc::new(move || {
        let table = client.table(wire::quota::table_name());
        Box::pin(async move {
            match table.scan(Scan::default()).collect().await {
                Ok(rows) => Ok(rows.into_iter().flat_map(|row| row.cells).collect()),
                Err(error) if error.is_class(class::TABLE_NOT_FOUND) => Ok(Vec::new()),
                Err(error) => Err(error.to_string()),
            }
        })
    })
}

/// Requests a stop when the active master shuts the cluster down: it deletes the znode `running`.
fn stop_with_cluster(env: &Env, coordinator: Arc<dyn Coordinator>, names: &Names, stop: Stop) {
    let (path, clock) = (names.running(), env.clock.clone());
    env.spawn(TaskClass::Service, async move {
        loop {
            let changed = async {
                let mut watch = coordinator.watch(&path).await?;
                match coordinator.exists(&path).await? {
                    None => Ok(true),
                    Some(_) => watch.changed().await.map(|()| false),
                }
            };
            match changed.await {
                Ok(true) => return stop.request("the cluster is shutting down"),
                Ok(false) => {}
                Err(zk::Error::SessionExpired) => return,
                Err(_) => clock.sleep(RETRY_PAUSE).await,
            }
        }
    });
}

/// The name of the server that listens on a socket.
pub(super) fn server_name(env: &Env, host: Option<&str>, listener: &dyn Listener) -> ServerName {
    let address = listener.local_addr();
    ServerName {
        host: advertised_host(host, address.ip()),
        port: address.port(),
        start_code: env.clock.now_ms(),
    }
}

/// Registers with the active master. Repeats the attempt until the master answers.
async fn register(
    env: &Env,
    master: &dyn RegionServerStatusService,
    name: &ServerName,
) -> Result<(), String> {
    loop {
        match regionserver::register(env, master, name).await {
            Ok(()) => return Ok(()),
            Err(error) if is_final(&error) => {
                return Err(format!("the master refused this server: {error}"));
            }
            Err(error) => warn!(%error, "cannot register with the master; retrying"),
        }
        env.clock.sleep(RETRY_PAUSE).await;
    }
}

fn is_final(error: &proto::exception::JavaException) -> bool {
    error.do_not_retry || error.is(class::CLOCK_OUT_OF_SYNC) || error.is(class::YOU_ARE_DEAD)
}

/// The caller of the active master, which other tasks share.
struct MasterCaller(Arc<ActiveMaster>);

impl wire::service::Caller for MasterCaller {
    fn call(
        &self,
        service: &'static str,
        method: &'static str,
        param: bytes::Bytes,
        cells: bytes::Bytes,
    ) -> base::BoxFuture<'_, proto::exception::Answer<(bytes::Bytes, bytes::Bytes)>> {
        wire::service::Caller::call(&*self.0, service, method, param, cells)
    }
}
