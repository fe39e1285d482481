//! Free space of a disk, and which writes it still admits.
//!
//! [`Space`] is a set of numbers. A watcher polls the disk and stores the result
//! ([`Space::record_poll`]). File systems count the bytes written since then
//! ([`Space::record_write`]). The write path checks [`Space::admit`] before it accepts a write.
//! While there is plenty of space, this check reads one flag.
//!
//! Accepted data needs more space than its own bytes: the log stores them, and a flush writes all
//! memstores once more before the log can be deleted. So writes that add data are refused while
//! free space is less than the low-water mark plus this debt. Writes that remove data may also use
//! the [reserve](crate::reserve).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Size and free space of a disk, as the system reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// Bytes of the disk.
    pub total_bytes: u64,
    /// Free bytes available to this process.
    pub free_bytes: u64,
}

/// With more than this free in addition to the debt, the write path does not count bytes: no write
/// load fills that much between two polls.
const AMPLE_BYTES: u64 = 1 << 30;
/// Free space is low below this part of the disk, as 1/n ...
const LOW_PART: u64 = 10;
/// ... or below this many bytes, whichever is less.
const LOW_BYTES_MAX: u64 = 10 << 30;

/// How full a disk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// There is space, or the disk is not polled yet.
    Enough,
    /// Space is low: time to add some.
    Low,
    /// Writes that add data are refused.
    Refusing,
    /// No writes are possible: the disk, or the directory on it, is lost.
    Lost,
}

/// Reason why a write is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteRefused {
    /// The disk is full.
    Full {
        /// Free bytes.
        free_bytes: u64,
        /// Free bytes that the write requires.
        needed_bytes: u64,
    },
    /// The disk is lost, for this reason.
    Lost(String),
}

impl std::fmt::Display for WriteRefused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WriteRefused::Full { free_bytes, needed_bytes } => write!(
                f,
                "the disk is full: {} MiB are free, {} MiB are needed; reads and deletes continue, and writes resume \
                 when there is room",
                free_bytes >> 20,
                needed_bytes.div_ceil(1 << 20)
            ),
            WriteRefused::Lost(reason) => write!(f, "the data directory is lost: {reason}"),
        }
    }
}

/// Known state of a disk. Shared by all its writers.
#[derive(Debug, Default)]
pub struct Space {
    low_bytes: AtomicU64,
    total_bytes: AtomicU64,
    // At the last poll.
    free_bytes: AtomicU64,
    // Since the last poll.
    written_bytes: AtomicU64,
    // Held by the reserve.
    reserve_bytes: AtomicU64,
    // Bytes that memstores and logs will still write, at the last poll.
    owed_bytes: AtomicU64,
    // Whether writes must check the numbers. Every write reads it; it is written only when it
    // changes.
    is_exact: AtomicBool,
    is_polled: AtomicBool,
    refusals: AtomicU64,
    lost: Mutex<Option<String>>,
}

impl Space {
    /// An unknown disk, which admits every write. After the first poll, writes that add data are
    /// refused while less than `low_bytes` are free.
    pub fn new(low_bytes: u64) -> Space {
        let space = Space::default();
        space.low_bytes.store(low_bytes, Relaxed);
        space
    }

    /// Sets the low-water mark.
    pub fn set_low_bytes(&self, low_bytes: u64) {
        self.low_bytes.store(low_bytes, Relaxed);
    }

    /// Records a poll result; memstores and logs will still write `owed_bytes`.
    pub fn record_poll(&self, found: DiskSpace, owed_bytes: u64) {
        self.written_bytes.store(0, Relaxed);
        self.total_bytes.store(found.total_bytes, Relaxed);
        self.free_bytes.store(found.free_bytes, Relaxed);
        self.owed_bytes.store(owed_bytes, Relaxed);
        self.is_polled.store(true, Relaxed);
        self.update_exact();
    }

    /// Records that `bytes` were written.
    pub fn record_write(&self, bytes: u64) {
        self.written_bytes.fetch_add(bytes, Relaxed);
    }

    /// Records a write that failed because the disk is full.
    pub fn record_full(&self) {
        self.free_bytes.store(0, Relaxed);
        self.is_polled.store(true, Relaxed);
        self.update_exact();
    }

    /// Records how many bytes the reserve holds.
    pub fn set_reserve_bytes(&self, bytes: u64) {
        self.reserve_bytes.store(bytes, Relaxed);
    }

    /// Records that the disk is lost, or available again (`None`).
    pub fn set_lost(&self, reason: Option<String>) {
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = reason;
        self.update_exact();
    }

    /// Why the disk is lost, if it is.
    pub fn lost(&self) -> Option<String> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn update_exact(&self) {
        let room = self.free_bytes().saturating_sub(self.needed_bytes());
        let is_exact = self.lost().is_some() || (self.is_polled.load(Relaxed) && room < AMPLE_BYTES);
        if self.is_exact.load(Relaxed) != is_exact {
            self.is_exact.store(is_exact, Relaxed);
        }
    }

    /// Checks whether a write of `bytes` may begin. `adds_data` is false for writes that only
    /// remove data. `owed` returns the bytes that memstores and logs still have to write.
    ///
    /// # Errors
    /// [`WriteRefused`].
    #[inline]
    pub fn admit(&self, adds_data: bool, bytes: u64, owed: impl FnOnce() -> u64) -> Result<(), WriteRefused> {
        match self.is_exact.load(Relaxed) {
            false => Ok(()),
            true => self.admit_exactly(adds_data, bytes, owed()),
        }
    }

