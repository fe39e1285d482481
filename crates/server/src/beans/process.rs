//! The beans that HBase has of its virtual machine, answered with what they are read for: the memory of the process, and
//! pauses that are none.

use base::metrics::Registry;

use crate::beans::{Identity, platform};
use crate::log_counts::LOG_COUNTS;

base::figures! {
    /// The process, in the names of a Java virtual machine.
    pub(super) struct ProcessFigures in "JvmMetrics" {
        /// The role.
        process_name: Tag = "ProcessName",
        /// Memory that the process has.
        used: Gauge<f64> = "MemHeapUsedM" in Mebibytes,
        /// The same: all that it has is given to it.
        committed: Gauge<f64> = "MemHeapCommittedM" in Mebibytes,
        /// Memory that it may have.
        limit: Gauge<f64> = "MemHeapMaxM" in Mebibytes,
        /// The same.
        all_limit: Gauge<f64> = "MemMaxM" in Mebibytes,
        /// Threads that run, or could.
        runnable: Gauge<u64> = "ThreadsRunnable",
        /// Threads that wait for a disk.
        blocked: Gauge<u64> = "ThreadsBlocked",
        /// Threads that wait for something to do.
        waiting: Gauge<u64> = "ThreadsWaiting",
        /// Errors that were logged.
        errors: Counted = "LogError",
        /// Warnings that were logged.
        warnings: Counted = "LogWarn",
        /// Other things that were logged.
        infos: Counted = "LogInfo",
    }
}

base::absent! {
    /// What a process without a virtual machine has not.
    pub(super) struct NoVirtualMachine in "JvmMetrics" {
        /// The session of its virtual machine.
        Tag = "SessionId",
        /// Memory beside the heap.
        Gauge = "MemNonHeapUsedM" in Mebibytes,
        /// Memory beside the heap.
        Gauge = "MemNonHeapCommittedM" in Mebibytes,
        /// Memory beside the heap.
        Gauge = "MemNonHeapMaxM" in Mebibytes,
        /// Threads that were not started yet.
        Gauge = "ThreadsNew",
        /// Threads that wait for a time: not told from those that wait.
        Gauge = "ThreadsTimedWaiting",
        /// Threads that ended and are still known.
        Gauge = "ThreadsTerminated",
        /// Errors that ended the process, whose last words nobody reads here.
        Counter = "LogFatal",
        /// Collections of garbage.
        Counter = "GcCount",
        /// Collections of garbage.
        Counter = "GcCountCopy",
        /// Collections of garbage.
        Counter = "GcCountMarkSweepCompact",
        /// Time that they took.
        Counter = "GcTimeMillis" in Milliseconds,
        /// Time that they took.
        Counter = "GcTimeMillisCopy" in Milliseconds,
        /// Time that they took.
        Counter = "GcTimeMillisMarkSweepCompact" in Milliseconds,
    }
}

base::absent! {
    /// Users are not looked up by Hadoop's library.
    pub(super) struct NoLogins in "UgiMetrics" {
        /// Logins at Kerberos.
        Counter = "LoginSuccessNumOps",
        /// Their time.
        Gauge = "LoginSuccessAvgTime" in AverageMilliseconds,
        /// Logins that failed.
        Counter = "LoginFailureNumOps",
        /// Their time.
        Gauge = "LoginFailureAvgTime" in AverageMilliseconds,
        /// Groups of users looked up.
        Counter = "GetGroupsNumOps",
        /// Their time.
        Gauge = "GetGroupsAvgTime" in AverageMilliseconds,
        /// Renewals of tickets that failed.
        Gauge = "RenewalFailures",
        /// All of them.
        Gauge = "RenewalFailuresTotal",
    }
}

base::figures! {
    /// Where metrics are sent.
    pub(super) struct SinkFigures in "MetricsSystem,sub=Stats" {
        /// Sinks at work: all of them.
        active: Gauge<u64> = "NumActiveSinks",
        /// Sinks.
        all: Gauge<u64> = "NumAllSinks",
    }
}

base::absent! {
    /// What sinks take is not counted.
    pub(super) struct NoSinks in "MetricsSystem,sub=Stats" {
        /// Sources that are asked by sinks.
        Gauge = "NumActiveSources",
        /// Sources.
        Gauge = "NumAllSources",
        /// What sinks had no room for.
        Counter = "DroppedPubAll",
        /// What sinks took.
        Counter = "PublishNumOps",
        /// The time of that.
        Gauge = "PublishAvgTime" in AverageMilliseconds,
        /// Looks at sources.
        Counter = "SnapshotNumOps",
        /// Their time.
        Gauge = "SnapshotAvgTime" in AverageMilliseconds,
    }
}

/// Shows the process in the beans of a `role`.
pub(super) fn show(registry: &Registry, identity: &Identity, role: &'static str) {
    let (limit_bytes, sinks) = (identity.memory_bytes, identity.sinks);
    let of_process = registry.hbase_bean("jvm", "JvmMetrics");
    of_process.read(move || {
        let resident = mebibytes(base::memory::resident_bytes().unwrap_or(0));
        let limit = mebibytes(limit_bytes);
        let threads = base::threads::states();
        let [errors, warnings, infos] = LOG_COUNTS.now();
        ProcessFigures {
            process_name: role.into(),
            used: resident.into(),
            committed: resident.into(),
            limit: limit.into(),
            all_limit: limit.into(),
            runnable: threads.runnable.into(),
            blocked: threads.blocked.into(),
            waiting: threads.waiting.into(),
            errors: errors.into(),
            warnings: warnings.into(),
            infos: infos.into(),
        }
    });
    of_process.read(|| NoVirtualMachine);
    platform::show(registry, limit_bytes);
    // It starts and stops HBase's metrics, and shows nothing.
    registry.platform_bean(
        "Hadoop:service=HBase,name=MetricsSystem,sub=Control",
        "org.apache.hadoop.metrics2.impl.MetricsSystemImpl",
    );
    registry.hbase_bean("ugi", "UgiMetrics").read(|| NoLogins);
    let of_sinks = registry.hbase_bean("metricssystem", "MetricsSystem,sub=Stats");
    of_sinks.read(move || SinkFigures { active: sinks.into(), all: sinks.into() });
    of_sinks.read(|| NoSinks);
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
