//! Where a region notes what it does.

use std::sync::Arc;
use std::time::Duration;

use base::metrics::{Count, Counts, OwnArea, Times, Took};
use cell::mutation::MutationKind;

use crate::instruments::files::{CompactionWork, FlushWork};
use crate::instruments::tables::Tables;
use crate::instruments::tally::Tally;
use crate::instruments::{ServerInstruments, TableInstruments};

/// HBase's bound: what takes longer is counted as slow.
const SLOW: Duration = Duration::from_secs(1);

/// What clients ask of a region besides reads, as HBase tells it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// One row written.
    Put,
    /// Changes made together, puts among them.
    PutBatch,
    /// Cells of one row deleted.
    Delete,
    /// Changes made together, deletes among them.
    DeleteBatch,
    /// Numbers counted up.
    Increment,
    /// Bytes appended to values.
    Append,
    /// A put on a condition.
    CheckAndPut,
    /// A delete on a condition.
    CheckAndDelete,
    /// Changes on a condition, of whatever kind.
    CheckAndMutate,
}

/// Where a region notes what it does: for itself, for its table and for the server.
pub struct RegionInstruments {
    server: Arc<ServerInstruments>,
    table: Arc<TableInstruments>,
    tables: Arc<Tables>,
    counts: Arc<Counts<RegionCounts>>,
    tally: Arc<Tally>,
    // Where this region is in the server's tally and in its table's.
    places: (u64, u64),
}

impl Drop for RegionInstruments {
    fn drop(&mut self) {
        self.tally.leave(self.places.0);
        self.table.tally.leave(self.places.1);
        self.tables.leave(&self.table);
    }
}

base::counts! {
    /// What a region counts for itself.
    pub(crate) struct RegionCounts {
        /// Rows read by gets.
        gets,
        read_units,
        write_units,
        work_nanos,
        /// Mutations.
        writes,
        /// Changes made together that had puts among them.
        puts,
        /// The same with deletes.
        deletes,
        increments,
        appends,
        /// Rows read by scans, and for changes.
        scanned,
        /// Rows that filters kept from clients.
        filtered_reads,
        /// Calls of scans.
        scans,
        compactions_failed,
        compacted_bytes,
        compacted_files,
    }
}

/// What calls used: what one could be charged for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Capacity units read: by the bytes of cells, each part of a call that read any at least one.
    pub read_units: u64,
    /// Capacity units written.
    pub write_units: u64,
    /// Nanoseconds for which they were worked on.
    pub work_nanos: u64,
}

impl Usage {
    /// Adds it to counts of the same things.
    #[inline]
    pub fn add_to(&self, read_units: &Count, write_units: &Count, work_nanos: &Count) {
        read_units.add(self.read_units);
        write_units.add(self.write_units);
        work_nanos.add(self.work_nanos);
    }

    pub(crate) fn of(counts: &Counts<RegionCounts>) -> Usage {
        Usage {
            read_units: counts.get(|of| &of.read_units),
            write_units: counts.get(|of| &of.write_units),
            work_nanos: counts.get(|of| &of.work_nanos),
        }
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.read_units += other.read_units;
        self.write_units += other.write_units;
        self.work_nanos += other.work_nanos;
    }
}

/// A call of `Get` that ended well, for all who note it.
pub struct EndedGet {
    /// How long it took.
    pub took: Took,
    /// Capacity units that it read.
    pub read_units: u64,
    /// For how long it was worked on.
    pub work_nanos: u64,
    /// That of the thread that notes it.
    pub area: OwnArea,
}

impl RegionCounts {
    /// Rows read by gets and scans.
    pub(crate) fn reads(counts: &Counts<RegionCounts>) -> u64 {
        counts.get(|of| &of.gets) + counts.get(|of| &of.scanned)
    }
}

impl RegionInstruments {
    pub(super) fn new(
        server: Arc<ServerInstruments>,
        tally: Arc<Tally>,
        (tables, table): (Arc<Tables>, Arc<TableInstruments>),
    ) -> RegionInstruments {
        let counts = Arc::default();
        let places = (tally.join(&counts), table.tally.join(&counts));
        RegionInstruments { server, table, tables, counts, tally, places }
    }

    /// Those of the server.
    pub fn server(&self) -> &ServerInstruments {
        &self.server
    }

    /// Those of the table.
    pub fn table(&self) -> &TableInstruments {
        &self.table
    }

    pub(crate) fn counts(&self) -> &Counts<RegionCounts> {
        &self.counts
    }

    /// An operation ended that took so long.
    pub fn note(&self, operation: Operation, took: Duration) {
        self.times(operation).record(took);
        match operation {
            Operation::Put | Operation::PutBatch => self.counts.increment(|of| &of.puts),
            Operation::Delete | Operation::DeleteBatch => self.counts.increment(|of| &of.deletes),
            Operation::Increment => self.counts.increment(|of| &of.increments),
            Operation::Append => self.counts.increment(|of| &of.appends),
            Operation::CheckAndPut | Operation::CheckAndDelete | Operation::CheckAndMutate => {}
        }
        if took > SLOW {
            self.note_slow(operation);
        }
    }

    /// Changes of this kind were made together with others or on a condition, which is noted for itself.
    pub fn note_made(&self, kind: MutationKind) {
        self.counts.increment(|of| match kind {
            MutationKind::Put => &of.puts,
            MutationKind::Delete => &of.deletes,
            MutationKind::Increment => &of.increments,
            MutationKind::Append => &of.appends,
        });
    }

