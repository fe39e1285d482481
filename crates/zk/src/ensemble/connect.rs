//! New connections: options, and why the first one may fail.

use std::time::Duration;

use base::env::Env;
use zookeeper_client::{Client, SessionInfo};

use super::connection::Connection;
use super::tasks;

/// Where the ensemble is, and how long a session outlives its last heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnsembleOptions {
    /// The servers: `host:port,host:port`, optionally followed by the path of a znode, such as
    /// `/test`, below which all paths are. The default port is 2181.
    pub quorum: String,
    /// The session timeout to request. The servers may grant another: by default, ZooKeeper limits
    /// it to 2 to 20 of its ticks (4 to 40 seconds).
    pub session_timeout: Duration,
}

/// Why there is no session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The options are invalid.
    #[error("cannot connect to ZooKeeper at {quorum:?}: {what}")]
    Options {
        /// The servers that were given.
        quorum: String,
        /// What is wrong with the options.
        what: String,
    },
    /// No server granted a session within the session timeout: retry later.
    #[error("no ZooKeeper server at {quorum:?} granted a session within {timeout:?}: {cause}")]
    Unavailable {
        /// The servers that were tried.
        quorum: String,
        /// The requested session timeout.
        timeout: Duration,
        /// What the library reported last.
        cause: String,
    },
}

/// Waits for a server that grants a session.
pub(super) async fn open(options: &EnsembleOptions, env: &Env) -> Result<Connection, ConnectError> {
    let invalid = |what: String| ConnectError::Options { quorum: options.quorum.clone(), what };
    let timeout = options.session_timeout;
    if timeout.is_zero() || i32::try_from(timeout.as_millis()).is_err() {
        return Err(invalid(format!("invalid session timeout {timeout:?}")));
    }
    if options.quorum.contains("tls://") {
        return Err(invalid("TLS is not supported".to_string()));
    }
    let connecting = Client::connector().with_session_timeout(timeout).connect(&options.quorum);
    tasks::connect(env, connecting).await.map_err(|error| match error {
        zookeeper_client::Error::BadArguments(what) => invalid(what.to_string()),
        error => unavailable(options, &error),
    })
}

/// Connects to an existing session with this timeout. Tries each server once.
///
/// # Errors
/// Those of the library, for example that the session expired.
pub(super) async fn reopen(
    quorum: &str,
    session: SessionInfo,
    timeout: Duration,
    env: &Env,
) -> Result<Connection, zookeeper_client::Error> {
    let connecting = Client::connector()
        .with_session(session)
        .with_session_timeout(timeout)
        // Half of the library's default: a part of the timeout has passed, and a server that does
        // not respond must leave time for another one.
        .with_connection_timeout(timeout / 5)
        .with_fail_eagerly()
        .connect(quorum);
    tasks::connect(env, connecting).await
}

/// The error if no server granted a session.
pub(super) fn unavailable(options: &EnsembleOptions, error: &zookeeper_client::Error) -> ConnectError {
    ConnectError::Unavailable {
        quorum: options.quorum.clone(),
        timeout: options.session_timeout,
        cause: error.to_string(),
    }
}
