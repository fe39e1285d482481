//! `grampus bench`: puts load on a server and measures it; HBase itself, if one likes, for it speaks HBase's protocol.
//!
//! * `workload`: what is asked; `rows`: the table's rows; `table`: the table itself;
//! * `load`: how many ask at once, or how often; `tally`: what is counted; `process`: what the server used meanwhile;
//! * `report`, `plot`: what came out; `progress`: how far it is.

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
use client::{Client, ClientOptions, Registry};
use rpc::client::{ConnectOptions, Connection};

use load::Load;
pub(crate) use process::Process;
pub(crate) use progress::{Measure, Progress};
use report::Measurement;
use rows::Rows;
use workload::{Hot, Peer, Plan, QUESTION_LEN_MAX};

pub(crate) use table::settle;
pub use workload::Workload;

/// Rows of a call when the table is filled.
const LOAD_BATCH: u64 = 1_000;
/// Clients that fill the table.
const LOAD_CLIENTS: u64 = 4;
/// Calls under way for each client where a rate is given: so many may wait before calls are late for want of a caller.
const RATE_IN_FLIGHT: u64 = 64;

/// What to measure.
#[derive(Debug, Clone, Args)]
pub struct BenchArguments {
    /// What to ask of the server; several are measured one behind the other
    #[arg(required = true, value_name = "WORKLOAD")]
    pub workloads: Vec<Workload>,
    /// Rows of the table
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub rows: u64,
    /// Bytes of a value
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub value_size: u32,
    /// Clients that ask at the same time; several numbers with commas between them are measured one behind the other
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "10", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub clients: Vec<u64>,
    /// Calls that each client has under way at once [default: 1; with --rate 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub in_flight: Option<u64>,
    /// Connections that the clients share [default: one for each client]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub connections: Option<u64>,
    /// Calls a second of all clients together, however fast answers come [default: the next when the last is answered]
    #[arg(long, value_name = "CALLS", value_parser = rate)]
    pub rate: Option<f64>,
    /// Rows of one call, for reads and writes of rows
    #[arg(long, value_name = "ROWS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub batch: u64,
    /// Rows of one answer to a scan at most
    #[arg(long, value_name = "ROWS", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=2_147_483_647))]
    pub caching: u32,
    /// Tenths of the rows that filters let pass
    #[arg(long, value_name = "TENTHS", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=10))]
    pub returned: u8,
    /// Ask of the first N rows more often than of the others, as --hot-percent says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub hot_rows: Option<u64>,
    /// How many of a hundred rows chosen at random are of the first --hot-rows
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub hot_percent: u8,
    /// Ask the server not to keep in its cache what is read
    #[arg(long)]
    pub uncached: bool,
    /// How long to measure; sequential workloads end when each row had its turn
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    pub seconds: f64,
    /// How long to ask before it is measured
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    pub warm_up: f64,
    /// Make the table anew first, fill it and compact it
    #[arg(long)]
    pub load: bool,
    /// The table
    #[arg(long, value_name = "NAME", default_value = "TestTable")]
    pub table: String,
    /// Regions of the table, where it is made
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub regions: u64,
    /// An attribute of the table's family, where it is made, as COMPRESSION=SNAPPY; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = attribute)]
    pub attribute: Vec<(String, String)>,
    /// The server's process, if it runs on this machine: its processor time for each row is told then
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<u32>,
    /// Where an echo server answers, for the workload echo
    #[arg(long, value_name = "IP:PORT")]
    pub echo: Option<SocketAddr>,
    /// Write what was measured to FILE, a line of JSON for each run
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw what was measured into FILE, as SVG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Where the cluster's ZooKeeper answers; several servers with commas between them
    #[arg(long, value_name = "HOST:PORT", env = "GRAMPUS_ZOOKEEPER", default_value = "127.0.0.1:2181")]
    pub zookeeper: String,
    /// Add N to ZooKeeper's port, for a server that was started with the same option
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

pub(crate) fn attribute(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("there is no = in it")?;
    Ok((name.to_string(), value.to_string()))
}

/// Measures.
///
/// # Errors
/// One line for a person: what the server refused, or what cannot be written.
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

/// A benchmark that is set up.
struct Bench<'a> {
    env: Env,
    arguments: &'a BenchArguments,
    quorum: String,
    table: TableName,
    rows: Rows,
    server: Option<Process>,
}

