//! `grampus regionserver`: a region server of a cluster. See [`roles::region_server`].

use std::sync::Arc;
use std::time::Duration;

use base::env::Listener;
use console::{Identity, Peers, beans};
use os::service_manager;
use regionserver::{Lease, RegionServer, RegionServerParts};
use roles::Member;
use roles::cluster_id::Role;
use roles::member::wait_for_cluster;
use roles::region_server::{active_master, quota_reader, register, stop_with_cluster};
use tracing::info;
use wire::service::{RegionServerStatusService, Remote};
use zk::Coordinator;

use super::exit_reporter::ExitReporter;
use super::name::server_name;
use super::session;
use super::starting::Starting;
use super::{DRAIN_LIMIT, check_cluster_id};
use crate::arguments::ServerArguments;
use crate::data::{DataDirectory, Users};
use crate::host::{Host, end_process, listen, pages_url, port_of};
use crate::output::print_line;
use crate::settings::{Limits, region_server_options};
use crate::signals::Stop;
use crate::standalone::Process;
use crate::watchdog::{Probe, Watchdog};

/// Time for closing regions at a stop. Until then, they are open nowhere else.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);

/// Runs a region server until a stop is requested.
///
/// # Errors
/// One line that states why it cannot run.
pub fn run(arguments: &ServerArguments) -> Result<(), String> {
    let process = Process::start(arguments)?;
    os::block_on(serve(process))
}

async fn serve(process: Process) -> Result<(), String> {
    let Process { env, runtimes, config, sinks, open_files_max } = process;
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
    let rest_listener = crate::rest::bind(&env, &config).await?;
    let thrift_listeners = crate::thrift::bind(&env, &config).await?;
    let (host, key) = (config.region_server_host.as_deref(), "hbase.regionserver.ipc.address");
    let name = server_name(&env, &config, host, &*listener, key)?;
    let names = session::names(&config);
    let info_port = port_of(page_listener.as_deref());
    let peers = Peers { master: None, region_server: pages_url(&name, page_listener.as_deref()) };
    let listener: Arc<dyn Listener> = Arc::from(listener);
    let starting = Starting::begin((&env, &config, &limits), &name, &listener, page_listener);
    let ensemble = session::open(&env, &config).await?;
    let coordinator: Arc<dyn Coordinator> = ensemble.clone();
    // They find the active master and the region servers by themselves, when these serve.
    crate::rest::serve(&env, &config, open_files_max, (&coordinator, &names), rest_listener)?;
    crate::thrift::serve(&env, &config, open_files_max, (&coordinator, &names), thrift_listeners);
    starting.wait_for("the active master");
    wait_for_cluster(&env, &*coordinator, &names).await?;
    starting.wait_for("the root directory");
    let reserve = format!("{},{}", name.host, name.port);
    let mut data = DataDirectory::open(&env, &config, Users::Cluster(&reserve)).await?;
    let member = Member {
        env: env.clone(),
        fs: data.fs.clone(),
        root: data.root.clone(),
        coordinator: coordinator.clone(),
        names: names.clone(),
        name: name.clone(),
        info_port,
        end_process: Arc::new(end_process),
    };
    starting.wait_for("the active master");
    check_cluster_id(&member, &mut data, Role::RegionServer).await?;
    let master: Arc<dyn RegionServerStatusService> =
        Arc::new(Remote(active_master(&env, &coordinator, &names)));
    let alive = register(&member, &*master).await?;
    let exit_reporter = if alive.is_none() { ExitReporter::start(&config, &name) } else { None };
    starting.wait_for("the root directory");
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
        second_level_cache: crate::second_level_cache::open(&env, &config).await,
        cluster_id: data.cluster_id.clone(),
        foreign_files: crate::foreign_files::open(&env, &config)?,
        cluster_writer: Some(roles::region_server::cluster_writer(&env, coordinator.clone(), &names)),
        file_moves: None,
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
        peers,
        accepts_internal_calls: true,
    };
    let rpc = host.region_server_rpc(&server);
    let own_address = listener.local_addr();
    rpc.serve(Box::new(listener));
    let metrics = Arc::new(beans::region_server::beans(&env, &server, &rpc, &host.identity));
    starting.end(|| host.region_server_pages(&server, &rpc, metrics.clone()));
    drop(host);
    server.report_fatal_errors_to(master.clone());
    server.join(master);
    sinks.start(&env, vec![("RegionServer", metrics)]);
    let on_shutdown = stop.clone();
    stop_with_cluster(&env, coordinator, &names, Arc::new(move |why| on_shutdown.request(why)));
    let stop_signal = stop.listen().map_err(|error| format!("cannot wait for signals: {error}"))?;
    print_line!("grampus {} region server {name} is ready after {} ms", env!("CARGO_PKG_VERSION"), {
        (env.clock.monotonic() - started).as_millis()
    });
    service_manager::send_state(service_manager::READY);
    let watchdog = Watchdog::start(&env, runtimes, vec![Probe::RegionServer(own_address)]);
    let reason = stop_signal.wait().await;
    watchdog.enter_stop();
    service_manager::send_state(service_manager::STOPPING);
    print_line!("stopping ({reason}): flushing memstores");
    server.flush_while_serving().await;
    let stopped = server.stop_within(CLOSE_LIMIT).await;
    env.timeout(DRAIN_LIMIT, rpc.stop()).await;
    // The master opens the regions elsewhere when the session ends. No region is open here,
    // and the lease refuses late responses.
    ensemble.close().await;
    rpc.stop().await;
    drop(exit_reporter);
    info!("stopped");
    stopped
}
