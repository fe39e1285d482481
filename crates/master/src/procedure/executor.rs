//! Runs procedures and retains their outcomes.
//!
//! Invariants:
//!
//! * When a client gets the id of a procedure, the procedure is in the journal, and it stays there
//!   until it ends.
//! * Procedures on the same table run one at a time, in the order of their submission. While a
//!   procedure on a namespace runs, no procedure runs on a table of this namespace.
//! * A failed step is retried with increasing pauses, until it succeeds or its failure is final.
//!   After a final failure, the procedure ends without success if that is possible (`rollback`).
//!   Otherwise it is retried at the longest pause. Its [`ProcedureStatus`] contains the reason and
//!   the time of the next attempt.
//! * Requests with equal nonce group and nonce start only one procedure: a client that repeats a
//!   request gets the same id. The outcomes of such procedures are in the journal, so this holds
//!   also when another master has become active.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use base::env::{Env, TaskClass};
use cell::schema::TableName;
use proto::exception::{JavaException, class};
use tokio::sync::{
    Mutex as AsyncMutex, OwnedMutexGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, watch,
};
use tracing::{error, info, warn};

use super::journal::{EndedProcedure, Journal, StoredProcedure};
use super::retry::{AbortRequest, Retry};
use super::{Record, Subject, Waiting, Work};
use crate::context::Context;

/// How long the check of a procedure is repeated while a server cannot be reached. A dead server is
/// detected, and its regions are open elsewhere, in much less time.
const REACHABLE_WITHIN: Duration = Duration::from_secs(60);
/// How long the status of an ended procedure is retained, as in HBase
/// (`hbase.master.procedure.cleaner.evict.ttl`, 15 minutes).
const ENDED_RETENTION: Duration = Duration::from_secs(15 * 60);

/// The progress of a procedure.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// It has not ended.
    Running,
    /// It has ended. The exception is set if it did not succeed.
    Finished(Option<JavaException>),
}

/// The status of a procedure.
#[derive(Clone, Debug)]
pub struct ProcedureStatus {
    /// What it does.
    pub work: Work,
    /// Its progress.
    pub progress: Progress,
    /// When it was submitted, in milliseconds since the Unix epoch.
    pub submitted_ms: u64,
    /// When this status last changed, in milliseconds since the Unix epoch.
    pub updated_ms: u64,
    /// Whether it has started. Before that, it waits for other procedures on the same table or
    /// namespace.
    pub begun: bool,
    /// Set while it waits for another attempt.
    pub waiting: Option<Waiting>,
}

/// Runs procedures.
pub struct Executor {
    env: Env,
    journal: Arc<Journal>,
    // Weak, because the owner of the context also owns the executor.
    context: Weak<Context>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next_id: u64,
    procedures: HashMap<u64, TrackedProcedure>,
    by_nonce: HashMap<(u64, u64), Submission>,
    tables: HashMap<TableName, Arc<AsyncMutex<()>>>,
    namespaces: HashMap<String, Arc<RwLock<()>>>,
}

/// The first request with a nonce.
#[derive(Clone)]
enum Submission {
    /// Its journal entry is being written. The sender is dropped when that has ended.
    Journaling(watch::Receiver<()>),
    /// Its procedure, which is in the journal.
    Journaled(u64),
}

struct TrackedProcedure {
    status: watch::Sender<ProcedureStatus>,
    // For an ended procedure: when its status is forgotten, by the monotonic clock.
    expires_at: Option<Duration>,
    nonce: (u64, u64),
    abort: Arc<AbortRequest>,
}

impl Executor {
    /// Creates an executor that uses a journal. [`Executor::resume`] resumes the procedures of an
    /// earlier run.
    pub fn new(env: Env, journal: Arc<Journal>, context: Weak<Context>) -> Arc<Executor> {
        Arc::new(Executor {
            env,
            journal,
            context,
            state: Mutex::new(State { next_id: 1, ..State::default() }),
        })
    }

