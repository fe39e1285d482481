//! Retries with the same pauses as HBase's client.

use std::time::Duration;

use base::env::Env;

use crate::ClientOptions;
use crate::error::{Error, Reaction, Result};

/// Pauses as multiples of the unit (`HConstants.RETRY_BACKOFF`). The last one applies to all
/// further attempts.
const BACKOFF: [u32; 13] = [1, 2, 3, 5, 10, 20, 40, 100, 100, 100, 100, 200, 200];

/// Retry state of one operation.
pub(crate) struct Retry<'a> {
    env: &'a Env,
    options: &'a ClientOptions,
    deadline: Duration,
    failed: u32,
}

impl<'a> Retry<'a> {
    pub(crate) fn new(env: &'a Env, options: &'a ClientOptions) -> Retry<'a> {
        Retry { env, options, deadline: env.clock.monotonic() + options.operation_timeout, failed: 0 }
    }

    /// Waits for the next attempt after one failed with `error`.
    ///
    /// # Errors
    /// `error` itself if a retry is useless, [`Error::Exhausted`] if the attempts or the time are
    /// used up.
    pub(crate) async fn pause(&mut self, error: Error) -> Result<()> {
        let unit = match error.reaction() {
            Reaction::Fail => return Err(error),
            Reaction::RetryOverloaded => self.options.overloaded_pause.max(self.options.pause),
            Reaction::RetryImmediately => Duration::ZERO,
            _ => self.options.pause,
        };
        let pause = self.with_jitter(unit * backoff(self.failed));
        self.failed += 1;
        let late = self.env.clock.monotonic() + pause >= self.deadline;
        if self.failed > self.options.retries_max || late {
            return Err(Error::Exhausted { attempts: self.failed, last: Box::new(error) });
        }
        self.env.clock.sleep(pause).await;
        Ok(())
    }

    /// Runs `lookup` until the operation's deadline at most.
    ///
    /// # Errors
    /// Those of `lookup`, and [`Error::Exhausted`] after the deadline.
    pub(crate) async fn within<T>(&self, lookup: impl Future<Output = Result<T>>) -> Result<T> {
        let left = self.deadline.saturating_sub(self.env.clock.monotonic());
        self.env.timeout(left, lookup).await.unwrap_or_else(|| {
            let last = Error::Registry("no response within the operation's timeout".into());
            Err(Error::Exhausted { attempts: self.failed + 1, last: Box::new(last) })
        })
    }

    /// Resets the attempts and the deadline after progress.
    pub(crate) fn progressed(&mut self) {
        self.failed = 0;
        self.deadline = self.env.clock.monotonic() + self.options.operation_timeout;
    }

    /// Adds up to 1 %, so that clients do not all retry at the same time.
    fn with_jitter(&self, pause: Duration) -> Duration {
        let thousandths = u32::try_from(self.env.random.next_u64() % 10).expect("less than 10");
        pause + pause * thousandths / 1000
    }
}

/// The pause after `failed` failures, as a multiple of the unit.
pub(crate) fn backoff(failed: u32) -> u32 {
    BACKOFF[usize::try_from(failed).unwrap_or(usize::MAX).min(BACKOFF.len() - 1)]
}
