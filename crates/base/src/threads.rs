//! The threads of the process: their states, CPU time and priority, as the kernel reports them.

use std::path::Path;
use std::time::Duration;

/// Nice value of background threads, which no client waits for.
const BACKGROUND_NICE: i32 = 10;

/// Lowers the priority of the calling thread permanently. Does nothing if the system refuses.
pub fn lower_priority() {
    // On Linux the "process" of setpriority is a thread; here the calling one.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), BACKGROUND_NICE);
}

/// Number of threads by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadStates {
    /// Running or ready to run.
    pub runnable: u64,
    /// Waiting for a disk.
    pub blocked: u64,
    /// Waiting for anything else.
    pub waiting: u64,
}

/// The current thread states. Reads a small kernel file per thread; returns zeros where there are
/// no such files.
#[allow(clippy::disallowed_methods, reason = "kernel files, not application data")]
pub fn states() -> ThreadStates {
    let mut states = ThreadStates::default();
    let Ok(threads) = std::fs::read_dir(Path::new("/proc/self/task")) else { return states };
    for thread in threads.flatten() {
        // The thread may have ended in the meantime.
        let Ok(stat) = std::fs::read_to_string(thread.path().join("stat")) else { continue };
        match state_in(&stat) {
            Some('R') => states.runnable += 1,
            Some('D') => states.blocked += 1,
            Some(_) => states.waiting += 1,
            None => {}
        }
    }
    states
}

/// Milliseconds of a kernel tick as reported to programs (`USER_HZ`), the same on every machine.
const TICK_MS: u64 = 10;

/// CPU time that all threads of this process have used so far; `None` if the kernel does not report
/// it.
#[allow(clippy::disallowed_methods, reason = "kernel files, not application data")]
pub fn cpu_time() -> Option<Duration> {
    cpu_time_in(&std::fs::read_to_string(Path::new("/proc/self/stat")).ok()?)
}

/// User plus system time: the twelfth and thirteenth field after the name.
fn cpu_time_in(stat: &str) -> Option<Duration> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis((ticks()? + ticks()?) * TICK_MS))
}

/// The state follows the name, which is in parentheses and may contain any characters.
fn state_in(stat: &str) -> Option<char> {
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_follow_names() {
        assert_eq!(state_in("12 (a b) c) S 1 2 3"), Some('S'));
        assert_eq!(state_in("12 (cut"), None);
    }

    #[test]
    fn times_follow_names() {
        let stat = "12 (a b) c) S 1 2 3 4 5 6 7 8 9 10 150 25 0 0";
        assert_eq!(cpu_time_in(stat), Some(Duration::from_millis(1750)));
        assert_eq!(cpu_time_in("12 (cut) S 1 2"), None);
    }

    #[test]
    fn this_thread_runs() {
        assert!(states().runnable >= 1);
        assert!(cpu_time().is_some());
    }
}
