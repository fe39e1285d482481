//! A benchmark that runs one query over records with many attributes in several
//! ways, on Grampus or HBase.
//!
//! HBase users have published this case: 91 attributes, and `SELECT sum(A) WHERE B = c GROUP BY D`
//! over any of them. Every result is compared with the one that the records' generator predicts.
//!
//! * `generator`: the records; `query`: the ways to run the query.

mod generator;
mod query;

use std::io::Write;
use std::time::Duration;

use base::env::Env;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use clap::{Parser, ValueEnum};
use cli::bench::{Measure, Process, Progress, settle};
use client::{Client, ClientOptions, ClusterKey, Table};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use generator::{FAMILY, Records, RecordsQuery};
use query::Groups;

/// Records per call when the table is loaded, and calls in flight.
const LOAD_BATCH: u64 = 100;
const LOAD_CALLS: usize = 4;

/// Path, class, priority and arguments. Only the class is set.
const AGGREGATE_IMPLEMENTATION: &str = "|org.apache.hadoop.hbase.coprocessor.AggregateImplementation||";

/// Benchmark aggregate queries over records with many attributes
#[derive(Debug, Clone, Parser)]
#[command(name = "records")]
pub struct RecordsArguments {
    /// Steps to run, in sequence
    #[arg(required = true, value_name = "STEP")]
    pub steps: Vec<RecordsStep>,
    /// Number of records in the table
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=9_999_999_999))]
    pub rows: u64,
    /// Attributes per record
    #[arg(long, default_value_t = 91, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub attributes: u64,
    /// Attribute to add up
    #[arg(long, default_value_t = 4)]
    pub sum: u64,
    /// Restrict the query to records with this value of an attribute, for example 6=3
    #[arg(long, value_name = "ATTRIBUTE=VALUE", value_parser = condition)]
    pub only: Option<(u64, i64)>,
    /// Attribute to group by
    #[arg(long, value_name = "ATTRIBUTE")]
    pub group_by: Option<u64>,
    /// Number of runs per step
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub runs: u64,
    /// Number of regions queried concurrently
    #[arg(long, default_value_t = 16)]
    pub parallel: usize,
    /// Name of the table
    #[arg(long, value_name = "NAME", default_value = "records")]
    pub table: String,
    /// Number of regions, if the table is created
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub regions: u64,
    /// Attribute of the column family, for example COMPRESSION=SNAPPY; may be repeated
    ///
    /// It applies only if the table is created.
    #[arg(long, value_name = "NAME=VALUE", value_parser = cli::bench::attribute)]
    pub attribute: Vec<(String, String)>,
    /// Create the table with the coprocessor AggregateImplementation
    ///
    /// HBase needs it for the step endpoint.
    #[arg(long)]
    pub coprocessor: bool,
    /// Process ID of the server, to report its CPU time
    ///
    /// The server must run on this machine.
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<u32>,
    /// ZooKeeper servers of the cluster, separated by commas
    #[arg(long, value_name = "HOST:PORT", env = "GRAMPUS_ZOOKEEPER", default_value = "127.0.0.1:2181")]
    pub zookeeper: ClusterKey,
    /// Add N to the ZooKeeper port, for a server that was started with the same option
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port_offset: u16,
    /// Print each run as a line of JSON
    #[arg(long)]
    pub json: bool,
}

/// A step of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RecordsStep {
    /// Recreate, fill and compact the table
    Load,
    /// Query Grampus' ColumnService
    Columns,
    /// Scan the needed columns and add up in the client
    Scan,
    /// Query HBase's AggregateService for the sum over all records (ignores --only and --group-by)
    Endpoint,
}

fn condition(text: &str) -> Result<(u64, i64), String> {
    let parsed = text
        .split_once('=')
        .and_then(|(attribute, value)| Some((attribute.parse().ok()?, value.parse().ok()?)));
    parsed.ok_or_else(|| "expected ATTRIBUTE=VALUE, for example 6=3".into())
}

/// Runs the benchmark and prints the results to `output`.
///
/// # Errors
/// A one-line message for the user: the server's error, or a wrong result.
pub async fn records(env: Env, arguments: &RecordsArguments, output: &mut impl Write) -> Result<(), String> {
    let cluster = arguments.zookeeper.clone().with_port_offset(arguments.port_offset)?;
    // A query over the whole table is slow if the server reads every row.
    let options = ClientOptions { rpc_timeout: Duration::from_secs(1200), ..ClientOptions::default() };
    let client = Client::new(env.clone(), cluster.registry(), options);
    let name = TableName::parse(&arguments.table).map_err(|error| error.to_string())?;
    let run = RecordsBenchmark {
        env,
        table: client.table(name.clone()),
        client,
        name,
        arguments,
        records: Records { count: arguments.rows, attributes: arguments.attributes },
    };
    for step in &arguments.steps {
        match step {
            RecordsStep::Load => run.load().await?,
            step => run.measure(*step, output).await?,
        }
    }
    Ok(())
}

struct RecordsBenchmark<'a> {
    env: Env,
    client: Client,
    table: Table,
    name: TableName,
    arguments: &'a RecordsArguments,
    records: Records,
}

