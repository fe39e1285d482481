//! Calls that arrive twice: a late copy, as after a retry of a client that gave up.

use std::sync::Arc;
use std::time::Duration;

use base::BoxFuture;
use base::env::{Env, TaskClass};
use bytes::Bytes;
use proto::exception::Answer;
use wire::service::Caller;

/// Which calls are repeated: service and method.
pub type IsRepeated = fn(&str, &str) -> bool;

/// Sends some calls a second time later, and ignores the result of the copy. TCP delivers bytes
/// once, but a caller that lost its connection cannot know whether a call was executed, and repeats
/// it.
pub struct DuplicatingCaller<C> {
    inner: Arc<C>,
    env: Env,
    options: DuplicationOptions,
}

/// Which calls are repeated, how often, and when.
#[derive(Clone, Copy, Debug)]
pub struct DuplicationOptions {
    /// The calls that may be repeated.
    pub is_repeated: IsRepeated,
    /// On average, one in this many of them is; not 0.
    pub one_in: u64,
    /// Maximum delay of the copy. Half of the copies have only [`SHORT`] of it.
    pub delay_max: Duration,
}

/// Divides the maximum delay of half of the copies, which then arrive during the operations that
/// follow immediately.
const SHORT: u64 = 64;

impl<C: Caller> DuplicatingCaller<C> {
    /// Wraps `inner`. Copies are sent by tasks of `env`.
    ///
    /// # Panics
    /// If `one_in` is 0.
    pub fn new(inner: C, env: Env, options: DuplicationOptions) -> DuplicatingCaller<C> {
        assert!(options.one_in > 0, "one in `one_in` calls is repeated");
        DuplicatingCaller { inner: Arc::new(inner), env, options }
    }

    fn repeat_later(&self, service: &'static str, method: &'static str, param: Bytes, cells: Bytes) {
        let divisor = if self.env.random.next_u64().is_multiple_of(2) { SHORT } else { 1 };
        let delay_us = self.options.delay_max.as_micros() as u64 / divisor;
        let delay = Duration::from_micros(self.env.random.next_u64() % delay_us.max(1));
        let (inner, clock) = (self.inner.clone(), self.env.clock.clone());
        self.env.spawn(TaskClass::Service, async move {
            clock.sleep(delay).await;
            tracing::info!("repeating {service}.{method} after {delay:?}");
            let _ = inner.call(service, method, param, cells).await;
        });
    }
}

impl<C: Caller> Caller for DuplicatingCaller<C> {
    fn call(
        &self,
        service: &'static str,
        method: &'static str,
        param: Bytes,
        cells: Bytes,
    ) -> BoxFuture<'_, Answer<(Bytes, Bytes)>> {
        if (self.options.is_repeated)(service, method)
            && self.env.random.next_u64().is_multiple_of(self.options.one_in)
        {
            self.repeat_later(service, method, param.clone(), cells.clone());
        }
        self.inner.call(service, method, param, cells)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::world::{World, WorldOptions};

    /// Records the methods that are called, and the virtual times.
    struct Recorder(Arc<Mutex<Vec<(&'static str, Duration)>>>, Env);

    impl Caller for Recorder {
        fn call(
            &self,
            _: &'static str,
            method: &'static str,
            param: Bytes,
            cells: Bytes,
        ) -> BoxFuture<'_, Answer<(Bytes, Bytes)>> {
            self.0.lock().unwrap().push((method, self.1.clock.monotonic()));
            Box::pin(std::future::ready(Ok((param, cells))))
        }
    }

    #[test]
    fn some_calls_arrive_again_later() {
        let run = World::run(WorldOptions::new(1), |world| async move {
            let calls: Arc<Mutex<Vec<_>>> = Arc::default();
            let env = world.add_idle_process("a").start().env;
            let options = DuplicationOptions {
                is_repeated: |service, method| service == "AdminService" && method != "Get",
                one_in: 2,
                delay_max: Duration::from_secs(10),
            };
            let caller = DuplicatingCaller::new(Recorder(calls.clone(), env.clone()), env, options);
            for _ in 0..100 {
                for method in ["OpenRegion", "Get"] {
                    let answer = caller.call("AdminService", method, Bytes::from_static(b"p"), Bytes::new());
                    assert_eq!(answer.await.unwrap().0, "p");
                }
            }
            let first = world.now();
            world.sleep(Duration::from_secs(11)).await;
            let calls = std::mem::take(&mut *calls.lock().unwrap());
            let count = |name| calls.iter().filter(|(method, _)| *method == name).count();
            assert_eq!(count("Get"), 100);
            let late = calls.iter().filter(|(_, at)| *at > first).count();
            (count("OpenRegion") - 100, late)
        });
        let (repeated, late) = run.result.unwrap();
        assert!((25..75).contains(&repeated) && late > repeated / 2, "{repeated}, {late} of them late");
    }
}
