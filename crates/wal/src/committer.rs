//! The one task that writes a log: takes all that queued while the last sync ran, writes it, syncs, tells. Where it pays it
//! waits for more first ([`gathering`](crate::gathering)).
//!
//! * One group is in flight at a time, and all of it is still in memory; so after a failed write or sync exactly that
//!   group is appended again, to a new file. The failed file is never touched again.
//! * A new file's header and name survive a power cut before anything in it is told to be committed.
//! * A second failure in a row stops the log: the group and all that follows fail.
//! * A full disk is no failure: the edits of the group are in memstores already, so the group waits for room, and with it
//!   all that is appended after it. It fails only if the log is closed meanwhile.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base::env::Env;
use bytes::Bytes;
use fs::{FilePath, FileSystem};
use tracing::{error, info, warn};

use crate::gathering::Gathering;
use crate::header::Previous;
use crate::housekeeper::Job;
use crate::log::{LogOptions, Order, Shared, Taken, locked};
use crate::mark::Salt;
use crate::name::LogName;
use crate::segment::{Segment, fits};
use crate::{Edit, Error, Result, marker};

/// A log with nothing to do for so long states what is durable.
const IDLE: Duration = Duration::from_millis(20);
/// Longest file whatever the options say: the end mark's lengths must lie beyond it, with the largest entry behind.
const ROLL_BYTES_MAX: u64 = 1 << 30;
/// The pause before a group that found the disk full is written again, doubled up to [`ROOM_PAUSE_MAX`].
const ROOM_PAUSE: Duration = Duration::from_millis(20);
const ROOM_PAUSE_MAX: Duration = Duration::from_millis(500);
/// A group buffer that grew beyond this is given back.
const BUFFER_BYTES_KEPT: usize = 16 << 20;

pub(crate) struct Committer {
    env: Env,
    fs: Arc<dyn FileSystem>,
    options: LogOptions,
    shared: Arc<Shared>,
    on_fatal: Arc<dyn Fn(&Error) + Send + std::marker::Sync>,
    state: State,
    gathering: Gathering,
    // Reused from group to group.
    buffer: Vec<u8>,
    // What was written last is not stated to be durable yet.
    mark_due: bool,
    // The number tried last. Never used again, also after a failure: what is left of that try is removed later, by name.
    last_number: u64,
    // A roll for size or age that failed is not tried again before the file has this length.
    roll_again_at: u64,
    // What was taken from the queue last asks for the log's end.
    is_ending: bool,
}

enum State {
    Open(Box<Segment>),
    Over(Error),
}

impl Committer {
    pub(crate) async fn start(
        env: Env,
        fs: Arc<dyn FileSystem>,
        options: LogOptions,
        shared: Arc<Shared>,
        on_fatal: Arc<dyn Fn(&Error) + Send + std::marker::Sync>,
    ) -> Result<Committer> {
        let mut last_number = 0;
        let segment = create(&env, &*fs, &options, &mut last_number, Previous::NONE).await;
        let segment = segment.map_err(|(_, error)| error)?;
        info!(path = %segment.path(), "began a log");
        locked(&shared.books).opened(Some(segment.path().clone()));
        Ok(Committer {
            env,
            fs,
            options,
            shared,
            on_fatal,
            state: State::Open(Box::new(segment)),
            gathering: Gathering::new(),
            buffer: Vec::new(),
            mark_due: false,
            last_number,
            roll_again_at: 0,
            is_ending: false,
        })
    }

    /// Works until the log was dropped.
    pub(crate) async fn run(mut self) {
        let mut edits = Vec::new();
        loop {
            self.gather().await;
            let Taken { orders, dropped } = self.shared.take(&mut edits);
            let idle = edits.is_empty() && orders.is_empty();
            if idle && dropped {
                return;
            }
            if idle {
                let began = self.env.clock.monotonic();
                self.wait().await;
                self.gathering.idle(self.env.clock.monotonic().saturating_sub(began));
                continue;
            }
            self.is_ending = dropped || orders.iter().any(|order| matches!(order, Order::Close(_)));
            if !edits.is_empty() {
                let began = self.env.clock.monotonic();
                self.commit_all(&edits).await;
                let took = self.env.clock.monotonic().saturating_sub(began);
                self.gathering.committed(edits.len(), took, self.shared.queued_edits());
                edits.clear();
            }
            // Whoever was told has his turn first: what is appended meanwhile goes into the next group.
            tokio::task::yield_now().await;
            for order in orders {
                self.obey(order).await;
            }
            self.roll_if_due().await;
        }
    }

