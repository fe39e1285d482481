//! The operations of a benchmark, named as in PerformanceEvaluation where it has them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cell::condition::{ColumnTest, Condition, Test};
use cell::filter::{Comparator, Compare, CompareOp, Filter};
use cell::mutation::Mutation;
use cell::query::{CellSelection, FamilyColumns, Get, Scan, TimeRange};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use clap::ValueEnum;
use client::{Action, ScanOptions, Table};
use rpc::CellBlock;
use rpc::client::{Connection, Request};

use super::rows::{COUNTER, FAMILY, QUALIFIER, Rows, SplitMix64};

/// Rows of a range scan that starts at a random row (PerformanceEvaluation's `scanRange10000`).
const RANGE_ROWS: u64 = 10_000;

/// Bytes of a get of one column, including the region's name. A put has about as many, plus its
/// value.
const GET_LEN: usize = 128;
/// Bytes that an echo server accepts per call, without the call's framing.
pub(super) const ECHO_LEN_MAX: usize = 1_000_000;
/// Timeout of an echo.
const ECHO_TIMEOUT: Duration = Duration::from_secs(10);

/// A kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "camelCase")]
pub enum Workload {
    /// Write all rows once, in order
    SequentialWrite,
    /// Write random rows
    RandomWrite,
    /// Read all rows once, in order
    SequentialRead,
    /// Read random rows
    RandomRead,
    /// Scan the table; each client scans its share
    Scan,
    /// Scan 10,000 rows from a random start row
    #[value(name = "scanRange10000")]
    ScanRange10000,
    /// Scan the table with a value filter (see --returned)
    FilterScan,
    /// Scan 10,000 rows from a random start row with a value filter
    #[value(name = "filterRange10000")]
    FilterRange10000,
    /// Increment a column of a random row
    Increment,
    /// Append to a column of a random row
    Append,
    /// Write a random row if it has a column
    CheckAndPut,
    /// Exchange messages of a get's size with an echo server (--echo), to measure the limit of the
    /// machine
    Echo,
    /// Exchange messages of a put's size with an echo server (--echo)
    EchoPut,
}

impl Workload {
    /// Whether the workload visits each row once and then ends.
    pub(super) fn is_once(self) -> bool {
        matches!(self, Workload::SequentialWrite | Workload::SequentialRead)
    }

    /// Whether the workload needs no existing rows.
    pub(super) fn makes_rows(self) -> bool {
        matches!(self, Workload::SequentialWrite | Workload::RandomWrite)
    }

    /// Whether a call may contain several operations.
    pub(super) fn is_batched(self) -> bool {
        use Workload::{RandomRead, RandomWrite, SequentialRead, SequentialWrite};
        matches!(self, SequentialWrite | RandomWrite | SequentialRead | RandomRead) || self.is_echo()
    }

    /// Whether the workload calls an echo server instead of a table.
    pub(super) fn is_echo(self) -> bool {
        matches!(self, Workload::Echo | Workload::EchoPut)
    }
}

impl std::fmt::Display for Workload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.to_possible_value().expect("no workload is hidden").get_name())
    }
}

/// Why a run failed.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum Failure {
    /// The server or the connection failed.
    #[error("{0}")]
    Client(#[from] client::Error),
    /// The echo server failed.
    #[error("echo server: {0}")]
    Echo(#[from] rpc::client::Error),
    /// The table lacks a row that it should have.
    #[error("row {0} is missing; write the rows first (--load writes all --rows rows)")]
    Missing(String),
}

impl Failure {
    /// Whether the server did the operation, but the client could not decode its response.
    pub(super) fn is_unreadable(&self) -> bool {
        matches!(self, Failure::Client(client::Error::Malformed(_)))
    }
}

/// Parameters that all operations of a run share.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) workload: Workload,
    pub(super) rows: Rows,
    /// Rows per call, for batched workloads.
    pub(super) batch: u64,
    /// Tenths of the rows that filters pass.
    pub(super) returned: u8,
    /// Maximum rows per scan response.
    pub(super) caching: u32,
    /// Rows that are accessed more often than others.
    pub(super) hot: Option<Hot>,
    /// Whether the server may cache the blocks that it reads.
    pub(super) cache_blocks: bool,
}

/// The first rows of a table, which are accessed more often than the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hot {
    /// Number of these rows.
    pub(super) rows: u64,
    /// Percentage of random rows that are among them.
    pub(super) percent: u64,
}

/// The target of calls.
pub(super) enum Target {
    /// A table of a server.
    Table(Table),
    /// An echo server.
    Echo(Connection),
}

