//! Rows as vectors of columns: for aggregations, which look at many rows and few columns of each.
//!
//! ```text
//! rows wanted --> plan: Units, in order --> a stretch of one file: kept vectors, or a walk over its cells --> batches
//!                                      \--> all else: a RegionScanner's results, row by row ------------/
//! ```
//!
//! A [stretch](plan) is the rows of some hundred data blocks of one file. Of rows that nothing else, neither a memstore nor
//! another file, has cells of, where the file has no deletes, the newest cell of a column is the first one: no merge is needed,
//! and what was found is the same as long as the file lives. So the vectors of the columns asked for are kept in the block
//! cache, each by itself, and the next question about them looks at no cell. A few rows of a stretch may have newer cells
//! elsewhere: they are left out of the vectors and read by themselves. All other rows are read as every scan reads them.
//!
//! * [`plan`]: which rows are read in which way;
//! * [`rows`]: cells in order become vectors;
//! * [`kept`]: vectors in the cache, and what is known of their cells;
//! * [`stretch`]: rows of one file; [`others`]: those of them that others have cells of; [`merged`]: rows of all of a region;
//! * [`scan`]: puts it together, unit by unit, so that several threads can share a scan.

mod kept;
mod merged;
mod others;
mod plan;
mod rows;
mod scan;
mod stretch;

pub(crate) use kept::{KeptVector, VectorNumbers};
pub use plan::{Unit, Wanted};
pub use scan::{BatchSink, ColumnScan, Looked, ReadUnit};
