//! Scanners that stay open between requests.
//!
//! A scanner belongs to this process. Its id is random, so that only the client that opened it
//! knows it. The number of scanners is limited, in total and for each client address: a client that
//! opens too many loses its own least recently used one. Unused scanners are closed.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::env::{Env, TaskClass};
use cell::KeyValue;
use cell::query::Scan;
use cell::schema::TableName;
use client::{ScanOptions, Scanner, Table};
use hyper::StatusCode;
use hyper::header::HeaderName;

use crate::base64;
use crate::call::Call;
use crate::filter;
use crate::gateway::{CellQueue, Gateway, X_TIMESTAMP};
use crate::media::{CELLS, CELLS_AND_VALUES, Media};
use crate::models::cells::column_of;
use crate::models::scanner::ScannerModel;
use crate::options::RestOptions;
use crate::reply::{Failure, ILLEGAL_ARGUMENT, Reply, Result, is_disabled, is_missing};
use crate::row_collector::RowCollector;

/// Bytes of cells after which a response without a limit ends; the next request continues.
const RESPONSE_BYTES: usize = 4 << 20;

/// The open scanners.
pub(crate) struct Scanners {
    open: Mutex<HashMap<String, Entry>>,
    max: usize,
    per_client_max: usize,
    time: Duration,
}

struct Entry {
    scanner: Arc<tokio::sync::Mutex<RowScanner>>,
    owner: IpAddr,
    /// When it was last used, by the monotonic clock.
    used: Duration,
}

impl Entry {
    /// Whether a request uses the scanner.
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.scanner) > 1
    }
}

impl Scanners {
    pub(crate) fn new(options: &RestOptions) -> Scanners {
        Scanners {
            open: Mutex::default(),
            max: options.scanners_max.max(1),
            per_client_max: options.scanners_per_client_max.clamp(1, options.scanners_max.max(1)),
            time: options.scanner_time,
        }
    }

    /// Adds a scanner, instead of the least recently used one of a client that has too many.
    /// Returns whether it was added: there may be too many in total.
    fn add(&self, id: String, owner: IpAddr, scanner: RowScanner, now: Duration) -> bool {
        self.remove_expired(now);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let of_owner = open.values().filter(|entry| entry.owner == owner).count();
        if of_owner >= self.per_client_max {
            let own = open.iter().filter(|(_, entry)| entry.owner == owner);
            let oldest = own.min_by_key(|(_, entry)| (entry.is_in_use(), entry.used));
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                open.remove(&oldest);
            }
        }
        if open.len() >= self.max {
            return false;
        }
        let scanner = Arc::new(tokio::sync::Mutex::new(scanner));
        open.insert(id, Entry { scanner, owner, used: now });
        true
    }

    /// The scanner with this id, if it has not expired. It does not expire while the caller uses
    /// it. [`end_use`](Self::end_use) must follow.
    fn find(&self, id: &str, now: Duration) -> Option<Arc<tokio::sync::Mutex<RowScanner>>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = open.get_mut(id).filter(|entry| !self.is_expired(entry, now))?;
        entry.used = now;
        Some(entry.scanner.clone())
    }

    /// Starts the idle time of a scanner.
    fn end_use(&self, id: &str, now: Duration) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = open.get_mut(id) {
            entry.used = now;
        }
    }

    /// Removes a scanner; returns whether there was one.
    fn remove(&self, id: &str) -> bool {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(id).is_some()
    }

    /// Removes the scanners that were not used for too long.
    fn remove_expired(&self, now: Duration) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, entry| !self.is_expired(entry, now));
    }

    fn is_expired(&self, entry: &Entry, now: Duration) -> bool {
        !entry.is_in_use() && now.saturating_sub(entry.used) > self.time
    }
}

/// A scan, cell by cell. It is opened by the first read. When dropped, the scanner of the region
/// server is closed.
struct RowScanner {
    env: Env,
    table: Table,
    scan: Scan,
    options: ScanOptions,
    batch: u64,
    open: Option<Scanner>,
    has_ended: bool,
    /// Cells of the current row that were not returned yet.
    cells: CellQueue,
}

impl RowScanner {
    /// The next cell; `None` at the end.
    async fn next(&mut self) -> client::Result<Option<KeyValue>> {
        loop {
            if let Some(cell) = self.cells.pop_front() {
                return Ok(Some(cell));
            }
            if self.has_ended {
                return Ok(None);
            }
            let (table, scan, options) = (&self.table, &self.scan, self.options);
            let scanner = self.open.get_or_insert_with(|| table.scan_with(scan.clone(), options));
            match scanner.next().await {
                Ok(Some(row)) => self.cells = row.cells.into(),
                Ok(None) => self.end(),
                Err(error) => {
                    self.end();
                    return Err(error);
                }
            }
        }
    }

