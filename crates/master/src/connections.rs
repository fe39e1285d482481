//! Connections from the master to region servers. The implementation is injected: calls within the
//! process or over the network.

use std::sync::Arc;

use base::BoxFuture;
use cell::region::{RegionInfo, ServerName};
use proto::exception::Answer;
use wire::service::{AdminService, ClientService};

/// Provides the services of region servers.
pub trait Connections: Send + Sync + 'static {
    /// The service that opens, closes and flushes regions.
    fn admin(&self, server: &ServerName) -> Arc<dyn AdminService>;
    /// The service that reads and writes rows; the master uses it for `hbase:meta`.
    fn client(&self, server: &ServerName) -> Arc<dyn ClientService>;
    /// Discards the edits of regions that are only in the logs of an earlier run, because the
    /// contents of these regions were replaced while they were not open. Returns when this is
    /// durable. Only a standalone region server takes over such logs at its start. In a cluster,
    /// the master records which regions need the logs of dead servers.
    fn discard_old_edits<'a>(&'a self, regions: &'a [RegionInfo]) -> BoxFuture<'a, Answer<()>> {
        let _ = regions;
        Box::pin(std::future::ready(Ok(())))
    }
    /// Closes the connections to a server that has died. Pending calls fail.
    fn forget(&self, server: &ServerName) {
        let _ = server;
    }
}
