//! What is asked of the server: one kind of operation, under PerformanceEvaluation's name where it has one.

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

use super::rows::{COUNTER, Chance, FAMILY, QUALIFIER, Rows};

/// Rows of a range that is scanned from a random row on (PerformanceEvaluation's `scanRange10000`).
const RANGE_ROWS: u64 = 10_000;

/// Bytes of a get of one column, with its region's name, and about as many as a put has but for its value.
const GET_LEN: usize = 128;
/// Bytes that an echo server takes at once, but for what a call has around them.
pub(super) const QUESTION_LEN_MAX: usize = 1_000_000;
/// How long an echo may take.
const ECHO_TIMEOUT: Duration = Duration::from_secs(10);

/// A kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "camelCase")]
pub enum Workload {
    /// Writes all rows in order, once
    SequentialWrite,
    /// Writes rows at random
    RandomWrite,
    /// Reads all rows in order, once
    SequentialRead,
    /// Reads rows at random
    RandomRead,
    /// Scans the table; each client its part of it
    Scan,
    /// Scans 10,000 rows from a random row on
    #[value(name = "scanRange10000")]
    ScanRange10000,
    /// Scans the table with a filter by value that lets --returned tenths pass
    FilterScan,
    /// The same over 10,000 rows from a random row on
    #[value(name = "filterRange10000")]
    FilterRange10000,
    /// Counts a column up
    Increment,
    /// Appends to a column
    Append,
    /// Writes a row if it has a column
    CheckAndPut,
    /// Sends as many bytes as a get has to an echo server, and takes what it answers (--echo): what the machine allows
    Echo,
    /// The same with as many bytes as a put has
    EchoPut,
}

impl Workload {
    /// Whether each row has its turn once, and then it is over.
    pub(super) fn is_once(self) -> bool {
        matches!(self, Workload::SequentialWrite | Workload::SequentialRead)
    }

    /// Whether it can do without rows that were there before.
    pub(super) fn makes_rows(self) -> bool {
        matches!(self, Workload::SequentialWrite | Workload::RandomWrite)
    }

    /// Whether several operations may go in one call.
    pub(super) fn is_batched(self) -> bool {
        use Workload::{RandomRead, RandomWrite, SequentialRead, SequentialWrite};
        matches!(self, SequentialWrite | RandomWrite | SequentialRead | RandomRead) || self.is_echo()
    }

    /// Whether an echo server is asked, and no table.
    pub(super) fn is_echo(self) -> bool {
        matches!(self, Workload::Echo | Workload::EchoPut)
    }
}

impl std::fmt::Display for Workload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.to_possible_value().expect("no workload is hidden").get_name())
    }
}

/// Why a run came to nothing.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum Failure {
    /// The server, or the way to it.
    #[error("{0}")]
    Client(#[from] client::Error),
    /// The echo server.
    #[error("the echo server: {0}")]
    Echo(#[from] rpc::client::Error),
    /// The table has not the rows that it should have.
    #[error("row {0} is not there; write the rows first, as many as --rows says (--load does it)")]
    Missing(String),
}

impl Failure {
    /// An answer came that is none: the server did what it was asked, and what it tells of it cannot be read.
    pub(super) fn is_unreadable(&self) -> bool {
        matches!(self, Failure::Client(client::Error::Malformed(_)))
    }
}

/// What the operations of a run have in common.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) workload: Workload,
    pub(super) rows: Rows,
    /// Rows of one call, where calls have several.
    pub(super) batch: u64,
    /// Tenths of the rows that filters let pass.
    pub(super) returned: u8,
    /// Rows of one answer to a scan at most.
    pub(super) caching: u32,
    /// Rows that are asked for more often than others.
    pub(super) hot: Option<Hot>,
    /// Whether blocks that are read may stay in the server's cache.
    pub(super) cache_blocks: bool,
}

/// The first rows of a table, of which more is asked than of the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hot {
    /// How many they are.
    pub(super) rows: u64,
    /// How many of a hundred rows chosen at random are of them.
    pub(super) percent: u64,
}

/// Who is asked.
pub(super) enum Peer {
    /// A table of a server.
    Table(Table),
    /// An echo server.
    Echo(Connection),
}

/// One source of operations: a share of the rows in order, or rows at random.
pub(super) struct Worker {
    plan: Arc<Plan>,
    peer: Arc<Peer>,
    // What is asked of each row.
    selection: Arc<CellSelection>,
    // What an echo server is sent.
    question: Bytes,
    chance: Chance,
    // Rows whose turn has not come yet, of this worker's share.
    next: u64,
    end: u64,
}

