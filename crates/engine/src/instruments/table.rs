//! The metrics of all regions of a table together. Names are the ends of HBase's, after
//! `Namespace_NS_table_T_metric_`.

use std::time::Duration;

use cell::schema::TableName;

use crate::instruments::files::{CompactionMetrics, FlushMetrics};
use crate::instruments::region::Usage;
use crate::instruments::tally::Tally;

/// The metrics of the regions of a table.
pub struct TableInstruments {
    pub(super) table: TableName,
    /// Latencies of client operations.
    pub latencies: TableLatencies,
    /// Flushes, compactions, and splits.
    pub work: TableWork,
    pub(super) tally: Tally,
}

impl TableInstruments {
    /// Metrics without events. `now` is a time of the monotonic clock.
    pub fn begin(table: &TableName, now: Duration) -> TableInstruments {
        TableInstruments {
            table: table.clone(),
            latencies: TableLatencies::begin(now),
            work: TableWork::begin(now),
            tally: Tally::default(),
        }
    }

    /// The resources that calls used in its regions, including closed ones.
    pub fn usage(&self) -> Usage {
        self.tally.requests().usage
    }

    /// Updates the meters from the counts of the regions. Called before the meters are read.
    pub fn update_meters(&self) {
        let requests = self.tally.requests();
        self.latencies.read_rows.set_total(requests.reads);
        self.latencies.written_rows.set_total(requests.writes);
    }
}

base::instruments! {
    /// Latencies of client operations on a table.
    pub struct TableLatencies in "RegionServer,sub=TableLatencies" {
        /// Latency of a Get. Gets of a batch count one by one.
        get: Times = "getTime",
        /// Latency of a put of one row.
        put: Times = "putTime",
        /// Latency of a batch with puts.
        put_batch: Times = "putBatchTime",
        /// Latency of a delete in one row.
        delete: Times = "deleteTime",
        /// Latency of a batch with deletes.
        delete_batch: Times = "deleteBatchTime",
        /// Latency of an increment.
        increment: Times = "incrementTime",
        /// Latency of an append.
        append: Times = "appendTime",
        /// Latency of a scan call.
        scan_time: Times = "scanTime",
        /// Bytes of cells that a scan call returned.
        scan_size: Sizes = "scanSize",
        /// Latency of a conditional delete.
        check_and_delete: Times = "checkAndDeleteTime",
        /// Latency of a conditional put.
        check_and_put: Times = "checkAndPutTime",
        /// Latency of conditional changes of any kind.
        check_and_mutate: Times = "checkAndMutateTime",
        /// Rows that clients read.
        read_rows: Meter = "tableReadQueryPerSecond",
        /// Mutations that clients made.
        written_rows: Meter = "tableWriteQueryPerSecond",
    }
}

base::instruments! {
    /// Flushes, compactions, and splits of a table.
    pub struct TableWork in "RegionServer,sub=Tables" {
        /// Duration of a flush.
        flush_time: Times = "flushTime",
        /// Bytes of cells in the memstores of a flush.
        flush_memstore_size: Sizes = "flushMemstoreSize",
        /// Bytes of the files that a flush wrote.
        flush_output_size: Sizes = "flushOutputSize",
        /// Bytes of cells that were flushed.
        flushed_memstore_bytes: Counter = "flushedMemstoreBytes" in Bytes,
        /// Bytes of files that flushes wrote.
        flushed_output_bytes: Counter = "flushedOutputBytes" in Bytes,
        /// Duration of a compaction.
        compaction_time: Times = "compactionTime",
        /// Files that a compaction read.
        compaction_input_files: Histogram = "compactionInputFileCount",
        /// Bytes of the files that a compaction read.
        compaction_input_size: Sizes = "compactionInputSize",
        /// Files that a compaction wrote.
        compaction_output_files: Histogram = "compactionOutputFileCount",
        /// Bytes of the files that a compaction wrote.
        compaction_output_size: Sizes = "compactionOutputSize",
        /// Bytes of files that compactions read.
        compacted_input_bytes: Counter = "compactedInputBytes" in Bytes,
        /// Bytes of files that compactions wrote.
        compacted_output_bytes: Counter = "compactedOutputBytes" in Bytes,
        /// Duration of a major compaction.
        major_compaction_time: Times = "majorCompactionTime",
        /// Files that a major compaction read.
        major_compaction_input_files: Histogram = "majorCompactionInputFileCount",
        /// Bytes of the files that a major compaction read.
        major_compaction_input_size: Sizes = "majorCompactionInputSize",
        /// Files that a major compaction wrote.
        major_compaction_output_files: Histogram = "majorCompactionOutputFileCount",
        /// Bytes of the files that a major compaction wrote.
        major_compaction_output_size: Sizes = "majorCompactionOutputSize",
        /// Bytes of files that major compactions read.
        major_compacted_input_bytes: Counter = "majorCompactedInputBytes" in Bytes,
        /// Bytes of files that major compactions wrote.
        major_compacted_output_bytes: Counter = "majorCompactedOutputBytes" in Bytes,
        /// Splits that this server requested.
        split_requests: Counter = "splitRequestCount",
        /// Requested splits that began.
        split_successes: Counter = "splitSuccessCount",
    }
}

impl TableWork {
    pub(super) fn flushes(&self) -> FlushMetrics<'_> {
        FlushMetrics {
            time: &self.flush_time,
            memstore_size: &self.flush_memstore_size,
            output_size: &self.flush_output_size,
            memstore_bytes: &self.flushed_memstore_bytes,
            output_bytes: &self.flushed_output_bytes,
        }
    }

    pub(super) fn compactions(&self) -> CompactionMetrics<'_> {
        CompactionMetrics {
            time: &self.compaction_time,
            input_files: &self.compaction_input_files,
            input_size: &self.compaction_input_size,
            output_files: &self.compaction_output_files,
            output_size: &self.compaction_output_size,
            input_bytes: &self.compacted_input_bytes,
            output_bytes: &self.compacted_output_bytes,
        }
    }

    pub(super) fn major_compactions(&self) -> CompactionMetrics<'_> {
        CompactionMetrics {
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
