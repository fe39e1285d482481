//! The metrics of a region.

use std::sync::Arc;
use std::time::Duration;

use base::metrics::{Count, Counts, OwnArea, RecordedDuration, Times};
use cell::mutation::MutationKind;

use crate::instruments::files::{CompactionWork, FlushWork};
use crate::instruments::tables::Tables;
use crate::instruments::tally::Tally;
use crate::instruments::{ServerInstruments, TableInstruments};

/// HBase's threshold: operations that take longer are counted as slow.
const SLOW: Duration = Duration::from_secs(1);

/// Client operations other than reads, as HBase distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A put of one row.
    Put,
    /// A batch of changes that includes puts.
    PutBatch,
    /// A delete in one row.
    Delete,
    /// A batch of changes that includes deletes.
    DeleteBatch,
    /// An increment in one row.
    Increment,
    /// An append in one row.
    Append,
    /// A conditional put.
    CheckAndPut,
    /// A conditional delete.
    CheckAndDelete,
    /// Conditional changes of any kind.
    CheckAndMutate,
}

/// Records the work of a region for the region, its table, and the server.
pub struct RegionInstruments {
    server: Arc<ServerInstruments>,
    table: Arc<TableInstruments>,
    tables: Arc<Tables>,
    counts: Arc<Counts<RegionCounts>>,
    tally: Arc<Tally>,
    // The region's keys in the server's tally and in its table's.
    tally_keys: (u64, u64),
}

impl Drop for RegionInstruments {
    fn drop(&mut self) {
        self.tally.unregister(self.tally_keys.0);
        self.table.tally.unregister(self.tally_keys.1);
        self.tables.unregister(&self.table);
    }
}

base::counts! {
    /// The counters of a region.
    pub(crate) struct RegionCounts {
        /// Rows read by Gets.
        gets,
        read_units,
        write_units,
        work_nanos,
        /// Mutations.
        writes,
        /// Calls with puts: a single put, a batch that has puts, or a conditional change that has
        /// puts and whose condition held.
        puts,
        /// Calls with deletes, counted like puts.
        deletes,
        increments,
        appends,
        /// Rows read by scans, and by changes that depend on them.
        scanned,
        /// Rows that filters excluded from results.
        filtered_reads,
        /// Scan calls.
        scans,
        compactions_failed,
        compacted_bytes,
        compacted_files,
    }
}

/// The resources that calls used, as a basis for charging.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Capacity units read: by bytes of cells, at least one for each part of a call that read any.
    pub read_units: u64,
    /// Capacity units written.
    pub write_units: u64,
    /// Nanoseconds spent working on them.
    pub work_nanos: u64,
}

impl Usage {
    /// Adds it to these counters.
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

/// A successful `Get` call, for all that record it.
pub struct GetSample {
    /// How long it took.
    pub took: RecordedDuration,
    /// Capacity units that it read.
    pub read_units: u64,
    /// Nanoseconds spent working on it.
    pub work_nanos: u64,
    /// Counter area of the recording thread.
    pub area: OwnArea,
}

impl RegionCounts {
    /// Rows read by Gets and scans.
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
        let tally_keys = (tally.register(&counts), table.tally.register(&counts));
        RegionInstruments { server, table, tables, counts, tally, tally_keys }
    }

    /// The metrics of the server.
    pub fn server(&self) -> &ServerInstruments {
        &self.server
    }

    /// The metrics of the table.
    pub fn table(&self) -> &TableInstruments {
        &self.table
    }

    pub(crate) fn counts(&self) -> &Counts<RegionCounts> {
        &self.counts
    }

    /// Records an operation that took this long.
    pub fn record(&self, operation: Operation, took: Duration) {
        self.times(operation).record(took);
        match operation {
            Operation::Put | Operation::PutBatch => self.counts.increment(|of| &of.puts),
            Operation::Delete | Operation::DeleteBatch => self.counts.increment(|of| &of.deletes),
            Operation::Increment => self.counts.increment(|of| &of.increments),
            Operation::Append => self.counts.increment(|of| &of.appends),
            Operation::CheckAndPut | Operation::CheckAndDelete | Operation::CheckAndMutate => {}
        }
        if took > SLOW {
            self.count_slow(operation);
        }
    }

    /// Counts a change of this kind that was made in a batch or on a condition. The batch or
    /// condition itself is recorded by [`record`](Self::record).
    pub fn count_change(&self, kind: MutationKind) {
        self.counts.increment(|of| match kind {
            MutationKind::Put => &of.puts,
            MutationKind::Delete => &of.deletes,
            MutationKind::Increment => &of.increments,
            MutationKind::Append => &of.appends,
        });
    }

