//! Aggregation of rows into groups.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use analytics::{BatchSink, ColumnScan, ReadStats, TakenRows, Unit};
use base::budget::Budget;
use base::env::TaskClass;
use columnar::{Aggregation, Aggregator, Batch, Bounds, Predicate, Refusal};
use engine::Region;
use prost::Message;
use proto::exception::JavaException;
use proto::grampus::{AggregateRequest, AggregateResponse};
use wire::convert::columns::{request, state};

use super::group_memory::{GroupMemory, GrowResult};
use super::unit_queue::UnitQueue;
use crate::error::{Error, Result};

/// Group memory at which a call answers. Building the response takes a multiple of that.
const GROUPS_BYTES_MAX: usize = 32 << 20;
/// Time after the call's deadline in which a unit in progress may be completed. Only values and
/// conditions crafted for this purpose take longer.
const GRACE: Duration = Duration::from_secs(20);

/// Handles a request; CPU-intensive. The groups are charged to `response_budget`.
pub(super) async fn aggregate(
    region: &Arc<Region>,
    request: &AggregateRequest,
    respond_by: Duration,
    response_budget: &Arc<Budget>,
) -> Result<Vec<u8>> {
    let mut rows = super::rows(request.rows.as_ref())?;
    let mut plan =
        request::aggregation(&rows, &request.group_by, &request.aggregate).map_err(JavaException::from)?;
    // With several versions, the cells of unused columns also create rows.
    plan = if rows.versions <= 1 { plan.without_unused_columns() } else { plan.with_distinct_columns() };
    rows.columns.clone_from(&plan.columns);
    let scan = ColumnScan::new(region, super::query(&rows))?;
    let plan_units = scan.plan().await?;
    let requested = request.groups_bytes_max.and_then(|bytes| usize::try_from(bytes).ok());
    let bytes_max = requested.map_or(GROUPS_BYTES_MAX, |bytes| bytes.min(GROUPS_BYTES_MAX));
    let job = Arc::new(Job {
        region: region.clone(),
        scan,
        units: UnitQueue::new(plan_units, respond_by),
        // The minimum lets tasks start, regardless of the requested limit.
        memory: GroupMemory::new(response_budget, bytes_max.max(MEMORY_BYTES_MIN)),
        bytes_max,
        merged: Mutex::new(MergedGroups {
            groups: Aggregator::new(Arc::new(plan.clone())),
            stats: ReadStats::default(),
            matched: 0,
        }),
        plan: Arc::new(plan),
    });
    // Stops the other tasks when this future is dropped.
    let stop = StopOnDrop(job.clone());
    job.run().await;
    drop(stop);
    if let Some(error) = job.units.failed() {
        return Err(error);
    }
    job.encode_response()
}

/// Minimum group memory at which it is full. The groups of a single unit may be almost as
/// large.
const MEMORY_BYTES_MIN: usize = 8 << 20;

/// An aggregation by several tasks.
struct Job {
    region: Arc<Region>,
    scan: ColumnScan,
    plan: Arc<Aggregation>,
    units: UnitQueue,
    // Memory of the groups of all tasks.
    memory: GroupMemory,
    bytes_max: usize,
    merged: Mutex<MergedGroups>,
}

/// Merged results of the tasks that have ended.
struct MergedGroups {
    groups: Aggregator,
    stats: ReadStats,
    matched: u64,
}

struct StopOnDrop(Arc<Job>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.units.cancel();
    }
}

impl Job {
    /// Processes all units with one task per core, including the current task.
    async fn run(self: &Arc<Self>) {
        let task_count = cores().min(self.units.len());
        let tasks: Vec<_> = (1..task_count)
            .map(|_| {
                let job = self.clone();
                self.region.env().spawn(TaskClass::Scan, async move { job.work().await })
            })
            .collect();
        self.work().await;
        for task in tasks {
            if task.await.is_err() {
                self.units.fail(JavaException::do_not_retry("a task of the aggregation was aborted").into());
            }
        }
    }

    async fn work(&self) {
        let mut worker = Worker {
            job: self,
            groups: Aggregator::new(self.plan.clone()),
            stats: ReadStats::default(),
            matched: 0,
            bytes: 0,
            unit: 0,
            stops_in_unit: false,
        };
        while let Some((at, unit)) = self.units.take(&*self.region.env().clock) {
            if let Err(error) = worker.read(at, unit).await {
                return self.units.fail(error.into());
            }
            tokio::task::yield_now().await;
        }
        let Worker { groups, stats, matched, .. } = worker;
        let mut merged = self.merged();
        if let Err(overflow) = merged.groups.absorb(groups) {
            self.units.fail(overflow_error(overflow));
        }
        merged.stats.add(&stats);
        merged.matched += matched;
    }

