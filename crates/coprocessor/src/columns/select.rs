//! Rows of typed columns. Answers follow each other as rows do; within one answer a row may stand elsewhere.

use std::sync::Arc;
use std::time::Duration;

use base::budget::{Budget, Share};
use base::env::Clock;
use bytes::Bytes;
use columnar::{Batch, Bits, Bounds, Predicate, Used, Values, Vector};
use engine::Region;
use engine::columns::{BatchSink, ColumnScan, Looked, Taken};
use prost::Message;
use proto::grampus::{self, SelectRequest, SelectResponse};
use wire::convert::columns::request::RowsWanted;
use wire::convert::columns::value_message;
use wire::exception::JavaException;

use super::ResumeRow;
use super::turns::Turns;
use crate::error::Result;

/// Bytes of values after which a call answers.
const BYTES_MAX: usize = 16 << 20;

/// What a value of bytes takes beside them while an answer is made.
const VALUE_BYTES: usize = 48;

/// Answers a request; computes for long. What it gathers is counted among `answers`.
pub(super) async fn select(
    region: &Arc<Region>,
    request: &SelectRequest,
    answer_by: Duration,
    answers: &Arc<Budget>,
) -> Result<Vec<u8>> {
    Ok(respond(region, request, answer_by, answers).await?.encode_to_vec())
}

async fn respond(
    region: &Arc<Region>,
    request: &SelectRequest,
    answer_by: Duration,
    answers: &Arc<Budget>,
) -> Result<SelectResponse> {
    let mut rows = super::rows(request.rows.as_ref())?;
    let give = checked(&mut rows, request)?;
    let scan = ColumnScan::new(region, super::wanted(&rows))?;
    let clock = &*region.env().clock;
    let turns = Turns::new(scan.plan().await?, answer_by);
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
        share: Share::of(answers),
        has_room: true,
        turns: &turns,
        clock,
    };
    let mut looked = Looked::default();
    while !selected.is_full()
        && let Some((_, unit)) = turns.take(clock)
    {
        let read = scan.read(unit, &mut selected).await?;
        looked.add(&read.looked);
        if let Some(row) = read.next_row {
            turns.go_on_at(row);
            break;
        }
        tokio::task::yield_now().await;
    }
    let resume_row: ResumeRow = if selected.rows >= selected.limit { None } else { turns.rest() };
    let matched = selected.rows;
    let vectors = selected.vectors.into_iter().map(|vector| vector.message(matched as usize)).collect();
    Ok(SelectResponse {
        rows: Some(matched),
        vector: vectors,
        resume_row,
        work: Some(super::work(&looked, matched)),
    })
}

/// Checks what is asked for, and leaves out columns that are neither given nor looked at; the places of those that are given.
fn checked(rows: &mut RowsWanted, request: &SelectRequest) -> Result<Vec<usize>> {
    if let Some(predicate) = &rows.predicate {
        predicate.check(&rows.columns).map_err(JavaException::do_not_retry)?;
    }
    let mut give: Vec<usize> = request.give.iter().map(|at| *at as usize).collect();
    if give.len() > rows.columns.len() {
        return Err(JavaException::do_not_retry("more columns are to be given than there are").into());
    }
    if let Some(at) = give.iter().find(|at| **at >= rows.columns.len()) {
        return Err(
            JavaException::do_not_retry(format!("column {at} is to be given, which is not there")).into()
        );
    }
    let used = used(rows, &give);
    rows.columns = used.select(&rows.columns);
    rows.predicate = rows.predicate.take().map(|predicate| predicate.of_columns(&used));
    give.iter_mut().for_each(|at| *at = used.place(*at));
    Ok(give)
}

/// Columns that are given or looked at; of several versions all, for their cells make rows.
fn used(rows: &RowsWanted, give: &[usize]) -> Used {
    if rows.versions > 1 {
        return Used::of(0..rows.columns.len(), &rows.columns);
    }
    let mut places = rows.predicate.as_ref().map(Predicate::columns).unwrap_or_default();
    places.extend(give);
    Used::of(places, &rows.columns)
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
    // Of the memory of all answers.
    share: Share,
    has_room: bool,
    turns: &'a Turns,
    clock: &'a dyn Clock,
}

impl Selected<'_> {
    fn is_full(&self) -> bool {
        self.rows >= self.limit || self.bytes >= self.bytes_max || !self.has_room
    }

    /// How many of `rows` are taken until the answer is full, one at least.
    fn fit(&self, batch: &Batch<'_>, rows: &[u32]) -> usize {
        let room = usize::try_from(self.limit - self.rows).unwrap_or(usize::MAX);
        let rows = &rows[..rows.len().min(room)];
        let (mut count, mut bytes) = (0, self.bytes);
        for row in rows {
            if count > 0 && bytes >= self.bytes_max {
                break;
            }
            bytes +=
                self.give.iter().map(|at| value_bytes(&batch.columns[*at], *row as usize)).sum::<usize>();
            count += 1;
        }
        count
    }
}

/// About how many bytes of an answer a value is.
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

    fn batch(&mut self, batch: &Batch<'_>) -> std::result::Result<Taken, engine::Error> {
        let mut rows = Vec::new();
        batch.select(self.predicate, &mut rows);
        let taken = self.fit(batch, &rows);
        let until = rows.get(taken).map(|row| *row as usize);
        rows.truncate(taken);
        let before = self.bytes;
        for (gathered, at) in self.vectors.iter_mut().zip(self.give) {
            self.bytes += gathered.add(&batch.columns[*at], &rows);
        }
        self.rows += rows.len() as u64;
        // Once as values, once as a message.
        let memory = 2 * (self.bytes - before) + rows.len() * self.give.len() * VALUE_BYTES;
        if !self.share.take_large(memory) {
            self.share.force(memory);
            self.has_room = false;
        }
        Ok(match until {
            Some(row) => Taken::Until(row),
            None if self.is_full() || self.turns.is_over(self.clock) => Taken::Until(batch.len),
            None => Taken::All,
        })
    }

    fn rows(&mut self, rows: u64) {
        // Nothing is given of them but how many there are.
        if self.predicate.is_none_or(Predicate::holds_without_columns) {
            self.rows = self.rows.saturating_add(rows).min(self.limit);
        }
    }

    fn may_stop(&self) -> bool {
        true
    }

    fn goes_on(&mut self) -> std::result::Result<bool, engine::Error> {
        Ok(!self.is_full() && !self.turns.is_over(self.clock))
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
