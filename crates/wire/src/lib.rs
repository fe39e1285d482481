//! Translation between HBase's protocol and our own types.
//!
//! * [`convert`]: gets, scans, mutations and results; [`filter`]: filters and comparators;
//! * [`service`]: HBase's services as traits over protobuf messages, and their method tables;
//! * [`meta`]: the rows of `hbase:meta`; [`quota`]: the rows of `hbase:quota`.
//!
//! Does not depend on connections and frames (`rpc`) or on regions and files (`engine`).

pub mod convert;
pub mod filter;
pub mod meta;
pub mod quota;
pub mod service;
