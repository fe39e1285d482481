//! Typed columns, evaluated by the servers: calls of the endpoint `grampus.pb.ColumnService`,
//! region by region.
//!
//! A [`RangeCursor`] processes a range of rows. It calls the region of the next row for the rest of
//! the range in that region. It continues at the row that the response names, or after the region.
//! Region bounds are read again for every attempt, so regions may split, merge and move during a
//! call: each row is processed exactly once.
//!
//! Not here: merging of aggregate states (`columnar::partial`), and the server side.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use cell::EndKey;
use cell::range::min_end;
use columnar::{Merger, Partial};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use prost::Message;
use proto::grampus::{AggregateRequest, AggregateResponse, Rows, SelectRequest, SelectResponse, Work};
use wire::convert::Refused;
use wire::convert::columns::{request as read, state};

use crate::error::{Error, Result};
use crate::locations::Location;
use crate::table::{Endpoint, Table};

const SERVICE: &str = "grampus.pb.ColumnService";

/// Time limit in milliseconds for a partial response, if the caller sets none. It is well below the
/// call timeout, so that a slow call is distinguished from a lost one.
const TIME_MS_MAX: u32 = 10_000;

/// Rows in `[start, stop)`; empty for no bound.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowRange {
    /// The first row.
    pub start: Bytes,
    /// The first row after the range.
    pub stop: Bytes,
}

/// Progress of a call over many regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Number of ranges: one for each region at the start of the call.
    pub ranges: usize,
    /// Number of completed ranges.
    pub ranges_done: usize,
    /// Statistics of the servers' work so far.
    pub work: Work,
}

/// A selection of rows from a range, response by response.
pub struct Selection {
    table: Table,
    request: SelectRequest,
    cursor: RangeCursor,
}

/// The rest of a range of rows.
struct RangeCursor {
    /// `None` if the range is complete.
    next: Option<Bytes>,
    stop: Bytes,
}

/// Responses that may end before their range.
trait ResumableResponse: Message + Default {
    fn resume_row(&self) -> Option<&Bytes>;
}

impl ResumableResponse for AggregateResponse {
    fn resume_row(&self) -> Option<&Bytes> {
        self.resume_row.as_ref()
    }
}

impl ResumableResponse for SelectResponse {
    fn resume_row(&self) -> Option<&Bytes> {
        self.resume_row.as_ref()
    }
}

impl Table {
    /// Splits `range` at region boundaries; the parts are in order.
    ///
    /// # Errors
    /// [`Error::TableNotFound`] and others.
    pub async fn ranges(&self, range: &RowRange) -> Result<Vec<RowRange>> {
        let regions = self.regions().await?;
        let parts = regions.iter().filter_map(|location| {
            let region = &location.region;
            range.intersection(&RowRange { start: region.start_key.clone(), stop: region.end_key.clone() })
        });
        let mut parts: Vec<RowRange> = parts.collect();
        // Regions without a server are missing here, but their rows must not be skipped. Each part
        // extends to the next one, and the cursor locates, or waits for, the regions between.
        for at in 1..parts.len() {
            parts[at - 1].stop = parts[at].start.clone();
        }
        match (parts.first_mut(), range.is_empty()) {
            (_, true) => return Ok(Vec::new()),
            (None, false) => return Ok(vec![range.clone()]),
            (Some(first), false) => first.start = range.start.clone(),
        }
        if let Some(last) = parts.last_mut() {
            last.stop = range.stop.clone();
        }
        Ok(parts)
    }

    /// For each current region, the parts of `ranges` in it. `ranges` must be sorted and disjoint.
    /// Regions without any part are omitted.
    ///
    /// # Errors
    /// As [`Table::ranges`].
    pub async fn ranges_by_region(&self, ranges: &[RowRange]) -> Result<Vec<Vec<RowRange>>> {
        let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else { return Ok(Vec::new()) };
        let around = RowRange { start: first.start.clone(), stop: last.stop.clone() };
        let of_region = |region: RowRange| {
            // Skip the ranges that end before the region.
            let begin = ranges.partition_point(|range| !EndKey(&range.stop).is_after(&region.start));
            let inside = ranges[begin..].iter().map_while(|range| range.intersection(&region));
            inside.collect::<Vec<_>>()
        };
        let regions = self.ranges(&around).await?.into_iter().map(of_region);
        Ok(regions.filter(|ranges| !ranges.is_empty()).collect())
    }

