//! The task that writes a log. It takes the edits that were queued during the last sync, writes
//! them as a group, syncs, and reports them as committed. It delays a group if more edits are
//! expected soon ([`group_delay`](crate::group_delay)).
//!
//! * Only one group is written at a time, and its edits stay in memory until it is committed. If a
//!   write or sync fails, the whole group is written to a new file. The failed file is never
//!   written again.
//! * A new file's header and name are durable before any edit in the file is reported as committed.
//! * If the writes to a few new files fail too, the log stops: the group and all later edits fail.
//!   It stops at once if another process has taken over the log.
//! * The next file of a roll that is requested, or is not necessary yet, is created in the
//!   background ([`next_file`](crate::next_file)). Its header is written when the old file is
//!   replaced, because it states where that one ends.
//! * A file that lacks replicas is replaced after a while, because replicas are created only for a
//!   new file.
//! * A full disk is not a failure. The edits of the group are already in memstores, so the group
//!   and all later edits wait for space. They fail only if the log is closed meanwhile.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base::env::Env;
use bytes::Bytes;
use fs::shared::is_taken_over;
use fs::{AccessPattern, FilePath, FileSystem, FileWriter, SyncLevel};
use tokio::sync::oneshot;
use tracing::{error, info, warn};

use crate::entry::CELLS_LEN_MAX;
use crate::group_delay::GroupDelay;
use crate::header::Previous;
use crate::housekeeper::{self, Job};
use crate::key::KEY_LEN_MAX;
use crate::mark::Salt;
use crate::name::LogName;
use crate::next_file::NextFile;
use crate::options::LogOptions;
use crate::retention::locked;
use crate::segment::{Segment, fits_entry};
use crate::shared::{Command, DrainedCommands, Shared};
use crate::{Edit, Error, Result, marker};

/// Idle time after which a durability mark for the last group is written ([`crate::mark`]).
const IDLE: Duration = Duration::from_millis(20);
/// Maximum of [`LogOptions::roll_bytes`]. A file that has almost this length may get one more
/// entry, of at most 1 GiB. Its length must stay below 2 GiB, the length that an end mark states
/// ([`crate::mark`]).
const ROLL_BYTES_MAX: u64 = 1000 << 20;
const _: () =
    assert!(ROLL_BYTES_MAX + CELLS_LEN_MAX as u64 + KEY_LEN_MAX as u64 <= i32::MAX as u64 - (1 << 20));
/// First pause before a write to a full disk is retried. Each further pause is twice as long, up to
/// [`SPACE_PAUSE_MAX`].
const SPACE_PAUSE: Duration = Duration::from_millis(20);
const SPACE_PAUSE_MAX: Duration = Duration::from_millis(500);
/// New files that a group is written to after a failure. Several DataNodes may fail at the same
/// time.
const NEW_FILES_MAX: usize = 3;
/// Age at which a file that lacks replicas is replaced. It doubles, up to [`REPLICAS_AGE_MAX`], if
/// the next file lacks replicas too.
const REPLICAS_AGE: Duration = Duration::from_secs(10);
const REPLICAS_AGE_MAX: Duration = Duration::from_secs(600);
/// Pause after a failed roll of a file that may stay in use.
const ROLL_RETRY: Duration = Duration::from_secs(10);
/// Maximum size of a group buffer that is reused. Larger ones are freed.
const BUFFER_BYTES_MAX: usize = 16 << 20;

pub(crate) struct Committer {
    env: Env,
    fs: Arc<dyn FileSystem>,
    options: LogOptions,
    shared: Arc<Shared>,
    on_fatal: Arc<dyn Fn(&Error) + Send + Sync>,
    state: State,
    group_delay: GroupDelay,
    // The file that is being created in the background, and why.
    next: Option<(NextFile, RollReason)>,
    // The callers that wait for the next file.
    roll_requests: Vec<oneshot::Sender<Result<()>>>,
    // Reused for each group.
    buffer: Vec<u8>,
    // Whether the last group still needs a durability mark after it.
    mark_due: bool,
    // Number in the name of the last file that was created, successfully or not. Numbers are never
    // reused, because a file whose creation failed is removed later, by name.
    file_number: u64,
    // Rolls of a file that may stay in use begin no earlier than this, on the monotonic clock.
    roll_after: Duration,
    // Age at which the file is replaced if it lacks replicas.
    replicas_age: Duration,
    // Whether the log was dropped, or is closed by a command that was taken from the queue.
    is_ending: bool,
}

