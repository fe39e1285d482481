//! Rows of typed columns. Answers follow each other as rows do; within one answer a row may stand elsewhere.

use std::sync::Arc;

use bytes::Bytes;
use columnar::{Batch, Bits, Predicate, Values, Vector};
use engine::Region;
use engine::columns::{BatchSink, ColumnScan, Looked};
use prost::Message;
use proto::grampus::{self, SelectRequest, SelectResponse};
use wire::convert::columns::value_message;
use wire::exception::JavaException;

use super::turns::Turns;
use super::{ResumeRow, time_max};
use crate::error::Result;

/// Bytes of values after which a call answers.
const BYTES_MAX: usize = 16 << 20;

/// Answers a request; computes for long.
pub(super) async fn select(region: &Arc<Region>, request: &SelectRequest) -> Result<Vec<u8>> {
    Ok(respond(region, request).await?.encode_to_vec())
}

async fn respond(region: &Arc<Region>, request: &SelectRequest) -> Result<SelectResponse> {
    let rows = super::rows(request.rows.as_ref())?;
    if let Some(predicate) = &rows.predicate {
        predicate.check(&rows.columns).map_err(JavaException::do_not_retry)?;
    }
    let give: Vec<usize> = request.give.iter().map(|at| *at as usize).collect();
    if give.len() > rows.columns.len() {
        return Err(JavaException::do_not_retry("more columns are to be given than there are").into());
    }
    if let Some(at) = give.iter().find(|at| **at >= rows.columns.len()) {
        return Err(
            JavaException::do_not_retry(format!("column {at} is to be given, which is not there")).into()
        );
    }
    let scan = ColumnScan::new(region, super::wanted(&rows))?;
    let clock = &region.env().clock;
    let turns = Turns::new(scan.units().await?, clock.monotonic() + time_max(request.time_ms_max));
    let bytes_max = request.bytes_max.and_then(|bytes| usize::try_from(bytes).ok());
    let mut selected = Selected {
        predicate: rows.predicate.as_ref(),
        give: &give,
        vectors: give.iter().map(|_| Gathered::default()).collect(),
        rows: 0,
        limit: request.limit.unwrap_or(u64::MAX),
        bytes: 0,
        // Every call comes further.
        bytes_max: bytes_max.map_or(BYTES_MAX, |bytes| bytes.clamp(1, BYTES_MAX)),
    };
    let (mut looked, mut resume_row): (Looked, ResumeRow) = Default::default();
    while !selected.is_full()
        && let Some(unit) = turns.take(&**clock)
    {
        let read = scan.read(unit, &mut selected).await?;
        looked.add(&read.looked);
        if read.next_row.is_some() {
            resume_row = read.next_row;
            break;
        }
        tokio::task::yield_now().await;
    }
    if selected.rows >= selected.limit {
        resume_row = None;
    } else if resume_row.is_none() {
        resume_row = turns.rest();
    }
    let matched = selected.rows;
    let vectors = selected.vectors.into_iter().map(|vector| vector.message(matched as usize)).collect();
    Ok(SelectResponse {
        rows: Some(matched),
        vector: vectors,
        resume_row,
        work: Some(super::work(&looked, matched)),
    })
}

/// Rows that met the condition.
struct Selected<'a> {
    predicate: Option<&'a Predicate>,
    give: &'a [usize],
    vectors: Vec<Gathered>,
    rows: u64,
    limit: u64,
    bytes: usize,
    bytes_max: usize,
}

impl Selected<'_> {
    fn is_full(&self) -> bool {
        self.rows >= self.limit || self.bytes >= self.bytes_max
    }
}

impl BatchSink for Selected<'_> {
    fn may_use(&self, vectors: &[Option<Arc<Vector>>]) -> bool {
        self.predicate.is_none_or(|predicate| predicate.may_hold(vectors))
    }

    fn batch(&mut self, batch: &Batch<'_>) -> std::result::Result<bool, engine::Error> {
        let mut rows = Vec::new();
        batch.select(self.predicate, &mut rows);
        let room = usize::try_from(self.limit - self.rows).unwrap_or(usize::MAX);
        rows.truncate(room);
        for (gathered, at) in self.vectors.iter_mut().zip(self.give) {
            self.bytes += gathered.add(&batch.columns[*at], &rows);
        }
        self.rows += rows.len() as u64;
        Ok(!self.is_full())
    }

    fn rows(&mut self, rows: u64) {
        // Nothing is given of them but how many there are.
        if self.predicate.is_none_or(Predicate::holds_without_columns) {
            self.rows = self.rows.saturating_add(rows).min(self.limit);
        }
    }
}

/// Values of one column.
#[derive(Default)]
struct Gathered {
    vector: grampus::Vector,
    absent: Vec<usize>,
    rows: usize,
}

impl Gathered {
    /// Takes the values of `rows`; tells about how many bytes they are.
    fn add(&mut self, vector: &Vector, rows: &[u32]) -> usize {
        let mut bytes = 0;
        for row in rows {
            let row = *row as usize;
            if !vector.has(row) {
                self.absent.push(self.rows);
            }
            self.rows += 1;
            bytes += match vector.values() {
                Values::Whole(values) => {
                    self.vector.whole.push(values[row]);
                    8
                }
                Values::Real(values) => {
                    self.vector.real.push(values[row]);
                    8
                }
                Values::Decimal(_) => {
                    let value = value_message(&vector.get(row));
                    self.vector.decimal.push(value.decimal.unwrap_or_default());
                    16
                }
                Values::Raw(raws) => {
                    let raw = if vector.has(row) { raws.get(row) } else { &[] };
                    self.vector.raw.push(Bytes::copy_from_slice(raw));
                    raw.len() + 8
                }
            };
        }
        bytes
    }

    fn message(mut self, rows: usize) -> grampus::Vector {
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
