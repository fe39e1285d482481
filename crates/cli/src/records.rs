//! `grampus records`: tables of records with many attributes, and one question about them asked in several ways; HBase too.
//!
//! The case is one that HBase's users have published: 91 attributes, and `SELECT sum(A) WHERE B = c GROUP BY D` over any of
//! them. Every answer is compared with what the records' generator says.
//!
//! * `generator`: the records; `ask`: the ways to ask.

mod ask;
mod generator;

use std::time::Duration;

use base::env::Env;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use clap::{Args, ValueEnum};
use client::{Client, ClientOptions, Registry, Table};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::bench::{Measure, Process, Progress, settle};
use ask::Groups;
use generator::{FAMILY, Question, Records};

/// Records of one call when the table is filled, and calls under way.
const LOAD_BATCH: u64 = 100;
const LOAD_CALLS: usize = 4;

/// Path, class, priority and arguments, of which only the class is named.
const AGGREGATE_IMPLEMENTATION: &str = "|org.apache.hadoop.hbase.coprocessor.AggregateImplementation||";

/// What to do with records.
#[derive(Debug, Clone, Args)]
pub struct RecordsArguments {
    /// What to do, one behind the other
    #[arg(required = true, value_name = "STEP")]
    pub steps: Vec<Step>,
    /// Records of the table
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=9_999_999_999))]
    pub rows: u64,
    /// Attributes of a record
    #[arg(long, default_value_t = 91, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub attributes: u64,
    /// Which attribute is added up
    #[arg(long, default_value_t = 4)]
    pub sum: u64,
    /// Only records whose attribute has a value, as 6=3
    #[arg(long, value_name = "ATTRIBUTE=VALUE", value_parser = condition)]
    pub only: Option<(u64, i64)>,
    /// Which attribute makes the groups
    #[arg(long, value_name = "ATTRIBUTE")]
    pub group_by: Option<u64>,
    /// How often to ask in each way
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub runs: u64,
    /// Regions that are asked at the same time
    #[arg(long, default_value_t = 16)]
    pub parallel: usize,
    /// The table
    #[arg(long, value_name = "NAME", default_value = "records")]
    pub table: String,
    /// Regions of the table, where it is made
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub regions: u64,
    /// An attribute of the table's family, where it is made, as COMPRESSION=SNAPPY; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = crate::bench::attribute)]
    pub attribute: Vec<(String, String)>,
    /// Make the table with HBase's AggregateImplementation as a coprocessor, which HBase needs for the step endpoint
    #[arg(long)]
    pub coprocessor: bool,
    /// The server's process, if it runs on this machine: its processor time is told then
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<u32>,
    /// Where the cluster's ZooKeeper answers; several servers with commas between them
    #[arg(long, value_name = "HOST:PORT", env = "GRAMPUS_ZOOKEEPER", default_value = "127.0.0.1:2181")]
    pub zookeeper: String,
    /// Add N to ZooKeeper's port, for a server that was started with the same option
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port_offset: u16,
    /// Print each run as a line of JSON
    #[arg(long)]
    pub json: bool,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Step {
    /// Make the table anew, fill it and compact it
    Load,
    /// Ask Grampus' ColumnService
    Columns,
    /// Scan the columns that are needed and add up here
    Scan,
    /// Ask HBase's AggregateService for the sum of all
    Endpoint,
}

fn condition(text: &str) -> Result<(u64, i64), String> {
    let parsed = text
        .split_once('=')
        .and_then(|(attribute, value)| Some((attribute.parse().ok()?, value.parse().ok()?)));
    parsed.ok_or_else(|| "not as 6=3".into())
}