/// Why a file that has not failed is replaced.
#[derive(Clone, Copy)]
enum RollReason {
    Size,
    Age,
    /// It lacks replicas.
    Replicas,
    /// A caller requested it.
    Request,
}

enum State {
    Open(Box<Segment>),
    // Closed, or stopped after an error: later edits fail with this error.
    Stopped(Error),
}

impl Committer {
    pub(crate) async fn start(
        env: Env,
        fs: Arc<dyn FileSystem>,
        options: LogOptions,
        shared: Arc<Shared>,
        on_fatal: Arc<dyn Fn(&Error) + Send + Sync>,
    ) -> Result<Committer> {
        let mut file_number = 0;
        let segment = create(&env, &*fs, &options, &mut file_number, Previous::NONE).await;
        let segment = segment.map_err(|(_, error)| error)?;
        info!(path = %segment.path(), "opened a new log file");
        locked(&shared.retention).set_open(Some(segment.path().clone()));
        Ok(Committer {
            env,
            fs,
            options,
            shared,
            on_fatal,
            state: State::Open(Box::new(segment)),
            group_delay: GroupDelay::new(),
            next: None,
            roll_requests: Vec::new(),
            buffer: Vec::new(),
            mark_due: false,
            file_number,
            roll_after: Duration::ZERO,
            replicas_age: REPLICAS_AGE,
            is_ending: false,
        })
    }

    /// Runs until the log is dropped.
    pub(crate) async fn run(mut self) {
        let mut edits = Vec::new();
        loop {
            self.delay_group().await;
            let DrainedCommands { commands, dropped } = self.shared.drain(&mut edits);
            let is_idle = edits.is_empty() && commands.is_empty();
            if is_idle && dropped {
                return;
            }
            if is_idle {
                let began = self.env.clock.monotonic();
                self.wait_for_work().await;
                self.group_delay.record_idle(self.env.clock.monotonic().saturating_sub(began));
                continue;
            }
            self.is_ending = dropped || commands.iter().any(|command| matches!(command, Command::Close(_)));
            if !edits.is_empty() {
                let began = self.env.clock.monotonic();
                self.commit_all(&edits).await;
                let took = self.env.clock.monotonic().saturating_sub(began);
                self.group_delay.record_commit(edits.len(), took, self.shared.queued_edit_count());
                edits.clear();
            }
            // Lets the notified writers run now, so that their next edits join the next group.
            tokio::task::yield_now().await;
            for command in commands {
                self.execute(command);
            }
            self.roll_if_due().await;
        }
    }

    /// Waits for more edits if [`GroupDelay`] expects them.
    async fn delay_group(&mut self) {
        let Some(wait) = self.group_delay.delay_limit(self.shared.queued_edit_count()) else { return };
        let began = self.env.clock.monotonic();
        tokio::select! {
            biased;
            () = self.shared.wait_queued_at_least(wait.edits) => {}
            () = self.env.clock.sleep(wait.duration) => {}
        }
        self.shared.wake_at_first_edit();
        let took = self.env.clock.monotonic().saturating_sub(began);
        self.group_delay.record_delay(self.shared.queued_edit_count() >= wait.edits, took);
    }

