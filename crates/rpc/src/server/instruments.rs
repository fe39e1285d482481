//! Metrics of a server's calls, under HBase's names.
//!
//! A call is counted when it has ended ([`CallCounts::record`]) or was rejected before its start.
//! Most calls are started as soon as they are read. The time of such a call is recorded once and
//! shown in three histograms: as processing time, as total time, and as a queue time of zero.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use base::metrics::{COUNTING, Contribution, OwnArea, RecordedDuration, Scope, Source, Times};

base::instruments! {
    /// The calls of a server, counted when they end.
    pub struct CallInstruments in "RegionServer,sub=IPC" {
        /// Time between reading a call and starting it.
        queue_time: Times = "QueueCallTime",
        /// Processing time of calls.
        process_time: Times = "ProcessCallTime",
        /// Total time: queue time plus processing time.
        total_time: Times = "TotalCallTime",
        /// Size of requests: message and cells, in bytes.
        request_size: Sizes = "RequestSize",
        /// Size of responses, in bytes.
        response_size: Sizes = "ResponseSize",
        /// Bytes read from clients.
        received: Counter = "receivedBytes" in Bytes,
        /// Bytes sent to clients.
        sent: Counter = "sentBytes" in Bytes,
        /// Failed calls, for any reason.
        exceptions: Counter = "exceptions",
        /// Calls that failed a sanity check of the row, the timestamp or the table.
        failed_sanity_check: Counter = "exceptions.FailedSanityCheckException",
        /// Calls for a region that is not online on this server.
        not_serving_region: Counter = "exceptions.NotServingRegionException",
        /// Calls for results of a scan in the wrong order.
        out_of_order_scanner_next: Counter = "exceptions.OutOfOrderScannerNextException",
        /// Calls for a region that has moved; the client gets its new location.
        region_moved: Counter = "exceptions.RegionMovedException",
        /// Writes that were rejected because a region or the server had no memory for them.
        region_too_busy: Counter = "exceptions.RegionTooBusyException",
        /// Calls whose scanner was closed after an error in the middle of the scan.
        scanner_reset: Counter = "exceptions.ScannerResetException",
        /// Calls with an unknown scanner.
        unknown_scanner: Counter = "exceptions.UnknownScannerException",
        /// Calls dropped because they waited too long.
        call_dropped: Counter = "exceptions.callDropped",
        /// Calls rejected because the call queue was full.
        call_queue_too_big: Counter = "exceptions.callQueueTooBig",
        /// Calls that exceeded their client's timeout.
        call_timed_out: Counter = "exceptions.callTimedOut",
        /// Actions of a multi whose response would have been too large.
        multi_response_too_large: Counter = "exceptions.multiResponseTooLarge",
        /// Calls rejected by a space quota.
        quota_exceeded: Counter = "exceptions.quotaExceeded",
        /// Requests that exceeded the maximum size.
        request_too_big: Counter = "exceptions.requestTooBig",
        /// Calls rejected by a request quota.
        rpc_throttling: Counter = "exceptions.rpcThrottling",
        /// Failed calls of any other exception class.
        other_exceptions: Counter = "exceptions.otherExceptions",
    }
}

/// The metrics of a server's calls, and the histogram from which several of them are derived.
pub struct CallCounts {
    instruments: CallInstruments,
    // Time of calls that were not queued.
    unqueued: Arc<Times>,
}

/// The measurements of a call that ended.
pub(super) struct CallSpan {
    /// Time between reading and starting it.
    pub(super) queued_nanos: u64,
    /// Time between reading it and its end.
    pub(super) took: RecordedDuration,
    pub(super) request_len: usize,
    pub(super) response_len: usize,
}

impl CallCounts {
    /// Starts all metrics at zero; `now` is a time on the monotonic clock.
    pub(super) fn begin(now: Duration) -> CallCounts {
        let (instruments, unqueued) = (CallInstruments::begin(now), Arc::new(Times::default()));
        for times in [&instruments.process_time, &instruments.total_time] {
            let of = unqueued.clone();
            times.micros().include(move |visit| visit(Contribution::Of(of.micros())));
        }
        let of = unqueued.clone();
        instruments.queue_time.micros().include(move |visit| visit(Contribution::ZerosFor(of.micros())));
        CallCounts { instruments, unqueued }
    }

    /// Records a call that ended, successfully or not.
    #[inline]
    pub(super) fn record(&self, call: &CallSpan) {
        if !COUNTING {
            return;
        }
        let area = OwnArea::get();
        match call.queued_nanos {
            0 => self.unqueued.record_in(call.took, area),
            queued => {
                self.queue_time.record_in(RecordedDuration::of_nanos(queued), area);
                self.process_time
                    .record_in(RecordedDuration::of_nanos(call.took.nanos().saturating_sub(queued)), area);
                self.total_time.record_in(call.took, area);
            }
        }
        self.request_size.record_in(call.request_len as u64, area);
        self.response_size.record_in(call.response_len as u64, area);
    }
}

impl Deref for CallCounts {
    type Target = CallInstruments;
    fn deref(&self) -> &CallInstruments {
        &self.instruments
    }
}

impl Source for CallCounts {
    fn show(&self, scope: &mut Scope<'_>) {
        self.instruments.show(scope);
    }

    fn roll(&self) {
        self.instruments.roll();
        self.unqueued.micros().roll();
    }
}

impl CallInstruments {
    /// Counts a call that failed with this Java class.
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
    use super::*;

    #[test]
    fn a_call_is_in_three_histograms_queued_or_not() {
        let calls = CallCounts::begin(Duration::ZERO);
        let call = |queued_us: u64, took_us: u64| CallSpan {
            queued_nanos: queued_us * 1000,
            took: RecordedDuration::of_nanos(took_us * 1000),
            request_len: 10,
            response_len: 20,
        };
        calls.record(&call(0, 100));
        calls.record(&call(20, 300));
        calls.roll();
        let summary = |times: &Times| {
            let interval = times.micros().interval();
            (times.micros().count(), times.micros().sum(), interval.min(), interval.max())
        };
        assert_eq!(summary(&calls.queue_time), (2, 20, 0, 20));
        assert_eq!(summary(&calls.process_time), (2, 380, 100, 280));
        assert_eq!(summary(&calls.total_time), (2, 400, 100, 300));
        assert_eq!((calls.request_size.bytes().sum(), calls.response_size.bytes().sum()), (20, 40));
    }

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
