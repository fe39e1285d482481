//! Coordination: the znodes through which clients, masters and region servers find each other.
//!
//! * [`Coordinator`]: reads and writes znodes, wherever they are stored;
//! * [`memory`]: znodes in this process, for a standalone server and for simulations;
//! * [`ensemble`]: znodes on a real ZooKeeper ensemble, for a cluster;
//! * [`election`]: which master is active;
//! * [`servers`]: which region servers live, and where the active master is;
//! * [`tracker`]: follows the changes of one znode;
//! * [`names`], [`payload`]: the znodes that HBase has, and their content;
//! * [`protocol`]: ZooKeeper's frames, as plain functions over bytes;
//! * [`endpoint`]: serves the subset of ZooKeeper's protocol that HBase's clients use, over any
//!   [`Coordinator`];
//! * [`client`]: reads single znodes from a ZooKeeper server or an endpoint.
//!
//! Knows nothing about: RPC, tables and regions, except the names in the messages.

pub mod client;
pub mod coordinator;
pub mod election;
pub mod endpoint;
pub mod ensemble;
mod four_letters;
pub mod memory;
pub mod names;
pub mod payload;
pub mod protocol;
pub mod servers;
pub mod tracker;

pub use coordinator::{Coordinator, Error, Mode, SessionState, Stat, Watch, Znode};
pub use election::Election;
pub use endpoint::{Endpoint, EndpointOptions};
pub use ensemble::{Ensemble, EnsembleOptions};
pub use memory::{MemoryCoordinator, MemoryEnsemble};
pub use names::Names;
pub use servers::{MasterTracker, ServerTracker, register_region_server};
pub use tracker::ZnodeTracker;