    /// Loads the procedures that an earlier run left in the journal. [`Executor::resume`] resumes
    /// them.
    ///
    /// # Errors
    /// The journal's error if it cannot be read.
    pub async fn load(&self) -> Result<Vec<StoredProcedure>, engine::Error> {
        let stored = self.journal.load().await?;
        // New ids start at the current time in milliseconds, so that no id of an earlier run is
        // used again. A client may still query such an id.
        let unfinished = stored.unfinished.iter().map(|stored| stored.record.id);
        let last = unfinished.chain(stored.ended.iter().map(|ended| ended.record.id)).max().unwrap_or(0);
        let next_id = self.env.clock.now_ms().max(last + 1);
        {
            let mut state = self.lock();
            debug_assert!(next_id >= state.next_id, "ids of procedures only grow");
            state.next_id = next_id;
        }
        for ended in stored.ended {
            self.retain(ended).await?;
        }
        Ok(stored.unfinished)
    }

    /// Retains the outcome of a procedure of an earlier run, or removes it if it has expired.
    async fn retain(&self, ended: EndedProcedure) -> Result<(), engine::Error> {
        let EndedProcedure { record, exception, ended_ms } = ended;
        let age = Duration::from_millis(self.env.clock.now_ms().saturating_sub(ended_ms));
        let Some(remaining) = ENDED_RETENTION.checked_sub(age) else {
            return self.journal.remove(record.id).await;
        };
        let status = ProcedureStatus {
            work: record.work,
            progress: Progress::Finished(exception),
            submitted_ms: record.submitted_ms,
            updated_ms: ended_ms,
            begun: true,
            waiting: None,
        };
        let tracked = TrackedProcedure {
            status: watch::Sender::new(status),
            expires_at: Some(self.env.clock.monotonic() + remaining),
            nonce: record.nonce,
            abort: Arc::default(),
        };
        let mut state = self.lock();
        state.by_nonce.insert(record.nonce, Submission::Journaled(record.id));
        state.procedures.insert(record.id, tracked);
        Ok(())
    }

    /// Removes loaded procedures from the journal without resuming them.
    ///
    /// # Errors
    /// The journal's error.
    pub async fn forget(&self, stored: Vec<StoredProcedure>) -> Result<(), engine::Error> {
        for StoredProcedure { record, .. } in stored {
            info!(id = record.id, work = record.work.class_name(), "procedure is not needed any more");
            self.journal.remove(record.id).await?;
        }
        Ok(())
    }

    /// Resumes procedures that were loaded. Those that had begun to act get their locks first.
    pub fn resume(self: &Arc<Self>, mut stored: Vec<StoredProcedure>) {
        // They need not have the lowest ids: a procedure gets its id before its journal entry is
        // durable, and its lock afterwards. At most one procedure of a table is prepared.
        stored.sort_by_key(|stored| !stored.record.prepared);
        for StoredProcedure { record, flushed } in stored {
            info!(id = record.id, work = record.work.class_name(), subject = %record.work.subject(), "procedure resumed");
            self.begin(record, &flushed);
        }
    }

    /// Journals a procedure and starts it. Returns its id when the journal entry is durable. The
    /// procedure is then executed or refused, even if the process ends.
    ///
    /// # Errors
    /// The journal's error if it cannot be written. The procedure is not started then.
    pub async fn submit(self: &Arc<Self>, work: Work, nonce: (u64, u64)) -> Result<u64, engine::Error> {
        let _reservation = loop {
            if let Some(earlier) = self.find_by_nonce(nonce).await {
                return Ok(earlier);
            }
            // Another request may have reserved the nonce meanwhile.
            if let Some(reservation) = self.reserve(nonce) {
                break reservation;
            }
        };
        let (id, submitted_ms) = (self.next_id(), self.env.clock.now_ms());
        let record = Record { id, work, prepared: false, submitted_ms, nonce };
        self.journal.put(&record).await?;
        self.begin(record, &BTreeSet::new());
        Ok(id)
    }

    fn next_id(&self) -> u64 {
        let mut state = self.lock();
        let id = state.next_id;
        debug_assert!(!state.procedures.contains_key(&id), "no two procedures have the same id");
        state.next_id += 1;
        id
    }

    /// The id of the procedure that was submitted with `nonce`, if there is one. Waits until its
    /// journal entry is durable: before that, the client must not get the id.
    pub async fn find_by_nonce(&self, nonce: (u64, u64)) -> Option<u64> {
        loop {
            let submission = self.lock().by_nonce.get(&nonce).cloned();
            match submission? {
                Submission::Journaled(id) => return Some(id),
                // Nothing is sent: an error shows that the sender was dropped.
                Submission::Journaling(mut ended) => _ = ended.changed().await,
            }
        }
    }

