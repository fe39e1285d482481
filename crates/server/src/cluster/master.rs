//! `grampus master`: a master of a cluster.
//!
//! Several masters may run. One of them is elected and active; the others wait. A master that loses
//! its session or its znode ends immediately. Its successor first fences its logs, so that it can
//! journal nothing any more, and then finishes its procedures.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base::env::{Env, Listener, TaskClass};
use cell::region::ServerName;
use console::{Identity, Peers, StandbyPages};
use layout::RootDir;
use master::store::{MasterStore, fence_earlier_masters};
use master::{Cluster, Master, MasterParts};
use rpc::Service;
use tracing::{info, warn};
use zk::Coordinator;
use zk::coordinator::{Mode, publish};
use zk::election::Election;
use zk::servers::ServerTracker;

use super::region_server::server_name;
use super::remote::{RPC_TIMEOUT, RemoteServers};
use super::standby::Standby;
use super::watchdog::ActiveMasterPages;
use super::{session, watchdog};
use crate::arguments::ServerArguments;
use crate::data::{DataDirectory, Users};
use crate::notify;
use crate::roles::{Host, end_process, listen, pages_url, port_of};
use crate::settings::{Limits, chore_options, on_damage};
use crate::signals::Stop;
use crate::standalone::Process;

/// The services of a master that exist before it is active.
const SERVICES: [&str; 3] = ["MasterService", "RegionServerStatusService", "AdminService"];
/// The pause before another attempt to read the live region servers.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Runs a master until a stop is requested.
///
/// # Errors
/// One line that states why it cannot run.
pub fn run(arguments: &ServerArguments) -> Result<(), String> {
    let process = Process::start(arguments)?;
    os::block_on(serve(process))
}

async fn serve(process: Process) -> Result<(), String> {
    let Process { env, config, sinks, open_files_max } = process;
    let limits = Limits::from_config(&config, open_files_max);
    let listener = listen(&env, config.master_address, config.master_port, "hbase.master.port").await?;
    let page_listener = match config.master_info_port {
        Some(port) => Some(listen(&env, config.master_info_address, port, "hbase.master.info.port").await?),
        None => None,
    };
    let name = server_name(&env, config.master_host.as_deref(), &*listener);
    let info_port = port_of(page_listener.as_deref());
    let names = session::names(&config);
    let ensemble = session::open(&env, &config).await?;
    let coordinator: Arc<dyn Coordinator> = ensemble.clone();
    let stop = Stop::new();
    let stop_signal = stop.listen().map_err(|error| format!("cannot wait for signals: {error}"))?;
    let mut stop_reason = std::pin::pin!(stop_signal.wait());
    let data =
        DataDirectory::open(&env, &config, Users::Cluster(&format!("{},{}", name.host, name.port))).await?;
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
        peers: Peers { master: pages_url(&name, page_listener.as_deref()), region_server: None },
        accepts_internal_calls: true,
    };
    let active_master = ActiveMasterPages::default();
    let pages = page_listener.map(|listener| serve_pages(&host, &name, listener, &active_master));
    let _alive = watchdog::mark_alive(&*data.fs, &data.root, &name).await?;
    let standby = SERVICES.map(Standby::new);
    let mut services: Vec<Arc<dyn Service>> = vec![host.client_meta()];
    services.extend(standby.iter().map(|service| service.clone() as Arc<dyn Service>));
    let rpc = host.rpc_server("Master", &name.host, services, None);
    rpc.serve(listener);

    let election = Arc::new(Election::new(coordinator.clone(), &env, names.clone(), name.clone(), info_port));
    println!("grampus {} master {name} waits for its election", env!("CARGO_PKG_VERSION"));
    notify::send_state(notify::READY);
    let elected = tokio::select! {
        elected = election.win() => elected.map_err(|error| format!("the election failed: {error}")),
        () = watchdog::watch_active_master(&env, &*data.fs, &data.root, &*coordinator, &names, &active_master) => Ok(()),
        reason = &mut stop_reason => {
            println!("stopping ({reason})");
            election.resign().await;
            ensemble.close().await;
            return Ok(());
        }
    };
    elected?;
    info!(%name, "this master is active");
    end_process_when_lost(&env, election.clone());

    let started = env.clock.monotonic();
    let store = open_store(&env, &config, &data, &name).await?;
    let active_since_ms = store
        .become_active(env.clock.now_ms())
        .await
        .map_err(|error| format!("cannot write master:store: {error}"))?;
    let mut tracker = ServerTracker::new(coordinator.clone(), &names);
    let live = tracker.live().await.map_err(|error| format!("cannot read the region servers: {error}"))?;
    watchdog::delete_unused(&*data.fs, &data.root, &live).await;
    let on_stop = stop.clone();
    let master = Master::new(MasterParts {
        env: env.clone(),
        fs: data.fs.clone(),
        root: data.root.clone(),
        store: store.region().clone(),
        cluster: Some(Cluster { live: living(&data, &live).await, active_since_ms }),
        connections: Arc::new(RemoteServers::new(env.clone(), RPC_TIMEOUT)),
        coordinator: coordinator.clone(),
        names: names.clone(),
        server_name: name.clone(),
        info_port,
        cluster_id: data.cluster_id.clone(),
        quotas_enabled: config.quotas_enabled,
        on_stop: Arc::new(move |why| on_stop.request(why)),
        chores: chore_options(&config, &data.disk),
    });
    for service in host.master_services(&master) {
        if let Some(standby) = standby.iter().find(|standby| standby.name() == service.name()) {
            standby.activate(service);
        }
    }
    let metrics = Arc::new(console::beans::master::beans(&env, &master, &rpc, &host.identity));
    if let Some(pages) = pages {
        pages.activate(host.master_pages(&master, &rpc, metrics.clone()));
    }
    drop(host);
    sinks.start(&env, vec![("Master", metrics)]);
    let failed = |error: &dyn std::fmt::Display| format!("cannot start: {error}");
    // The running cluster: region servers stop when this znode is deleted.
    let running = zk::payload::running(&format!("master:{}", name.port), &*env.random, env.clock.now_ms());
    publish(&*coordinator, &names.running(), running, Mode::Persistent)
        .await
        .map_err(|error| failed(&error))?;
    master.publish_cluster_id().await.map_err(|error| failed(&error))?;
    follow_region_servers(&env, &master, tracker, live);
    watchdog::watch_region_servers(
        &env,
        data.fs.clone(),
        data.root.clone(),
        Arc::downgrade(&master),
        coordinator.clone(),
        names.clone(),
    );
    let initialized = tokio::select! {
        initialized = master.initialize() => Some(initialized),
        // Without region servers, the initialization does not end.
        reason = &mut stop_reason => {
            println!("stopping ({reason})");
            None
        }
    };
    if let Some(initialized) = initialized {
        initialized.map_err(|error| failed(&error))?;
        let took = env.clock.monotonic() - started;
        println!(
            "grampus {} master {name} is active after {} ms",
            env!("CARGO_PKG_VERSION"),
            took.as_millis()
        );
        println!("stopping ({})", stop_reason.await);
    }
    notify::send_state(notify::STOPPING);
    rpc.stop().await;
    let closed = store.close().await;
    election.resign().await;
    ensemble.close().await;
    closed.map_err(|error| format!("cannot flush master:store: {error}; its log has the edits"))
}

