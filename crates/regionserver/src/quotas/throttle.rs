//! All limits of one subject: on requests, bytes and capacity units, for reads, writes, and both
//! together.
//!
//! Source: HBase `TimeBasedLimiter`. The order of the checks determines which exception is thrown.

use std::sync::{Mutex, PoisonError};

use proto::exception::{Answer, JavaException, class};

use crate::quotas::limiter::{Rate, RateLimiter, Refill};

/// The usage of a call, or its estimate before the call runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of requests.
    pub requests: i64,
    /// Serialized bytes of cells.
    pub bytes: i64,
    /// Number of capacity units, rounded up.
    pub units: i64,
}

impl Usage {
    fn plus(self, other: Usage) -> Usage {
        Usage {
            requests: self.requests + other.requests,
            bytes: self.bytes + other.bytes,
            units: self.units + other.units,
        }
    }
}

/// The limits of one subject. Unset limits do not restrict calls.
#[derive(Debug)]
pub struct Throttle {
    limits: Mutex<[Limits; 3]>,
}

/// Limits for reads, for writes, or for both.
#[derive(Debug, Default)]
struct Limits {
    requests: Option<RateLimiter>,
    bytes: Option<RateLimiter>,
    units: Option<RateLimiter>,
}

/// Exception messages for exceeded limits. Source: HBase `RpcThrottlingException.MSG_TYPE`.
struct LimitMessages {
    requests: &'static str,
    bytes: &'static str,
    units: &'static str,
}

const BOTH: usize = 0;
const WRITE: usize = 1;
const READ: usize = 2;

const LIMIT_MESSAGES: [LimitMessages; 3] = [
    LimitMessages {
        requests: "number of requests exceeded",
        bytes: "request size limit exceeded",
        units: "request capacity unit exceeded",
    },
    LimitMessages {
        requests: "number of write requests exceeded",
        bytes: "write size limit exceeded",
        units: "write capacity unit exceeded",
    },
    LimitMessages {
        requests: "number of read requests exceeded",
        bytes: "read size limit exceeded",
        units: "read capacity unit exceeded",
    },
];

impl Throttle {
    /// Creates the limits of a message, each full; `None` if the message sets none.
    pub fn new(message: &proto::Throttle, refill: Refill) -> Option<Throttle> {
        let throttle = Throttle { limits: Mutex::default() };
        throttle.update(message, refill);
        let is_set = throttle.lock().iter().any(Limits::is_set);
        is_set.then_some(throttle)
    }

    /// Changes the limits. Limits that stay set keep their usage.
    pub fn update(&self, message: &proto::Throttle, refill: Refill) {
        let mut limits = self.lock();
        let rates = [
            [message.req_num, message.req_size, message.req_capacity_unit],
            [message.write_num, message.write_size, message.write_capacity_unit],
            [message.read_num, message.read_size, message.read_capacity_unit],
        ];
        for (limits, [requests, bytes, units]) in limits.iter_mut().zip(rates) {
            set(&mut limits.requests, requests, refill);
            set(&mut limits.bytes, bytes, refill);
            set(&mut limits.units, units, refill);
        }
    }

    /// Checks whether this amount may be written and read now.
    ///
    /// # Errors
    /// `RpcThrottlingException` with the time to wait.
    pub fn check(&self, write: Usage, read: Usage, now_ms: i64) -> Answer<()> {
        let mut limits = self.lock();
        limits[BOTH].check(write.plus(read), &LIMIT_MESSAGES[BOTH], now_ms)?;
        if write.bytes > 0 {
            limits[WRITE].check(write, &LIMIT_MESSAGES[WRITE], now_ms)?;
        }
        if read.bytes > 0 {
            limits[READ].check(read, &LIMIT_MESSAGES[READ], now_ms)?;
        }
        Ok(())
    }

    /// Uses these amounts; negative ones are returned.
    pub fn consume(&self, write: Usage, read: Usage) {
        let mut limits = self.lock();
        limits[BOTH].consume(write.plus(read));
        limits[WRITE].consume(write);
        limits[READ].consume(read);
    }

