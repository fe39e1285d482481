//! Runs procedures and remembers how they ended.
//!
//! Invariants:
//!
//! * A procedure that a client was told of is in the journal, until it has ended.
//! * Of the procedures on one table one runs at a time, in the order in which they were submitted. While one on a
//!   namespace runs, none on a table in it does.
//! * A step that fails is repeated, with growing pauses, until it succeeds or its failure is final.
//!   Then the procedure ends without success where that is possible (`rollback`), and waits where
//!   it is not. The reason and the next attempt are in its [`Status`].
//! * The same (nonce group, nonce) is the same procedure: a client that retries gets the first one's number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use base::env::{Env, TaskClass};
use cell::schema::TableName;
use tokio::sync::{
    Mutex as AsyncMutex, OwnedMutexGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, watch,
};
use tracing::{error, info, warn};
use wire::exception::{JavaException, class};

use super::journal::Journal;
use super::retry::{AbortRequest, Retry};
use super::{Record, Subject, Waiting, Work};
use crate::context::Context;

/// How long the end of a procedure is remembered (HBase: `hbase.master.procedure.cleaner.evict.ttl`, 15 minutes).
const REMEMBERED: Duration = Duration::from_secs(15 * 60);

/// Where a procedure stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Not ended yet.
    Running,
    /// Ended; with an exception it changed nothing.
    Finished(Option<JavaException>),
}

/// What is known of a procedure.
#[derive(Clone, Debug)]
pub struct Status {
    /// What it does.
    pub work: Work,
    /// Where it stands.
    pub progress: Progress,
    /// When it was submitted, milliseconds since the epoch.
    pub submitted_ms: u64,
    /// When it last moved, milliseconds since the epoch.
    pub updated_ms: u64,
    /// Whether it has begun to act; before, it waits for others on the same table or namespace.
    pub begun: bool,
    /// Why it waits for another attempt, if it does.
    pub waiting: Option<Waiting>,
}

/// Runs procedures.
pub struct Executor {
    env: Env,
    journal: Journal,
    // The context holds the executor's owner, so it is only borrowed from here.
    context: Weak<Context>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next_id: u64,
    known: HashMap<u64, Known>,
    by_nonce: HashMap<(u64, u64), u64>,
    tables: HashMap<TableName, Arc<AsyncMutex<()>>>,
    namespaces: HashMap<String, Arc<RwLock<()>>>,
}

struct Known {
    status: watch::Sender<Status>,
    ended_at: Option<Duration>,
    nonce: (u64, u64),
    abort: Arc<AbortRequest>,
}

impl Executor {
    /// An executor over a journal; [`Executor::resume`] carries on what an earlier run began.
    pub fn new(env: Env, journal: Journal, context: Weak<Context>) -> Arc<Executor> {
        Arc::new(Executor {
            env,
            journal,
            context,
            state: Mutex::new(State { next_id: 1, ..State::default() }),
        })
    }

    /// Runs the procedures that the journal holds from an earlier run.
    ///
    /// # Errors
    /// What the journal says when it cannot be read.
    pub async fn resume(self: &Arc<Self>) -> Result<(), engine::Error> {
        let records = self.journal.load().await?;
        // Numbers go on from the clock: a client that asks for a procedure of an earlier run never meets a later one.
        let last = records.iter().map(|record| record.id).max().unwrap_or(0);
        self.lock().next_id = self.env.clock.now_ms().max(last + 1);
        for record in records {
            info!(id = record.id, work = record.work.class_name(), subject = %record.work.subject(), "procedure resumed");
            self.begin(record);
        }
        Ok(())
    }

    /// Journals a procedure and starts it. Returns its number when it is sure to be carried out or refused, even if
    /// the process ends.
    ///
    /// # Errors
    /// What the journal says when it cannot be written; the procedure is not started then.
    pub async fn submit(self: &Arc<Self>, work: Work, nonce: (u64, u64)) -> Result<u64, engine::Error> {
        let now_ms = self.env.clock.now_ms();
        let id = {
            let mut state = self.lock();
            if let Some(earlier) = state.by_nonce.get(&nonce).filter(|_| nonce != (0, 0)) {
                return Ok(*earlier);
            }
            let id = state.next_id;
            state.next_id += 1;
            if nonce != (0, 0) {
                state.by_nonce.insert(nonce, id);
            }
            id
        };
        let record = Record { id, work, prepared: false, submitted_ms: now_ms, nonce };
        if let Err(error) = self.journal.put(&record).await {
            self.lock().by_nonce.remove(&nonce);
            return Err(error);
        }
        self.begin(record);
        Ok(id)
    }

    /// The procedure that was submitted with `nonce`, if there is one.
    pub fn with_nonce(&self, nonce: (u64, u64)) -> Option<u64> {
        self.lock().by_nonce.get(&nonce).copied().filter(|_| nonce != (0, 0))
    }

