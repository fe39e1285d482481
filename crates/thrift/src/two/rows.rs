//! Reads of rows.

use std::sync::Arc;

use bytes::Bytes;
use cell::filter::Filter;
use cell::query::{CellSelection, FamilyColumns, Get, TimeRange, selected_columns};
use client::Row;
use prost::Message;

use super::types::{TColumn, TGet, TTimeRange};
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::gateway::Gateway;
use crate::mutations::{check_row, filter, table_name, time_range, undeclared, versions};

impl Gateway {
    pub(super) async fn exists(&self, table: &[u8], get: &TGet) -> Result<bool> {
        Ok(self.client.table(table_name(table)?).exists(&get_of(get)?).await?)
    }

    pub(super) async fn exist_all(&self, table: &[u8], gets: &[TGet]) -> Result<Vec<bool>> {
        /// Calls that run concurrently.
        const CALLS_MAX: usize = 16;
        let table = self.client.table(table_name(table)?);
        let gets = gets.iter().map(get_of).collect::<Result<Vec<_>>>()?;
        let mut exist = Vec::with_capacity(gets.len());
        for gets in gets.chunks(CALLS_MAX) {
            let calls = gets.iter().map(|get| table.exists(get));
            for exists in futures_util::future::join_all(calls).await {
                exist.push(exists?);
            }
        }
        Ok(exist)
    }

    pub(super) async fn get(&self, call: &mut Call<'_>, table: &[u8], get: &TGet) -> Result<Row> {
        let table = self.client.table(table_name(table)?);
        self.read_row(call, &table, &get_of(get)?).await
    }

    /// The rows in the order of `gets`; an absent row is empty.
    pub(super) async fn get_multiple(
        &self,
        call: &mut Call<'_>,
        table: &[u8],
        gets: &[TGet],
    ) -> Result<Vec<Row>> {
        let gets = gets.iter().map(get_of).collect::<Result<Vec<_>>>()?;
        self.read_rows(call, &self.client.table(table_name(table)?), gets).await
    }
}

fn get_of(get: &TGet) -> Result<Get> {
    check_row(&get.row).map_err(undeclared)?;
    let positive = |count: Option<i32>| count.and_then(|count| u32::try_from(count).ok());
    let selection = CellSelection {
        columns: columns_of(get.columns.as_deref().unwrap_or_default()),
        time_range: match get.timestamp {
            Some(timestamp) => time_range(timestamp, timestamp.saturating_add(1))?,
            None => range_of(get.time_range.as_ref())?,
        },
        max_versions: get.max_versions.map_or(Ok(1), versions)?,
        store_limit: positive(get.store_limit),
        store_offset: positive(get.store_offset).unwrap_or(0),
        cache_blocks: get.cache_blocks.unwrap_or(true),
        filter: filter_of(get.filter.as_ref(), get.filter_message.as_ref())?,
        ..CellSelection::default()
    };
    let existence_only = get.existence_only.unwrap_or(false);
    Ok(Get { row: get.row.clone(), selection: Arc::new(selection), existence_only })
}

pub(super) fn columns_of(columns: &[TColumn]) -> Vec<FamilyColumns> {
    selected_columns(columns.iter().map(|column| (column.family.clone(), column.qualifier.clone())))
}

pub(super) fn range_of(range: Option<&TTimeRange>) -> Result<TimeRange> {
    range.map_or(Ok(TimeRange::ALL), |range| time_range(range.min, range.max))
}

/// The filter of a request. A protobuf message replaces text.
pub(super) fn filter_of(text: Option<&Bytes>, message: Option<&Bytes>) -> Result<Option<Arc<Filter>>> {
    // As in HBase, the text must be valid even if it is replaced.
    let of_text = text.map(|text| filter(text)).transpose()?;
    let Some(message) = message else { return Ok(of_text.map(Arc::new)) };
    // The error may repeat the name of a class from the request.
    let invalid = |error: String| Failure::io(format!("invalid filter: {error:.1000}"), true);
    let message = proto::Filter::decode(message.clone()).map_err(|error| invalid(error.to_string()))?;
    let filter = wire::filter::from_proto(&message).map_err(|error| invalid(error.to_string()))?;
    Ok(Some(Arc::new(filter)))
}