    /// Aggregates the rows of `ranges`, in up to `parallel` regions at a time, and merges the
    /// results. `ranges` must be sorted and disjoint; they replace the request's own range.
    ///
    /// `progress` is called after each response with the progress and the merger. An error from it
    /// ends the call, so the caller can limit the number of groups.
    ///
    /// # Errors
    /// [`Error`], and errors of `progress`.
    pub async fn aggregate<E: From<Error>>(
        &self,
        request: &AggregateRequest,
        ranges: &[RowRange],
        parallel: usize,
        mut progress: impl FnMut(&Progress, &Merger) -> std::result::Result<(), E>,
    ) -> std::result::Result<Partial, E> {
        // Do not send a request that cannot be decoded here.
        let rows = read::rows(request.rows.as_ref().unwrap_or(&Rows::default())).map_err(malformed)?;
        let plan = read::aggregation(&rows, &request.group_by, &request.aggregate).map_err(malformed)?;
        let mut merger = Merger::default();
        self.aggregate_parts(request, ranges, parallel, |response, done| {
            merger
                .add(state::partial(&response.group, &plan.aggregates).map_err(malformed)?)
                .map_err(Error::from)?;
            progress(done, &merger)
        })
        .await?;
        Ok(merger.finish())
    }

    /// Like [`Table::aggregate`], without merging. `receive` gets each response as it arrives, in
    /// no particular order. Different responses may contain the same group. An error from `receive`
    /// ends the call.
    ///
    /// # Errors
    /// [`Error`], and errors of `receive`.
    pub async fn aggregate_parts<E: From<Error>>(
        &self,
        request: &AggregateRequest,
        ranges: &[RowRange],
        parallel: usize,
        mut receive: impl FnMut(AggregateResponse, &Progress) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let ranges = self.ranges_by_region(ranges).await?.concat();
        let mut progress = Progress { ranges: ranges.len(), ..Progress::default() };
        let mut waiting = ranges.into_iter().map(RangeCursor::new);
        let mut running: FuturesUnordered<_> = FuturesUnordered::new();
        for cursor in waiting.by_ref().take(parallel.max(1)) {
            running.push(self.aggregate_step(request, cursor));
        }
        while let Some(done) = running.next().await {
            let (cursor, response) = done?;
            add(&mut progress.work, response.work.as_ref());
            let next = match cursor.next.is_some() {
                true => Some(cursor),
                false => {
                    progress.ranges_done += 1;
                    debug_assert!(progress.ranges_done <= progress.ranges, "each range is completed once");
                    waiting.next()
                }
            };
            if let Some(cursor) = next {
                running.push(self.aggregate_step(request, cursor));
            }
            receive(response, &progress)?;
        }
        Ok(())
    }

    async fn aggregate_step(
        &self,
        request: &AggregateRequest,
        mut cursor: RangeCursor,
    ) -> Result<(RangeCursor, AggregateResponse)> {
        let bounded = |start: Bytes, stop: Bytes| AggregateRequest {
            rows: Some(within(request.rows.as_ref(), start, stop)),
            time_ms_max: request.time_ms_max.or(Some(TIME_MS_MAX)),
            ..request.clone()
        };
        let response = cursor.step(self, "Aggregate", bounded).await?;
        Ok((cursor, response))
    }

    /// Selects rows of `range`, which replaces the request's own range, in order.
    pub fn select(&self, request: SelectRequest, range: RowRange) -> Selection {
        Selection { table: self.clone(), request, cursor: RangeCursor::new(range) }
    }
}

impl Selection {
    /// The request for the next response. Its limit has been reduced by the rows returned so far.
    pub fn request_mut(&mut self) -> &mut SelectRequest {
        &mut self.request
    }

