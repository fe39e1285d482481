//! Metrics that regions record while they work: per region, per table, and per server.
//!
//! An event is recorded once, at its region ([`RegionInstruments`]), which holds the metrics of its
//! table and of the server. Latencies are recorded for the table only, and the server aggregates
//! those of its tables ([`tables`]). Names and meanings are HBase's.

mod compaction_forecast;
mod files;
mod mob;
mod region;
mod server;
mod store;
mod table;
mod tables;
mod tally;

use std::sync::Arc;
use std::time::Duration;

use cell::schema::TableName;

pub use compaction_forecast::CompactionForecast;
pub(crate) use compaction_forecast::{ExpectedCompaction, ForecastNumber};
pub(crate) use files::{CompactionWork, FlushWork};
pub use mob::MobInstruments;
pub(crate) use region::RegionCounts;
pub use region::{GetSample, Operation, RegionInstruments, Usage};
pub use server::ServerInstruments;
pub(crate) use store::{Origin, StoreCounts, StoreReads};
pub use table::{TableInstruments, TableLatencies, TableWork};
use tables::Tables;
use tally::Tally;

/// The metrics of all regions of a server, and of its tables.
pub struct Instruments {
    server: Arc<ServerInstruments>,
    tally: Arc<Tally>,
    tables: Arc<Tables>,
    compaction_forecast: CompactionForecast,
}

impl Instruments {
    /// Metrics without events. `now` is a time of the monotonic clock.
    pub fn begin(now: Duration) -> Instruments {
        let server = Arc::new(ServerInstruments::begin(now));
        let tables = Tables::begin(&server, now);
        Instruments {
            server,
            tally: Arc::default(),
            tables,
            compaction_forecast: CompactionForecast::default(),
        }
    }

    /// The metrics of all regions together.
    pub fn server(&self) -> &Arc<ServerInstruments> {
        &self.server
    }

    /// The compactions that reduce the number of files.
    pub fn compaction_forecast(&self) -> &CompactionForecast {
        &self.compaction_forecast
    }

    /// Updates the server's meters from the counts of its regions. Called before the meters are
    /// read.
    pub fn update_meters(&self) {
        let requests = self.tally.requests();
        self.server.read_rows.set_total(requests.reads);
        self.server.written_rows.set_total(requests.writes);
    }

    /// Tables that have a region here, sorted by name.
    pub fn tables(&self) -> Vec<(TableName, Arc<TableInstruments>)> {
        self.tables.open()
    }

    /// Ends an interval of the tables' latencies, in the same pass that ends the server's.
    pub fn roll_latencies(&self) {
        self.tables.roll_latencies();
    }

    /// The metrics of a region of `table` that is opened at `now`.
    pub fn of_region(&self, table: &TableName, now: Duration) -> RegionInstruments {
        let table = self.tables.register(table, now);
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
            region.record(Operation::Put, Duration::from_millis(3));
        }
        opened[0].record(Operation::Put, Duration::from_millis(1500));
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
        assert_eq!(all.server().put.micros().count(), 4, "the server keeps those of closed tables");
        let again = all.of_region(&t, Duration::ZERO);
        again.record(Operation::Put, Duration::from_millis(1));
        assert_eq!((puts(&all), all.server().put.micros().count()), (vec![("t".to_owned(), 1)], 5));
    }

    /// The intervals of a table and of its server end in one pass, in either order. The table may
    /// be closed in between.
    #[test]
    fn the_server_reports_the_intervals_of_all_tables() {
        let all = Instruments::begin(Duration::ZERO);
        let table = |name| all.of_region(&TableName::parse(name).unwrap(), Duration::ZERO);
        let [t, u] = [table("t"), table("u")];
        t.record_gets(2, Duration::from_millis(5));
        u.record_gets(1, Duration::from_millis(90));
        all.server().roll();
        all.roll_latencies();
        let counts = || {
            let interval = all.server().get.micros().interval();
            (interval.count(), interval.min(), interval.max())
        };
        assert_eq!(counts(), (3, 5000, 90_000));
        u.record_gets(1, Duration::from_millis(1));
        drop(u);
        assert_eq!(counts(), (3, 5000, 90_000));
        t.record_gets(1, Duration::from_millis(7));
        all.roll_latencies();
        all.server().roll();
        assert_eq!(counts(), (2, 1000, 7000), "one is of the closed table");
    }
}
