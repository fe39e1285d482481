//! `Scan`: opens, continues, renews and closes scanners.
//!
//! Source: HBase `RSRpcServices.scan`; flags and limits were compared with those of a running
//! HBase.

use std::time::Duration;

use base::budget::HeldBytes;
use bytes::{Bytes, BytesMut};
use cell::query::Scan;
use engine::Region;
use engine::region::RegionState;
use engine::scanner::{Deadline, Limits, Progress, RegionScanner, ResultSink, Stopped};
use prost::Message;
use proto::exception::{Answer, JavaException, class};
use rpc::CellBlock;

use super::charge::Charge;
use super::results::Results;
use super::{CallContext, ReplyParts};
use crate::errors::java_exception;
use crate::open_scanner::OpenScanner;
use crate::quotas::{Operation, PlannedWork};
use crate::scanners::TakeError;
use crate::server::RegionServer;

/// The shortest time after which a call returns a heartbeat.
const TIME_LIMIT_MIN: Duration = Duration::from_millis(10);

/// Bytes per second that any client can receive and decode; Java clients decode about ten times as
/// many. A response is limited to what this rate allows in half of the client's timeout, because
/// reading may take the other half.
const BYTES_PER_SECOND: u64 = 8 << 20;
/// Smallest limit of a response in bytes, however short the timeout is.
const TIMED_BYTES_MIN: u64 = 2 << 20;

/// Maximum number of open scanners that may keep their current blocks and their readahead between
/// calls, up to 1 MiB per file. While more are open, each scanner releases them at the end of its
/// call.
const AWAKE_SCANNERS_MAX: usize = 64;

/// Estimated bytes of a scanner itself, of its state per family, and of its state per column.
const SCANNER_BYTES: usize = 1 << 10;
const STORE_BYTES: usize = 1 << 10;
const QUALIFIER_BYTES: usize = 128;

/// The response to a `Scan`.
#[derive(Default)]
pub(super) struct ScanAnswer {
    /// All of the message except the fields in `lengths`.
    rest: proto::ScanResponse,
    // Encoded fields of the message that describe the results in the cell block.
    lengths: BytesMut,
    cells: CellBlock,
}

impl ScanAnswer {
    /// A response with the scanner's id and without results.
    fn new(id: u64) -> ScanAnswer {
        let rest = proto::ScanResponse { scanner_id: Some(id), ..proto::ScanResponse::default() };
        ScanAnswer { rest, ..ScanAnswer::default() }
    }

    /// The encoded message and the cells that follow it.
    pub(super) fn finish(mut self) -> ReplyParts<Bytes> {
        self.rest.encode(&mut self.lengths).expect("a growing buffer has room");
        (self.lengths.freeze(), self.cells)
    }
}

/// Serves a `Scan`.
pub(super) async fn scan(
    server: &RegionServer,
    request: &proto::ScanRequest,
    context: CallContext,
) -> Answer<ScanAnswer> {
    match (request.scanner_id, &request.scan) {
        (Some(id), _) => continue_scan(server, id, request, context).await,
        (None, Some(scan)) => open(server, scan, request, context).await,
        (None, None) => Err(JavaException::do_not_retry("Missing required input: scannerId or scan")),
    }
}

async fn open(
    server: &RegionServer,
    scan: &proto::Scan,
    request: &proto::ScanRequest,
    context: CallContext,
) -> Answer<ScanAnswer> {
    if request.next_call_seq() != 0 {
        return Err(refusal(0, request, TakeError::OutOfOrder { expected: 0 }));
    }
    let specifier = request.region.as_ref();
    let region = server.regions().find(specifier.map_or(&b""[..], |specifier| &specifier.value))?;
    let quota = server.admit(context.client.as_deref(), &region, planned)?;
    let wanted = wire::convert::from_proto::scan(scan)?;
    if wanted.start_row.is_empty() && wanted.stop_row.is_empty() {
        server.requests().full_scans.increment();
    }
    region.check_filter(&wanted.selection).map_err(|error| java_exception(&error))?;
    // Accounted before the scanner is built, and until it is dropped.
    let held = reserve(server, estimated_memory(&wanted, region.family_count(), request.encoded_len()))?;
    let scanner = scanner(&region, &wanted)?;
    let mvcc_read_point = scanner.read_point();
    let bytes_max = match scan.max_result_size() {
        0 => server.options().result_bytes_max,
        wanted => wanted.min(server.options().result_bytes_max),
    };
    let open = OpenScanner { region, scanner, bytes_max, wants_cursor: scan.need_cursor_result(), held };
    let has_call_seq = request.next_call_seq.is_some();
    let id = server.scanners().begin(has_call_seq, server.env().clock.monotonic()).ok_or_else(|| {
        JavaException::io("too many open scanners on this server; close some or try again later")
    })?;
    let default_rows = if request.close_scanner() { 0 } else { 1 };
    let mut answer = fetch(server, id, open, request, default_rows, (context, quota)).await?;
    answer.rest.ttl = Some(server.scanners().lease().as_millis() as u32);
    answer.rest.mvcc_read_point = Some(mvcc_read_point);
    Ok(answer)
}

