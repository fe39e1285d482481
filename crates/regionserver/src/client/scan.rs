//! `Scan`: opens, continues, renews and closes scanners.
//!
//! Source: HBase `RSRpcServices.scan`; flags and limits were compared with a running one.

use std::sync::Arc;
use std::time::Duration;

use base::budget::Held;
use bytes::{Bytes, BytesMut};
use cell::query::Scan;
use engine::Region;
use engine::region::RegionState;
use engine::scanner::{Deadline, LetGo, Limits, Progress, RegionScanner, ResultSink, Stopped};
use prost::Message;
use rpc::CellBlock;
use wire::exception::{Answer, JavaException, class};

use super::charge::Charge;
use super::results::Results;
use super::{Answered, CallContext};
use crate::errors::java_exception;
use crate::quotas::{Operation, Planned};
use crate::scanners::Refused;
use crate::server::RegionServer;

/// The shortest time a call may take before it answers with a heartbeat.
const TIME_LIMIT_MIN: Duration = Duration::from_millis(10);

/// Bytes of an answer that a client surely takes in a second; Java's clients decode some ten times as many. An answer is no longer
/// than what this allows in the half of the client's time that reading leaves.
const BYTES_PER_SECOND: u64 = 8 << 20;
/// Bytes of an answer that are allowed however little time the client has.
const TIMED_BYTES_MIN: u64 = 2 << 20;

/// Open scanners up to which each may keep from one call to the next the blocks that it stands on, and what it read ahead: up
/// to 1 MiB a file. If there are more, all rest between calls.
const AWAKE_SCANNERS_MAX: usize = 64;

/// Bytes of a scanner itself, and of what it keeps for each family and each column.
const SCANNER_BYTES: usize = 1 << 10;
const STORE_BYTES: usize = 1 << 10;
const QUALIFIER_BYTES: usize = 128;

/// A scanner between calls.
pub struct OpenScanner {
    region: Arc<Region>,
    scanner: RegionScanner,
    // Bytes of one answer, as the client and the server allow.
    bytes_max: u64,
    wants_cursor: bool,
    // What it holds between calls, in the server's number of bytes.
    _held: Held,
}

impl OpenScanner {
    /// The region it reads.
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// Lets go of its region's memstores and files if the region has others now.
    pub fn rest_if_outdated(&mut self) -> Option<LetGo> {
        self.region.has_moved_on_from(&self.scanner).then(|| self.scanner.rest())
    }
}

/// An answer to a `Scan`.
#[derive(Default)]
pub(super) struct ScanAnswer {
    /// All of the message but what `lengths` says.
    rest: proto::ScanResponse,
    // Fields of the message that tell of results behind it.
    lengths: BytesMut,
    cells: CellBlock,
}

impl ScanAnswer {
    /// No results, only the scanner's number.
    fn of(id: u64) -> ScanAnswer {
        let rest = proto::ScanResponse { scanner_id: Some(id), ..proto::ScanResponse::default() };
        ScanAnswer { rest, ..ScanAnswer::default() }
    }

    /// The message, and the cells behind it.
    pub(super) fn finish(mut self) -> Answered<Bytes> {
        self.rest.encode(&mut self.lengths).expect("a growing buffer has room");
        (self.lengths.freeze(), self.cells)
    }
}

/// Answers a `Scan`.
pub(super) async fn scan(
    server: &RegionServer,
    request: &proto::ScanRequest,
    context: CallContext,
) -> Answer<ScanAnswer> {
    match (request.scanner_id, &request.scan) {
        (Some(id), _) => go_on(server, id, request, context).await,
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
        return Err(refusal(0, request, Refused::OutOfOrder { expected: 0 }));
    }
    let specifier = request.region.as_ref();
    let region = server.regions().find(specifier.map_or(&b""[..], |specifier| &specifier.value))?;
    let quota = server.admit(&context, &region, planned)?;
    let wanted = wire::convert::from_proto::scan(scan)?;
    if wanted.start_row.is_empty() && wanted.stop_row.is_empty() {
        server.requests().full_scans.increment();
    }
    region.check_filter(&wanted.selection).map_err(|error| java_exception(&error))?;
    // Counted before it is built, and until it is dropped.
    let held = hold(server, memory_of(&wanted, region.family_count(), request.encoded_len()))?;
    let scanner = scanner(&region, &wanted)?;
    let mvcc_read_point = scanner.read_point();
    let bytes_max = match scan.max_result_size() {
        0 => server.options().result_bytes_max,
        wanted => wanted.min(server.options().result_bytes_max),
    };
    let open =
        OpenScanner { region, scanner, bytes_max, wants_cursor: scan.need_cursor_result(), _held: held };
    let numbered = request.next_call_seq.is_some();
    let id = server.scanners().begin(numbered, server.env().clock.monotonic()).ok_or_else(|| {
        JavaException::io("too many open scanners on this server; close some or try again later")
    })?;
    let default_rows = if request.close_scanner() { 0 } else { 1 };
    let mut answer = fetch(server, id, open, request, default_rows, (context, quota)).await?;
    answer.rest.ttl = Some(server.scanners().lease().as_millis() as u32);
    answer.rest.mvcc_read_point = Some(mvcc_read_point);
    Ok(answer)
}

