//! Groups of a table's rows: the plan node that aggregates rows on the region servers.
//!
//! All regions work in parallel. Their results are merged here and returned as final values.

pub mod function;
pub mod rule;

use std::fmt;
use std::sync::Arc;

use columnar::Partial;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, ReplaceChildrenOptions,
};
use futures_util::{StreamExt, TryStreamExt, stream};
use proto::grampus::{Aggregate, AggregateRequest};

use crate::arrays;
use crate::request::{ColumnIndexes, Declared, RowSelection};
use function::PushedAggregate;

/// Maximum number of regions that are aggregated concurrently.
const PARALLEL: usize = 64;
/// Estimated memory in bytes of a group, excluding its key and states.
const GROUP_BYTES: usize = 256;
/// Estimated memory in bytes of a state.
const STATE_BYTES: usize = 64;

/// Aggregates the rows of a table.
#[derive(Debug)]
pub struct GrampusAggregate {
    selection: RowSelection,
    /// Declared columns.
    group_by: Vec<usize>,
    aggregates: Vec<PushedAggregate>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// The state that turns a merged result into record batches.
struct Finisher {
    table: Arc<Declared>,
    schema: SchemaRef,
    group_by: Vec<usize>,
    aggregates: Vec<PushedAggregate>,
    /// For each aggregate, the index of its state.
    states: Vec<usize>,
}

/// Counters of the servers' work.
struct Counts {
    rows: Count,
    rows_matched: Count,
    rows_in_vectors: Count,
    rows_skipped: Count,
}

impl GrampusAggregate {
    /// An aggregation with the output `schema`: the group columns, followed by the aggregates.
    pub fn new(
        selection: RowSelection,
        group_by: Vec<usize>,
        aggregates: Vec<PushedAggregate>,
        schema: SchemaRef,
    ) -> GrampusAggregate {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        let metrics = ExecutionPlanMetricsSet::new();
        GrampusAggregate { selection, group_by, aggregates, properties: Arc::new(properties), metrics }
    }

    /// The request, and for each aggregate the index of its state: equal aggregates are requested
    /// once.
    fn request(&self) -> (AggregateRequest, Vec<usize>) {
        let mut indexes = ColumnIndexes::default();
        let group_by = self.group_by.iter().map(|column| indexes.index_of(*column as u32)).collect();
        let (mut requested, mut states) = (Vec::<Aggregate>::new(), Vec::new());
        for PushedAggregate { function, column, .. } in &self.aggregates {
            let column = column.map(|column| indexes.index_of(column as u32));
            let aggregate = Aggregate { function: Some(function.endpoint_function().into()), column };
            states.push(requested.iter().position(|other| *other == aggregate).unwrap_or_else(|| {
                requested.push(aggregate);
                requested.len() - 1
            }));
        }
        let request = AggregateRequest {
            rows: Some(self.selection.rows(indexes)),
            group_by,
            aggregate: requested,
            groups_bytes_max: None,
            time_ms_max: None,
        };
        (request, states)
    }

    fn counts(&self) -> Counts {
        let count = |name: &'static str| MetricBuilder::new(&self.metrics).counter(name, 0);
        Counts {
            rows: count("rows"),
            rows_matched: count("rows_matched"),
            rows_in_vectors: count("rows_in_vectors"),
            rows_skipped: count("rows_skipped"),
        }
    }
}

impl DisplayAs for GrampusAggregate {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups: Vec<&str> = self.group_by.iter().map(|at| self.selection.name(*at)).collect();
        let aggregates =
            self.aggregates.iter().map(|pushed| pushed.explain(&self.selection.table.declaration));
        let aggregates: Vec<String> = aggregates.collect();
        write!(
            f,
            "GrampusAggregate: table={}, group_by=[{}], aggregates=[{}]{}",
            self.selection.table.declaration.table,
            groups.join(", "),
            aggregates.join(", "),
            self.selection.explain()
        )
    }
}

