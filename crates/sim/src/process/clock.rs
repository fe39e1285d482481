//! The clocks of one life of a process.
//!
//! They show virtual time, unless they are frozen: then they stand still. Afterwards they show that
//! much less, and the sleeps of the process end later by it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::BoxFuture;
use base::env::Clock;
use base::testing::START_MS;

use crate::scheduler::Scheduler;

/// The wall clock and the monotonic clock.
pub(super) struct ProcessClock {
    monotonic: Arc<MonotonicClock>,
    wall_offset_ms: Arc<AtomicI64>,
}

struct MonotonicClock {
    scheduler: Arc<Scheduler>,
    started: Duration,
    frozen: Mutex<FrozenTime>,
}

/// When the clocks stood still, in the time of the world.
#[derive(Default)]
struct FrozenTime {
    /// The sum of all times that have ended.
    total: Duration,
    /// When the clocks stopped, if they stand still now.
    since: Option<Duration>,
}

impl ProcessClock {
    /// Clocks of a life that starts now, on a host whose wall clock has this offset.
    pub(super) fn start(scheduler: Arc<Scheduler>, wall_offset_ms: Arc<AtomicI64>) -> ProcessClock {
        let (started, frozen) = (scheduler.now(), Mutex::default());
        ProcessClock { monotonic: Arc::new(MonotonicClock { scheduler, started, frozen }), wall_offset_ms }
    }

    /// Stops both clocks.
    pub(super) fn freeze(&self) {
        let now = self.monotonic.scheduler.now();
        self.monotonic.lock().since.get_or_insert(now);
    }

    /// Continues both clocks where they stopped. Returns for how long they stood still; `None` if
    /// they did not.
    pub(super) fn thaw(&self) -> Option<Duration> {
        let now = self.monotonic.scheduler.now();
        let mut frozen = self.monotonic.lock();
        let stood = now.saturating_sub(frozen.since.take()?);
        frozen.total += stood;
        let stood_ms = i64::try_from(stood.as_millis()).unwrap_or(i64::MAX);
        self.wall_offset_ms.fetch_sub(stood_ms, Ordering::Relaxed);
        Some(stood)
    }

    /// Whether the clocks stand still.
    pub(super) fn is_frozen(&self) -> bool {
        self.monotonic.lock().since.is_some()
    }
}

impl MonotonicClock {
    /// The time of the world, without what passes while the clocks stand still.
    fn world_now(&self) -> Duration {
        let since = self.lock().since;
        since.unwrap_or_else(|| self.scheduler.now())
    }

    fn now(&self) -> Duration {
        let (now, total) = (self.world_now(), self.lock().total);
        now.saturating_sub(self.started + total)
    }

    fn lock(&self) -> MutexGuard<'_, FrozenTime> {
        self.frozen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ProcessClock {
    fn now_ms(&self) -> u64 {
        let world_ms = u64::try_from(self.monotonic.world_now().as_millis()).unwrap_or(u64::MAX);
        (START_MS + world_ms).saturating_add_signed(self.wall_offset_ms.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        self.monotonic.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let clock = self.monotonic.clone();
        let until = clock.now().saturating_add(duration);
        Box::pin(async move {
            // More than one wait, if the clock stands still meanwhile.
            loop {
                let left = until.saturating_sub(clock.now());
                if left.is_zero() {
                    return;
                }
                clock.scheduler.sleep(left).await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use base::env::TaskClass;

    use crate::world::{World, WorldOptions};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn frozen_clocks_stand_still_and_sleeps_end_later() {
        let run = World::run(WorldOptions::new(1), |world| async move {
            let process = world.add_idle_process("a");
            let life = process.start();
            let (clock, is_awake) = (life.env.clock.clone(), Arc::new(AtomicBool::new(false)));
            let (sleeping, woken) = (clock.clone(), is_awake.clone());
            life.env.spawn(TaskClass::Service, async move {
                sleeping.sleep(2 * SECOND).await;
                woken.store(true, Ordering::Relaxed);
            });
            world.sleep(SECOND).await;
            process.freeze();
            let (before, before_ms) = (clock.monotonic(), clock.now_ms());
            assert!(process.is_frozen() && process.is_paused());
            world.sleep(10 * SECOND).await;
            assert_eq!((clock.monotonic(), clock.now_ms()), (before, before_ms));
            process.resume();
            assert!(!process.is_frozen() && !process.is_paused());
            assert_eq!(clock.monotonic(), before);
            world.sleep(SECOND / 2).await;
            assert!(!is_awake.load(Ordering::Relaxed));
            world.sleep(SECOND).await;
            assert!(is_awake.load(Ordering::Relaxed));
            assert!((1450..1550).contains(&(clock.now_ms() - before_ms)));
        });
        run.result.unwrap();
    }

    #[test]
    fn the_clocks_of_a_paused_process_continue() {
        let run = World::run(WorldOptions::new(1), |world| async move {
            let process = world.add_idle_process("a");
            let clock = process.start().env.clock;
            let before = (clock.monotonic(), clock.now_ms());
            process.pause();
            world.sleep(10 * SECOND).await;
            process.resume();
            assert!(clock.monotonic() >= before.0 + 10 * SECOND && clock.now_ms() >= before.1 + 10_000);
        });
        run.result.unwrap();
    }
}
