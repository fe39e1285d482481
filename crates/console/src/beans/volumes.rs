//! The beans of the volumes of the storage tiers: one for each, with tier, class and directory as
//! tags. A server without tiers has none.

use std::sync::Arc;

use base::metrics::{Plain, Registry, Scope, Source};
use fs::{IoClass, Traffic};
use regionserver::RegionServer;
use tiers::{BusStatus, Health, VolumeStatus};

/// The record of these beans. Each bean has its number as one more property.
const RECORD: &str = "RegionServer,sub=Grampus";

base::current_values! {
    /// Metrics of a volume.
    pub(super) struct VolumeMetrics in "RegionServer,sub=Grampus,volume=N" {
        /// 1 while the volume has no space for new files.
        full: Gauge<u64> = "volumeFull",
        /// 1 while the volume does not respond.
        stuck: Gauge<u64> = "volumeStuck",
        /// 1 if the volume is missing or returned an error.
        failed: Gauge<u64> = "volumeFailed",
        /// Size of the disk.
        total: Gauge<u64> = "volumeTotal" in Bytes,
        /// Free bytes of the disk.
        free: Gauge<u64> = "volumeFree" in Bytes,
        /// Share of the disk that is used.
        used_share: Gauge<f64> = "volumeUsedShare" in Share,
        /// Requests that wait for the disk.
        waiting: Gauge<u64> = "volumeWaitingRequests",
        /// Their bytes.
        waiting_bytes: Gauge<u64> = "volumeWaitingBytes" in Bytes,
        /// Requests in service.
        served: Gauge<u64> = "volumeServedRequests",
        /// Their bytes.
        served_bytes: Gauge<u64> = "volumeServedBytes" in Bytes,
        /// Bytes per second while the disk was busy; recent requests count most.
        bytes_per_s: Gauge<f64> = "volumeBytesPerSecond" in PerSecond,
        /// Average time of a request, including its wait; recent requests count most.
        latency: Gauge<f64> = "volumeLatency" in Milliseconds,
        /// Bytes per second that all volumes of the tier transfer together at most: the bus of the
        /// model of its disks. 0 without one.
        bus_bytes_per_s: Gauge<f64> = "volumeBusBytesPerSecond" in PerSecond,
        /// Share of the last seconds in which this bus was in use.
        bus_used_share: Gauge<f64> = "volumeBusUsedShare" in Share,
        /// Requests that failed with an error of the disk.
        errors: Counted = "volumeErrorCount",
        /// Bytes of files that were moved to the volume.
        moved_in: Counted = "volumeMovedInBytes" in Bytes,
        /// Bytes of files that were moved from the volume.
        moved_out: Counted = "volumeMovedOutBytes" in Bytes,
    }
}

base::current_values! {
    /// Completed requests of a volume.
    pub(super) struct VolumeTraffic in "RegionServer,sub=Grampus,volume=N" {
        /// Reads.
        reads: Counted = "volumeReadCount",
        /// Bytes read.
        read_bytes: Counted = "volumeReadBytes" in Bytes,
        /// Writes.
        writes: Counted = "volumeWriteCount",
        /// Bytes written.
        written_bytes: Counted = "volumeWrittenBytes" in Bytes,
        /// Reads for calls of clients.
        client_reads: Counted = "volumeClientReadCount",
        /// Bytes read for calls of clients.
        client_read_bytes: Counted = "volumeClientReadBytes" in Bytes,
        /// Bytes written to logs.
        log_written_bytes: Counted = "volumeLogWrittenBytes" in Bytes,
        /// Bytes written by flushes.
        flush_written_bytes: Counted = "volumeFlushWrittenBytes" in Bytes,
        /// Bytes read by compactions.
        compaction_read_bytes: Counted = "volumeCompactionReadBytes" in Bytes,
        /// Bytes written by compactions.
        compaction_written_bytes: Counted = "volumeCompactionWrittenBytes" in Bytes,
        /// Bytes read by moves, including the verification of copies.
        move_read_bytes: Counted = "volumeMoveReadBytes" in Bytes,
        /// Bytes written by moves.
        move_written_bytes: Counted = "volumeMoveWrittenBytes" in Bytes,
    }
}