    /// Waits for more edits, if that is worth it.
    async fn gather(&mut self) {
        let Some(wait) = self.gathering.wait(self.shared.queued_edits()) else { return };
        let began = self.env.clock.monotonic();
        tokio::select! {
            biased;
            () = self.shared.queued_at_least(wait.edits) => {}
            () = self.env.clock.sleep(wait.patience) => {}
        }
        self.shared.wake_at_first();
        let took = self.env.clock.monotonic().saturating_sub(began);
        self.gathering.waited(self.shared.queued_edits() >= wait.edits, took);
    }

    async fn wait(&mut self) {
        let sleep = match (&self.state, self.mark_due) {
            (State::Over(_), _) => None,
            (State::Open(_), true) => Some(IDLE),
            (State::Open(segment), false) => self.age_left(segment),
        };
        let Some(sleep) = sleep else { return self.shared.queued().await };
        let timed_out = tokio::select! {
            biased;
            () = self.shared.queued() => false,
            () = self.env.clock.sleep(sleep) => true,
        };
        if timed_out && self.mark_due {
            self.mark_idle().await;
        } else if timed_out {
            self.roll_if_due().await;
        }
    }

    // Time until the file is too old; None if it never is.
    fn age_left(&self, segment: &Segment) -> Option<Duration> {
        let period = self.options.roll_period.filter(|_| !segment.is_empty())?;
        let age = self.env.clock.monotonic().saturating_sub(segment.opened);
        // Not zero, lest a roll that keeps failing be tried without a pause.
        Some(period.saturating_sub(age).max(Duration::from_secs(1)))
    }

    async fn mark_idle(&mut self) {
        self.mark_due = false;
        let State::Open(segment) = &mut self.state else { return };
        let marked = segment.mark_idle().await;
        // The mark adds nothing that a full disk would be worth a new file: the next group states the same.
        if let Err(error) = marked
            && !is_full(&error)
        {
            warn!(path = %segment.path(), %error, "a log could not be written to; beginning a new one");
            let outcome = self.give_up_file().await;
            if let Err(cause) = outcome {
                self.stop(cause);
            }
        }
    }

    async fn commit_all(&mut self, edits: &[Edit]) {
        let mut rest = edits;
        while !rest.is_empty() {
            let (group, behind) = rest.split_at(self.group_len(rest));
            let outcome = self.commit(group).await;
            self.tell(group, outcome);
            rest = behind;
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
        if let State::Over(error) = &self.state {
            return Err(error.clone());
        }
        if !group.iter().any(|edit| edit.logged && fits(edit)) {
            return Ok(());
        }
        let Err(first) = self.write_when_room(group).await else { return Ok(()) };
        warn!(error = %first, edits = group.len(), "a log failed; appending again to a new one");
        let second = match self.give_up_file().await {
            Ok(()) => match self.write_when_room(group).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            },
            Err(error) => error,
        };
        Err(self.stop(second))
    }

    /// Writes a group; while the disk is full, waits for room.
    async fn write_when_room(&mut self, group: &[Edit]) -> fs::Result<()> {
        let mut pause = ROOM_PAUSE;
        loop {
            let written = self.write(group).await;
            match written {
                Err(error) if is_full(&error) => self.wait_for_room(error, &mut pause).await?,
                other => {
                    self.found_room();
                    return other;
                }
            }
        }
    }

    /// Replaces the file; while the disk is full, waits for room.
    async fn replace_when_room(&mut self) -> fs::Result<Box<Segment>> {
        let mut pause = ROOM_PAUSE;
        loop {
            let replaced = self.replace_file().await;
            match replaced {
                Err(error) if is_full(&error) => self.wait_for_room(error, &mut pause).await?,
                other => {
                    self.found_room();
                    return other;
                }
            }
        }
    }

