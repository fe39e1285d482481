//! What other users see during an attack: clients that repeatedly get a row, and the server's
//! memory.
#![allow(clippy::disallowed_methods, reason = "the server under test is another process")]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::table::Table;

/// Pause between two gets of a bystander.
const PAUSE: Duration = Duration::from_millis(2);
/// Number of bystanders, enough for each of the server's threads to have some.
const BYSTANDERS: usize = 4;

/// Well-behaved clients.
pub struct Bystanders {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Measurements>>,
}

/// The measurements of the bystanders.
#[derive(Default)]
pub struct Measurements {
    latencies: Vec<Duration>,
    /// Number of overload responses.
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

    pub fn stop(self) -> Measurements {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Measurements::default();
        for thread in self.threads {
            let measured = thread.join().expect("bystanders get responses");
            all.latencies.extend(measured.latencies);
            all.refused += measured.refused;
        }
        all.latencies.sort();
        all
    }
}

/// # Panics
/// If a get fails or returns a wrong value.
fn get_until(stop: &AtomicBool, table: &Table) -> Measurements {
    let mut connection = Connection::open(table.port).unwrap();
    let mut measured = Measurements::default();
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        match connection.call("Get", &table.get(b"bystander"), &[]).unwrap() {
            Ok((_, cells)) => assert!(cells.ends_with(b"untouched"), "{cells:?}"),
            Err(exception) if exception.server_overloaded => measured.refused += 1,
            Err(other) => panic!("a bystander's get: {other:?}"),
        }
        measured.latencies.push(begun.elapsed());
        thread::sleep(PAUSE);
    }
    measured
}

impl Measurements {
    /// The latency that this fraction of the gets did not exceed.
    pub fn quantile(&self, part: f64) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies.get((last as f64 * part) as usize).copied().unwrap_or_default()
    }

    pub fn count(&self) -> usize {
        self.latencies.len()
    }
}

/// The resident memory of a process: at present, and the peak since the last [`forget_peak`].
pub fn resident_bytes(pid: u32) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    };
    (field("VmRSS"), field("VmHWM"))
}

/// Resets the peak. Some systems do not allow it; then the peak covers all attacks so far.
pub fn forget_peak(pid: u32) {
    let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
}
