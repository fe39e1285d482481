//! The threads of the process: what they are doing, as the kernel tells it, and how urgent that is.

use std::path::Path;
use std::time::Duration;

/// How much less threads want that nobody waits for (the nice value).
const BACKGROUND_NICE: i32 = 10;

/// The calling thread gets what others leave, from now on. A system that refuses leaves it as it is.
pub fn lower_priority() {
    // On Linux the "process" of setpriority is a thread; the calling one here.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), BACKGROUND_NICE);
}

/// Threads by what they do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadStates {
    /// They run, or could.
    pub runnable: u64,
    /// They wait for a disk.
    pub blocked: u64,
    /// They wait for anything else.
    pub waiting: u64,
}

/// Those of this moment. Reads a small file of the kernel for each thread; none where there are no such files.
#[allow(clippy::disallowed_methods, reason = "the kernel's files are no data of ours")]
pub fn states() -> ThreadStates {
    let mut states = ThreadStates::default();
    let Ok(threads) = std::fs::read_dir(Path::new("/proc/self/task")) else { return states };
    for thread in threads.flatten() {
        // One that has ended meanwhile is none.
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

/// Milliseconds of the kernel's ticks, as it tells programs of them on every machine (`USER_HZ`).
const TICK_MS: u64 = 10;

/// Time that the processors gave this process so far, to all of its threads; `None` where the kernel does not say.
#[allow(clippy::disallowed_methods, reason = "the kernel's files are no data of ours")]
pub fn cpu_time() -> Option<Duration> {
    cpu_time_in(&std::fs::read_to_string(Path::new("/proc/self/stat")).ok()?)
}

/// In the program and in the kernel: the twelfth and thirteenth field behind the name.
fn cpu_time_in(stat: &str) -> Option<Duration> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis((ticks()? + ticks()?) * TICK_MS))
}

/// The state stands behind the name, which is in parentheses and may hold anything.
fn state_in(stat: &str) -> Option<char> {
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_stand_behind_names() {
        assert_eq!(state_in("12 (a b) c) S 1 2 3"), Some('S'));
        assert_eq!(state_in("12 (cut"), None);
    }

    #[test]
    fn times_stand_behind_names() {
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