    /// Makes `cells` the next ones again.
    fn put_back(&mut self, cells: Vec<KeyValue>) {
        for cell in cells.into_iter().rev() {
            self.cells.push_front(cell);
        }
    }

    fn end(&mut self) {
        self.has_ended = true;
        self.open = None;
    }
}

impl Drop for RowScanner {
    fn drop(&mut self) {
        if let Some(scanner) = self.open.take() {
            self.env.spawn(TaskClass::Connection, scanner.close());
        }
    }
}

/// Cells that a response took from a scanner. The scanner takes them back when this is dropped: if
/// the response fails, or if its client disconnects while the scanner waits.
struct TakenCells<'a> {
    scanner: &'a mut RowScanner,
    cells: Vec<KeyValue>,
}

impl Drop for TakenCells<'_> {
    fn drop(&mut self) {
        self.scanner.put_back(std::mem::take(&mut self.cells));
    }
}

/// The cells of one response, whose complete rows are encoded.
struct CellBatch<'a> {
    rows: RowCollector,
    taken: TakenCells<'a>,
    /// Where the last row begins in the cells.
    row_start: usize,
    bytes: usize,
}

impl<'a> CellBatch<'a> {
    fn new(rows: RowCollector, scanner: &'a mut RowScanner) -> CellBatch<'a> {
        CellBatch { rows, taken: TakenCells { scanner, cells: Vec::new() }, row_start: 0, bytes: 0 }
    }

    /// Number of cells.
    fn len(&self) -> usize {
        self.taken.cells.len()
    }

    /// Whether the last row ends before `cell`.
    fn ends_before(&self, cell: &KeyValue) -> bool {
        self.taken.cells.last().is_some_and(|last| last.view(0).row() != cell.view(0).row())
    }

    fn push(&mut self, cell: KeyValue) -> Result<()> {
        let (ends_row, row_end) = (self.ends_before(&cell), self.len());
        self.bytes += cell.bytes().len();
        self.taken.cells.push(cell);
        if ends_row { self.end_row(row_end) } else { Ok(()) }
    }

    /// Encodes the last row, which ends at `row_end` in the cells.
    fn end_row(&mut self, row_end: usize) -> Result<()> {
        let row = &self.taken.cells[std::mem::replace(&mut self.row_start, row_end)..row_end];
        if row.is_empty() { Ok(()) } else { self.rows.add(row) }
    }
}

impl Gateway {
    pub(crate) fn open_scanner(&self, call: &Call, table: TableName) -> Result<Reply> {
        let media = call.body_media(CELLS)?;
        let model = ScannerModel::decode(media, &call.body).map_err(|invalid| match invalid {
            crate::Invalid::Malformed => Failure::Page(StatusCode::BAD_REQUEST),
            _ => Failure::Page(StatusCode::INTERNAL_SERVER_ERROR),
        })?;
        let illegal = || Failure::exception(ILLEGAL_ARGUMENT, "invalid times or number of versions");
        let mut scan = model.scan().ok_or_else(illegal)?;
        if !model.filter.is_empty() {
            let filter = filter::parse(&model.filter).ok_or_else(|| Failure::bad(""))?;
            scan.selection.filter = Some(Arc::new(filter));
        }
        let caching = model.caching.unwrap_or(ScanOptions::default().caching);
        let scanner = RowScanner {
            env: self.env.clone(),
            table: self.client.table(table),
            scan,
            options: ScanOptions { caching, limit: model.limit.unwrap_or(0) },
            batch: model.batch.unwrap_or(u64::MAX),
            open: None,
            has_ended: false,
            cells: CellQueue::new(),
        };
        let random = &self.env.random;
        let id = format!("{:016x}{:016x}", random.next_u64(), random.next_u64());
        if !self.scanners.add(id.clone(), call.peer, scanner, self.env.clock.monotonic()) {
            return Err(Failure::line(StatusCode::SERVICE_UNAVAILABLE, "Unavailable: too many scanners"));
        }
        Ok(Reply::created(&format!("{}/{id}", call.url().trim_end_matches('/'))))
    }

    pub(crate) fn close_scanner(&self, id: &str) -> Result<Reply> {
        match self.scanners.remove(id) {
            true => Ok(Reply::empty(StatusCode::OK)),
            false => Err(Failure::not_found()),
        }
    }

    /// Closes scanners that were not used for too long.
    pub(crate) fn close_expired_scanners(&self) {
        self.scanners.remove_expired(self.env.clock.monotonic());
    }