    /// Reserves `nonce` for a procedure that is being journaled. `None` if it is already in use.
    fn reserve(&self, nonce: (u64, u64)) -> Option<NonceReservation<'_>> {
        let (ends, ended) = watch::channel(());
        if nonce != (0, 0) {
            match self.lock().by_nonce.entry(nonce) {
                Entry::Occupied(_) => return None,
                Entry::Vacant(vacant) => vacant.insert(Submission::Journaling(ended)),
            };
        }
        Some(NonceReservation { executor: self, nonce, _ends: ends })
    }

    /// The status of procedure `id`; `None` if it is unknown or its retention has expired.
    pub fn status(&self, id: u64) -> Option<ProcedureStatus> {
        let now = self.env.clock.monotonic();
        let state = self.lock();
        let tracked = state.procedures.get(&id).filter(|tracked| !tracked.is_expired(now));
        tracked.map(|tracked| tracked.status.borrow().clone())
    }

    /// All known procedures with their ids, oldest first.
    pub fn list(&self) -> Vec<(u64, ProcedureStatus)> {
        let state = self.lock();
        let mut all: Vec<_> =
            state.procedures.iter().map(|(id, tracked)| (*id, tracked.status.borrow().clone())).collect();
        all.sort_by_key(|(id, _)| *id);
        all
    }

    /// Whether a procedure is running that `is_wanted` selects.
    pub fn is_running(&self, is_wanted: impl Fn(&Work) -> bool) -> bool {
        let state = self.lock();
        state.running().any(|status| is_wanted(&status.work))
    }

    /// What `select` returns for the running procedures, without copying their work.
    pub fn select_running<T, C: FromIterator<T>>(&self, select: impl Fn(&Work) -> Option<T>) -> C {
        let state = self.lock();
        state.running().filter_map(|status| select(&status.work)).collect()
    }

    /// The tables with running procedures, also those that wait for others.
    pub fn busy_tables(&self) -> HashSet<TableName> {
        self.select_running(|work| match work.subject() {
            Subject::Table(table) => Some(table.clone()),
            Subject::Namespace(_) | Subject::Server(_) => None,
        })
    }

    /// Whether a procedure that `is_wanted` selects is running, or has ended since `since` on the
    /// monotonic clock.
    pub fn has_run_since(&self, since: Duration, is_wanted: impl Fn(&Work) -> bool) -> bool {
        if self.env.clock.monotonic().saturating_sub(since) >= ENDED_RETENTION {
            // A procedure that ended first may have been forgotten.
            return true;
        }
        let state = self.lock();
        state.procedures.values().any(|tracked| {
            let ended_before =
                tracked.expires_at.is_some_and(|expires_at| expires_at < since + ENDED_RETENTION);
            !ended_before && is_wanted(&tracked.status.borrow().work)
        })
    }

    /// Waits until procedure `id` has ended. Returns `None` if it is unknown.
    pub async fn wait(&self, id: u64) -> Option<ProcedureStatus> {
        let mut status = self.lock().procedures.get(&id)?.status.subscribe();
        // The sender is dropped when the retention of the procedure expires. The last status then
        // has the outcome.
        let _ = status.wait_for(|status| status.progress != Progress::Running).await;
        let last = status.borrow().clone();
        Some(last)
    }

    /// Waits until all currently known procedures on a table have ended.
    pub async fn wait_for_table(&self, table: &TableName) {
        self.wait_for(|work| work.subject() == Subject::Table(table)).await;
    }

    /// Waits until all currently known procedures that `is_wanted` selects have ended.
    pub async fn wait_for(&self, is_wanted: impl Fn(&Work) -> bool) {
        for (id, status) in self.list() {
            if is_wanted(&status.work) {
                self.wait(id).await;
            }
        }
    }

    /// Starts a procedure. If it recovers a server, `flushed` are the regions that no longer need
    /// the logs of that server.
    fn begin(self: &Arc<Self>, record: Record, flushed: &BTreeSet<String>) {
        if let (Work::ServerCrash { server, .. }, Some(context)) = (&record.work, self.context.upgrade()) {
            context.recoveries.begin(server, record.id);
            record.work.add_to_recoveries(&context, flushed);
        }
        let status = ProcedureStatus {
            work: record.work.clone(),
            progress: Progress::Running,
            submitted_ms: record.submitted_ms,
            updated_ms: record.submitted_ms,
            begun: false,
            waiting: None,
        };
        let abort = Arc::new(AbortRequest::default());
        let lock = {
            let mut state = self.lock();
            let tracked = TrackedProcedure {
                status: watch::Sender::new(status),
                expires_at: None,
                nonce: record.nonce,
                abort: abort.clone(),
            };
            state.procedures.insert(record.id, tracked);
            if record.nonce != (0, 0) {
                state.by_nonce.insert(record.nonce, Submission::Journaled(record.id));
            }
            ProcedureLock::for_subject(&record.work.subject(), &mut state)
        };
        let executor = self.clone();
        self.env.spawn(TaskClass::Service, async move {
            let guard = tokio::select! {
                biased;
                guard = lock.acquire() => Some(guard),
                // A prepared procedure was begun by an earlier run, so it is not aborted here.
                () = abort.requested(), if !record.prepared => None,
            };
            executor.run(record, &abort).await;
            drop(guard);
        });
    }

    async fn run(&self, mut record: Record, abort: &AbortRequest) {
        let Some(context) = self.context.upgrade() else { return };
        let begun = self.env.clock.monotonic();
        context.instruments.record_begun(&record.work);
        let outcome = self.run_steps(&context, &mut record, abort).await;
        debug_assert!(outcome.is_err() || record.prepared, "a procedure succeeds only after its check");
        context.namespace_quotas.release(record.id);
        let took = self.env.clock.monotonic().saturating_sub(begun);
        context.instruments.record_ended(&record.work, outcome.is_ok(), took);
        if let Err(exception) = &outcome {
            info!(id = record.id, work = record.work.class_name(), %exception, "procedure ended without success");
        }
        let (id, exception) = (record.id, outcome.err());
        if let Err(error) = self.journal_end(record, exception.clone()).await {
            // After a restart, the procedure runs again and finds its work done.
            error!(id, %error, "cannot journal the end of a procedure");
        }
        for expired in self.end(id, exception) {
            if let Err(error) = self.journal.remove(expired).await {
                warn!(id = expired, %error, "cannot remove expired outcome from journal");
            }
        }
    }

    /// Journals that a procedure has ended. The journal keeps the outcome only if the client sent a
    /// nonce. Without one, the client cannot ask another master for the outcome.
    async fn journal_end(
        &self,
        record: Record,
        exception: Option<JavaException>,
    ) -> Result<(), engine::Error> {
        match record.nonce {
            (0, 0) => self.journal.remove(record.id).await,
            _ => {
                let ended_ms = self.env.clock.now_ms();
                self.journal.end(&EndedProcedure { record, exception, ended_ms }).await
            }
        }
    }

    async fn run_steps(
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
            self.check_and_prepare(context, record, abort).await?;
            context.namespace_quotas.reserve(context, record.id, &record.work)?;
            record.prepared = true;
            self.journal.put(record).await.map_err(|error| JavaException::io(error.to_string()))?;
            record.work.add_to_recoveries(context, &BTreeSet::new());
        }
        self.update(record.id, |status| status.begun = true);
        let mut retry = Retry::default();
        loop {
            debug_assert!(
                self.is_locked(&record.work.subject()),
                "a procedure holds its locks while it takes steps"
            );
            let Err(failure) = record.work.act(context).await else { return Ok(()) };
            let is_final = failure.do_not_retry;
            if is_final && self.try_to_end(context, record).await {
                return Err(failure);
            }
            self.wait_for_attempt(record, &mut retry, (failure, is_final), abort).await;
            if abort.take() && self.try_to_end(context, record).await {
                return Err(aborted(&record.work));
            }
        }
    }

    /// Checks and prepares a procedure. If a server cannot be reached, for example that of
    /// `hbase:meta`, the attempt is repeated for a limited time. Nothing has changed before it
    /// succeeds, so the procedure can fail then.
    async fn check_and_prepare(
        &self,
        context: &Context,
        record: &mut Record,
        abort: &AbortRequest,
    ) -> Result<(), JavaException> {
        let mut retry = Retry::default();
        let deadline = self.env.clock.monotonic() + REACHABLE_WITHIN;
        loop {
            let attempt = match record.work.check(context).await {
                Ok(()) => record.work.prepare(context).await,
                refused => refused,
            };
            match attempt {
                Err(failure) if is_unreachable(&failure) && self.env.clock.monotonic() < deadline => {
                    self.wait_for_attempt(record, &mut retry, (failure, false), abort).await;
                }
                ended => return ended,
            }
            if abort.take() {
                return Err(aborted(&record.work));
            }
        }
    }

    /// Tries to end a procedure without success. Returns whether that was possible.
    async fn try_to_end(&self, context: &Context, record: &Record) -> bool {
        match record.work.end_without_success(context).await {
            Ok(has_ended) => has_ended,
            Err(error) => {
                warn!(id = record.id, %error, "cannot roll back procedure; retrying");
                false
            }
        }
    }

    /// Waits until the next attempt is due, or until an abort is requested.
    async fn wait_for_attempt(
        &self,
        record: &Record,
        retry: &mut Retry,
        (failure, is_final): (JavaException, bool),
        abort: &AbortRequest,
    ) {
        let pause = retry.next_pause(is_final);
        if retry.should_log(self.env.clock.monotonic()) {
            let (id, work, failures) = (record.id, record.work.class_name(), retry.failures());
            warn!(id, work, subject = %record.work.subject(), %failure, failures, ?pause, "procedure step failed; retrying");
        }
        let pause_ms = pause.as_millis() as u64;
        let next_attempt_ms = self.env.clock.now_ms() + pause_ms;
        let waiting = Waiting { reason: failure, failures: retry.failures(), next_attempt_ms, pause_ms };
        self.update(record.id, |status| status.waiting = Some(waiting));
        tokio::select! {
            biased;
            () = self.env.clock.sleep(pause) => {}
            () = abort.requested() => {}
        }
    }

    /// Requests that procedure `id` end without success, as HBase's `abort` does. Returns whether
    /// the request is accepted. A procedure that has begun accepts it only if `may_interrupt` is
    /// set and its work can be aborted. The request takes effect before the next attempt of a step.
    pub fn abort(&self, id: u64, may_interrupt: bool) -> bool {
        let state = self.lock();
        let Some(tracked) = state.procedures.get(&id) else { return false };
        let is_accepted = {
            let status = tracked.status.borrow();
            let can_be_aborted = !status.begun || may_interrupt && status.work.can_be_aborted();
            status.progress == Progress::Running && can_be_aborted
        };
        if is_accepted {
            info!(id, "procedure abort requested");
            tracked.abort.set();
        }
        is_accepted
    }

    fn update(&self, id: u64, change: impl FnOnce(&mut ProcedureStatus)) {
        let updated_ms = self.env.clock.now_ms();
        if let Some(tracked) = self.lock().procedures.get(&id) {
            tracked.status.send_modify(|status| {
                debug_assert!(status.progress == Progress::Running, "the status of an ended procedure stays");
                change(status);
                status.updated_ms = updated_ms;
            });
        }
    }

    /// Publishes the outcome of a procedure. Returns the ids of those whose outcomes have expired
    /// and must be removed from the journal.
    fn end(&self, id: u64, exception: Option<JavaException>) -> Vec<u64> {
        let mut state = self.lock();
        let now = self.env.clock.monotonic();
        if let Some(tracked) = state.procedures.get_mut(&id) {
            tracked.expires_at = Some(now + ENDED_RETENTION);
            let updated_ms = self.env.clock.now_ms();
            tracked.status.send_modify(|status| {
                debug_assert!(status.progress == Progress::Running, "a procedure ends once");
                status.progress = Progress::Finished(exception);
                status.waiting = None;
                status.updated_ms = updated_ms;
            });
        }
        state.remove_expired(now)
    }

    /// Whether the locks of `subject` are held.
    fn is_locked(&self, subject: &Subject<'_>) -> bool {
        let state = self.lock();
        match subject {
            Subject::Namespace(name) => {
                state.namespaces.get(*name).is_some_and(|lock| lock.try_read().is_err())
            }
            Subject::Table(name) => {
                let shared = state.namespaces.get(name.namespace());
                shared.is_some_and(|lock| lock.try_write().is_err())
                    && state.tables.get(*name).is_some_and(|lock| lock.try_lock().is_err())
            }
            Subject::Server(_) => true,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

/// The reservation of a nonce, until it is dropped. If the procedure has not begun by then, the
/// nonce is free again.
struct NonceReservation<'a> {
    executor: &'a Executor,
    nonce: (u64, u64),
    // Dropped after the reservation has ended, which wakes the repeated requests.
    _ends: watch::Sender<()>,
}

impl Drop for NonceReservation<'_> {
    fn drop(&mut self) {
        let mut state = self.executor.lock();
        if let Some(Submission::Journaling(_)) = state.by_nonce.get(&self.nonce) {
            state.by_nonce.remove(&self.nonce);
        }
    }
}

