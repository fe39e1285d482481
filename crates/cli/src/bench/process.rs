//! Resources used by the server's process, if it runs on this machine.

use std::fs;

/// The kernel's unit of CPU time (`USER_HZ`, 100 on every Linux).
const TICKS_PER_SECOND: f64 = 100.0;

/// A process of this machine.
#[derive(Debug, Clone, Copy)]
pub struct Process {
    /// Process ID.
    pub pid: u32,
}

/// Resources that a process uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    /// CPU time of all threads since the start, in user and system mode.
    pub cpu_seconds: f64,
    /// Current resident memory.
    pub resident_mib: f64,
}

impl Process {
    /// Reads the current usage.
    ///
    /// # Errors
    /// A message for the user, if there is no such process.
    pub fn usage(self) -> Result<Usage, String> {
        let read = |file: &str| {
            let path = format!("/proc/{}/{file}", self.pid);
            fs::read_to_string(&path).map_err(|error| format!("process {}: {path}: {error}", self.pid))
        };
        let (stat, status) = (read("stat")?, read("status")?);
        let usage = cpu_seconds(&stat).zip(resident_mib(&status));
        let (cpu_seconds, resident_mib) = usage.ok_or_else(|| format!("process {} has ended", self.pid))?;
        Ok(Usage { cpu_seconds, resident_mib })
    }
}

/// The sum of `utime` and `stime`, the 14th and 15th fields of `/proc/PID/stat`. The second field
/// is a name in parentheses that may contain spaces.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS_PER_SECOND)
}

fn resident_mib(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_brackets_and_blanks() {
        let stat = "17 (a) (b c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20";
        assert_eq!(cpu_seconds(stat), Some(3.0));
    }

    #[test]
    fn this_process_has_used_cpu_and_memory() {
        let usage = Process { pid: std::process::id() }.usage().expect("this process exists");
        assert!(usage.resident_mib > 0.1 && usage.cpu_seconds >= 0.0);
    }

    #[test]
    fn a_missing_process_is_named_in_the_error() {
        let error = Process { pid: u32::MAX }.usage().expect_err("no such process");
        assert!(error.contains("4294967295"), "{error}");
    }
}