    /// The next cells of a scanner.
    pub(crate) async fn next_of_scanner(&self, call: &Call, id: &str) -> Result<Reply> {
        let media = call.response_media(CELLS_AND_VALUES)?;
        let rows_max: Option<i32> = call.number("n", StatusCode::NOT_FOUND)?;
        let cells_max: Option<i32> = call.number("c", StatusCode::NOT_FOUND)?;
        let rows_max = rows_max.and_then(|max| usize::try_from(max).ok()).filter(|max| *max > 0);
        let cells_max = cells_max.and_then(|max| u64::try_from(max).ok()).filter(|max| *max > 0);
        let scanner = self.scanners.find(id, self.env.clock.monotonic()).ok_or_else(Failure::not_found)?;
        let mut scanner = scanner.lock().await;
        // A request that this one waited for may have failed and removed the scanner.
        if self.scanners.find(id, self.env.clock.monotonic()).is_none() {
            return Err(Failure::not_found());
        }
        let reply = match media {
            Media::Octets => self.next_value(&mut scanner, id).await,
            _ => self.next_cells(&mut scanner, id, media, (rows_max, cells_max)).await,
        };
        self.scanners.end_use(id, self.env.clock.monotonic());
        reply
    }

    async fn next_value(&self, scanner: &mut RowScanner, id: &str) -> Result<Reply> {
        match self.next_cell(scanner, id).await? {
            Some(cell) => Ok(value_of(&cell)),
            None => Ok(Reply::empty(StatusCode::NO_CONTENT)),
        }
    }

    async fn next_cells(
        &self,
        scanner: &mut RowScanner,
        id: &str,
        media: Media,
        (rows_max, cells_max): (Option<usize>, Option<u64>),
    ) -> Result<Reply> {
        let mut batch = CellBatch::new(self.collector(media), scanner);
        self.fill(&mut batch, id, (rows_max, cells_max)).await?;
        if std::mem::take(&mut batch.taken.cells).is_empty() {
            return Ok(Reply::empty(StatusCode::NO_CONTENT));
        }
        Ok(batch.rows.reply().uncached())
    }

    /// Reads cells until the response has enough.
    async fn fill(
        &self,
        batch: &mut CellBatch<'_>,
        id: &str,
        (rows_max, cells_max): (Option<usize>, Option<u64>),
    ) -> Result<()> {
        let rows_max = rows_max.unwrap_or(usize::MAX);
        let cells_max = cells_max.unwrap_or(batch.taken.scanner.batch);
        let bytes_max = RESPONSE_BYTES.min(self.options.response_bytes_max / 2);
        while (batch.len() as u64) < cells_max && batch.bytes < bytes_max {
            let Some(cell) = self.next_cell(batch.taken.scanner, id).await? else { break };
            if batch.ends_before(&cell) && batch.rows.rows() + 1 == rows_max {
                batch.taken.scanner.cells.push_front(cell);
                break;
            }
            batch.push(cell)?;
        }
        batch.end_row(batch.len())
    }

