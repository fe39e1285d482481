//! `grampus master`: a master of a cluster. See [`roles::candidate`].

use std::sync::Arc;

use base::config::Config;
use base::env::{Env, Listener};
use cell::region::ServerName;
use console::{Identity, MasterPages, Peers, StandbyPages, StandbyState};
use engine::recovery::OnDamage;
use os::service_manager;
use roles::candidate::ReplayLogs;
use roles::cluster_id::Role;
use roles::remote::{RPC_TIMEOUT, RemoteServers};
use roles::{Candidate, Elected, MasterOptions, Member, SeenMaster};
use rpc::Service;
use tracing::{info, warn};
use zk::{Coordinator, Ensemble};

use super::exit_reporter::ExitReporter;
use super::name::server_name;
use super::session;
use super::{DRAIN_LIMIT, check_cluster_id};
use crate::arguments::ServerArguments;
use crate::data::{DataDirectory, Users};
use crate::host::{Host, end_process, listen, pages_url, port_of};
use crate::output::print_line;
use crate::settings::{Limits, chore_options, on_damage};
use crate::signals::Stop;
use crate::standalone::Process;
use crate::watchdog::{Probe, Watchdog};

/// Runs a master until a stop is requested.
///
/// # Errors
/// One line that states why it cannot run.
pub fn run(arguments: &ServerArguments) -> Result<(), String> {
    let process = Process::start(arguments)?;
    os::block_on(serve(process))
}

async fn serve(process: Process) -> Result<(), String> {
    let Process { env, runtimes, config, sinks, open_files_max } = process;
    let limits = Limits::from_config(&config, open_files_max);
    let listener = listen(&env, config.master_address, config.master_port, "hbase.master.port").await?;
    let page_listener = match config.master_info_port {
        Some(port) => Some(listen(&env, config.master_info_address, port, "hbase.master.info.port").await?),
        None => None,
    };
    let (host, key) = (config.master_host.as_deref(), "hbase.master.ipc.address");
    let name = server_name(&env, &config, host, &*listener, key)?;
    let address = listener.local_addr();
    let info_port = port_of(page_listener.as_deref());
    let names = session::names(&config);
    let ensemble = session::open(&env, &config).await?;
    let coordinator: Arc<dyn Coordinator> = ensemble.clone();
    let stop = Stop::new();
    let stop_signal = stop.listen().map_err(|error| format!("cannot wait for signals: {error}"))?;
    let mut stop_reason = std::pin::pin!(stop_signal.wait());
    let reserve = format!("{},{}", name.host, name.port);
    // This waits while the storage does not respond.
    let opening = DataDirectory::open(&env, &config, Users::Cluster(&reserve));
    let mut data = match unless_stopped(opening, &mut stop_reason).await {
        Ok(opened) => opened?,
        Err(reason) => return leave_unseen(&reason, &ensemble).await,
    };
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
    let check = check_cluster_id(&member, &mut data, Role::Master);
    match unless_stopped(check, &mut stop_reason).await {
        Ok(checked) => checked?,
        Err(reason) => return leave_unseen(&reason, &ensemble).await,
    }
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
    let candidate = Candidate::new(member).await?;
    let exit_reporter = match candidate.is_marked_alive() {
        true => None,
        false => ExitReporter::start(&config, &name),
    };
    let pages = page_listener.map(|listener| serve_pages(&host, &name, listener, candidate.seen_master()));
    let mut services: Vec<Arc<dyn Service>> = vec![host.client_meta()];
    services.extend(candidate.services());
    let rpc = host.rpc_server("Master", &name.host, services, None);
    rpc.serve(listener);

    print_line!("grampus {} master {name} waits for its election", env!("CARGO_PKG_VERSION"));
    service_manager::send_state(service_manager::READY);
    let watchdog = Watchdog::start(&env, runtimes, vec![Probe::Master(address)]);
    let stopped_because = match unless_stopped(candidate.win(), &mut stop_reason).await {
        Ok(elected) => match elected? {
            Elected::Active => None,
            Elected::ShutDown => Some("the cluster is shut down".to_string()),
        },
        Err(reason) => Some(reason),
    };
    if let Some(reason) = stopped_because {
        return leave(&reason, &watchdog, &candidate, &ensemble).await;
    }

    let started = env.clock.monotonic();
    let on_stop = stop.clone();
    let activation = candidate.activate(MasterOptions {
        cluster_id: data.cluster_id.clone(),
        remote_dirs: remote_dirs(&config),
        quotas_enabled: config.quotas_enabled,
        on_stop: Arc::new(move |why| on_stop.request(why)),
        connections: Arc::new(RemoteServers::new(env.clone(), RPC_TIMEOUT)),
        chores: chore_options(&config, &data.disk),
        replay_logs: replay_logs(&env, &data, on_damage(&config)),
    });
    // The leases of old logs, and the replay of logs, can take long.
    let active = match unless_stopped(activation, &mut stop_reason).await {
        Ok(active) => active?,
        Err(reason) => return leave(&reason, &watchdog, &candidate, &ensemble).await,
    };
    let metrics = Arc::new(console::beans::master::beans(&env, active.master(), &rpc, &host.identity));
    if let Some(pages) = pages {
        pages.activate(host.master_pages(active.master(), &rpc, metrics.clone()));
    }
    drop(host);
    sinks.start(&env, vec![("Master", metrics)]);
    let running = match unless_stopped(active.publish(), &mut stop_reason).await {
        Ok(running) => running?,
        Err(reason) => return leave(&reason, &watchdog, &candidate, &ensemble).await,
    };
    let initialized = tokio::select! {
        initialized = running.master().initialize() => Some(initialized),
        // Without region servers, the initialization does not end.
        reason = &mut stop_reason => {
            print_line!("stopping ({reason})");
            None
        }
    };
    if let Some(initialized) = initialized {
        initialized.map_err(|error| format!("cannot start: {error}"))?;
        let took = env.clock.monotonic() - started;
        print_line!(
            "grampus {} master {name} is active after {} ms",
            env!("CARGO_PKG_VERSION"),
            took.as_millis()
        );
        print_line!("stopping ({})", stop_reason.await);
    }
    watchdog.enter_stop();
    service_manager::send_state(service_manager::STOPPING);
    env.timeout(DRAIN_LIMIT, rpc.stop()).await;
    let closed = running.close().await;
    candidate.resign().await;
    ensemble.close().await;
    drop(exit_reporter);
    closed
}

