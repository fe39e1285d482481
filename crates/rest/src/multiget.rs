//! Reads of several rows.

use std::sync::Arc;

use bytes::Bytes;
use cell::filter::Filter;
use cell::filter::language;
use cell::query::Get;
use cell::schema::TableName;
use client::Action;
use hyper::StatusCode;

use crate::base64::{self, Alphabet};
use crate::call::Call;
use crate::gateway::Gateway;
use crate::media::CELLS;
use crate::reply::{Failure, Reply, Result};
use crate::row_spec::RowSpec;

/// Rows in one batch.
const BATCH_ROWS: usize = 100;
/// All errors of this resource are error pages in HBase.
const FAILED: Failure = Failure::Page(StatusCode::INTERNAL_SERVER_ERROR);

impl Gateway {
    pub(crate) async fn multi_get(&self, call: &Call, table: TableName, columns: &str) -> Result<Reply> {
        let encoding = call.key_encoding()?;
        let media = call.response_media(CELLS)?;
        let versions: Option<i32> = call.number("v", StatusCode::INTERNAL_SERVER_ERROR)?;
        let versions =
            u32::try_from(versions.unwrap_or(1)).ok().filter(|versions| *versions > 0).ok_or(FAILED)?;
        let filter = filter_of(call)?.map(Arc::new);
        let columns: Vec<Bytes> = columns
            .split(',')
            .filter(|column| !column.is_empty())
            .map(|column| column.to_owned().into())
            .collect();
        let mut gets = Vec::new();
        for row in call.parameters("row") {
            let mut spec = RowSpec::parse(row, encoding).filter(|spec| !spec.row.is_empty()).ok_or(FAILED)?;
            if spec.columns.is_empty() {
                spec.columns = columns.clone();
            }
            let mut selection = spec.selection(versions).ok_or(FAILED)?;
            selection.filter = filter.clone();
            gets.push(Get { row: spec.row, selection: Arc::new(selection), existence_only: false });
        }
        let (table, mut rows) = (self.client.table(table), self.collector(media));
        while !gets.is_empty() {
            let batch: Vec<Action> = gets.drain(..gets.len().min(BATCH_ROWS)).map(Action::Get).collect();
            for row in table.batch(batch).await {
                let row = row.map_err(|error| match Failure::of(&error) {
                    forbidden @ Failure::Text(StatusCode::FORBIDDEN, _) => forbidden,
                    _ => FAILED,
                })?;
                rows.add(&row.cells)?;
            }
        }
        match rows.rows() {
            0 => Err(Failure::line(StatusCode::NOT_FOUND, "No rows found.")),
            _ => Ok(rows.reply()),
        }
    }
}

/// The filter of the parameters `filter` and `filter_b64`.
///
/// # Errors
/// 500 if it is not valid.
pub(crate) fn filter_of(call: &Call) -> Result<Option<Filter>> {
    let text = match (call.parameter("filter_b64"), call.parameter("filter")) {
        (Some(encoded), _) => base64::decode(encoded.as_bytes(), Alphabet::Url).ok_or(FAILED)?,
        (None, Some(text)) => text.as_bytes().to_vec(),
        (None, None) => return Ok(None),
    };
    language::parse(&text).map(Some).map_err(|_| FAILED)
}