    /// Records at least one Get; each took this long.
    #[inline]
    pub fn record_gets(&self, gets: u32, took: Duration) {
        self.table.latencies.get.record_many(took, gets);
        if took > SLOW {
            self.server.slow_gets.add(u64::from(gets));
        }
    }

    /// Counts a successful call of `Get`, except for its row, which its reader counts.
    #[inline]
    pub fn record_get(&self, get: &GetSample) {
        self.table.latencies.get.record_in(get.took, get.area);
        if get.took.nanos() > SLOW.as_nanos() as u64 {
            self.server.slow_gets.increment();
        }
        if let Some(own) = self.counts.within(get.area) {
            own.read_units.add(get.read_units);
            own.work_nanos.add(get.work_nanos);
        }
    }

    /// Records a scan call that took this long and returned this many bytes of cells.
    pub fn record_scan(&self, took: Duration, bytes: u64) {
        self.table.latencies.scan_time.record(took);
        self.table.latencies.scan_size.record(bytes);
        self.counts.increment(|of| &of.scans);
    }

    /// Adds the resources that a part of a call used.
    #[inline]
    pub fn add_usage(&self, usage: &Usage) {
        if let Some(own) = self.counts.own() {
            usage.add_to(&own.read_units, &own.write_units, &own.work_nanos);
        }
    }

    /// Counts rows that Gets read.
    #[inline]
    pub(crate) fn count_rows_got(&self, rows: u64) {
        if rows > 0 {
            self.counts.add(|of| &of.gets, rows);
        }
    }

    /// Counts rows that a scan read, or a change that depends on them.
    pub fn count_rows_scanned(&self, rows: u64) {
        self.counts.add(|of| &of.scanned, rows);
    }

    /// Counts mutations that are about to be made.
    pub(crate) fn count_writes(&self, mutations: u64) {
        self.counts.add(|of| &of.writes, mutations);
    }

    /// Counts rows that filters excluded from results.
    pub fn count_filtered(&self, rows: u64) {
        if rows > 0 {
            self.counts.add(|of| &of.filtered_reads, rows);
        }
    }

    /// Counts mutations that skip the log, and their bytes of cells.
    pub(crate) fn count_unlogged(&self, mutations: u64, bytes: u64) {
        self.server.unlogged_mutations.add(mutations);
        self.server.unlogged_bytes.add(bytes);
    }

    /// Counts a failed compaction.
    pub(crate) fn count_failed_compaction(&self) {
        self.counts.increment(|of| &of.compactions_failed);
    }

    /// Counts a checked condition, and whether it held.
    pub fn count_check(&self, held: bool) {
        if held { &self.server.checks_passed } else { &self.server.checks_failed }.increment();
    }

    /// Counts a split that this server requested, and whether it began.
    pub fn count_split(&self, is_begun: bool) {
        self.server.split_requests.increment();
        self.table.work.split_requests.increment();
        if is_begun {
            self.server.split_successes.increment();
            self.table.work.split_successes.increment();
        }
    }

    pub(crate) fn record_flush(&self, flush: &FlushWork) {
        [self.server.flushes(), self.table.work.flushes()].iter().for_each(|metrics| metrics.record(flush));
        self.server.flushed_cells.add(flush.memstore_cells);
        self.server.flushed_cells_bytes.add(flush.memstore_bytes);
    }

    pub(crate) fn record_compaction(&self, compaction: &CompactionWork) {
        let (server, table) = (&self.server, &self.table.work);
        [server.compactions(), table.compactions()].iter().for_each(|metrics| metrics.record(compaction));
        let (cells, bytes) = if compaction.is_major {
            let metrics = [server.major_compactions(), table.major_compactions()];
            metrics.iter().for_each(|metrics| metrics.record(compaction));
            (&server.major_compacted_cells, &server.major_compacted_cells_bytes)
        } else {
            (&server.compacted_cells, &server.compacted_cells_bytes)
        };
        cells.add(compaction.output_cells);
        bytes.add(compaction.output_cell_bytes);
        self.counts.add(|of| &of.compacted_bytes, compaction.input_bytes);
        self.counts.add(|of| &of.compacted_files, compaction.input_files);
    }

    /// The latencies of an operation in this table. The server aggregates them ([`Tables`]).
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

    fn count_slow(&self, operation: Operation) {
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
