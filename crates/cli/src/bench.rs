//! `grampus bench`: benchmarks a server. It speaks HBase's protocol, so it can also benchmark
//! HBase.
//!
//! * `workload`: the operations; `rows`: the table's rows; `table`: the table;
//! * `load`: concurrency and call rate; `tally`: counters; `process`: resources that the server
//!   used;
//! * `report`, `plot`: results; `progress`: the progress bar.

mod load;
mod plot;
mod process;
mod progress;
mod report;
mod rows;
mod table;
mod tally;
mod workload;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use cell::schema::TableName;
use clap::Args;
use client::{Client, ClientOptions, ClusterKey};
use rpc::client::{ConnectOptions, Connection};

use load::Load;
use report::Measurement;
use rows::Rows;
use workload::{ECHO_LEN_MAX, Hot, Plan, Target};

pub use process::{Process, Usage};
pub use progress::{Measure, Progress};
pub use table::settle;
pub use workload::Workload;

/// Rows per call when the table is loaded.
const LOAD_BATCH: u64 = 1_000;
/// Clients that load the table.
const LOAD_CLIENTS: u64 = 4;
/// Calls in flight per client when a rate is given. A due call starts late only if this many are
/// unanswered.
const RATE_IN_FLIGHT: u64 = 64;

/// Options of `grampus bench`.
#[derive(Debug, Clone, Args)]
pub struct BenchArguments {
    /// Operations to measure; several are measured in sequence
    #[arg(required = true, value_name = "WORKLOAD")]
    pub workloads: Vec<Workload>,
    /// Number of rows in the table
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub rows: u64,
    /// Size of a value in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub value_size: u32,
    /// Number of concurrent clients; comma-separated numbers are measured in sequence
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "10", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub clients: Vec<u64>,
    /// Calls that each client keeps in flight [default: 1; with --rate: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub in_flight: Option<u64>,
    /// Connections that the clients share [default: one per client]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub connections: Option<u64>,
    /// Calls per second of all clients together, regardless of response times
    ///
    /// By default, a client sends its next call when the previous one is answered. With a rate, the
    /// latency of a call is measured from the time it was due.
    #[arg(long, value_name = "CALLS", value_parser = rate)]
    pub rate: Option<f64>,
    /// Rows per call, for sequential and random reads and writes, and for echo
    #[arg(long, value_name = "ROWS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub batch: u64,
    /// Maximum rows per scan response
    #[arg(long, value_name = "ROWS", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=2_147_483_647))]
    pub caching: u32,
    /// Filter selectivity in tenths (0 = nothing passes, 10 = everything)
    #[arg(long, value_name = "TENTHS", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=10))]
    pub returned: u8,
    /// Read and write the first N rows more often than others (see --hot-percent)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub hot_rows: Option<u64>,
    /// Percentage of random rows that are among the first --hot-rows rows
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub hot_percent: u8,
    /// Read without adding blocks to the server's cache
    #[arg(long)]
    pub uncached: bool,
    /// Duration of a measurement; sequential workloads instead read or write every row once
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    pub seconds: f64,
    /// Duration of the load before the measurement starts; sequential workloads have none
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    pub warm_up: f64,
    /// Recreate, fill and compact the table first
    #[arg(long)]
    pub load: bool,
    /// Name of the table
    #[arg(long, value_name = "NAME", default_value = "TestTable")]
    pub table: String,
    /// Number of regions, if the table is created
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub regions: u64,
    /// Attribute of the column family, for example COMPRESSION=SNAPPY; may be repeated
    ///
    /// It applies only if the table is created.
    #[arg(long, value_name = "NAME=VALUE", value_parser = attribute)]
    pub attribute: Vec<(String, String)>,
    /// Process ID of the server, to report its CPU time per row and its memory
    ///
    /// The server must run on this machine.
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<u32>,
    /// Address of an echo server, for the echo workloads
    #[arg(long, value_name = "IP:PORT")]
    pub echo: Option<SocketAddr>,
    /// Append the results to FILE, one line of JSON per run
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Plot the results to FILE, as SVG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// ZooKeeper servers of the cluster, separated by commas; a parent znode other than `/hbase` is
    /// appended as `:/parent`
    #[arg(long, value_name = "HOST:PORT", env = "GRAMPUS_ZOOKEEPER", default_value = "127.0.0.1:2181")]
    pub zookeeper: ClusterKey,
    /// Add N to the ZooKeeper port, for a server that was started with the same option
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port_offset: u16,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_string())?;
    let is_sane = (0.0..=86_400.0).contains(&seconds);
    is_sane.then_some(seconds).ok_or_else(|| "not between 0 and 86400".into())
}

fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "not a number".to_string())?;
    let is_sane = (0.1..=10_000_000.0).contains(&rate);
    is_sane.then_some(rate).ok_or_else(|| "not between 0.1 and 10000000".into())
}

/// Parses `NAME=VALUE`, an attribute of a column family.
///
/// # Errors
/// A message for the user.
pub fn attribute(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, for example COMPRESSION=SNAPPY")?;
    Ok((name.to_string(), value.to_string()))
}

/// Runs the benchmark and prints the results.
///
/// # Errors
/// A one-line message for the user: the server's error, or a file that cannot be written.
pub async fn bench(env: Env, arguments: &BenchArguments) -> Result<(), String> {
    let bench = Bench::new(env, arguments)?;
    if arguments.load {
        bench.load().await?;
    }
    let mut measurements = Vec::new();
    for workload in &arguments.workloads {
        for clients in &arguments.clients {
            let measurement = bench.measure(*workload, *clients).await?;
            if let Some(file) = &arguments.json {
                append(file, &format!("{}\n", measurement.json()))?;
            }
            measurements.push(measurement);
        }
    }
    println!("{}", report::table(&measurements));
    match &arguments.plot {
        Some(file) => write(file, &plot::svg("grampus bench", &measurements)?),
        None => Ok(()),
    }
}

/// A benchmark and its parsed options.
struct Bench<'a> {
    env: Env,
    arguments: &'a BenchArguments,
    cluster: ClusterKey,
    table: TableName,
    rows: Rows,
    server: Option<Process>,
}

