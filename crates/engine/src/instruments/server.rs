//! What all regions of a server count together.

use crate::instruments::files::{CompactionPlaces, FlushPlaces};

base::instruments! {
    /// What clients ask, and what becomes of their cells, in all regions of a server.
    pub struct ServerInstruments in "RegionServer,sub=Server" {
        /// How long a Get took, each of a batch for itself.
        get: Times = "Get",
        /// How long a put of one row took.
        put: Times = "Put",
        /// How long puts took that were made together.
        put_batch: Times = "PutBatch",
        /// How long a delete in one row took.
        delete: Times = "Delete",
        /// How long deletes took that were made together.
        delete_batch: Times = "DeleteBatch",
        /// How long a delete on a condition took.
        check_and_delete: Times = "CheckAndDelete",
        /// How long a put on a condition took.
        check_and_put: Times = "CheckAndPut",
        /// How long changes on a condition took, of whatever kind.
        check_and_mutate: Times = "CheckAndMutate",
        /// How long an increment took.
        increment: Times = "Increment",
        /// How long an append took.
        append: Times = "Append",
        /// How long a call of a scan took.
        scan_time: Times = "ScanTime",
        /// Bytes of cells that a call of a scan answered with.
        scan_size: Sizes = "ScanSize",
        /// Rows that clients read.
        read_rows: Meter = "ServerReadQueryPerSecond",
        /// Mutations that clients made.
        written_rows: Meter = "ServerWriteQueryPerSecond",
        /// Gets of more than a second.
        slow_gets: Counter = "slowGetCount",
        /// Puts of more than a second.
        slow_puts: Counter = "slowPutCount",
        /// Deletes of more than a second.
        slow_deletes: Counter = "slowDeleteCount",
        /// Increments of more than a second.
        slow_increments: Counter = "slowIncrementCount",
        /// Appends of more than a second.
        slow_appends: Counter = "slowAppendCount",
        /// Changes whose condition held.
        checks_passed: Counter = "checkMutatePassedCount",
        /// Changes whose condition did not hold.
        checks_failed: Counter = "checkMutateFailedCount",
        /// How long a flush took.
        flush_time: Times = "FlushTime",
        /// Bytes of cells in the memstores that were flushed.
        flush_memstore_size: Sizes = "FlushMemstoreSize",
        /// Bytes of the files that a flush made.
        flush_output_size: Sizes = "FlushOutputSize",
        /// Bytes of cells that were flushed.
        flushed_memstore_bytes: Counter = "flushedMemstoreBytes" in Bytes,
        /// Bytes of files that flushes made.
        flushed_output_bytes: Counter = "flushedOutputBytes" in Bytes,
        /// Cells that were flushed.
        flushed_cells: Counter = "flushedCellsCount",
        /// Their bytes.
        flushed_cells_bytes: Counter = "flushedCellsSize" in Bytes,
        /// How long a compaction took.
        compaction_time: Times = "CompactionTime",
        /// Files that it read.
        compaction_input_files: Histogram = "CompactionInputFileCount",
        /// Their bytes.
        compaction_input_size: Sizes = "CompactionInputSize",
        /// Files that it made.
        compaction_output_files: Histogram = "CompactionOutputFileCount",
        /// Their bytes.
        compaction_output_size: Sizes = "CompactionOutputSize",
        /// Bytes of files that compactions read.
        compacted_input_bytes: Counter = "compactedInputBytes" in Bytes,
        /// Bytes of files that compactions made.
        compacted_output_bytes: Counter = "compactedOutputBytes" in Bytes,
        /// Cells that minor compactions wrote.
        compacted_cells: Counter = "compactedCellsCount",
        /// Their bytes, unpacked.
        compacted_cells_bytes: Counter = "compactedCellsSize" in Bytes,
        /// How long a major compaction took.
        major_compaction_time: Times = "MajorCompactionTime",
        /// Files that it read.
        major_compaction_input_files: Histogram = "MajorCompactionInputFileCount",
        /// Their bytes.
        major_compaction_input_size: Sizes = "MajorCompactionInputSize",
        /// Files that it made.
        major_compaction_output_files: Histogram = "MajorCompactionOutputFileCount",
        /// Their bytes.
        major_compaction_output_size: Sizes = "MajorCompactionOutputSize",
        /// Bytes of files that major compactions read.
        major_compacted_input_bytes: Counter = "majorCompactedInputBytes" in Bytes,
        /// Bytes of files that major compactions made.
        major_compacted_output_bytes: Counter = "majorCompactedOutputBytes" in Bytes,
        /// Cells that major compactions wrote.
        major_compacted_cells: Counter = "majorCompactedCellsCount",
        /// Their bytes, unpacked.
        major_compacted_cells_bytes: Counter = "majorCompactedCellsSize" in Bytes,
        /// Mutations that were not to be in the log.
        unlogged_mutations: Counter = "mutationsWithoutWALCount",
        /// Bytes of their cells.
        unlogged_bytes: Counter = "mutationsWithoutWALSize" in Bytes,
        /// Mutations refused because their region had no room for them.
        blocked_requests: Counter = "blockedRequestCount",
        /// Splits that this server asked for.
        split_requests: Counter = "splitRequestCount",
        /// Those that were begun.
        split_successes: Counter = "splitSuccessCount",
    }
}

impl ServerInstruments {
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
