//! HBase's Thrift services: in a server, if their ports are configured, and `grampus thrift` and
//! `grampus thrift2`, gateways to any cluster.
#![deny(clippy::print_stdout, reason = "ends the server when the reader of its output has gone")]

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::config::Config;
use base::env::{Env, Listener, TaskClass};
use clap::Args;
use client::{Client, ClientOptions, ClusterKey, Registry};
use os::service_manager;
use thrift::{Gateway, Service, ThriftOptions};
use zk::Coordinator;
use zk::names::Names;

use crate::arguments::ServerArguments;
use crate::host::listen;
use crate::output::print_line;
use crate::rest::{hosts, time_or_off};
use crate::signals::Stop;
use crate::standalone::Process;

const PORT_KEY: &str = "hbase.regionserver.thrift.port";
const PORT2_KEY: &str = "grampus.thrift2.port";
const ADDRESS_KEY: &str = "hbase.regionserver.thrift.ipaddress";
/// HBase's default port of a Thrift server, of either service.
const PORT: u16 = 9090;
/// Time limit of an operation including its retries. A client would otherwise wait for 20 minutes
/// while a server is down.
const OPERATION_LIMIT: Duration = Duration::from_secs(120);
/// Bytes of one response to a scan. Each open scanner holds at least one.
const SCAN_BYTES_MAX: u64 = 256 << 10;

/// Options of `grampus thrift` and `grampus thrift2`.
#[derive(Debug, Args)]
pub struct ThriftArguments {
    /// ZooKeeper servers of the cluster, separated by commas; a parent znode other than `/hbase` is
    /// appended as `:/parent`
    #[arg(long, value_name = "HOST:PORT", env = "GRAMPUS_ZOOKEEPER", default_value = "127.0.0.1:2181")]
    pub zookeeper: ClusterKey,
    /// Port to serve on [default: hbase.regionserver.thrift.port, or 9090]
    ///
    /// Clients may use framed, unframed or HTTP transports and the binary or the compact protocol.
    #[arg(short = 'p', long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Address to serve on [default: 127.0.0.1]
    ///
    /// The gateway performs no authentication. Bind to other addresses only on a trusted network.
    #[arg(short = 'b', long, value_name = "ADDRESS", env = "GRAMPUS_BIND")]
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

/// A port of a service.
pub(crate) struct ThriftListener {
    service: Service,
    listener: Box<dyn Listener>,
}

impl ThriftListener {
    /// The service's name for users, and the address.
    pub(crate) fn name_and_address(&self) -> (&'static str, SocketAddr) {
        (name_of(self.service), self.listener.local_addr())
    }
}

fn name_of(service: Service) -> &'static str {
    match service {
        Service::One => "Thrift 1",
        Service::Two => "Thrift 2",
    }
}

/// The option with the port of a service.
fn port_key(service: Service) -> &'static str {
    match service {
        Service::One => PORT_KEY,
        Service::Two => PORT2_KEY,
    }
}

/// Runs `grampus thrift` or `grampus thrift2` until a stop is requested.
///
/// # Errors
/// One line that states why it cannot start.
pub fn run(arguments: &ThriftArguments, service: Service) -> Result<(), String> {
    let cluster = arguments.zookeeper.clone().with_port_offset(arguments.port_offset)?;
    let process = Process::start(&ServerArguments {
        config: arguments.config.clone(),
        overrides: overrides(arguments, service),
        port_offset: Some(arguments.port_offset),
        ..ServerArguments::default()
    })?;
    os::block_on(serve_cluster(process, &cluster, service))
}

/// The options of the command line as configuration options.
fn overrides(arguments: &ThriftArguments, service: Service) -> Vec<String> {
    let key = port_key(service);
    let mut overrides = arguments.overrides.clone();
    overrides.extend(arguments.port.map(|port| format!("{key}={port}")));
    overrides.extend(arguments.bind.map(|address| format!("{ADDRESS_KEY}={address}")));
    overrides.extend(arguments.readonly.then(|| "hbase.thrift.readonly=true".to_owned()));
    overrides
}

