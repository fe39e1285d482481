//! The memory limit of the process: that of its control group, else the machine's memory.

use std::path::{Component, Path, PathBuf};

// Assumed if no limit can be determined: too low is slow, too high risks an out-of-memory kill.
const ASSUMED_BYTES: u64 = 1 << 30;

/// Bytes of memory that this process may use. Reads a few small kernel files; meant for process
/// start.
pub fn limit_bytes() -> u64 {
    limit_below(Path::new("/"))
}

/// Resident bytes of this process, including shared pages; `None` if the kernel does not report
/// them.
pub fn resident_bytes() -> Option<u64> {
    // `status` has the same number, but the kernel needs five times as long to write it.
    let text = read(Path::new("/proc/self/statm"))?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    pages.checked_mul(u64::try_from(rustix::param::page_size()).ok()?)
}

// The same, with the kernel's files below `root`.
fn limit_below(root: &Path) -> u64 {
    let group = group_limit(root);
    let machine = machine_memory(root);
    group.into_iter().chain(machine).min().unwrap_or(ASSUMED_BYTES)
}

// Kernel files, not application data.
#[allow(clippy::disallowed_methods)]
fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

// Parses a line whose value the kernel states in kB.
fn bytes_of(name: &str, text: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn machine_memory(root: &Path) -> Option<u64> {
    let text = read(&root.join("proc/meminfo"))?;
    bytes_of("MemTotal:", &text)
}

// The lowest limit of the group and its ancestors. Lines are `number:controllers:path`; cgroup
// version 2 has one, `0::`.
fn group_limit(root: &Path) -> Option<u64> {
    let groups = read(&root.join("proc/self/cgroup")).unwrap_or_default();
    let mut tightest = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (mount, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            other if other.split(',').any(|name| name == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let limit = tightest_from(&root.join(mount), path, file);
        tightest = tightest.into_iter().chain(limit).min();
    }
    tightest
}

// The lowest limit in `mount`/`path` and every directory above it, up to `mount`. In a container
// the path may be a host path that is not visible here; then the mount itself is the container's
// group.
fn tightest_from(mount: &Path, path: &str, file: &str) -> Option<u64> {
    let normal = |part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    };
    let below: PathBuf = Path::new(path).components().filter_map(normal).collect();
    // `max` does not parse as a number and so is no limit.
    let limit = |dir: &Path| read(&mount.join(dir).join(file))?.trim().parse::<u64>().ok();
    below.ancestors().filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the given kernel files and checks the resulting limit.
    #[allow(clippy::disallowed_methods)] // The files of a test.
    fn check(name: &str, files: &[(&str, &str)], expected: u64) {
        let root = std::env::temp_dir().join(format!("grampus-memory-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let found = limit_below(&root);
        let _ = std::fs::remove_dir_all(&root);
        assert_eq!(found, expected, "{name}");
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:       16384000 kB\nMemFree:   1 kB\n");
    const MACHINE: u64 = 16_384_000 * 1024;

    #[test]
    fn limits_of_groups_and_machines() {
        check("nothing", &[], ASSUMED_BYTES);
        check("machine", &[MEMINFO], MACHINE);
        let group = ("proc/self/cgroup", "0::/a/b\n");
        let unlimited = ("sys/fs/cgroup/a/b/memory.max", "max\n");
        check("unlimited", &[MEMINFO, group, unlimited], MACHINE);
        let parent = ("sys/fs/cgroup/a/memory.max", "1073741824\n");
        check("parent", &[MEMINFO, group, unlimited, parent], 1 << 30);
        let own = ("sys/fs/cgroup/a/b/memory.max", "536870912\n");
        check("own", &[MEMINFO, group, own, parent], 1 << 29);
        let generous = ("sys/fs/cgroup/a/b/memory.max", "9223372036854771712\n");
        check("generous", &[MEMINFO, group, generous], MACHINE);
    }

    #[test]
    fn containers_and_the_first_version() {
        let outside = ("proc/self/cgroup", "0::/../../elsewhere\n");
        check("outside", &[MEMINFO, outside, ("sys/fs/cgroup/memory.max", "4194304\n")], 4 << 20);
        let first = ("proc/self/cgroup", "3:cpu,cpuacct:/x\n2:memory:/docker/1\n1:name=systemd:/y\n");
        let limit = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n");
        check("first", &[MEMINFO, first, limit], 1 << 28);
        check("odd", &[MEMINFO, ("proc/self/cgroup", "rubbish\n::\n0:\n")], MACHINE);
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(limit_bytes() >= 1 << 20);
        assert!((1 << 20..limit_bytes()).contains(&resident_bytes().unwrap()));
    }
}
