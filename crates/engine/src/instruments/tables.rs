//! The tables of a server that have a region here, each with what its regions count together; and what is left of those that
//! have none any more.
//!
//! How long things took is noted for a table only. The server's histograms tell of all tables' values, those of closed ones
//! among them: what the last region of a table leaves behind is taken over in the moment in which the table goes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::metrics::{Histogram, Source, Told};
use cell::schema::TableName;

use crate::instruments::{ServerInstruments, TableInstruments, TableLatencies};

/// All tables of a server.
pub(super) struct Tables(Mutex<Known>);

struct Known {
    open: BTreeMap<TableName, Open>,
    // Those of all tables that were closed.
    closed: TableLatencies,
}

struct Open {
    instruments: Arc<TableInstruments>,
    regions: usize,
}

/// Chooses a histogram of a table's.
type Choose = fn(&TableLatencies) -> &Histogram;

impl Tables {
    /// None yet. From now on `server` tells of the times of all that come.
    pub(super) fn begin(server: &ServerInstruments, now: Duration) -> Arc<Tables> {
        let known = Known { open: BTreeMap::new(), closed: TableLatencies::begin(now) };
        let tables = Arc::new(Tables(Mutex::new(known)));
        for (of_server, of_table) in pairs(server) {
            let tables = tables.clone();
            of_server.tells_of(move |tell| {
                // Locked as long as it is told, so that none comes, goes or is told of twice meanwhile.
                let known = tables.lock();
                known.open.values().for_each(|open| tell(Told::Of(of_table(&open.instruments.latencies))));
                tell(Told::Of(of_table(&known.closed)));
            });
        }
        tables
    }

    /// A region of `table` is opened at `now`: what its table counts with. It has to [leave](Self::leave).
    pub(super) fn join(&self, table: &TableName, now: Duration) -> Arc<TableInstruments> {
        let mut known = self.lock();
        let begin = || Open { instruments: Arc::new(TableInstruments::begin(table, now)), regions: 0 };
        let open = known.open.entry(table.clone()).or_insert_with(begin);
        open.regions += 1;
        open.instruments.clone()
    }

    /// A region of a table was closed.
    pub(super) fn leave(&self, table: &TableInstruments) {
        let mut known = self.lock();
        let Some(open) = known.open.get_mut(&table.table) else { return };
        open.regions -= 1;
        if open.regions == 0 {
            known.open.remove(&table.table);
            for choose in CHOICES {
                choose(&known.closed).take_over(choose(&table.latencies));
            }
        }
    }

    /// Those that have a region here, in order of their names.
    pub(super) fn open(&self) -> Vec<(TableName, Arc<TableInstruments>)> {
        self.lock().open.iter().map(|(table, open)| (table.clone(), open.instruments.clone())).collect()
    }

    /// Ends an interval of how long things took, of all tables.
    pub(super) fn roll_latencies(&self) {
        let known = self.lock();
        known.open.values().for_each(|open| open.instruments.latencies.roll());
        known.closed.roll();
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // A map and numbers: whole after any panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Histograms of a table that its server has too.
const CHOICES: [Choose; 12] = [
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

/// The server's, each with what it is made of.
fn pairs(server: &ServerInstruments) -> impl Iterator<Item = (&Histogram, Choose)> {
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
    of_server.into_iter().zip(CHOICES)
}
