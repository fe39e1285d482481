//! The metrics of the tables of a server: of each table with a region here, and the latencies of
//! tables that no longer have one.
//!
//! Latencies are recorded for a table only. The server's histograms aggregate those of all tables,
//! including closed ones: when the last region of a table closes, its latencies move to the closed
//! ones in the same step.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::metrics::{Contribution, Histogram, Source};
use cell::schema::TableName;

use crate::instruments::{ServerInstruments, TableInstruments, TableLatencies};

/// All tables of a server.
pub(super) struct Tables(Mutex<TableMap>);

struct TableMap {
    open: BTreeMap<TableName, OpenTable>,
    // The latencies of all closed tables.
    closed: TableLatencies,
}

struct OpenTable {
    instruments: Arc<TableInstruments>,
    regions: usize,
}

/// Selects a histogram of a table.
type HistogramOf = fn(&TableLatencies) -> &Histogram;

impl Tables {
    /// No tables. From now on `server` aggregates the latencies of all tables that open.
    pub(super) fn begin(server: &ServerInstruments, now: Duration) -> Arc<Tables> {
        let tables = TableMap { open: BTreeMap::new(), closed: TableLatencies::begin(now) };
        let tables = Arc::new(Tables(Mutex::new(tables)));
        for (of_server, of_table) in pairs(server) {
            let tables = tables.clone();
            of_server.include(move |add| {
                // Locked during the whole traversal, so that no table opens, closes, or is counted
                // twice meanwhile.
                let tables = tables.lock();
                tables
                    .open
                    .values()
                    .for_each(|open| add(Contribution::Of(of_table(&open.instruments.latencies))));
                add(Contribution::Of(of_table(&tables.closed)));
            });
        }
        tables
    }

    /// Registers a region of `table` that is opened at `now`, and returns the table's metrics. The
    /// region has to [unregister](Self::unregister).
    pub(super) fn register(&self, table: &TableName, now: Duration) -> Arc<TableInstruments> {
        let mut tables = self.lock();
        let begin = || OpenTable { instruments: Arc::new(TableInstruments::begin(table, now)), regions: 0 };
        let open = tables.open.entry(table.clone()).or_insert_with(begin);
        open.regions += 1;
        open.instruments.clone()
    }

    /// Removes a closed region of a table.
    pub(super) fn unregister(&self, table: &TableInstruments) {
        let mut tables = self.lock();
        let Some(open) = tables.open.get_mut(&table.table) else { return };
        open.regions -= 1;
        if open.regions == 0 {
            tables.open.remove(&table.table);
            for histogram_of in HISTOGRAMS {
                histogram_of(&tables.closed).take_over(histogram_of(&table.latencies));
            }
        }
    }

    /// Tables that have a region here, sorted by name.
    pub(super) fn open(&self) -> Vec<(TableName, Arc<TableInstruments>)> {
        self.lock().open.iter().map(|(table, open)| (table.clone(), open.instruments.clone())).collect()
    }

    /// Ends an interval of the latencies of all tables.
    pub(super) fn roll_latencies(&self) {
        let tables = self.lock();
        tables.open.values().for_each(|open| open.instruments.latencies.roll());
        tables.closed.roll();
    }

    fn lock(&self) -> MutexGuard<'_, TableMap> {
        // A map and numbers: consistent after any panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Histograms of a table that its server has too.
const HISTOGRAMS: [HistogramOf; 12] = [
    |of| of.get.micros(),
    |of| of.put.micros(),
    |of| of.put_batch.micros(),
    |of| of.delete.micros(),
    |of| of.delete_batch.micros(),
    |of| of.increment.micros(),
    |of| of.append.micros(),
    |of| of.scan_time.micros(),
    |of| of.scan_size.bytes(),
    |of| of.check_and_delete.micros(),
    |of| of.check_and_put.micros(),
    |of| of.check_and_mutate.micros(),
];

/// The server's histograms, each with the table histogram that it aggregates.
fn pairs(server: &ServerInstruments) -> impl Iterator<Item = (&Histogram, HistogramOf)> {
    let of_server = [
        server.get.micros(),
        server.put.micros(),
        server.put_batch.micros(),
        server.delete.micros(),
        server.delete_batch.micros(),
        server.increment.micros(),
        server.append.micros(),
        server.scan_time.micros(),
        server.scan_size.bytes(),
        server.check_and_delete.micros(),
        server.check_and_put.micros(),
        server.check_and_mutate.micros(),
    ];
    of_server.into_iter().zip(HISTOGRAMS)
}