    /// The next response, which may have no rows; `None` at the end.
    ///
    /// # Errors
    /// [`Error`]; the selection then cannot be continued.
    pub async fn next(&mut self) -> Result<Option<SelectResponse>> {
        if self.cursor.next.is_none() || self.request.limit == Some(0) {
            return Ok(None);
        }
        let request = &self.request;
        let bounded = |start: Bytes, stop: Bytes| SelectRequest {
            rows: Some(within(request.rows.as_ref(), start, stop)),
            time_ms_max: request.time_ms_max.or(Some(TIME_MS_MAX)),
            ..request.clone()
        };
        let response: SelectResponse = self.cursor.step(&self.table, "Select", bounded).await?;
        if let Some(limit) = &mut self.request.limit {
            *limit = limit.saturating_sub(response.rows());
        }
        Ok(Some(response))
    }
}

impl RangeCursor {
    fn new(range: RowRange) -> RangeCursor {
        let next = (!range.is_empty()).then_some(range.start);
        RangeCursor { next, stop: range.stop }
    }

    /// Calls the region of the next row for the rest of the range in it. The cursor must not be
    /// complete.
    async fn step<M: Message, R: ResumableResponse>(
        &mut self,
        table: &Table,
        method: &'static str,
        bounded: impl Fn(Bytes, Bytes) -> M,
    ) -> Result<R> {
        let start = self.next.take().expect("step is called only if the cursor is not complete");
        // Stop row of the last attempt, which is the one that gets the response.
        let requested_stop = Mutex::new(Bytes::new());
        let request = |location: &Location| {
            let stop = min_end(&self.stop, &location.region.end_key).clone();
            *requested_stop.lock().unwrap_or_else(PoisonError::into_inner) = stop.clone();
            bounded(start.clone(), stop)
        };
        let response: R = table.call_endpoint(&start, Endpoint { service: SERVICE, method }, request).await?;
        let stop = requested_stop.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.next = match response.resume_row() {
            Some(row) if *row < start || (*row != stop && !EndKey(&stop).is_after(row)) => {
                let row = row.escape_ascii();
                return Err(Error::Malformed(format!(
                    "{method} returned resume row {row} outside the requested range"
                )));
            }
            Some(row) => Some(row.clone()),
            None if stop == self.stop => None,
            None => Some(stop),
        };
        // A server may report a resume row that is the end of the range.
        self.next.take_if(|next| !EndKey(&self.stop).is_after(next));
        debug_assert!(self.next.as_ref().is_none_or(|next| *next >= start), "a cursor never moves back");
        Ok(response)
    }
}

impl RowRange {
    /// Whether the range contains no row.
    pub fn is_empty(&self) -> bool {
        !EndKey(&self.stop).is_after(&self.start)
    }

    /// The intersection; `None` if it is empty.
    pub fn intersection(&self, other: &RowRange) -> Option<RowRange> {
        let start = (&self.start).max(&other.start).clone();
        let both = RowRange { start, stop: min_end(&self.stop, &other.stop).clone() };
        (!both.is_empty()).then_some(both)
    }
}

fn malformed(error: Refused) -> Error {
    Error::Malformed(error.to_string())
}

fn within(rows: Option<&Rows>, start: Bytes, stop: Bytes) -> Rows {
    Rows { start_row: Some(start), stop_row: Some(stop), ..rows.cloned().unwrap_or_default() }
}

fn add(sum: &mut Work, more: Option<&Work>) {
    let Some(more) = more else { return };
    let add = |sum: &mut Option<u64>, more: Option<u64>| {
        if let Some(more) = more {
            *sum = Some(sum.unwrap_or(0) + more);
        }
    };
    add(&mut sum.rows, more.rows);
    add(&mut sum.rows_matched, more.rows_matched);
    add(&mut sum.rows_in_vectors, more.rows_in_vectors);
    add(&mut sum.rows_merged, more.rows_merged);
    add(&mut sum.rows_skipped, more.rows_skipped);
    add(&mut sum.vectors_built, more.vectors_built);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: &'static str, stop: &'static str) -> RowRange {
        RowRange { start: start.into(), stop: stop.into() }
    }

    #[test]
    fn an_empty_end_is_after_all_others() {
        assert_eq!(range("b", "").intersection(&range("a", "d")), Some(range("b", "d")));
        assert_eq!(range("", "").intersection(&range("", "")), Some(range("", "")));
        assert_eq!(range("", "c").intersection(&range("c", "")), None);
        assert_eq!(range("a", "c").intersection(&range("b", "z")), Some(range("b", "c")));
        assert!(range("b", "b").is_empty() && !range("b", "").is_empty() && !range("", "").is_empty());
    }
}
