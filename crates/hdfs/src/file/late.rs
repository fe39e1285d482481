//! The check whether the machine of a DataNode that was late is lost.
//!
//! A DataNode that is late is often only busy, and its replicas may be the nearest, so reads still
//! use it. But the DataNode of a lost machine is late too, and each read there would wait for
//! several seconds.

use std::sync::Arc;
use std::time::Duration;

use base::env::TaskClass;
use tracing::info;

use super::Shared;
use crate::link::{Node, connect, is_local};

/// How long the machine may take to accept a connection.
const LIMIT: Duration = Duration::from_secs(1);

/// Connects to a node in the background. If this fails, reads avoid the node.
pub(super) fn check_later(shared: &Arc<Shared>, node: &Node) {
    let (shared, node) = (shared.clone(), node.clone());
    let env = shared.env.clone();
    env.spawn(TaskClass::Service, async move {
        let clock = &shared.env.clock;
        let connecting = connect(&shared.env, &node.id, shared.settings.by_hostname);
        let error = match shared.env.timeout(LIMIT, connecting).await {
            Some(Ok(_)) => return,
            Some(Err(error)) if is_local(&error) => return,
            Some(Err(error)) => error.to_string(),
            None => format!("no connection within {} ms", LIMIT.as_millis()),
        };
        info!(%node, error, "a DataNode that was late is unreachable; reads avoid it");
        shared.suspects.add(&node, clock.monotonic());
    });
}
