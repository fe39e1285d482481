//! HBase's RPC protocol: preambles, connection headers, frames, cell blocks; a server and
//! a client.
//!
//! * [`preamble`], [`header`], [`frame`]: encoding and decoding, as plain functions over slices;
//! * [`CellBlock`]: the cells of a response as a chain of pieces that is sent without merging them;
//! * [`Compressor`]: compression of cell blocks, if a client requests it;
//! * [`Service`], [`Call`], [`Reply`]: the interface between the server and a service;
//! * [`Server`]: connections, limits, pipelining, responses in any order;
//! * [`client`]: one connection to one service, with multiplexed calls.
//!
//! Does not depend on tables, regions, cells, or the set of methods.

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

pub use call::{AllowAll, Authorizer, Call, ConnectionInfo, Method, Presence, Principal, Reply, Service};
pub use cellblock::CellBlock;
pub use compressor::Compressor;
pub use fields::Malformed;
pub use header::{ClientVersion, Codec};
pub use server::{Server, ServerOptions};