/// Bytes that an open scanner holds while its client is silent: what it was asked for, which stays where it was received, and
/// what it keeps for each family, column and filter.
fn memory_of(scan: &Scan, families: usize, request_len: usize) -> usize {
    let columns = scan.selection.columns.iter();
    let qualifiers: usize = columns.map(|columns| columns.qualifiers.as_ref().map_or(0, Vec::len)).sum();
    let filter = scan.selection.filter.as_ref().map_or(0, |filter| filter.size().memory());
    SCANNER_BYTES + families * STORE_BYTES + request_len + qualifiers * QUALIFIER_BYTES + filter
}

/// Holds `bytes` for a scanner, if there is room for one more.
pub(super) fn hold(server: &RegionServer, bytes: usize) -> Answer<Held> {
    server.scanner_memory().hold(bytes).ok_or_else(|| {
        let message =
            format!("no memory for another scanner of {bytes} bytes; close some or try again later");
        JavaException::new(class::CALL_QUEUE_TOO_BIG, message)
    })
}

/// A client that lost its scanner asks again with the read point that it had, whatever became of the region meanwhile.
/// Within a row it is kept, so that the row's pieces are of one time. Elsewhere only if nothing is missing at it: rows may
/// have been changed since, and compacted, or stand in files of a region that was merged to this one and counted further.
/// (HBase keeps it, and such rows are missing there.)
fn scanner(region: &Region, scan: &Scan) -> Answer<RegionScanner> {
    let scanner = if goes_on_within_row(scan) { region.scanner(scan) } else { region.scanner_again(scan) };
    scanner.map_err(|error| java_exception(&error))
}

/// Clients of 2.x say that they go on behind a row by the next possible one, with a zero at its end.
fn goes_on_within_row(scan: &Scan) -> bool {
    scan.include_start_row && !scan.start_row.is_empty() && !scan.start_row.ends_with(b"\0")
}

async fn go_on(
    server: &RegionServer,
    id: u64,
    request: &proto::ScanRequest,
    context: CallContext,
) -> Answer<ScanAnswer> {
    let open = match server.scanners().take(id, request.next_call_seq) {
        Ok(open) => open,
        Err(Refused::Ended) => return Ok(ScanAnswer::of(id)),
        Err(refused) => return Err(refusal(id, request, refused)),
    };
    let now = server.env().clock.monotonic();
    if open.region.state() != RegionState::Serving {
        let message = format!("{} is not online on this server", open.region.name());
        match open.region.state() {
            // The last flush keeps what it sees; then it is forgotten with all others.
            RegionState::Closing => server.scanners().put_back(id, open, now),
            _ => server.scanners().forget(id),
        }
        return Err(JavaException::new(class::NOT_SERVING_REGION, message));
    }
    if request.renew() {
        server.scanners().put_back(id, open, now);
        return Ok(ScanAnswer::of(id));
    }
    let quota = match server.admit(&context, &open.region, planned) {
        Ok(quota) => quota,
        Err(exception) => {
            server.scanners().give_back(id, open, request.next_call_seq.is_some(), now);
            return Err(exception);
        }
    };
    let default_rows = if request.close_scanner() { 0 } else { 1 };
    fetch(server, id, open, request, default_rows, (context, quota)).await
}

fn planned() -> Planned {
    Planned { scans: 1, ..Planned::default() }
}

