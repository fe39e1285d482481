//! Groups of rows and what is found of them.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use base::env::TaskClass;
use columnar::{Aggregation, Aggregator, Batch, Merger, Partial, Predicate, Vector};
use engine::Region;
use engine::columns::{BatchSink, ColumnScan, Looked};
use prost::Message;
use proto::grampus::{AggregateRequest, AggregateResponse};
use wire::convert::columns::{request, state};
use wire::exception::JavaException;

use super::turns::Turns;
use crate::error::{Error, Result};

/// Memory that the groups of one call may take before it answers; putting the answer together takes some times as much.
const GROUPS_BYTES_MAX: usize = 32 << 20;

/// Answers a request; computes for long.
pub(super) async fn aggregate(region: &Arc<Region>, request: &AggregateRequest) -> Result<Vec<u8>> {
    Ok(respond(region, request).await?.encode_to_vec())
}

async fn respond(region: &Arc<Region>, request: &AggregateRequest) -> Result<AggregateResponse> {
    let rows = super::rows(request.rows.as_ref())?;
    let plan =
        request::aggregation(&rows, &request.group_by, &request.aggregate).map_err(JavaException::from)?;
    let scan = ColumnScan::new(region, super::wanted(&rows))?;
    let units = scan.units().await?;
    let clock = &region.env().clock;
    let asked = request.groups_bytes_max.and_then(|bytes| usize::try_from(bytes).ok());
    let job = Arc::new(Job {
        region: region.clone(),
        scan,
        plan: Arc::new(plan),
        turns: Turns::new(units, clock.monotonic() + super::time_max(request.time_ms_max)),
        bytes: AtomicUsize::new(0),
        bytes_max: asked.map_or(GROUPS_BYTES_MAX, |bytes| bytes.min(GROUPS_BYTES_MAX)),
        found: Mutex::new(Found::default()),
    });
    // Ends the others when this one is dropped.
    let stop = StopOnDrop(job.clone());
    job.run().await;
    drop(stop);
    if let Some(error) = job.turns.failed() {
        return Err(error);
    }
    let Found { merger, looked, matched } = std::mem::take(&mut *job.found());
    let partial = merger.finish();
    Ok(AggregateResponse {
        group: partial.groups.iter().map(|(key, states)| state::group_message(key, states)).collect(),
        resume_row: job.turns.rest(),
        work: Some(super::work(&looked, matched)),
    })
}

/// One aggregation, done by several tasks.
struct Job {
    region: Arc<Region>,
    scan: ColumnScan,
    plan: Arc<Aggregation>,
    turns: Turns,
    // Of the groups of all tasks.
    bytes: AtomicUsize,
    bytes_max: usize,
    found: Mutex<Found>,
}

/// What those tasks found that are done.
#[derive(Default)]
struct Found {
    merger: Merger,
    looked: Looked,
    matched: u64,
}

struct StopOnDrop(Arc<Job>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.turns.stop();
    }
}

impl Job {
    /// Works on all units: a task on each core, this one among them.
    async fn run(self: &Arc<Self>) {
        let tasks = cores().min(self.turns.len());
        let others: Vec<_> = (1..tasks)
            .map(|_| {
                let job = self.clone();
                self.region.env().spawn(TaskClass::Scan, async move { job.work().await })
            })
            .collect();
        self.work().await;
        for other in others {
            if other.await.is_err() {
                self.turns.fail(JavaException::do_not_retry("a part of the aggregation was given up").into());
            }
        }
    }

    async fn work(&self) {
        let mut worker =
            Worker { aggregator: Aggregator::new(self.plan.clone()), plan: &self.plan, matched: 0 };
        let (mut looked, mut bytes) = (Looked::default(), 0);
        while let Some(unit) = self.turns.take(&*self.region.env().clock) {
            match self.scan.read(unit, &mut worker).await {
                Ok(read) => looked.add(&read.looked),
                Err(error) => return self.turns.fail(error.into()),
            }
            let grown = worker.aggregator.heap_bytes();
            if self.bytes.fetch_add(grown.saturating_sub(bytes), Relaxed) + grown - bytes > self.bytes_max {
                self.turns.stop();
            }
            bytes = grown;
            tokio::task::yield_now().await;
        }
        let (partial, matched) = (worker.aggregator.finish(), worker.matched);
        self.add(partial, &looked, matched);
    }

    fn add(&self, partial: Partial, looked: &Looked, matched: u64) {
        let mut found = self.found();
        if let Err(overflow) = found.merger.add(partial) {
            self.turns.fail(refused(overflow));
        }
        found.looked.add(looked);
        found.matched += matched;
    }

    fn found(&self) -> std::sync::MutexGuard<'_, Found> {
        // Who panicked here has failed the call.
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The groups of one task.
struct Worker<'a> {
    aggregator: Aggregator,
    plan: &'a Aggregation,
    matched: u64,
}

impl BatchSink for Worker<'_> {
    fn may_use(&self, vectors: &[Option<Arc<Vector>>]) -> bool {
        self.plan.predicate.as_ref().is_none_or(|predicate| predicate.may_hold(vectors))
    }

    fn batch(&mut self, batch: &Batch<'_>) -> std::result::Result<bool, engine::Error> {
        let matched = self.aggregator.add(batch);
        self.matched += matched.map_err(|overflow| engine::Error::bad_request(overflow.to_string()))?;
        Ok(true)
    }

    fn rows(&mut self, rows: u64) {
        if self.plan.predicate.as_ref().is_none_or(Predicate::holds_without_columns) {
            self.aggregator.add_rows(rows);
            self.matched += rows;
        }
    }
}

fn refused(overflow: columnar::aggregate::Overflow) -> Error {
    JavaException::do_not_retry(overflow.to_string()).into()
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}