/// The result of a step of the start, or the reason of a stop that is requested before its end. The
/// step is abandoned then, as by a crash.
async fn unless_stopped<T>(
    step: impl Future<Output = T>,
    stop: &mut (impl Future<Output = String> + Unpin),
) -> Result<T, String> {
    tokio::select! {
        done = step => Ok(done),
        reason = stop => Err(reason),
    }
}

/// Stops a master that does not take part in the election yet.
async fn leave_unseen(reason: &str, ensemble: &Ensemble) -> Result<(), String> {
    print_line!("stopping ({reason})");
    ensemble.close().await;
    Ok(())
}

/// Stops a master that does not serve yet.
async fn leave(
    reason: &str,
    watchdog: &Watchdog,
    candidate: &Candidate,
    ensemble: &Ensemble,
) -> Result<(), String> {
    watchdog.enter_stop();
    print_line!("stopping ({reason})");
    candidate.resign().await;
    ensemble.close().await;
    Ok(())
}

/// The URIs of the root directory and of the directory of logs if they are on HDFS.
fn remote_dirs(config: &Config) -> Vec<String> {
    let logs = config.wal_dir.as_ref().filter(|logs| **logs != config.root);
    let dirs = std::iter::once(&config.root).chain(logs);
    dirs.filter(|dir| dir.is_remote()).map(ToString::to_string).collect()
}

/// Puts the edits in all logs into store files.
fn replay_logs(env: &Env, data: &DataDirectory, on_damage: OnDamage) -> ReplayLogs {
    let (env, fs, root) = (env.clone(), data.fs.clone(), data.root.clone());
    Arc::new(move |master_store| {
        let (env, fs, root) = (env.clone(), fs.clone(), root.clone());
        Box::pin(async move {
            let replayed = ::adoption::replay_logs(&env, &fs, &root, on_damage, &master_store).await;
            let ::adoption::Replayed { regions, warnings } = replayed.map_err(|error| error.to_string())?;
            info!(regions, "replayed the logs of earlier runs");
            warnings.iter().for_each(|warning| warn!("{warning}"));
            Ok(())
        })
    })
}

/// Starts the status pages of a backup master, which become those of the active master later.
fn serve_pages(
    host: &Host<'_>,
    name: &ServerName,
    listener: Box<dyn Listener>,
    seen_master: SeenMaster,
) -> Arc<StandbyPages<MasterPages>> {
    let metrics = Arc::new(console::beans::master::backup_beans(host.env, name, &host.identity));
    let state = move || match seen_master.elected_ms() {
        Some(since_ms) => StandbyState::TakingOver { since_ms },
        None => {
            let seen = seen_master.get().filter(|(_, info_port)| *info_port != 0);
            let active_master = seen.map(|(master, info_port)| Peers::address(&master, info_port));
            StandbyState::Backup { active_master }
        }
    };
    let pages = Arc::new(StandbyPages::of_master(host.config, name, metrics, Box::new(state)));
    host.serve_pages(listener, pages.clone());
    pages
}