/// Adds a bean for each volume.
pub(super) fn show(registry: &Registry, context: &'static str, server: &Arc<RegionServer>) {
    let mut number = 0;
    for (tier, status) in server.tiers().iter().enumerate() {
        for (volume, at) in status.volumes.iter().enumerate() {
            let labels = vec![
                ("Tier", status.name.to_string()),
                ("Class", status.class.to_string()),
                ("Directory", at.directory.to_string()),
            ];
            let bean = registry.hbase_instance(context, RECORD, &format!("volume={number}"), labels);
            bean.add(Arc::new(VolumeBean { server: server.clone(), tier, volume }));
            number += 1;
        }
    }
}

/// A volume, by its position: the tiers do not change while the server runs.
struct VolumeBean {
    server: Arc<RegionServer>,
    tier: usize,
    volume: usize,
}

impl Source for VolumeBean {
    fn show(&self, scope: &mut Scope<'_>) {
        let tiers = self.server.tiers();
        let volume = tiers.get(self.tier).and_then(|tier| tier.volumes.get(self.volume));
        let Some(volume) = volume else { return };
        metrics(volume, tiers[self.tier].bus).show(scope);
        traffic(volume).show(scope);
        // Not a tag: a label with a changing text would make a new time series of each metric.
        let failure = if let Health::Failed(reason) = &volume.health { reason } else { "" };
        scope.plain("volumeFailure", Plain::Text(failure));
    }
}

fn metrics(volume: &VolumeStatus, bus: Option<BusStatus>) -> VolumeMetrics {
    let load = &volume.load;
    VolumeMetrics {
        full: u64::from(volume.health == Health::Full).into(),
        stuck: u64::from(volume.health == Health::Stuck).into(),
        failed: u64::from(matches!(volume.health, Health::Failed(_))).into(),
        total: volume.space.map_or(0, |space| space.total_bytes).into(),
        free: volume.space.map_or(0, |space| space.free_bytes).into(),
        used_share: volume.used_share().unwrap_or_default().into(),
        waiting: load.waiting_requests.into(),
        waiting_bytes: load.waiting_bytes.into(),
        served: load.served_requests.into(),
        served_bytes: load.served_bytes.into(),
        bytes_per_s: load.bytes_per_s.into(),
        latency: (load.latency.as_secs_f64() * 1000.0).into(),
        bus_bytes_per_s: bus.map_or(0.0, |bus| bus.bytes_per_s as f64).into(),
        bus_used_share: bus.map_or(0.0, |bus| bus.used_share).into(),
        errors: load.errors.into(),
        moved_in: volume.moved_in_bytes.into(),
        moved_out: volume.moved_out_bytes.into(),
    }
}

fn traffic(volume: &VolumeStatus) -> VolumeTraffic {
    let all = volume.load.total();
    let of = |class: IoClass| -> Traffic { volume.load.of(class) };
    VolumeTraffic {
        reads: all.reads.into(),
        read_bytes: all.read_bytes.into(),
        writes: all.writes.into(),
        written_bytes: all.written_bytes.into(),
        client_reads: of(IoClass::Read).reads.into(),
        client_read_bytes: of(IoClass::Read).read_bytes.into(),
        log_written_bytes: of(IoClass::Log).written_bytes.into(),
        flush_written_bytes: of(IoClass::Flush).written_bytes.into(),
        compaction_read_bytes: of(IoClass::Compaction).read_bytes.into(),
        compaction_written_bytes: of(IoClass::Compaction).written_bytes.into(),
        move_read_bytes: of(IoClass::Move).read_bytes.into(),
        move_written_bytes: of(IoClass::Move).written_bytes.into(),
    }
}