async fn serve_cluster(process: Process, cluster: &ClusterKey, service: Service) -> Result<(), String> {
    let Process { env, config, open_files_max, .. } = process;
    let own = config.thrift2_port.filter(|_| service == Service::Two);
    let port = own.or(config.thrift_port).unwrap_or(PORT.saturating_add(config.port_offset));
    let listener = listen(&env, config.thrift_address, port, port_key(service)).await?;
    let address = listener.local_addr();
    let stop = Stop::new();
    start(&env, &config, open_files_max, cluster.registry(), ThriftListener { service, listener });
    let signal = stop.listen().map_err(|error| format!("cannot wait for signals: {error}"))?;
    let name = if service == Service::One { "thrift" } else { "thrift2" };
    print_line!("grampus {name} {} is ready", env!("CARGO_PKG_VERSION"));
    print_line!("  {}   {address}", name_of(service));
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

/// Listens for the Thrift services that are configured.
///
/// # Errors
/// One line that states why, and what to change.
pub(crate) async fn bind(env: &Env, config: &Config) -> Result<Vec<ThriftListener>, String> {
    let ports = [(Service::One, config.thrift_port), (Service::Two, config.thrift2_port)];
    let mut listeners = Vec::new();
    for (service, port) in ports {
        if let Some(port) = port {
            let listener = listen(env, config.thrift_address, port, port_key(service)).await?;
            listeners.push(ThriftListener { service, listener });
        }
    }
    Ok(listeners)
}

/// Serves Thrift for the cluster of this process on `listeners`.
pub(crate) fn serve(
    env: &Env,
    config: &Config,
    open_files_max: u64,
    (coordinator, names): (&Arc<dyn Coordinator>, &Names),
    listeners: Vec<ThriftListener>,
) {
    for listener in listeners {
        let registry = Registry::Coordinator { coordinator: coordinator.clone(), names: names.clone() };
        start(env, config, open_files_max, registry, listener);
    }
}

fn start(env: &Env, config: &Config, open_files_max: u64, registry: Registry, listener: ThriftListener) {
    let ThriftListener { service, listener } = listener;
    let client_options = ClientOptions {
        user: "thrift".into(),
        operation_timeout: OPERATION_LIMIT,
        scan_bytes_max: SCAN_BYTES_MAX,
        class: TaskClass::Connection,
        ..ClientOptions::default()
    };
    let client = Client::new(env.clone(), registry, client_options);
    let gateway = Gateway::new(env.clone(), client, options(config, open_files_max, service));
    env.spawn(TaskClass::Connection, thrift::serve(env.clone(), listener, gateway));
}

/// The options of a gateway.
fn options(config: &Config, open_files_max: u64, service: Service) -> ThriftOptions {
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let memory = config.memory_parts(base::memory::limit_bytes()).requests / 4;
    let message_bytes_max = memory / 4 * 3;
    ThriftOptions {
        service,
        read_only: config.thrift_read_only,
        calls_max: config.thrift_calls_max as usize,
        waiting_max: config.thrift_waiting_max as usize,
        idle_time: time_or_off(config.thrift_idle_ms),
        frame_bytes_max: bytes((u64::from(config.thrift_frame_mib_max) << 20).min(message_bytes_max)),
        request_bytes_max: bytes(config.thrift_request_bytes_max.min(message_bytes_max)),
        // The cells of a response exist twice: as they were read, and encoded.
        response_bytes_max: bytes(config.thrift_response_bytes_max.min(message_bytes_max / 2)),
        memory_bytes: bytes(memory),
        scanners_max: config.thrift_scanners_max as usize,
        scanners_per_client_max: config.thrift_scanners_per_client_max as usize,
        scanner_time: Duration::from_millis(config.scanner_lease_ms),
        connections_max: config.thrift_connections_max_of(open_files_max) as usize,
        hosts: hosts(config),
    }
}
