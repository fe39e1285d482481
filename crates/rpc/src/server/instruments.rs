//! What a server counts of its calls, under HBase's names.

base::instruments! {
    /// The calls of a server, as they end.
    pub struct CallInstruments in "RegionServer,sub=IPC" {
        /// How long calls waited between being read and being begun.
        queue_time: Times = "QueueCallTime",
        /// How long they were at work.
        process_time: Times = "ProcessCallTime",
        /// Both together.
        total_time: Times = "TotalCallTime",
        /// Bytes of their messages and cells.
        request_size: Sizes = "RequestSize",
        /// Bytes of their answers.
        response_size: Sizes = "ResponseSize",
        /// Bytes read from clients.
        received: Counter = "receivedBytes" in Bytes,
        /// Bytes that clients took.
        sent: Counter = "sentBytes" in Bytes,
        /// Calls that failed, for whatever reason.
        exceptions: Counter = "exceptions",
        /// Those that asked what cannot be done to a table.
        failed_sanity_check: Counter = "exceptions.FailedSanityCheckException",
        /// Those that asked for a region that is not here.
        not_serving_region: Counter = "exceptions.NotServingRegionException",
        /// Those that asked for results of a scan out of turn.
        out_of_order_scanner_next: Counter = "exceptions.OutOfOrderScannerNextException",
        /// Those that asked for a region that has moved, and were told where to.
        region_moved: Counter = "exceptions.RegionMovedException",
        /// Those that wrote while a region or the server had no room for it.
        region_too_busy: Counter = "exceptions.RegionTooBusyException",
        /// Those whose scanner was lost in the middle.
        scanner_reset: Counter = "exceptions.ScannerResetException",
        /// Those whose scanner is not known.
        unknown_scanner: Counter = "exceptions.UnknownScannerException",
        /// Those dropped because they had waited too long.
        call_dropped: Counter = "exceptions.callDropped",
        /// Those refused because there was no room for them.
        call_queue_too_big: Counter = "exceptions.callQueueTooBig",
        /// Those that took longer than their client waits.
        call_timed_out: Counter = "exceptions.callTimedOut",
        /// Those whose answer would have been too long.
        multi_response_too_large: Counter = "exceptions.multiResponseTooLarge",
        /// Those beyond a quota of space.
        quota_exceeded: Counter = "exceptions.quotaExceeded",
        /// Those longer than a request may be.
        request_too_big: Counter = "exceptions.requestTooBig",
        /// Those beyond a quota of requests.
        rpc_throttling: Counter = "exceptions.rpcThrottling",
        /// All others that failed.
        other_exceptions: Counter = "exceptions.otherExceptions",
    }
}

impl CallInstruments {
    /// A call failed with this Java class.
    pub(super) fn count_failure(&self, class: &str) {
        self.exceptions.increment();
        let name = class.rsplit(['.', '$']).next().unwrap_or(class);
        let kind = match name {
            "FailedSanityCheckException" => &self.failed_sanity_check,
            "NotServingRegionException" => &self.not_serving_region,
            "OutOfOrderScannerNextException" => &self.out_of_order_scanner_next,
            "RegionMovedException" => &self.region_moved,
            "RegionTooBusyException" => &self.region_too_busy,
            "ScannerResetException" => &self.scanner_reset,
            "UnknownScannerException" => &self.unknown_scanner,
            "CallDroppedException" => &self.call_dropped,
            "CallQueueTooBigException" => &self.call_queue_too_big,
            "TimeoutIOException" => &self.call_timed_out,
            "MultiActionResultTooLarge" => &self.multi_response_too_large,
            "QuotaExceededException" => &self.quota_exceeded,
            "RequestTooBigException" => &self.request_too_big,
            "RpcThrottlingException" => &self.rpc_throttling,
            _ => &self.other_exceptions,
        };
        kind.increment();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn failures_are_counted_by_their_kind() {
        let calls = CallInstruments::begin(Duration::ZERO);
        for class in [
            "org.apache.hadoop.hbase.NotServingRegionException",
            "org.apache.hadoop.hbase.NotServingRegionException",
            "org.apache.hadoop.hbase.CallQueueTooBigException",
            "java.io.IOException",
            "",
        ] {
            calls.count_failure(class);
        }
        assert_eq!((calls.exceptions.get(), calls.not_serving_region.get()), (5, 2));
        assert_eq!((calls.call_queue_too_big.get(), calls.other_exceptions.get()), (1, 2));
    }
}