/// Starts the status pages of a backup master.
fn serve_pages(
    host: &Host<'_>,
    name: &ServerName,
    listener: Box<dyn Listener>,
    active: &ActiveMasterPages,
) -> Arc<StandbyPages> {
    let metrics = Arc::new(console::beans::master::backup_beans(host.env, name, &host.identity));
    let active = active.clone();
    let pages = Arc::new(StandbyPages::new(host.config, name, metrics, Box::new(move || active.url())));
    host.serve_pages(listener, pages.clone());
    pages
}

/// Those of the servers with sessions whose processes have not ended.
async fn living(data: &DataDirectory, servers: &BTreeSet<ServerName>) -> Vec<ServerName> {
    let mut living = Vec::with_capacity(servers.len());
    for server in servers {
        if !watchdog::has_ended(&*data.fs, &data.root, server).await {
            living.push(server.clone());
        }
    }
    living
}

/// Opens `master:store` after fencing the logs of all earlier masters.
async fn open_store(
    env: &Env,
    config: &base::config::Config,
    data: &DataDirectory,
    name: &ServerName,
) -> Result<MasterStore, String> {
    let (fs, root): (_, &RootDir) = (&data.fs, &data.root);
    let dead = fence_earlier_masters(&**fs, root, name).await;
    let dead = dead.map_err(|error| format!("cannot fence the logs of earlier masters: {error}"))?;
    let on_failure = |error: &wal::Error| {
        end_process(&format!("the write-ahead log of the master failed: {error}"));
    };
    MasterStore::open(env, fs, root, name, &dead, on_damage(config), Arc::new(on_failure))
        .await
        .map_err(|error| format!("cannot open master:store: {error}"))
}

/// Ends the process when this master is no longer active.
fn end_process_when_lost(env: &Env, election: Arc<Election>) {
    env.spawn(TaskClass::Service, async move {
        election.lost().await;
        end_process("this master is no longer active");
    });
}

/// Starts a task that expires region servers whose sessions have ended.
fn follow_region_servers(
    env: &Env,
    master: &Arc<Master>,
    mut tracker: ServerTracker,
    mut seen: BTreeSet<ServerName>,
) {
    let (master, clock) = (Arc::downgrade(master), env.clock.clone());
    env.spawn(TaskClass::Service, async move {
        loop {
            match tracker.live().await {
                Ok(live) => {
                    let Some(master) = master.upgrade() else { return };
                    for server in seen.difference(&live) {
                        master.expire(server, "its session with ZooKeeper has ended").await;
                    }
                    drop(master);
                    seen = live;
                    if tracker.changed().await.is_ok() {
                        continue;
                    }
                }
                Err(zk::Error::SessionExpired) => return,
                Err(error) => warn!(%error, "cannot read the live region servers; retrying"),
            }
            clock.sleep(RETRY_PAUSE).await;
        }
    });
}
