//! What is kept of the last hour: a sample of each role every ten seconds, by a thread of low priority.
//!
//! A series is declared once, with the way its value is taken from a sample. Samples are read where the beans are
//! read, without going through regions, and end nobody's intervals: times are told of the time since the sample
//! before.

pub(crate) mod master;
pub(crate) mod region_server;

use std::sync::{Arc, Weak};
use std::time::Duration;

use base::env::{Env, TaskClass};
use base::history::{History, Moment, Series, Unit};
use base::metrics::{Histogram, Registry, Snapshot};

/// A series, and its value in a sample.
pub(crate) type Declared<S> = (Series, fn(&S) -> Option<f64>);

/// Declares a series.
const fn series<S>(
    name: &'static str,
    unit: Unit,
    help: &'static str,
    value: fn(&S) -> Option<f64>,
) -> Declared<S> {
    (Series { name, unit, help }, value)
}

/// Keeps what `sample` says, every `period`, for as long as somebody has the history; `metrics` keep up with what is counted, though
/// nobody may look at them.
pub(crate) fn keep<S: 'static>(
    env: &Env,
    period: Duration,
    metrics: &Arc<Registry>,
    declared: &'static [Declared<S>],
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
    declared: &'static [Declared<S>],
    mut sample: impl FnMut(Moment) -> S,
) {
    loop {
        let until_next = {
            let Some(history) = history.upgrade() else { return };
            let now = Moment::of(&*env.clock);
            let sample = sample(now);
            let values: Vec<Option<f64>> = declared.iter().map(|(_, value)| value(&sample)).collect();
            history.note(now, &values);
            metrics.keep_up();
            history.until_next(now)
        };
        env.clock.sleep(until_next).await;
    }
}

/// Half of some times were no longer than the first of these, in microseconds; of a hundred 99; of a thousand 999.
/// None where there were none.
type Quantiles = [Option<f64>; 3];

/// Times since the sample before.
#[derive(Default)]
struct Spread {
    before: Snapshot,
}

impl Spread {
    fn of(&mut self, times: &Histogram) -> Quantiles {
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

    const SERIES: &[Declared<Sample>] =
        &[series("reads", Unit::PerSecond, "Rows.", |sample: &Sample| sample.reads)];

    #[tokio::test(start_paused = true)]
    async fn an_hour_is_sampled_by_the_clock_that_is_handed_in() {
        let env = base::testing::env(1);
        let (rows, mut rate) = (Arc::new(AtomicU64::new(0)), Rate::default());
        let counted = rows.clone();
        let metrics = Arc::new(Registry::new(env.clock.clone(), "host"));
        let history = keep(&env, Duration::from_secs(10), &metrics, SERIES, move |now| Sample {
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
    fn times_are_those_since_the_sample_before() {
        let (times, mut spread) = (Histogram::new(), Spread::default());
        assert_eq!(spread.of(&times), [None; 3]);
        (0..1000).for_each(|_| times.record(100));
        times.record(900);
        let [half, most, _] = spread.of(&times).map(Option::unwrap);
        assert!((half - 100.0).abs() < 5.0 && (most - 100.0).abs() < 5.0, "{half}, {most}");
        assert_eq!(spread.of(&times), [None; 3]);
    }
}
