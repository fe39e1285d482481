//! Metrics of all client and administrator calls to a region server. Metrics per region are in
//! `engine::instruments`.

use std::time::Duration;

base::instruments! {
    /// Client calls to a region server.
    pub struct RequestInstruments in "RegionServer,sub=Server" {
        /// Number of `Get` calls.
        gets: Counter = "rpcGetRequestCount",
        /// Number of `Scan` calls.
        scans: Counter = "rpcScanRequestCount",
        /// Number of scans opened without a start row and without a stop row.
        full_scans: Counter = "rpcFullScanRequestCount",
        /// Number of `Multi` calls.
        multis: Counter = "rpcMultiRequestCount",
        /// Number of `Mutate` calls.
        mutates: Counter = "rpcMutateRequestCount",
        /// Time of bulk loads, including those that failed.
        bulk_load_times: Times = "Bulkload",
        /// Bulk loads.
        bulk_loads: Meter = "Bulkload",
        /// Number of scanners dropped because their lease expired.
        leases_expired: Counter = "scannerLeaseExpiredCount",
    }
}

impl RequestInstruments {
    /// Records a bulk load that lasted from `begun` to `ended`, times of the monotonic clock.
    pub fn record_bulk_load(&self, begun: Duration, ended: Duration) {
        self.bulk_load_times.record(ended.saturating_sub(begun));
        self.bulk_loads.set_total(self.bulk_load_times.micros().count());
    }

    /// Number of client calls; a call with many rows counts once.
    pub fn calls(&self) -> u64 {
        [&self.gets, &self.scans, &self.multis, &self.mutates].iter().map(|kind| kind.get()).sum()
    }
}

base::instruments! {
    /// Calls to a region server that do not read or write rows.
    pub struct AdminInstruments in "RegionServer,sub=Grampus" {
        /// Number of calls by the master and by administrators for regions, files and logs;
        /// `totalRequestCount` includes them.
        calls: Counter = "adminRequestCount",
    }
}