/// Does it.
///
/// # Errors
/// One line for a person: what the server refused, or an answer that is wrong.
pub async fn records(env: Env, arguments: &RecordsArguments) -> Result<(), String> {
    let quorum = crate::quorum::with_offset(&arguments.zookeeper, arguments.port_offset)?;
    // A question over everything takes its time where everything is read.
    let options = ClientOptions { rpc_timeout: Duration::from_secs(1200), ..ClientOptions::default() };
    let client = Client::new(env.clone(), Registry::zookeeper(&quorum, "/hbase"), options);
    let name = TableName::parse(&arguments.table).map_err(|error| error.to_string())?;
    let run = Run {
        env,
        table: client.table(name.clone()),
        client,
        name,
        arguments,
        records: Records { count: arguments.rows, attributes: arguments.attributes },
    };
    for step in &arguments.steps {
        match step {
            Step::Load => run.load().await?,
            step => run.ask(*step).await?,
        }
    }
    Ok(())
}

struct Run<'a> {
    env: Env,
    client: Client,
    table: Table,
    name: TableName,
    arguments: &'a RecordsArguments,
    records: Records,
}

impl Run<'_> {
    async fn load(&self) -> Result<(), String> {
        self.make().await.map_err(|error| format!("table {} cannot be made: {error}", self.name))?;
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
            written += done.map_err(|error| format!("records cannot be written: {error}"))?;
            progress.show(Duration::ZERO, written);
            running.extend(starts.next().map(write));
        }
        progress.clear();
        settle(&self.env, &self.client, &self.name).await.map_err(|error| format!("compacting: {error}"))
    }

    async fn make(&self) -> Result<(), client::Error> {
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

    async fn ask(&self, step: Step) -> Result<(), String> {
        let RecordsArguments { sum, only, group_by, runs, parallel, .. } = *self.arguments;
        let mut question = Question { sum, condition: only, group_by };
        if step == Step::Endpoint {
            // It knows neither conditions nor groups.
            question = Question { condition: None, group_by: None, ..question };
        }
        let mut expected = self.records.expected(&question);
        if step == Step::Endpoint {
            expected.values_mut().for_each(|(_, count)| *count = 0);
        }
        let server = self.arguments.server_pid.map(|pid| Process { pid });
        for _ in 0..runs {
            let before = server.map(Process::usage).transpose()?;
            let begin = self.env.clock.monotonic();
            let said = |error: client::Error| format!("{step:?}: {error}");
            let (found, work) = match step {
                Step::Columns => {
                    let (found, work) = ask::columns(&self.table, &question, parallel).await.map_err(said)?;
                    (found, Some(work))
                }
                Step::Scan => (ask::scan(&self.table, &question, parallel).await.map_err(said)?, None),
                _ => (ask::endpoint(&self.table, &question).await.map_err(said)?, None),
            };
            let length = self.env.clock.monotonic() - begin;
            let used = server.map(Process::usage).transpose()?;
            let cpu = used.zip(before).map(|(used, before)| used.cpu_seconds - before.cpu_seconds);
            check(&found, &expected)?;
            self.print(step, length, cpu, found.len(), work.as_ref());
        }
        Ok(())
    }

    fn print(
        &self,
        step: Step,
        length: Duration,
        cpu: Option<f64>,
        groups: usize,
        work: Option<&proto::grampus::Work>,
    ) {
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
            println!("{line}");
            return;
        }
        let cpu = cpu.map_or(String::new(), |cpu| format!(", {cpu:.2} s of the server's processor"));
        let how = work.map_or(String::new(), |work| {
            let (vectors, merged) = (work.rows_in_vectors(), work.rows_merged());
            format!("; {vectors} rows in vectors, {merged} merged, {} vectors built", work.vectors_built())
        });
        println!("{step:?}: {rate:.0} rows/s ({seconds:.3} s){cpu}, {groups} groups{how}");
    }
}

/// Compares an answer with what it must be.
fn check(found: &Groups, expected: &Groups) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let wrong = expected.iter().find(|(key, value)| found.get(key) != Some(value));
    Err(match wrong {
        Some((key, value)) => format!("WRONG: group {key} is {:?}, and not {value:?}", found.get(key)),
        None => format!("WRONG: {} groups, and not {}", found.len(), expected.len()),
    })
}
