//! Scans across regions, with recovery from failures.
//!
//! The scanner opens a server-side scanner in each region in sequence. If that scanner is lost
//! (region moved, lease expired, server gone), it opens a new one after the last complete row. It
//! drops the parts of an incomplete row and reads them again, so that a row is never assembled from
//! two reads. A call that the server refuses to start leaves its scanner as it was, so the same
//! scanner continues. With a batch size, parts of the row may have been returned already: the
//! scanner skips all cells up to the last one that was returned.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use cell::EndKey;
use cell::query::Scan;
use cell::schema::TableName;
use cell::{CellOrder, KeyValue};
use proto::{ScanRequest, ScanResponse};
use wire::convert;

use crate::Client;
use crate::connections::{HIGH_PRIORITY, OutgoingCall};
use crate::error::{Error, Reaction, Result};
use crate::locations::{Location, Position};
use crate::message::{Cells, Row};
use crate::retry::Retry;

/// Options of a scan.
#[derive(Debug, Clone, Copy)]
pub struct ScanOptions {
    /// Maximum number of rows (with a batch size: parts of rows) in one response.
    pub caching: u32,
    /// Maximum number of rows in total; 0 for no limit.
    pub limit: u32,
}

impl Default for ScanOptions {
    fn default() -> ScanOptions {
        ScanOptions { caching: i32::MAX.cast_unsigned(), limit: 0 }
    }
}

/// A running scan.
pub struct Scanner {
    client: Client,
    table: TableName,
    scan: Scan,
    options: ScanOptions,
    // Where to open the next region; `None` if no region is left.
    next: Option<ResumePoint>,
    open: Option<OpenScanner>,
    // Received from the server, not returned yet.
    ready: VecDeque<Row>,
    // Received parts of an incomplete row.
    partial: Vec<KeyValue>,
    // The most cells that `partial` has had for this row.
    longest_partial: usize,
    // Last returned cell of a row that may be incomplete (batches and parts only).
    last_returned: Option<KeyValue>,
    in_parts: bool,
    rows_begun: u32,
}

/// Where to continue reading.
#[derive(Clone)]
struct ResumePoint {
    position: Position,
    start_row: Bytes,
    include_start_row: bool,
}

/// A server-side scanner.
struct OpenScanner {
    location: Arc<Location>,
    id: u64,
    next_call_seq: u64,
}

impl Scanner {
    pub(crate) fn new(client: Client, table: TableName, scan: Scan, options: ScanOptions) -> Scanner {
        let position = match (scan.reversed, scan.start_row.is_empty(), scan.include_start_row) {
            (false, _, _) | (true, false, true) => Position::At(scan.start_row.clone()),
            (true, true, _) => Position::Last,
            (true, false, false) => Position::Before(scan.start_row.clone()),
        };
        let next = ResumePoint {
            position,
            start_row: scan.start_row.clone(),
            include_start_row: scan.include_start_row,
        };
        Scanner {
            client,
            table,
            scan,
            options,
            next: Some(next),
            open: None,
            ready: VecDeque::new(),
            partial: Vec::new(),
            longest_partial: 0,
            last_returned: None,
            in_parts: false,
            rows_begun: 0,
        }
    }

    /// Returns the parts of a large row as the servers send them, so that the memory does not
    /// depend on the size of the row. A part has about
    /// [`scan_bytes_max`](crate::ClientOptions) bytes, or one larger cell.
    pub fn in_parts(self) -> Scanner {
        Scanner { in_parts: true, ..self }
    }

    /// The next row (with a batch size, or in parts: the next part of a row), `None` at the end.
    ///
    /// # Errors
    /// [`Error`]; the scan has then ended.
    pub async fn next(&mut self) -> Result<Option<Row>> {
        let client = self.client.clone();
        let mut retry = Retry::new(client.env(), client.options());
        loop {
            if let Some(row) = self.ready.pop_front() {
                return Ok(Some(row));
            }
            if self.open.is_none() && self.next.is_none() {
                return Ok(None);
            }
            match self.fetch(&retry).await {
                Ok(()) if self.has_progressed() => retry.progressed(),
                Ok(()) => {}
                Err(error) => self.recover(&mut retry, error).await?,
            }
        }
    }

