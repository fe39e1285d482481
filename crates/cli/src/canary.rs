//! `grampus canary`: probes every part of a cluster and reports failures, as HBase's canary does.
//!
//! * `targets`: names on the command line; `limits`: time limits of tables;
//! * `plan`: the list of probes; `probe`: one probe; `write_table`: the table for write probes;
//! * `round`: runs all probes once, a few per server at a time;
//! * `report`: results; `failure`: exit statuses.
//!
//! As in HBase, a failed probe does not stop the others. `-f` decides whether a round with failures
//! sets the exit status, and whether another round follows.

mod failure;
mod limits;
mod plan;
mod probe;
mod report;
mod round;
mod targets;
mod write_table;

use std::time::Duration;

use base::env::Env;
use clap::{ArgAction, Args};
use client::{Client, ClientOptions, ClusterKey};

use limits::Limit;
use plan::Plan;
use report::Report;
use targets::Targets;

pub use failure::Failure;

/// Default pause between two rounds.
const INTERVAL: Duration = Duration::from_secs(60);
/// Retries of a probe: enough for a region that is moving. HBase's 15 retries would report a
/// failure two minutes late.
const RETRIES_MAX: u32 = 5;

/// Options of `grampus canary`.
#[derive(Debug, Clone, Args)]
pub struct CanaryArguments {
    /// Tables to probe; with --regionserver, servers (host, host:port or host,port,startcode)
    /// [default: all]
    #[arg(value_name = "TABLE|SERVER")]
    pub targets: Vec<String>,
    /// Read from one random region of each server
    #[arg(long)]
    pub regionserver: bool,
    /// With --regionserver: read from all regions of each server
    #[arg(long, alias = "allRegions", requires = "regionserver")]
    pub all_regions: bool,
    /// Probe each ZooKeeper server (HBase's -zookeeper)
    #[arg(long, conflicts_with_all = ["regionserver", "all_regions", "write_sniffing"])]
    pub zookeeper_mode: bool,
    /// With --zookeeper-mode: number of servers that may fail
    #[arg(
        long,
        alias = "permittedZookeeperFailures",
        value_name = "N",
        default_value_t = 0,
        requires = "zookeeper_mode"
    )]
    pub permitted_zookeeper_failures: usize,
    /// Also write to a table, which is created if needed (see --write-table)
    #[arg(long, alias = "writeSniffing")]
    pub write_sniffing: bool,
    /// Table for --write-sniffing
    #[arg(long, alias = "writeTable", value_name = "TABLE", default_value = "hbase:canary")]
    pub write_table: String,
    /// Report an error if all writes together take longer
    #[arg(long, aliases = ["writeTimeout", "writeTableTimeout"], value_name = "MS", default_value_t = 600_000)]
    pub write_timeout: u64,
    /// Report an error if all reads of a table together take longer
    #[arg(long, alias = "readTableTimeouts", value_name = "TABLE=MS,...", value_delimiter = ',',
        value_parser = limits::limit,
        conflicts_with_all = ["regionserver", "zookeeper_mode"])]
    pub read_table_timeouts: Vec<(String, u64)>,
    /// Treat the names of tables or servers as regular expressions
    #[arg(short = 'e', long)]
    pub regex: bool,
    /// Time limit of a round
    #[arg(short, long, value_name = "MS", default_value_t = 600_000)]
    pub timeout: u64,
    /// Exit with status 5 if probes of a round failed
    #[arg(short = 'f', long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub fail: bool,
    /// Same as --fail true
    #[arg(long, aliases = ["treatFailureAsError", "failureAsError"])]
    pub treat_failure_as_error: bool,
    /// Run rounds until stopped
    #[arg(long)]
    pub daemon: bool,
    /// Pause between two rounds [default: 60 with --daemon]
    ///
    /// An interval other than 0 implies --daemon.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=86_400))]
    pub interval: Option<u64>,
    /// ZooKeeper servers of the cluster, separated by commas; a parent znode other than `/hbase` is
    /// appended as `:/parent`
    #[arg(long, value_name = "HOST:PORT", env = "GRAMPUS_ZOOKEEPER", default_value = "127.0.0.1:2181")]
    pub zookeeper: ClusterKey,
    /// Add N to the ZooKeeper port, for a server that was started with the same option
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port_offset: u16,
}

