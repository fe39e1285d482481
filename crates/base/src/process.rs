//! Kernel statistics of this process and its machine: time, files, memory, load. Unavailable values
//! are zero.

use std::path::Path;
use std::time::Duration;

/// A snapshot of the process and its machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Process {
    /// Process id.
    pub id: u32,
    /// CPU time used by the process.
    pub cpu_time: Duration,
    /// Number of threads.
    pub threads: u64,
    /// Number of open files and sockets.
    pub open_files: u64,
    /// Limit on open files and sockets.
    pub open_files_max: u64,
    /// Virtual memory size in bytes.
    pub virtual_bytes: u64,
    /// CPUs available to the process.
    pub cpus: u64,
    /// Load average of the machine over the last minute, in runnable tasks.
    pub load_average: f64,
    /// Total memory of the machine in bytes.
    pub memory_bytes: u64,
    /// Available memory of the machine in bytes.
    pub memory_free_bytes: u64,
    /// Total swap space of the machine in bytes.
    pub swap_bytes: u64,
    /// Free swap space of the machine in bytes.
    pub swap_free_bytes: u64,
}

impl Process {
    /// Takes a snapshot. Reads a few small kernel files.
    pub fn now() -> Process {
        let (status, machine) = (read("/proc/self/status"), read("/proc/meminfo"));
        let open_files_max = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        Process {
            id: std::process::id(),
            cpu_time: crate::threads::cpu_time().unwrap_or_default(),
            threads: value_of("Threads:", &status),
            open_files: entries("/proc/self/fd"),
            open_files_max: open_files_max.unwrap_or(u64::MAX),
            virtual_bytes: value_of("VmSize:", &status) << 10,
            cpus: std::thread::available_parallelism().map_or(1, usize::from) as u64,
            load_average: first_of(&read("/proc/loadavg")),
            memory_bytes: value_of("MemTotal:", &machine) << 10,
            memory_free_bytes: value_of("MemAvailable:", &machine) << 10,
            swap_bytes: value_of("SwapTotal:", &machine) << 10,
            swap_free_bytes: value_of("SwapFree:", &machine) << 10,
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "kernel files, not application data")]
fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(path)).unwrap_or_default()
}

#[allow(clippy::disallowed_methods, reason = "kernel files, not application data")]
fn entries(path: &str) -> u64 {
    std::fs::read_dir(Path::new(path)).map_or(0, |entries| entries.count() as u64)
}

/// The number after a name at the beginning of a line.
fn value_of(name: &str, text: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.and_then(|value| value.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn first_of(text: &str) -> f64 {
    text.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_read() {
        let process = Process::now();
        assert_eq!(process.id, std::process::id());
        assert!(process.threads >= 1 && process.cpus >= 1 && process.open_files >= 3);
        assert!(process.memory_free_bytes <= process.memory_bytes && process.open_files_max > 0);
    }

    #[test]
    fn missing_lines_are_zero() {
        assert_eq!(value_of("VmSize:", "VmPeak:\t 12 kB\nVmSize:\t    34 kB\n"), 34);
        assert_eq!((value_of("VmSize:", ""), first_of("")), (0, 0.0));
    }
}
