//! Time series of the last hour: a sample of each role every ten seconds, taken by a thread of low
//! priority.
//!
//! A series is declared once, with the function that extracts its value from a sample. Samples read
//! the same sources as the beans, without iterating over regions. They do not end the intervals of
//! other readers' histograms: times cover the interval since the previous sample.

pub(crate) mod master;
pub(crate) mod region_server;

use std::sync::{Arc, Weak};
use std::time::Duration;

use base::env::{Env, TaskClass};
use base::history::{History, Moment, Series, Unit};
use base::metrics::{Histogram, Registry, Snapshot};

/// A series with the function that extracts its value from a sample.
pub(crate) type SampledSeries<S> = (Series, fn(&S) -> Option<f64>);

/// Declares a series.
const fn series<S>(
    name: &'static str,
    unit: Unit,
    help: &'static str,
    value: fn(&S) -> Option<f64>,
) -> SampledSeries<S> {
    (Series { name, unit, help }, value)
}

/// Records the values of `sample` every `period` until the history is dropped. Also calls
/// `end_long_interval` on `metrics`, because they may have no other reader.
pub(crate) fn start_sampling<S: 'static>(
    env: &Env,
    period: Duration,
    metrics: &Arc<Registry>,
    declared: &'static [SampledSeries<S>],
    sample: impl FnMut(Moment) -> S + Send + 'static,
) -> Arc<History> {
    let history = Arc::new(History::new(declared.iter().map(|(series, _)| *series).collect(), period));
    let sampling = take_samples(env.clone(), Arc::downgrade(&history), metrics.clone(), declared, sample);
    env.spawn(TaskClass::Background, sampling);
    history
}

async fn take_samples<S>(
    env: Env,
    history: Weak<History>,
    metrics: Arc<Registry>,
    declared: &'static [SampledSeries<S>],
    mut sample: impl FnMut(Moment) -> S,
) {
    loop {
        let until_next = {
            let Some(history) = history.upgrade() else { return };
            let now = Moment::of(&*env.clock);
            let sample = sample(now);
            let values: Vec<Option<f64>> = declared.iter().map(|(_, value)| value(&sample)).collect();
            history.record(now, &values);
            metrics.end_long_interval();
            history.until_next(now)
        };
        env.clock.sleep(until_next).await;
    }
}

/// The 50th, 99th and 99.9th percentile in microseconds; `None` if there were no measurements.
type Quantiles = [Option<f64>; 3];

/// Percentiles of the times since the previous sample.
#[derive(Default)]
struct IntervalPercentiles {
    before: Snapshot,
}

impl IntervalPercentiles {
    fn since_last(&mut self, times: &Histogram) -> Quantiles {
        let now = times.snapshot();
        let interval = now.since(&self.before);
        self.before = now;
        [0.5, 0.99, 0.999].map(|share| (interval.count() > 0).then(|| interval.quantile(share) as f64))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use base::history::{Rate, SAMPLES};

    use super::*;

    struct Sample {
        reads: Option<f64>,
    }

    const SERIES: &[SampledSeries<Sample>] =
        &[series("reads", Unit::PerSecond, "Rows.", |sample: &Sample| sample.reads)];

    #[tokio::test(start_paused = true)]
    async fn an_hour_is_sampled_with_the_given_clock() {
        let env = base::testing::env(1);
        let (rows, mut rate) = (Arc::new(AtomicU64::new(0)), Rate::default());
        let counted = rows.clone();
        let metrics = Arc::new(Registry::new(env.clock.clone(), "host"));
        let history = start_sampling(&env, Duration::from_secs(10), &metrics, SERIES, move |now| Sample {
            reads: rate.at(now, counted.load(Relaxed)),
        });
        for second in 0..3700_u64 {
            env.clock.sleep(Duration::from_secs(1)).await;
            rows.fetch_add(if second < 1800 { 5 } else { 20 }, Relaxed);
        }
        let window = history.window(Moment::of(&*env.clock));
        let values = window.of("reads");
        assert_eq!(values.iter().filter(|value| value.is_nan()).count(), 0, "{values:?}");
        assert!((values[0] - 5.0).abs() < 0.6 && (values[SAMPLES - 1] - 20.0).abs() < 2.1, "{values:?}");
    }

    #[test]
    fn percentiles_cover_the_time_since_the_previous_sample() {
        let (times, mut percentiles) = (Histogram::new(), IntervalPercentiles::default());
        assert_eq!(percentiles.since_last(&times), [None; 3]);
        (0..1000).for_each(|_| times.record(100));
        times.record(900);
        let [half, most, _] = percentiles.since_last(&times).map(Option::unwrap);
        assert!((half - 100.0).abs() < 5.0 && (most - 100.0).abs() < 5.0, "{half}, {most}");
        assert_eq!(percentiles.since_last(&times), [None; 3]);
    }
}
