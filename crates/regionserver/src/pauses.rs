//! How long the process stands still: a task that sleeps, and looks how much longer it slept than it wanted to.
//!
//! Source: HBase `JvmPauseMonitor`; there it is the collector that stops a process, here a machine that has no time for it, or
//! a task that does not let others have their turn.

use std::sync::Arc;
use std::time::Duration;

use base::env::{Env, TaskClass};
use tracing::{info, warn};

/// How long the task sleeps (HBase's).
const SLEEP: Duration = Duration::from_millis(500);
/// A longer pause is worth a line in the log (`jvm.pause.info-threshold.ms`).
const INFO: Duration = Duration::from_secs(1);
/// A longer one is worth a warning (`jvm.pause.warn-threshold.ms`).
const WARN: Duration = Duration::from_secs(10);

base::instruments! {
    /// Pauses of the threads that serve connections.
    pub struct PauseInstruments in "RegionServer,sub=Server" {
        /// How much longer than it wanted to a task slept, looked at twice a second.
        pause_time: Times = "PauseTimeWithoutGc",
        /// Pauses of more than a second.
        infos: Counter = "pauseInfoThresholdExceeded",
        /// Pauses of more than ten seconds.
        warnings: Counter = "pauseWarnThresholdExceeded",
    }
}

/// Begins to look, for as long as somebody holds `instruments` besides.
pub(crate) fn watch(env: &Env, instruments: &Arc<PauseInstruments>) {
    let (clock, instruments) = (env.clock.clone(), Arc::downgrade(instruments));
    env.spawn(TaskClass::Connection, async move {
        loop {
            let begun = clock.monotonic();
            clock.sleep(SLEEP).await;
            let Some(instruments) = instruments.upgrade() else { return };
            note(&instruments, clock.monotonic().saturating_sub(begun).saturating_sub(SLEEP));
        }
    });
}

fn note(instruments: &PauseInstruments, pause: Duration) {
    instruments.pause_time.record(pause);
    if pause > WARN {
        instruments.warnings.increment();
        warn!(?pause, "the process stood still; is the machine overloaded?");
    } else if pause > INFO {
        instruments.infos.increment();
        info!(?pause, "the process stood still");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_pauses_are_counted_apart() {
        let instruments = PauseInstruments::begin(Duration::ZERO);
        for pause_ms in [0, 3, 1001, 5000, 10_001] {
            note(&instruments, Duration::from_millis(pause_ms));
        }
        assert_eq!(instruments.pause_time.micros().count(), 5);
        assert_eq!((instruments.infos.get(), instruments.warnings.get()), (2, 1));
    }
}
