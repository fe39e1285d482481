//! What a server counts of its calls, under HBase's names.
//!
//! All of it is counted in one place, when a call has ended ([`CallCounts::note`], which
//! [`connection`](super::connection) calls) or was not begun. Most calls are begun as soon as they are read. How long they
//! took is noted once and told of three times: as the time that they were at work, as all their time, and as a wait of nothing.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use base::metrics::{COUNTING, OwnArea, Scope, Source, Times, Told, Took};

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

/// The calls of a server: what is shown of them, and what it is made of.
pub struct CallCounts {
    shown: CallInstruments,
    // How long calls took that did not wait.
    at_once: Arc<Times>,
}

/// A call that ended.
pub(super) struct CallSpan {
    /// How long it waited between being read and being begun.
    pub(super) queued_nanos: u64,
    /// How long it took from being read to its end.
    pub(super) took: Took,
    pub(super) request_len: usize,
    pub(super) response_len: usize,
}

impl CallCounts {
    /// Nothing counted yet; `now` is a time of the monotonic clock.
    pub(super) fn begin(now: Duration) -> CallCounts {
        let (shown, at_once) = (CallInstruments::begin(now), Arc::new(Times::default()));
        for times in [&shown.process_time, &shown.total_time] {
            let of = at_once.clone();
            times.micros().tells_of(move |tell| tell(Told::Of(of.micros())));
        }
        let of = at_once.clone();
        shown.queue_time.micros().tells_of(move |tell| tell(Told::ZerosFor(of.micros())));
        CallCounts { shown, at_once }
    }

    /// A call ended, well or not.
    #[inline]
    pub(super) fn note(&self, call: &CallSpan) {
        if !COUNTING {
            return;
        }
        let area = OwnArea::get();
        match call.queued_nanos {
            0 => self.at_once.note(call.took, area),
            queued => {
                self.queue_time.note(Took::of_nanos(queued), area);
                self.process_time.note(Took::of_nanos(call.took.nanos().saturating_sub(queued)), area);
                self.total_time.note(call.took, area);
            }
        }
        self.request_size.note(call.request_len as u64, area);
        self.response_size.note(call.response_len as u64, area);
    }
}

impl Deref for CallCounts {
    type Target = CallInstruments;
    fn deref(&self) -> &CallInstruments {
        &self.shown
    }
}

impl Source for CallCounts {
    fn show(&self, scope: &mut Scope<'_>) {
        self.shown.show(scope);
    }

    fn roll(&self) {
        self.shown.roll();
        self.at_once.micros().roll();
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
    use super::*;

    #[test]
    fn a_call_is_in_three_times_whether_it_waited_or_not() {
        let calls = CallCounts::begin(Duration::ZERO);
        let call = |queued_us: u64, took_us: u64| CallSpan {
            queued_nanos: queued_us * 1000,
            took: Took::of_nanos(took_us * 1000),
            request_len: 10,
            response_len: 20,
        };
        calls.note(&call(0, 100));
        calls.note(&call(20, 300));
        calls.roll();
        let told = |times: &Times| {
            let interval = times.micros().interval();
            (times.micros().count(), times.micros().sum(), interval.min(), interval.max())
        };
        assert_eq!(told(&calls.queue_time), (2, 20, 0, 20));
        assert_eq!(told(&calls.process_time), (2, 380, 100, 280));
        assert_eq!(told(&calls.total_time), (2, 400, 100, 300));
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