impl RecordsBenchmark<'_> {
    async fn load(&self) -> Result<(), String> {
        self.create_table()
            .await
            .map_err(|error| format!("table {} cannot be created: {error}", self.name))?;
        let progress = Progress::new("writing records".into(), Measure::Rows(self.records.count));
        let mut starts = (0..self.records.count).step_by(LOAD_BATCH as usize);
        let write = |start: u64| {
            let end = (start + LOAD_BATCH).min(self.records.count);
            let puts = (start..end).map(|at| self.records.put(at)).collect();
            let table = self.table.clone();
            async move { table.mutate_all(puts).await.map(|()| end - start) }
        };
        let mut running: FuturesUnordered<_> = starts.by_ref().take(LOAD_CALLS).map(write).collect();
        let mut written = 0;
        while let Some(done) = running.next().await {
            written += done.map_err(|error| format!("cannot write records: {error}"))?;
            progress.show(Duration::ZERO, written);
            running.extend(starts.next().map(write));
        }
        progress.clear();
        settle(&self.env, &self.client, &self.name)
            .await
            .map_err(|error| format!("cannot compact the table: {error}"))
    }

    async fn create_table(&self) -> Result<(), client::Error> {
        let admin = self.client.admin();
        if admin.table_exists(&self.name).await? {
            if admin.is_enabled(&self.name).await? {
                admin.disable_table(&self.name).await?;
            }
            admin.delete_table(&self.name).await?;
        }
        let family = FamilyDescriptor::new(FAMILY);
        let family =
            self.arguments.attribute.iter().fold(family, |family, (name, value)| family.with(name, value));
        let regions = self.arguments.regions;
        let splits: Vec<_> = (1..regions).map(|at| Records::key(self.records.count * at / regions)).collect();
        let mut table = TableDescriptor::new(self.name.clone()).with_family(family);
        if self.arguments.coprocessor {
            table.attributes.insert("coprocessor$1".into(), AGGREGATE_IMPLEMENTATION.into());
        }
        admin.create_table(&table, &splits).await
    }

    async fn measure(&self, step: RecordsStep, output: &mut impl Write) -> Result<(), String> {
        let RecordsArguments { sum, only, group_by, runs, parallel, .. } = *self.arguments;
        let mut query = RecordsQuery { sum, condition: only, group_by };
        if step == RecordsStep::Endpoint {
            // AggregateService supports neither conditions nor groups.
            query = RecordsQuery { condition: None, group_by: None, ..query };
        }
        let mut expected = self.records.expected(&query);
        if step == RecordsStep::Endpoint {
            expected.values_mut().for_each(|(_, count)| *count = 0);
        }
        let server = self.arguments.server_pid.map(|pid| Process { pid });
        for _ in 0..runs {
            let before = server.map(Process::usage).transpose()?;
            let begin = self.env.clock.monotonic();
            let describe = |error: client::Error| format!("{step:?}: {error}");
            let (found, work) = match step {
                RecordsStep::Columns => {
                    let (found, work) =
                        query::columns(&self.table, &query, parallel).await.map_err(describe)?;
                    (found, Some(work))
                }
                RecordsStep::Scan => {
                    (query::scan(&self.table, &query, parallel).await.map_err(describe)?, None)
                }
                _ => (query::endpoint(&self.table, &query).await.map_err(describe)?, None),
            };
            let length = self.env.clock.monotonic() - begin;
            let used = server.map(Process::usage).transpose()?;
            let cpu = used.zip(before).map(|(used, before)| used.cpu_seconds - before.cpu_seconds);
            check(&found, &expected)?;
            let line = self.line(step, length, cpu, found.len(), work.as_ref());
            writeln!(output, "{line}").map_err(|error| format!("cannot write the result: {error}"))?;
        }
        Ok(())
    }

    /// The result of one run, for the user or as JSON.
    fn line(
        &self,
        step: RecordsStep,
        length: Duration,
        cpu: Option<f64>,
        groups: usize,
        work: Option<&proto::grampus::Work>,
    ) -> String {
        let seconds = length.as_secs_f64();
        let rate = self.records.count as f64 / seconds;
        if self.arguments.json {
            let line = serde_json::json!({
                "step": format!("{step:?}").to_lowercase(), "rows": self.records.count, "seconds": seconds,
                "rows_per_second": rate, "server_cpu_seconds": cpu, "groups": groups,
                "rows_in_vectors": work.map(|work| work.rows_in_vectors()),
                "rows_merged": work.map(|work| work.rows_merged()),
                "vectors_built": work.map(|work| work.vectors_built()),
            });
            return line.to_string();
        }
        let cpu = cpu.map_or(String::new(), |cpu| format!(", {cpu:.2} s of server CPU"));
        let how = work.map_or(String::new(), |work| {
            let (vectors, merged) = (work.rows_in_vectors(), work.rows_merged());
            format!("; {vectors} rows in vectors, {merged} merged, {} vectors built", work.vectors_built())
        });
        format!("{step:?}: {rate:.0} rows/s ({seconds:.3} s){cpu}, {groups} groups{how}")
    }
}

/// Compares a result with the expected one.
fn check(found: &Groups, expected: &Groups) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let wrong = expected.iter().find(|(key, value)| found.get(key) != Some(value));
    Err(match wrong {
        Some((key, value)) => format!("WRONG: group {key} is {:?}, expected {value:?}", found.get(key)),
        None => format!("WRONG: {} groups, expected {}", found.len(), expected.len()),
    })
}
