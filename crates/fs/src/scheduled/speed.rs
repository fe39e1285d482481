//! The measured speed of a device: averages in which recent requests count most.

use std::time::Duration;

use super::device_class::DeviceClass;

/// After this much busy time a measurement has lost 63 % of its weight. A change of the speed is
/// seen within four times that, one second.
const MEMORY: Duration = Duration::from_millis(250);
/// The same for an idle device, whose speed is then again the expected one. Otherwise a device that
/// was slow once would never be used again.
const IDLE_MEMORY: Duration = Duration::from_secs(60);

/// A ratio of two sums, both of which decay.
#[derive(Clone, Copy, Debug, Default)]
struct Ratio {
    sum: f64,
    weight: f64,
}

impl Ratio {
    fn decay(&mut self, factor: f64) {
        self.sum *= factor;
        self.weight *= factor;
    }

    /// The ratio, with `expected` in place of the part of the weight that is `missing`.
    fn value(&self, expected: f64, missing: f64) -> f64 {
        let (sum, weight) = (self.sum + expected * missing, self.weight + missing);
        if weight > 0.0 { sum / weight } else { expected }
    }
}

/// The speed of a device. Costs are bytes, plus a number of bytes for each access.
#[derive(Debug)]
pub(super) struct Speed {
    expected: f64,
    max: f64,
    // Up to when the time is counted.
    updated: Duration,
    cost_per_s: Ratio,
    bytes_per_s: Ratio,
    latency_s: Ratio,
    service_s: Ratio,
}

impl Speed {
    pub(super) fn new(class: &DeviceClass, now: Duration) -> Speed {
        let expected = class.bytes_per_s as f64;
        let weight = MEMORY.as_secs_f64();
        Speed {
            expected,
            max: class.max_bytes_per_s as f64,
            updated: now,
            cost_per_s: Ratio { sum: expected * weight, weight },
            bytes_per_s: Ratio::default(),
            latency_s: Ratio::default(),
            service_s: Ratio::default(),
        }
    }

    /// Counts the time until `now`, in which the device was busy or idle.
    pub(super) fn pass(&mut self, now: Duration, is_busy: bool) {
        let elapsed = now.saturating_sub(self.updated).as_secs_f64();
        self.updated = self.updated.max(now);
        if elapsed == 0.0 {
            return;
        }
        if !is_busy {
            self.cost_per_s = self.after_idle(elapsed);
            return;
        }
        let left = (-elapsed / MEMORY.as_secs_f64()).exp();
        for ratio in [&mut self.cost_per_s, &mut self.bytes_per_s, &mut self.latency_s, &mut self.service_s] {
            ratio.decay(left);
        }
        self.cost_per_s.weight += elapsed;
        self.bytes_per_s.weight += elapsed;
    }

    /// The cost per second after a number of idle seconds.
    fn after_idle(&self, elapsed: f64) -> Ratio {
        let left = (-elapsed / IDLE_MEMORY.as_secs_f64()).exp();
        let missing = MEMORY.as_secs_f64() * (1.0 - left);
        let Ratio { sum, weight } = self.cost_per_s;
        Ratio { sum: sum * left + self.expected * missing, weight: weight * left + missing }
    }

    /// Counts a completed request. Returns the part of its cost that no device of the class can
    /// have transferred meanwhile.
    pub(super) fn complete(&mut self, bytes: u64, cost: u64, latency: Duration, service: Duration) -> u64 {
        self.bytes_per_s.sum += bytes as f64;
        for (ratio, time) in [(&mut self.latency_s, latency), (&mut self.service_s, service)] {
            ratio.sum += time.as_secs_f64();
            ratio.weight += 1.0;
        }
        let costs = &mut self.cost_per_s;
        costs.sum += cost as f64;
        let excess = (costs.sum - self.max * costs.weight).clamp(0.0, cost as f64);
        costs.sum -= excess;
        excess as u64
    }

    /// Cost per second of a busy device. If it has been idle until `idle_until`, the measurement is
    /// that much older: without this, a device that was slow and gets no requests would stay slow.
    pub(super) fn cost_per_s(&self, idle_until: Option<Duration>) -> f64 {
        let idle = idle_until.map_or(Duration::ZERO, |now| now.saturating_sub(self.updated));
        self.after_idle(idle.as_secs_f64()).value(self.expected, 0.0).clamp(1.0, self.max)
    }

    /// Bytes per second of a busy device.
    pub(super) fn bytes_per_s(&self) -> f64 {
        self.bytes_per_s.value(0.0, 0.0)
    }

    /// Average time from the arrival of a request to its completion.
    pub(super) fn latency(&self) -> Duration {
        Duration::from_secs_f64(self.latency_s.value(0.0, 0.0))
    }

    /// Average time in service.
    pub(super) fn service_time(&self) -> Duration {
        Duration::from_secs_f64(self.service_s.value(0.0, 0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn run(speed: &mut Speed, from: Duration, requests: u32, cost: u64, each: Duration) -> Duration {
        let mut now = from;
        for _ in 0..requests {
            now += each;
            speed.pass(now, true);
            speed.complete(cost, cost, each * 2, each);
        }
        now
    }

    #[test]
    fn the_speed_is_that_of_the_last_second() {
        let mut speed = Speed::new(&DeviceClass::hdd(), Duration::ZERO);
        assert!((speed.cost_per_s(None) - 127e6).abs() < 1.0);
        let now = run(&mut speed, Duration::ZERO, 100, 1_000_000, 10 * MS);
        assert!((speed.cost_per_s(None) / 100e6 - 1.0).abs() < 0.02, "{}", speed.cost_per_s(None));
        run(&mut speed, now, 10, 1_000_000, 100 * MS);
        assert!((speed.cost_per_s(None) / 10e6 - 1.0).abs() < 0.25, "{}", speed.cost_per_s(None));
        assert!(speed.latency() > 160 * MS && speed.service_time() > 80 * MS);
    }

    #[test]
    fn responses_of_the_page_cache_do_not_count() {
        let mut speed = Speed::new(&DeviceClass::hdd(), Duration::ZERO);
        let excess = speed.complete(1 << 30, 1 << 30, Duration::ZERO, Duration::ZERO);
        assert!(excess > 900 << 20, "{excess}");
        assert!((speed.cost_per_s(None) / 300e6 - 1.0).abs() < 0.01);
        run(&mut speed, Duration::ZERO, 100, 1_000_000, 10 * MS);
        assert!((speed.cost_per_s(None) / 100e6 - 1.0).abs() < 0.05);
    }

    #[test]
    fn an_idle_device_is_expected_to_recover() {
        let mut speed = Speed::new(&DeviceClass::hdd(), Duration::ZERO);
        let now = run(&mut speed, Duration::ZERO, 30, 1_000_000, 1000 * MS);
        assert!(speed.cost_per_s(None) < 2e6);
        let later = now + Duration::from_secs(600);
        // Also before the next request.
        let expected = speed.cost_per_s(Some(later));
        speed.pass(later, false);
        assert!(speed.cost_per_s(None) > 50e6, "{}", speed.cost_per_s(None));
        assert!((speed.cost_per_s(None) / expected - 1.0).abs() < 1e-9);
    }
}
