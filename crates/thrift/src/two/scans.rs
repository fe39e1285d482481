//! Scanners.

use std::net::IpAddr;

use cell::query::{CellSelection, Scan};
use client::ScanOptions;

use super::rows::{columns_of, filter_of, range_of};
use super::types::{RowResults, TScan};
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::gateway::Gateway;
use crate::mutations::{is_one_row, is_raw, table_name, versions};

impl Gateway {
    pub(super) fn open(&self, peer: IpAddr, table: &[u8], scan: TScan) -> Result<i32> {
        self.open_scanner(peer, self.scanner_of(table, scan)?, false)
    }

    fn scanner_of(&self, table: &[u8], scan: TScan) -> Result<client::Scanner> {
        let (scan, options) = scan_of(scan)?;
        Ok(self.client.table(table_name(table)?).scan_with(scan, options))
    }

    pub(super) async fn rows_of_scanner(
        &self,
        call: &mut Call<'_>,
        id: i32,
        rows_max: i32,
    ) -> Result<Vec<u8>> {
        let invalid = || Failure::Argument("Invalid scanner Id".into());
        let (rows, _) = self.next_rows(call, id, rows_max).await?.ok_or_else(invalid)?;
        Ok(call.reply(&RowResults(&rows)))
    }

    /// The first rows of a scan, in one call.
    pub(super) async fn rows_of_scan(
        &self,
        call: &mut Call<'_>,
        table: &[u8],
        scan: TScan,
        rows_max: i32,
    ) -> Result<Vec<u8>> {
        let rows = self.first_rows(call, self.scanner_of(table, scan)?, rows_max).await?;
        Ok(call.reply(&RowResults(&rows)))
    }
}

fn scan_of(scan: TScan) -> Result<(Scan, ScanOptions)> {
    let positive =
        |count: Option<i32>| count.and_then(|count| u32::try_from(count).ok()).filter(|count| *count > 0);
    let range = |(family, range)| Ok((family, range_of(Some(&range))?));
    let selection = CellSelection {
        columns: columns_of(scan.columns.as_deref().unwrap_or_default()),
        time_range: range_of(scan.time_range.as_ref())?,
        family_time_ranges: scan.family_time_ranges.into_iter().map(range).collect::<Result<_>>()?,
        max_versions: versions(scan.max_versions)?,
        cache_blocks: scan.cache_blocks.unwrap_or(true),
        filter: filter_of(scan.filter.as_ref(), scan.filter_message.as_ref())?,
        ..CellSelection::default()
    };
    let options = ScanOptions {
        caching: positive(scan.caching).unwrap_or(ScanOptions::default().caching),
        limit: positive(scan.limit).unwrap_or(0),
    };
    let scan = Scan {
        include_stop_row: is_one_row(scan.start.as_ref(), scan.stop.as_ref()),
        start_row: scan.start.unwrap_or_default(),
        stop_row: scan.stop.unwrap_or_default(),
        reversed: scan.reversed.unwrap_or(false),
        batch: positive(scan.batch).unwrap_or(0),
        raw: is_raw(&scan.attributes),
        selection,
        ..Scan::default()
    };
    Ok((scan, options))
}