/// A sequence of operations: on a share of the rows in order, or on random rows.
pub(super) struct Worker {
    plan: Arc<Plan>,
    target: Arc<Target>,
    // Columns that are read.
    selection: Arc<CellSelection>,
    // Message to an echo server.
    message: Bytes,
    random: SplitMix64,
    // Rows of this worker's share that were not visited yet.
    next: u64,
    end: u64,
}

impl Worker {
    /// Creates worker `at` of `workers`.
    pub(super) fn new(plan: Arc<Plan>, target: Arc<Target>, at: u64, workers: u64) -> Worker {
        let share = |at: u64| (u128::from(plan.rows.count) * u128::from(at) / u128::from(workers)) as u64;
        let (next, end) = (share(at), share(at + 1));
        let selection = plan.selection().into();
        let message = vec![b'v'; plan.echo_len()].into();
        let random = SplitMix64::new(at.wrapping_mul(0x5851_f42d_4c95_7f2d));
        Worker { plan, target, selection, message, random, next, end }
    }

    /// Makes one call. Returns the number of its rows, or `None` if no rows are left.
    ///
    /// # Errors
    /// The error of the server or the connection.
    pub(super) async fn call(&mut self) -> Result<Option<u64>, Failure> {
        match &*Arc::clone(&self.target) {
            Target::Table(table) => self.call_table(table).await,
            Target::Echo(connection) => {
                echo(connection, self.message.clone()).await?;
                Ok(Some(self.plan.batch))
            }
        }
    }

    async fn call_table(&mut self, table: &Table) -> Result<Option<u64>, Failure> {
        let plan = Arc::clone(&self.plan);
        if plan.workload.is_once() && self.next >= self.end {
            return Ok(None);
        }
        let done = match plan.workload {
            Workload::SequentialWrite | Workload::RandomWrite => self.write(table).await?,
            Workload::SequentialRead | Workload::RandomRead => self.read(table).await?,
            Workload::Scan | Workload::FilterScan => self.scan(table, self.next..self.end).await?,
            Workload::ScanRange10000 | Workload::FilterRange10000 => {
                let start = self.random.below(plan.rows.count.saturating_sub(RANGE_ROWS).max(1));
                self.scan(table, start..(start + RANGE_ROWS).min(plan.rows.count)).await?
            }
            Workload::Increment => {
                let counted = |row: &Bytes| {
                    Mutation::increment(row.clone(), vec![cell(row, COUNTER, &1_u64.to_be_bytes())])
                };
                self.change(table, counted).await?
            }
            Workload::Append => {
                let appended = |row: &Bytes| Mutation::append(row.clone(), vec![cell(row, COUNTER, b"+")]);
                self.change(table, appended).await?
            }
            Workload::CheckAndPut => self.check_and_put(table).await?,
            Workload::Echo | Workload::EchoPut => 0,
        };
        Ok(Some(done))
    }

    /// The number of the next row: the next one in order, or a random one.
    fn row(&mut self) -> u64 {
        if !self.plan.workload.is_once() {
            return self.random_row();
        }
        self.next += 1;
        self.next - 1
    }

    fn random_row(&mut self) -> u64 {
        let all = self.plan.rows.count;
        match self.plan.hot {
            Some(hot) if self.random.below(100) < hot.percent => self.random.below(hot.rows),
            Some(hot) => hot.rows + self.random.below(all - hot.rows),
            None => self.random.below(all),
        }
    }

    /// The row numbers of the next call.
    fn next_call_rows(&mut self) -> Vec<u64> {
        let left = if self.plan.workload.is_once() { self.end - self.next } else { u64::MAX };
        (0..self.plan.batch.min(left)).map(|_| self.row()).collect()
    }

    async fn write(&mut self, table: &Table) -> Result<u64, Failure> {
        let rows = self.next_call_rows();
        let mut puts: Vec<_> = rows.iter().map(|at| put(&self.plan.rows, *at)).collect();
        match puts.pop() {
            Some(put) if puts.is_empty() => table.mutate(&put).await?,
            Some(put) => {
                puts.push(put);
                table.mutate_all(puts).await?;
            }
            None => {}
        }
        Ok(rows.len() as u64)
    }

