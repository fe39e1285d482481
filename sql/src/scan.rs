//! Rows of a table: the plan node that selects rows on the region servers.

use std::fmt;
use std::sync::Arc;

use client::columns::RowRange;
use datafusion::arrow::compute::{SortOptions, sort_to_indices, take_record_batch};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, ReplaceChildrenOptions,
};
use futures_util::{StreamExt, TryStreamExt, stream};
use proto::grampus::{Rows, SelectRequest, SelectResponse};

use crate::arrays;
use crate::narrowing::Narrowing;
use crate::predicate;
use crate::request::{ColumnIndexes, RowSelection};
use crate::source::RequestUpdater;

/// Maximum size in bytes of a response.
const RESPONSE_BYTES_MAX: u64 = 4 << 20;
/// Maximum size in bytes of a first response whose rows tighten the condition for the following
/// ones.
const FIRST_RESPONSE_BYTES_MAX: u64 = 64 << 10;

/// Selects rows. Each partition covers some regions.
#[derive(Debug)]
pub struct GrampusScan {
    selection: RowSelection,
    /// Indexes of declared columns, in output order.
    columns: Vec<usize>,
    /// Maximum number of rows of each partition; any rows will do.
    limit: Option<usize>,
    /// Maximum number of rows of each partition; the first rows in key order.
    first: Option<usize>,
    /// The index of the output column by which rows are sorted.
    key: Option<usize>,
    /// The dynamic filters of the plan nodes above.
    narrowing: Narrowing,
    partitions: Vec<Vec<RowRange>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl GrampusScan {
    /// A scan of `columns` with at most `partitions_max` partitions.
    pub fn new(
        selection: RowSelection,
        columns: Vec<usize>,
        limit: Option<usize>,
        partitions_max: usize,
    ) -> GrampusScan {
        let fields = columns.iter().map(|at| Arc::clone(&selection.table.schema.fields()[*at]));
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let share = selection.regions.len().div_ceil(partitions_max.max(1)).max(1);
        let mut partitions: Vec<Vec<RowRange>> = selection.regions.chunks(share).map(<[_]>::concat).collect();
        if partitions.is_empty() {
            partitions.push(Vec::new());
        }
        let properties = PlanProperties::new(
            ordering_by_key(&selection, &columns, schema),
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let key = columns.iter().position(|column| is_ordered_key(&selection, *column));
        let metrics = ExecutionPlanMetricsSet::new();
        GrampusScan {
            selection,
            columns,
            limit,
            first: None,
            key,
            narrowing: Narrowing::default(),
            partitions,
            properties: Arc::new(properties),
            metrics,
        }
    }

    /// The rows that the scan selects.
    pub fn selection(&self) -> &RowSelection {
        &self.selection
    }

    /// The declared column at this index of the output.
    pub fn column(&self, at: usize) -> usize {
        self.columns[at]
    }

    /// The same scan with other dynamic filters.
    fn with_narrowing(&self, narrowing: Narrowing) -> GrampusScan {
        let partitions = self.partitions.len();
        let scan = GrampusScan::new(self.selection.clone(), self.columns.clone(), self.limit, partitions);
        GrampusScan { first: self.first, narrowing, ..scan }
    }

    /// Whether it returns only some of the rows.
    pub fn is_limited(&self) -> bool {
        self.fetch().is_some()
    }

    fn request(&self) -> SelectRequest {
        SelectRequest {
            rows: Some(request_rows(&self.selection, &self.columns)),
            // Indexes of columns in `rows`, which lists the output columns first.
            give: (0..self.columns.len() as u32).collect(),
            limit: self.limit.map(|limit| limit as u64),
            bytes_max: Some(RESPONSE_BYTES_MAX),
            time_ms_max: None,
        }
    }

    /// A function that updates the request before each response.
    fn request_updater(&self) -> RequestUpdater {
        if self.narrowing.is_empty() {
            return Box::new(|_| ());
        }
        let (selection, columns) = (self.selection.clone(), self.columns.clone());
        let (narrowing, schema) = (self.narrowing.clone(), self.schema());
        let mut is_first = true;
        Box::new(move |request| {
            let narrowing_predicates = narrowing.current_predicates(&schema, &selection.table.declaration);
            let is_first_without_filter =
                std::mem::replace(&mut is_first, false) && narrowing_predicates.is_empty();
            request.bytes_max =
                Some(if is_first_without_filter { FIRST_RESPONSE_BYTES_MAX } else { RESPONSE_BYTES_MAX });
            let all = selection
                .predicate
                .iter()
                .flat_map(predicate::conjuncts)
                .cloned()
                .chain(narrowing_predicates);
            let selection = RowSelection { predicate: predicate::all(all.collect()), ..selection.clone() };
            request.rows = Some(request_rows(&selection, &columns));
        })
    }

    /// A function that converts a response to a record batch.
    fn reader(&self) -> impl Fn(SelectResponse) -> Result<RecordBatch> + Send + 'static {
        let (schema, table, columns) =
            (self.schema(), Arc::clone(&self.selection.table), self.columns.clone());
        let key = self.key;
        move |response: SelectResponse| {
            let rows = response.rows() as usize;
            if rows > 0 && response.vector.len() != columns.len() {
                let (received, expected) = (response.vector.len(), columns.len());
                return Err(DataFusionError::External(
                    format!("response has {received} columns instead of {expected}").into(),
                ));
            }
            if rows == 0 {
                return Ok(RecordBatch::new_empty(Arc::clone(&schema)));
            }
            let array = |(vector, column): (_, &usize)| {
                arrays::from_vector(vector, rows, &table.declaration.columns[*column])
            };
            let arrays =
                response.vector.into_iter().zip(&columns).map(array).collect::<Result<Vec<_>, String>>();
            let arrays = arrays.map_err(|error| DataFusionError::External(error.into()))?;
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            let rows = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)?;
            match key {
                // All rows of a response precede those of the next one, but within a response they
                // are unordered.
                Some(key) => Ok(take_record_batch(&rows, &sort_to_indices(rows.column(key), None, None)?)?),
                None => Ok(rows),
            }
        }
    }
}

