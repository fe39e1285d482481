//! Layer 3: regions: what is written to them, kept in memory and files, and read back.
//!
//! The writing half:
//! * [`region`]: a region from open to close: batches, flush, compaction, figures;
//! * [`store`]: the views that readers take and writers replace; [`half`]: files of which a store has a part;
//! * [`split`]: the files of regions that are made of others;
//! * [`mvcc`], [`row_locks`]: the order of writes, and what may be read;
//! * [`nonces`]: what was carried out already, for clients that ask again;
//! * [`replay`]: edits of a log that are not in files yet;
//! * [`salvage`]: opening a region without damaged files, when their loss is accepted;
//! * [`compaction`]: which files are compacted;
//! * [`instruments`]: what is counted of regions, tables and the server;
//! * [`budget`], [`chores`]: memory of memstores, the wish to be flushed, and who follows it.
//!
//! The reading half:
//! * [`memstore`]: cells in memory, in order;
//! * [`scanner`]: merging, deletes, versions, limits: from views to results;
//! * [`filter`]: filters at work;
//! * [`columns`]: rows as vectors of columns, for those who look at many rows and few columns.
//!
//! Usable as a library without a server. Knows nothing about: protobuf, sockets, ZooKeeper, Java class names.

pub mod budget;
pub mod caching;
pub mod chores;
pub mod columns;
pub mod compaction;
pub mod error;
pub mod filter;
pub mod half;
pub mod instruments;
pub mod memstore;
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

pub use error::Error;
pub use mvcc::Mvcc;
pub use region::{Opening, Region, RegionServices};
pub use store::{StoreFile, StoreView};