/// Reads as many results as the call asks for; then the scanner ends, or waits for the next call.
async fn fetch(
    server: &RegionServer,
    id: u64,
    mut open: OpenScanner,
    request: &proto::ScanRequest,
    default_rows: u32,
    (context, mut quota): (CallContext, Operation),
) -> Answer<ScanAnswer> {
    let rows = request.number_of_rows.unwrap_or(default_rows);
    let ScanAnswer { rest: mut response, mut lengths, mut cells } = ScanAnswer::of(id);
    response.more_results = Some(true);
    response.more_results_in_region = Some(true);
    response.stale = Some(false);
    if rows > 0 {
        open.region.wake(&mut open.scanner);
        let mut limits = limits(server, &open, request, rows, context.timeout);
        limits.bytes = limits.bytes.min(quota.read_available().max(1));
        let mut results = Results::admitted(context.form, &mut cells, server.answers());
        let before = open.scanner.rows_seen_and_returned();
        let clock = &server.env().clock;
        let begun = clock.monotonic();
        match engine::scanner::drive(&mut open.scanner, &mut limits, &mut results).await {
            Ok(progress) => {
                open.region.instruments().note_rows_scanned(results.len() as u64);
                let rows = RowsRead::since(before, open.scanner.rows_seen_and_returned());
                let returned = results.len() as u64;
                open.region.instruments().note_filtered(rows.filtered);
                if request.track_scan_metrics() {
                    response.scan_metrics = Some(rows.metrics());
                }
                // The filter's end is the whole scan's: other regions are not asked. Behind results older clients would
                // not look at them.
                if results.len() == 0 && open.scanner.is_filter_done() {
                    response.more_results = Some(false);
                }
                if progress.stopped == Stopped::Exhausted {
                    results.complete_last();
                }
                quota.has_read(results.bytes());
                let now = clock.monotonic();
                let took = now.saturating_sub(begun);
                open.region.instruments().note_scan(took, results.bytes() as u64);
                if let Some(caller) = &context.caller {
                    caller.note_scan(took, returned, rows.filtered);
                }
                Charge::for_call().end((server, &open.region), &context, &quota, now);
                (response.results, lengths) = results.into_scan();
                tell(&mut response, progress, &open);
            }
            Err(error) => {
                server.scanners().forget(id);
                // At the opening there is nothing yet to be opened again.
                let opening = request.scanner_id.is_none() && matches!(error, engine::Error::NoRoom { .. });
                return Err(if opening { java_exception(&error) } else { reset(&error) });
            }
        }
    }
    let ended = !response.more_results() || !response.more_results_in_region() || request.close_scanner();
    let now = server.env().clock.monotonic();
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

/// Bytes of an answer that a client takes in this time.
fn bytes_in(time: Duration) -> u64 {
    let bytes = u128::from(BYTES_PER_SECOND) * time.as_millis() / 1000;
    u64::try_from(bytes).unwrap_or(u64::MAX).max(TIMED_BYTES_MIN)
}

/// Sets the flags that say how the scan goes on.
fn tell(response: &mut proto::ScanResponse, progress: Progress, open: &OpenScanner) {
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

/// Rows that a call of a scan looked at.
struct RowsRead {
    seen: u64,
    /// Those of them that gave no result.
    filtered: u64,
}

impl RowsRead {
    /// Those between two counts of a scanner's rows: seen, and returned.
    fn since(before: (u64, u64), after: (u64, u64)) -> RowsRead {
        let (seen, returned) = (after.0 - before.0, after.1 - before.1);
        RowsRead { seen, filtered: seen.saturating_sub(returned) }
    }

    /// As a client is told who asked for them.
    fn metrics(&self) -> proto::ScanMetrics {
        let metric = |name: &str, value: u64| proto::NameInt64Pair {
            name: Some(name.to_string()),
            value: Some(value.cast_signed()),
        };
        let metrics = vec![metric("ROWS_SCANNED", self.seen), metric("ROWS_FILTERED", self.filtered)];
        proto::ScanMetrics { metrics }
    }
}

/// An error in the middle of a scan: the client opens a scanner again behind the last row it has.
fn reset(error: &engine::Error) -> JavaException {
    match error {
        engine::Error::NotServing { .. }
        | engine::Error::Log { .. }
        | engine::Error::BadRequest { .. }
        | engine::Error::Unsupported { .. }
        | engine::Error::RowTooBig { .. } => java_exception(error),
        // A scanner that is opened again meets the same block: the client must not try for minutes.
        engine::Error::Corrupt { .. } => {
            JavaException::do_not_retry(format!("{}: {error}", class::CORRUPT_HFILE.name))
        }
        other => {
            JavaException::new(class::SCANNER_RESET, format!("Scanner is closed on the server-side: {other}"))
        }
    }
}

fn refusal(id: u64, request: &proto::ScanRequest, refused: Refused) -> JavaException {
    match refused {
        Refused::OutOfOrder { expected } => JavaException::new(
            class::OUT_OF_ORDER_SCANNER_NEXT,
            format!(
                "Expected nextCallSeq: {expected} But the nextCallSeq got from client: {}",
                request.next_call_seq()
            ),
        ),
        Refused::OutOfOrderEnded { expected } => JavaException::new(
            class::OUT_OF_ORDER_SCANNER_NEXT,
            format!(
                "Expected nextCallSeq for closed request: {expected} But the nextCallSeq got from client: {}",
                request.next_call_seq()
            ),
        ),
        Refused::Moved => {
            JavaException::new(class::NOT_SERVING_REGION, format!("Region has changed on the scanner {id}"))
        }
        Refused::InUse => JavaException::new(class::LEASE, format!("lease '{id}' does not exist")),
        Refused::Unknown | Refused::Ended => JavaException::new(
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
    fn an_answer_is_as_long_as_its_client_can_take_in_time() {
        assert_eq!(bytes_in(Duration::from_millis(500)), 4 << 20);
        assert_eq!(bytes_in(Duration::from_secs(30)), 240 << 20);
        assert_eq!(bytes_in(Duration::from_millis(1)), 2 << 20);
    }

    #[test]
    fn what_goes_on_within_a_row() {
        let within = |start_row: &'static [u8], include_start_row| {
            goes_on_within_row(&Scan { start_row: start_row.into(), include_start_row, ..Scan::default() })
        };
        assert!(within(b"row", true));
        assert!(!within(b"row", false) && !within(b"row\0", true) && !within(b"", true));
    }
}
