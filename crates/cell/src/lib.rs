//! Layer 1: cells, their bytes and their order, what is asked of them and done to them, and the schema they live in.
//!
//! * [`cell`](mod@cell): the borrowed view [`Cell`] and the contiguous [`KeyValue`];
//! * [`key`]: building and taking apart the key part, seek keys;
//! * [`order`]: HBase's total order of keys, plain and for `hbase:meta`;
//! * [`codec`]: cells on the wire (KeyValueCodec);
//! * [`tags`]: what cells say about themselves;
//! * [`query`], [`mutation`], [`condition`]: Get, Scan, Put, Delete, Increment, Append, checks as values;
//! * [`filter`]: what reads leave out, as values;
//! * [`coprocessor`]: which endpoints a table names;
//! * [`attribute`]: which attributes and settings there are, and which values each accepts;
//! * [`schema`], [`region`], [`range`]: tables, families, regions, their names and ranges of rows.
//!
//! Knows nothing about: files, blocks, protobuf, sockets. No input or output happens here.

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

/// The timestamp that a client sends for "now" (`HConstants.LATEST_TIMESTAMP`): the server puts its clock in its place.
pub const LATEST_TIMESTAMP: i64 = i64::MAX;

/// The smallest timestamp, used in seek keys only (`HConstants.OLDEST_TIMESTAMP`).
pub const OLDEST_TIMESTAMP: i64 = i64::MIN;
