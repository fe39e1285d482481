//! Runs all probes once. Servers are probed concurrently, each with a few probes at a time, so that
//! a server that hangs does not delay the others.

use std::collections::BTreeMap;

use base::env::Env;
use client::Client;
use futures_util::stream::{self, StreamExt};

use super::probe::Probe;
use super::report::{Outcome, Report};

/// Concurrent probes per server. The canary must not become a load.
const PER_SERVER: usize = 4;

/// Runs the probes, in no particular order.
pub(super) async fn run(env: &Env, client: &Client, probes: Vec<Probe>, report: &mut Report) {
    report.expect(probes.len());
    let mut servers: BTreeMap<String, Vec<Probe>> = BTreeMap::new();
    for probe in probes {
        servers.entry(probe.server.clone()).or_default().push(probe);
    }
    let outcomes = servers.into_values().map(|probes| {
        let outcomes = stream::iter(probes).map(|probe| run_probe(env, client, probe));
        outcomes.buffer_unordered(PER_SERVER).boxed_local()
    });
    let mut outcomes = stream::select_all(outcomes);
    while let Some(outcome) = outcomes.next().await {
        report.record(outcome);
    }
}

async fn run_probe(env: &Env, client: &Client, probe: Probe) -> Outcome {
    let began = env.clock.monotonic();
    let result = probe.run(env, client).await;
    Outcome { took: env.clock.monotonic() - began, probe, result }
}
