//! A request to a device.

use super::device_class::DeviceClass;
use crate::{IoClass, Traffic};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Reads bytes.
    Read,
    /// Writes bytes.
    Write,
    /// Writes bytes and makes them durable.
    WriteAndSync,
    /// Makes written bytes, or names, durable.
    Sync,
    /// Uses names only: create, list, rename.
    Names,
}

/// A request to a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) class: IoClass,
    pub(super) action: Action,
    /// Number of the open file, and offset in it.
    pub(super) position: Option<(u64, u64)>,
    pub(super) bytes: u64,
    /// For a sync: bytes of the file that the page cache holds.
    pub(super) unsynced: u64,
}

impl Request {
    /// A request without bytes.
    pub(super) fn without_bytes(class: IoClass, action: Action) -> Request {
        Request { class, action, position: None, bytes: 0, unsynced: 0 }
    }

    /// Whether the request never waits. A client waits for each request of a log. Names are mostly
    /// in memory, and their requests are few.
    pub(super) fn is_exempt(&self) -> bool {
        self.class == IoClass::Log || self.action == Action::Names
    }

    /// Whether the limit of writers applies.
    pub(super) fn writes(&self) -> bool {
        matches!(self.action, Action::Write | Action::WriteAndSync | Action::Sync)
    }

    pub(super) fn syncs(&self) -> bool {
        matches!(self.action, Action::Sync | Action::WriteAndSync)
    }

    /// Its cost in bytes; `previous` is where the previous request ended.
    pub(super) fn cost(&self, limits: &DeviceClass, previous: Option<(u64, u64)>) -> u64 {
        let is_sequential = limits.is_spindle && self.position.is_some() && self.position == previous;
        let accesses = match self.action {
            Action::Names => 0,
            Action::Sync => 1,
            Action::WriteAndSync => 2 - u64::from(is_sequential),
            Action::Read | Action::Write => 1 - u64::from(is_sequential),
        };
        let synced = if self.syncs() { self.unsynced } else { 0 };
        self.bytes + synced + accesses * limits.access_bytes
    }

    /// What it counts for when it is done.
    pub(super) fn traffic(&self) -> Traffic {
        match self.action {
            Action::Read => Traffic { reads: 1, read_bytes: self.bytes, ..Traffic::default() },
            Action::Write | Action::WriteAndSync => {
                Traffic { writes: 1, written_bytes: self.bytes, ..Traffic::default() }
            }
            Action::Sync | Action::Names => Traffic::default(),
        }
    }

    /// Where it ends.
    pub(super) fn end(&self) -> Option<(u64, u64)> {
        self.position.map(|(file, offset)| (file, offset.saturating_add(self.bytes)))
    }
}