    /// Waits until an edit or a command is queued. An idle log gets a durability mark, and rolls at
    /// its maximum age, or when the next file was created.
    async fn wait_for_work(&mut self) {
        let sleep = match (&self.state, self.mark_due) {
            (State::Stopped(_), _) => None,
            (State::Open(_), true) => Some(IDLE),
            (State::Open(segment), false) => self.time_to_roll(segment),
        };
        let slept = async {
            match sleep {
                Some(sleep) => self.env.clock.sleep(sleep).await,
                None => std::future::pending().await,
            }
        };
        let created = async {
            match &mut self.next {
                Some((next, _)) => next.wait().await,
                None => std::future::pending().await,
            }
        };
        let timed_out = tokio::select! {
            biased;
            () = self.shared.wait_queued() => false,
            () = created => return self.roll_if_due().await,
            () = slept => true,
        };
        if timed_out && self.mark_due {
            self.write_durability_mark().await;
        } else if timed_out {
            self.roll_if_due().await;
        }
    }

    // Time until a roll of the file begins although no group is written; `None` if none does.
    fn time_to_roll(&self, segment: &Segment) -> Option<Duration> {
        if self.next.is_some() {
            return None;
        }
        let left = match segment.len() >= self.size_limit() {
            // An earlier roll has failed.
            true => Duration::ZERO,
            false => self.age_limit(segment)?.0.saturating_sub(self.age(segment)),
        };
        let pause = self.roll_after.saturating_sub(self.env.clock.monotonic());
        Some(left.max(pause).max(Duration::from_secs(1)))
    }

    fn age(&self, segment: &Segment) -> Duration {
        self.env.clock.monotonic().saturating_sub(segment.opened)
    }

    /// The age at which a file with entries is replaced, and the reason.
    fn age_limit(&self, segment: &Segment) -> Option<(Duration, RollReason)> {
        if segment.is_empty() {
            return None;
        }
        let period = self.options.roll_period.map(|period| (period, RollReason::Age));
        let lacks_replicas = segment.missing_replicas() > 0;
        let replicas = lacks_replicas.then_some((self.replicas_age, RollReason::Replicas));
        [period, replicas].into_iter().flatten().min_by_key(|(age, _)| *age)
    }

    /// Why the file is to be replaced now.
    fn roll_reason(&self, segment: &Segment) -> Option<RollReason> {
        if self.env.clock.monotonic() < self.roll_after {
            return None;
        }
        if segment.len() >= self.size_limit() {
            return Some(RollReason::Size);
        }
        let (limit, reason) = self.age_limit(segment)?;
        (self.age(segment) >= limit).then_some(reason)
    }

    fn size_limit(&self) -> u64 {
        self.options.roll_bytes.min(ROLL_BYTES_MAX)
    }

    async fn write_durability_mark(&mut self) {
        self.mark_due = false;
        let State::Open(segment) = &mut self.state else { return };
        let marked = segment.write_durability_mark().await;
        // On a full disk the mark is omitted: the next group contains the same mark.
        if let Err(error) = marked
            && !is_full(&error)
        {
            warn!(path = %segment.path(), %error, "cannot write to a log file; opening a new one");
            let outcome = self.abandon_file().await;
            if let Err(cause) = outcome {
                self.stop(cause);
            }
        }
    }

    async fn commit_all(&mut self, edits: &[Edit]) {
        let mut rest = edits;
        while !rest.is_empty() {
            let (group, remaining) = rest.split_at(self.group_len(rest));
            let outcome = self.commit(group).await;
            self.notify(group, outcome);
            rest = remaining;
            if !rest.is_empty() {
                self.roll_if_due().await;
            }
        }
    }

    fn group_len(&self, edits: &[Edit]) -> usize {
        let mut bytes = 0;
        let fitting = edits.iter().take_while(|edit| {
            bytes += edit.queued_bytes();
            bytes <= self.options.group_bytes
        });
        fitting.count().max(1)
    }

