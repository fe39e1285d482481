//! The beans that every Java platform has, for monitoring tools that read them. The process stands
//! for the virtual machine and its memory for the heap; garbage is never collected.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::env::Clock;
use base::metrics::{Number, Plain, Registry, Scope, Source};
use base::process::Process;

/// Adds the beans for a process whose memory limit is `limit_bytes`.
pub(super) fn show(registry: &Registry, limit_bytes: u64) {
    let started = ProcessStart::now(registry.clock());
    let add = |name, modeler_type, source| registry.platform_bean(name, modeler_type).add(source);
    add("java.lang:type=Runtime", "sun.management.RuntimeImpl", Arc::new(started));
    add("java.lang:type=Memory", "sun.management.MemoryImpl", Arc::new(Memory { limit_bytes }));
    add(
        "java.lang:type=OperatingSystem",
        "com.sun.management.internal.OperatingSystemImpl",
        Arc::new(OperatingSystem::default()),
    );
    add("java.lang:type=Threading", "com.sun.management.internal.HotSpotThreadImpl", Arc::new(Threading));
    add(
        "java.lang:name=None,type=GarbageCollector",
        "com.sun.management.internal.GarbageCollectorExtImpl",
        Arc::new(NoCollector),
    );
}

fn number(value: impl Into<Number>) -> Plain<'static> {
    Plain::Number(value.into())
}

/// Start time of the process: `java.lang:type=Runtime`.
struct ProcessStart {
    clock: Arc<dyn Clock>,
    at: Duration,
    at_ms: u64,
}

impl ProcessStart {
    fn now(clock: &Arc<dyn Clock>) -> ProcessStart {
        ProcessStart { at: clock.monotonic(), at_ms: clock.now_ms(), clock: clock.clone() }
    }
}

impl Source for ProcessStart {
    fn show(&self, scope: &mut Scope<'_>) {
        let uptime = self.clock.monotonic().saturating_sub(self.at);
        scope.plain("Name", Plain::Text(&format!("{}@grampus", std::process::id())));
        scope.plain("Uptime", number(uptime.as_millis() as u64));
        scope.plain("StartTime", number(self.at_ms));
        scope.plain("Pid", number(u64::from(std::process::id())));
        scope.plain("VmName", Plain::Text("Grampus"));
        scope.plain("VmVendor", Plain::Text("Grampus"));
        scope.plain("VmVersion", Plain::Text(env!("CARGO_PKG_VERSION")));
        scope.plain("SpecName", Plain::Text("none: no Java virtual machine"));
    }
}

/// `java.lang:type=Memory`.
struct Memory {
    limit_bytes: u64,
}

impl Source for Memory {
    fn show(&self, scope: &mut Scope<'_>) {
        let resident = base::memory::resident_bytes().unwrap_or(0);
        let usage = |used: u64, max: u64| {
            [("committed", used.into()), ("init", 0_u64.into()), ("max", max.into()), ("used", used.into())]
        };
        scope.plain("Verbose", Plain::Flag(false));
        scope.plain("ObjectPendingFinalizationCount", number(0_u64));
        scope.plain("HeapMemoryUsage", Plain::Numbers(&usage(resident, self.limit_bytes)));
        scope.plain("NonHeapMemoryUsage", Plain::Numbers(&usage(0, 0)));
    }
}

/// `java.lang:type=OperatingSystem`. Loads cover the interval since the last read.
#[derive(Default)]
struct OperatingSystem {
    // Clock time and CPU time at the last read.
    last: Mutex<Option<(Duration, Duration)>>,
}

impl OperatingSystem {
    /// The share of all CPUs that the process used since the last read.
    fn load(&self, now: Duration, process: &Process) -> f64 {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).replace((now, process.cpu_time));
        let Some((then, had)) = last.filter(|(then, _)| *then < now) else { return 0.0 };
        let had = process.cpu_time.saturating_sub(had).as_secs_f64();
        had / (now - then).as_secs_f64() / process.cpus as f64
    }
}

impl Source for OperatingSystem {
    fn show(&self, scope: &mut Scope<'_>) {
        let process = Process::now();
        let load = self.load(scope.now(), &process);
        scope.plain("Name", Plain::Text("Linux"));
        scope.plain("Arch", Plain::Text(std::env::consts::ARCH));
        scope.plain("AvailableProcessors", number(process.cpus));
        scope.plain("SystemLoadAverage", number(process.load_average));
        scope.plain("ProcessCpuLoad", number(load));
        scope.plain("ProcessCpuTime", number(process.cpu_time.as_nanos() as u64));
        scope.plain("OpenFileDescriptorCount", number(process.open_files));
        scope.plain("MaxFileDescriptorCount", number(process.open_files_max));
        scope.plain("CommittedVirtualMemorySize", number(process.virtual_bytes));
        // The shorter names exist since Java 14.
        for (total, free) in
            [("TotalPhysicalMemorySize", "FreePhysicalMemorySize"), ("TotalMemorySize", "FreeMemorySize")]
        {
            scope.plain(total, number(process.memory_bytes));
            scope.plain(free, number(process.memory_free_bytes));
        }
        scope.plain("TotalSwapSpaceSize", number(process.swap_bytes));
        scope.plain("FreeSwapSpaceSize", number(process.swap_free_bytes));
    }
}

/// `java.lang:type=Threading`.
struct Threading;

impl Source for Threading {
    fn show(&self, scope: &mut Scope<'_>) {
        let threads = Process::now().threads;
        for name in ["ThreadCount", "PeakThreadCount", "DaemonThreadCount", "TotalStartedThreadCount"] {
            scope.plain(name, number(threads));
        }
    }
}

/// `java.lang:name=None,type=GarbageCollector`, for tools that sum over all collectors.
struct NoCollector;

impl Source for NoCollector {
    fn show(&self, scope: &mut Scope<'_>) {
        scope.plain("Name", Plain::Text("None"));
        scope.plain("Valid", Plain::Flag(true));
        scope.plain("CollectionCount", number(0_u64));
        scope.plain("CollectionTime", number(0_u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_cover_the_time_since_the_last_read() {
        let system = OperatingSystem::default();
        let process =
            |seconds| Process { cpu_time: Duration::from_secs(seconds), cpus: 2, ..Process::default() };
        let at = Duration::from_secs;
        assert_eq!(system.load(at(1), &process(5)), 0.0);
        assert_eq!(system.load(at(5), &process(7)), 0.25);
        assert_eq!(system.load(at(5), &process(7)), 0.0);
    }
}
