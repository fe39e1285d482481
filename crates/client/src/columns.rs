//! Typed columns, looked at where they are: calls of the endpoint `grampus.pb.ColumnService`, region after region.
//!
//! A range of rows is walked by a [`Walk`]: it asks the region of the next row for what is left of the range in there,
//! goes on at the row the answer names, or behind the region. The bounds of a region are taken anew for every try, so
//! that regions may split, merge and move under a walk: no row is looked at twice, none is left out.
//!
//! Not here: how states of aggregates are put together (`columnar::partial`), what the server does.

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

/// Milliseconds after which a server is to answer with what it has, where the caller sets no limit: well within the time of a
/// call, so that a long one is told from a lost one.
const TIME_MS_MAX: u32 = 10_000;

/// Rows from `start` up to, not including, `stop`; empty for the first and behind the last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowRange {
    /// The first row.
    pub start: Bytes,
    /// The row behind the last.
    pub stop: Bytes,
}

/// How far a call over many regions is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Ranges, as many as there were regions at the beginning.
    pub ranges: usize,
    /// Of them those that are done.
    pub ranges_done: usize,
    /// What servers did so far.
    pub work: Work,
}

/// Rows of a range that is selected from, answer by answer.
pub struct Selection {
    table: Table,
    request: SelectRequest,
    walk: Walk,
}

/// What is left of a range of rows.
struct Walk {
    /// `None` once nothing is.
    next: Option<Bytes>,
    stop: Bytes,
}

/// Answers that may end before their range does.
trait Resumed: Message + Default {
    fn resume_row(&self) -> Option<&Bytes>;
}

impl Resumed for AggregateResponse {
    fn resume_row(&self) -> Option<&Bytes> {
        self.resume_row.as_ref()
    }
}

impl Resumed for SelectResponse {
    fn resume_row(&self) -> Option<&Bytes> {
        self.resume_row.as_ref()
    }
}

impl Table {
    /// The parts of `range` that lie in a region each, in order, as the regions are now.
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
        // Regions without a server are not among them, and their rows are not to be left out: each part reaches up to
        // the next one, and the walk finds, or waits for, what is between.
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

    /// What of `ranges`, which are in order and apart, is in each region that has some, as the regions are now.
    ///
    /// # Errors
    /// As [`Table::ranges`].
    pub async fn ranges_by_region(&self, ranges: &[RowRange]) -> Result<Vec<Vec<RowRange>>> {
        let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else { return Ok(Vec::new()) };
        let around = RowRange { start: first.start.clone(), stop: last.stop.clone() };
        let of_region = |region: RowRange| {
            // Of those before the region nothing is in it; they are in order.
            let begin = ranges.partition_point(|range| !EndKey(&range.stop).is_after(&region.start));
            let inside = ranges[begin..].iter().map_while(|range| range.intersection(&region));
            inside.collect::<Vec<_>>()
        };
        let regions = self.ranges(&around).await?.into_iter().map(of_region);
        Ok(regions.filter(|ranges| !ranges.is_empty()).collect())
    }

    /// Aggregates the rows of a request that are in `ranges`, which are in order and apart and take the place of the request's
    /// own; in `parallel` regions at a time. What they found is put together. `progress` is told after each answer how far it is and how many groups there are; what it returns ends the call
    /// if it is an error, and so a caller has a say in how many groups are kept.
    ///
    /// # Errors
    /// [`Error`], and those of `progress`.
    pub async fn aggregate<E: From<Error>>(
        &self,
        request: &AggregateRequest,
        ranges: &[RowRange],
        parallel: usize,
        mut progress: impl FnMut(&Progress, &Merger) -> std::result::Result<(), E>,
    ) -> std::result::Result<Partial, E> {
        // What cannot be understood here is not asked for.
        let rows = read::rows(request.rows.as_ref().unwrap_or(&Rows::default())).map_err(refused)?;
        let plan = read::aggregation(&rows, &request.group_by, &request.aggregate).map_err(refused)?;
        let mut merger = Merger::default();
        self.aggregate_parts(request, ranges, parallel, |answer, done| {
            merger
                .add(state::partial(&answer.group, &plan.aggregates).map_err(refused)?)
                .map_err(Error::from)?;
            progress(done, &merger)
        })
        .await?;
        Ok(merger.finish())
    }

    /// The same without putting together. `take` is given each answer as it
    /// comes, in no order; groups of different answers may have the same key. An error of its ends the call.
    ///
    /// # Errors
    /// [`Error`], and those of `take`.
    pub async fn aggregate_parts<E: From<Error>>(
        &self,
        request: &AggregateRequest,
        ranges: &[RowRange],
        parallel: usize,
        mut take: impl FnMut(AggregateResponse, &Progress) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let ranges = self.ranges_by_region(ranges).await?.concat();
        let mut progress = Progress { ranges: ranges.len(), ..Progress::default() };
        let mut waiting = ranges.into_iter().map(Walk::over);
        let mut running: FuturesUnordered<_> = FuturesUnordered::new();
        for walk in waiting.by_ref().take(parallel.max(1)) {
            running.push(self.aggregate_step(request, walk));
        }
        while let Some(done) = running.next().await {
            let (walk, answer) = done?;
            add(&mut progress.work, answer.work.as_ref());
            let next = match walk.next.is_some() {
                true => Some(walk),
                false => {
                    progress.ranges_done += 1;
                    waiting.next()
                }
            };
            if let Some(walk) = next {
                running.push(self.aggregate_step(request, walk));
            }
            take(answer, &progress)?;
        }
        Ok(())
    }

