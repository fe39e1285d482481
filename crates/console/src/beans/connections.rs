//! Metrics of the calls and connections of a role's RPC server.

use std::sync::Arc;

use base::metrics::Bean;

use crate::beans::absent;

base::current_values! {
    /// Metrics of a server's connections, and of the budgets shared by all servers of the process.
    pub(super) struct ConnectionMetrics in "RegionServer,sub=IPC" {
        /// Open connections.
        connections: Gauge<u64> = "numOpenConnections",
        /// Bytes of calls being received or processed.
        queued_bytes: Gauge<u64> = "queueSize" in Bytes,
    }
}

base::current_values! {
    /// Connections that a server closed.
    pub(super) struct LostConnections in "RegionServer,sub=Grampus" {
        /// Connections closed immediately because a limit was reached.
        turned_away: Counted = "connectionsTurnedAway",
        /// Connections closed because they made almost no progress while memory was short.
        stalled: Counted = "connectionsStalled",
    }
}

/// Adds the metrics of `calls`: those that HBase has to `bean`, and those that only Grampus has to
/// `own`.
pub(super) fn show(bean: &Bean, own: &Bean, calls: &Arc<rpc::Server>) {
    bean.add(calls.instruments().clone());
    let of = calls.clone();
    bean.read(move || ConnectionMetrics {
        connections: of.connections().into(),
        queued_bytes: of.shared().request_budget().used().into(),
    });
    let of = calls.clone();
    own.read(move || LostConnections {
        turned_away: of.shared().connections_rejected().into(),
        stalled: of.shared().stalled().into(),
    });
    bean.add(Arc::new(absent::NoHandlers));
}
