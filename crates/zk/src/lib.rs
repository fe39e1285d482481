//! Layer 2: coordination: the znodes by which clients, masters and region servers find each other.
//!
//! * [`Coordinator`]: reading and writing znodes, whoever keeps them;
//! * [`memory`]: znodes in this process, for a server that is alone;
//! * [`names`], [`payload`]: which znodes HBase has, and what is in them;
//! * [`protocol`]: ZooKeeper's frames, as plain functions over bytes;
//! * [`endpoint`]: serves the subset of ZooKeeper's protocol that HBase's clients use, over any [`Coordinator`];
//! * [`client`]: reads single znodes of a ZooKeeper, or of an endpoint.
//!
//! Knows nothing about: RPC, tables, regions other than the names in the messages.

pub mod client;
pub mod coordinator;
pub mod endpoint;
mod four_letters;
pub mod memory;
pub mod names;
pub mod payload;
pub mod protocol;

pub use coordinator::{Coordinator, Error, Mode, Stat, Znode};
pub use endpoint::{Endpoint, EndpointOptions};
pub use memory::MemoryCoordinator;
pub use names::Names;