/// The locks that a procedure acquires before it runs.
enum ProcedureLock {
    Table {
        namespace: Arc<RwLock<()>>,
        table: Arc<AsyncMutex<()>>,
    },
    Namespace(Arc<RwLock<()>>),
    /// Nothing: the recovery of a server must not wait for procedures that wait for its regions.
    Nothing,
}

impl ProcedureLock {
    fn for_subject(subject: &Subject<'_>, state: &mut State) -> ProcedureLock {
        let mut lock_of = |name: &str| state.namespaces.entry(name.to_string()).or_default().clone();
        match subject {
            Subject::Namespace(name) => ProcedureLock::Namespace(lock_of(name)),
            Subject::Table(name) => ProcedureLock::Table {
                namespace: lock_of(name.namespace()),
                table: state.tables.entry((*name).clone()).or_default().clone(),
            },
            Subject::Server(_) => ProcedureLock::Nothing,
        }
    }

    // Lock order: namespace, then table.
    async fn acquire(self) -> LockGuard {
        match self {
            ProcedureLock::Namespace(namespace) => {
                LockGuard::Namespace { _whole: namespace.write_owned().await }
            }
            ProcedureLock::Table { namespace, table } => {
                let shared = namespace.read_owned().await;
                LockGuard::Table { _shared: shared, _table: table.lock_owned().await }
            }
            ProcedureLock::Nothing => LockGuard::Nothing,
        }
    }
}