impl Worker {
    /// Worker `at` of `workers`.
    pub(super) fn new(plan: Arc<Plan>, peer: Arc<Peer>, at: u64, workers: u64) -> Worker {
        let share = |at: u64| (u128::from(plan.rows.count) * u128::from(at) / u128::from(workers)) as u64;
        let (next, end) = (share(at), share(at + 1));
        let selection = plan.selection().into();
        let question = vec![b'v'; plan.question_len()].into();
        let chance = Chance::new(at.wrapping_mul(0x5851_f42d_4c95_7f2d));
        Worker { plan, peer, selection, question, chance, next, end }
    }

    /// Makes one call; how many rows it was about, `None` if there is nothing left to do.
    ///
    /// # Errors
    /// What the server or the way to it said.
    pub(super) async fn call(&mut self) -> Result<Option<u64>, Failure> {
        match &*Arc::clone(&self.peer) {
            Peer::Table(table) => self.ask(table).await,
            Peer::Echo(connection) => {
                echo(connection, self.question.clone()).await?;
                Ok(Some(self.plan.batch))
            }
        }
    }

    async fn ask(&mut self, table: &Table) -> Result<Option<u64>, Failure> {
        let plan = Arc::clone(&self.plan);
        if plan.workload.is_once() && self.next >= self.end {
            return Ok(None);
        }
        let done = match plan.workload {
            Workload::SequentialWrite | Workload::RandomWrite => self.write(table).await?,
            Workload::SequentialRead | Workload::RandomRead => self.read(table).await?,
            Workload::Scan | Workload::FilterScan => self.scan(table, self.next..self.end).await?,
            Workload::ScanRange10000 | Workload::FilterRange10000 => {
                let start = self.chance.below(plan.rows.count.saturating_sub(RANGE_ROWS).max(1));
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

    /// The number of the row whose turn it is.
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
            Some(hot) if self.chance.below(100) < hot.percent => self.chance.below(hot.rows),
            Some(hot) => hot.rows + self.chance.below(all - hot.rows),
            None => self.chance.below(all),
        }
    }

    /// The rows of the next call.
    fn rows_of_call(&mut self) -> Vec<u64> {
        let left = if self.plan.workload.is_once() { self.end - self.next } else { u64::MAX };
        (0..self.plan.batch.min(left)).map(|_| self.row()).collect()
    }

    async fn write(&mut self, table: &Table) -> Result<u64, Failure> {
        let rows = self.rows_of_call();
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
        let rows = self.rows_of_call();
        let mut gets: Vec<_> = rows.iter().map(|at| self.get(*at)).collect();
        match gets.pop() {
            Some(get) if gets.is_empty() => found(&table.get(&get).await?, rows[0])?,
            Some(get) => {
                gets.push(get);
                let answers = table.batch(gets.into_iter().map(Action::Get).collect()).await;
                for (answer, at) in answers.into_iter().zip(&rows) {
                    found(&answer?, *at)?;
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

    /// Scans rows; how many the server looked at, which is what it is paid for.
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
        let looked_at = rows.end - rows.start;
        match is_filtered || returned == looked_at {
            true => Ok(looked_at),
            false => Err(missing(rows.start + returned)),
        }
    }
}

/// One question to an echo server.
async fn echo(connection: &Connection, question: Bytes) -> Result<(), Failure> {
    let request = Request {
        method: "Get".into(),
        param: question,
        cells: CellBlock::new(),
        timeout: ECHO_TIMEOUT,
        priority: 0,
    };
    connection.call(request).await?;
    Ok(())
}

impl Plan {
    /// Bytes of a question to an echo server.
    pub(super) fn question_len(&self) -> usize {
        let of_row = match self.workload {
            Workload::Echo => GET_LEN,
            Workload::EchoPut => GET_LEN + self.rows.value_len,
            _ => 0,
        };
        of_row.saturating_mul(self.batch as usize)
    }

    /// The one column that the rows were written with.
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

/// Lets about so many tenths of the values pass.
fn passing(tenths: u8) -> Filter {
    let end = Bytes::copy_from_slice(&Rows::share_end(tenths));
    Filter::Value(Compare { op: CompareOp::Less, comparator: Comparator::Binary(end) })
}

fn found(row: &client::Row, at: u64) -> Result<(), Failure> {
    if row.is_empty() { Err(missing(at)) } else { Ok(()) }
}

fn missing(at: u64) -> Failure {
    Failure::Missing(String::from_utf8_lossy(&Rows::key(at)).into_owned())
}
