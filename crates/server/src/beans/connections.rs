//! Calls and connections of either role's RPC server.

use std::sync::Arc;

use base::metrics::Bean;

use crate::beans::absent;

base::figures! {
    /// Connections of a server, and what all servers of the process hold together.
    pub(super) struct ConnectionFigures in "RegionServer,sub=IPC" {
        /// Connections that are open.
        connections: Gauge<u64> = "numOpenConnections",
        /// Bytes of calls that are read or at work.
        queued_bytes: Gauge<u64> = "queueSize" in Bytes,
    }
}

base::figures! {
    /// Connections that a server could not keep.
    pub(super) struct LostConnections in "RegionServer,sub=Grampus" {
        /// Connections refused because there were too many.
        turned_away: Counted = "connectionsTurnedAway",
        /// Connections closed because they hardly moved while memory was short.
        stalled: Counted = "connectionsStalled",
    }
}

/// Shows those of `calls`: what HBase shows too in `bean`, what only Grampus does in `own`.
pub(super) fn show(bean: &Bean, own: &Bean, calls: &Arc<rpc::Server>) {
    bean.add(calls.instruments().clone());
    let of = calls.clone();
    bean.read(move || ConnectionFigures {
        connections: of.connections().into(),
        queued_bytes: of.shared().requests().used().into(),
    });
    let of = calls.clone();
    own.read(move || LostConnections {
        turned_away: of.shared().turned_away().into(),
        stalled: of.shared().stalled().into(),
    });
    bean.add(Arc::new(absent::Handlers));
}