impl CanaryArguments {
    /// The pause between two rounds, or `None` for a single round. As in HBase, an interval
    /// requests repeated rounds, unless it is 0.
    fn pause(&self) -> Option<Duration> {
        let pause = self.interval.map(Duration::from_secs).or(self.daemon.then_some(INTERVAL));
        pause.filter(|pause| !pause.is_zero())
    }

    fn ends_on_failure(&self) -> bool {
        self.fail || self.treat_failure_as_error
    }
}

/// Runs one round of probes, or rounds until stopped.
///
/// # Errors
/// [`Failure`], which has HBase's exit status.
pub async fn canary(env: Env, arguments: &CanaryArguments) -> Result<(), Failure> {
    let canary = Canary::new(env, arguments)?;
    loop {
        let outcome = canary.round().await;
        let Some(pause) = arguments.pause() else { return outcome };
        match outcome {
            Ok(()) => {}
            Err(failure) if arguments.ends_on_failure() => return Err(failure),
            Err(failure) => report::print_line(&format!("ERROR: {failure}")),
        }
        canary.env.clock.sleep(pause).await;
    }
}

/// A canary and its parsed options.
struct Canary<'a> {
    env: Env,
    arguments: &'a CanaryArguments,
    cluster: ClusterKey,
    client: Client,
    targets: Targets,
}

impl Canary<'_> {
    fn new(env: Env, arguments: &CanaryArguments) -> Result<Canary<'_>, Failure> {
        let cluster = arguments.zookeeper.clone().with_port_offset(arguments.port_offset);
        let cluster = cluster.map_err(Failure::Usage)?;
        let options = ClientOptions { retries_max: RETRIES_MAX, ..ClientOptions::default() };
        let client = Client::new(env.clone(), cluster.registry(), options);
        let targets = Targets::new(&arguments.targets, arguments.regex)?;
        Ok(Canary { env, arguments, cluster, client, targets })
    }

    /// Runs all probes once. A round that times out still reports the probes that completed.
    async fn round(&self) -> Result<(), Failure> {
        let limit = Duration::from_millis(self.arguments.timeout);
        let mut report = Report::new();
        let made = self.env.timeout(limit, self.probe(&mut report)).await;
        report.finish();
        match made {
            None => Err(Failure::Timeout { limit_ms: self.arguments.timeout, probes: report.probes() }),
            Some(made) => made.and_then(|()| self.judge(&report)),
        }
    }

    async fn probe(&self, report: &mut Report) -> Result<(), Failure> {
        let plan = Plan { env: &self.env, client: &self.client, targets: &self.targets };
        let arguments = self.arguments;
        let probes = if arguments.zookeeper_mode {
            plan.zookeeper(&self.cluster.quorum())
        } else if arguments.regionserver {
            plan.servers(arguments.all_regions).await?
        } else {
            let mut probes = plan.regions(arguments).await?;
            if arguments.write_sniffing {
                probes.extend(plan.writes(&arguments.write_table).await?);
            }
            probes
        };
        round::run(&self.env, &self.client, probes, report).await;
        for limit in self.limits() {
            limit.report(report);
        }
        Ok(())
    }

    fn limits(&self) -> Vec<Limit> {
        let reads = self.arguments.read_table_timeouts.iter();
        let mut limits: Vec<Limit> = reads.map(|(table, ms)| Limit::for_reads(table, *ms)).collect();
        if self.arguments.write_sniffing {
            limits.push(Limit::for_writes(&self.arguments.write_table, self.arguments.write_timeout));
        }
        limits
    }

    fn judge(&self, report: &Report) -> Result<(), Failure> {
        let failures = report.failures();
        match failures > self.arguments.permitted_zookeeper_failures && self.arguments.ends_on_failure() {
            true => Err(Failure::Failed { failures, probes: report.probes() }),
            false => Ok(()),
        }
    }
}
