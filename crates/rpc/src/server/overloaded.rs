//! The answers to calls for which there is no room.

use crate::call::{ConnectionInfo, Failure};

/// The bytes of requests or responses are used up.
pub(super) fn queue_too_big(connection: &ConnectionInfo) -> Failure {
    full(connection, "is hbase.ipc.server.max.callqueue.size too small?")
}

/// Too many calls are at work.
pub(super) fn too_many_calls(connection: &ConnectionInfo) -> Failure {
    full(connection, "too many items queued ?")
}

fn full(connection: &ConnectionInfo, why: &str) -> Failure {
    let message = format!("Call queue is full on {}, {why}", connection.local);
    let class = "org.apache.hadoop.hbase.CallQueueTooBigException";
    Failure { server_overloaded: true, ..Failure::new(class, message) }
}