    /// Bytes that may still be read.
    pub fn read_available(&self) -> i64 {
        self.lock()[READ].bytes.as_ref().map_or(i64::MAX, RateLimiter::available)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, [Limits; 3]> {
        // The data is only numbers, so it is usable after any panic.
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Limits {
    fn is_set(&self) -> bool {
        self.requests.is_some() || self.bytes.is_some() || self.units.is_some()
    }

    fn check(&mut self, usage: Usage, messages: &LimitMessages, now_ms: i64) -> Answer<()> {
        // As in HBase, the wait is for one request, however many are requested.
        allow(&mut self.requests, usage.requests, 1, messages.requests, now_ms)?;
        allow(&mut self.bytes, usage.bytes, usage.bytes, messages.bytes, now_ms)?;
        allow(&mut self.units, usage.units, usage.units, messages.units, now_ms)
    }

    fn consume(&mut self, usage: Usage) {
        let each = [
            (&mut self.requests, usage.requests),
            (&mut self.bytes, usage.bytes),
            (&mut self.units, usage.units),
        ];
        for (limiter, amount) in each {
            limiter.iter_mut().for_each(|limiter| limiter.consume(amount));
        }
    }
}

fn allow(
    limiter: &mut Option<RateLimiter>,
    amount: i64,
    waited_for: i64,
    message: &str,
    now_ms: i64,
) -> Answer<()> {
    let Some(limiter) = limiter else { return Ok(()) };
    if limiter.allows(amount, now_ms) {
        return Ok(());
    }
    let wait = wait_text(limiter.wait_ms(waited_for, now_ms));
    Err(JavaException::new(class::RPC_THROTTLING, format!("{message} - wait {wait}")))
}

fn set(limiter: &mut Option<RateLimiter>, quota: Option<proto::TimedQuota>, refill: Refill) {
    match (quota.and_then(rate), &mut *limiter) {
        (Some(rate), Some(limiter)) => limiter.set_rate(rate),
        (rate, limiter) => *limiter = rate.map(|rate| RateLimiter::new(refill, rate)),
    }
}

/// The rate of a message. A cluster-wide quota applies to this server alone, because it is the only
/// region server.
fn rate(quota: proto::TimedQuota) -> Option<Rate> {
    let limit = i64::try_from(quota.soft_limit?).ok().filter(|limit| *limit > 0)?;
    let per_ms = match quota.time_unit() {
        proto::TimeUnit::Milliseconds => 1,
        proto::TimeUnit::Seconds => 1000,
        proto::TimeUnit::Minutes => 60_000,
        proto::TimeUnit::Hours => 3_600_000,
        proto::TimeUnit::Days => 86_400_000,
        _ => return None,
    };
    Some(Rate { limit, per_ms })
}

/// Formats a time as clients parse it. Source: HBase `RpcThrottlingException.stringFromMillis`.
fn wait_text(wait_ms: i64) -> String {
    let wait_ms = wait_ms.max(0);
    let parts = [(wait_ms / 3_600_000, "hrs"), (wait_ms / 60_000 % 60, "mins"), (wait_ms / 1000 % 60, "sec")];
    let mut text = String::new();
    for (number, unit) in parts.into_iter().filter(|(number, _)| *number > 0) {
        text.push_str(&format!("{number}{unit}, "));
    }
    text + &format!("{}ms", wait_ms % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(limit: u64, unit: proto::TimeUnit) -> Option<proto::TimedQuota> {
        Some(proto::TimedQuota { time_unit: unit.into(), soft_limit: Some(limit), ..Default::default() })
    }

    const ONE: Usage = Usage { requests: 1, bytes: 100, units: 1 };
    const NONE: Usage = Usage { requests: 0, bytes: 0, units: 0 };

    #[test]
    fn wait_times_are_formatted_as_clients_parse_them() {
        assert_eq!(wait_text(0), "0ms");
        assert_eq!(wait_text(1500), "1sec, 500ms");
        assert_eq!(wait_text(3_600_000), "1hrs, 0ms");
        assert_eq!(wait_text(90_061_001), "25hrs, 1mins, 1sec, 1ms");
    }

    #[test]
    fn the_first_exhausted_limit_is_named() {
        let message = proto::Throttle {
            req_num: quota(3, proto::TimeUnit::Hours),
            read_num: quota(1, proto::TimeUnit::Seconds),
            write_size: quota(150, proto::TimeUnit::Seconds),
            ..Default::default()
        };
        let throttle = Throttle::new(&message, Refill::Average).unwrap();
        let refused = |write, read, now_ms| throttle.check(write, read, now_ms).unwrap_err().message;
        throttle.check(NONE, ONE, 0).unwrap();
        throttle.consume(NONE, ONE);
        assert_eq!(refused(NONE, ONE, 0), "number of read requests exceeded - wait 1sec, 0ms");
        throttle.check(ONE, NONE, 0).unwrap();
        throttle.consume(ONE, NONE);
        assert_eq!(refused(ONE, NONE, 0), "write size limit exceeded - wait 333ms");
        throttle.consume(NONE, ONE);
        assert_eq!(refused(NONE, ONE, 10_000), "number of requests exceeded - wait 20mins, 0ms");
    }

    #[test]
    fn a_message_without_limits_has_no_throttle() {
        assert!(Throttle::new(&proto::Throttle::default(), Refill::Average).is_none());
        let zero = proto::Throttle { req_num: quota(0, proto::TimeUnit::Seconds), ..Default::default() };
        assert!(Throttle::new(&zero, Refill::Average).is_none(), "HBase never stores a zero limit");
    }

    #[test]
    fn an_update_adds_changes_and_removes() {
        let message =
            |read, write| proto::Throttle { read_num: read, write_num: write, ..Default::default() };
        let one = quota(1, proto::TimeUnit::Hours);
        let throttle = Throttle::new(&message(one, None), Refill::Average).unwrap();
        throttle.check(NONE, ONE, 0).unwrap();
        throttle.consume(NONE, ONE);
        throttle.update(&message(one, one), Refill::Average);
        throttle.check(NONE, ONE, 0).unwrap_err();
        throttle.check(ONE, NONE, 0).unwrap();
        throttle.update(&message(None, one), Refill::Average);
        throttle.check(NONE, ONE, 0).unwrap();
    }
}
