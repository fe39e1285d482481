//! Detects jumps of the wall clock by comparing it with the monotonic clock.
//!
//! A cell that gets its timestamp while the clock is wrong keeps this timestamp. After a jump
//! forward, such cells hide later writes to their columns. After a jump back, existing cells hide
//! new ones. Cells also expire too early or too late. So each jump is logged and counted, and the
//! operator can repair the data.

use std::sync::Arc;
use std::time::Duration;

use base::env::{Clock, Env, TaskClass};
use tracing::warn;

/// How often the two clocks are compared.
const PERIOD: Duration = Duration::from_millis(500);
/// Smaller differences are ignored, because time services make such corrections.
const JUMP_MIN_MS: i64 = 1_000;

base::instruments! {
    /// Jumps of the clock that gives cells their timestamps.
    pub struct ClockInstruments in "RegionServer,sub=Grampus" {
        /// How often the wall clock jumped forward by a second or more.
        forward: Counter = "clockForwardJumpCount",
        /// How often the wall clock jumped back by a second or more.
        backward: Counter = "clockBackwardJumpCount",
    }
}

/// The difference between the wall clock and the monotonic clock, in milliseconds.
struct Offset(i64);

impl Offset {
    fn now(clock: &dyn Clock) -> Offset {
        Offset(clock.now_ms().cast_signed().saturating_sub(clock.monotonic().as_millis() as i64))
    }

    /// Compares the clocks again. Returns by how much the wall clock jumped since the last
    /// comparison, if it did.
    fn jump(&mut self, clock: &dyn Clock) -> Option<i64> {
        let before = std::mem::replace(self, Offset::now(clock));
        let jump_ms = self.0.saturating_sub(before.0);
        (jump_ms.abs() >= JUMP_MIN_MS).then_some(jump_ms)
    }
}

/// Starts a task that compares the clocks. It ends when all other references to `instruments` are
/// dropped.
pub(crate) fn watch(env: &Env, instruments: &Arc<ClockInstruments>) {
    let (clock, instruments) = (env.clock.clone(), Arc::downgrade(instruments));
    env.spawn(TaskClass::Service, async move {
        let mut offset = Offset::now(&*clock);
        loop {
            clock.sleep(PERIOD).await;
            let Some(instruments) = instruments.upgrade() else { return };
            if let Some(jump_ms) = offset.jump(&*clock) {
                record_jump(&instruments, jump_ms);
            }
        }
    });
}

fn record_jump(instruments: &ClockInstruments, jump_ms: i64) {
    let direction = if jump_ms > 0 { &instruments.forward } else { &instruments.backward };
    direction.increment();
    warn!(
        jump_ms,
        "the wall clock jumped; cells written at the wrong time keep its timestamps (check the time service)"
    );
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

    use base::BoxFuture;
    use base::testing::TestClock;

    use super::*;

    /// A clock whose wall time the test sets.
    struct Adjusted {
        clock: TestClock,
        ahead_ms: AtomicI64,
    }

    impl Clock for Adjusted {
        fn now_ms(&self) -> u64 {
            self.clock.now_ms().saturating_add_signed(self.ahead_ms.load(Relaxed))
        }

        fn monotonic(&self) -> Duration {
            self.clock.monotonic()
        }

        fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
            self.clock.sleep(duration)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn jumps_in_both_directions_are_counted() {
        const TEN_YEARS_MS: i64 = 10 * 365 * 86_400_000;
        let clock = Arc::new(Adjusted { clock: TestClock::new(), ahead_ms: AtomicI64::new(0) });
        let env = Env { clock: clock.clone(), ..base::testing::env(1) };
        let instruments = Arc::new(ClockInstruments::begin(Duration::ZERO));
        watch(&env, &instruments);
        let counted_after = async |ahead_ms| {
            clock.ahead_ms.store(ahead_ms, Relaxed);
            clock.sleep(3 * PERIOD).await;
            (instruments.forward.get(), instruments.backward.get())
        };
        assert_eq!(counted_after(0).await, (0, 0));
        assert_eq!(counted_after(900).await, (0, 0), "time services correct a clock by this much");
        assert_eq!(counted_after(TEN_YEARS_MS).await, (1, 0));
        assert_eq!(counted_after(0).await, (1, 1));
        assert_eq!(counted_after(-1_000).await, (1, 2));
    }
}
