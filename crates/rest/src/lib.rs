//! HBase's REST API, over the client of any cluster.
//!
//! Paths, bodies, status codes and headers are those of HBase's REST server
//! (`org.apache.hadoop.hbase.rest`, version 2.6); `compat/rest` compares them. [`serve`] accepts
//! connections for a [`Gateway`].
//!
//! * [`Route`]: paths; [`RowSpec`]: rows and columns in paths; [`filter`]: filters as JSON;
//! * `models`: bodies in JSON, XML, protobuf and as text; `media`: which of these a client accepts;
//! * `call`: requests with their limits; `reply`: responses and errors;
//! * `schemas`, `namespaces`, `rows`, `changes`, `checks`, `multiget`, `scanners`, `scan`,
//!   `cluster`: the resources.
//!
//! Each request is bounded in size, memory and time. Requests run concurrently up to a limit, and a
//! client that sends or reads slowly occupies only its connection and the memory of its request.
//!
//! This crate knows nothing about regions, and does not open sockets.

mod base64;
mod body;
mod call;
mod changes;
mod checks;
mod cluster;
mod compression;
mod csrf;
mod escape;
pub mod filter;
mod gateway;
mod json;
mod media;
mod models;
mod multiget;
mod namespaces;
mod options;
mod reply;
mod route;
mod row_collector;
mod row_spec;
mod rows;
mod scan;
mod scanners;
mod schemas;
mod server;
mod xml;

pub use csrf::CsrfOptions;
pub use gateway::Gateway;
pub use models::Invalid;
pub use models::cells::{CellModel, CellSet, RowModel};
pub use models::scanner::ScannerModel;
pub use options::RestOptions;
pub use route::Route;
pub use row_spec::{KeyEncoding, RowSpec};
pub use server::serve;
