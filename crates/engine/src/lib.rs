//! Regions. Code to write, store (in memory and files), and read their rows.
//!
//! Writing:
//! * [`region`]: a region from open to close: batches, flush, compaction, metrics;
//! * [`store`]: the views that readers take and writers replace; [`half`]: parts of files after a
//!   split;
//! * [`split`]: the files of regions created by a split or merge;
//! * [`mvcc`], [`row_locks`]: the order of writes and their visibility;
//! * [`nonces`]: operations that already ran, for clients that retry;
//! * [`recovery`], [`replay`]: edits of a log that are not in files yet;
//! * [`salvage`]: opening a region without damaged files, if their loss is accepted;
//! * [`compaction`]: which files are compacted;
//! * [`instruments`]: metrics of regions, tables, and the server;
//! * [`budget`]: the memory of memstores; [`write_pace`]: the speed of writers while
//!   flushes take long; [`chores`]: background flushes and compactions.
//!
//! Reading:
//! * [`memstore`]: sorted cells in memory;
//! * [`scanner`]: from views to results: merging, deletes, versions, limits;
//! * [`filter`]: evaluation of filters;
//! * [`caching`]: which blocks are cached;
//! * [`stored`]: the store files of a region that another process serves.
//!
//! Usable as a library without a server. Knows nothing about protobuf, sockets, ZooKeeper, or Java
//! class names.

pub mod budget;
pub mod caching;
pub mod chores;
pub mod compaction;
pub mod error;
pub mod filter;
pub mod half;
pub mod instruments;
pub mod memstore;
pub mod mob;
pub mod mvcc;
pub mod nonces;
pub mod recovery;
pub mod region;
pub mod replay;
pub mod row_locks;
pub mod salvage;
pub mod scanner;
pub mod split;
pub mod store;
pub mod stored;
pub mod write_pace;

pub use error::Error;
pub use mvcc::Mvcc;
pub use region::{Opening, Region, RegionServices};
pub use store::{StoreFile, StoreView};
