//! When sinks look, and what becomes of one that fails.
//!
//! Each sink has a thread of low priority, so that one that waits for its peer holds up nobody else. It looks once in
//! a period; what takes longer leaves the periods out that went by meanwhile.

use std::sync::Arc;
use std::time::Duration;

use base::env::{Env, TaskClass};
use base::metrics::Registry;
use base::pool::Pool;
use tokio::runtime::Handle;
use tracing::{info, warn};

use crate::filter::Filter;
use crate::record::{Collector, Records};

/// A sink that goes on failing is not spoken of more often.
const SILENCE: Duration = Duration::from_secs(600);

/// A role of this process, and its beans.
#[derive(Clone)]
pub struct Role {
    /// `Master` or `RegionServer`.
    pub name: &'static str,
    /// What it shows.
    pub registry: Arc<Registry>,
}

/// Where metrics go.
pub(crate) trait Medium: Send {
    /// Sends what a role shows now, from a thread that may wait.
    fn push(&mut self, look: &Look<'_>) -> Result<(), String>;
}

/// A look at a role on behalf of a sink.
pub(crate) struct Look<'a> {
    /// Milliseconds since the epoch.
    pub(crate) at_ms: u64,
    pub(crate) role: &'a Role,
    pub(crate) filter: &'a Filter,
    pub(crate) env: &'a Env,
    // Where sockets live. None: this thread must not wait for one (tests).
    pub(crate) runtime: Option<&'a Handle>,
}

impl Look<'_> {
    /// Hands all records that are wanted to `to`.
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

    /// The monotonic clock.
    pub(crate) fn now(&self) -> Duration {
        self.env.clock.monotonic()
    }

    /// Waits for `future`, but at most `limit`.
    ///
    /// # Panics
    /// On a thread that must not wait.
    pub(crate) fn wait<T>(&self, limit: Duration, future: impl Future<Output = T>) -> Option<T> {
        let runtime = self.runtime.expect("sinks run where they may wait");
        runtime.block_on(self.env.timeout(limit, future))
    }

    /// Lets `time` pass.
    pub(crate) fn pause(&self, time: Duration) {
        if let Some(runtime) = self.runtime {
            // Within: a timer belongs to the runtime where it is made.
            runtime.block_on(async { self.env.clock.sleep(time).await });
        }
    }
}

/// A sink at work.
pub(crate) struct Sink {
    pub(crate) name: String,
    pub(crate) filter: Filter,
    pub(crate) medium: Box<dyn Medium>,
    pub(crate) complaints: Complaints,
}

impl Sink {
    pub(crate) fn new(name: String, filter: Filter, medium: Box<dyn Medium>) -> Sink {
        Sink { name, filter, medium, complaints: Complaints::default() }
    }

    /// Looks at all roles.
    fn push(&mut self, roles: &[Role], env: &Env, runtime: &Handle) {
        let at_ms = env.clock.now_ms();
        let mut failed = None;
        for role in roles {
            let look = Look { at_ms, role, filter: &self.filter, env, runtime: Some(runtime) };
            if let Err(error) = self.medium.push(&look) {
                failed.get_or_insert(error);
            }
        }
        let name = &self.name;
        match self.complaints.note(env.clock.monotonic(), failed.is_some()) {
            Note::Complain => {
                let error = failed.unwrap_or_default();
                warn!(sink = name, error, "metrics cannot be sent; tried again each period");
            }
            Note::Recover => info!(sink = name, "metrics are sent again"),
            Note::Nothing => {}
        }
    }
}

/// Sends metrics each period, until the task is dropped.
pub(crate) fn start(env: &Env, mut sink: Sink, period: Duration, roles: Vec<Role>) {
    let (of_task, roles) = (env.clone(), Arc::new(roles));
    env.spawn(TaskClass::Service, async move {
        let (env, runtime) = (of_task, Handle::current());
        let pool = Pool::background(&format!("sink-{}", sink.name), 1);
        let mut next = env.clock.monotonic() + period;
        loop {
            env.clock.sleep(next.saturating_sub(env.clock.monotonic())).await;
            let (roles, of_job, of_sockets) = (roles.clone(), env.clone(), runtime.clone());
            let job = move || {
                sink.push(&roles, &of_job, &of_sockets);
                sink
            };
            sink = pool.run(job).await;
            next = next_after(next, period, env.clock.monotonic());
        }
    });
}

/// The first time of a schedule that is not over.
fn next_after(last: Duration, period: Duration, now: Duration) -> Duration {
    let late = now.saturating_sub(last + period);
    let left_out = late.as_nanos().div_ceil(period.as_nanos());
    last + period * u32::try_from(left_out + 1).unwrap_or(u32::MAX)
}

/// What of failures is worth a line.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    // When one was told of last.
    last: Option<Duration>,
    // The failure that goes on was told of.
    is_told: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Note {
    Complain,
    Recover,
    Nothing,
}

impl Complaints {
    fn note(&mut self, now: Duration, failed: bool) -> Note {
        if !failed {
            return if std::mem::take(&mut self.is_told) { Note::Recover } else { Note::Nothing };
        }
        let is_silent = self.is_told || self.last.is_some_and(|last| now < last + SILENCE);
        if is_silent {
            return Note::Nothing;
        }
        (self.last, self.is_told) = (Some(now), true);
        Note::Complain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_once_and_flapping_seldom() {
        let mut complaints = Complaints::default();
        let mut note = |seconds, failed| complaints.note(Duration::from_secs(seconds), failed);
        assert_eq!(note(0, false), Note::Nothing);
        assert_eq!(note(10, true), Note::Complain);
        assert_eq!(note(2000, true), Note::Nothing, "once, however long it lasts");
        assert_eq!(note(2010, false), Note::Recover);
        assert_eq!(note(2020, true), Note::Complain);
        assert_eq!(note(2030, false), Note::Recover);
        assert_eq!(note(2040, true), Note::Nothing, "told of a moment ago");
        assert_eq!(note(2050, false), Note::Nothing);
        assert_eq!(note(2620, true), Note::Complain);
    }

    #[test]
    fn periods_that_went_by_are_left_out() {
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