/// The locks that a procedure holds while it runs.
enum LockGuard {
    Table { _shared: OwnedRwLockReadGuard<()>, _table: OwnedMutexGuard<()> },
    Namespace { _whole: OwnedRwLockWriteGuard<()> },
    Nothing,
}

/// Whether the failure says nothing about the procedure: a server is down, or a region is moving.
fn is_unreachable(failure: &JavaException) -> bool {
    [
        class::CONNECT_EXCEPTION,
        class::NOT_SERVING_REGION,
        class::REGION_MOVED,
        class::REGION_OPENING,
        class::REGION_SERVER_STOPPED,
        class::SERVER_NOT_RUNNING_YET,
    ]
    .iter()
    .any(|class| failure.is(*class))
}

/// The exception of an aborted procedure.
fn aborted(work: &Work) -> JavaException {
    let class = work.class_name();
    let name = class.rsplit('.').next().unwrap_or(class);
    JavaException::new(class::PROCEDURE_ABORTED, format!("{name} on {} was aborted", work.subject()))
}

impl TrackedProcedure {
    fn is_expired(&self, now: Duration) -> bool {
        self.expires_at.is_some_and(|expires_at| now > expires_at)
    }
}

impl State {
    /// The statuses of the running procedures.
    fn running(&self) -> impl Iterator<Item = watch::Ref<'_, ProcedureStatus>> {
        let statuses = self.procedures.values().map(|tracked| tracked.status.borrow());
        statuses.filter(|status| status.progress == Progress::Running)
    }

    /// Forgets expired outcomes. Returns the ids of those that are in the journal.
    fn remove_expired(&mut self, now: Duration) -> Vec<u64> {
        let mut journaled = Vec::new();
        for (id, tracked) in self.procedures.extract_if(|_, tracked| tracked.is_expired(now)) {
            if tracked.nonce != (0, 0) {
                self.by_nonce.remove(&tracked.nonce);
                journaled.push(id);
            }
        }
        journaled
    }
}
