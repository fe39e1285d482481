//! The session of this process with ZooKeeper. If it expires, the process ends: another process may
//! have taken over its work.

use std::sync::Arc;
use std::time::Duration;

use base::config::Config;
use base::env::Env;
use roles::member::end_with_session;
use tracing::warn;
use zk::Names;
use zk::ensemble::{ConnectError, Ensemble, EnsembleOptions};

use crate::host::end_process;

/// The pause before another attempt to connect.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The ZooKeeper servers of the configuration: `host:port`, separated by commas.
pub(crate) fn quorum(config: &Config) -> String {
    let with_port = |server: &str| match server.contains(':') {
        true => server.to_string(),
        false => format!("{server}:{}", config.zookeeper_port),
    };
    servers(config).map(with_port).collect::<Vec<_>>().join(",")
}

/// The hosts of the ZooKeeper servers of the configuration.
pub(super) fn quorum_hosts(config: &Config) -> Vec<&str> {
    servers(config).map(|server| server.rsplit_once(':').map_or(server, |(host, _)| host)).collect()
}

/// Each with or without a port.
fn servers(config: &Config) -> impl Iterator<Item = &str> {
    config.zookeeper_quorum.split(',').map(str::trim).filter(|server| !server.is_empty())
}

/// The options of the session, from the configuration.
pub(super) fn options(config: &Config) -> EnsembleOptions {
    let session_timeout = Duration::from_millis(config.zookeeper_session_ms);
    EnsembleOptions { quorum: quorum(config), session_timeout }
}

/// Opens the session. Waits until ZooKeeper is available.
///
/// # Errors
/// One line that states which option is invalid.
pub(super) async fn open(env: &Env, config: &Config) -> Result<Arc<Ensemble>, String> {
    let options = options(config);
    loop {
        match Ensemble::connect(&options, env).await {
            Ok(ensemble) => {
                end_with_session(env, &*ensemble, Arc::new(end_process));
                return Ok(ensemble);
            }
            Err(error @ ConnectError::Options { .. }) => {
                return Err(config.refused("hbase.zookeeper.quorum", error.to_string()).to_string());
            }
            Err(error) => warn!(%error, "waiting for ZooKeeper"),
        }
        env.clock.sleep(RETRY_PAUSE).await;
    }
}

/// The names of the cluster's znodes.
pub(super) fn names(config: &Config) -> Names {
    Names::below(&config.zookeeper_parent)
}
