//! Measures pauses of the process: a task sleeps periodically and measures how much longer it slept
//! than intended.
//!
//! Source: HBase `JvmPauseMonitor`. In HBase the garbage collector pauses a process. Here the cause
//! is an overloaded machine, or a task that does not yield to other tasks.

use std::sync::Arc;
use std::time::Duration;

use base::env::{Env, TaskClass};
use tracing::{info, warn};

/// How long the task sleeps, as in HBase.
const SLEEP: Duration = Duration::from_millis(500);
/// Longer pauses are logged (`jvm.pause.info-threshold.ms`).
const INFO: Duration = Duration::from_secs(1);
/// Longer pauses are logged as a warning (`jvm.pause.warn-threshold.ms`).
const WARN: Duration = Duration::from_secs(10);

base::instruments! {
    /// Pauses of the threads that serve connections.
    pub struct PauseInstruments in "RegionServer,sub=Server" {
        /// How much longer a periodic task slept than intended, measured twice a second.
        pause_time: Times = "PauseTimeWithoutGc",
        /// Pauses of more than a second.
        infos: Counter = "pauseInfoThresholdExceeded",
        /// Pauses of more than ten seconds.
        warnings: Counter = "pauseWarnThresholdExceeded",
    }
}

/// Starts the measurement. It ends when all other references to `instruments` are dropped.
pub(crate) fn watch(env: &Env, instruments: &Arc<PauseInstruments>) {
    let (clock, instruments) = (env.clock.clone(), Arc::downgrade(instruments));
    env.spawn(TaskClass::Connection, async move {
        loop {
            let begun = clock.monotonic();
            clock.sleep(SLEEP).await;
            let Some(instruments) = instruments.upgrade() else { return };
            record_pause(&instruments, clock.monotonic().saturating_sub(begun).saturating_sub(SLEEP));
        }
    });
}

fn record_pause(instruments: &PauseInstruments, pause: Duration) {
    instruments.pause_time.record(pause);
    if pause > WARN {
        instruments.warnings.increment();
        warn!(?pause, "the process was paused; is the machine overloaded?");
    } else if pause > INFO {
        instruments.infos.increment();
        info!(?pause, "the process was paused");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_pauses_are_counted_separately() {
        let instruments = PauseInstruments::begin(Duration::ZERO);
        for pause_ms in [0, 3, 1001, 5000, 10_001] {
            record_pause(&instruments, Duration::from_millis(pause_ms));
        }
        assert_eq!(instruments.pause_time.micros().count(), 5);
        assert_eq!((instruments.infos.get(), instruments.warnings.get()), (2, 1));
    }
}
