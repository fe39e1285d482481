//! Layer 2: the border between HBase's protocol and our own types.
//!
//! * [`exception`]: Java exceptions by class name, in the forms in which they travel;
//! * [`convert`]: gets, scans, mutations and results; [`filter`]: what filters become;
//! * [`service`]: HBase's services as traits over protobuf messages, and the tables of their methods;
//! * [`meta`]: the rows of `hbase:meta`; [`quota`]: those of `hbase:quota`.
//!
//! Knows nothing about: connections and frames (`rpc`), regions and files (`engine`).

pub mod convert;
pub mod exception;
pub mod filter;
pub mod meta;
pub mod quota;
pub mod service;
