//! Reads of rows.

use std::sync::Arc;

use bytes::Bytes;
use cell::query::{CellSelection, Get, TimeRange, column_parts, selected_columns};

use super::types::{CellResults, RowResults};
use crate::call::Call;
use crate::failure::Result;
use crate::gateway::Gateway;
use crate::mutations::{check_row, table_name, time_range, undeclared, versions};

impl Gateway {
    /// The newest cells of a column or family.
    pub(super) async fn get_column(
        &self,
        call: &mut Call<'_>,
        table: &[u8],
        row: &Bytes,
        column: &Bytes,
        timestamp: Option<i64>,
        max_versions: i32,
    ) -> Result<Vec<u8>> {
        check_row(row).map_err(undeclared)?;
        let selection = CellSelection {
            columns: selected_columns([column_parts(column)]),
            time_range: before(timestamp)?,
            max_versions: versions(max_versions)?,
            ..CellSelection::default()
        };
        let get = Get { row: row.clone(), selection: Arc::new(selection), existence_only: false };
        let row = self.read_row(call, &self.client.table(table_name(table)?), &get).await?;
        Ok(call.reply(&CellResults(&row)))
    }

    pub(super) async fn get_row(
        &self,
        call: &mut Call<'_>,
        table: &[u8],
        row: &Bytes,
        columns: Option<Vec<Bytes>>,
        timestamp: Option<i64>,
    ) -> Result<Vec<u8>> {
        check_row(row).map_err(undeclared)?;
        let selection = Arc::new(selection(columns, timestamp)?);
        let get = Get { row: row.clone(), selection, existence_only: false };
        let row = self.read_row(call, &self.client.table(table_name(table)?), &get).await?;
        Ok(call.reply(&RowResults { rows: &[row], has_sorted_columns: false }))
    }

    pub(super) async fn get_rows(
        &self,
        call: &mut Call<'_>,
        table: &[u8],
        rows: Vec<Bytes>,
        columns: Option<Vec<Bytes>>,
        timestamp: Option<i64>,
    ) -> Result<Vec<u8>> {
        let selection = Arc::new(selection(columns, timestamp)?);
        let get = |row: Bytes| {
            check_row(&row).map_err(undeclared)?;
            Ok(Get { row, selection: selection.clone(), existence_only: false })
        };
        let gets = rows.into_iter().map(get).collect::<Result<Vec<Get>>>()?;
        let rows = self.read_rows(call, &self.client.table(table_name(table)?), gets).await?;
        Ok(call.reply(&RowResults { rows: &rows, has_sorted_columns: false }))
    }
}

/// The selection of columns, all of them without a list.
pub(super) fn selection(columns: Option<Vec<Bytes>>, timestamp: Option<i64>) -> Result<CellSelection> {
    Ok(CellSelection {
        columns: selected_columns(columns.unwrap_or_default().iter().map(column_parts)),
        time_range: before(timestamp)?,
        ..CellSelection::default()
    })
}

/// Cells that are older than `timestamp`.
pub(super) fn before(timestamp: Option<i64>) -> Result<TimeRange> {
    timestamp.map_or(Ok(TimeRange::ALL), |timestamp| time_range(0, timestamp))
}