    async fn commit(&mut self, group: &[Edit]) -> Result<()> {
        if let State::Stopped(error) = &self.state {
            return Err(error.clone());
        }
        if !group.iter().any(|edit| edit.logged && fits_entry(edit)) {
            return Ok(());
        }
        let Err(mut failure) = self.write_when_space(group).await else { return Ok(()) };
        let mut failures = 0;
        // On HDFS, each new file may wait a minute for DataNodes. A log that is being closed waits
        // for one only.
        while failures < self.new_files_max() && !is_taken_over(&failure) {
            // Other disks may be full too. When the last one is, the error is another one.
            failures += usize::from(!matches!(failure, fs::Error::VolumeFull { .. }));
            warn!(error = %failure, edits = group.len(), "cannot write to a log file; retrying in a new one");
            self.record_failed_group(group);
            let written = match self.abandon_file().await {
                Ok(()) => self.write_when_space(group).await,
                Err(error) => Err(error),
            };
            match written {
                Ok(()) => return Ok(()),
                Err(error) => failure = error,
            }
        }
        Err(self.stop(failure))
    }

    /// Maximum number of new files for one group.
    fn new_files_max(&self) -> usize {
        if self.is_ending() { 1 } else { NEW_FILES_MAX }
    }

    fn is_ending(&self) -> bool {
        self.is_ending || self.shared.is_ending()
    }

    /// Writes a group; while the disk is full, waits for space.
    async fn write_when_space(&mut self, group: &[Edit]) -> fs::Result<()> {
        let mut pause = SPACE_PAUSE;
        loop {
            let written = self.write(group).await;
            match written {
                Err(error) if is_full(&error) => self.wait_for_space(error, &mut pause).await?,
                other => {
                    self.space_freed();
                    return other;
                }
            }
        }
    }

    /// Replaces the file; while the disk is full, waits for space.
    async fn replace_when_space(&mut self) -> fs::Result<Box<Segment>> {
        let mut pause = SPACE_PAUSE;
        loop {
            let replaced = self.replace_file().await;
            match replaced {
                Err(error) if is_full(&error) => self.wait_for_space(error, &mut pause).await?,
                other => {
                    self.space_freed();
                    return other;
                }
            }
        }
    }

    /// Pauses before the next attempt on a full disk.
    ///
    /// # Errors
    /// Returns `full` if the log is being closed: the waiting edits, which were never acknowledged,
    /// then fail.
    async fn wait_for_space(&mut self, full: fs::Error, pause: &mut Duration) -> fs::Result<()> {
        if !self.shared.counts.waits_for_space.swap(true, Ordering::Relaxed) {
            warn!(
                error = %full,
                "disk full: accepted writes are not acknowledged until disk space is freed"
            );
        }
        if self.is_ending() {
            return Err(full);
        }
        self.env.clock.sleep(*pause).await;
        *pause = (*pause * 2).min(SPACE_PAUSE_MAX);
        Ok(())
    }

    fn space_freed(&self) {
        if self.shared.counts.waits_for_space.load(Ordering::Relaxed) {
            self.shared.counts.waits_for_space.store(false, Ordering::Relaxed);
            info!("the log has disk space again");
        }
    }

    async fn write(&mut self, group: &[Edit]) -> fs::Result<()> {
        let State::Open(segment) = &mut self.state else { unreachable!("the log is open here") };
        let clock = &self.env.clock;
        let begun = clock.monotonic();
        let content_len = segment.encode_group(&mut self.buffer, group);
        let encoded = clock.monotonic();
        let bytes = Bytes::from(mem::take(&mut self.buffer));
        let durability = match group.iter().any(|edit| edit.logged && edit.forced) {
            true => SyncLevel::Disk,
            false => self.options.durability,
        };
        let written =
            segment.commit(bytes.clone(), content_len, durability, self.options.reserve_bytes).await;
        // The buffer can be reused if the file writer has dropped its reference.
        if bytes.is_unique() && bytes.len() <= BUFFER_BYTES_MAX {
            self.buffer = Vec::from(bytes);
        }
        written?;
        self.mark_due = true;
        let took = (encoded.saturating_sub(begun), clock.monotonic().saturating_sub(encoded));
        self.record_group(group, content_len, took);
        Ok(())
    }

