//! Delivers the results of a scanner to its sink, with values in place of references.
//!
//! A scanner cannot wait for files other than those of its stores. So its results are held here
//! until the scanner pauses; then the references are resolved one by one, in order.

use std::sync::Arc;

use bytes::Bytes;
use cell::query::MobReads;
use cell::{Cell, KeyValue};
use hfile::LARGE_VALUE_LEN;

use crate::error::Result;
use crate::mob::{MobResolver, is_reference};
use crate::scanner::{ResultEnd, ResultSink, SinkMemory};

/// Holds results between a scanner and its sink.
pub(crate) struct Delivery {
    resolver: Arc<MobResolver>,
    reads: MobReads,
    held: Held,
}

/// The results since the last delivery.
#[derive(Default)]
struct Held {
    events: Vec<Event>,
    bytes: usize,
}

/// A call of [`ResultSink`].
enum Event {
    Begin { continues_row: bool },
    Cell(KeyValue, u64),
    LargeCell(KeyValue, u64, Bytes),
    End(ResultEnd),
}

impl Delivery {
    pub(crate) fn new(resolver: Arc<MobResolver>, reads: MobReads) -> Delivery {
        Delivery { resolver, reads, held: Held::default() }
    }

    /// The sink for the scanner. `sink` receives the results when they are delivered.
    pub(crate) fn holding<'a>(&'a mut self, sink: &'a mut dyn ResultSink) -> HoldingSink<'a> {
        HoldingSink { held: &mut self.held, sink }
    }

    /// Passes on all results that are held.
    ///
    /// # Errors
    /// As [`MobResolver::resolve`]. The sink may then hold half a result.
    pub(crate) async fn deliver(&mut self, sink: &mut dyn ResultSink) -> Result<()> {
        self.held.bytes = 0;
        for event in std::mem::take(&mut self.held.events) {
            match event {
                Event::Begin { continues_row } => sink.begin_result(continues_row),
                Event::Cell(cell, seq_id) => self.deliver_cell(&cell.view(seq_id), sink).await?,
                Event::LargeCell(cell, seq_id, value) => {
                    sink.large_cell(&Cell { value: &value, ..cell.view(seq_id) }, value.clone());
                }
                Event::End(end) => sink.end_result(end),
            }
        }
        Ok(())
    }

    async fn deliver_cell(&self, cell: &Cell<'_>, sink: &mut dyn ResultSink) -> Result<()> {
        if !is_reference(cell.tags) {
            sink.cell(cell);
            return Ok(());
        }
        match self.resolver.resolve(cell, self.reads).await? {
            Some(found) if found.value.len() >= LARGE_VALUE_LEN => {
                sink.large_cell(&found.in_place_of(cell), found.value.clone());
            }
            Some(found) => sink.cell(&found.in_place_of(cell)),
            // As in HBase, the client then sees the tags of the reference.
            None => sink.cell(&Cell { value: &[], ..*cell }),
        }
        Ok(())
    }
}

/// Holds what the scanner writes.
pub(crate) struct HoldingSink<'a> {
    held: &'a mut Held,
    sink: &'a mut dyn ResultSink,
}

impl ResultSink for HoldingSink<'_> {
    fn begin_result(&mut self, continues_row: bool) {
        self.held.events.push(Event::Begin { continues_row });
    }

    fn cell(&mut self, cell: &Cell<'_>) {
        self.held.bytes += cell.serialized_len();
        self.held.events.push(Event::Cell(cell.to_key_value(), cell.seq_id));
    }

    fn large_cell(&mut self, cell: &Cell<'_>, value: Bytes) {
        if is_reference(cell.tags) {
            return self.cell(cell);
        }
        self.held.bytes += cell.serialized_len();
        let without_value = Cell { value: &[], ..*cell }.to_key_value();
        self.held.events.push(Event::LargeCell(without_value, cell.seq_id, value));
    }

    fn end_result(&mut self, end: ResultEnd) {
        self.held.events.push(Event::End(end));
    }

    fn rollback_row(&mut self) {
        let starts_row = |event: &Event| matches!(event, Event::Begin { continues_row: false });
        match self.held.events.iter().rposition(starts_row) {
            Some(at) => self.held.events.truncate(at),
            // The row began in results that were delivered.
            None => {
                self.held.events.clear();
                self.sink.rollback_row();
            }
        }
    }

    fn bytes(&self) -> usize {
        self.sink.bytes() + self.held.bytes
    }

    fn memory(&mut self) -> SinkMemory {
        self.sink.memory()
    }
}
