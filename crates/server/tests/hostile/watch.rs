//! What others see meanwhile: clients that get a row again and again, and the memory of the server.
#![allow(clippy::disallowed_methods, reason = "the server under test is another process, seen from outside")]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::table::Table;

/// Between two gets of a bystander.
const PAUSE: Duration = Duration::from_millis(2);
/// Bystanders, so that each of the server's threads has some.
const BYSTANDERS: usize = 4;

/// Clients that mind their own business.
pub struct Bystanders {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Seen>>,
}

/// What they saw.
#[derive(Default)]
pub struct Seen {
    latencies: Vec<Duration>,
    /// Answers by which they were sent away for a while.
    pub refused: usize,
}

impl Bystanders {
    pub fn start(table: &Table) -> Bystanders {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..BYSTANDERS).map(|_| {
            let (stop, table) = (stop.clone(), table.clone());
            thread::spawn(move || get_until(&stop, &table))
        });
        Bystanders { threads: threads.collect(), stop }
    }

    pub fn stop(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Seen::default();
        for thread in self.threads {
            let seen = thread.join().expect("bystanders are answered");
            all.latencies.extend(seen.latencies);
            all.refused += seen.refused;
        }
        all.latencies.sort();
        all
    }
}

/// # Panics
/// If a get is not answered, or wrongly.
fn get_until(stop: &AtomicBool, table: &Table) -> Seen {
    let mut connection = Connection::open(table.port).unwrap();
    let mut seen = Seen::default();
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        match connection.call("Get", &table.get(b"bystander"), &[]).unwrap() {
            Ok((_, cells)) => assert!(cells.ends_with(b"untouched"), "{cells:?}"),
            Err(exception) if exception.server_overloaded => seen.refused += 1,
            Err(other) => panic!("a bystander's get: {other:?}"),
        }
        seen.latencies.push(begun.elapsed());
        thread::sleep(PAUSE);
    }
    seen
}

impl Seen {
    /// The latency that this part of the gets did not exceed.
    pub fn quantile(&self, part: f64) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies.get((last as f64 * part) as usize).copied().unwrap_or_default()
    }

    pub fn count(&self) -> usize {
        self.latencies.len()
    }
}

/// The memory of a process: resident now, and at most since the last [`forget_peak`].
pub fn resident_bytes(pid: u32) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    };
    (field("VmRSS"), field("VmHWM"))
}

/// Begins to watch for the most anew. Not every system allows it; the most of all attacks is watched then.
pub fn forget_peak(pid: u32) {
    let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
}
