//! Samples of the cluster from the active master. Requests only the sections that are shown.

use std::time::Duration;

use base::env::Env;
use client::{Client, ClientOptions};

use super::TopArguments;
use super::cluster::{OPTIONS, Sample, Sampler};
use super::words;

/// Time limit for the master's response. The user is waiting, and the next update follows anyway.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Retries per sample.
const RETRIES_MAX: u32 = 1;

/// A connection to the cluster, and the previous sample's counters.
pub(super) struct Source {
    env: Env,
    client: Client,
    sampler: Sampler,
}

impl Source {
    pub(super) fn new(env: Env, arguments: &TopArguments) -> Result<Source, String> {
        let cluster = arguments.zookeeper.clone().with_port_offset(arguments.port_offset)?;
        let options = ClientOptions {
            rpc_timeout: TIMEOUT,
            operation_timeout: TIMEOUT,
            retries_max: RETRIES_MAX,
            ..ClientOptions::default()
        };
        let client = Client::new(env.clone(), cluster.registry(), options);
        Ok(Source { env, client, sampler: Sampler::default() })
    }

    /// Samples the cluster now.
    ///
    /// # Errors
    /// A message for the user. The counters of earlier samples remain.
    pub(super) async fn sample(&mut self) -> Result<Sample, String> {
        let options = OPTIONS.map(|option| option as i32).to_vec();
        let request = proto::GetClusterStatusRequest { options };
        let call = self.client.admin();
        let call = call.call_master("GetClusterStatus", &request);
        // The client limits each part of the call. This limits the sum.
        let response: Option<client::Result<proto::GetClusterStatusResponse>> =
            self.env.timeout(TIMEOUT, call).await;
        let response =
            response.ok_or_else(|| format!("no response from the master within {} s", TIMEOUT.as_secs()))?;
        let response = response.map_err(|error| words::failure(&error))?;
        Ok(self.sampler.sample(&response.cluster_status, self.env.clock.now_ms()))
    }

    /// Waits, then samples the cluster.
    ///
    /// # Errors
    /// As [`Source::sample`].
    pub(super) async fn sample_after(&mut self, pause: Duration) -> Result<Sample, String> {
        self.env.clock.sleep(pause).await;
        self.sample().await
    }
}
