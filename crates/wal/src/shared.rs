//! What the callers of a log share with its committer and its housekeeper: the queue of edits and
//! commands, the retained files, and counts.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use fs::FilePath;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::housekeeper::Job;
use crate::instruments::Instruments;
use crate::retention::{LogRetention, locked};
use crate::{Edit, Result};

/// The state of a log. See the module's documentation.
pub(crate) struct Shared {
    // Locked only briefly, never across an await. The holder takes no other lock.
    queue: Mutex<Queue>,
    wake: Notify,
    pub(crate) retention: Arc<Mutex<LogRetention>>,
    pub(crate) jobs: mpsc::UnboundedSender<Job>,
    pub(crate) counts: Counts,
    pub(crate) instruments: Arc<Instruments>,
}

#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) queued_bytes: AtomicU64,
    pub(crate) failures: AtomicU64,
    // A group found the disk full and is being retried.
    pub(crate) waits_for_space: AtomicBool,
}

struct Queue {
    edits: Vec<Edit>,
    // Queue length at which the committer is woken.
    wake_at: usize,
    commands: Vec<Command>,
    dropped: bool,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue { edits: Vec::new(), wake_at: 1, commands: Vec::new(), dropped: false }
    }
}

/// A command to the committer. It is executed after the edits that were appended before it.
pub(crate) enum Command {
    Roll(oneshot::Sender<Result<()>>),
    Close(oneshot::Sender<()>),
}

/// The result of [`Shared::drain`], which returns the edits separately.
pub(crate) struct DrainedCommands {
    pub(crate) commands: Vec<Command>,
    // Whether the log was dropped.
    pub(crate) dropped: bool,
}

impl Shared {
    pub(crate) fn new(jobs: mpsc::UnboundedSender<Job>, instruments: Arc<Instruments>) -> Shared {
        Shared {
            queue: Mutex::default(),
            wake: Notify::new(),
            retention: Arc::default(),
            jobs,
            counts: Counts::default(),
            instruments,
        }
    }

    /// Lets the housekeeper remove a new file that is not used. After an error of its creation it
    /// may exist, unless the error says that another file has the name.
    pub(crate) fn discard_new_file(&self, path: FilePath, error: Option<&fs::Error>) {
        if !matches!(error, Some(fs::Error::AlreadyExists { .. })) {
            // The send fails only if the runtime has ended.
            let _ = self.jobs.send(Job::Discard(path));
        }
    }

    /// Queues an edit.
    pub(crate) fn append(&self, edit: Edit) {
        self.counts.queued_bytes.fetch_add(edit.queued_bytes(), Ordering::Relaxed);
        let mut queue = locked(&self.queue);
        queue.edits.push(edit);
        let is_wake_due = queue.edits.len() == queue.wake_at;
        drop(queue);
        if is_wake_due {
            self.wake.notify_one();
        }
    }

    /// Ends the committer after the queued edits: the log was dropped.
    pub(crate) fn end(&self) {
        locked(&self.queue).dropped = true;
        self.wake.notify_one();
    }

    /// Moves all queued edits into `edits`, which must be empty, and takes the queued commands.
    pub(crate) fn drain(&self, edits: &mut Vec<Edit>) -> DrainedCommands {
        debug_assert!(edits.is_empty(), "the caller has processed the edits of the last call");
        let mut queue = locked(&self.queue);
        std::mem::swap(&mut queue.edits, edits);
        DrainedCommands { commands: std::mem::take(&mut queue.commands), dropped: queue.dropped }
    }

    /// Waits until an edit or a command is queued, or the log is dropped.
    pub(crate) async fn wait_queued(&self) {
        self.wake.notified().await;
    }

    pub(crate) fn queued_edit_count(&self) -> usize {
        locked(&self.queue).edits.len()
    }

    /// Waits until at least `edits` edits or a command are queued, or the log is dropped. Until
    /// [`wake_at_first_edit`](Self::wake_at_first_edit) is called, fewer edits do not wake the
    /// committer.
    pub(crate) async fn wait_queued_at_least(&self, edits: usize) {
        while self.needs_more(edits) {
            self.wake.notified().await;
        }
    }

    fn needs_more(&self, edits: usize) -> bool {
        let mut queue = locked(&self.queue);
        queue.wake_at = edits;
        queue.edits.len() < edits && queue.commands.is_empty() && !queue.dropped
    }

    /// Whether the log is being closed or was dropped.
    pub(crate) fn is_ending(&self) -> bool {
        let queue = locked(&self.queue);
        queue.dropped || queue.commands.iter().any(|command| matches!(command, Command::Close(_)))
    }

    /// Makes the first edit in an empty queue wake the committer again.
    pub(crate) fn wake_at_first_edit(&self) {
        locked(&self.queue).wake_at = 1;
    }

    /// Queues a command.
    pub(crate) fn send_command(&self, command: Command) {
        locked(&self.queue).commands.push(command);
        self.wake.notify_one();
    }
}