    /// Whether the last response advanced the scan. A scanner that opens, returns no rows and is
    /// lost makes no progress, nor does one that returns the same parts of a row again.
    fn has_progressed(&mut self) -> bool {
        let has_longer_part = self.partial.len() > self.longest_partial;
        self.longest_partial = self.longest_partial.max(self.partial.len());
        !self.ready.is_empty() || self.open.is_none() || has_longer_part
    }

    /// All remaining rows.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn collect(mut self) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        while let Some(row) = self.next().await? {
            rows.push(row);
        }
        Ok(rows)
    }

    /// Ends the scan early, so that the server does not have to wait until the lease expires.
    pub async fn close(mut self) {
        self.close_open().await;
    }

    /// Handles a failure: pauses before the scan continues, or ends the scan with an error.
    async fn recover(&mut self, retry: &mut Retry<'_>, error: Error) -> Result<()> {
        let is_refused = matches!(error.reaction(), Reaction::Retry | Reaction::RetryOverloaded);
        if !is_refused {
            self.drop_open();
        }
        let paused = match self.client.refuse_if_disabled(&self.table, &error).await {
            Ok(()) => retry.pause(error).await,
            Err(disabled) => Err(disabled),
        };
        if paused.is_err() {
            self.drop_open();
            self.next = None;
        }
        paused
    }

    /// Drops the open scanner, and the parts of a row that it has returned.
    fn drop_open(&mut self) {
        self.open = None;
        self.partial.clear();
    }

    /// One call: opens the next region's scanner, or continues the open one.
    async fn fetch(&mut self, retry: &Retry<'_>) -> Result<()> {
        let (location, request) = match &self.open {
            Some(open) => (Arc::clone(&open.location), self.next_request(open)),
            None => {
                let next = self.next.clone().expect("fetch is called only if a region is left");
                let location = self.client.locate(&self.table, &next.position, retry).await?;
                let request = self.open_request(&location, &next);
                (location, request)
            }
        };
        let priority = if self.table.is_system() { HIGH_PRIORITY } else { 0 };
        let call = OutgoingCall { priority, ..OutgoingCall::new("ClientService", "Scan", &request) };
        let (response, cells): (ScanResponse, Bytes) = self.client.call_region(&location, call).await?;
        self.take_rows(&response, cells)?;
        self.plan_next_call(location, &response).await
    }

    fn open_request(&self, location: &Location, next: &ResumePoint) -> ScanRequest {
        let scan = Scan {
            start_row: next.start_row.clone(),
            include_start_row: next.include_start_row,
            ..self.scan.clone()
        };
        ScanRequest {
            region: Some(location.specifier()),
            scan: Some(proto::Scan {
                max_result_size: Some(self.client.options().scan_bytes_max),
                caching: Some(self.options.caching),
                ..convert::to_proto::scan(&scan)
            }),
            close_scanner: Some(false),
            ..self.request()
        }
    }

    fn next_request(&self, open: &OpenScanner) -> ScanRequest {
        ScanRequest { scanner_id: Some(open.id), next_call_seq: Some(open.next_call_seq), ..self.request() }
    }

    fn request(&self) -> ScanRequest {
        ScanRequest {
            number_of_rows: Some(self.options.caching),
            client_handles_partials: Some(true),
            client_handles_heartbeats: Some(true),
            limit_of_rows: self.rows_left(),
            ..ScanRequest::default()
        }
    }

    /// Maximum number of remaining rows; `None` for no limit.
    fn rows_left(&self) -> Option<u32> {
        (self.options.limit > 0).then(|| self.options.limit.saturating_sub(self.rows_begun).max(1))
    }

    fn take_rows(&mut self, response: &ScanResponse, cells: Bytes) -> Result<()> {
        let mut cells = Cells::in_codec(self.client.codec(), cells);
        for (at, count) in response.cells_per_result.iter().enumerate() {
            let partial = response.partial_flag_per_result.get(at).copied().unwrap_or(false);
            let row = Row { cells: cells.take(*count as usize)? };
            self.add_part(row, partial);
        }
        for result in &response.results {
            let row = cells.row(result)?;
            self.add_part(row, result.partial());
        }
        Ok(())
    }

    /// Processes a row, or a part of one if `partial`.
    fn add_part(&mut self, mut part: Row, partial: bool) {
        let order = if self.table.is_meta() { CellOrder::Meta } else { CellOrder::Plain };
        let previous = self.partial.first().or(self.last_returned.as_ref());
        if !part.is_empty() && previous.is_some_and(|previous| previous.view(0).row() != part.key()) {
            self.end_row();
        }
        if let Some(last) = self.last_returned.take_if(|last| last.view(0).row() == part.key()) {
            part.cells.retain(|cell| order.compare(&cell.view(0), &last.view(0)).is_gt());
            self.last_returned = Some(last);
        }
        self.partial.append(&mut part.cells);
        let batch = self.scan.batch as usize;
        while batch > 0 && self.partial.len() >= batch {
            let rest = self.partial.split_off(batch);
            let full = std::mem::replace(&mut self.partial, rest);
            self.last_returned = full.last().cloned();
            self.push_row(full);
        }
        if !partial {
            self.end_row();
        } else if self.in_parts
            && let Some(last) = self.partial.last()
        {
            self.last_returned = Some(last.clone());
            let part = std::mem::take(&mut self.partial);
            self.push_row(part);
        }
    }

    /// Completes the current row.
    fn end_row(&mut self) {
        let cells = std::mem::take(&mut self.partial);
        self.longest_partial = 0;
        if let Some(last) = cells.last() {
            self.last_returned = Some(last.clone());
            self.push_row(cells);
        }
        let Some(last) = self.last_returned.take() else { return };
        self.rows_begun += 1;
        let row = Bytes::copy_from_slice(last.view(0).row());
        let position = match self.scan.reversed {
            // A reversed scan continues with smaller rows. They are in the same region, unless this
            // row is the start key of the region; then they are in the region before.
            true => Position::Before(row.clone()),
            false => Position::At(row.clone()),
        };
        self.next = Some(ResumePoint { position, start_row: row, include_start_row: false });
    }

    fn push_row(&mut self, cells: Vec<KeyValue>) {
        self.ready.push_back(Row { cells });
    }

    /// Determines the next call from the response's flags.
    async fn plan_next_call(&mut self, location: Arc<Location>, response: &ScanResponse) -> Result<()> {
        // A missing flag means that there is more.
        let in_region = response.more_results_in_region.unwrap_or(true);
        let scan_ended = !response.more_results.unwrap_or(true);
        if in_region && !scan_ended {
            self.keep_open(Arc::clone(&location), response)?;
        } else {
            // The server has closed its scanner, so the current row is complete.
            self.open = None;
            self.end_row();
        }
        if scan_ended || (self.options.limit > 0 && self.rows_begun >= self.options.limit) {
            self.partial.clear();
            // Before the pause: the caller may drop this future.
            self.next = None;
            self.close_open().await;
        } else if !in_region {
            self.next = self.next_region(&location);
        }
        Ok(())
    }

    fn keep_open(&mut self, location: Arc<Location>, response: &ScanResponse) -> Result<()> {
        match (&mut self.open, response.scanner_id) {
            (Some(open), _) => open.next_call_seq += 1,
            (None, Some(id)) => self.open = Some(OpenScanner { location, id, next_call_seq: 0 }),
            (None, None) => return Err(Error::Malformed("an open scanner has no id".into())),
        }
        Ok(())
    }

    /// The next region, if the scan extends to it.
    fn next_region(&self, location: &Location) -> Option<ResumePoint> {
        let stop = &self.scan.stop_row;
        if self.scan.reversed {
            let start = &location.region.start_key;
            let reaches = !start.is_empty() && (stop.is_empty() || start > stop);
            return reaches.then(|| ResumePoint {
                position: Position::Before(start.clone()),
                start_row: start.clone(),
                include_start_row: false,
            });
        }
        let end = &location.region.end_key;
        let reaches =
            !end.is_empty() && (EndKey(stop).is_after(end) || (end == stop && self.scan.include_stop_row));
        reaches.then(|| ResumePoint {
            position: Position::At(end.clone()),
            start_row: end.clone(),
            include_start_row: true,
        })
    }

    async fn close_open(&mut self) {
        let Some(open) = self.open.take() else { return };
        let request = ScanRequest {
            scanner_id: Some(open.id),
            number_of_rows: Some(0),
            close_scanner: Some(true),
            ..ScanRequest::default()
        };
        let call = OutgoingCall::new("ClientService", "Scan", &request);
        // On failure the lease expires.
        let _: Result<(ScanResponse, Bytes)> = self.client.call_region(&open.location, call).await;
    }
}
