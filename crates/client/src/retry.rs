//! Pauses between tries, as HBase's client makes them.

use std::time::Duration;

use base::env::Env;

use crate::ClientOptions;
use crate::error::{Error, Reaction, Result};

/// How many times the unit each pause is (`HConstants.RETRY_BACKOFF`); the last one stands for all further.
const BACKOFF: [u32; 13] = [1, 2, 3, 5, 10, 20, 40, 100, 100, 100, 100, 200, 200];

/// The tries of one operation.
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

    /// A try has failed with `error`: waits for the next one, or says that there is none.
    ///
    /// # Errors
    /// `error` itself if trying again is useless, [`Error::Exhausted`] if it was tried often or long enough.
    pub(crate) async fn pause(&mut self, error: Error) -> Result<()> {
        let unit = match error.reaction() {
            Reaction::Fail => return Err(error),
            Reaction::AgainLater => self.options.overloaded_pause.max(self.options.pause),
            Reaction::AgainNow => Duration::ZERO,
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

    /// Something has come through: the next failure is a first one again.
    pub(crate) fn progressed(&mut self) {
        self.failed = 0;
        self.deadline = self.env.clock.monotonic() + self.options.operation_timeout;
    }

    /// Up to a hundredth more, so that clients do not come back all at once.
    fn with_jitter(&self, pause: Duration) -> Duration {
        let thousandths = u32::try_from(self.env.random.next_u64() % 10).expect("below ten");
        pause + pause * thousandths / 1000
    }
}

/// How many units the pause after so many failures is.
pub(crate) fn backoff(failed: u32) -> u32 {
    BACKOFF[usize::try_from(failed).unwrap_or(usize::MAX).min(BACKOFF.len() - 1)]
}
