//! How much calls of clients read from the disk of each open file.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use fs::FilePath;

/// After this time, a read counts half.
const HALF_LIFE: Duration = Duration::from_secs(3600);

/// The bytes that calls of clients read from one file. Recent reads count most.
#[derive(Debug, Default)]
pub(crate) struct FileHeat {
    decayed: Mutex<Decayed>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Decayed {
    bytes: f64,
    at: Duration,
}

impl FileHeat {
    /// Counts a read at `now`, on the monotonic clock.
    pub(crate) fn record(&self, bytes: u64, now: Duration) {
        let mut decayed = self.lock();
        *decayed = Decayed { bytes: decayed.bytes_at(now) + bytes as f64, at: now };
    }

    /// The bytes read, at `now`.
    fn bytes_at(&self, now: Duration) -> f64 {
        self.lock().bytes_at(now)
    }

    fn lock(&self) -> MutexGuard<'_, Decayed> {
        // Two independent numbers are valid after any panic.
        self.decayed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Decayed {
    fn bytes_at(self, now: Duration) -> f64 {
        let half_lives = now.saturating_sub(self.at).as_secs_f64() / HALF_LIFE.as_secs_f64();
        self.bytes * 0.5_f64.powf(half_lives)
    }
}

/// The heat of all open files.
#[derive(Debug, Default)]
pub(crate) struct Heat {
    files: Mutex<HashMap<FilePath, Weak<FileHeat>>>,
}

impl Heat {
    /// The counter of a file. Its readers share it, and it ends with the last of them.
    pub(crate) fn of(&self, path: &FilePath) -> Arc<FileHeat> {
        let mut files = self.lock();
        if let Some(open) = files.get(path).and_then(Weak::upgrade) {
            return open;
        }
        let heat = Arc::new(FileHeat::default());
        files.insert(path.clone(), Arc::downgrade(&heat));
        heat
    }

    /// The bytes that were read from a file, at `now`; 0 if it is not open.
    pub(crate) fn bytes_read(&self, path: &FilePath, now: Duration) -> f64 {
        let open = self.lock().get(path).and_then(Weak::upgrade);
        open.map_or(0.0, |heat| heat.bytes_at(now))
    }

    /// Forgets files that are not open any more.
    pub(crate) fn forget_closed(&self) {
        self.lock().retain(|_, heat| heat.strong_count() > 0);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<FilePath, Weak<FileHeat>>> {
        // A map of counters is valid after any panic.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_count_half_after_the_half_life() {
        let (heat, path) = (Heat::default(), FilePath::new("t/r/f/a"));
        let open = heat.of(&path);
        open.record(1000, Duration::from_secs(10));
        let later = Duration::from_secs(10) + HALF_LIFE;
        assert!((heat.bytes_read(&path, later) - 500.0).abs() < 1e-6);
        heat.of(&path).record(100, later);
        assert!((heat.bytes_read(&path, later) - 600.0).abs() < 1e-6);
    }

    #[test]
    fn a_closed_file_is_forgotten() {
        let (heat, path) = (Heat::default(), FilePath::new("a"));
        heat.of(&path).record(1, Duration::ZERO);
        assert_eq!(heat.bytes_read(&path, Duration::ZERO), 0.0);
        heat.forget_closed();
        assert!(heat.lock().is_empty());
    }
}
