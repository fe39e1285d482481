//! The gateway: executes calls, within limits.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base::budget::{Budget, BudgetShare};
use base::env::Env;
use bytes::Bytes;
use cell::mutation::Mutation;
use client::{Client, Row, Table};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::call::Call;
use crate::failure::{Failure, MessageStyle, Result};
use crate::message::MessageHeader;
use crate::options::{Service, ThriftOptions};
use crate::protocol::Protocol;
use crate::reader::Reader;
use crate::scanners::{self, OpenScan, ScanFailure, Scanners};
use crate::{one, two};

/// Time limit for waiting until a call may be executed.
const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// The exception of HBase's client for a batch.
const BATCH_FAILED: &str = "org.apache.hadoop.hbase.client.RetriesExhaustedWithDetailsException";

/// A Thrift service of one cluster.
pub struct Gateway {
    pub(crate) env: Env,
    pub(crate) client: Client,
    pub(crate) options: ThriftOptions,
    pub(crate) budget: Arc<Budget>,
    scanners: Scanners,
    permits: Semaphore,
    waiting: AtomicUsize,
}

impl Gateway {
    /// A gateway for the cluster of `client`.
    pub fn new(env: Env, client: Client, options: ThriftOptions) -> Arc<Gateway> {
        Arc::new(Gateway {
            scanners: Scanners::new(&options),
            budget: Budget::new(options.memory_bytes),
            permits: Semaphore::new(options.calls_max.clamp(1, Semaphore::MAX_PERMITS)),
            waiting: AtomicUsize::new(0),
            env,
            client,
            options,
        })
    }

    /// Executes the call in `message`. Returns the response after `reserved` bytes of zeros, or
    /// `None` if the message is no call and the connection must be closed. The memory of the
    /// response is taken from `memory`.
    pub(crate) async fn respond(
        &self,
        message: Bytes,
        memory: &mut BudgetShare,
        peer: IpAddr,
        reserved: usize,
    ) -> Option<Vec<u8>> {
        let protocol = Protocol::of(*message.first()?).ok()?;
        let mut reader = Reader::new(protocol, message, memory);
        let header = MessageHeader::decode(&mut reader).ok()?;
        let mut call = Call { reader, peer, header: header.clone(), reserved };
        // No method has an empty name.
        let name = std::str::from_utf8(&header.name).unwrap_or("");
        let (declared, style) = match self.options.service {
            Service::One => (one::declared(name), MessageStyle::Class),
            Service::Two => (two::declared(name), MessageStyle::Plain),
        };
        let (result, declared) = match declared {
            Some(declared) => (self.execute(name, &mut call).await, declared),
            None => (Err(Failure::UnknownMethod), crate::failure::Declared::Nothing),
        };
        let failure = match result {
            Ok(response) => return Some(response),
            Err(failure) => failure,
        };
        let mut undeclared = None;
        let response = header.reply(protocol, reserved, |writer| {
            undeclared = failure.encode(declared, style, writer).err();
        });
        match undeclared {
            None => Some(response),
            Some(failure) => Some(header.exception(protocol, reserved, &failure.exception(&header.name))),
        }
    }

    async fn execute(&self, name: &str, call: &mut Call<'_>) -> Result<Vec<u8>> {
        let _permit = self.permit().await?;
        match self.options.service {
            Service::One => Box::pin(self.call_one(name, call)).await,
            Service::Two => Box::pin(self.call_two(name, call)).await,
        }
    }

