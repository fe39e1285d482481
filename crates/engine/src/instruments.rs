//! What regions count while they work: each for itself, all of a table together, all of a server.
//!
//! Who does something notes it once, at its region ([`RegionInstruments`]), which has the places of its table and of the
//! server at hand. Names and meanings are HBase's.

mod files;
mod region;
mod server;
mod store;
mod table;
mod tally;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use cell::schema::TableName;

pub(crate) use files::{CompactionWork, FlushWork};
pub(crate) use region::RegionCounts;
pub use region::{Operation, RegionInstruments, Usage};
pub use server::ServerInstruments;
pub(crate) use store::{Origin, StoreCounts, StoreReads};
pub use table::{TableInstruments, TableLatencies, TableWork};
use tally::Tally;

/// What all regions of a server count, and each of its tables.
pub struct Instruments {
    server: Arc<ServerInstruments>,
    tally: Arc<Tally>,
    // Those of which a region is open.
    tables: Mutex<BTreeMap<TableName, Weak<TableInstruments>>>,
}

impl Instruments {
    /// Nothing counted yet; `now` is a time of the monotonic clock.
    pub fn begin(now: Duration) -> Instruments {
        Instruments {
            server: Arc::new(ServerInstruments::begin(now)),
            tally: Arc::default(),
            tables: Mutex::default(),
        }
    }

    /// Those of all regions together.
    pub fn server(&self) -> &Arc<ServerInstruments> {
        &self.server
    }

    /// Tells the server's meters what its regions counted; for who is about to look at them.
    pub fn tell_meters(&self) {
        let requests = self.tally.requests();
        self.server.read_rows.tell(requests.reads);
        self.server.written_rows.tell(requests.writes);
    }

    /// Tables that have a region here, in order of their names.
    pub fn tables(&self) -> Vec<(TableName, Arc<TableInstruments>)> {
        let mut tables = self.lock();
        tables.retain(|_, of| of.strong_count() > 0);
        tables.iter().filter_map(|(table, of)| Some((table.clone(), of.upgrade()?))).collect()
    }

    /// For a region of `table` that is opened at `now`.
    pub fn of_region(&self, table: &TableName, now: Duration) -> RegionInstruments {
        let mut tables = self.lock();
        let of_table = tables.get(table).and_then(Weak::upgrade).unwrap_or_else(|| {
            let begun = Arc::new(TableInstruments::begin(now));
            tables.insert(table.clone(), Arc::downgrade(&begun));
            begun
        });
        RegionInstruments::new(self.server.clone(), self.tally.clone(), of_table)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TableName, Weak<TableInstruments>>> {
        // A map: whole after any panic.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_of_a_table_count_together_as_long_as_one_is_open() {
        let all = Instruments::begin(Duration::ZERO);
        let [t, u] = ["t", "u"].map(|name| TableName::parse(name).unwrap());
        let opened = [&t, &t, &u].map(|table| all.of_region(table, Duration::ZERO));
        for region in &opened {
            region.note(Operation::Put, Duration::from_millis(3));
        }
        opened[0].note(Operation::Put, Duration::from_millis(1500));
        let puts = |all: &Instruments| {
            let of = |(table, of): (TableName, Arc<TableInstruments>)| {
                (table.to_string(), of.latencies.put.micros().count())
            };
            all.tables().into_iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(puts(&all), [("t".to_owned(), 3), ("u".to_owned(), 1)]);
        assert_eq!((all.server().put.micros().count(), all.server().slow_puts.get()), (4, 1));
        let [first, second, third] = opened;
        drop((first, third));
        assert_eq!(puts(&all), [("t".to_owned(), 3)]);
        drop(second);
        assert!(all.tables().is_empty());
    }
}
