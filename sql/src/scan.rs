//! Rows of a table: the part of a plan that selects them where they are.

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
use crate::request::{Places, Wanted};
use crate::source::Amend;

/// Bytes of one answer.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// Bytes of one that is to tell which rows are wanted of those behind it.
const TELLING_ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Selects rows, some regions in each partition.
#[derive(Debug)]
pub struct GrampusScan {
    wanted: Wanted,
    /// Declared columns, in their order.
    columns: Vec<usize>,
    /// Rows at most of each partition, whichever they are.
    limit: Option<usize>,
    /// Rows of each partition that are given at most: the first of them.
    first: Option<usize>,
    /// The place of a column in whose order rows are given.
    key: Option<usize>,
    /// What those above it still want.
    narrowing: Narrowing,
    partitions: Vec<Vec<RowRange>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl GrampusScan {
    /// A scan of `columns` in at most `partitions_max` partitions.
    pub fn new(
        wanted: Wanted,
        columns: Vec<usize>,
        limit: Option<usize>,
        partitions_max: usize,
    ) -> GrampusScan {
        let fields = columns.iter().map(|at| Arc::clone(&wanted.table.schema.fields()[*at]));
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let share = wanted.regions.len().div_ceil(partitions_max.max(1)).max(1);
        let mut partitions: Vec<Vec<RowRange>> = wanted.regions.chunks(share).map(<[_]>::concat).collect();
        if partitions.is_empty() {
            partitions.push(Vec::new());
        }
        let properties = PlanProperties::new(
            in_order(&wanted, &columns, schema),
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let key = columns.iter().position(|column| is_ordered_key(&wanted, *column));
        let metrics = ExecutionPlanMetricsSet::new();
        GrampusScan {
            wanted,
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

    /// Which rows.
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// The declared column that is given in this place.
    pub fn column(&self, at: usize) -> usize {
        self.columns[at]
    }

    /// The same, narrowed so.
    fn narrowed(&self, narrowing: Narrowing) -> GrampusScan {
        let partitions = self.partitions.len();
        let scan = GrampusScan::new(self.wanted.clone(), self.columns.clone(), self.limit, partitions);
        GrampusScan { first: self.first, narrowing, ..scan }
    }

    /// Whether it gives only some of the rows.
    pub fn is_limited(&self) -> bool {
        self.fetch().is_some()
    }

    fn request(&self) -> SelectRequest {
        SelectRequest {
            rows: Some(rows_of(&self.wanted, &self.columns)),
            // The places of columns in `rows`, which has those that are given first.
            give: (0..self.columns.len() as u32).collect(),
            limit: self.limit.map(|limit| limit as u64),
            bytes_max: Some(ANSWER_BYTES_MAX),
            time_ms_max: None,
        }
    }

    /// What is changed in a request before each answer.
    fn amend(&self) -> Amend {
        if self.narrowing.is_empty() {
            return Box::new(|_| ());
        }
        let (wanted, columns) = (self.wanted.clone(), self.columns.clone());
        let (narrowing, schema) = (self.narrowing.clone(), self.schema());
        let mut is_first = true;
        Box::new(move |request| {
            let narrower = narrowing.now(&schema, &wanted.table.declaration);
            let is_told = std::mem::replace(&mut is_first, false) && narrower.is_empty();
            request.bytes_max = Some(if is_told { TELLING_ANSWER_BYTES_MAX } else { ANSWER_BYTES_MAX });
            let all = wanted.predicate.iter().flat_map(predicate::conjuncts).cloned().chain(narrower);
            let wanted = Wanted { predicate: predicate::all(all.collect()), ..wanted.clone() };
            request.rows = Some(rows_of(&wanted, &columns));
        })
    }

    /// The columns of an answer.
    fn reader(&self) -> impl Fn(SelectResponse) -> Result<RecordBatch> + Send + 'static {
        let (schema, table, columns) = (self.schema(), Arc::clone(&self.wanted.table), self.columns.clone());
        let key = self.key;
        move |answer: SelectResponse| {
            let rows = answer.rows() as usize;
            if rows > 0 && answer.vector.len() != columns.len() {
                let (told, asked) = (answer.vector.len(), columns.len());
                return Err(DataFusionError::External(format!("{told} columns came, of {asked}").into()));
            }
            if rows == 0 {
                return Ok(RecordBatch::new_empty(Arc::clone(&schema)));
            }
            let array = |(vector, column): (_, &usize)| {
                arrays::of_vector(vector, rows, &table.declaration.columns[*column])
            };
            let arrays =
                answer.vector.into_iter().zip(&columns).map(array).collect::<Result<Vec<_>, String>>();
            let arrays = arrays.map_err(|error| DataFusionError::External(error.into()))?;
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            let rows = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)?;
            match key {
                // All rows of an answer are before those of the next, but among themselves in no order.
                Some(key) => Ok(take_record_batch(&rows, &sort_to_indices(rows.column(key), None, None)?)?),
                None => Ok(rows),
            }
        }
    }
}

impl DisplayAs for GrampusScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> = self.columns.iter().map(|at| self.wanted.name(*at)).collect();
        let table = &self.wanted.table.declaration.table;
        write!(f, "GrampusScan: table={table}, columns=[{}]{}", columns.join(", "), self.wanted.shown())?;
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
            // The plan may count on the order; servers have none among the rows of an answer.
            Some(_) => GrampusScan {
                first,
                ..GrampusScan::new(self.wanted.clone(), self.columns.clone(), self.limit, partitions)
            },
            None => GrampusScan::new(self.wanted.clone(), self.columns.clone(), first, partitions),
        };
        // Not narrowed any more, if it was: what is first would be another row then.
        Some(Arc::new(scan))
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        pushed: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        // All are looked at above, too: here they may be weaker.
        let told = FilterPushdownPropagation::all_unsupported(pushed.clone());
        let filters = pushed.parent_filters.into_iter().map(|pushed| pushed.filter);
        let changing: Vec<_> = filters.filter(Narrowing::takes).collect();
        // Which rows are the first does not depend on what is wanted of them.
        if changing.is_empty() || self.is_limited() {
            return Ok(told);
        }
        let mut narrowing = self.narrowing.clone();
        changing.into_iter().for_each(|filter| narrowing.add(filter));
        Ok(told.with_updated_node(Arc::new(self.narrowed(narrowing))))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        // What was found is nothing to who asks once more.
        Ok(Arc::new(self.narrowed(Narrowing::default())))
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (source, table) = (&self.wanted.table.source, &self.wanted.table.declaration.table);
        let (source, table, request) = (Arc::clone(source), table.clone(), self.request());
        let ranges = self.partitions[partition].clone();
        let ranges: Vec<_> = ranges.into_iter().map(|range| (range, self.amend())).collect();
        let answers = stream::iter(ranges)
            .flat_map(move |(range, amend)| source.select(&table, request.clone(), range, amend));
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let read = self.reader();
        let batches = answers.map(move |answer| read(answer?)).inspect_ok(move |batch| {
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

/// The rows of a request for these columns, which come first among its own.
fn rows_of(wanted: &Wanted, columns: &[usize]) -> Rows {
    let mut places = Places::default();
    columns.iter().for_each(|column| {
        places.of(*column as u32);
    });
    wanted.rows(places)
}

/// Whether a declared column is the whole row key, and ordered as its bytes are.
fn is_ordered_key(wanted: &Wanted, column: usize) -> bool {
    let column = &wanted.table.declaration.columns[column];
    !column.is_nullable() && column.encoding.keeps_order()
}

/// That rows come in the order of their keys: then nothing is sorted for ORDER BY, and with a LIMIT what is behind the first
/// answers is not asked for.
fn in_order(wanted: &Wanted, columns: &[usize], schema: SchemaRef) -> EquivalenceProperties {
    let keys = columns.iter().enumerate().filter(|(_, column)| is_ordered_key(wanted, **column));
    let ordering = |(at, column): (usize, &usize)| {
        let key: Arc<dyn PhysicalExpr> = Arc::new(Column::new(wanted.name(*column), at));
        [PhysicalSortExpr::new(key, SortOptions::default())]
    };
    EquivalenceProperties::new_with_orderings(schema, keys.map(ordering))
}

/// The first rows of a partition; each of its ranges gives as many by itself.
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
