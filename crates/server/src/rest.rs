//! HBase's REST API: in a server, if its port is configured, and `grampus rest`, a gateway to any
//! cluster.
#![deny(clippy::print_stdout, reason = "ends the server when the reader of its output has gone")]

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::config::Config;
use base::env::{Env, Listener, TaskClass};
use clap::Args;
use client::{Client, ClientOptions, ClusterKey, Registry};
use os::service_manager;
use rest::{CsrfOptions, Gateway, RestOptions};
use zk::Coordinator;
use zk::names::Names;

use crate::address::machine_name;
use crate::arguments::ServerArguments;
use crate::host::listen;
use crate::output::print_line;
use crate::signals::Stop;
use crate::standalone::Process;

const PORT_KEY: &str = "hbase.rest.port";
const BROWSERS_KEY: &str = "hbase.rest-csrf.browser-useragents-regex";
/// HBase's default port of a REST server.
const PORT: u16 = 8080;
/// Time limit of an operation including its retries. A client of the API would otherwise wait for
/// 20 minutes while a server is down.
const OPERATION_LIMIT: Duration = Duration::from_secs(120);
/// Bytes of one response to a scan. Each streamed scan holds at least one.
const SCAN_BYTES_MAX: u64 = 256 << 10;

/// Options of `grampus rest`.
#[derive(Debug, Args)]
pub struct RestArguments {
    /// ZooKeeper servers of the cluster, separated by commas; a parent znode other than `/hbase` is
    /// appended as `:/parent`
    #[arg(long, value_name = "HOST:PORT", env = "GRAMPUS_ZOOKEEPER", default_value = "127.0.0.1:2181")]
    pub zookeeper: ClusterKey,
    /// Port to serve on [default: hbase.rest.port, or 8080]
    #[arg(short = 'p', long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Address to serve on [default: 127.0.0.1]
    ///
    /// The gateway performs no authentication. Bind to other addresses only on a trusted network.
    #[arg(long, value_name = "ADDRESS", env = "GRAMPUS_BIND")]
    pub bind: Option<IpAddr>,
    /// Refuse all changes
    #[arg(long)]
    pub readonly: bool,
    /// Directory that contains hbase-site.xml; its keys have the same meaning as in HBase
    #[arg(long, value_name = "DIR", env = "HBASE_CONF_DIR")]
    pub config: Option<PathBuf>,
    /// Set a configuration option; may be repeated (docs/config.md lists all options)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Add N to the ZooKeeper port and to the port to serve on
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port_offset: u16,
}

/// Runs `grampus rest` until a stop is requested.
///
/// # Errors
/// One line that states why it cannot start.
pub fn run(arguments: &RestArguments) -> Result<(), String> {
    let cluster = arguments.zookeeper.clone().with_port_offset(arguments.port_offset)?;
    let process = Process::start(&ServerArguments {
        config: arguments.config.clone(),
        overrides: overrides(arguments),
        port_offset: Some(arguments.port_offset),
        ..ServerArguments::default()
    })?;
    os::block_on(serve_cluster(process, &cluster))
}

/// The options of the command line as configuration options.
fn overrides(arguments: &RestArguments) -> Vec<String> {
    let mut overrides = arguments.overrides.clone();
    overrides.extend(arguments.port.map(|port| format!("{PORT_KEY}={port}")));
    overrides.extend(arguments.bind.map(|address| format!("hbase.rest.host={address}")));
    overrides.extend(arguments.readonly.then(|| "hbase.rest.readonly=true".to_owned()));
    overrides
}

async fn serve_cluster(process: Process, cluster: &ClusterKey) -> Result<(), String> {
    let Process { env, config, open_files_max, .. } = process;
    let port = config.rest_port.unwrap_or(PORT.saturating_add(config.port_offset));
    let listener = listen(&env, config.rest_address, port, PORT_KEY).await?;
    let address = listener.local_addr();
    let stop = Stop::new();
    start(&env, &config, open_files_max, cluster.registry(), listener)?;
    let signal = stop.listen().map_err(|error| format!("cannot wait for signals: {error}"))?;
    print_line!("grampus rest {} is ready", env!("CARGO_PKG_VERSION"));
    print_line!("  REST       http://{address}/");
    print_line!("  ZooKeeper  {}", cluster.quorum());
    if !address.ip().is_loopback() {
        print_line!(
            "  WARNING: no authentication; every client that can reach this port can read and write."
        );
    }
    service_manager::send_state(service_manager::READY);
    let reason = signal.wait().await;
    service_manager::send_state(service_manager::STOPPING);
    print_line!("stopping ({reason})");
    Ok(())
}