/// Estimated bytes that an idle open scanner holds: its request, which it references, and its state
/// per family, column and filter.
fn estimated_memory(scan: &Scan, families: usize, request_len: usize) -> usize {
    let columns = scan.selection.columns.iter();
    let qualifiers: usize = columns.map(|columns| columns.qualifiers.as_ref().map_or(0, Vec::len)).sum();
    let filter = scan.selection.filter.as_ref().map_or(0, |filter| filter.size().memory());
    SCANNER_BYTES + families * STORE_BYTES + request_len + qualifiers * QUALIFIER_BYTES + filter
}

/// Reserves `bytes` for a scanner, if the budget allows one more.
pub(super) fn reserve(server: &RegionServer, bytes: usize) -> Answer<HeldBytes> {
    server.scanner_memory().hold(bytes).ok_or_else(|| {
        let message =
            format!("no memory for another scanner of {bytes} bytes; close some or try again later");
        JavaException::new(class::CALL_QUEUE_TOO_BIG, message)
    })
}

/// Opens a scanner. A client that lost its scanner requests a new one at the old read point,
/// whatever happened to the region meanwhile. Within a row the new scanner uses that read point, so
/// that the pieces of the row are consistent. Otherwise it uses it only if no data is missing at
/// that point: rows may since have been changed and compacted, or may be in files of a merged
/// region with larger sequence ids. (HBase always uses it, and misses such rows.)
fn scanner(region: &Region, scan: &Scan) -> Answer<RegionScanner> {
    let scanner = if resumes_within_row(scan) { region.scanner(scan) } else { region.resumed_scanner(scan) };
    scanner.map_err(|error| java_exception(&error))
}

/// Whether the scan resumes within a row. 2.x clients that resume after a row start at the next
/// possible row, which ends with a zero byte.
fn resumes_within_row(scan: &Scan) -> bool {
    scan.include_start_row && !scan.start_row.is_empty() && !scan.start_row.ends_with(b"\0")
}

async fn continue_scan(
    server: &RegionServer,
    id: u64,
    request: &proto::ScanRequest,
    context: CallContext,
) -> Answer<ScanAnswer> {
    let open = match server.scanners().take(id, request.next_call_seq) {
        Ok(open) => open,
        Err(TakeError::Ended) => return Ok(ScanAnswer::new(id)),
        Err(refused) => return Err(refusal(id, request, refused)),
    };
    let now = server.env().clock.monotonic();
    if open.region.state() != RegionState::Serving {
        let message = format!("{} is not online on this server", open.region.name());
        match open.region.state() {
            // Keep the scanner: the last flush retains what it sees, and the close then drops all
            // scanners of the region.
            RegionState::Closing => server.scanners().put_back(id, open, now),
            _ => server.scanners().forget(id),
        }
        return Err(JavaException::new(class::NOT_SERVING_REGION, message));
    }
    if request.renew() {
        server.scanners().put_back(id, open, now);
        return Ok(ScanAnswer::new(id));
    }
    let quota = match server.admit(context.client.as_deref(), &open.region, planned) {
        Ok(quota) => quota,
        Err(exception) => {
            server.scanners().put_back_unused(id, open, request.next_call_seq.is_some(), now);
            return Err(exception);
        }
    };
    let default_rows = if request.close_scanner() { 0 } else { 1 };
    fetch(server, id, open, request, default_rows, (context, quota)).await
}

fn planned() -> PlannedWork {
    PlannedWork { scans: 1, ..PlannedWork::default() }
}

/// A scanner that a call uses. It is forgotten if the call is dropped: because its connection has
/// ended, or by a panic. Otherwise it would count as open until the server restarts.
struct InUse<'a> {
    server: &'a RegionServer,
    id: u64,
    is_released: bool,
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        if !self.is_released {
            self.server.scanners().forget(self.id);
        }
    }
}