    /// Records a committed group. `took` is the time of encoding, and that of writing and syncing.
    fn record_group(&self, group: &[Edit], bytes: usize, took: (Duration, Duration)) {
        let logged = group.iter().filter(|edit| edit.logged && fits_entry(edit));
        let mut retention = locked(&self.shared.retention);
        for edit in logged.clone() {
            if !marker::is_marker(&edit.cells) {
                retention.record_written(&edit.region, edit.seq_id);
            } else if marker::is_close(&edit.cells) {
                retention.record_close(&edit.region);
            }
        }
        if let State::Open(segment) = &self.state {
            retention.set_open_bytes(segment.len());
        }
        drop(retention);
        self.shared.instruments.record_group(logged, bytes, took);
    }

    /// Records a group whose write failed. A later replay may find its edits in the open file, so
    /// closes that make them outdated are still needed.
    fn record_failed_group(&self, group: &[Edit]) {
        let mut retention = locked(&self.shared.retention);
        for edit in group.iter().filter(|edit| edit.logged && fits_entry(edit)) {
            if !marker::is_marker(&edit.cells) {
                retention.record_failed(&edit.region);
            }
        }
    }

    fn notify(&self, group: &[Edit], outcome: Result<()>) {
        let is_too_large = |edit: &Edit| edit.logged && !fits_entry(edit);
        let is_notified_together = |edit: &Edit, next: &Edit| {
            Arc::ptr_eq(&edit.listener, &next.listener) && !is_too_large(edit) && !is_too_large(next)
        };
        for edits in group.chunk_by(is_notified_together) {
            let queued_bytes = edits.iter().map(Edit::queued_bytes).sum();
            match &outcome {
                Ok(()) if is_too_large(&edits[0]) => {
                    let error = Error::TooLarge { bytes: edits[0].cells.len() as u64 };
                    edits[0].listener.failed(edits[0].seq_id, &error);
                }
                Ok(()) => edits[0].listener.committed_together(edits),
                Err(error) => edits.iter().for_each(|edit| edit.listener.failed(edit.seq_id, error)),
            }
            let before = self.shared.counts.queued_bytes.fetch_sub(queued_bytes, Ordering::Relaxed);
            debug_assert!(before >= queued_bytes, "only queued edits leave the queue");
        }
    }

    fn execute(&mut self, command: Command) {
        match command {
            Command::Roll(done) => self.request_roll(done),
            Command::Close(done) => {
                self.close();
                let _ = done.send(());
            }
        }
    }

    /// Begins a roll, unless one has begun. Its outcome is sent to `done`.
    fn request_roll(&mut self, done: oneshot::Sender<Result<()>>) {
        self.roll_requests.push(done);
        if let State::Stopped(error) = &self.state {
            let error = error.clone();
            self.answer_roll_requests(Err(error));
        } else if self.next.is_none() {
            self.begin_roll(RollReason::Request);
        }
    }

    fn answer_roll_requests(&mut self, outcome: Result<()>) {
        for done in self.roll_requests.drain(..) {
            // The caller may have stopped waiting.
            let _ = done.send(outcome.clone());
        }
    }

    fn close(&mut self) {
        self.next = None;
        self.answer_roll_requests(Err(Error::Closed));
        if let State::Open(segment) = mem::replace(&mut self.state, State::Stopped(Error::Closed)) {
            info!(path = %segment.path(), "closing the log");
            let mut retention = locked(&self.shared.retention);
            retention.record_roll(segment.path().clone());
            retention.set_open(None);
            drop(retention);
            self.send_job(Job::Finish(segment));
        }
    }

    /// Begins a roll that is due, or ends one whose new file was created. Waits for the new file
    /// only if the old one must not grow any more.
    async fn roll_if_due(&mut self) {
        let State::Open(segment) = &self.state else { return };
        if segment.len() > ROLL_BYTES_MAX {
            self.count_roll(segment, RollReason::Size);
            return self.roll_oversized().await;
        }
        if let Some((mut next, reason)) = self.next.take() {
            match next.take() {
                Some(created) => self.end_roll(next, created, reason).await,
                None => self.next = Some((next, reason)),
            }
            return;
        }
        let State::Open(segment) = &self.state else { return };
        let Some(reason) = self.roll_reason(segment) else { return };
        self.count_roll(segment, reason);
        self.begin_roll(reason);
    }