    /// What is known of procedure `id`; `None` if nothing is, or no longer.
    pub fn status(&self, id: u64) -> Option<Status> {
        let mut state = self.lock();
        state.forget_old(self.env.clock.monotonic());
        state.known.get(&id).map(|known| known.status.borrow().clone())
    }

    /// All procedures that are known, with their numbers, oldest first.
    pub fn list(&self) -> Vec<(u64, Status)> {
        let state = self.lock();
        let mut all: Vec<_> =
            state.known.iter().map(|(id, known)| (*id, known.status.borrow().clone())).collect();
        all.sort_by_key(|(id, _)| *id);
        all
    }

    /// Waits for the end of procedure `id`: `None` if it is not known.
    pub async fn wait(&self, id: u64) -> Option<Status> {
        let mut status = self.lock().known.get(&id)?.status.subscribe();
        // The sender lives as long as the procedure is known; if it goes, the last status says how it ended.
        let _ = status.wait_for(|status| status.progress != Progress::Running).await;
        let last = status.borrow().clone();
        Some(last)
    }

    /// Waits for the end of all procedures on a table that are known now.
    pub async fn wait_for_table(&self, table: &TableName) {
        self.wait_for(|work| work.subject() == Subject::Table(table)).await;
    }

    /// Waits for the end of all procedures that are known now and of a kind.
    pub async fn wait_for(&self, is_wanted: impl Fn(&Work) -> bool) {
        for (id, status) in self.list() {
            if is_wanted(&status.work) {
                self.wait(id).await;
            }
        }
    }

    fn begin(self: &Arc<Self>, record: Record) {
        let status = Status {
            work: record.work.clone(),
            progress: Progress::Running,
            submitted_ms: record.submitted_ms,
            updated_ms: record.submitted_ms,
            begun: false,
            waiting: None,
        };
        let abort = Arc::new(AbortRequest::default());
        let turn = {
            let mut state = self.lock();
            let known = Known {
                status: watch::Sender::new(status),
                ended_at: None,
                nonce: record.nonce,
                abort: abort.clone(),
            };
            state.known.insert(record.id, known);
            if record.nonce != (0, 0) {
                state.by_nonce.insert(record.nonce, record.id);
            }
            Turn::of(&record.work.subject(), &mut state)
        };
        let executor = self.clone();
        self.env.spawn(TaskClass::Service, async move {
            let held = tokio::select! {
                biased;
                held = turn.take() => Some(held),
                // One that was prepared by an earlier run has acted already.
                () = abort.requested(), if !record.prepared => None,
            };
            executor.run(record, &abort).await;
            drop(held);
        });
    }

    async fn run(&self, mut record: Record, abort: &AbortRequest) {
        let Some(context) = self.context.upgrade() else { return };
        let begun = self.env.clock.monotonic();
        context.instruments.note_begun(&record.work);
        let outcome = self.carry_out(&context, &mut record, abort).await;
        context.namespace_quotas.release(record.id);
        let took = self.env.clock.monotonic().saturating_sub(begun);
        context.instruments.note_ended(&record.work, outcome.is_ok(), took);
        if let Err(exception) = &outcome {
            info!(id = record.id, work = record.work.class_name(), %exception, "procedure ended without success");
        }
        if let Err(error) = self.journal.remove(record.id).await {
            // It will run again after a restart and find that all is done.
            error!(id = record.id, %error, "the journal still holds an ended procedure");
        }
        self.end(record.id, outcome.err());
    }

    async fn carry_out(
        &self,
        context: &Context,
        record: &mut Record,
        abort: &AbortRequest,
    ) -> Result<(), JavaException> {
        if !record.prepared {
            if abort.take() {
                return Err(aborted(&record.work));
            }
            self.update(record.id, |status| status.begun = true);
            record.work.check(context).await?;
            record.work.prepare(context).await?;
            context.namespace_quotas.reserve(context, record.id, &record.work)?;
            record.prepared = true;
            self.journal.put(record).await.map_err(|error| JavaException::io(error.to_string()))?;
        }
        self.update(record.id, |status| status.begun = true);
        let mut retry = Retry::default();
        loop {
            let Err(failure) = record.work.act(context).await else { return Ok(()) };
            let is_final = failure.do_not_retry;
            if is_final && self.ends_without_success(context, record).await {
                return Err(failure);
            }
            self.wait_for_attempt(record, &mut retry, (failure, is_final), abort).await;
            if abort.take() && self.ends_without_success(context, record).await {
                return Err(aborted(&record.work));
            }
        }
    }