/// Reads the requested number of results. Then the scanner ends, or waits for the next call.
async fn fetch(
    server: &RegionServer,
    id: u64,
    mut open: OpenScanner,
    request: &proto::ScanRequest,
    default_rows: u32,
    (context, mut quota): (CallContext, Operation),
) -> Answer<ScanAnswer> {
    let mut in_use = InUse { server, id, is_released: false };
    let rows = request.number_of_rows.unwrap_or(default_rows);
    let ScanAnswer { rest: mut response, mut lengths, mut cells } = ScanAnswer::new(id);
    response.more_results = Some(true);
    response.more_results_in_region = Some(true);
    response.stale = Some(false);
    if rows > 0 {
        open.region.wake(&mut open.scanner);
        let mut limits = limits(server, &open, request, rows, context.timeout);
        limits.bytes = limits.bytes.min(quota.read_available().max(1));
        let mut results = Results::with_budget(context.form, &mut cells, server.response_budget());
        let before = open.scanner.rows_read_and_returned();
        let clock = &server.env().clock;
        let begun = clock.monotonic();
        match engine::scanner::drive(&mut open.scanner, &mut limits, &mut results).await {
            Ok(progress) => {
                open.region.instruments().count_rows_scanned(results.len() as u64);
                let rows = RowsRead::since(before, open.scanner.rows_read_and_returned());
                let returned = results.len() as u64;
                open.region.instruments().count_filtered(rows.filtered);
                if request.track_scan_metrics() {
                    response.scan_metrics = Some(rows.metrics());
                }
                // The filter has ended the whole scan, so the client need not scan other regions.
                // Older clients ignore the results in a response with this flag, so it is set only
                // without results.
                if results.len() == 0 && open.scanner.is_filter_done() {
                    response.more_results = Some(false);
                }
                if progress.stopped == Stopped::Exhausted {
                    results.complete_last();
                }
                quota.record_read(results.bytes());
                let now = clock.monotonic();
                let took = now.saturating_sub(begun);
                open.region.instruments().record_scan(took, results.bytes() as u64);
                if let Some(client) = &context.client {
                    client.record_scan(took, returned, rows.filtered);
                }
                Charge::for_call().end((server, &open.region), &context, &quota, now);
                (response.results, lengths) = results.into_scan();
                set_progress_flags(&mut response, progress, &open);
            }
            Err(error) => {
                // While the scanner is being opened, the client has none to reopen, so it gets the
                // plain exception.
                let opening =
                    request.scanner_id.is_none() && matches!(error, engine::Error::OutOfMemory { .. });
                return Err(if opening { java_exception(&error) } else { reset(&error) });
            }
        }
    }
    let ended = !response.more_results() || !response.more_results_in_region() || request.close_scanner();
    let now = server.env().clock.monotonic();
    in_use.is_released = true;
    if ended {
        server.scanners().end(id, now);
    } else {
        if server.scanners().open_count() > AWAKE_SCANNERS_MAX {
            drop(open.scanner.rest());
        }
        server.scanners().put_back(id, open, now);
    }
    Ok(ScanAnswer { rest: response, lengths, cells })
}

fn limits(
    server: &RegionServer,
    open: &OpenScanner,
    request: &proto::ScanRequest,
    rows: u32,
    timeout: Option<Duration>,
) -> Limits {
    let partials = request.client_handles_partials();
    let bytes = match timeout {
        Some(timeout) if partials => open.bytes_max.min(bytes_in(timeout / 2)),
        _ => open.bytes_max,
    };
    let deadline = (partials && request.client_handles_heartbeats()).then(|| {
        let lease = server.scanners().lease();
        let shortest = timeout.map_or(lease, |timeout| timeout.min(lease));
        let clock = server.env().clock.clone();
        Deadline { at: clock.monotonic() + (shortest / 2).max(TIME_LIMIT_MIN), clock }
    });
    Limits {
        results: u64::from(rows),
        rows: match request.limit_of_rows() {
            0 => u64::MAX,
            rows => u64::from(rows),
        },
        bytes,
        partials,
        deadline,
    }
}

/// Bytes of a response that a client can receive in this time.
fn bytes_in(time: Duration) -> u64 {
    let bytes = u128::from(BYTES_PER_SECOND) * time.as_millis() / 1000;
    u64::try_from(bytes).unwrap_or(u64::MAX).max(TIMED_BYTES_MIN)
}

