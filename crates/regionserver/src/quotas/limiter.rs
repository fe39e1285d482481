//! A rate limiter.
//!
//! Usage beyond the available amount becomes a debt, which must be refilled before anything else is
//! allowed. Source: HBase `RateLimiter`, `AverageIntervalRateLimiter`, `FixedIntervalRateLimiter`;
//! but changing a limit does not reset its usage.

/// How a limiter is refilled (`hbase.quota.rate.limiter`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Refill {
    /// Continuously.
    #[default]
    Average,
    /// Completely, at the end of each interval.
    Fixed,
}

/// A limit per interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The amount per interval, at least 1.
    pub limit: i64,
    /// The length of the interval, in milliseconds.
    pub per_ms: i64,
}

/// The available amount of a limit.
#[derive(Clone, Debug)]
pub struct RateLimiter {
    refill: Refill,
    rate: Rate,
    available: i64,
    // Average: time of the last refill. Fixed: time of the next refill.
    refilled_at_ms: Option<i64>,
}

impl RateLimiter {
    /// Starts full.
    pub fn new(refill: Refill, rate: Rate) -> RateLimiter {
        debug_assert!(rate.limit > 0 && rate.per_ms > 0, "a limit of zero is no limit");
        RateLimiter { refill, rate, available: rate.limit, refilled_at_ms: None }
    }

    /// Changes the limit. The difference to a greater limit is available immediately.
    pub fn set_rate(&mut self, rate: Rate) {
        debug_assert!(rate.limit > 0 && rate.per_ms > 0, "a limit of zero is no limit");
        if self.rate.limit < rate.limit {
            let more = rate.limit - self.rate.limit;
            self.available = self.available.saturating_add(more).min(rate.limit);
        }
        self.rate = rate;
    }

    /// Whether `amount` may be used now.
    pub fn allows(&mut self, amount: i64, now_ms: i64) -> bool {
        let refilled = self.refilled(now_ms);
        if refilled == 0 && self.available < amount {
            return false;
        }
        self.available = self.available.saturating_add(refilled).min(self.rate.limit);
        self.available >= amount
    }

    /// Uses `amount`; a negative amount is returned.
    pub fn consume(&mut self, amount: i64) {
        self.available = self.available.saturating_sub(amount);
        if amount < 0 {
            self.available = self.available.min(self.rate.limit);
        }
    }

    /// The available amount; negative for a debt.
    pub fn available(&self) -> i64 {
        self.available
    }

    /// Milliseconds until `amount` may be used.
    pub fn wait_ms(&self, amount: i64, now_ms: i64) -> i64 {
        let Some(refilled_at_ms) = self.refilled_at_ms.filter(|_| amount > self.available) else {
            return 0;
        };
        let lacking = amount.saturating_sub(self.available);
        match self.refill {
            Refill::Average => (lacking as f64 * self.rate.per_ms as f64 / self.rate.limit as f64) as i64,
            Refill::Fixed => {
                // The lacking amount comes with the next refill or, if it exceeds the limit, with a
                // later one.
                let further = (lacking - 1) / self.rate.limit;
                (refilled_at_ms - now_ms).saturating_add(further.saturating_mul(self.rate.per_ms))
            }
        }
    }

    fn refilled(&mut self, now_ms: i64) -> i64 {
        let Rate { limit, per_ms } = self.rate;
        match (self.refill, self.refilled_at_ms) {
            (Refill::Average, None) => {
                self.refilled_at_ms = Some(now_ms);
                limit
            }
            (Refill::Average, Some(last_ms)) => {
                let passed_ms = now_ms.saturating_sub(last_ms);
                let refilled = match passed_ms {
                    passed_ms if passed_ms >= per_ms => limit,
                    passed_ms if passed_ms > 0 => (passed_ms as f64 / per_ms as f64 * limit as f64) as i64,
                    _ => 0,
                };
                if refilled > 0 {
                    self.refilled_at_ms = Some(now_ms);
                }
                refilled
            }
            (Refill::Fixed, Some(next_ms)) if now_ms < next_ms => 0,
            (Refill::Fixed, _) => {
                self.refilled_at_ms = Some(now_ms.saturating_add(per_ms));
                limit
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN_A_SECOND: Rate = Rate { limit: 10, per_ms: 1000 };

    #[test]
    fn an_average_limiter_refills_continuously() {
        let mut limiter = RateLimiter::new(Refill::Average, TEN_A_SECOND);
        assert!(limiter.allows(10, 0));
        assert!(!limiter.allows(11, 0), "never more than the limit");
        limiter.consume(10);
        assert!(!limiter.allows(1, 99));
        assert_eq!(limiter.wait_ms(1, 99), 100);
        assert!(limiter.allows(1, 100));
        assert!(!limiter.allows(2, 199), "counted from the last refill");
        assert!(limiter.allows(2, 200));
        assert!(limiter.allows(10, 5000));
    }

    #[test]
    fn a_fixed_limiter_refills_completely() {
        let mut limiter = RateLimiter::new(Refill::Fixed, TEN_A_SECOND);
        assert!(limiter.allows(1, 100));
        limiter.consume(10);
        assert!(!limiter.allows(1, 1099));
        assert_eq!(limiter.wait_ms(1, 600), 500);
        assert_eq!(limiter.wait_ms(10, 600), 500);
        assert_eq!(limiter.wait_ms(11, 600), 1500, "the second refill is needed");
        assert!(limiter.allows(10, 1100));
    }

    #[test]
    fn a_debt_is_paid_first() {
        let mut limiter = RateLimiter::new(Refill::Average, TEN_A_SECOND);
        assert!(limiter.allows(1, 0));
        limiter.consume(25);
        assert_eq!(limiter.wait_ms(1, 0), 1600);
        assert!(!limiter.allows(1, 1000));
        assert!(limiter.allows(5, 2000));
        limiter.consume(-100);
        assert_eq!(limiter.available(), 10, "returns no more than the limit");
    }

    #[test]
    fn a_changed_limit_keeps_its_usage() {
        let mut limiter = RateLimiter::new(Refill::Average, TEN_A_SECOND);
        assert!(limiter.allows(1, 0));
        limiter.consume(8);
        limiter.set_rate(Rate { limit: 15, per_ms: 1000 });
        assert_eq!(limiter.available(), 7);
        limiter.set_rate(Rate { limit: 5, per_ms: 1000 });
        assert_eq!(limiter.available(), 7, "unchanged until the next refill");
        assert!(limiter.allows(5, 1000));
        assert_eq!(limiter.available(), 5);
    }
}
