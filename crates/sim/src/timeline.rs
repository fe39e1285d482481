//! What happened in a run: events as text, and a digest over all events.
//!
//! An event of the state (a crash, a partition, a violated invariant) is recorded as text. The far
//! more frequent details (a delivered message, a file operation) only enter the digest, unless
//! [`Detail::All`] is chosen. Equal runs have equal digests, so a test compares two runs by their
//! digests.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Events that are retained for the report of a violation.
const RETAINED: usize = 200;

/// Which events are printed when they happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// None.
    Nothing,
    /// Changes of state.
    States,
    /// Also messages and file operations.
    All,
}

/// An order-dependent hash of numbers and bytes (FNV-1a over 8-byte words, with a final mix).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Adds a number.
    pub fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        self.0 ^= self.0 >> 29;
    }

    /// Adds bytes and their length.
    pub fn add_bytes(&mut self, bytes: &[u8]) {
        self.add(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }

    /// The hash of everything that was added.
    pub fn value(self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// The events of one run.
pub struct Timeline {
    printed: Detail,
    events: Mutex<Events>,
}

#[derive(Default)]
struct Events {
    digest: Digest,
    count: u64,
    last: VecDeque<String>,
}

impl Timeline {
    /// An empty timeline that prints its events to standard output.
    pub fn new(printed: Detail) -> Timeline {
        Timeline { printed, events: Mutex::default() }
    }

    /// Records a change of state of `subject` (a process, `network`, `disk`).
    pub fn record(&self, now: Duration, subject: &str, event: &str) {
        let line = line(now, subject, event);
        let mut events = self.lock();
        events.digest.add_bytes(line.as_bytes());
        events.count += 1;
        if self.printed >= Detail::States {
            println!("{line}");
        }
        if events.last.len() == RETAINED {
            events.last.pop_front();
        }
        events.last.push_back(line);
    }

    /// Records a frequent event: its kind, the paths or names that it concerns, and numbers.
    pub fn detail(&self, now: Duration, subject: &str, kind: &str, text: &str, numbers: &[u64]) {
        let mut events = self.lock();
        events.count += 1;
        events.digest.add(now.as_nanos() as u64);
        for part in [subject, kind, text] {
            events.digest.add_bytes(part.as_bytes());
        }
        for number in numbers {
            events.digest.add(*number);
        }
        if self.printed == Detail::All {
            println!("{}", line(now, subject, &format!("{kind} {text} {numbers:?}")));
        }
    }

    /// The hash of all events so far.
    pub fn digest(&self) -> u64 {
        self.lock().digest.value()
    }

    /// Number of events so far.
    pub fn count(&self) -> u64 {
        self.lock().count
    }

    /// The newest events, the oldest first.
    pub fn last(&self) -> Vec<String> {
        self.lock().last.iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn line(now: Duration, subject: &str, event: &str) -> String {
    let mut line = String::new();
    write!(line, "{:>5}.{:06} {subject:<10} {event}", now.as_secs(), now.subsec_micros())
        .expect("writing to a string never fails");
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_depends_on_each_event_and_their_order() {
        let digest = |events: &[(&str, u64)]| {
            let timeline = Timeline::new(Detail::Nothing);
            for (text, number) in events {
                timeline.detail(Duration::ZERO, "a", "read", text, &[*number]);
            }
            timeline.digest()
        };
        assert_eq!(digest(&[("x", 1), ("y", 2)]), digest(&[("x", 1), ("y", 2)]));
        assert_ne!(digest(&[("x", 1), ("y", 2)]), digest(&[("y", 2), ("x", 1)]));
        assert_ne!(digest(&[("x", 1)]), digest(&[("x", 2)]));
        assert_ne!(digest(&[]), digest(&[("", 0)]));
    }

    #[test]
    fn only_the_newest_events_are_retained() {
        let timeline = Timeline::new(Detail::Nothing);
        for n in 0..RETAINED + 3 {
            timeline.record(Duration::from_micros(n as u64), "a", "event");
        }
        assert_eq!(timeline.last().len(), RETAINED);
        assert!(timeline.last()[0].contains("0.000003 a          event"), "{}", timeline.last()[0]);
        assert_eq!(timeline.count(), RETAINED as u64 + 3);
    }
}
