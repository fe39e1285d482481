//! How the master reaches region servers: handed in, a call within the process or over the network.

use std::sync::Arc;

use cell::region::ServerName;
use wire::service::{AdminService, ClientService};

/// Gives the services of a region server.
pub trait Connections: Send + Sync + 'static {
    /// What opens, closes and flushes regions there.
    fn admin(&self, server: &ServerName) -> Arc<dyn AdminService>;
    /// What reads and writes rows there; the master uses it for `hbase:meta`.
    fn client(&self, server: &ServerName) -> Arc<dyn ClientService>;
}
