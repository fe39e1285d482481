//! HBase's Thrift services, over the client of any cluster.
//!
//! Methods, structs and exceptions are those of HBase's Thrift servers
//! (`org.apache.hadoop.hbase.thrift` and `thrift2`, version 2.6); `compat/thrift` compares them.
//! [`serve`] accepts connections for a [`Gateway`].
//!
//! * [`Transport`], [`Protocol`]: detected for each connection, so that one port serves all
//!   clients;
//! * [`Bounds`]: the end of a message without a frame; [`Reader`], `writer`: values; `value`: their
//!   types, and the declaration of structs; [`MessageHeader`];
//! * `connection`, `http`: receive calls and send responses;
//! * `one`, `two`: the services, with their structs, reads, scans, changes and tables;
//! * [`check_message`]: decodes untrusted messages for tests;
//! * `mutations`: changes as HBase's client assembles them; `scanners`; `failure`: exceptions.
//!
//! Each request is bounded in size, memory and time. Sizes in messages are checked against the
//! bytes that are left before memory is allocated.
//!
//! This crate knows nothing about regions, and does not open sockets.

mod bounds;
mod call;
mod check;
mod connection;
mod failure;
mod gateway;
mod http;
mod message;
mod mutations;
mod one;
mod options;
mod protocol;
mod reader;
mod scanners;
mod server;
mod transport;
mod two;
mod value;
mod writer;

pub use bounds::Bounds;
pub use check::check_message;
pub use gateway::Gateway;
pub use message::MessageHeader;
pub use options::{Service, ThriftOptions};
pub use protocol::{Fault, Kind, Protocol};
pub use reader::Reader;
pub use server::serve;
pub use transport::Transport;
