//! `ColumnService`: groups and aggregates over typed columns, and selection of rows. Every region
//! has it; HBase does not.
//!
//! * [`aggregate`]: groups, computed by one task per core;
//! * [`select`]: selected rows;
//! * [`unit_queue`]: distribution of a scan among tasks; [`group_memory`]: memory of groups.
//!
//! A call ends when its client disconnects, after a time limit, or when its response has become
//! large. The response then contains the row at which to resume. Neither the time nor the memory of
//! a call therefore grows with the table.

mod aggregate;
mod group_memory;
mod select;
mod unit_queue;

use std::sync::Arc;
use std::time::Duration;

use analytics::{ColumnQuery, ReadStats};
use bytes::Bytes;
use engine::Region;
use proto::exception::JavaException;
use proto::grampus;
use wire::convert::columns::request::RowQuery;

use crate::call::{Call, Response, decode, unknown_method};
use crate::error::Result;

/// The full service name, as in Java's generated code.
pub const SERVICE: &str = "grampus.pb.ColumnService";

/// Time limit after which a call returns a partial result. Well below the timeout of clients.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Handles a call of the service.
pub(crate) async fn call(region: &Arc<Region>, call: Call<'_>) -> Result<Response> {
    let (region, response_budget) = (region.clone(), call.response_budget.clone());
    let now = region.env().clock.monotonic();
    match &call.call.method_name[..] {
        "Aggregate" => {
            let request: grampus::AggregateRequest = decode(call.call)?;
            let respond_by = respond_by(now, request.time_ms_max, call.deadline);
            let work =
                async move { aggregate::aggregate(&region, &request, respond_by, &response_budget).await };
            let message = call.background.run(work).await?;
            Ok(Response { class: "grampus.pb.ColumnProtos$AggregateResponse", message })
        }
        "Select" => {
            let request: grampus::SelectRequest = decode(call.call)?;
            let respond_by = respond_by(now, request.time_ms_max, call.deadline);
            let work = async move { select::select(&region, &request, respond_by, &response_budget).await };
            let message = call.background.run(work).await?;
            Ok(Response { class: "grampus.pb.ColumnProtos$SelectResponse", message })
        }
        _ => Err(unknown_method(call.call).into()),
    }
}

/// The rows of a request; a request without rows is malformed.
fn rows(message: Option<&grampus::Rows>) -> Result<RowQuery> {
    let message =
        message.ok_or_else(|| JavaException::do_not_retry("the request does not say which rows"))?;
    Ok(wire::convert::columns::request::rows(message).map_err(JavaException::from)?)
}

/// The scan for the rows of a request.
fn query(rows: &RowQuery) -> ColumnQuery {
    let (start_row, stop_row) = rows.range.clone();
    ColumnQuery {
        columns: rows.columns.clone(),
        versions: rows.versions,
        families: rows.families.clone(),
        start_row,
        stop_row,
        time_range: rows.time_range,
    }
}

/// The time at which a call that arrived at `now` must answer: after the requested time, and well
/// before its client's deadline.
fn respond_by(now: Duration, requested_ms: Option<u32>, deadline: Option<Duration>) -> Duration {
    let requested = requested_ms.map_or(TIME_MAX, |ms| Duration::from_millis(u64::from(ms)));
    let remaining = deadline.map_or(TIME_MAX, |deadline| deadline.saturating_sub(now) / 2);
    now + requested.min(remaining).min(TIME_MAX)
}

fn work(stats: &ReadStats, matched: u64) -> grampus::Work {
    grampus::Work {
        rows: Some(stats.rows()),
        rows_matched: Some(matched),
        rows_in_vectors: Some(stats.in_vectors),
        rows_merged: Some(stats.merged),
        rows_skipped: Some(stats.skipped),
        vectors_built: Some(stats.built),
    }
}

/// Row at which to resume.
type ResumeRow = Option<Bytes>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_responds_before_its_client_times_out() {
        let seconds = Duration::from_secs;
        for (requested_ms, deadline, respond_after) in [
            (None, None, TIME_MAX),
            (Some(3000), None, seconds(3)),
            (Some(90_000), Some(1000), TIME_MAX),
            (None, Some(110), seconds(5)),
            (Some(3000), Some(104), seconds(2)),
            (None, Some(99), Duration::ZERO),
        ] {
            let respond_by = respond_by(seconds(100), requested_ms, deadline.map(seconds));
            assert_eq!(respond_by, seconds(100) + respond_after, "{requested_ms:?} {deadline:?}");
        }
    }
}
