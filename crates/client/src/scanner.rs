//! Rows in order, across regions, with all that can happen between two of them.
//!
//! A scanner of a server is opened in one region after the other. When it is lost (region moved, lease over, server
//! gone) another one is opened behind the last row that came whole; pieces of the row that was coming are dropped and
//! come again, so that a row is never made of two reads. With a batch size, pieces that were given out already are
//! passed over by their last key.

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
use crate::connections::{HIGH_PRIORITY, Outgoing};
use crate::error::{Error, Result};
use crate::locations::{Location, Position};
use crate::message::{Cells, Row};
use crate::retry::Retry;

/// How rows are asked for.
#[derive(Debug, Clone, Copy)]
pub struct ScanOptions {
    /// Rows (with a batch size: pieces) of one answer at most.
    pub caching: u32,
    /// Rows altogether at most; 0 for no limit.
    pub limit: u32,
}

impl Default for ScanOptions {
    fn default() -> ScanOptions {
        ScanOptions { caching: i32::MAX.cast_unsigned(), limit: 0 }
    }
}

/// A scan under way.
pub struct Scanner {
    client: Client,
    table: TableName,
    scan: Scan,
    options: ScanOptions,
    // Where the next region is to be opened; `None` once all are done.
    next: Option<Next>,
    open: Option<Open>,
    // Given out by the server, not yet by us.
    ready: VecDeque<Row>,
    // Pieces of the row that is still coming.
    partial: Vec<KeyValue>,
    // The last cell given out of a row that may go on (batches only).
    last_given: Option<KeyValue>,
    rows_begun: u32,
}

/// From where on to read.
#[derive(Clone)]
struct Next {
    position: Position,
    start_row: Bytes,
    include_start_row: bool,
}