    fn begin_roll(&mut self, reason: RollReason) {
        let (path, number) = next_name(&self.env, &self.options, &mut self.file_number);
        self.next = Some((NextFile::begin(&self.env, &self.fs, &self.shared, path, number), reason));
    }

    fn count_roll(&self, segment: &Segment, reason: RollReason) {
        let instruments = &self.shared.instruments.all;
        match reason {
            RollReason::Size => {
                instruments.roll_requests.increment();
                instruments.size_rolls.increment();
            }
            RollReason::Replicas => {
                info!(path = %segment.path(), missing = segment.missing_replicas(), "a log file lacks replicas");
                instruments.roll_requests.increment();
                instruments.low_replica_rolls.increment();
            }
            RollReason::Age | RollReason::Request => (),
        }
    }

    /// Replaces the file with one that was created in the background.
    async fn end_roll(
        &mut self,
        next: NextFile,
        created: fs::Result<Box<dyn FileWriter>>,
        reason: RollReason,
    ) {
        let rolled = match created {
            Ok(writer) => self.begin_segment(writer, next.number).await,
            Err(error) => Err(error),
        };
        let rolled = match rolled {
            Ok(new) => {
                self.finish_old(new);
                Ok(())
            }
            Err(error) => {
                self.shared.discard_new_file(next.path.clone(), Some(&error));
                // Other disks may have space.
                if matches!(error, fs::Error::VolumeFull { .. }) { self.roll().await } else { Err(error) }
            }
        };
        if matches!(reason, RollReason::Replicas) {
            self.delay_next_replacement();
        }
        if let Err(error) = rolled {
            self.roll_after = self.env.clock.monotonic() + ROLL_RETRY;
            warn!(%error, "cannot create a new log file; the old one stays in use");
            self.answer_roll_requests(Err(error.into()));
        }
    }

    async fn begin_segment(&mut self, writer: Box<dyn FileWriter>, number: u64) -> fs::Result<Segment> {
        let State::Open(old) = &self.state else { unreachable!("the log is open here") };
        let previous = old.as_previous();
        begin(&self.env, &*self.fs, writer, number, previous).await
    }

    /// After a replacement because of missing replicas: if the file now in use lacks some too, it
    /// is replaced later than that one was. Rolls for other reasons do not show that HDFS still
    /// lacks DataNodes.
    fn delay_next_replacement(&mut self) {
        let State::Open(segment) = &self.state else { return };
        if segment.missing_replicas() > 0 {
            self.replicas_age = (self.replicas_age * 2).min(REPLICAS_AGE_MAX);
        }
    }

    /// Replaces a file that must not grow any more. Waits while the disk is full. Any other error
    /// stops the log.
    async fn roll_oversized(&mut self) {
        let mut pause = SPACE_PAUSE;
        let mut failed = self.roll().await.err();
        while let Some(error) = failed.take() {
            let waited = match is_full(&error) {
                true => self.wait_for_space(error, &mut pause).await,
                false => Err(error),
            };
            if let Err(error) = waited {
                self.stop(error);
                return;
            }
            failed = self.roll().await.err();
        }
        self.space_freed();
    }

    /// Replaces the file with a new one. The housekeeper adds the trailer to the old file.
    async fn roll(&mut self) -> fs::Result<()> {
        let new = self.create_file().await?;
        self.finish_old(new);
        Ok(())
    }

    /// Replaces the file with `new`. The housekeeper ends the old one.
    fn finish_old(&mut self, new: Segment) {
        let old = self.install(new);
        info!(path = %old.path(), len = old.len(), "replaced a log file");
        self.send_job(Job::Finish(old));
    }

