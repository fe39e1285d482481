//! A fake cluster for tests: rows in memory, regions at given splits, aggregated by the endpoint's
//! own code.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use cell::schema::TableName;
use client::columns::{Progress, RowRange};
use columnar::{Aggregator, Batch, Column, ColumnLocation, Merger, Partial, Vector, VectorBuilder};
use datafusion::error::{DataFusionError, Result};
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use proto::grampus::{AggregateRequest, Rows, SelectRequest, SelectResponse};
use wire::convert::columns::request::{self, RowQuery};
use wire::convert::columns::state;

use crate::declaration::Declaration;
use crate::source::{ProgressCallback, RequestUpdater, Source};
use crate::stored::vector_message;
use crate::system_table::Declarations;

/// The cells of a row by family and qualifier.
pub type Cells = BTreeMap<(Bytes, Bytes), Bytes>;

/// Rows and region boundaries.
#[derive(Debug, Default)]
pub struct FakeCluster {
    pub rows: BTreeMap<Bytes, Cells>,
    pub splits: Vec<Bytes>,
    pub declarations: Mutex<BTreeMap<String, Declaration>>,
    /// The requests in the order received.
    pub requests: Mutex<Vec<Rows>>,
}

fn failed(error: impl ToString) -> DataFusionError {
    DataFusionError::External(error.to_string().into())
}

impl FakeCluster {
    /// The rows of a request within a range, as vectors of its columns.
    fn vectors(&self, query: &RowQuery, range: &RowRange) -> (usize, Vec<Arc<Vector>>) {
        let in_range = |row: &Bytes| *row >= range.start && (range.stop.is_empty() || *row < range.stop);
        let is_row = |cells: &Cells| {
            query.families.is_empty() || cells.keys().any(|(family, _)| query.families.contains(family))
        };
        let rows: Vec<_> = self.rows.iter().filter(|(row, cells)| in_range(row) && is_row(cells)).collect();
        let vector = |column: &Column| {
            let mut builder = VectorBuilder::new(column);
            for (row, cells) in &rows {
                let bytes = match &column.location {
                    ColumnLocation::Cell { family, qualifier } => {
                        cells.get(&(family.clone(), qualifier.clone())).map(|value| &value[..])
                    }
                    location => location.find_in_row(row),
                };
                match bytes {
                    Some(bytes) => builder.push(bytes).unwrap(),
                    None => builder.push_null(),
                }
            }
            Arc::new(builder.finish())
        };
        (rows.len(), query.columns.iter().map(vector).collect())
    }

    fn respond(&self, request: &SelectRequest, range: &RowRange) -> Result<SelectResponse> {
        let rows = request.rows.as_ref().unwrap();
        self.requests.lock().unwrap().push(rows.clone());
        let query = request::rows(rows).map_err(failed)?;
        let (len, columns) = self.vectors(&query, range);
        let mut selected = Vec::new();
        Batch { len, columns: &columns, rows: None }.select(query.predicate.as_ref(), &mut selected);
        selected.truncate(request.limit.unwrap_or(u64::MAX).min(1 << 40) as usize);
        let vector =
            request.give.iter().map(|at| vector_message(&columns[*at as usize], &selected)).collect();
        Ok(SelectResponse { rows: Some(selected.len() as u64), vector, ..Default::default() })
    }
}

/// The source, shared with the test that checks it.
#[derive(Debug, Clone)]
pub struct Shared(pub Arc<FakeCluster>);

#[async_trait]
impl Source for Shared {
    async fn regions(&self, _: &TableName, ranges: &[RowRange]) -> Result<Vec<Vec<RowRange>>> {
        let bounds: Vec<Bytes> =
            [Bytes::new()].into_iter().chain(self.0.splits.clone()).chain([Bytes::new()]).collect();
        let region = |keys: &[Bytes]| RowRange { start: keys[0].clone(), stop: keys[1].clone() };
        let parts_in_region =
            |keys| ranges.iter().filter_map(|range| range.intersection(&region(keys))).collect();
        Ok(bounds.windows(2).map(parts_in_region).filter(|ranges: &Vec<_>| !ranges.is_empty()).collect())
    }

    fn select(
        &self,
        _: &TableName,
        mut request: SelectRequest,
        range: RowRange,
        mut update_request: RequestUpdater,
    ) -> BoxStream<'static, Result<SelectResponse>> {
        let cluster = Arc::clone(&self.0);
        // Lazy: amended and answered when the stream is polled.
        let response = async move {
            update_request(&mut request);
            cluster.respond(&request, &range)
        };
        stream::once(response).boxed()
    }

    async fn aggregate(
        &self,
        table: &TableName,
        request: &AggregateRequest,
        ranges: &[RowRange],
        _: usize,
        mut on_progress: ProgressCallback<'_>,
    ) -> Result<Partial> {
        let rows = request.rows.as_ref().unwrap();
        self.0.requests.lock().unwrap().push(rows.clone());
        let query = request::rows(rows).map_err(failed)?;
        let plan = request::aggregation(&query, &request.group_by, &request.aggregate).map_err(failed)?;
        let plan = Arc::new(plan);
        let mut merger = Merger::default();
        for range in self.regions(table, ranges).await?.concat() {
            let (len, columns) = self.0.vectors(&query, &range);
            let mut aggregator = Aggregator::new(Arc::clone(&plan));
            aggregator.add(&Batch { len, columns: &columns, rows: None }).map_err(failed)?;
            let found = aggregator.finish();
            let groups: Vec<_> =
                found.groups.iter().map(|(key, states)| state::group_message(key, states)).collect();
            merger.add(state::partial(&groups, &plan.aggregates).map_err(failed)?).map_err(failed)?;
            on_progress(&Progress::default(), &merger)?;
        }
        Ok(merger.finish())
    }
}

#[async_trait]
impl Declarations for Shared {
    async fn load(&self) -> client::Result<(Vec<Declaration>, Vec<String>)> {
        Ok((self.0.declarations.lock().unwrap().values().cloned().collect(), Vec::new()))
    }

    async fn store(&self, declaration: &Declaration) -> client::Result<()> {
        self.0.declarations.lock().unwrap().insert(declaration.name.clone(), declaration.clone());
        Ok(())
    }

    async fn remove(&self, name: &str) -> client::Result<()> {
        self.0.declarations.lock().unwrap().remove(name);
        Ok(())
    }

    async fn families(&self, table: &TableName) -> client::Result<Vec<Bytes>> {
        match table.qualifier() {
            "t" => Ok(vec!["f".into()]),
            _ => Err(client::Error::TableNotFound(table.clone())),
        }
    }
}