    #[cold]
    fn admit_exactly(&self, adds_data: bool, bytes: u64, owed: u64) -> Result<(), WriteRefused> {
        if let Some(reason) = self.lost() {
            self.refusals.fetch_add(1, Relaxed);
            return Err(WriteRefused::Lost(reason));
        }
        if !self.is_polled.load(Relaxed) {
            return Ok(());
        }
        let (low, reserve) = (self.low_bytes.load(Relaxed), self.reserve_bytes.load(Relaxed));
        // Once in the log, and once more in a flushed file.
        let own = bytes.saturating_mul(2);
        let (free_bytes, needed_bytes) = match adds_data {
            true => (self.free_bytes(), low.saturating_add(owed).saturating_add(own)),
            // The last quarter is reserved for the log.
            false => (self.free_bytes() + reserve, low / 4 + own),
        };
        if free_bytes >= needed_bytes {
            return Ok(());
        }
        self.refusals.fetch_add(1, Relaxed);
        Err(WriteRefused::Full { free_bytes, needed_bytes })
    }

    /// Whether `bytes` are free, according to the last poll.
    pub fn has(&self, bytes: u64) -> bool {
        !self.is_polled.load(Relaxed) || self.free_bytes() >= bytes
    }

    /// How full the disk is.
    pub fn level(&self) -> Level {
        if self.lost().is_some() {
            return Level::Lost;
        }
        if !self.is_polled.load(Relaxed) {
            return Level::Enough;
        }
        let (free, needed, total) = (self.free_bytes(), self.needed_bytes(), self.total_bytes());
        match free {
            free if free < needed => Level::Refusing,
            free if free < (total / LOW_PART).min(LOW_BYTES_MAX) || free / 2 < needed => Level::Low,
            _ => Level::Enough,
        }
    }

    /// Whether so much has been written since the last poll that the next one is due.
    pub fn is_stale(&self) -> bool {
        let room = self.free_bytes.load(Relaxed).saturating_sub(self.needed_bytes());
        self.written_bytes.load(Relaxed) > room / 8
    }

    /// Bytes of the disk.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes.load(Relaxed)
    }

    /// Free bytes, less the bytes written since the last poll.
    pub fn free_bytes(&self) -> u64 {
        self.free_bytes.load(Relaxed).saturating_sub(self.written_bytes.load(Relaxed))
    }

    /// Bytes that must be free for writes that add data.
    pub fn needed_bytes(&self) -> u64 {
        self.low_bytes.load(Relaxed).saturating_add(self.owed_bytes.load(Relaxed))
    }

    /// The low-water mark.
    pub fn low_bytes(&self) -> u64 {
        self.low_bytes.load(Relaxed)
    }

    /// Bytes that the reserve holds.
    pub fn reserve_bytes(&self) -> u64 {
        self.reserve_bytes.load(Relaxed)
    }

    /// Writes refused since the start.
    pub fn refusals(&self) -> u64 {
        self.refusals.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn space(free: u64) -> Space {
        let space = Space::new(4 * MIB);
        space.set_reserve_bytes(2 * MIB);
        space.record_poll(DiskSpace { total_bytes: 100 * MIB, free_bytes: free }, 10 * MIB);
        space
    }

    #[test]
    fn nothing_is_refused_before_the_first_poll_or_with_ample_space() {
        let owed = || unreachable!("must not be called");
        assert_eq!(Space::new(4 * MIB).admit(true, 1 << 40, owed), Ok(()));
        let space = Space::new(4 * MIB);
        space.record_poll(DiskSpace { total_bytes: 1 << 40, free_bytes: 1 << 39 }, 10 * MIB);
        assert_eq!(space.admit(true, MIB, owed), Ok(()));
        assert_eq!(space.level(), Level::Enough);
    }

    #[test]
    fn data_is_refused_below_the_limit_and_owed_bytes_and_deletes_are_not() {
        let space = space(16 * MIB);
        assert_eq!(space.admit(true, MIB, || 10 * MIB), Ok(()));
        let full = WriteRefused::Full { free_bytes: 16 * MIB, needed_bytes: 17 * MIB };
        assert_eq!(space.admit(true, MIB, || 11 * MIB), Err(full));
        assert_eq!(space.admit(false, MIB, || 11 * MIB), Ok(()));
        space.record_write(MIB);
        assert!(space.admit(true, MIB, || 10 * MIB).is_err(), "bytes written since the poll count");
        assert_eq!(space.refusals(), 2);
    }

    #[test]
    fn deletes_use_the_reserve_except_the_part_for_the_log() {
        let space = space(0);
        assert_eq!(space.admit(false, MIB / 2, || 10 * MIB), Ok(()));
        assert!(space.admit(false, MIB, || 10 * MIB).is_err());
    }

    #[test]
    fn levels_follow_the_free_space() {
        let levels = [(60, Level::Enough), (27, Level::Low), (13, Level::Refusing), (60, Level::Enough)];
        for (free, level) in levels {
            assert_eq!(space(free * MIB).level(), level, "{free} MiB");
        }
        let space = space(60 * MIB);
        space.record_full();
        assert_eq!(space.level(), Level::Refusing);
        space.set_lost(Some("gone".into()));
        assert_eq!(space.level(), Level::Lost);
        assert_eq!(space.admit(false, 1, || 0), Err(WriteRefused::Lost("gone".into())));
        space.set_lost(None);
        space.record_poll(DiskSpace { total_bytes: 100 * MIB, free_bytes: 60 * MIB }, 0);
        assert_eq!(space.admit(true, 1, || 0), Ok(()));
    }
}