impl ExecutionPlan for GrampusAggregate {
    fn name(&self) -> &str {
        "GrampusAggregate"
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

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (request, states) = self.request();
        let (table, schema) = (Arc::clone(&self.selection.table), self.schema());
        let ranges = self.selection.ranges.clone();
        let finisher = Finisher {
            table: Arc::clone(&table),
            schema: Arc::clone(&schema),
            group_by: self.group_by.clone(),
            aggregates: self.aggregates.clone(),
            states,
        };
        let (counts, metrics) = (self.counts(), BaselineMetrics::new(&self.metrics, partition));
        let memory = MemoryConsumer::new("GrampusAggregate").register(context.memory_pool());
        let batch_rows = context.session_config().batch_size();
        let found = async move {
            let reservation = memory;
            let mut watcher =
                ProgressWatcher { reservation: &reservation, counts: &counts, finisher: &finisher };
            let watch = Box::new(|progress: &_, merger: &_| watcher.update(progress, merger));
            let source = &table.source;
            let partial =
                source.aggregate(&table.declaration.table, &request, &ranges, PARALLEL, watch).await?;
            let batch = finisher.batch(partial).map_err(|error| DataFusionError::External(error.into()))?;
            metrics.record_output(batch.num_rows());
            let starts = (0..batch.num_rows()).step_by(batch_rows);
            let slices = starts
                .map(|at| Ok::<_, DataFusionError>(batch.slice(at, batch_rows.min(batch.num_rows() - at))));
            Ok::<_, DataFusionError>(stream::iter(slices.collect::<Vec<_>>()))
        };
        let batches = stream::once(found).try_flatten().boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// Observes responses as they arrive: reserves memory and updates the counters.
struct ProgressWatcher<'a> {
    reservation: &'a MemoryReservation,
    counts: &'a Counts,
    finisher: &'a Finisher,
}

impl ProgressWatcher<'_> {
    fn update(&mut self, progress: &client::columns::Progress, merger: &columnar::Merger) -> Result<()> {
        let work = &progress.work;
        let increase_to = |count: &Count, sum: Option<u64>| {
            count.add((sum.unwrap_or(0) as usize).saturating_sub(count.value()));
        };
        increase_to(&self.counts.rows, work.rows);
        increase_to(&self.counts.rows_matched, work.rows_matched);
        increase_to(&self.counts.rows_in_vectors, work.rows_in_vectors);
        increase_to(&self.counts.rows_skipped, work.rows_skipped);
        let group = GROUP_BYTES + STATE_BYTES * self.finisher.aggregates.len();
        self.reservation.try_resize(merger.len() * group).map_err(|error| {
            let groups = merger.len();
            error.context(format!(
                "{groups} groups exceed the memory limit: raise --memory, or query fewer groups"
            ))
        })
    }
}

impl Finisher {
    /// Converts all groups to columns.
    fn batch(&self, partial: Partial) -> std::result::Result<RecordBatch, String> {
        let groups = &partial.groups;
        let width = self.group_by.len();
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        if groups.iter().any(|(key, _)| key.len() != width) {
            return Err("response has groups with a different number of keys".into());
        }
        for (at, column) in self.group_by.iter().enumerate() {
            let column = &self.table.declaration.columns[*column];
            arrays.push(arrays::from_values(groups.iter().map(|(key, _)| &key[at]), column)?);
        }
        for (pushed, state) in self.aggregates.iter().zip(&self.states) {
            let output = self.schema.field(arrays.len()).data_type();
            let column = pushed.column.map(|column| &self.table.declaration.columns[column]);
            let scalars =
                groups.iter().map(|(_, states)| pushed.function.finish(&states[*state], column, output));
            arrays.push(arrays::from_scalars(scalars.collect::<std::result::Result<_, String>>()?, output)?);
        }
        let fields = self.schema.fields().iter();
        let arrays = arrays.into_iter().zip(fields).map(|(array, field)| cast_to(array, field.data_type()));
        let arrays = arrays.collect::<std::result::Result<Vec<_>, String>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(groups.len()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .map_err(|error| error.to_string())
    }
}

/// Casts a column to the type to which the query widened it.
fn cast_to(array: ArrayRef, data_type: &DataType) -> std::result::Result<ArrayRef, String> {
    match array.data_type() == data_type {
        true => Ok(array),
        false => cast(&array, data_type).map_err(|error| error.to_string()),
    }
}
