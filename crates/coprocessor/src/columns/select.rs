//! Selection of rows with typed columns. Successive responses are in row order; rows within a
//! response are not ordered.

use std::sync::Arc;
use std::time::Duration;

use analytics::{BatchSink, ColumnScan, ReadStats, TakenRows};
use base::budget::{Budget, BudgetShare};
use base::env::Clock;
use bytes::Bytes;
use columnar::{Batch, Bits, Bounds, ColumnMapping, Predicate, Values, Vector};
use engine::Region;
use prost::Message;
use proto::exception::JavaException;
use proto::grampus::{self, SelectRequest, SelectResponse};
use wire::convert::columns::request::RowQuery;
use wire::convert::columns::value_message;

use super::ResumeRow;
use super::unit_queue::UnitQueue;
use crate::error::Result;

/// Bytes of values at which a call answers.
const BYTES_MAX: usize = 16 << 20;

/// Overhead of a byte string while a response is built.
const VALUE_BYTES: usize = 48;

/// Handles a request; CPU-intensive. The collected values are charged to `response_budget`.
pub(super) async fn select(
    region: &Arc<Region>,
    request: &SelectRequest,
    respond_by: Duration,
    response_budget: &Arc<Budget>,
) -> Result<Vec<u8>> {
    Ok(respond(region, request, respond_by, response_budget).await?.encode_to_vec())
}

async fn respond(
    region: &Arc<Region>,
    request: &SelectRequest,
    respond_by: Duration,
    response_budget: &Arc<Budget>,
) -> Result<SelectResponse> {
    let mut rows = super::rows(request.rows.as_ref())?;
    let returned = check(&mut rows, request)?;
    let scan = ColumnScan::new(region, super::query(&rows))?;
    let clock = &*region.env().clock;
    let units = UnitQueue::new(scan.plan().await?, respond_by);
    let bytes_max = request.bytes_max.and_then(|bytes| usize::try_from(bytes).ok());
    let mut selected = Selected {
        predicate: rows.predicate.as_ref(),
        returned: &returned,
        vectors: returned.iter().map(|_| CollectedColumn::default()).collect(),
        rows: 0,
        limit: request.limit.unwrap_or(u64::MAX),
        bytes: 0,
        // At least 1, so that every call makes progress.
        bytes_max: bytes_max.map_or(BYTES_MAX, |bytes| bytes.clamp(1, BYTES_MAX)),
        share: BudgetShare::of(response_budget),
        has_memory: true,
        units: &units,
        clock,
    };
    let mut stats = ReadStats::default();
    while !selected.is_full()
        && let Some((_, unit)) = units.take(clock)
    {
        let read = scan.read(unit, &mut selected).await?;
        stats.add(&read.stats);
        if let Some(row) = read.next_row {
            units.set_resume_row(row);
            break;
        }
        tokio::task::yield_now().await;
    }
    let resume_row: ResumeRow = if selected.rows >= selected.limit { None } else { units.resume_row() };
    let matched = selected.rows;
    let vectors = selected.vectors.into_iter().map(|vector| vector.message(matched as usize)).collect();
    Ok(SelectResponse {
        rows: Some(matched),
        vector: vectors,
        resume_row,
        work: Some(super::work(&stats, matched)),
    })
}

/// Validates the request, and removes columns that are neither returned nor read. Returns the
/// indexes of the returned columns.
fn check(rows: &mut RowQuery, request: &SelectRequest) -> Result<Vec<usize>> {
    if let Some(predicate) = &rows.predicate {
        predicate.check(&rows.columns).map_err(JavaException::do_not_retry)?;
    }
    let mut returned: Vec<usize> = request.give.iter().map(|at| *at as usize).collect();
    if returned.len() > rows.columns.len() {
        return Err(JavaException::do_not_retry("more columns are requested than exist").into());
    }
    if let Some(at) = returned.iter().find(|at| **at >= rows.columns.len()) {
        return Err(
            JavaException::do_not_retry(format!("column {at} is requested, but it does not exist")).into()
        );
    }
    let mapping = column_mapping(rows, &returned);
    rows.columns = mapping.select(&rows.columns);
    rows.predicate = rows.predicate.take().map(|predicate| predicate.remap(&mapping));
    returned.iter_mut().for_each(|at| *at = mapping.position(*at));
    Ok(returned)
}

/// The columns that are returned or read. With several versions all columns, because their cells
/// create rows.
fn column_mapping(rows: &RowQuery, returned: &[usize]) -> ColumnMapping {
    if rows.versions > 1 {
        return ColumnMapping::new(0..rows.columns.len(), &rows.columns);
    }
    let mut positions = rows.predicate.as_ref().map(Predicate::columns).unwrap_or_default();
    positions.extend(returned);
    ColumnMapping::new(positions, &rows.columns)
}