    /// Whether a procedure could be ended without success.
    async fn ends_without_success(&self, context: &Context, record: &Record) -> bool {
        match record.work.end_without_success(context).await {
            Ok(has_ended) => has_ended,
            Err(error) => {
                warn!(id = record.id, %error, "a procedure cannot be rolled back; retrying");
                false
            }
        }
    }

    /// Waits until the next attempt, or until the procedure is to be aborted.
    async fn wait_for_attempt(
        &self,
        record: &Record,
        retry: &mut Retry,
        (failure, is_final): (JavaException, bool),
        abort: &AbortRequest,
    ) {
        let pause = retry.next_pause(is_final);
        if retry.is_to_be_logged(self.env.clock.monotonic()) {
            let (id, work, failures) = (record.id, record.work.class_name(), retry.failures());
            warn!(id, work, subject = %record.work.subject(), %failure, failures, ?pause, "procedure step failed; retrying");
        }
        let pause_ms = pause.as_millis() as u64;
        let next_attempt_ms = self.env.clock.now_ms() + pause_ms;
        let waiting = Waiting { reason: failure, failures: retry.failures(), next_attempt_ms, pause_ms };
        self.update(record.id, |status| status.waiting = Some(waiting));
        tokio::select! {
            () = self.env.clock.sleep(pause) => {}
            () = abort.requested() => {}
        }
    }

    /// Requests that procedure `id` ends without success, as HBase's `abort`: refused (`false`) if
    /// it is not known, has ended, has begun and may not be interrupted, or cannot be aborted once
    /// it has begun. An accepted request takes effect before the next attempt of a step.
    pub fn abort(&self, id: u64, may_interrupt: bool) -> bool {
        let state = self.lock();
        let Some(known) = state.known.get(&id) else { return false };
        let is_accepted = {
            let status = known.status.borrow();
            let can_be_aborted = !status.begun || may_interrupt && status.work.can_be_aborted();
            status.progress == Progress::Running && can_be_aborted
        };
        if is_accepted {
            info!(id, "procedure to be aborted");
            known.abort.set();
        }
        is_accepted
    }

    fn update(&self, id: u64, change: impl FnOnce(&mut Status)) {
        let updated_ms = self.env.clock.now_ms();
        if let Some(known) = self.lock().known.get(&id) {
            known.status.send_modify(|status| {
                change(status);
                status.updated_ms = updated_ms;
            });
        }
    }

    fn end(&self, id: u64, exception: Option<JavaException>) {
        let mut state = self.lock();
        let now = self.env.clock.monotonic();
        if let Some(known) = state.known.get_mut(&id) {
            known.ended_at = Some(now);
            let updated_ms = self.env.clock.now_ms();
            known.status.send_modify(|status| {
                status.progress = Progress::Finished(exception);
                status.waiting = None;
                status.updated_ms = updated_ms;
            });
        }
        state.forget_old(now);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

/// What a procedure waits for before it runs, and holds while it does.
enum Turn {
    Table { namespace: Arc<RwLock<()>>, table: Arc<AsyncMutex<()>> },
    Namespace(Arc<RwLock<()>>),
}

impl Turn {
    fn of(subject: &Subject<'_>, state: &mut State) -> Turn {
        let mut lock_of = |name: &str| state.namespaces.entry(name.to_string()).or_default().clone();
        match subject {
            Subject::Namespace(name) => Turn::Namespace(lock_of(name)),
            Subject::Table(name) => Turn::Table {
                namespace: lock_of(name.namespace()),
                table: state.tables.entry((*name).clone()).or_default().clone(),
            },
        }
    }

    // Lock order: namespace, then table.
    async fn take(self) -> Held {
        match self {
            Turn::Namespace(namespace) => Held::Namespace { _whole: namespace.write_owned().await },
            Turn::Table { namespace, table } => {
                let shared = namespace.read_owned().await;
                Held::Table { _shared: shared, _table: table.lock_owned().await }
            }
        }
    }
}

/// What a procedure holds while it runs.
enum Held {
    Table { _shared: OwnedRwLockReadGuard<()>, _table: OwnedMutexGuard<()> },
    Namespace { _whole: OwnedRwLockWriteGuard<()> },
}

/// The outcome of a procedure that was aborted.
fn aborted(work: &Work) -> JavaException {
    let class = work.class_name();
    let name = class.rsplit('.').next().unwrap_or(class);
    JavaException::new(class::PROCEDURE_ABORTED, format!("{name} on {} was aborted", work.subject()))
}

impl State {
    fn forget_old(&mut self, now: Duration) {
        let is_old =
            |known: &Known| known.ended_at.is_some_and(|ended| now.saturating_sub(ended) > REMEMBERED);
        for (_, known) in self.known.extract_if(|_, known| is_old(known)) {
            self.by_nonce.remove(&known.nonce);
        }
    }
}