/// Sets the flags that determine how the client continues the scan.
fn set_progress_flags(response: &mut proto::ScanResponse, progress: Progress, open: &OpenScanner) {
    match progress.stopped {
        Stopped::Exhausted => response.more_results_in_region = Some(false),
        Stopped::Rows => response.more_results = Some(false),
        Stopped::Time => {
            response.heartbeat_message = Some(true);
            if open.wants_cursor {
                let row = bytes::Bytes::copy_from_slice(open.scanner.last_row());
                response.cursor = Some(proto::Cursor { row: Some(row) });
            }
        }
        Stopped::Results | Stopped::Bytes | Stopped::Slice => {}
    }
}

/// Rows that a scan call has checked.
struct RowsRead {
    checked: u64,
    /// Rows among them without a result.
    filtered: u64,
}

impl RowsRead {
    /// The difference between two states of a scanner's counters: rows checked, and rows returned.
    fn since(before: (u64, u64), after: (u64, u64)) -> RowsRead {
        let (checked, returned) = (after.0 - before.0, after.1 - before.1);
        RowsRead { checked, filtered: checked.saturating_sub(returned) }
    }

    /// The metrics in the response, for clients that request them.
    fn metrics(&self) -> proto::ScanMetrics {
        let metric = |name: &str, value: u64| proto::NameInt64Pair {
            name: Some(name.to_string()),
            value: Some(value.cast_signed()),
        };
        let metrics = vec![metric("ROWS_SCANNED", self.checked), metric("ROWS_FILTERED", self.filtered)];
        proto::ScanMetrics { metrics }
    }
}

/// The exception for an error within a scan. It makes the client reopen a scanner after the last
/// row that it has.
fn reset(error: &engine::Error) -> JavaException {
    match error {
        engine::Error::NotServing { .. }
        | engine::Error::Log { .. }
        | engine::Error::BadRequest { .. }
        | engine::Error::MobMissing { .. }
        | engine::Error::Unsupported { .. }
        | engine::Error::RowTooBig { .. } => java_exception(error),
        // A reopened scanner would read the same corrupt block, so the client must not retry for
        // minutes.
        engine::Error::Corrupt { .. } => {
            JavaException::do_not_retry(format!("{}: {error}", class::CORRUPT_HFILE.name))
        }
        other => {
            JavaException::new(class::SCANNER_RESET, format!("Scanner is closed on the server-side: {other}"))
        }
    }
}

fn refusal(id: u64, request: &proto::ScanRequest, refused: TakeError) -> JavaException {
    match refused {
        TakeError::OutOfOrder { expected } => JavaException::new(
            class::OUT_OF_ORDER_SCANNER_NEXT,
            format!(
                "Expected nextCallSeq: {expected} But the nextCallSeq got from client: {}",
                request.next_call_seq()
            ),
        ),
        TakeError::OutOfOrderEnded { expected } => JavaException::new(
            class::OUT_OF_ORDER_SCANNER_NEXT,
            format!(
                "Expected nextCallSeq for closed request: {expected} But the nextCallSeq got from client: {}",
                request.next_call_seq()
            ),
        ),
        TakeError::Moved => {
            JavaException::new(class::NOT_SERVING_REGION, format!("Region has changed on the scanner {id}"))
        }
        TakeError::InUse => JavaException::new(class::LEASE, format!("lease '{id}' does not exist")),
        TakeError::Unknown | TakeError::Ended => JavaException::new(
            class::UNKNOWN_SCANNER,
            format!(
                "Unknown scanner '{id}'. This can happen due to any of the following reasons: a) Scanner id given is \
                 wrong, b) Scanner lease expired because of long wait between consecutive client checkins, c) Server may \
                 be closing down, d) RegionServer restart during upgrade.\nIf the issue is due to reason (b), a possible \
                 fix would be increasing the value of 'hbase.client.scanner.timeout.period' configuration."
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_size_follows_the_client_timeout() {
        assert_eq!(bytes_in(Duration::from_millis(500)), 4 << 20);
        assert_eq!(bytes_in(Duration::from_secs(30)), 240 << 20);
        assert_eq!(bytes_in(Duration::from_millis(1)), 2 << 20);
    }

    #[test]
    fn only_scans_within_a_row_resume_there() {
        let within = |start_row: &'static [u8], include_start_row| {
            resumes_within_row(&Scan { start_row: start_row.into(), include_start_row, ..Scan::default() })
        };
        assert!(within(b"row", true));
        assert!(!within(b"row", false) && !within(b"row\0", true) && !within(b"", true));
    }
}