    async fn next_cell(&self, scanner: &mut RowScanner, id: &str) -> Result<Option<KeyValue>> {
        match scanner.next().await {
            Ok(cell) => Ok(cell),
            Err(error) if is_disabled(&error) => {
                self.scanners.remove(id);
                Err(Failure::line(StatusCode::GONE, "Gone"))
            }
            Err(error) if error.is_class(proto::exception::class::NO_SUCH_COLUMN_FAMILY) => Ok(None),
            Err(error) if is_missing(&error) => Err(Failure::not_found()),
            Err(error) => {
                // A further request must not look like the end of the scan.
                self.scanners.remove(id);
                Err(Failure::of(&error))
            }
        }
    }
}

/// One cell with its row, column and timestamp in headers.
fn value_of(cell: &KeyValue) -> Reply {
    let cell = cell.view(0);
    Reply::of(Media::Octets, bytes::Bytes::copy_from_slice(cell.value))
        .with(HeaderName::from_static("x-row"), &base64::encode(cell.row()))
        .with(HeaderName::from_static("x-column"), &base64::encode(&column_of(&cell)))
        .with(X_TIMESTAMP, &cell.timestamp().to_string())
        .uncached()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use cell::CellType;
    use client::{Client, ClientOptions, Registry};

    use super::*;
    use crate::reply::Content;

    fn scanner(client: &Client) -> RowScanner {
        RowScanner {
            env: base::testing::env(1),
            table: client.table(TableName::parse("t").unwrap()),
            scan: Scan::default(),
            options: ScanOptions::default(),
            batch: 1,
            open: None,
            has_ended: false,
            cells: CellQueue::new(),
        }
    }

    #[test]
    fn scanners_are_limited_by_client_in_total_and_in_time() {
        let env = base::testing::env(1);
        let client = Client::new(env, Registry::rpc(""), ClientOptions::default());
        let options = RestOptions {
            scanners_max: 3,
            scanners_per_client_max: 2,
            scanner_time: Duration::from_secs(10),
            ..RestOptions::default()
        };
        let (scanners, second) = (Scanners::new(&options), Duration::from_secs);
        let (one, other) = (IpAddr::from(Ipv4Addr::new(1, 1, 1, 1)), IpAddr::from(Ipv4Addr::new(2, 2, 2, 2)));
        let add = |id: &str, owner, at| scanners.add(id.into(), owner, scanner(&client), second(at));
        assert!(add("a", one, 0) && add("b", one, 1));
        assert!(scanners.find("a", second(2)).is_some());
        assert!(add("c", one, 3));
        assert!(scanners.find("b", second(3)).is_none(), "the least recently used one of the same client");
        assert!(add("d", other, 4) && !add("e", other, 4), "the total is full");
        assert!(add("f", other, 13), "the scanner last used at 2 is expired");
        assert!(scanners.find("a", second(13)).is_none() && scanners.find("c", second(13)).is_some());
        assert!(scanners.find("d", second(15)).is_none(), "expired, but not removed yet");
    }

    #[test]
    fn the_idle_time_of_a_scanner_starts_at_the_end_of_a_request() {
        let client = Client::new(base::testing::env(1), Registry::rpc(""), ClientOptions::default());
        let options = RestOptions {
            scanners_per_client_max: 2,
            scanner_time: Duration::from_secs(10),
            ..Default::default()
        };
        let (scanners, second) = (Scanners::new(&options), Duration::from_secs);
        let owner = IpAddr::from(Ipv4Addr::LOCALHOST);
        let add = |id: &str, at| assert!(scanners.add(id.into(), owner, scanner(&client), second(at)));
        add("busy", 0);
        let in_use = scanners.find("busy", second(1));
        add("idle", 2);
        add("new", 3);
        assert!(scanners.find("idle", second(3)).is_none(), "the one in use is not replaced");
        scanners.remove_expired(second(100));
        scanners.end_use("busy", second(100));
        drop(in_use);
        assert!(scanners.find("busy", second(110)).is_some());
        assert!(scanners.find("busy", second(121)).is_none());
    }

    #[tokio::test]
    async fn cells_of_a_failed_response_are_returned_by_the_next_request() {
        let env = base::testing::env(1);
        let client = Client::new(env.clone(), Registry::rpc(""), ClientOptions::default());
        let options = RestOptions { response_bytes_max: 200, ..RestOptions::default() };
        let gateway = Gateway::new(env, client.clone(), options);
        let cell = |row: &str| KeyValue::new(row.as_bytes(), b"f", b"q", 1, CellType::Put, b"v");
        let mut scanner = scanner(&client);
        (scanner.batch, scanner.has_ended) = (u64::MAX, true);
        scanner.cells = ["a", "b", "c", "d"].map(cell).into();
        let refused = gateway.next_cells(&mut scanner, "id", Media::Json, (None, None)).await;
        let too_large = |failure| matches!(failure, Failure::Text(StatusCode::PAYLOAD_TOO_LARGE, _));
        assert!(refused.err().is_some_and(too_large));
        for row in ["a", "b", "c", "d"] {
            let reply = gateway.next_cells(&mut scanner, "id", Media::Json, (None, Some(1))).await;
            let Ok(Reply { content: Content::Whole(body), .. }) = reply else { panic!("no cell of {row}") };
            let key = format!("\"key\":\"{}\"", base64::encode(row.as_bytes()));
            assert!(String::from_utf8_lossy(&body).contains(&key), "{body:?}");
        }
    }

    #[tokio::test]
    async fn cells_of_a_request_that_was_cut_off_are_returned_by_the_next_request() {
        let env = base::testing::env(1);
        let client = Client::new(env.clone(), Registry::rpc(""), ClientOptions::default());
        let gateway = Gateway::new(env, client.clone(), RestOptions::default());
        let mut scanner = scanner(&client);
        scanner.batch = u64::MAX;
        let cell = |row: &str| KeyValue::new(row.as_bytes(), b"f", b"q", 1, CellType::Put, b"v");
        scanner.cells = ["a", "b"].map(cell).into();
        // It waits for a third cell, because the cluster has no server.
        tokio::select! {
            biased;
            _ = gateway.next_cells(&mut scanner, "id", Media::Json, (None, None)) => panic!("a response"),
            () = std::future::ready(()) => {}
        }
        scanner.end();
        let reply = gateway.next_cells(&mut scanner, "id", Media::Json, (None, None)).await;
        let Ok(Reply { content: Content::Whole(body), .. }) = reply else { panic!("no cells") };
        for row in ["a", "b"] {
            let key = format!("\"key\":\"{}\"", base64::encode(row.as_bytes()));
            assert!(String::from_utf8_lossy(&body).contains(&key), "{body:?}");
        }
    }
}