    /// So many Gets ended, at least one, each of which took so long.
    #[inline]
    pub fn note_gets(&self, gets: u32, took: Duration) {
        self.table.latencies.get.record_many(took, gets);
        if took > SLOW {
            self.server.slow_gets.add(u64::from(gets));
        }
    }

    /// A call of `Get` ended well, whose row was read by [`Region::read_now`](crate::Region::read_now).
    #[inline]
    pub fn note_get(&self, get: &EndedGet) {
        self.table.latencies.get.note(get.took, get.area);
        if get.took.nanos() > SLOW.as_nanos() as u64 {
            self.server.slow_gets.increment();
        }
        if let Some(own) = self.counts.within(get.area) {
            own.gets.add(1);
            own.read_units.add(get.read_units);
            own.work_nanos.add(get.work_nanos);
        }
    }

    /// A call of a scan ended that took so long, and answered with so many bytes of cells.
    pub fn note_scan(&self, took: Duration, bytes: u64) {
        self.table.latencies.scan_time.record(took);
        self.table.latencies.scan_size.record(bytes);
        self.counts.increment(|of| &of.scans);
    }

    /// A part of a call ended that used this.
    #[inline]
    pub fn note_usage(&self, usage: &Usage) {
        if let Some(own) = self.counts.own() {
            usage.add_to(&own.read_units, &own.write_units, &own.work_nanos);
        }
    }

    /// So many rows were read by Gets.
    #[inline]
    pub(crate) fn note_rows_got(&self, rows: u64) {
        if rows > 0 {
            self.counts.add(|of| &of.gets, rows);
        }
    }

    /// So many rows were read by a scan, or for a change that depends on them.
    pub fn note_rows_scanned(&self, rows: u64) {
        self.counts.add(|of| &of.scanned, rows);
    }

    /// So many mutations are to be made.
    pub(crate) fn note_writes(&self, mutations: u64) {
        self.counts.add(|of| &of.writes, mutations);
    }

    /// Filters kept so many rows from a client.
    pub fn note_filtered(&self, rows: u64) {
        if rows > 0 {
            self.counts.add(|of| &of.filtered_reads, rows);
        }
    }

    /// So many mutations were made that are not in the log, with so many bytes of cells.
    pub(crate) fn note_unlogged(&self, mutations: u64, bytes: u64) {
        self.server.unlogged_mutations.add(mutations);
        self.server.unlogged_bytes.add(bytes);
    }

    /// A compaction failed.
    pub(crate) fn note_compaction_failed(&self) {
        self.counts.increment(|of| &of.compactions_failed);
    }

    /// A condition was judged.
    pub fn note_check(&self, held: bool) {
        if held { &self.server.checks_passed } else { &self.server.checks_failed }.increment();
    }

    /// This server asked for a split; whether it was begun.
    pub fn note_split(&self, is_begun: bool) {
        self.server.split_requests.increment();
        self.table.work.split_requests.increment();
        if is_begun {
            self.server.split_successes.increment();
            self.table.work.split_successes.increment();
        }
    }

    pub(crate) fn note_flush(&self, flush: &FlushWork) {
        [self.server.flushes(), self.table.work.flushes()].iter().for_each(|places| places.note(flush));
        self.server.flushed_cells.add(flush.memstore_cells);
        self.server.flushed_cells_bytes.add(flush.memstore_bytes);
    }

    pub(crate) fn note_compaction(&self, compaction: &CompactionWork) {
        let (server, table) = (&self.server, &self.table.work);
        [server.compactions(), table.compactions()].iter().for_each(|places| places.note(compaction));
        let (cells, bytes) = if compaction.is_major {
            let places = [server.major_compactions(), table.major_compactions()];
            places.iter().for_each(|places| places.note(compaction));
            (&server.major_compacted_cells, &server.major_compacted_cells_bytes)
        } else {
            (&server.compacted_cells, &server.compacted_cells_bytes)
        };
        cells.add(compaction.output_cells);
        bytes.add(compaction.output_cell_bytes);
        self.counts.add(|of| &of.compacted_bytes, compaction.input_bytes);
        self.counts.add(|of| &of.compacted_files, compaction.input_files);
    }

    /// The server's times are those of its tables ([`Tables`]).
    fn times(&self, operation: Operation) -> &Times {
        let table = &self.table.latencies;
        match operation {
            Operation::Put => &table.put,
            Operation::PutBatch => &table.put_batch,
            Operation::Delete => &table.delete,
            Operation::DeleteBatch => &table.delete_batch,
            Operation::Increment => &table.increment,
            Operation::Append => &table.append,
            Operation::CheckAndPut => &table.check_and_put,
            Operation::CheckAndDelete => &table.check_and_delete,
            Operation::CheckAndMutate => &table.check_and_mutate,
        }
    }

    fn note_slow(&self, operation: Operation) {
        let server = &self.server;
        let slow = match operation {
            Operation::Put | Operation::PutBatch => &server.slow_puts,
            Operation::Delete | Operation::DeleteBatch => &server.slow_deletes,
            Operation::Increment => &server.slow_increments,
            Operation::Append => &server.slow_appends,
            Operation::CheckAndPut | Operation::CheckAndDelete | Operation::CheckAndMutate => return,
        };
        slow.increment();
    }
}
