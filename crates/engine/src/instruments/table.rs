//! What the regions of a table count together. Names are the ends of HBase's, behind `Namespace_NS_table_T_metric_`.

use std::time::Duration;

use cell::schema::TableName;

use crate::instruments::files::{CompactionPlaces, FlushPlaces};
use crate::instruments::region::Usage;
use crate::instruments::tally::Tally;

/// What the regions of a table count.
pub struct TableInstruments {
    pub(super) table: TableName,
    /// How long what clients asked took.
    pub latencies: TableLatencies,
    /// What became of their cells.
    pub work: TableWork,
    pub(super) tally: Tally,
}

impl TableInstruments {
    /// Nothing counted yet; `now` is a time of the monotonic clock.
    pub fn begin(table: &TableName, now: Duration) -> TableInstruments {
        TableInstruments {
            table: table.clone(),
            latencies: TableLatencies::begin(now),
            work: TableWork::begin(now),
            tally: Tally::default(),
        }
    }

    /// What calls used in its regions, those of closed ones among them.
    pub fn usage(&self) -> Usage {
        self.tally.requests().usage
    }

    /// Tells the meters what the regions counted; for who is about to look at them.
    pub fn tell_meters(&self) {
        let requests = self.tally.requests();
        self.latencies.read_rows.tell(requests.reads);
        self.latencies.written_rows.tell(requests.writes);
    }
}

base::instruments! {
    /// How long what clients asked of a table took.
    pub struct TableLatencies in "RegionServer,sub=TableLatencies" {
        /// How long a Get took, each of a batch for itself.
        get: Times = "getTime",
        /// How long a put of one row took.
        put: Times = "putTime",
        /// How long puts took that were made together.
        put_batch: Times = "putBatchTime",
        /// How long a delete in one row took.
        delete: Times = "deleteTime",
        /// How long deletes took that were made together.
        delete_batch: Times = "deleteBatchTime",
        /// How long an increment took.
        increment: Times = "incrementTime",
        /// How long an append took.
        append: Times = "appendTime",
        /// How long a call of a scan took.
        scan_time: Times = "scanTime",
        /// Bytes of cells that a call of a scan answered with.
        scan_size: Sizes = "scanSize",
        /// How long a delete on a condition took.
        check_and_delete: Times = "checkAndDeleteTime",
        /// How long a put on a condition took.
        check_and_put: Times = "checkAndPutTime",
        /// How long changes on a condition took, of whatever kind.
        check_and_mutate: Times = "checkAndMutateTime",
        /// Rows that clients read.
        read_rows: Meter = "tableReadQueryPerSecond",
        /// Mutations that clients made.
        written_rows: Meter = "tableWriteQueryPerSecond",
    }
}

base::instruments! {
    /// What became of a table's cells.
    pub struct TableWork in "RegionServer,sub=Tables" {
        /// How long a flush took.
        flush_time: Times = "flushTime",
        /// Bytes of cells in the memstores that were flushed.
        flush_memstore_size: Sizes = "flushMemstoreSize",
        /// Bytes of the files that a flush made.
        flush_output_size: Sizes = "flushOutputSize",
        /// Bytes of cells that were flushed.
        flushed_memstore_bytes: Counter = "flushedMemstoreBytes" in Bytes,
        /// Bytes of files that flushes made.
        flushed_output_bytes: Counter = "flushedOutputBytes" in Bytes,
        /// How long a compaction took.
        compaction_time: Times = "compactionTime",
        /// Files that it read.
        compaction_input_files: Histogram = "compactionInputFileCount",
        /// Their bytes.
        compaction_input_size: Sizes = "compactionInputSize",
        /// Files that it made.
        compaction_output_files: Histogram = "compactionOutputFileCount",
        /// Their bytes.
        compaction_output_size: Sizes = "compactionOutputSize",
        /// Bytes of files that compactions read.
        compacted_input_bytes: Counter = "compactedInputBytes" in Bytes,
        /// Bytes of files that compactions made.
        compacted_output_bytes: Counter = "compactedOutputBytes" in Bytes,
        /// How long a major compaction took.
        major_compaction_time: Times = "majorCompactionTime",
        /// Files that it read.
        major_compaction_input_files: Histogram = "majorCompactionInputFileCount",
        /// Their bytes.
        major_compaction_input_size: Sizes = "majorCompactionInputSize",
        /// Files that it made.
        major_compaction_output_files: Histogram = "majorCompactionOutputFileCount",
        /// Their bytes.
        major_compaction_output_size: Sizes = "majorCompactionOutputSize",
        /// Bytes of files that major compactions read.
        major_compacted_input_bytes: Counter = "majorCompactedInputBytes" in Bytes,
        /// Bytes of files that major compactions made.
        major_compacted_output_bytes: Counter = "majorCompactedOutputBytes" in Bytes,
        /// Splits that this server asked for.
        split_requests: Counter = "splitRequestCount",
        /// Those that were begun.
        split_successes: Counter = "splitSuccessCount",
    }
}

impl TableWork {
    pub(super) fn flushes(&self) -> FlushPlaces<'_> {
        FlushPlaces {
            time: &self.flush_time,
            memstore_size: &self.flush_memstore_size,
            output_size: &self.flush_output_size,
            memstore_bytes: &self.flushed_memstore_bytes,
            output_bytes: &self.flushed_output_bytes,
        }
    }

    pub(super) fn compactions(&self) -> CompactionPlaces<'_> {
        CompactionPlaces {
            time: &self.compaction_time,
            input_files: &self.compaction_input_files,
            input_size: &self.compaction_input_size,
            output_files: &self.compaction_output_files,
            output_size: &self.compaction_output_size,
            input_bytes: &self.compacted_input_bytes,
            output_bytes: &self.compacted_output_bytes,
        }
    }

    pub(super) fn major_compactions(&self) -> CompactionPlaces<'_> {
        CompactionPlaces {
            time: &self.major_compaction_time,
            input_files: &self.major_compaction_input_files,
            input_size: &self.major_compaction_input_size,
            output_files: &self.major_compaction_output_files,
            output_size: &self.major_compaction_output_size,
            input_bytes: &self.major_compacted_input_bytes,
            output_bytes: &self.major_compacted_output_bytes,
        }
    }
}
