//! Rows of a region as vectors of columns, for aggregations, which read many rows and few columns
//! of each.
//!
//! ```text
//! wanted rows -> plan: units, in order -+-> a stretch of one file: vectors, or cells -+-> batches
//!                                       \-> all others: rows of a RegionScanner ------/
//! ```
//!
//! A [stretch](plan) consists of the rows of about 128 data blocks of one file. For most rows of a
//! stretch, no memstore and no other file has a cell. If the file has no deletes, the newest cell
//! of such a row's column is the first one. No merge is needed, and the result is the same as long
//! as the file exists. So the vectors of the wanted columns are stored in the block cache, one
//! entry per column, and the next query of these columns reads no cell. A few rows of a stretch may
//! have newer cells elsewhere. They are excluded from the vectors and read one by one. All other
//! rows are read by a scan.
//!
//! * [`plan`]: how each row is read; [`division`]: which files divide the rows into units;
//! * [`rows`]: builds vectors from cells in order; [`versions`]: several versions of a row;
//! * [`entry`]: vectors in the cache, and facts about their cells; [`marks`]: finds rows in
//!   vectors;
//! * [`stretch`]: vectors of the rows of one file; [`sidecar`]: the same from the file's column
//!   sidecar, if it has one;
//! * [`part`]: combines vectors with the rows that have cells elsewhere;
//! * [`merged`]: rows of a scan;
//! * [`scan`]: runs the plan unit by unit, so that several threads can share a scan;
//! * [`scanned`]: the rows of a scanner of store files that no server has open.
//!
//! Uses the engine through [`RegionReader`](engine::region::RegionReader) (the region at one read
//! point), [`CursorBlocks`](engine::scanner::CursorBlocks) (blocks for cursors of files) and
//! [`CachedValue`](engine::scanner::CachedValue) (vectors in the block cache). Knows nothing about
//! protobuf, sockets, or memstores.

mod division;
mod entry;
mod marks;
mod merged;
mod part;
mod plan;
mod rows;
mod scan;
mod scanned;
mod sidecar;
mod stretch;
mod versions;

pub use plan::{ColumnQuery, Plan, Unit};
pub use scan::{BatchSink, ColumnScan, ReadStats, ReadUnit, TakenRows};
pub use scanned::{ScannedBatch, ScannedRows};