impl DisplayAs for GrampusScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> = self.columns.iter().map(|at| self.selection.name(*at)).collect();
        let table = &self.selection.table.declaration.table;
        write!(
            f,
            "GrampusScan: table={table}, columns=[{}]{}",
            columns.join(", "),
            self.selection.explain()
        )?;
        self.limit.map_or(Ok(()), |limit| write!(f, ", limit={limit}"))?;
        self.first.map_or(Ok(()), |first| write!(f, ", first={first}"))?;
        if self.narrowing.is_empty() { Ok(()) } else { f.write_str(", narrowed by what was found") }
    }
}

impl ExecutionPlan for GrampusScan {
    fn name(&self) -> &str {
        "GrampusScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn fetch(&self) -> Option<usize> {
        [self.limit, self.first].into_iter().flatten().min()
    }

    fn with_fetch(&self, first: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let partitions = self.partitions.len();
        let scan = match self.key {
            // The plan may rely on the order, but servers do not order the rows within a response.
            Some(_) => GrampusScan {
                first,
                ..GrampusScan::new(self.selection.clone(), self.columns.clone(), self.limit, partitions)
            },
            None => GrampusScan::new(self.selection.clone(), self.columns.clone(), first, partitions),
        };
        // Drops the dynamic filters: they could change which rows are the first.
        Some(Arc::new(scan))
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        pushed: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        // All filters are still evaluated above; the pushed ones may be weaker.
        let propagation = FilterPushdownPropagation::all_unsupported(pushed.clone());
        let filters = pushed.parent_filters.into_iter().map(|pushed| pushed.filter);
        let changing: Vec<_> = filters.filter(Narrowing::is_dynamic).collect();
        // The first rows must not depend on filters that are applied to them later.
        if changing.is_empty() || self.is_limited() {
            return Ok(propagation);
        }
        let mut narrowing = self.narrowing.clone();
        changing.into_iter().for_each(|filter| narrowing.add(filter));
        Ok(propagation.with_updated_node(Arc::new(self.with_narrowing(narrowing))))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        // The state of dynamic filters must not affect the next execution.
        Ok(Arc::new(self.with_narrowing(Narrowing::default())))
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (source, table) = (&self.selection.table.source, &self.selection.table.declaration.table);
        let (source, table, request) = (Arc::clone(source), table.clone(), self.request());
        let ranges = self.partitions[partition].clone();
        let ranges: Vec<_> = ranges.into_iter().map(|range| (range, self.request_updater())).collect();
        let responses = stream::iter(ranges).flat_map(move |(range, update_request)| {
            source.select(&table, request.clone(), range, update_request)
        });
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let read = self.reader();
        let batches = responses.map(move |response| read(response?)).inspect_ok(move |batch| {
            metrics.record_output(batch.num_rows());
        });
        let some = batches.try_filter(|batch| std::future::ready(batch.num_rows() > 0));
        let limited = limited(some.boxed(), self.fetch());
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), limited)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// The request's rows with these columns first, followed by those of the condition.
fn request_rows(selection: &RowSelection, columns: &[usize]) -> Rows {
    let mut indexes = ColumnIndexes::default();
    columns.iter().for_each(|column| {
        indexes.index_of(*column as u32);
    });
    selection.rows(indexes)
}

/// Whether a declared column is the whole row key and its encoding preserves order.
fn is_ordered_key(selection: &RowSelection, column: usize) -> bool {
    let column = &selection.table.declaration.columns[column];
    !column.is_nullable() && column.encoding.keeps_order()
}

/// Declares that rows are sorted by key. Then ORDER BY needs no sort, and with a LIMIT no more
/// responses are requested than needed.
fn ordering_by_key(selection: &RowSelection, columns: &[usize], schema: SchemaRef) -> EquivalenceProperties {
    let keys = columns.iter().enumerate().filter(|(_, column)| is_ordered_key(selection, **column));
    let ordering = |(at, column): (usize, &usize)| {
        let key: Arc<dyn PhysicalExpr> = Arc::new(Column::new(selection.name(*column), at));
        [PhysicalSortExpr::new(key, SortOptions::default())]
    };
    EquivalenceProperties::new_with_orderings(schema, keys.map(ordering))
}

/// The first rows of a partition; each of its ranges alone may return that many.
fn limited(
    batches: stream::BoxStream<'static, Result<RecordBatch>>,
    limit: Option<usize>,
) -> stream::BoxStream<'static, Result<RecordBatch>> {
    let Some(limit) = limit else { return batches };
    stream::try_unfold((batches, limit), |(mut batches, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let batch = batches.try_next().await?;
        Ok(batch.map(|batch| {
            let batch = batch.slice(0, batch.num_rows().min(left));
            let left = left - batch.num_rows();
            (batch, (batches, left))
        }))
    })
    .boxed()
}
