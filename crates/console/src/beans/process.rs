//! HBase's beans about its Java virtual machine, filled with what they are read for: the memory of
//! the process, and pauses that never happen.

use base::metrics::Registry;

use crate::beans::{Identity, platform};
use crate::log_counts::LOG_COUNTS;

base::current_values! {
    /// Process metrics under the names of a Java virtual machine.
    pub(super) struct ProcessMetrics in "JvmMetrics" {
        /// Role of the server: `Master` or `RegionServer`.
        process_name: Tag = "ProcessName",
        /// Resident memory of the process.
        used: Gauge<f64> = "MemHeapUsedM" in Mebibytes,
        /// Resident memory of the process. All of it counts as committed.
        committed: Gauge<f64> = "MemHeapCommittedM" in Mebibytes,
        /// Memory limit of the process.
        limit: Gauge<f64> = "MemHeapMaxM" in Mebibytes,
        /// Memory limit of the process.
        all_limit: Gauge<f64> = "MemMaxM" in Mebibytes,
        /// Threads that are running or runnable.
        runnable: Gauge<u64> = "ThreadsRunnable",
        /// Threads that wait for a disk.
        blocked: Gauge<u64> = "ThreadsBlocked",
        /// Threads that are idle.
        waiting: Gauge<u64> = "ThreadsWaiting",
        /// Errors logged.
        errors: Counted = "LogError",
        /// Warnings logged.
        warnings: Counted = "LogWarn",
        /// Other lines logged.
        infos: Counted = "LogInfo",
    }
}

base::absent! {
    /// Attributes without a meaning in a process that has no virtual machine.
    pub(super) struct NoVirtualMachine in "JvmMetrics" {
        /// Session of the virtual machine.
        Tag = "SessionId",
        /// Memory outside of the heap.
        Gauge = "MemNonHeapUsedM" in Mebibytes,
        /// Memory outside of the heap.
        Gauge = "MemNonHeapCommittedM" in Mebibytes,
        /// Memory outside of the heap.
        Gauge = "MemNonHeapMaxM" in Mebibytes,
        /// Threads that are not started yet.
        Gauge = "ThreadsNew",
        /// Threads that wait with a timeout. They are counted as waiting.
        Gauge = "ThreadsTimedWaiting",
        /// Threads that ended and still exist.
        Gauge = "ThreadsTerminated",
        /// Errors that ended the process. There is no reader for them here.
        Counter = "LogFatal",
        /// Garbage collections.
        Counter = "GcCount",
        /// Garbage collections.
        Counter = "GcCountCopy",
        /// Garbage collections.
        Counter = "GcCountMarkSweepCompact",
        /// Time of garbage collections.
        Counter = "GcTimeMillis" in Milliseconds,
        /// Time of garbage collections.
        Counter = "GcTimeMillisCopy" in Milliseconds,
        /// Time of garbage collections.
        Counter = "GcTimeMillisMarkSweepCompact" in Milliseconds,
    }
}

base::absent! {
    /// Logins and user lookups. Grampus does not use Hadoop's library for them.
    pub(super) struct NoLogins in "UgiMetrics" {
        /// Kerberos logins.
        Counter = "LoginSuccessNumOps",
        /// Average time of logins.
        Gauge = "LoginSuccessAvgTime" in AverageMilliseconds,
        /// Failed Kerberos logins.
        Counter = "LoginFailureNumOps",
        /// Average time of failed logins.
        Gauge = "LoginFailureAvgTime" in AverageMilliseconds,
        /// Lookups of a user's groups.
        Counter = "GetGroupsNumOps",
        /// Average time of these lookups.
        Gauge = "GetGroupsAvgTime" in AverageMilliseconds,
        /// Failed ticket renewals.
        Gauge = "RenewalFailures",
        /// Failed ticket renewals in total.
        Gauge = "RenewalFailuresTotal",
    }
}

base::current_values! {
    /// Metrics of the metrics sinks.
    pub(super) struct SinkMetrics in "MetricsSystem,sub=Stats" {
        /// Active sinks; all sinks are active.
        active: Gauge<u64> = "NumActiveSinks",
        /// All sinks.
        all: Gauge<u64> = "NumAllSinks",
    }
}

base::absent! {
    /// Metrics about publishing to sinks, which is not measured.
    pub(super) struct NoSinks in "MetricsSystem,sub=Stats" {
        /// Active sources.
        Gauge = "NumActiveSources",
        /// All sources.
        Gauge = "NumAllSources",
        /// Records dropped because a sink was full.
        Counter = "DroppedPubAll",
        /// Records published to sinks.
        Counter = "PublishNumOps",
        /// Average time to publish.
        Gauge = "PublishAvgTime" in AverageMilliseconds,
        /// Snapshots of sources.
        Counter = "SnapshotNumOps",
        /// Average time of a snapshot.
        Gauge = "SnapshotAvgTime" in AverageMilliseconds,
    }
}

/// Adds the process beans to the beans of a `role`.
pub(super) fn show(registry: &Registry, identity: &Identity, role: &'static str) {
    let (limit_bytes, sinks) = (identity.memory.total, identity.sinks);
    let of_process = registry.hbase_bean("jvm", "JvmMetrics");
    of_process.read(move || {
        let resident = mebibytes(base::memory::resident_bytes().unwrap_or(0));
        let limit = mebibytes(limit_bytes);
        let threads = base::threads::states();
        let [errors, warnings, infos] = LOG_COUNTS.now();
        ProcessMetrics {
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
    // In HBase this bean starts and stops metrics. It has no attributes.
    registry.platform_bean(
        "Hadoop:service=HBase,name=MetricsSystem,sub=Control",
        "org.apache.hadoop.metrics2.impl.MetricsSystemImpl",
    );
    registry.hbase_bean("ugi", "UgiMetrics").read(|| NoLogins);
    let of_sinks = registry.hbase_bean("metricssystem", "MetricsSystem,sub=Stats");
    of_sinks.read(move || SinkMetrics { active: sinks.into(), all: sinks.into() });
    of_sinks.read(|| NoSinks);
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
