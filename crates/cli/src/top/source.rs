//! Where looks come from: the active master, which is asked for what is shown and no more.

use std::time::Duration;

use base::env::Env;
use client::{Client, ClientOptions, Registry};

use super::TopArguments;
use super::cluster::{Look, OPTIONS, Watch};
use super::words;

/// Time for the master to answer: a person waits, and the next look comes anyhow.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Tries after the first of one look.
const RETRIES_MAX: u32 = 1;

/// The cluster, and what was seen of it last.
pub(super) struct Source {
    env: Env,
    client: Client,
    watch: Watch,
}

impl Source {
    pub(super) fn new(env: Env, arguments: &TopArguments) -> Result<Source, String> {
        let quorum = crate::quorum::with_offset(&arguments.zookeeper, arguments.port_offset)?;
        let options = ClientOptions {
            rpc_timeout: TIMEOUT,
            operation_timeout: TIMEOUT,
            retries_max: RETRIES_MAX,
            ..ClientOptions::default()
        };
        let client = Client::new(env.clone(), Registry::zookeeper(&quorum, "/hbase"), options);
        Ok(Source { env, client, watch: Watch::default() })
    }

    /// Looks now.
    ///
    /// # Errors
    /// A line for a person. What was seen before is kept.
    pub(super) async fn look(&mut self) -> Result<Look, String> {
        let options = OPTIONS.map(|option| option as i32).to_vec();
        let request = proto::GetClusterStatusRequest { options };
        let asked = self.client.admin();
        let asked = asked.call_master("GetClusterStatus", &request);
        // The parts have limits of their own; together they shall not be longer than one.
        let answer: Option<client::Result<proto::GetClusterStatusResponse>> =
            self.env.timeout(TIMEOUT, asked).await;
        let answer = answer.ok_or_else(|| format!("no answer within {} s", TIMEOUT.as_secs()))?;
        let answer = answer.map_err(|error| words::failure(&error))?;
        Ok(self.watch.look(&answer.cluster_status, self.env.clock.now_ms()))
    }

    /// Waits, then looks.
    ///
    /// # Errors
    /// As [`Source::look`].
    pub(super) async fn look_after(&mut self, pause: Duration) -> Result<Look, String> {
        self.env.clock.sleep(pause).await;
        self.look().await
    }
}
