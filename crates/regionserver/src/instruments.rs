//! What a region server counts of its calls, whatever region they are for. What regions count: `engine::instruments`.

base::instruments! {
    /// The calls of clients to a region server.
    pub struct RequestInstruments in "RegionServer,sub=Server" {
        /// Calls of `Get`.
        gets: Counter = "rpcGetRequestCount",
        /// Calls of `Scan`.
        scans: Counter = "rpcScanRequestCount",
        /// Scans begun that have neither a first row nor a last one.
        full_scans: Counter = "rpcFullScanRequestCount",
        /// Calls of `Multi`.
        multis: Counter = "rpcMultiRequestCount",
        /// Calls of `Mutate`.
        mutates: Counter = "rpcMutateRequestCount",
        /// Scanners dropped because their clients had been silent too long.
        leases_expired: Counter = "scannerLeaseExpiredCount",
    }
}

impl RequestInstruments {
    /// All calls of clients; one of many rows is one.
    pub fn calls(&self) -> u64 {
        [&self.gets, &self.scans, &self.multis, &self.mutates].iter().map(|kind| kind.get()).sum()
    }
}

base::instruments! {
    /// What others than readers and writers ask of a region server.
    pub struct AdminInstruments in "RegionServer,sub=Grampus" {
        /// Calls of the master and of administrators that are about regions, files and logs; `totalRequestCount` has them too.
        calls: Counter = "adminRequestCount",
    }
}
