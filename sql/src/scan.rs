//! Rows of a table: the part of a plan that selects them where they are.

use std::fmt;
use std::sync::Arc;

use client::columns::RowRange;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, ReplaceChildrenOptions,
};
use futures_util::{StreamExt, TryStreamExt, stream};
use proto::grampus::{SelectRequest, SelectResponse};

use crate::arrays;
use crate::request::{Places, Wanted};

/// Bytes of one answer.
const ANSWER_BYTES_MAX: u64 = 4 << 20;

/// Selects rows, some regions in each partition.
#[derive(Debug)]
pub struct GrampusScan {
    wanted: Wanted,
    /// Declared columns, in their order.
    columns: Vec<usize>,
    /// Rows at most of each partition.
    limit: Option<usize>,
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
        let share = wanted.parts.len().div_ceil(partitions_max.max(1)).max(1);
        let mut partitions: Vec<Vec<RowRange>> = wanted.parts.chunks(share).map(<[_]>::to_vec).collect();
        if partitions.is_empty() {
            partitions.push(Vec::new());
        }
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let metrics = ExecutionPlanMetricsSet::new();
        GrampusScan { wanted, columns, limit, partitions, properties: Arc::new(properties), metrics }
    }

    /// Which rows.
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// The declared column that is given in this place.
    pub fn column(&self, at: usize) -> usize {
        self.columns[at]
    }

    /// Whether it gives only some of the rows.
    pub fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    fn request(&self) -> SelectRequest {
        let mut places = Places::default();
        let give = self.columns.iter().map(|column| places.of(*column as u32)).collect();
        SelectRequest {
            rows: Some(self.wanted.rows(places)),
            give,
            limit: self.limit.map(|limit| limit as u64),
            bytes_max: Some(ANSWER_BYTES_MAX),
            time_ms_max: None,
        }
    }

    /// The columns of an answer.
    fn reader(&self) -> impl Fn(SelectResponse) -> Result<RecordBatch> + Send + 'static {
        let (schema, table, columns) = (self.schema(), Arc::clone(&self.wanted.table), self.columns.clone());
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
            Ok(RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)?)
        }
    }
}

impl DisplayAs for GrampusScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> = self.columns.iter().map(|at| self.wanted.name(*at)).collect();
        let table = &self.wanted.table.declaration.table;
        write!(f, "GrampusScan: table={table}, columns=[{}]{}", columns.join(", "), self.wanted.shown())?;
        self.limit.map_or(Ok(()), |limit| write!(f, ", limit={limit}"))
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

    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let scan = GrampusScan::new(self.wanted.clone(), self.columns.clone(), limit, self.partitions.len());
        Some(Arc::new(scan))
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (source, table) = (&self.wanted.table.source, &self.wanted.table.declaration.table);
        let (source, table, request) = (Arc::clone(source), table.clone(), self.request());
        let ranges = self.partitions[partition].clone();
        let answers =
            stream::iter(ranges).flat_map(move |range| source.select(&table, request.clone(), range));
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let read = self.reader();
        let batches = answers.map(move |answer| read(answer?)).inspect_ok(move |batch| {
            metrics.record_output(batch.num_rows());
        });
        let some = batches.try_filter(|batch| std::future::ready(batch.num_rows() > 0));
        let limited = limited(some.boxed(), self.limit);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), limited)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
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