/// A scanner of a server.
struct Open {
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
        let next =
            Next { position, start_row: scan.start_row.clone(), include_start_row: scan.include_start_row };
        Scanner {
            client,
            table,
            scan,
            options,
            next: Some(next),
            open: None,
            ready: VecDeque::new(),
            partial: Vec::new(),
            last_given: None,
            rows_begun: 0,
        }
    }

    /// The next row (with a batch size: the next piece of one), `None` behind the last.
    ///
    /// # Errors
    /// [`Error`]; the scan is over then.
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
            match self.fetch().await {
                // A scanner that opens, tells nothing and is lost has brought us nowhere.
                Ok(()) if !self.ready.is_empty() || self.open.is_none() => retry.progressed(),
                Ok(()) => {}
                Err(error) => self.recover(&mut retry, error).await?,
            }
        }
    }

    /// All rows that are left.
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

    /// Ends the scan early, so that the server need not wait for the lease to run out.
    pub async fn close(mut self) {
        self.close_open().await;
    }

    /// After a failure: where to go on, when; or that there is no going on.
    async fn recover(&mut self, retry: &mut Retry<'_>, error: Error) -> Result<()> {
        self.open = None;
        self.partial.clear();
        let paused = match self.client.refuse_if_disabled(&self.table, &error).await {
            Ok(()) => retry.pause(error).await,
            Err(disabled) => Err(disabled),
        };
        if paused.is_err() {
            self.next = None;
        }
        paused
    }

    /// One call: opens the next region's scanner, or goes on with the open one.
    async fn fetch(&mut self) -> Result<()> {
        let (location, request) = match &self.open {
            Some(open) => (Arc::clone(&open.location), self.next_request(open)),
            None => {
                let next = self.next.clone().expect("asked for only while there is one");
                let location = self.client.locate(&self.table, &next.position).await?;
                let request = self.open_request(&location, &next);
                (location, request)
            }
        };
        let priority = if self.table.is_system() { HIGH_PRIORITY } else { 0 };
        let call = Outgoing { priority, ..Outgoing::new("ClientService", "Scan", &request) };
        let (response, cells): (ScanResponse, Bytes) = self.client.call_region(&location, call).await?;
        self.take_rows(&response, cells)?;
        self.go_on(location, &response).await
    }

    fn open_request(&self, location: &Location, next: &Next) -> ScanRequest {
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

    fn next_request(&self, open: &Open) -> ScanRequest {
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

    /// Rows still wanted, `None` for all.
    fn rows_left(&self) -> Option<u32> {
        (self.options.limit > 0).then(|| self.options.limit.saturating_sub(self.rows_begun).max(1))
    }

    fn take_rows(&mut self, response: &ScanResponse, cells: Bytes) -> Result<()> {
        let mut cells = Cells::of(cells);
        for (at, count) in response.cells_per_result.iter().enumerate() {
            let partial = response.partial_flag_per_result.get(at).copied().unwrap_or(false);
            let row = Row { cells: cells.take(*count as usize)? };
            self.take_piece(row, partial);
        }
        for result in &response.results {
            let row = cells.row(result)?;
            self.take_piece(row, result.partial());
        }
        Ok(())
    }

    /// A row, or a piece of one with more to come if `partial`.
    fn take_piece(&mut self, mut piece: Row, partial: bool) {
        let order = if self.table.is_meta() { CellOrder::Meta } else { CellOrder::Plain };
        let known = self.partial.first().or(self.last_given.as_ref());
        if !piece.is_empty() && known.is_some_and(|known| known.view(0).row() != piece.key()) {
            self.end_row();
        }
        if let Some(last) = self.last_given.take_if(|last| last.view(0).row() == piece.key()) {
            piece.cells.retain(|cell| order.compare(&cell.view(0), &last.view(0)).is_gt());
            self.last_given = Some(last);
        }
        self.partial.append(&mut piece.cells);
        let batch = self.scan.batch as usize;
        while batch > 0 && self.partial.len() >= batch {
            let rest = self.partial.split_off(batch);
            let full = std::mem::replace(&mut self.partial, rest);
            self.last_given = full.last().cloned();
            self.give(full);
        }
        if !partial {
            self.end_row();
        }
    }

    /// The row that was coming is all here.
    fn end_row(&mut self) {
        let cells = std::mem::take(&mut self.partial);
        if let Some(last) = cells.last() {
            self.last_given = Some(last.clone());
            self.give(cells);
        }
        let Some(last) = self.last_given.take() else { return };
        self.rows_begun += 1;
        let row = Bytes::copy_from_slice(last.view(0).row());
        let position = match self.scan.reversed {
            // The region of a row given out holds smaller rows too, unless the row is its first.
            true => Position::Before(row.clone()),
            false => Position::At(row.clone()),
        };
        self.next = Some(Next { position, start_row: row, include_start_row: false });
    }

    fn give(&mut self, cells: Vec<KeyValue>) {
        self.ready.push_back(Row { cells });
    }

    /// Decides by the answer's flags what the next call is.
    async fn go_on(&mut self, location: Arc<Location>, response: &ScanResponse) -> Result<()> {
        // A server that leaves a flag out has more.
        let in_region = response.more_results_in_region.unwrap_or(true);
        let over = !response.more_results.unwrap_or(true);
        if in_region && !over {
            self.keep_open(Arc::clone(&location), response)?;
        } else {
            // The server has closed its scanner; the row that was coming has come whole.
            self.open = None;
            self.end_row();
        }
        if over || (self.options.limit > 0 && self.rows_begun >= self.options.limit) {
            self.partial.clear();
            self.close_open().await;
            self.next = None;
        } else if !in_region {
            self.next = self.behind(&location);
        }
        Ok(())
    }

    fn keep_open(&mut self, location: Arc<Location>, response: &ScanResponse) -> Result<()> {
        match (&mut self.open, response.scanner_id) {
            (Some(open), _) => open.next_call_seq += 1,
            (None, Some(id)) => self.open = Some(Open { location, id, next_call_seq: 0 }),
            (None, None) => return Err(Error::Malformed("an open scanner has no id".into())),
        }
        Ok(())
    }

    /// The region that follows, if the scan reaches it.
    fn behind(&self, location: &Location) -> Option<Next> {
        let stop = &self.scan.stop_row;
        if self.scan.reversed {
            let start = &location.region.start_key;
            let reaches = !start.is_empty() && (stop.is_empty() || start > stop);
            return reaches.then(|| Next {
                position: Position::Before(start.clone()),
                start_row: start.clone(),
                include_start_row: false,
            });
        }
        let end = &location.region.end_key;
        let reaches =
            !end.is_empty() && (EndKey(stop).is_after(end) || (end == stop && self.scan.include_stop_row));
        reaches.then(|| Next {
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
        let call = Outgoing::new("ClientService", "Scan", &request);
        // If it fails the lease ends it.
        let _: Result<(ScanResponse, Bytes)> = self.client.call_region(&open.location, call).await;
    }
}
