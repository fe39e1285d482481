//! The units of a scan, handed out in order to several tasks, until there are no more or somebody has had enough.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base::env::Clock;
use bytes::Bytes;
use engine::columns::Unit;

use crate::error::Error;

/// Units and who stops.
pub(super) struct Turns {
    units: Vec<Unit>,
    next: AtomicUsize,
    stopped: AtomicBool,
    // On the monotonic clock.
    deadline: Duration,
    failed: Mutex<Option<Error>>,
}

impl Turns {
    pub(super) fn new(units: Vec<Unit>, deadline: Duration) -> Turns {
        Turns {
            units,
            next: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            deadline,
            failed: Mutex::new(None),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.units.len()
    }

    /// The next unit; whoever takes one reads all of it. None when all are taken, when time is over (but for the first, so that
    /// every call comes further) or when somebody stopped.
    pub(super) fn take(&self, clock: &dyn Clock) -> Option<&Unit> {
        if self.stopped.load(Relaxed) {
            return None;
        }
        if self.next.load(Relaxed) > 0 && clock.monotonic() >= self.deadline {
            self.stop();
            return None;
        }
        self.units.get(self.next.fetch_add(1, Relaxed))
    }

    /// No more units are handed out.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    /// The same because something failed: the first to tell is heard.
    pub(super) fn fail(&self, error: Error) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop();
    }

    /// Why it failed, if it did.
    pub(super) fn failed(&self) -> Option<Error> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The first row that nobody took; none if all are taken. When all tasks are done.
    pub(super) fn rest(&self) -> Option<Bytes> {
        self.units.get(self.next.load(Relaxed)).map(|unit| unit.start_row().clone())
    }
}