    async fn aggregate_step(
        &self,
        request: &AggregateRequest,
        mut walk: Walk,
    ) -> Result<(Walk, AggregateResponse)> {
        let bounded = |start: Bytes, stop: Bytes| AggregateRequest {
            rows: Some(within(request.rows.as_ref(), start, stop)),
            time_ms_max: request.time_ms_max.or(Some(TIME_MS_MAX)),
            ..request.clone()
        };
        let answer = walk.step(self, "Aggregate", bounded).await?;
        Ok((walk, answer))
    }

    /// Selects rows of `range`, which takes the place of the request's own, in their order.
    pub fn select(&self, request: SelectRequest, range: RowRange) -> Selection {
        Selection { table: self.clone(), request, walk: Walk::over(range) }
    }
}

impl Selection {
    /// What is asked for next. Its limit is less by the rows that were given.
    pub fn request_mut(&mut self) -> &mut SelectRequest {
        &mut self.request
    }

    /// The next answer, which may have no rows; `None` when all were given.
    ///
    /// # Errors
    /// [`Error`]; the selection is over then.
    pub async fn next(&mut self) -> Result<Option<SelectResponse>> {
        if self.walk.next.is_none() || self.request.limit == Some(0) {
            return Ok(None);
        }
        let request = &self.request;
        let bounded = |start: Bytes, stop: Bytes| SelectRequest {
            rows: Some(within(request.rows.as_ref(), start, stop)),
            time_ms_max: request.time_ms_max.or(Some(TIME_MS_MAX)),
            ..request.clone()
        };
        let answer: SelectResponse = self.walk.step(&self.table, "Select", bounded).await?;
        if let Some(limit) = &mut self.request.limit {
            *limit = limit.saturating_sub(answer.rows());
        }
        Ok(Some(answer))
    }
}

impl Walk {
    fn over(range: RowRange) -> Walk {
        let next = (!range.is_empty()).then_some(range.start);
        Walk { next, stop: range.stop }
    }

    /// Asks for what is left in one region; there is something left.
    async fn step<M: Message, R: Resumed>(
        &mut self,
        table: &Table,
        method: &'static str,
        bounded: impl Fn(Bytes, Bytes) -> M,
    ) -> Result<R> {
        let start = self.next.take().expect("asked for only while something is left");
        // Of the region that is asked last, which is the one that answers.
        let asked_up_to = Mutex::new(Bytes::new());
        let request = |location: &Location| {
            let stop = min_end(&self.stop, &location.region.end_key).clone();
            *asked_up_to.lock().unwrap_or_else(PoisonError::into_inner) = stop.clone();
            bounded(start.clone(), stop)
        };
        let answer: R = table.call_endpoint(&start, Endpoint { service: SERVICE, method }, request).await?;
        let stop = asked_up_to.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.next = match answer.resume_row() {
            Some(row) if *row < start || (*row != stop && !EndKey(&stop).is_after(row)) => {
                let row = row.escape_ascii();
                return Err(Error::Malformed(format!(
                    "{method} is to go on at {row}, which was not asked for"
                )));
            }
            Some(row) => Some(row.clone()),
            None if stop == self.stop => None,
            None => Some(stop),
        };
        // A server may say that it stopped just where the range ends.
        self.next.take_if(|next| !EndKey(&self.stop).is_after(next));
        Ok(answer)
    }
}

impl RowRange {
    /// Whether no row can be in it.
    pub fn is_empty(&self) -> bool {
        !EndKey(&self.stop).is_after(&self.start)
    }

    /// What is in both; `None` if nothing can be.
    pub fn intersection(&self, other: &RowRange) -> Option<RowRange> {
        let start = (&self.start).max(&other.start).clone();
        let both = RowRange { start, stop: min_end(&self.stop, &other.stop).clone() };
        (!both.is_empty()).then_some(both)
    }
}

fn refused(refused: Refused) -> Error {
    Error::Malformed(refused.to_string())
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
    fn an_empty_end_is_behind_all_others() {
        assert_eq!(range("b", "").intersection(&range("a", "d")), Some(range("b", "d")));
        assert_eq!(range("", "").intersection(&range("", "")), Some(range("", "")));
        assert_eq!(range("", "c").intersection(&range("c", "")), None);
        assert_eq!(range("a", "c").intersection(&range("b", "z")), Some(range("b", "c")));
        assert!(range("b", "b").is_empty() && !range("b", "").is_empty() && !range("", "").is_empty());
    }
}