/// Listens for the REST API, if it is configured.
///
/// # Errors
/// One line that states why, and what to change.
pub(crate) async fn bind(env: &Env, config: &Config) -> Result<Option<Box<dyn Listener>>, String> {
    match config.rest_port {
        Some(port) => Ok(Some(listen(env, config.rest_address, port, PORT_KEY).await?)),
        None => Ok(None),
    }
}

/// Serves the REST API of the cluster of this process on `listener`.
///
/// # Errors
/// One line that names an invalid option.
pub(crate) fn serve(
    env: &Env,
    config: &Config,
    open_files_max: u64,
    (coordinator, names): (&Arc<dyn Coordinator>, &Names),
    listener: Option<Box<dyn Listener>>,
) -> Result<(), String> {
    let Some(listener) = listener else { return Ok(()) };
    let registry = Registry::Coordinator { coordinator: coordinator.clone(), names: names.clone() };
    start(env, config, open_files_max, registry, listener)
}

fn start(
    env: &Env,
    config: &Config,
    open_files_max: u64,
    registry: Registry,
    listener: Box<dyn Listener>,
) -> Result<(), String> {
    let client_options = ClientOptions {
        user: "rest".into(),
        operation_timeout: OPERATION_LIMIT,
        scan_bytes_max: SCAN_BYTES_MAX,
        class: TaskClass::Connection,
        ..ClientOptions::default()
    };
    let client = Client::new(env.clone(), registry, client_options);
    let gateway = Gateway::new(env.clone(), client, options(config, open_files_max)?);
    env.spawn(TaskClass::Connection, rest::serve(env.clone(), listener, gateway));
    Ok(())
}

/// The options of the gateway.
///
/// # Errors
/// One line that names an invalid option.
fn options(config: &Config, open_files_max: u64) -> Result<RestOptions, String> {
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let memory = config.memory_parts(base::memory::limit_bytes()).requests / 4;
    Ok(RestOptions {
        read_only: config.rest_read_only,
        requests_max: config.rest_requests_max as usize,
        waiting_max: config.rest_waiting_max.map(bytes),
        idle_time: time_or_off(config.rest_idle_ms),
        fetch_rows: config.rest_fetch_rows,
        scanners_max: config.rest_scanners_max as usize,
        scanners_per_client_max: config.rest_scanners_per_client_max as usize,
        scanner_time: Duration::from_millis(config.rest_scanner_ms),
        allows_options: config.rest_allows_options,
        csrf: csrf(config)?,
        request_bytes_max: bytes(config.rest_request_bytes_max.min(memory / 4 * 3)),
        response_bytes_max: bytes(config.rest_response_bytes_max.min(memory / 4 * 3)),
        memory_bytes: bytes(memory),
        connections_max: config.rest_connections_max_of(open_files_max) as usize,
        hosts: hosts(config),
    })
}

/// A time limit. As in HBase, 0 is none.
pub(crate) fn time_or_off(ms: u64) -> Option<Duration> {
    (ms > 0).then(|| Duration::from_millis(ms))
}

/// The host names that requests to a gateway may use.
pub(crate) fn hosts(config: &Config) -> Vec<String> {
    let mut hosts = config.page_hosts();
    hosts.extend([&config.master_host, &config.region_server_host].into_iter().flatten().cloned());
    hosts.push(machine_name());
    hosts
}

fn csrf(config: &Config) -> Result<Option<CsrfOptions>, String> {
    let entries = |text: &str| -> Vec<String> {
        text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
    };
    if !config.rest_csrf {
        return Ok(None);
    }
    let browsers = entries(&config.rest_csrf_browsers);
    let browsers = browsers.iter().map(|text| regex::Regex::new(text)).collect::<Result<Vec<_>, _>>();
    let browsers = browsers.map_err(|error| config.refused(BROWSERS_KEY, error.to_string()).to_string())?;
    let ignored_methods = entries(&config.rest_csrf_ignored_methods);
    Ok(Some(CsrfOptions { header: config.rest_csrf_header.clone(), ignored_methods, browsers }))
}
