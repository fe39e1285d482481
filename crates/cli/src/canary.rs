//! `grampus canary`: asks a cluster a little of everything, as HBase's canary does, and says what does not answer.
//!
//! * `dashes`: the options as HBase writes them; `targets`: what is named; `limits`: how long tables may take;
//! * `plan`: what is probed; `probe`: one question; `write_table`: the table that is written to;
//! * `round`: all questions once, a few of each server at a time;
//! * `report`: what came of them; `failure`: how the program ends.
//!
//! As in HBase a probe that fails does not keep others from being made: `-f` decides what a round with failures means
//! for the program's status, and whether another round follows.

mod dashes;
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
use client::{Client, ClientOptions, Registry};

use limits::Limit;
use plan::Plan;
use report::Report;
use targets::Targets;

pub use dashes::double_dashed;
pub use failure::Failure;

/// Between two rounds, where nobody says how long.
const INTERVAL: Duration = Duration::from_secs(60);
/// Tries after the first of a probe: a region that moves just then has not failed, and who waits for all of HBase's
/// fifteen learns of a failure two minutes late.
const RETRIES_MAX: u32 = 5;

/// What to probe.
#[derive(Debug, Clone, Args)]
pub struct CanaryArguments {
    /// Tables to probe, or with --regionserver servers (a host, or host,port,startcode) [default: all]
    #[arg(value_name = "TABLE|SERVER")]
    pub targets: Vec<String>,
    /// Read from one region of each server, chosen at random
    #[arg(long)]
    pub regionserver: bool,
    /// With --regionserver: read from all regions
    #[arg(long, alias = "allRegions", requires = "regionserver")]
    pub all_regions: bool,
    /// Ask each ZooKeeper server (HBase's -zookeeper)
    #[arg(long, conflicts_with_all = ["regionserver", "all_regions", "write_sniffing"])]
    pub zookeeper_mode: bool,
    /// With --zookeeper-mode: so many servers may fail
    #[arg(
        long,
        alias = "permittedZookeeperFailures",
        value_name = "N",
        default_value_t = 0,
        requires = "zookeeper_mode"
    )]
    pub permitted_zookeeper_failures: usize,
    /// Write to a table that is made for it, too
    #[arg(long, alias = "writeSniffing")]
    pub write_sniffing: bool,
    /// The table that is written to
    #[arg(long, alias = "writeTable", value_name = "TABLE", default_value = "hbase:canary")]
    pub write_table: String,
    /// Say so if all writes together take longer
    #[arg(long, aliases = ["writeTimeout", "writeTableTimeout"], value_name = "MS", default_value_t = 600_000)]
    pub write_timeout: u64,
    /// Say so if all reads of a table together take longer; tables that are named
    #[arg(long, alias = "readTableTimeouts", value_name = "TABLE=MS,...", value_delimiter = ',',
        value_parser = limits::limit,
        conflicts_with_all = ["regionserver", "zookeeper_mode"])]
    pub read_table_timeouts: Vec<(String, u64)>,
    /// Names of tables or servers are regular expressions
    #[arg(short = 'e', long)]
    pub regex: bool,
    /// Time for a round
    #[arg(short, long, value_name = "MS", default_value_t = 600_000)]
    pub timeout: u64,
    /// Whether probes that failed end the canary, with status 5
    #[arg(short = 'f', long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub fail: bool,
    /// The same as --fail true
    #[arg(long, aliases = ["treatFailureAsError", "failureAsError"])]
    pub treat_failure_as_error: bool,
    /// Go on with another round, and another
    #[arg(long)]
    pub daemon: bool,
    /// Pause between two rounds [default: 60 with --daemon]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=86_400))]
    pub interval: Option<u64>,
    /// Where the cluster's ZooKeeper answers; several servers with commas between them
    #[arg(long, value_name = "HOST:PORT", env = "GRAMPUS_ZOOKEEPER", default_value = "127.0.0.1:2181")]
    pub zookeeper: String,
    /// Add N to ZooKeeper's port, for a server that was started with the same option
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port_offset: u16,
}

impl CanaryArguments {
    /// The pause between two rounds; none if there is to be one only. As in HBase a pause that is named asks for more
    /// than one, and one of no length does not.
    fn pause(&self) -> Option<Duration> {
        let pause = self.interval.map(Duration::from_secs).or(self.daemon.then_some(INTERVAL));
        pause.filter(|pause| !pause.is_zero())
    }

    fn ends_on_failure(&self) -> bool {
        self.fail || self.treat_failure_as_error
    }
}

/// Probes.
///
/// # Errors
/// [`Failure`], which has HBase's status for it.
pub async fn canary(env: Env, arguments: &CanaryArguments) -> Result<(), Failure> {
    let canary = Canary::new(env, arguments)?;
    loop {
        let outcome = canary.round().await;
        let Some(pause) = arguments.pause() else { return outcome };
        match outcome {
            Ok(()) => {}
            Err(failure) if arguments.ends_on_failure() => return Err(failure),
            Err(failure) => report::say(&format!("ERROR: {failure}")),
        }
        canary.env.clock.sleep(pause).await;
    }
}

/// A canary that knows what it is to do.
struct Canary<'a> {
    env: Env,
    arguments: &'a CanaryArguments,
    quorum: String,
    client: Client,
    targets: Targets,
}

impl Canary<'_> {
    fn new(env: Env, arguments: &CanaryArguments) -> Result<Canary<'_>, Failure> {
        let quorum = crate::quorum::with_offset(&arguments.zookeeper, arguments.port_offset);
        let quorum = quorum.map_err(Failure::Usage)?;
        let options = ClientOptions { retries_max: RETRIES_MAX, ..ClientOptions::default() };
        let client = Client::new(env.clone(), Registry::zookeeper(&quorum, "/hbase"), options);
        let targets = Targets::new(&arguments.targets, arguments.regex)?;
        Ok(Canary { env, arguments, quorum, client, targets })
    }

    /// All probes once. What was found until the time was up is told, too.
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
            plan.zookeeper(&self.quorum)
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
            limit.tell(report);
        }
        Ok(())
    }

    fn limits(&self) -> Vec<Limit> {
        let reads = self.arguments.read_table_timeouts.iter();
        let mut limits: Vec<Limit> = reads.map(|(table, ms)| Limit::of_reads(table, *ms)).collect();
        if self.arguments.write_sniffing {
            limits.push(Limit::of_writes(&self.arguments.write_table, self.arguments.write_timeout));
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