    /// Waits a little for room on the disk.
    ///
    /// # Errors
    /// `full`, once the log is to be closed: what waits then was never acknowledged.
    async fn wait_for_room(&mut self, full: fs::Error, pause: &mut Duration) -> fs::Result<()> {
        if !self.shared.counts.waits_for_room.swap(true, Ordering::Relaxed) {
            warn!(
                error = %full,
                "the log waits for room on the disk: free some; accepted writes are not acknowledged before"
            );
        }
        if self.is_ending || self.shared.is_ending() {
            return Err(full);
        }
        self.env.clock.sleep(*pause).await;
        *pause = (*pause * 2).min(ROOM_PAUSE_MAX);
        Ok(())
    }

    fn found_room(&self) {
        if self.shared.counts.waits_for_room.load(Ordering::Relaxed) {
            self.shared.counts.waits_for_room.store(false, Ordering::Relaxed);
            info!("the log has room again");
        }
    }

    async fn write(&mut self, group: &[Edit]) -> fs::Result<()> {
        let State::Open(segment) = &mut self.state else { unreachable!("the caller looked") };
        let clock = &self.env.clock;
        let begun = clock.monotonic();
        let kept = segment.encode_group(&mut self.buffer, group);
        let encoded = clock.monotonic();
        let bytes = Bytes::from(mem::take(&mut self.buffer));
        let written =
            segment.commit(bytes.clone(), kept, self.options.reach, self.options.reserve_bytes).await;
        // Whoever wrote it has let go of it by now, as a rule; then the room is used again.
        if bytes.is_unique() && bytes.len() <= BUFFER_BYTES_KEPT {
            self.buffer = Vec::from(bytes);
        }
        written?;
        self.mark_due = true;
        let took = (encoded.saturating_sub(begun), clock.monotonic().saturating_sub(encoded));
        self.account(group, kept, took);
        Ok(())
    }

    /// Takes note of a group, which it took so long to encode and to sync.
    fn account(&self, group: &[Edit], bytes: usize, took: (Duration, Duration)) {
        let logged = group.iter().filter(|edit| edit.logged && fits(edit));
        let mut books = locked(&self.shared.books);
        for edit in logged.clone() {
            if !marker::is_marker(&edit.cells) {
                books.written(&edit.region, edit.seq_id);
            }
        }
        if let State::Open(segment) = &self.state {
            books.has_grown(segment.len());
        }
        drop(books);
        self.shared.instruments.note_group(logged, bytes, took);
    }

