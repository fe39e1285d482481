//! Reads of a row, of one value, or of a range of rows.

use std::sync::Arc;

use cell::query::{Get, Scan};
use cell::schema::TableName;
use client::{Error, Row, ScanOptions, Table};
use hyper::StatusCode;
use proto::exception::class;

use crate::call::Call;
use crate::gateway::{Gateway, X_TIMESTAMP};
use crate::media::{CELLS_AND_VALUES, Media};
use crate::reply::{Failure, ILLEGAL_ARGUMENT, Reply, Result};
use crate::row_collector::RowCollector;
use crate::row_spec::RowSpec;

impl Gateway {
    /// The rows that a path describes.
    ///
    /// # Errors
    /// 500 if the path is not valid.
    pub(crate) fn row_spec(&self, call: &Call, spec: &str) -> Result<RowSpec> {
        let invalid = Failure::Page(StatusCode::INTERNAL_SERVER_ERROR);
        RowSpec::parse(spec, call.key_encoding()?).ok_or(invalid)
    }

    pub(crate) async fn get_rows(&self, call: &Call, table: TableName, spec: &str) -> Result<Reply> {
        let spec = self.row_spec(call, spec)?;
        let versions: Option<i32> = call.number("v", StatusCode::INTERNAL_SERVER_ERROR)?;
        let media = call.response_media(CELLS_AND_VALUES)?;
        if media == Media::Octets && spec.columns.len() != 1 {
            return Err(Failure::bad(
                "Default 'GET' method only works if there is exactly 1 column in the row. Using the 'Accept' header \
                 with one of these formats lets you retrieve the entire row if it has multiple columns: text/xml, \
                 application/json, application/x-protobuf, application/protobuf",
            ));
        }
        let versions = u32::try_from(versions.unwrap_or(1)).unwrap_or(0);
        if versions == 0 {
            return Err(Failure::unavailable(class::IO_EXCEPTION.name, "maxVersions must be positive"));
        }
        let mut selection = spec.selection(versions).ok_or_else(invalid_time)?;
        selection.cache_blocks = call.parameter("nocache").is_none();
        let table = self.client.table(table);
        let mut rows = self.collector(media);
        if let Some(stop_row) = spec.end_row {
            let scan = Scan { start_row: spec.row, stop_row, selection, ..Scan::default() };
            self.collect(&table, scan, &mut rows).await?;
        } else if spec.row.is_empty() {
            return Err(Failure::exception(ILLEGAL_ARGUMENT, "Row length 0"));
        } else {
            let get = Get { row: spec.row, selection: Arc::new(selection), existence_only: false };
            let row = table.get(&get).await.map_err(read_failure)?;
            if media == Media::Octets {
                return value_of(&row);
            }
            rows.add(&row.cells)?;
        }
        if rows.rows() == 0 { Err(Failure::not_found()) } else { Ok(rows.reply()) }
    }

    /// Rows of a response in memory.
    pub(crate) fn collector(&self, media: Media) -> RowCollector {
        RowCollector::new(media, &self.budget, self.options.response_bytes_max)
    }

    async fn collect(&self, table: &Table, scan: Scan, rows: &mut RowCollector) -> Result<()> {
        let mut scanner = table.scan_with(scan, ScanOptions { caching: self.options.fetch_rows, limit: 0 });
        loop {
            let added = match scanner.next().await {
                Ok(Some(row)) => rows.add(&row.cells),
                Ok(None) => return Ok(()),
                Err(error) => return Err(read_failure(error)),
            };
            if added.is_err() {
                scanner.close().await;
                return added;
            }
        }
    }
}

/// The value of the first cell.
fn value_of(row: &Row) -> Result<Reply> {
    let cell = row.cells.first().ok_or_else(Failure::not_found)?.view(0);
    let value = bytes::Bytes::copy_from_slice(cell.value);
    Ok(Reply::of(Media::Octets, value).with(X_TIMESTAMP, &cell.timestamp().to_string()))
}

/// The failure of a read. HBase's REST server logs errors that a retry does not change, and answers
/// as if there were no such row.
pub(crate) fn read_failure(error: Error) -> Failure {
    let failure = Failure::of(&error);
    match failure {
        Failure::Text(StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST, _) => failure,
        _ if error.is_final() => Failure::not_found(),
        failure => failure,
    }
}

fn invalid_time() -> Failure {
    Failure::exception(
        ILLEGAL_ARGUMENT,
        "Timestamp cannot be negative, and the end must not be before the start",
    )
}
