//! What the kernel says of this process and its machine: time, files, memory, load. Zero where it does not say.

use std::path::Path;
use std::time::Duration;

/// The process and its machine at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// Time for which processors worked for it.
    pub processor_time: Duration,
    /// Its threads.
    pub threads: u64,
    /// Files and sockets that it has open.
    pub open_files: u64,
    /// How many it may have.
    pub open_files_max: u64,
    /// Bytes of addresses that it has.
    pub virtual_bytes: u64,
    /// Processors that it may use.
    pub processors: u64,
    /// Tasks that wanted one, on average over the last minute, of all processes.
    pub load_average: f64,
    /// Bytes of the machine's memory.
    pub memory_bytes: u64,
    /// Those that could be had.
    pub memory_free_bytes: u64,
    /// Bytes of the machine's swap space.
    pub swap_bytes: u64,
    /// Those that nobody has.
    pub swap_free_bytes: u64,
}

impl Process {
    /// That of this moment. Reads some small files of the kernel.
    pub fn now() -> Process {
        let (status, machine) = (read("/proc/self/status"), read("/proc/meminfo"));
        let open_files_max = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        Process {
            id: std::process::id(),
            processor_time: crate::threads::cpu_time().unwrap_or_default(),
            threads: value_of("Threads:", &status),
            open_files: entries("/proc/self/fd"),
            open_files_max: open_files_max.unwrap_or(u64::MAX),
            virtual_bytes: value_of("VmSize:", &status) << 10,
            processors: std::thread::available_parallelism().map_or(1, usize::from) as u64,
            load_average: first_of(&read("/proc/loadavg")),
            memory_bytes: value_of("MemTotal:", &machine) << 10,
            memory_free_bytes: value_of("MemAvailable:", &machine) << 10,
            swap_bytes: value_of("SwapTotal:", &machine) << 10,
            swap_free_bytes: value_of("SwapFree:", &machine) << 10,
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "the kernel's files are no data of ours")]
fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(path)).unwrap_or_default()
}

#[allow(clippy::disallowed_methods, reason = "the kernel's files are no data of ours")]
fn entries(path: &str) -> u64 {
    std::fs::read_dir(Path::new(path)).map_or(0, |entries| entries.count() as u64)
}

/// The number behind a name at the beginning of a line.
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
    fn this_process_is_told_of() {
        let process = Process::now();
        assert_eq!(process.id, std::process::id());
        assert!(process.threads >= 1 && process.processors >= 1 && process.open_files >= 3);
        assert!(process.memory_free_bytes <= process.memory_bytes && process.open_files_max > 0);
    }

    #[test]
    fn lines_that_are_not_there_are_zero() {
        assert_eq!(value_of("VmSize:", "VmPeak:\t 12 kB\nVmSize:\t    34 kB\n"), 34);
        assert_eq!((value_of("VmSize:", ""), first_of("")), (0, 0.0));
    }
}
