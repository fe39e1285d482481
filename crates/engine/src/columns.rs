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
//! * [`plan`]: which rows are read in which way; [`cut`]: by which files;
//! * [`rows`]: cells in order become vectors; [`versions`]: several versions of a row;
//! * [`kept`]: vectors in the cache, and what is known of their cells; [`marks`]: where in them which row is;
//! * [`stretch`]: vectors of rows of one file; [`sidecar`]: the same from the file's column sidecar, where it has one;
//! * [`others`]: which of the rows others have cells of; [`part`]: both together;
//! * [`merged`]: rows of all of a region; [`reading`]: files beside scanners;
//! * [`scan`]: puts it together, unit by unit, so that several threads can share a scan.

mod cut;
mod kept;
mod marks;
mod merged;
mod others;
mod part;
mod plan;
mod reading;
mod rows;
mod scan;
mod sidecar;
mod stretch;
mod versions;

pub(crate) use kept::{Kept, VectorNumbers};
pub use plan::{Plan, Unit, Wanted};
pub use scan::{BatchSink, ColumnScan, Looked, ReadUnit, Taken};
