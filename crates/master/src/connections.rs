//! Connections from the master to region servers. The implementation is injected: calls within the
//! process or over the network.

use std::sync::Arc;

use cell::region::ServerName;
use wire::service::{AdminService, ClientService};

/// Provides the services of region servers.
pub trait Connections: Send + Sync + 'static {
    /// The service that opens, closes and flushes regions.
    fn admin(&self, server: &ServerName) -> Arc<dyn AdminService>;
    /// The service that reads and writes rows; the master uses it for `hbase:meta`.
    fn client(&self, server: &ServerName) -> Arc<dyn ClientService>;
    /// Closes the connections to a server that has died. Pending calls fail.
    fn forget(&self, server: &ServerName) {
        let _ = server;
    }
}
