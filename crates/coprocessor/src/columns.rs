//! `ColumnService`: groups and aggregates over typed columns, and rows of them. Every region has it; HBase does not.
//!
//! * [`aggregate`]: groups, by as many tasks as there are cores;
//! * rows that are selected: [`select`];
//! * [`turns`]: who of several tasks reads what; [`room`]: memory of groups.
//!
//! A call ends when its client leaves, after some time, or when its answer has grown large; the answer then says at which row
//! to go on. So neither time nor memory of a call grows with the table.

mod aggregate;
mod room;
mod select;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::Region;
use engine::columns::{Looked, Wanted};
use proto::grampus;
use wire::convert::columns::request::RowsWanted;
use wire::exception::JavaException;

use crate::call::{Call, Response, decode, unknown_method};
use crate::error::Result;

/// The full name of the service, as Java's generated code has it.
pub const SERVICE: &str = "grampus.pb.ColumnService";

/// Time after which a call answers with what it has: well below the time after which clients give a call up.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Answers a call of the service.
pub(crate) async fn call(region: &Arc<Region>, call: Call<'_>) -> Result<Response> {
    let (region, answers) = (region.clone(), call.answers.clone());
    let now = region.env().clock.monotonic();
    match &call.call.method_name[..] {
        "Aggregate" => {
            let request: grampus::AggregateRequest = decode(call.call)?;
            let answer_by = answer_by(now, request.time_ms_max, call.deadline);
            let work = async move { aggregate::aggregate(&region, &request, answer_by, &answers).await };
            let message = call.background.run(work).await?;
            Ok(Response { class: "grampus.pb.ColumnProtos$AggregateResponse", message })
        }
        "Select" => {
            let request: grampus::SelectRequest = decode(call.call)?;
            let answer_by = answer_by(now, request.time_ms_max, call.deadline);
            let work = async move { select::select(&region, &request, answer_by, &answers).await };
            let message = call.background.run(work).await?;
            Ok(Response { class: "grampus.pb.ColumnProtos$SelectResponse", message })
        }
        _ => Err(unknown_method(call.call).into()),
    }
}

/// The rows of a request; a request without any is malformed.
fn rows(message: Option<&grampus::Rows>) -> Result<RowsWanted> {
    let message =
        message.ok_or_else(|| JavaException::do_not_retry("the request does not say which rows"))?;
    Ok(wire::convert::columns::request::rows(message).map_err(JavaException::from)?)
}

/// What a scan is asked for.
fn wanted(rows: &RowsWanted) -> Wanted {
    let (start_row, stop_row) = rows.range.clone();
    Wanted {
        columns: rows.columns.clone(),
        versions: rows.versions,
        families: rows.families.clone(),
        start_row,
        stop_row,
        time_range: rows.time_range,
    }
}

/// When a call that came `now` answers with what it has: after the time that was asked for, and well before its client gives it up.
fn answer_by(now: Duration, asked_ms: Option<u32>, deadline: Option<Duration>) -> Duration {
    let asked = asked_ms.map_or(TIME_MAX, |ms| Duration::from_millis(u64::from(ms)));
    let left = deadline.map_or(TIME_MAX, |deadline| deadline.saturating_sub(now) / 2);
    now + asked.min(left).min(TIME_MAX)
}

fn work(looked: &Looked, matched: u64) -> grampus::Work {
    grampus::Work {
        rows: Some(looked.rows()),
        rows_matched: Some(matched),
        rows_in_vectors: Some(looked.in_vectors),
        rows_merged: Some(looked.merged),
        rows_skipped: Some(looked.skipped),
        vectors_built: Some(looked.built),
    }
}

/// A row to go on at.
type ResumeRow = Option<Bytes>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_answers_before_its_client_gives_up() {
        let seconds = Duration::from_secs;
        for (asked_ms, deadline, answer_after) in [
            (None, None, TIME_MAX),
            (Some(3000), None, seconds(3)),
            (Some(90_000), Some(1000), TIME_MAX),
            (None, Some(110), seconds(5)),
            (Some(3000), Some(104), seconds(2)),
            (None, Some(99), Duration::ZERO),
        ] {
            let answer_by = answer_by(seconds(100), asked_ms, deadline.map(seconds));
            assert_eq!(answer_by, seconds(100) + answer_after, "{asked_ms:?} {deadline:?}");
        }
    }
}
