//! HBase's protobuf messages, and their conversion to and from the types of `cell`.
//!
//! The messages are generated from `proto/*.proto` (`cargo run -p proto --example generate`) and
//! checked in, so a build needs no protobuf compiler. If a field number has different meanings in
//! 2.x and 3.0, the files use that of 2.x and note the other one. The decoder does not enforce
//! required fields: a missing one has its type's default.
//!
//! * [`convert`]: tables, families, regions, servers, namespaces;
//! * [`exception`]: Java exceptions, by class name;
//! * [`grampus`]: messages of Grampus's own endpoint, which HBase does not have;
//! * [`rest`]: bodies of HBase's REST API;
//! * [`magic`]: the `PBUF` prefix of stored messages, and length-delimited messages.
//!
//! Not here: sockets, files; gets, scans and mutations (`wire`).

#[rustfmt::skip]
#[allow(missing_docs, clippy::all)]
mod generated;

#[rustfmt::skip]
#[allow(missing_docs, clippy::all)]
pub mod grampus;

#[rustfmt::skip]
#[allow(missing_docs, clippy::all)]
pub mod rest;

pub mod convert;
pub mod exception;
pub mod magic;

pub use generated::*;

/// `google.protobuf.Any`: a serialized message and the name of its type. HBase's messages rarely
/// use it.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Any {
    /// Type name of the message in `value`.
    #[prost(string, tag = "1")]
    pub type_url: ::prost::alloc::string::String,
    /// The serialized message.
    #[prost(bytes = "bytes", tag = "2")]
    pub value: ::bytes::Bytes,
}