    /// Waits until the call may be executed.
    async fn permit(&self) -> Result<SemaphorePermit<'_>> {
        let busy = || Failure::io("too many calls; retry", true);
        if let Ok(permit) = self.permits.try_acquire() {
            return Ok(permit);
        }
        let waiting = Waiting::start(&self.waiting);
        if waiting.before >= self.options.waiting_max {
            return Err(busy());
        }
        let permit = self.env.timeout(WAIT_LIMIT, self.permits.acquire()).await;
        permit.and_then(|permit| permit.ok()).ok_or_else(busy)
    }

    /// Opens a scanner; returns its id.
    pub(crate) fn open_scanner(
        &self,
        peer: IpAddr,
        scanner: client::Scanner,
        has_sorted_columns: bool,
    ) -> Result<i32> {
        let scan = self.new_scan(scanner, has_sorted_columns)?;
        self.scanners.add(peer, scan, &self.env).ok_or_else(too_many_scanners)
    }

    fn new_scan(&self, scanner: client::Scanner, has_sorted_columns: bool) -> Result<OpenScan> {
        let scan = OpenScan::new(&self.env, scanner, has_sorted_columns, &self.budget);
        scan.ok_or_else(too_many_scanners)
    }

    /// The first rows of a scan that ends with the call.
    pub(crate) async fn first_rows(
        &self,
        call: &mut Call<'_>,
        scanner: client::Scanner,
        rows_max: i32,
    ) -> Result<Vec<Row>> {
        let mut scan = self.new_scan(scanner, false)?;
        let rows = scan.next(call, row_count(rows_max), self.options.response_bytes_max).await;
        rows.map_err(|failure| self.failure_of(failure))
    }

    /// The next rows of a scanner, and whether its columns are sorted; `None` if there is no such
    /// scanner.
    pub(crate) async fn next_rows(
        &self,
        call: &mut Call<'_>,
        id: i32,
        rows_max: i32,
    ) -> Result<Option<(Vec<Row>, bool)>> {
        let Some(scan) = self.scanners.find(id, call.peer, self.env.clock.monotonic()) else {
            return Ok(None);
        };
        let mut scan = scan.lock().await;
        // A call that this one waited for may have failed and removed the scanner.
        if self.scanners.find(id, call.peer, self.env.clock.monotonic()).is_none() {
            return Ok(None);
        }
        let rows = scan.next(call, row_count(rows_max), self.options.response_bytes_max).await;
        self.scanners.end_use(id, self.env.clock.monotonic());
        if matches!(rows, Err(ScanFailure::Client(_))) {
            // A further call must not look like the end of the scan.
            self.scanners.remove(id, call.peer);
        }
        let rows = rows.map_err(|failure| self.failure_of(failure))?;
        Ok(Some((rows, scan.has_sorted_columns)))
    }

    fn failure_of(&self, failure: ScanFailure) -> Failure {
        match failure {
            ScanFailure::Client(error) => error.into(),
            ScanFailure::TooLarge => self.too_large("request fewer rows"),
            ScanFailure::NoMemory(failure) => failure,
        }
    }

    fn too_large(&self, advice: &str) -> Failure {
        let max = self.options.response_bytes_max;
        Failure::io(format!("the response is larger than {max} bytes; {advice}"), false)
    }

    /// Closes a scanner; returns whether there was one.
    pub(crate) fn close_scanner(&self, id: i32, peer: IpAddr) -> bool {
        self.scanners.remove(id, peer)
    }

    /// Closes scanners that were not used for too long.
    pub(crate) fn close_expired_scanners(&self) {
        self.scanners.remove_expired(self.env.clock.monotonic());
    }

    /// Reads rows; some may be empty. The order is that of `gets`.
    pub(crate) async fn read_rows(
        &self,
        call: &mut Call<'_>,
        table: &Table,
        gets: Vec<cell::query::Get>,
    ) -> Result<Vec<Row>> {
        /// Rows that are read before their size is checked.
        const ROWS_AT_ONCE: usize = 100;
        // Like HBase's client: the exception of a single read is not that of a batch.
        if let [get] = &gets[..] {
            return Ok(vec![self.read_row(call, table, get).await?]);
        }
        let (mut rows, mut bytes) = (Vec::with_capacity(gets.len().min(ROWS_AT_ONCE)), 0);
        let mut gets = gets.into_iter().map(client::Action::Get).peekable();
        while gets.peek().is_some() {
            let outcomes = table.batch(gets.by_ref().take(ROWS_AT_ONCE).collect()).await;
            for row in completed(outcomes)? {
                let size = scanners::row_bytes(&row);
                bytes += size;
                // Before memory is taken: a retry would not help.
                if bytes > self.options.response_bytes_max {
                    return Err(self.too_large("request fewer rows or columns"));
                }
                call.take_memory(size)?;
                rows.push(row);
            }
        }
        Ok(rows)
    }

    /// Applies independent changes of any rows.
    pub(crate) async fn change_rows(&self, table: &Table, changes: Vec<Mutation>) -> Result<()> {
        let outcomes = table.batch(changes.into_iter().map(client::Action::Mutate).collect()).await;
        completed(outcomes).map(drop)
    }

    /// Reads a row, which is empty if it does not exist.
    pub(crate) async fn read_row(
        &self,
        call: &mut Call<'_>,
        table: &Table,
        get: &cell::query::Get,
    ) -> Result<Row> {
        let row = table.get(get).await?;
        let bytes = scanners::row_bytes(&row);
        if bytes > self.options.response_bytes_max {
            return Err(self.too_large("request fewer columns"));
        }
        call.take_memory(bytes)?;
        Ok(row)
    }
}

fn too_many_scanners() -> Failure {
    Failure::io("too many scanners; close some, or retry", true)
}

/// A maximum number of rows; none if it is negative.
fn row_count(count: i32) -> usize {
    usize::try_from(count).unwrap_or(0)
}

/// The rows of a batch that has succeeded.
///
/// # Errors
/// The exception of HBase's client for a batch of which some actions have failed. Clients may
/// always retry it.
pub(crate) fn completed(outcomes: Vec<client::Result<Row>>) -> Result<Vec<Row>> {
    let mut rows = Vec::with_capacity(outcomes.len());
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for outcome in outcomes {
        match outcome {
            Ok(row) => rows.push(row),
            Err(error) => *reasons.entry(reason(&error)).or_default() += 1,
        }
    }
    if reasons.is_empty() {
        return Ok(rows);
    }
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let count = reasons.values().sum();
    let reasons: Vec<String> = reasons
        .into_iter()
        .map(|(reason, count)| format!("{reason}: {count} time{}", plural(count)))
        .collect();
    Err(Failure::Io {
        class: BATCH_FAILED.into(),
        message: format!("Failed {count} action{}: {}", plural(count), reasons.join(", ")),
        can_retry: true,
    })
}

fn reason(error: &client::Error) -> String {
    let message = error.java_message();
    let message = message.lines().next().unwrap_or("");
    match error {
        client::Error::Remote(_) => format!("{}: {message}", error.java_class()),
        _ => message.to_owned(),
    }
}

/// A waiting call; no longer counted when dropped.
struct Waiting<'a> {
    count: &'a AtomicUsize,
    before: usize,
}

impl<'a> Waiting<'a> {
    fn start(count: &'a AtomicUsize) -> Waiting<'a> {
        Waiting { count, before: count.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}