    /// Encodes the response group by group, because messages take several times the memory of the
    /// groups.
    fn encode_response(&self) -> Result<Vec<u8>> {
        let merged = self.merged();
        merged.groups.check().map_err(overflow_error)?;
        let mut response = Vec::new();
        let mut append =
            |part: AggregateResponse| part.encode(&mut response).expect("encoding to a vector succeeds");
        for (key, states) in merged.groups.groups() {
            append(AggregateResponse {
                group: vec![state::group_message(&key, &states)],
                ..Default::default()
            });
        }
        append(AggregateResponse {
            group: Vec::new(),
            resume_row: self.units.resume_row(),
            work: Some(super::work(&merged.stats, merged.matched)),
        });
        Ok(response)
    }

    fn merged(&self) -> MutexGuard<'_, MergedGroups> {
        // A task that panicked while it held the lock has failed the call.
        self.merged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The groups of one task.
struct Worker<'a> {
    job: &'a Job,
    groups: Aggregator,
    stats: ReadStats,
    matched: u64,
    // Last reported memory of the groups.
    bytes: usize,
    // Index of the current unit.
    unit: usize,
    stops_in_unit: bool,
}

impl Worker<'_> {
    async fn read(&mut self, at: usize, unit: &Unit) -> std::result::Result<(), engine::Error> {
        let job = self.job;
        self.unit = at;
        let read = job.scan.read(unit, self).await?;
        self.stats.add(&read.stats);
        if let Some(row) = read.next_row {
            job.units.set_resume_row(row);
        }
        Ok(())
    }

    /// Checks time and memory. If they are exhausted, stops at the next possible row, or fails the
    /// call.
    fn check_limits(&mut self) -> std::result::Result<(), engine::Error> {
        let (units, clock) = (&self.job.units, &*self.job.region.env().clock);
        if units.is_canceled() || units.is_expired_by(clock, GRACE) {
            units.fail(JavaException::do_not_retry("the time limit was exceeded in a unit of rows").into());
            return Err(engine::Error::bad_request("canceled"));
        }
        if self.bytes > self.job.bytes_max || units.is_expired(clock) {
            self.stops_in_unit = units.stop_at_last_unit(self.unit);
        }
        Ok(())
    }
}

impl BatchSink for Worker<'_> {
    fn may_use(&self, bounds: &[Bounds]) -> bool {
        self.job.plan.predicate.as_ref().is_none_or(|predicate| predicate.may_hold(bounds))
    }

    fn batch(&mut self, batch: &Batch<'_>) -> std::result::Result<TakenRows, engine::Error> {
        let (job, bytes) = (self.job, &mut self.bytes);
        let added = self.groups.add_while(batch, |now| {
            let before = std::mem::replace(bytes, now);
            match job.memory.grow(before, now) {
                Ok(GrowResult::Continue) => true,
                Ok(GrowResult::Full) => {
                    job.units.stop();
                    true
                }
                Err(error) => {
                    job.units.fail(error.into());
                    false
                }
            }
        });
        self.matched += match added {
            Ok(matched) => matched,
            Err(Refusal::Overflow(overflow)) => return Err(engine::Error::bad_request(overflow.to_string())),
            Err(Refusal::Canceled) => return Err(engine::Error::bad_request("canceled")),
        };
        self.check_limits()?;
        Ok(if self.stops_in_unit { TakenRows::Until(batch.len) } else { TakenRows::All })
    }

    fn rows(&mut self, rows: u64) {
        if self.job.plan.predicate.as_ref().is_none_or(Predicate::holds_without_columns) {
            self.groups.add_rows(rows);
            self.matched += rows;
        }
    }

    fn may_stop(&self) -> bool {
        true
    }

    fn wants_more(&mut self) -> std::result::Result<bool, engine::Error> {
        self.check_limits()?;
        Ok(!self.stops_in_unit)
    }
}

fn overflow_error(overflow: columnar::aggregate::Overflow) -> Error {
    JavaException::do_not_retry(overflow.to_string()).into()
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}
