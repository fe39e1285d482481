//! Counts logged lines by level.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// Lines logged since the start of the process, by any part of it.
pub(crate) static LOG_COUNTS: LogCounts =
    LogCounts { errors: AtomicU64::new(0), warnings: AtomicU64::new(0), infos: AtomicU64::new(0) };

/// Lines by level.
pub(crate) struct LogCounts {
    errors: AtomicU64,
    warnings: AtomicU64,
    infos: AtomicU64,
}

impl LogCounts {
    /// Errors, warnings and infos so far.
    pub(crate) fn now(&self) -> [u64; 3] {
        [&self.errors, &self.warnings, &self.infos].map(|count| count.load(Relaxed))
    }
}

/// A `tracing` layer that counts events for the metrics.
pub struct LogLineCounter;

impl<S: Subscriber> Layer<S> for LogLineCounter {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let count = match *event.metadata().level() {
            Level::ERROR => &LOG_COUNTS.errors,
            Level::WARN => &LOG_COUNTS.warnings,
            Level::INFO => &LOG_COUNTS.infos,
            Level::DEBUG | Level::TRACE => return,
        };
        count.fetch_add(1, Relaxed);
    }
}