    fn tell(&self, group: &[Edit], outcome: Result<()>) {
        let is_left_out = |edit: &Edit| edit.logged && !fits(edit);
        let is_told_together = |edit: &Edit, next: &Edit| {
            Arc::ptr_eq(&edit.committed, &next.committed) && !is_left_out(edit) && !is_left_out(next)
        };
        for edits in group.chunk_by(is_told_together) {
            let queued_bytes = edits.iter().map(Edit::queued_bytes).sum();
            match &outcome {
                Ok(()) if is_left_out(&edits[0]) => {
                    let error = Error::TooLarge { bytes: edits[0].cells.len() as u64 };
                    edits[0].committed.failed(edits[0].seq_id, &error);
                }
                Ok(()) => edits[0].committed.committed_together(edits),
                Err(error) => edits.iter().for_each(|edit| edit.committed.failed(edit.seq_id, error)),
            }
            self.shared.counts.queued_bytes.fetch_sub(queued_bytes, Ordering::Relaxed);
        }
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Roll(done) => {
                let outcome = match &self.state {
                    State::Open(_) => self.roll().await.map_err(Error::from),
                    State::Over(error) => Err(error.clone()),
                };
                // Who asked may have given up waiting.
                let _ = done.send(outcome);
            }
            Order::Close(done) => {
                self.close();
                let _ = done.send(());
            }
        }
    }

    fn close(&mut self) {
        if let State::Open(segment) = mem::replace(&mut self.state, State::Over(Error::Closed)) {
            info!(path = %segment.path(), "closing a log");
            let mut books = locked(&self.shared.books);
            books.rolled(segment.path().clone());
            books.opened(None);
            drop(books);
            self.job(Job::Finish(segment));
        }
    }

    async fn roll_if_due(&mut self) {
        let State::Open(segment) = &self.state else { return };
        let limit = self.options.roll_bytes.min(ROLL_BYTES_MAX);
        let large = segment.len() >= limit.max(self.roll_again_at);
        let old = !segment.is_empty()
            && self
                .options
                .roll_period
                .is_some_and(|period| self.env.clock.monotonic().saturating_sub(segment.opened) >= period);
        if !large && !old {
            return;
        }
        let len = segment.len();
        if large {
            let instruments = &self.shared.instruments.all;
            instruments.roll_requests.increment();
            instruments.size_rolls.increment();
        }
        if let Err(error) = self.roll().await {
            self.roll_again_at = len + limit / 8;
            warn!(%error, len, "no new log could be made; the old one stays in use");
            if len > ROLL_BYTES_MAX {
                self.roll_oversized(error).await;
            }
        }
    }

    /// Replaces a file that must not grow any more. A full disk is waited for; nothing else is.
    async fn roll_oversized(&mut self, first: fs::Error) {
        let (mut failed, mut pause) = (Some(first), ROOM_PAUSE);
        while let Some(error) = failed.take() {
            let waited = match is_full(&error) {
                true => self.wait_for_room(error, &mut pause).await,
                false => Err(error),
            };
            if let Err(error) = waited {
                self.stop(error);
                return;
            }
            failed = self.roll().await.err();
        }
        self.found_room();
    }

    /// Replaces the file by a new one in good order.
    async fn roll(&mut self) -> fs::Result<()> {
        let old = self.replace_file().await?;
        info!(path = %old.path(), len = old.len(), "replaced a log");
        self.job(Job::Finish(old));
        Ok(())
    }

    /// Replaces the file after an error: it is left as it is.
    async fn give_up_file(&mut self) -> fs::Result<()> {
        self.shared.counts.failures.fetch_add(1, Ordering::Relaxed);
        let instruments = &self.shared.instruments.all;
        instruments.roll_requests.increment();
        instruments.error_rolls.increment();
        let old = self.replace_when_room().await?;
        self.job(Job::GiveUp(old.path().clone()));
        Ok(())
    }

    async fn replace_file(&mut self) -> fs::Result<Box<Segment>> {
        let State::Open(old) = &self.state else { unreachable!("the caller looked") };
        let previous = old.as_previous();
        let new = match create(&self.env, &*self.fs, &self.options, &mut self.last_number, previous).await {
            Ok(new) => new,
            Err((path, error)) => {
                if !matches!(error, fs::Error::AlreadyExists { .. }) {
                    self.job(Job::Discard(path));
                }
                return Err(error);
            }
        };
        self.shared.instruments.all.rolls.increment();
        self.roll_again_at = 0;
        self.mark_due = false;
        let State::Open(old) = mem::replace(&mut self.state, State::Open(Box::new(new))) else {
            unreachable!("it was open above")
        };
        let mut books = locked(&self.shared.books);
        books.rolled(old.path().clone());
        if let State::Open(new) = &self.state {
            books.opened(Some(new.path().clone()));
        }
        drop(books);
        Ok(old)
    }

    fn stop(&mut self, cause: fs::Error) -> Error {
        error!(error = %cause, "the log stops: nothing can be written any more");
        let error = Error::Stopped { cause };
        locked(&self.shared.books).opened(None);
        self.state = State::Over(error.clone());
        (self.on_fatal)(&error);
        error
    }

    fn job(&self, job: Job) {
        // The task ends only with the runtime, and what it does is needed for no promise.
        let _ = self.shared.jobs.send(job);
    }
}

fn is_full(error: &fs::Error) -> bool {
    matches!(error, fs::Error::NoSpace { .. })
}

/// Makes the next file; on an error its path is given too, since something may be there.
async fn create(
    env: &Env,
    fs: &dyn FileSystem,
    options: &LogOptions,
    last_number: &mut u64,
    previous: Previous,
) -> std::result::Result<Segment, (FilePath, fs::Error)> {
    let number = env.clock.now_ms().max(*last_number + 1);
    *last_number = number;
    let name = LogName { prefix: options.prefix.clone(), suffix: options.suffix.clone(), number };
    let path = options.dir.join(&name.to_string());
    let mut salt = Salt([0; 8]);
    env.random.fill(&mut salt.0);
    let made = Segment::create(fs, &path, salt, number, previous, env.clock.monotonic()).await;
    made.map_err(|error| (path, error))
}
