//! Runs of many seeds, each in a process of its own.
//!
//! In one process, a seed can take another course than alone: tokio wakes the receivers of a watch
//! channel in an order that depends on the threads that the process has had before.

use std::collections::BTreeMap;
use std::ops::Range;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Run;
use crate::scenario::Summary;
use crate::timeline::Digest;

/// The first line of the text of an outcome.
const HEADER: &str = "outcome";

/// The result of a run, as its process reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Hash of all events.
    pub digest: u64,
    /// Virtual time at the end.
    pub took: Duration,
    /// Acknowledged writes.
    pub writes: u64,
    /// What kind of run it was, for statistics; may be empty.
    pub kind: String,
    /// The violated invariant, or the message of a panic.
    pub failure: Option<String>,
    /// The newest events of a run with a violation.
    pub last: Vec<String>,
}

impl Outcome {
    /// The outcome of a run.
    pub fn of(run: &Run<Result<Summary, String>>) -> Outcome {
        let (summary, failure) = match &run.result {
            Ok(Ok(summary)) => (summary.clone(), None),
            Ok(Err(violation)) => (Summary::default(), Some(violation.clone())),
            Err(panic) => (Summary::default(), Some(format!("a task panicked: {panic}"))),
        };
        Outcome {
            digest: run.digest,
            took: run.took,
            writes: summary.writes,
            kind: summary.kind,
            last: if failure.is_some() { run.last.clone() } else { Vec::new() },
            failure: failure.map(|failure| failure.replace('\n', " ")),
        }
    }

    /// The text that [`Outcome::parse`] reads.
    pub fn to_text(&self) -> String {
        let Outcome { digest, took, writes, kind, failure, last } = self;
        let failure = failure.as_deref().unwrap_or_default();
        let first = format!("{HEADER}\t{digest}\t{}\t{writes}\t{kind}\t{failure}", took.as_nanos());
        [&[first], &last[..]].concat().join("\n")
    }

    /// Reads an outcome; `None` if the text is not one.
    pub fn parse(text: &str) -> Option<Outcome> {
        let mut lines = text.lines();
        let mut fields = lines.next()?.split('\t');
        (fields.next()? == HEADER).then_some(())?;
        let mut number = || fields.next()?.parse::<u64>().ok();
        let (digest, nanos, writes) = (number()?, number()?, number()?);
        let (kind, failure) = (fields.next()?.to_string(), fields.next()?);
        Some(Outcome {
            digest,
            took: Duration::from_nanos(nanos),
            writes,
            kind,
            failure: (!failure.is_empty()).then(|| failure.to_string()),
            last: lines.map(str::to_string).collect(),
        })
    }
}

/// A batch of runs.
pub struct Batch<F> {
    /// The seeds.
    pub seeds: Range<u64>,
    /// Processes at the same time.
    pub jobs: usize,
    /// Whether the batch continues after a violation.
    pub continues: bool,
    /// The command that runs a seed and prints its outcome.
    pub command: F,
}

/// The results of a batch.
#[derive(Debug, Default)]
pub struct Results {
    /// Number of runs.
    pub seeds: u64,
    /// Acknowledged writes.
    pub writes: u64,
    /// Virtual time of all runs.
    pub virtual_time: Duration,
    /// Of the digests in the order of their seeds, whatever the order in which the runs ended.
    pub digest: u64,
    /// Number of runs of each kind.
    pub kinds: BTreeMap<String, u64>,
    /// The seeds with violations.
    pub failed: BTreeMap<u64, Failed>,
}

/// A seed with a violation.
#[derive(Debug)]
pub struct Failed {
    /// The outcome.
    pub outcome: Outcome,
    /// Whether a second run was equal.
    pub replays: bool,
}

impl<F: Fn(u64) -> Command + Sync> Batch<F> {
    /// Runs the seeds, until all have ended or one has failed.
    #[allow(clippy::disallowed_methods, reason = "waits for processes on threads of its own")]
    pub fn run(&self) -> Results {
        let (next, results) = (AtomicU64::new(self.seeds.start), Mutex::new(Results::default()));
        std::thread::scope(|scope| {
            for _ in 0..self.jobs {
                scope.spawn(|| self.run_next(&next, &results));
            }
        });
        results.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_next(&self, next: &AtomicU64, results: &Mutex<Results>) {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= self.seeds.end {
                return;
            }
            let outcome = self.run_one(seed);
            if outcome.failure.is_none() {
                lock(results).add(seed, outcome);
                continue;
            }
            if !self.continues {
                next.store(self.seeds.end, Ordering::Relaxed);
            }
            let replays = self.run_one(seed) == outcome;
            let mut results = lock(results);
            results.add(seed, outcome.clone());
            results.failed.insert(seed, Failed { outcome, replays });
        }
    }

    fn run_one(&self, seed: u64) -> Outcome {
        let failed = |failure: String| Outcome {
            digest: 0,
            took: Duration::ZERO,
            writes: 0,
            kind: String::new(),
            failure: Some(failure),
            last: Vec::new(),
        };
        match (self.command)(seed).output() {
            Ok(output) => {
                let printed = String::from_utf8_lossy(&output.stdout);
                let ended = || failed(format!("the process ended with {}", output.status));
                Outcome::parse(&printed).unwrap_or_else(ended)
            }
            Err(error) => failed(format!("the process cannot be started: {error}")),
        }
    }
}

impl Results {
    fn add(&mut self, seed: u64, outcome: Outcome) {
        let mut digest = Digest::default();
        digest.add(seed);
        digest.add(outcome.digest);
        self.digest = self.digest.wrapping_add(digest.value());
        self.seeds += 1;
        self.writes += outcome.writes;
        self.virtual_time += outcome.took;
        if !outcome.kind.is_empty() {
            *self.kinds.entry(outcome.kind).or_default() += 1;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(failure: Option<&str>) -> Outcome {
        Outcome {
            digest: u64::MAX,
            took: Duration::from_millis(1500),
            writes: 7,
            kind: "Split".to_string(),
            failure: failure.map(str::to_string),
            last: failure.iter().map(|_| "1.0 server1 starts".to_string()).collect(),
        }
    }

    #[test]
    fn outcomes_can_be_read_back() {
        for outcome in [outcome(None), outcome(Some("violated: a: b"))] {
            assert_eq!(Outcome::parse(&outcome.to_text()), Some(outcome));
        }
        assert_eq!(Outcome::parse(""), None);
        assert_eq!(Outcome::parse("thread 'main' panicked"), None);
    }

    fn echo(text: &str) -> Command {
        let mut command = Command::new("printf");
        command.args(["%s", text]);
        command
    }

    fn batch(continues: bool) -> Results {
        let command = |seed| match seed {
            0..5 => echo(&outcome(None).to_text()),
            5..7 => echo(&outcome(Some("violated: a: b")).to_text()),
            _ => echo("not an outcome"),
        };
        Batch { seeds: 3..8, jobs: 1, continues, command }.run()
    }

    #[test]
    fn a_batch_ends_at_the_first_violation_unless_it_continues() {
        let first = batch(false);
        assert_eq!((first.seeds, first.failed.keys().copied().collect::<Vec<_>>()), (3, vec![5]));
        let all = batch(true);
        assert_eq!((all.seeds, all.writes, all.kinds["Split"]), (5, 28, 4));
        assert_eq!(all.failed.keys().copied().collect::<Vec<_>>(), [5, 6, 7]);
        assert!(all.failed.values().all(|failed| failed.replays));
        assert!(all.failed[&7].outcome.failure.as_ref().unwrap().starts_with("the process ended with"));
    }
}