    /// Replaces the file after an error. The old file gets no trailer.
    async fn abandon_file(&mut self) -> fs::Result<()> {
        self.shared.counts.failures.fetch_add(1, Ordering::Relaxed);
        let instruments = &self.shared.instruments.all;
        instruments.roll_requests.increment();
        instruments.error_rolls.increment();
        let old = self.replace_when_space().await?;
        self.send_job(Job::Abandon(old.path().clone()));
        Ok(())
    }

    async fn replace_file(&mut self) -> fs::Result<Box<Segment>> {
        let new = self.create_file().await?;
        Ok(self.install(new))
    }

    /// Creates the next file now.
    async fn create_file(&mut self) -> fs::Result<Segment> {
        self.next = None;
        let State::Open(old) = &self.state else { unreachable!("the log is open here") };
        let previous = old.as_previous();
        let created = create(&self.env, &*self.fs, &self.options, &mut self.file_number, previous).await;
        created.map_err(|(path, error)| {
            self.shared.discard_new_file(path, Some(&error));
            error
        })
    }

    /// Makes `new` the file in use. Returns the old one.
    fn install(&mut self, new: Segment) -> Box<Segment> {
        self.shared.instruments.all.rolls.increment();
        self.roll_after = Duration::ZERO;
        if new.missing_replicas() == 0 {
            self.replicas_age = REPLICAS_AGE;
        }
        self.mark_due = false;
        let State::Open(old) = mem::replace(&mut self.state, State::Open(Box::new(new))) else {
            unreachable!("the log was open above")
        };
        let mut retention = locked(&self.shared.retention);
        retention.record_roll(old.path().clone());
        if let State::Open(new) = &self.state {
            retention.set_open(Some(new.path().clone()));
        }
        drop(retention);
        self.answer_roll_requests(Ok(()));
        old
    }

    fn stop(&mut self, cause: fs::Error) -> Error {
        error!(error = %cause, "the log stopped: all further writes fail");
        let error = Error::Stopped { cause };
        self.next = None;
        self.answer_roll_requests(Err(error.clone()));
        locked(&self.shared.retention).set_open(None);
        self.state = State::Stopped(error.clone());
        (self.on_fatal)(&error);
        error
    }

    fn send_job(&self, job: Job) {
        // The send fails only if the runtime has ended. No guarantee depends on the jobs.
        let _ = self.shared.jobs.send(job);
    }
}

fn is_full(error: &fs::Error) -> bool {
    matches!(error, fs::Error::NoSpace { .. })
}

/// Creates the next file. Leaves full disks while another disk has space. An error includes the
/// file's path, because the file may exist.
async fn create(
    env: &Env,
    fs: &dyn FileSystem,
    options: &LogOptions,
    file_number: &mut u64,
    previous: Previous,
) -> std::result::Result<Segment, (FilePath, fs::Error)> {
    loop {
        let (path, number) = next_name(env, options, file_number);
        let created = match fs.create(&path, AccessPattern::Log).await {
            Ok(writer) => begin(env, fs, writer, number, previous).await,
            Err(error) => Err(error),
        };
        match created {
            Err(fs::Error::VolumeFull { .. }) => {
                info!(%path, "the disk of a new log file is full; creating it on another one");
                housekeeper::discard(fs, &path).await;
            }
            other => return other.map_err(|error| (path, error)),
        }
    }
}

/// The path of the next file, and the number in its name.
fn next_name(env: &Env, options: &LogOptions, file_number: &mut u64) -> (FilePath, u64) {
    let number = env.clock.now_ms().max(*file_number + 1);
    *file_number = number;
    let name = LogName { prefix: options.prefix.clone(), suffix: options.suffix.clone(), number };
    (options.dir.join(&name.to_string()), number)
}

/// Writes the header of a new file.
async fn begin(
    env: &Env,
    fs: &dyn FileSystem,
    writer: Box<dyn FileWriter>,
    number: u64,
    previous: Previous,
) -> fs::Result<Segment> {
    let mut salt = Salt([0; 8]);
    env.random.fill(&mut salt.0);
    Segment::begin(fs, writer, salt, number, previous, env.clock.monotonic()).await
}
