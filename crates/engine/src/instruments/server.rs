//! The metrics of all regions of a server together.

use crate::instruments::files::{CompactionMetrics, FlushMetrics};

base::instruments! {
    /// Client operations, flushes, compactions, and splits in all regions of a server.
    pub struct ServerInstruments in "RegionServer,sub=Server" {
        /// Latency of a Get. Gets of a batch count one by one.
        get: Times = "Get",
        /// Latency of a put of one row.
        put: Times = "Put",
        /// Latency of a batch with puts.
        put_batch: Times = "PutBatch",
        /// Latency of a delete in one row.
        delete: Times = "Delete",
        /// Latency of a batch with deletes.
        delete_batch: Times = "DeleteBatch",
        /// Latency of a conditional delete.
        check_and_delete: Times = "CheckAndDelete",
        /// Latency of a conditional put.
        check_and_put: Times = "CheckAndPut",
        /// Latency of conditional changes of any kind.
        check_and_mutate: Times = "CheckAndMutate",
        /// Latency of an increment.
        increment: Times = "Increment",
        /// Latency of an append.
        append: Times = "Append",
        /// Latency of a scan call.
        scan_time: Times = "ScanTime",
        /// Bytes of cells that a scan call returned.
        scan_size: Sizes = "ScanSize",
        /// Rows that clients read.
        read_rows: Meter = "ServerReadQueryPerSecond",
        /// Mutations that clients made.
        written_rows: Meter = "ServerWriteQueryPerSecond",
        /// Gets that took more than a second.
        slow_gets: Counter = "slowGetCount",
        /// Puts that took more than a second.
        slow_puts: Counter = "slowPutCount",
        /// Deletes that took more than a second.
        slow_deletes: Counter = "slowDeleteCount",
        /// Increments that took more than a second.
        slow_increments: Counter = "slowIncrementCount",
        /// Appends that took more than a second.
        slow_appends: Counter = "slowAppendCount",
        /// Conditional changes whose condition held.
        checks_passed: Counter = "checkMutatePassedCount",
        /// Conditional changes whose condition did not hold.
        checks_failed: Counter = "checkMutateFailedCount",
        /// Duration of a flush.
        flush_time: Times = "FlushTime",
        /// Bytes of cells in the memstores of a flush.
        flush_memstore_size: Sizes = "FlushMemstoreSize",
        /// Bytes of the files that a flush wrote.
        flush_output_size: Sizes = "FlushOutputSize",
        /// Bytes of cells that were flushed.
        flushed_memstore_bytes: Counter = "flushedMemstoreBytes" in Bytes,
        /// Bytes of files that flushes wrote.
        flushed_output_bytes: Counter = "flushedOutputBytes" in Bytes,
        /// Cells that were flushed.
        flushed_cells: Counter = "flushedCellsCount",
        /// Bytes of cells that were flushed.
        flushed_cells_bytes: Counter = "flushedCellsSize" in Bytes,
        /// Duration of a compaction.
        compaction_time: Times = "CompactionTime",
        /// Files that a compaction read.
        compaction_input_files: Histogram = "CompactionInputFileCount",
        /// Bytes of the files that a compaction read.
        compaction_input_size: Sizes = "CompactionInputSize",
        /// Files that a compaction wrote.
        compaction_output_files: Histogram = "CompactionOutputFileCount",
        /// Bytes of the files that a compaction wrote.
        compaction_output_size: Sizes = "CompactionOutputSize",
        /// Bytes of files that compactions read.
        compacted_input_bytes: Counter = "compactedInputBytes" in Bytes,
        /// Bytes of files that compactions wrote.
        compacted_output_bytes: Counter = "compactedOutputBytes" in Bytes,
        /// Cells that minor compactions wrote.
        compacted_cells: Counter = "compactedCellsCount",
        /// Uncompressed bytes of cells that minor compactions wrote.
        compacted_cells_bytes: Counter = "compactedCellsSize" in Bytes,
        /// Duration of a major compaction.
        major_compaction_time: Times = "MajorCompactionTime",
        /// Files that a major compaction read.
        major_compaction_input_files: Histogram = "MajorCompactionInputFileCount",
        /// Bytes of the files that a major compaction read.
        major_compaction_input_size: Sizes = "MajorCompactionInputSize",
        /// Files that a major compaction wrote.
        major_compaction_output_files: Histogram = "MajorCompactionOutputFileCount",
        /// Bytes of the files that a major compaction wrote.
        major_compaction_output_size: Sizes = "MajorCompactionOutputSize",
        /// Bytes of files that major compactions read.
        major_compacted_input_bytes: Counter = "majorCompactedInputBytes" in Bytes,
        /// Bytes of files that major compactions wrote.
        major_compacted_output_bytes: Counter = "majorCompactedOutputBytes" in Bytes,
        /// Cells that major compactions wrote.
        major_compacted_cells: Counter = "majorCompactedCellsCount",
        /// Uncompressed bytes of cells that major compactions wrote.
        major_compacted_cells_bytes: Counter = "majorCompactedCellsSize" in Bytes,
        /// Mutations that skipped the log.
        unlogged_mutations: Counter = "mutationsWithoutWALCount",
        /// Bytes of the cells of mutations that skipped the log.
        unlogged_bytes: Counter = "mutationsWithoutWALSize" in Bytes,
        /// Mutations refused with RegionTooBusyException.
        blocked_requests: Counter = "blockedRequestCount",
        /// Splits that this server requested.
        split_requests: Counter = "splitRequestCount",
        /// Requested splits that began.
        split_successes: Counter = "splitSuccessCount",
    }
}

impl ServerInstruments {
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
