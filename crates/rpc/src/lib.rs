//! Layer 2: HBase's RPC: preambles, connection headers, frames, cell blocks; a server and a client of it.
//!
//! * [`preamble`], [`header`], [`frame`]: the bytes, as plain functions over slices;
//! * [`CellBlock`]: cells of an answer as a chain of pieces that goes out without being copied together;
//! * [`Compressor`]: how cell blocks are compressed, where a client asks for it;
//! * [`Service`], [`Call`], [`Reply`], [`Failure`]: what a service sees of a request and gives back;
//! * [`Server`]: connections, limits, pipelining, answers in any order;
//! * [`client`]: one connection to one service, calls multiplexed on it.
//!
//! Knows nothing about: tables, regions, cells, and which methods there are.

pub mod call;
pub mod cellblock;
pub mod client;
pub mod compressor;
mod fields;
pub mod frame;
pub mod header;
mod pieces;
pub mod preamble;
pub mod server;

pub use call::{Call, ConnectionInfo, Failure, Method, Presence, Reply, Service};
pub use cellblock::CellBlock;
pub use compressor::Compressor;
pub use fields::Malformed;
pub use header::{ClientVersion, Codec};
pub use preamble::to_string_binary;
pub use server::{Server, ServerOptions};

/// Java's name of a failure that a client must not try again.
pub const DO_NOT_RETRY_IO_EXCEPTION: &str = "org.apache.hadoop.hbase.DoNotRetryIOException";
