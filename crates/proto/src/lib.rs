//! Layer 1.5: HBase's protobuf messages, and their conversion to and from the types of `cell`.
//!
//! The messages are generated from `proto/*.proto` (`cargo run -p proto --example generate`) and checked in, so a build
//! needs no protobuf compiler. Where 2.x and 3.0 give a field number two meanings, the files have that of 2.x and say
//! so. Required fields are not enforced by the decoder: a missing one is its type's default.
//!
//! * [`convert`]: tables, families, regions, servers, namespaces;
//! * [`grampus`]: messages of Grampus' own endpoint, which HBase does not have;
//! * [`magic`]: the `PBUF` prefix of stored messages, and length-delimited messages.
//!
//! Knows nothing about: sockets, files, Java class names, gets, scans and mutations (`wire`).

#[rustfmt::skip]
#[allow(missing_docs, clippy::all)]
mod generated;

#[rustfmt::skip]
#[allow(missing_docs, clippy::all)]
pub mod grampus;

pub mod convert;
pub mod magic;

pub use generated::*;

/// `google.protobuf.Any`, of which HBase's messages make little use: a serialized message and the name of its type.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Any {
    /// Names the type of the message in `value`.
    #[prost(string, tag = "1")]
    pub type_url: ::prost::alloc::string::String,
    /// The serialized message.
    #[prost(bytes = "bytes", tag = "2")]
    pub value: ::bytes::Bytes,
}
