//! Scans in one request, streamed to the client.

use std::io;
use std::sync::Arc;

use base::budget::BudgetShare;
use base::env::{Env, TaskClass};
use bytes::{BufMut, Bytes, BytesMut};
use cell::filter::{Filter, ListOperator};
use cell::query::{CellSelection, Scan};
use cell::schema::TableName;
use client::{Row, ScanOptions, Scanner};
use futures_util::StreamExt;
use hyper::StatusCode;

use crate::call::Call;
use crate::gateway::Gateway;
use crate::media::{Media, RESULTS};
use crate::models::cells::CellSetWriter;
use crate::multiget::filter_of;
use crate::reply::{Content, Failure, Reply, Result};
use crate::row_spec::{selected, time_range};

/// Memory that a scan takes while it is streamed: the rows of one call to a server, and their form
/// for the client.
const MEMORY_BYTES: usize = 1 << 20;
/// Bytes of one part of the response.
const PART_BYTES: usize = 64 << 10;
/// Maximum size of a frame of protobuf; its length has 16 bits, which HBase's clients read with a
/// sign.
const FRAME_BYTES_MAX: usize = i16::MAX as usize;

const FAILED: Failure = Failure::Page(StatusCode::INTERNAL_SERVER_ERROR);

impl Gateway {
    /// The rows whose keys begin with `prefix`.
    pub(crate) async fn scan(&self, call: &Call, table: TableName, prefix: &str) -> Result<Reply> {
        let media = call.response_media(RESULTS)?;
        let (scan, results_max) = self.scan_of(call, prefix)?;
        let mut memory = BudgetShare::of(&self.budget);
        if !memory.take_large(MEMORY_BYTES) {
            return Err(Failure::line(
                StatusCode::SERVICE_UNAVAILABLE,
                "Unavailable: out of memory for responses",
            ));
        }
        let limit = results_max.unwrap_or(0);
        let options = ScanOptions { caching: self.options.fetch_rows, limit };
        let scanner = self.client.table(table).scan_with(scan, options);
        let mut rows =
            OpenScan { scanner: Some(scanner), env: self.env.clone(), left: results_max, _memory: memory };
        // The first row decides on the status.
        let first = rows.next().await.map_err(|error| match Failure::of(&error) {
            forbidden @ Failure::Text(StatusCode::FORBIDDEN, _) => forbidden,
            _ => FAILED,
        })?;
        let parts = match media {
            Media::Protobuf | Media::ProtobufIetf => {
                let frames = Frames { rows, next: first, rows_max: self.options.fetch_rows as usize };
                futures_util::stream::unfold(Some(frames), |frames| async move {
                    let mut frames = frames?;
                    match frames.part().await {
                        Ok(Some(part)) => Some((Ok(part), Some(frames))),
                        Ok(None) => None,
                        Err(error) => Some((Err(error), None)),
                    }
                })
                .boxed()
            }
            _ => {
                let document = Document { rows, next: first, writer: CellSetWriter::new(media) };
                futures_util::stream::unfold(Some(document), |document| async move {
                    let mut document = document?;
                    match document.part().await {
                        Ok((part, true)) => Some((Ok(part), None)),
                        Ok((part, false)) => Some((Ok(part), Some(document))),
                        Err(error) => Some((Err(error), None)),
                    }
                })
                .boxed()
            }
        };
        Ok(Reply::typed(media.name(), Content::Parts(parts)))
    }

