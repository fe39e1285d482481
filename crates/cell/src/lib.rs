//! Cells, their encoding and order, reads and writes as values, and the schema.
//!
//! * [`cell`](mod@cell): the borrowed view [`Cell`] and the contiguous [`KeyValue`];
//! * [`key`]: encoding and decoding of the key part, seek keys;
//! * [`order`]: HBase's total order of keys, plain and for `hbase:meta`;
//! * [`codec`]: cells on the wire (KeyValueCodec);
//! * [`tags`]: metadata of cells;
//! * [`query`], [`mutation`], [`condition`]: Get, Scan, Put, Delete, Increment, Append and checks
//!   as values;
//! * [`filter`]: filters of reads as values;
//! * [`coprocessor`]: the endpoints that a table names;
//! * [`attribute`]: all attributes and settings, and the values that each accepts;
//! * [`schema`], [`region`], [`range`]: tables, families, regions, their names and row ranges.
//!
//! Depends on no files, blocks, protobuf or sockets. This crate performs no I/O.

pub mod attribute;
pub mod cell;
pub mod codec;
pub mod condition;
pub mod coprocessor;
pub mod filter;
pub mod key;
pub mod mutation;
pub mod order;
pub mod query;
pub mod range;
pub mod region;
pub mod schema;
pub mod tags;

pub use cell::{Cell, CellType, KeyValue};
pub use key::KeyBuf;
pub use order::CellOrder;
pub use range::{EndKey, KeyRange};

/// The timestamp that a client sends for "now" (`HConstants.LATEST_TIMESTAMP`). The server replaces
/// it by its clock.
pub const LATEST_TIMESTAMP: i64 = i64::MAX;

/// The smallest timestamp, used in seek keys only (`HConstants.OLDEST_TIMESTAMP`).
pub const OLDEST_TIMESTAMP: i64 = i64::MIN;
