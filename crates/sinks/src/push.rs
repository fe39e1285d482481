//! The schedule of sinks, and the handling of their failures.
//!
//! Each sink has a thread of low priority, so that waiting for one receiver delays no other sink.
//! It pushes once per period. If a push takes longer, the periods that passed meanwhile are
//! skipped.

use std::sync::Arc;
use std::time::Duration;

use base::env::{Env, TaskClass};
use base::metrics::Registry;
use base::pool::Pool;
use tokio::runtime::Handle;
use tracing::{info, warn};

use crate::filter::Filter;
use crate::record::{Collector, Records};

/// Minimum time between two log lines about a failing sink.
const SILENCE: Duration = Duration::from_secs(600);

/// A role of this process, and its beans.
#[derive(Clone)]
pub struct Role {
    /// `Master` or `RegionServer`.
    pub name: &'static str,
    /// Its metrics.
    pub registry: Arc<Registry>,
}

/// The transport of a sink.
pub(crate) trait Transport: Send {
    /// Sends the current metrics of a role, on a thread that may block.
    fn push(&mut self, push: &Push<'_>) -> Result<(), String>;
}

/// One push of a role's metrics to a sink.
pub(crate) struct Push<'a> {
    /// The time of the push, in milliseconds since the epoch.
    pub(crate) at_ms: u64,
    pub(crate) role: &'a Role,
    pub(crate) filter: &'a Filter,
    pub(crate) env: &'a Env,
    // The runtime of the sockets. `None`: this thread must not wait for a socket (tests).
    pub(crate) runtime: Option<&'a Handle>,
}

impl Push<'_> {
    /// Passes all selected records to `to`.
    pub(crate) fn records(&self, to: &mut impl Records) {
        let mut collector = Collector::new(self.filter, to);
        self.role.registry.show(&|bean| self.filter.wants_bean(bean), &mut collector);
    }

    pub(crate) fn role(&self) -> &'static str {
        self.role.name
    }

    pub(crate) fn env(&self) -> &Env {
        self.env
    }

    /// The time on the monotonic clock.
    pub(crate) fn now(&self) -> Duration {
        self.env.clock.monotonic()
    }

    /// Waits for `future`, but at most `limit`.
    ///
    /// # Panics
    /// On a thread that must not block.
    pub(crate) fn wait<T>(&self, limit: Duration, future: impl Future<Output = T>) -> Option<T> {
        let runtime = self.runtime.expect("sinks run on threads that may block");
        runtime.block_on(self.env.timeout(limit, future))
    }

    /// Sleeps for `time`.
    pub(crate) fn pause(&self, time: Duration) {
        if let Some(runtime) = self.runtime {
            // Inside the async block: a timer belongs to the runtime in which it is created.
            runtime.block_on(async { self.env.clock.sleep(time).await });
        }
    }
}

/// A running sink.
pub(crate) struct Sink {
    pub(crate) name: String,
    pub(crate) filter: Filter,
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) failure_log: FailureLog,
}

impl Sink {
    pub(crate) fn new(name: String, filter: Filter, transport: Box<dyn Transport>) -> Sink {
        Sink { name, filter, transport, failure_log: FailureLog::default() }
    }

    /// Pushes the metrics of all roles.
    fn push(&mut self, roles: &[Role], env: &Env, runtime: &Handle) {
        let at_ms = env.clock.now_ms();
        let mut failed = None;
        for role in roles {
            let push = Push { at_ms, role, filter: &self.filter, env, runtime: Some(runtime) };
            if let Err(error) = self.transport.push(&push) {
                failed.get_or_insert(error);
            }
        }
        let name = &self.name;
        match self.failure_log.record(env.clock.monotonic(), failed.is_some()) {
            LogDecision::LogFailure => {
                let error = failed.unwrap_or_default();
                warn!(sink = name, error, "metrics cannot be sent; retrying each period");
            }
            LogDecision::LogRecovery => info!(sink = name, "sending metrics again"),
            LogDecision::Silent => {}
        }
    }
}

/// Pushes metrics each period, until the task is dropped.
pub(crate) fn start(env: &Env, mut sink: Sink, period: Duration, roles: Vec<Role>) {
    let (task_env, roles) = (env.clone(), Arc::new(roles));
    env.spawn(TaskClass::Service, async move {
        let (env, runtime) = (task_env, Handle::current());
        let pool = Pool::background(&format!("sink-{}", sink.name), 1);
        let mut next = env.clock.monotonic() + period;
        loop {
            env.clock.sleep(next.saturating_sub(env.clock.monotonic())).await;
            let (roles, job_env, socket_runtime) = (roles.clone(), env.clone(), runtime.clone());
            let job = move || {
                sink.push(&roles, &job_env, &socket_runtime);
                sink
            };
            sink = pool.run(job).await;
            next = next_after(next, period, env.clock.monotonic());
        }
    });
}

/// The first time of a schedule that is not in the past.
fn next_after(last: Duration, period: Duration, now: Duration) -> Duration {
    let late = now.saturating_sub(last + period);
    let skipped = late.as_nanos().div_ceil(period.as_nanos());
    last + period * u32::try_from(skipped + 1).unwrap_or(u32::MAX)
}

/// Decides which failures are logged.
#[derive(Debug, Default)]
pub(crate) struct FailureLog {
    // When a failure was last logged.
    last: Option<Duration>,
    // Whether the current failure was logged.
    is_logged: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum LogDecision {
    LogFailure,
    LogRecovery,
    Silent,
}

impl FailureLog {
    fn record(&mut self, now: Duration, failed: bool) -> LogDecision {
        if !failed {
            return if std::mem::take(&mut self.is_logged) {
                LogDecision::LogRecovery
            } else {
                LogDecision::Silent
            };
        }
        let is_silent = self.is_logged || self.last.is_some_and(|last| now < last + SILENCE);
        if is_silent {
            return LogDecision::Silent;
        }
        (self.last, self.is_logged) = (Some(now), true);
        LogDecision::LogFailure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_logged_once_and_flapping_rarely() {
        let mut failure_log = FailureLog::default();
        let mut record = |seconds, failed| failure_log.record(Duration::from_secs(seconds), failed);
        assert_eq!(record(0, false), LogDecision::Silent);
        assert_eq!(record(10, true), LogDecision::LogFailure);
        assert_eq!(record(2000, true), LogDecision::Silent, "a lasting failure is logged once");
        assert_eq!(record(2010, false), LogDecision::LogRecovery);
        assert_eq!(record(2020, true), LogDecision::LogFailure);
        assert_eq!(record(2030, false), LogDecision::LogRecovery);
        assert_eq!(record(2040, true), LogDecision::Silent, "the last failure was logged recently");
        assert_eq!(record(2050, false), LogDecision::Silent);
        assert_eq!(record(2620, true), LogDecision::LogFailure);
    }

    #[test]
    fn missed_periods_are_skipped() {
        let check = |now_ms, expected_ms| {
            let ms = Duration::from_millis;
            assert_eq!(next_after(ms(100), ms(10), ms(now_ms)), ms(expected_ms), "{now_ms}");
        };
        check(100, 110);
        check(109, 110);
        check(110, 110);
        check(111, 120);
        check(135, 140);
    }
}
