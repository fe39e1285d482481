//! What regions count while they work: each for itself, all of a table together, all of a server.
//!
//! Who does something notes it once, at its region ([`RegionInstruments`]), which has the places of its table and of the
//! server at hand. What a table and its server both have is noted for the table ([`tables`]). Names and meanings are HBase's.

mod files;
mod region;
mod server;
mod store;
mod table;
mod tables;
mod tally;

use std::sync::Arc;
use std::time::Duration;

use cell::schema::TableName;

pub(crate) use files::{CompactionWork, FlushWork};
pub(crate) use region::RegionCounts;
pub use region::{EndedGet, Operation, RegionInstruments, Usage};
pub use server::ServerInstruments;
pub(crate) use store::{Origin, StoreCounts, StoreReads};
pub use table::{TableInstruments, TableLatencies, TableWork};
use tables::Tables;
use tally::Tally;

/// What all regions of a server count, and each of its tables.
pub struct Instruments {
    server: Arc<ServerInstruments>,
    tally: Arc<Tally>,
    tables: Arc<Tables>,
}

impl Instruments {
    /// Nothing counted yet; `now` is a time of the monotonic clock.
    pub fn begin(now: Duration) -> Instruments {
        let server = Arc::new(ServerInstruments::begin(now));
        let tables = Tables::begin(&server, now);
        Instruments { server, tally: Arc::default(), tables }
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
        self.tables.open()
    }

    /// Ends an interval of how long what clients ask of tables takes, in the pass in which the server's ends.
    pub fn roll_latencies(&self) {
        self.tables.roll_latencies();
    }

    /// For a region of `table` that is opened at `now`.
    pub fn of_region(&self, table: &TableName, now: Duration) -> RegionInstruments {
        let table = self.tables.join(table, now);
        RegionInstruments::new(self.server.clone(), self.tally.clone(), (self.tables.clone(), table))
    }
}

#[cfg(test)]
mod tests {
    use base::metrics::Source;

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
        assert_eq!(all.server().put.micros().count(), 4, "the server's own are not forgotten");
        let again = all.of_region(&t, Duration::ZERO);
        again.note(Operation::Put, Duration::from_millis(1));
        assert_eq!((puts(&all), all.server().put.micros().count()), (vec![("t".to_owned(), 1)], 5));
    }

    /// A table's interval and its server's end in one pass, whichever comes first, and the table may go in between.
    #[test]
    fn the_server_tells_of_all_tables_intervals() {
        let all = Instruments::begin(Duration::ZERO);
        let table = |name| all.of_region(&TableName::parse(name).unwrap(), Duration::ZERO);
        let [t, u] = [table("t"), table("u")];
        t.note_gets(2, Duration::from_millis(5));
        u.note_gets(1, Duration::from_millis(90));
        all.server().roll();
        all.roll_latencies();
        let told = || {
            let interval = all.server().get.micros().interval();
            (interval.count(), interval.min(), interval.max())
        };
        assert_eq!(told(), (3, 5000, 90_000));
        u.note_gets(1, Duration::from_millis(1));
        drop(u);
        assert_eq!(told(), (3, 5000, 90_000));
        t.note_gets(1, Duration::from_millis(7));
        all.roll_latencies();
        all.server().roll();
        assert_eq!(told(), (2, 1000, 7000), "one of the table that is gone");
    }
}
