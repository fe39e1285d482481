//! The responses to calls that exceed a limit.

use proto::exception::{JavaException, class};

use crate::call::ConnectionInfo;

/// The byte budget of requests or responses is exhausted.
pub(super) fn queue_too_big(connection: &ConnectionInfo) -> JavaException {
    full(connection, "is hbase.ipc.server.max.callqueue.size too small?")
}

/// Too many calls are running.
pub(super) fn too_many_calls(connection: &ConnectionInfo) -> JavaException {
    full(connection, "too many items queued ?")
}

fn full(connection: &ConnectionInfo, why: &str) -> JavaException {
    let message = format!("Call queue is full on {}, {why}", connection.local);
    JavaException::new(class::CALL_QUEUE_TOO_BIG, message)
}