impl Bench<'_> {
    fn new(env: Env, arguments: &BenchArguments) -> Result<Bench<'_>, String> {
        let server = arguments.server_pid.map(|pid| Process { pid });
        // Fail now, and not after the table is loaded.
        server.map(Process::usage).transpose()?;
        let hot_rows_max = arguments.rows - u64::from(arguments.hot_percent < 100);
        if let Some(hot_rows) = arguments.hot_rows.filter(|hot_rows| *hot_rows > hot_rows_max) {
            return Err(format!("--hot-rows {hot_rows} leaves no other rows of --rows {}", arguments.rows));
        }
        Ok(Bench {
            env,
            arguments,
            cluster: arguments.zookeeper.clone().with_port_offset(arguments.port_offset)?,
            table: TableName::parse(&arguments.table).map_err(|error| error.to_string())?,
            rows: Rows { count: arguments.rows, value_len: arguments.value_size as usize },
            server,
        })
    }

    fn client(&self) -> Client {
        Client::new(
            self.env.clone(),
            self.cluster.registry(),
            ClientOptions { class: load::THREADS, ..ClientOptions::default() },
        )
    }

    async fn targets(&self, workload: Workload, connections: u64) -> Result<Vec<Arc<Target>>, String> {
        let mut targets = Vec::new();
        for _ in 0..connections {
            targets.push(Arc::new(match workload {
                echo if echo.is_echo() => Target::Echo(self.echo().await?),
                _ => Target::Table(self.client().table(self.table.clone())),
            }));
        }
        Ok(targets)
    }

    async fn echo(&self) -> Result<Connection, String> {
        let address =
            self.arguments.echo.ok_or("echo needs the address of an echo server: --echo IP:PORT")?;
        let host = address.ip().to_string();
        let options = ConnectOptions { class: load::THREADS, ..ConnectOptions::for_user("bench") };
        let connected = Connection::connect(&self.env, &host, address.port(), "Echo", &options);
        connected.await.map_err(|error| error.to_string())
    }

    /// Recreates, fills and compacts the table.
    async fn load(&self) -> Result<(), String> {
        let client = self.client();
        let BenchArguments { regions, attribute, .. } = self.arguments;
        let created = table::create(&client, &self.table, self.rows, *regions, attribute).await;
        created.map_err(|error| format!("table {} cannot be created: {error}", self.table))?;
        let load =
            Load { clients: LOAD_CLIENTS, in_flight: 1, rate: None, warm_up: Duration::ZERO, length: None };
        let plan = Plan { batch: LOAD_BATCH, ..self.plan(Workload::SequentialWrite) };
        self.run("filling the table", plan, load).await?;
        let settled = table::settle(&self.env, &client, &self.table).await;
        settled.map_err(|error| format!("table {} cannot be compacted: {error}", self.table))
    }

    async fn measure(&self, workload: Workload, clients: u64) -> Result<Measurement, String> {
        let arguments = self.arguments;
        let length = (!workload.is_once()).then(|| Duration::from_secs_f64(arguments.seconds));
        let default_in_flight = if arguments.rate.is_some() { RATE_IN_FLIGHT } else { 1 };
        let load = Load {
            clients,
            in_flight: arguments.in_flight.unwrap_or(default_in_flight),
            rate: arguments.rate,
            warm_up: length.map_or(Duration::ZERO, |_| Duration::from_secs_f64(arguments.warm_up)),
            length,
        };
        if workload.makes_rows() {
            self.create_missing().await?;
        }
        let plan = self.plan(workload);
        let echo_len = plan.echo_len();
        if echo_len > ECHO_LEN_MAX {
            return Err(format!(
                "an echo server accepts {ECHO_LEN_MAX} bytes per call; --batch and --value-size need {echo_len}"
            ));
        }
        self.run(&format!("{workload}, {clients} clients"), plan, load).await
    }

    /// Creates the table if it does not exist.
    async fn create_missing(&self) -> Result<(), String> {
        let client = self.client();
        let describe = |error: client::Error| format!("table {}: {error}", self.table);
        if client.admin().table_exists(&self.table).await.map_err(describe)? {
            return Ok(());
        }
        let BenchArguments { regions, attribute, .. } = self.arguments;
        table::create(&client, &self.table, self.rows, *regions, attribute).await.map_err(describe)
    }

    fn plan(&self, workload: Workload) -> Plan {
        let BenchArguments { batch, returned, caching, .. } = *self.arguments;
        let batch = if workload.is_batched() { batch } else { 1 };
        let percent = u64::from(self.arguments.hot_percent);
        let hot = self.arguments.hot_rows.map(|rows| Hot { rows, percent });
        Plan {
            workload,
            rows: self.rows,
            batch,
            returned,
            caching,
            hot,
            cache_blocks: !self.arguments.uncached,
        }
    }

    async fn run(&self, what: &str, plan: Plan, load: Load) -> Result<Measurement, String> {
        let measure = match load.length {
            Some(length) => Measure::Time(load.warm_up + length),
            None => Measure::Rows(self.rows.count),
        };
        let progress = Progress::new(what.to_string(), measure);
        let connections = self.arguments.connections.unwrap_or(load.clients).min(load.clients);
        let targets = self.targets(plan.workload, connections).await?;
        let outcome =
            load::run(&self.env, &targets, &Arc::new(plan.clone()), &load, self.server, &progress).await;
        progress.clear();
        let outcome = outcome.map_err(|error| format!("{what}: {error}"))?;
        Ok(Measurement { plan, load, outcome })
    }
}

#[allow(clippy::disallowed_methods, reason = "a file of the user's, not of the store's")]
fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}

fn append(file: &Path, text: &str) -> Result<(), String> {
    use std::io::Write;
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(file);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| format!("{}: {error}", file.display()))
}
