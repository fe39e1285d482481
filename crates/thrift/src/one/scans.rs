//! Scanners.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use cell::filter::Filter;
use cell::query::Scan;
use client::ScanOptions;

use super::rows::selection;
use super::types::{RowResults, TScan};
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::gateway::Gateway;
use crate::mutations::{OperationAttributes, filter, is_one_row, is_raw, table_name};

impl Gateway {
    /// `scannerOpenWithScan`.
    pub(super) fn open_scan(
        &self,
        peer: IpAddr,
        table: &[u8],
        scan: TScan,
        attributes: &OperationAttributes,
    ) -> Result<i32> {
        let mut selection = selection(scan.columns, scan.timestamp)?;
        selection.cache_blocks = scan.cache_blocks.unwrap_or(true);
        selection.filter = scan.filter.as_deref().map(filter).transpose()?.map(Arc::new);
        let caching =
            scan.caching.and_then(|caching| u32::try_from(caching).ok()).filter(|caching| *caching > 0);
        let options = ScanOptions { caching: caching.unwrap_or(ScanOptions::default().caching), limit: 0 };
        let batch = scan.batch.and_then(|batch| u32::try_from(batch).ok()).unwrap_or(0);
        let sorted = scan.sort_columns.unwrap_or(false);
        let scan = Scan {
            include_stop_row: is_one_row(scan.start.as_ref(), scan.stop.as_ref()),
            start_row: scan.start.unwrap_or_default(),
            stop_row: scan.stop.unwrap_or_default(),
            reversed: scan.reversed.unwrap_or(false),
            batch,
            raw: is_raw(attributes),
            selection,
            ..Scan::default()
        };
        let scanner = self.client.table(table_name(table)?).scan_with(scan, options);
        self.open_scanner(peer, scanner, sorted)
    }

    /// `scannerOpen`, `scannerOpenWithStop` and the methods with a timestamp.
    pub(super) fn open_range(
        &self,
        peer: IpAddr,
        table: &[u8],
        (start, stop): (Bytes, Option<Bytes>),
        columns: Option<Vec<Bytes>>,
        timestamp: Option<i64>,
        attributes: &OperationAttributes,
    ) -> Result<i32> {
        let scan = TScan { start: Some(start), stop, columns, timestamp, ..TScan::default() };
        self.open_scan(peer, table, scan, attributes)
    }

    /// `scannerOpenWithPrefix`.
    pub(super) fn open_prefix(
        &self,
        peer: IpAddr,
        table: &[u8],
        prefix: Bytes,
        columns: Option<Vec<Bytes>>,
        attributes: &OperationAttributes,
    ) -> Result<i32> {
        let mut selection = selection(columns, None)?;
        let of_prefix = Filter::Prefix(Some(prefix.clone()));
        selection.filter = Some(Arc::new(Filter::WhileMatch(Box::new(of_prefix))));
        let scan = Scan { start_row: prefix, raw: is_raw(attributes), selection, ..Scan::default() };
        let scanner = self.client.table(table_name(table)?).scan(scan);
        self.open_scanner(peer, scanner, false)
    }

    /// `scannerGet` and `scannerGetList`.
    pub(super) async fn scanner_rows(&self, call: &mut Call<'_>, id: i32, rows_max: i32) -> Result<Vec<u8>> {
        let (rows, has_sorted_columns) = self.next_rows(call, id, rows_max).await?.ok_or_else(invalid_id)?;
        Ok(call.reply(&RowResults { rows: &rows, has_sorted_columns }))
    }

    /// `scannerClose`.
    pub(super) fn scanner_close(&self, call: &Call<'_>, id: i32) -> Result<()> {
        if self.close_scanner(id, call.peer) { Ok(()) } else { Err(invalid_id()) }
    }
}

fn invalid_id() -> Failure {
    Failure::Argument("scanner ID is invalid".into())
}
