//! Groups of a table's rows: the part of a plan that aggregates them where they are.
//!
//! All regions work side by side; what they found is put together here, and given out as finished values.

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
use crate::request::{Declared, Places, Wanted};
use function::Pushed;

/// Regions that are worked on at a time.
const PARALLEL: usize = 64;
/// Bytes of memory for a group beside its key and states, about.
const GROUP_BYTES: usize = 256;
/// Bytes of memory for a state, about.
const STATE_BYTES: usize = 64;

/// Aggregates the rows of a table.
#[derive(Debug)]
pub struct GrampusAggregate {
    wanted: Wanted,
    /// Declared columns.
    group_by: Vec<usize>,
    aggregates: Vec<Pushed>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// What is needed of the plan while it runs.
struct Finisher {
    table: Arc<Declared>,
    schema: SchemaRef,
    group_by: Vec<usize>,
    aggregates: Vec<Pushed>,
    /// Of each aggregate the place of its state.
    states: Vec<usize>,
}

/// Counts of what servers did.
struct Counts {
    rows: Count,
    rows_matched: Count,
    rows_in_vectors: Count,
    rows_skipped: Count,
}

impl GrampusAggregate {
    /// An aggregation that gives `schema`: the columns of the groups, then the aggregates.
    pub fn new(
        wanted: Wanted,
        group_by: Vec<usize>,
        aggregates: Vec<Pushed>,
        schema: SchemaRef,
    ) -> GrampusAggregate {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        let metrics = ExecutionPlanMetricsSet::new();
        GrampusAggregate { wanted, group_by, aggregates, properties: Arc::new(properties), metrics }
    }

    /// The request, and of each aggregate the place of its state: equal ones are asked for once.
    fn request(&self) -> (AggregateRequest, Vec<usize>) {
        let mut places = Places::default();
        let group_by = self.group_by.iter().map(|column| places.of(*column as u32)).collect();
        let (mut asked, mut states) = (Vec::<Aggregate>::new(), Vec::new());
        for Pushed { function, column, .. } in &self.aggregates {
            let column = column.map(|column| places.of(column as u32));
            let aggregate = Aggregate { function: Some(function.asked().into()), column };
            states.push(asked.iter().position(|known| *known == aggregate).unwrap_or_else(|| {
                asked.push(aggregate);
                asked.len() - 1
            }));
        }
        let request = AggregateRequest {
            rows: Some(self.wanted.rows(places)),
            group_by,
            aggregate: asked,
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
        let groups: Vec<&str> = self.group_by.iter().map(|at| self.wanted.name(*at)).collect();
        let aggregates = self.aggregates.iter().map(|pushed| pushed.shown(&self.wanted.table.declaration));
        let aggregates: Vec<String> = aggregates.collect();
        write!(
            f,
            "GrampusAggregate: table={}, group_by=[{}], aggregates=[{}]{}",
            self.wanted.table.declaration.table,
            groups.join(", "),
            aggregates.join(", "),
            self.wanted.shown()
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
        let (table, schema) = (Arc::clone(&self.wanted.table), self.schema());
        let ranges = self.wanted.ranges.clone();
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
            let mut watched = Watched { reservation: &reservation, counts: &counts, finisher: &finisher };
            let watch = Box::new(|progress: &_, merger: &_| watched.see(progress, merger));
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

/// Looks on while answers come: memory is asked for, what servers did is counted.
struct Watched<'a> {
    reservation: &'a MemoryReservation,
    counts: &'a Counts,
    finisher: &'a Finisher,
}

impl Watched<'_> {
    fn see(&mut self, progress: &client::columns::Progress, merger: &columnar::Merger) -> Result<()> {
        let work = &progress.work;
        let raise = |count: &Count, sum: Option<u64>| {
            count.add((sum.unwrap_or(0) as usize).saturating_sub(count.value()));
        };
        raise(&self.counts.rows, work.rows);
        raise(&self.counts.rows_matched, work.rows_matched);
        raise(&self.counts.rows_in_vectors, work.rows_in_vectors);
        raise(&self.counts.rows_skipped, work.rows_skipped);
        let group = GROUP_BYTES + STATE_BYTES * self.finisher.aggregates.len();
        self.reservation.try_resize(merger.len() * group).map_err(|error| {
            let groups = merger.len();
            error.context(format!(
                "{groups} groups do not fit: allow more with --memory, or ask for fewer groups"
            ))
        })
    }
}

impl Finisher {
    /// All groups as columns.
    fn batch(&self, partial: Partial) -> std::result::Result<RecordBatch, String> {
        let groups = &partial.groups;
        let width = self.group_by.len();
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        if groups.iter().any(|(key, _)| key.len() != width) {
            return Err("an answer has groups of another key".into());
        }
        for (at, column) in self.group_by.iter().enumerate() {
            let column = &self.table.declaration.columns[*column];
            arrays.push(arrays::of_values(groups.iter().map(|(key, _)| &key[at]), column)?);
        }
        for (pushed, state) in self.aggregates.iter().zip(&self.states) {
            let output = self.schema.field(arrays.len()).data_type();
            let column = pushed.column.map(|column| &self.table.declaration.columns[column]);
            let scalars =
                groups.iter().map(|(_, states)| pushed.function.finish(&states[*state], column, output));
            arrays.push(arrays::of_scalars(scalars.collect::<std::result::Result<_, String>>()?, output)?);
        }
        let fields = self.schema.fields().iter();
        let arrays = arrays.into_iter().zip(fields).map(|(array, field)| widened(array, field.data_type()));
        let arrays = arrays.collect::<std::result::Result<Vec<_>, String>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(groups.len()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .map_err(|error| error.to_string())
    }
}

/// A column as the type it was widened to in the query.
fn widened(array: ArrayRef, data_type: &DataType) -> std::result::Result<ArrayRef, String> {
    match array.data_type() == data_type {
        true => Ok(array),
        false => cast(&array, data_type).map_err(|error| error.to_string()),
    }
}