    async fn read(&mut self, table: &Table) -> Result<u64, Failure> {
        let rows = self.next_call_rows();
        let mut gets: Vec<_> = rows.iter().map(|at| self.get(*at)).collect();
        match gets.pop() {
            Some(get) if gets.is_empty() => check_found(&table.get(&get).await?, rows[0])?,
            Some(get) => {
                gets.push(get);
                let results = table.batch(gets.into_iter().map(Action::Get).collect()).await;
                for (result, at) in results.into_iter().zip(&rows) {
                    check_found(&result?, *at)?;
                }
            }
            None => {}
        }
        Ok(rows.len() as u64)
    }

    fn get(&self, at: u64) -> Get {
        Get { row: Rows::key(at), selection: Arc::clone(&self.selection), existence_only: false }
    }

    async fn change(&mut self, table: &Table, change: impl Fn(&Bytes) -> Mutation) -> Result<u64, Failure> {
        let row = Rows::key(self.row());
        table.read_modify_write(change(&row)).await?;
        Ok(1)
    }

    async fn check_and_put(&mut self, table: &Table) -> Result<u64, Failure> {
        let at = self.row();
        let put = put(&self.plan.rows, at);
        let test = ColumnTest {
            family: Bytes::from_static(FAMILY),
            qualifier: Bytes::from_static(QUALIFIER),
            operator: CompareOp::NotEqual,
            value: Bytes::new(),
        };
        let condition =
            Condition { row: put.row.clone(), time_range: TimeRange::ALL, test: Test::Column(test) };
        match table.check_and_mutate(&condition, &[put]).await? {
            true => Ok(1),
            false => Err(missing(at)),
        }
    }

    /// Scans rows. Returns how many the server read, including those that the filter dropped.
    async fn scan(&self, table: &Table, rows: std::ops::Range<u64>) -> Result<u64, Failure> {
        let is_filtered = matches!(self.plan.workload, Workload::FilterScan | Workload::FilterRange10000);
        let scan = Scan {
            start_row: Rows::key(rows.start),
            stop_row: Rows::key(rows.end),
            selection: CellSelection {
                filter: is_filtered.then(|| Arc::new(passing(self.plan.returned))),
                ..CellSelection::clone(&self.selection)
            },
            ..Scan::default()
        };
        let mut scanner = table.scan_with(scan, ScanOptions { caching: self.plan.caching, limit: 0 });
        let mut returned = 0;
        while scanner.next().await?.is_some() {
            returned += 1;
        }
        let row_count = rows.end - rows.start;
        match is_filtered || returned == row_count {
            true => Ok(row_count),
            false => Err(missing(rows.start + returned)),
        }
    }
}

/// Sends one message to an echo server and waits for the response.
async fn echo(connection: &Connection, message: Bytes) -> Result<(), Failure> {
    let request = Request {
        method: "Get".into(),
        param: message,
        cells: CellBlock::new(),
        timeout: ECHO_TIMEOUT,
        priority: 0,
    };
    connection.call(request).await?;
    Ok(())
}

impl Plan {
    /// Size of a message to an echo server, in bytes.
    pub(super) fn echo_len(&self) -> usize {
        let row_len = match self.workload {
            Workload::Echo => GET_LEN,
            Workload::EchoPut => GET_LEN + self.rows.value_len,
            _ => 0,
        };
        row_len.saturating_mul(self.batch as usize)
    }

    /// Selects the column that the rows were written with.
    fn selection(&self) -> CellSelection {
        let qualifiers = Some(vec![Bytes::from_static(QUALIFIER)]);
        let family = FamilyColumns { family: Bytes::from_static(FAMILY), qualifiers };
        CellSelection { columns: vec![family], cache_blocks: self.cache_blocks, ..CellSelection::default() }
    }
}

fn put(rows: &Rows, at: u64) -> Mutation {
    let row = Rows::key(at);
    let cells = vec![cell(&row, QUALIFIER, &rows.value(at))];
    Mutation::put(row, cells)
}

fn cell(row: &Bytes, qualifier: &[u8], value: &[u8]) -> KeyValue {
    KeyValue::new(row, FAMILY, qualifier, LATEST_TIMESTAMP, CellType::Put, value)
}

/// A filter that passes about `tenths` tenths of the values.
fn passing(tenths: u8) -> Filter {
    let end = Bytes::copy_from_slice(&Rows::share_end(tenths));
    Filter::Value(Compare { op: CompareOp::Less, comparator: Comparator::Binary(end) })
}

fn check_found(row: &client::Row, at: u64) -> Result<(), Failure> {
    if row.is_empty() { Err(missing(at)) } else { Ok(()) }
}

fn missing(at: u64) -> Failure {
    Failure::Missing(String::from_utf8_lossy(&Rows::key(at)).into_owned())
}