    /// The scan of a request, and the maximum number of its results.
    fn scan_of(&self, call: &Call, prefix: &str) -> Result<(Scan, Option<u32>)> {
        // HBase's framework answers 404 to a parameter that is not a number.
        let number = |name: &str| call.number::<i64>(name, StatusCode::NOT_FOUND);
        let small = |name: &str| call.number::<i32>(name, StatusCode::NOT_FOUND);
        let flag = |name: &str, otherwise: bool| {
            call.parameter(name).map_or(otherwise, |text| text.eq_ignore_ascii_case("true"))
        };
        let versions =
            u32::try_from(small("maxversions")?.unwrap_or(1)).ok().filter(|versions| *versions > 0);
        let times = time_range(number("starttime")?.unwrap_or(0), number("endtime")?.unwrap_or(i64::MAX));
        let columns: Vec<Bytes> =
            call.parameters("column").map(|column| column.trim().to_owned().into()).collect();
        let mut filters = Vec::new();
        if !prefix.is_empty() {
            filters.push(Filter::Prefix(Some(prefix.to_owned().into())));
        }
        filters.extend(filter_of(call)?);
        let selection = CellSelection {
            columns: selected(&columns),
            time_range: times.ok_or(FAILED)?,
            max_versions: versions.ok_or(FAILED)?,
            cache_blocks: flag("cacheblocks", true),
            filter: all_of(filters).map(Arc::new),
            ..CellSelection::default()
        };
        let start_row = call.parameter("startrow").filter(|row| !row.is_empty()).unwrap_or(prefix);
        let scan = Scan {
            start_row: start_row.to_owned().into(),
            stop_row: call.parameter("endrow").unwrap_or("").to_owned().into(),
            reversed: flag("reversed", false),
            batch: u32::try_from(small("batchsize")?.unwrap_or(-1)).unwrap_or(0),
            selection,
            ..Scan::default()
        };
        let limit = u32::try_from(small("limit")?.unwrap_or(i32::MAX)).unwrap_or(0);
        // Without a batch size, results are rows. 0 and less mean no limit.
        Ok((scan, Some(limit).filter(|limit| *limit > 0)))
    }
}

fn all_of(mut filters: Vec<Filter>) -> Option<Filter> {
    match filters.len() {
        0 | 1 => filters.pop(),
        _ => Some(Filter::List { operator: ListOperator::MustPassAll, filters }),
    }
}

/// A running scan. If the client disconnects, the server's scanner is closed.
struct OpenScan {
    scanner: Option<Scanner>,
    env: Env,
    /// The number of further results, if it is limited.
    left: Option<u32>,
    _memory: BudgetShare,
}

impl OpenScan {
    async fn next(&mut self) -> client::Result<Option<Row>> {
        if self.left == Some(0) {
            self.close();
        }
        let Some(scanner) = &mut self.scanner else { return Ok(None) };
        let next = scanner.next().await;
        if !matches!(next, Ok(Some(_))) {
            self.scanner = None;
        }
        if let Some(left) = &mut self.left {
            *left -= 1;
        }
        next
    }

    /// As [`next`](Self::next). An error must end the response early: its status is sent already.
    async fn following(&mut self) -> io::Result<Option<Row>> {
        self.next().await.map_err(|error| {
            tracing::warn!(%error, "a scan ends early; closing the connection");
            io::Error::other(error.to_string())
        })
    }
}

impl OpenScan {
    /// Closes the server's scanner, without waiting for it.
    fn close(&mut self) {
        if let Some(scanner) = self.scanner.take() {
            self.env.spawn(TaskClass::Connection, scanner.close());
        }
    }
}

impl Drop for OpenScan {
    fn drop(&mut self) {
        self.close();
    }
}

/// XML or JSON in parts.
struct Document {
    rows: OpenScan,
    next: Option<Row>,
    writer: CellSetWriter,
}

impl Document {
    /// The next part, and whether it is the last one.
    async fn part(&mut self) -> io::Result<(Bytes, bool)> {
        while let Some(row) = self.next.take() {
            self.writer.row(&row.cells);
            self.next = self.rows.following().await?;
            if self.writer.len() >= PART_BYTES {
                return Ok((self.writer.take(), false));
            }
        }
        self.writer.finish();
        Ok((self.writer.take(), true))
    }
}

/// Protobuf in frames: two bytes of length, and some rows.
struct Frames {
    rows: OpenScan,
    next: Option<Row>,
    rows_max: usize,
}

impl Frames {
    async fn part(&mut self) -> io::Result<Option<Bytes>> {
        let mut frame = BytesMut::new();
        for _ in 0..self.rows_max.max(1) {
            let Some(row) = &self.next else { break };
            let mut writer = CellSetWriter::new(Media::Protobuf);
            writer.row(&row.cells);
            if writer.len() > FRAME_BYTES_MAX {
                return Err(io::Error::other("a row is too large for a frame of protobuf; use JSON or XML"));
            }
            if frame.len() + writer.len() > FRAME_BYTES_MAX {
                break;
            }
            frame.extend_from_slice(&writer.take());
            self.next = self.rows.following().await?;
        }
        if frame.is_empty() {
            return Ok(None);
        }
        let mut part = BytesMut::with_capacity(2 + frame.len());
        part.put_u16(u16::try_from(frame.len()).expect("a frame has at most 32767 bytes"));
        part.extend_from_slice(&frame);
        Ok(Some(part.freeze()))
    }
}