impl Bench<'_> {
    fn new(env: Env, arguments: &BenchArguments) -> Result<Bench<'_>, String> {
        let server = arguments.server_pid.map(|pid| Process { pid });
        // Said now, and not when the table is filled.
        server.map(Process::usage).transpose()?;
        let hot_rows_max = arguments.rows - u64::from(arguments.hot_percent < 100);
        if let Some(hot_rows) = arguments.hot_rows.filter(|hot_rows| *hot_rows > hot_rows_max) {
            return Err(format!("--hot-rows {hot_rows} leaves no others of --rows {}", arguments.rows));
        }
        Ok(Bench {
            env,
            arguments,
            quorum: crate::quorum::with_offset(&arguments.zookeeper, arguments.port_offset)?,
            table: TableName::parse(&arguments.table).map_err(|error| error.to_string())?,
            rows: Rows { count: arguments.rows, value_len: arguments.value_size as usize },
            server,
        })
    }

    fn client(&self) -> Client {
        let registry = Registry::zookeeper(&self.quorum, "/hbase");
        Client::new(
            self.env.clone(),
            registry,
            ClientOptions { class: load::THREADS, ..ClientOptions::default() },
        )
    }

    async fn peers(&self, workload: Workload, connections: u64) -> Result<Vec<Arc<Peer>>, String> {
        let mut peers = Vec::new();
        for _ in 0..connections {
            peers.push(Arc::new(match workload {
                echo if echo.is_echo() => Peer::Echo(self.echo().await?),
                _ => Peer::Table(self.client().table(self.table.clone())),
            }));
        }
        Ok(peers)
    }

    async fn echo(&self) -> Result<Connection, String> {
        let address =
            self.arguments.echo.ok_or("echo needs the address of an echo server: --echo IP:PORT")?;
        let host = address.ip().to_string();
        let options = ConnectOptions { class: load::THREADS, ..ConnectOptions::for_user("bench") };
        let connected = Connection::connect(&self.env, &host, address.port(), "Echo", &options);
        connected.await.map_err(|error| error.to_string())
    }

    /// Makes the table anew, fills and compacts it.
    async fn load(&self) -> Result<(), String> {
        let client = self.client();
        let BenchArguments { regions, attribute, .. } = self.arguments;
        let made = table::make(&client, &self.table, self.rows, *regions, attribute).await;
        made.map_err(|error| format!("table {} cannot be made: {error}", self.table))?;
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
        let usual = if arguments.rate.is_some() { RATE_IN_FLIGHT } else { 1 };
        let load = Load {
            clients,
            in_flight: arguments.in_flight.unwrap_or(usual),
            rate: arguments.rate,
            warm_up: length.map_or(Duration::ZERO, |_| Duration::from_secs_f64(arguments.warm_up)),
            length,
        };
        if workload.makes_rows() {
            self.make_missing().await?;
        }
        let plan = self.plan(workload);
        let question_len = plan.question_len();
        if question_len > QUESTION_LEN_MAX {
            return Err(format!(
                "an echo server takes {QUESTION_LEN_MAX} bytes at once; --batch and --value-size ask for {question_len}"
            ));
        }
        self.run(&format!("{workload}, {clients} clients"), plan, load).await
    }

    /// The table, if it is not there.
    async fn make_missing(&self) -> Result<(), String> {
        let client = self.client();
        let said = |error: client::Error| format!("table {}: {error}", self.table);
        if client.admin().table_exists(&self.table).await.map_err(said)? {
            return Ok(());
        }
        let BenchArguments { regions, attribute, .. } = self.arguments;
        table::make(&client, &self.table, self.rows, *regions, attribute).await.map_err(said)
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
        let peers = self.peers(plan.workload, connections).await?;
        let outcome =
            load::run(&self.env, &peers, &Arc::new(plan.clone()), &load, self.server, &progress).await;
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
