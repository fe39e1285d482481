//! Groups of rows and what is found of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::budget::Budget;
use base::env::TaskClass;
use columnar::{Aggregation, Aggregator, Batch, Bounds, Predicate, Refusal};
use engine::Region;
use engine::columns::{BatchSink, ColumnScan, Looked, Taken, Unit};
use prost::Message;
use proto::grampus::{AggregateRequest, AggregateResponse};
use wire::convert::columns::{request, state};
use wire::exception::JavaException;

use super::room::{Fits, Room};
use super::turns::Turns;
use crate::error::{Error, Result};

/// Memory that the groups of one call may take before it answers; putting the answer together takes some times as much.
const GROUPS_BYTES_MAX: usize = 32 << 20;
/// Time after the end of a call's time in which a unit may be ended that was begun. No unit takes that long, but for values and
/// conditions that are made for it.
const GRACE: Duration = Duration::from_secs(20);

/// Answers a request; computes for long. Its groups are counted among `answers`.
pub(super) async fn aggregate(
    region: &Arc<Region>,
    request: &AggregateRequest,
    answer_by: Duration,
    answers: &Arc<Budget>,
) -> Result<Vec<u8>> {
    let mut rows = super::rows(request.rows.as_ref())?;
    let mut plan =
        request::aggregation(&rows, &request.group_by, &request.aggregate).map_err(JavaException::from)?;
    // Of several versions, cells of columns that nothing is asked of make rows too.
    plan = if rows.versions <= 1 { plan.of_used_columns() } else { plan.of_different_columns() };
    rows.columns.clone_from(&plan.columns);
    let scan = ColumnScan::new(region, super::wanted(&rows))?;
    let units = scan.plan().await?;
    let asked = request.groups_bytes_max.and_then(|bytes| usize::try_from(bytes).ok());
    let bytes_max = asked.map_or(GROUPS_BYTES_MAX, |bytes| bytes.min(GROUPS_BYTES_MAX));
    let job = Arc::new(Job {
        region: region.clone(),
        scan,
        turns: Turns::new(units, answer_by),
        // A task that has nothing yet is given some room whatever was asked for.
        room: Room::new(answers, bytes_max.max(ROOM_BYTES_MIN)),
        bytes_max,
        found: Mutex::new(Found {
            groups: Aggregator::new(Arc::new(plan.clone())),
            looked: Looked::default(),
            matched: 0,
        }),
        plan: Arc::new(plan),
    });
    // Ends the others when this one is dropped.
    let stop = StopOnDrop(job.clone());
    job.run().await;
    drop(stop);
    if let Some(error) = job.turns.failed() {
        return Err(error);
    }
    job.answer()
}

/// Groups that a call may have before it is told that they are too many: those of a unit are not many less.
const ROOM_BYTES_MIN: usize = 8 << 20;

/// One aggregation, done by several tasks.
struct Job {
    region: Arc<Region>,
    scan: ColumnScan,
    plan: Arc<Aggregation>,
    turns: Turns,
    // Of the groups of all tasks.
    room: Room,
    bytes_max: usize,
    found: Mutex<Found>,
}

/// What those tasks found that are done.
struct Found {
    groups: Aggregator,
    looked: Looked,
    matched: u64,
}

struct StopOnDrop(Arc<Job>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.turns.give_up();
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
        let mut worker = Worker {
            job: self,
            groups: Aggregator::new(self.plan.clone()),
            looked: Looked::default(),
            matched: 0,
            bytes: 0,
            unit: 0,
            leaves_off: false,
        };
        while let Some((at, unit)) = self.turns.take(&*self.region.env().clock) {
            if let Err(error) = worker.read(at, unit).await {
                return self.turns.fail(error.into());
            }
            tokio::task::yield_now().await;
        }
        let Worker { groups, looked, matched, .. } = worker;
        let mut found = self.found();
        if let Err(overflow) = found.groups.absorb(groups) {
            self.turns.fail(refused(overflow));
        }
        found.looked.add(&looked);
        found.matched += matched;
    }

    /// The answer, which is written group by group: messages take several times what they are made of.
    fn answer(&self) -> Result<Vec<u8>> {
        let found = self.found();
        found.groups.check().map_err(refused)?;
        let mut answer = Vec::new();
        let mut put =
            |part: AggregateResponse| part.encode(&mut answer).expect("memory has no end of its own");
        for (key, states) in found.groups.groups() {
            put(AggregateResponse { group: vec![state::group_message(&key, &states)], ..Default::default() });
        }
        put(AggregateResponse {
            group: Vec::new(),
            resume_row: self.turns.rest(),
            work: Some(super::work(&found.looked, found.matched)),
        });
        Ok(answer)
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        // Who panicked here has failed the call.
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The groups of one task.
struct Worker<'a> {
    job: &'a Job,
    groups: Aggregator,
    looked: Looked,
    matched: u64,
    // Of the groups, as was told last.
    bytes: usize,
    // The one at work.
    unit: usize,
    leaves_off: bool,
}

impl Worker<'_> {
    async fn read(&mut self, at: usize, unit: &Unit) -> std::result::Result<(), engine::Error> {
        let job = self.job;
        self.unit = at;
        let read = job.scan.read(unit, self).await?;
        self.looked.add(&read.looked);
        if let Some(row) = read.next_row {
            job.turns.go_on_at(row);
        }
        Ok(())
    }

    /// Looks whether there is time and memory to go on, and stops if it can where there is none.
    fn look(&mut self) -> std::result::Result<(), engine::Error> {
        let (turns, clock) = (&self.job.turns, &*self.job.region.env().clock);
        if turns.is_given_up() || turns.is_over_by(clock, GRACE) {
            turns.fail(JavaException::do_not_retry("a part of the rows takes too long").into());
            return Err(engine::Error::bad_request("given up"));
        }
        if self.bytes > self.job.bytes_max || turns.is_over(clock) {
            self.leaves_off = turns.leave_off(self.unit);
        }
        Ok(())
    }
}

impl BatchSink for Worker<'_> {
    fn may_use(&self, bounds: &[Bounds]) -> bool {
        self.job.plan.predicate.as_ref().is_none_or(|predicate| predicate.may_hold(bounds))
    }

    fn batch(&mut self, batch: &Batch<'_>) -> std::result::Result<Taken, engine::Error> {
        let (job, bytes) = (self.job, &mut self.bytes);
        let added = self.groups.add_while(batch, |now| {
            let before = std::mem::replace(bytes, now);
            match job.room.grow(before, now) {
                Ok(Fits::Yes) => true,
                Ok(Fits::Full) => {
                    job.turns.stop();
                    true
                }
                Err(no_room) => {
                    job.turns.fail(no_room.into());
                    false
                }
            }
        });
        self.matched += match added {
            Ok(matched) => matched,
            Err(Refusal::Overflow(overflow)) => return Err(engine::Error::bad_request(overflow.to_string())),
            Err(Refusal::GivenUp) => return Err(engine::Error::bad_request("given up")),
        };
        self.look()?;
        Ok(if self.leaves_off { Taken::Until(batch.len) } else { Taken::All })
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

    fn goes_on(&mut self) -> std::result::Result<bool, engine::Error> {
        self.look()?;
        Ok(!self.leaves_off)
    }
}

fn refused(overflow: columnar::aggregate::Overflow) -> Error {
    JavaException::do_not_retry(overflow.to_string()).into()
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}