/// Rows that satisfied the predicate.
struct Selected<'a> {
    predicate: Option<&'a Predicate>,
    returned: &'a [usize],
    vectors: Vec<CollectedColumn>,
    rows: u64,
    limit: u64,
    bytes: usize,
    bytes_max: usize,
    // Share of the budget for all responses.
    share: BudgetShare,
    has_memory: bool,
    units: &'a UnitQueue,
    clock: &'a dyn Clock,
}

impl Selected<'_> {
    fn is_full(&self) -> bool {
        self.rows >= self.limit || self.bytes >= self.bytes_max || !self.has_memory
    }

    /// Number of `rows` to take until the response is full; at least one if the limit allows.
    fn count_fitting(&self, batch: &Batch<'_>, rows: &[u32]) -> usize {
        let rows_left = usize::try_from(self.limit - self.rows).unwrap_or(usize::MAX);
        let rows = &rows[..rows.len().min(rows_left)];
        let (mut count, mut bytes) = (0, self.bytes);
        for row in rows {
            if count > 0 && bytes >= self.bytes_max {
                break;
            }
            bytes +=
                self.returned.iter().map(|at| value_bytes(&batch.columns[*at], *row as usize)).sum::<usize>();
            count += 1;
        }
        count
    }
}

/// Approximate bytes of a value in a response.
fn value_bytes(vector: &Vector, row: usize) -> usize {
    match vector.values() {
        Values::Whole(_) | Values::Real(_) => 8,
        Values::Decimal(_) => 16,
        Values::Raw(raws) => 8 + if vector.has(row) { raws.get(row).len() } else { 0 },
    }
}

impl BatchSink for Selected<'_> {
    fn may_use(&self, bounds: &[Bounds]) -> bool {
        self.predicate.is_none_or(|predicate| predicate.may_hold(bounds))
    }

    fn batch(&mut self, batch: &Batch<'_>) -> std::result::Result<TakenRows, engine::Error> {
        let mut rows = Vec::new();
        batch.select(self.predicate, &mut rows);
        let taken = self.count_fitting(batch, &rows);
        let until = rows.get(taken).map(|row| *row as usize);
        rows.truncate(taken);
        let before = self.bytes;
        for (collected, at) in self.vectors.iter_mut().zip(self.returned) {
            self.bytes += collected.add(&batch.columns[*at], &rows);
        }
        self.rows += rows.len() as u64;
        debug_assert!(self.rows <= self.limit, "no more rows are selected than requested");
        // Counted twice: as values and as a message.
        let memory = 2 * (self.bytes - before) + rows.len() * self.returned.len() * VALUE_BYTES;
        if !self.share.take_large(memory) {
            self.share.force(memory);
            self.has_memory = false;
        }
        Ok(match until {
            Some(row) => TakenRows::Until(row),
            None if self.is_full() || self.units.is_expired(self.clock) => TakenRows::Until(batch.len),
            None => TakenRows::All,
        })
    }

    fn rows(&mut self, rows: u64) {
        // Only their number is returned.
        if self.predicate.is_none_or(Predicate::holds_without_columns) {
            self.rows = self.rows.saturating_add(rows).min(self.limit);
        }
    }

    fn may_stop(&self) -> bool {
        true
    }

    fn wants_more(&mut self) -> std::result::Result<bool, engine::Error> {
        Ok(!self.is_full() && !self.units.is_expired(self.clock))
    }
}

/// Collected values of one column.
#[derive(Default)]
struct CollectedColumn {
    vector: grampus::Vector,
    absent: Vec<usize>,
    rows: usize,
}

impl CollectedColumn {
    /// Adds the values of `rows`; returns their approximate size in bytes.
    fn add(&mut self, vector: &Vector, rows: &[u32]) -> usize {
        let mut bytes = 0;
        for row in rows {
            let row = *row as usize;
            if !vector.has(row) {
                self.absent.push(self.rows);
            }
            self.rows += 1;
            bytes += value_bytes(vector, row);
            match vector.values() {
                Values::Whole(values) => self.vector.whole.push(values[row]),
                Values::Real(values) => self.vector.real.push(values[row]),
                Values::Decimal(_) => {
                    let value = value_message(&vector.get(row));
                    self.vector.decimal.push(value.decimal.unwrap_or_default());
                }
                Values::Raw(raws) => {
                    let raw = if vector.has(row) { raws.get(row) } else { &[] };
                    self.vector.raw.push(Bytes::copy_from_slice(raw));
                }
            }
        }
        bytes
    }

    fn message(mut self, rows: usize) -> grampus::Vector {
        debug_assert_eq!(self.rows, rows, "each column has all selected rows");
        if !self.absent.is_empty() {
            let mut absent = Bits::zeros(rows);
            self.absent.iter().for_each(|row| absent.set(*row));
            let mut present = Bits::ones(rows);
            present.and_not(&absent);
            self.vector.present = Some(present.to_bytes().into());
        }
        self.vector
    }
}
