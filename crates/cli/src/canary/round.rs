//! All probes once. Servers are asked at the same time, each a few questions at a time: one that hangs holds up no
//! other.

use std::collections::BTreeMap;

use base::env::Env;
use client::Client;
use futures_util::stream::{self, StreamExt};

use super::probe::Probe;
use super::report::{Outcome, Report};

/// Probes of one server that are under way at once: a canary shall not be the load.
const PER_SERVER: usize = 4;

/// Makes the probes, in no order.
pub(super) async fn run(env: &Env, client: &Client, probes: Vec<Probe>, report: &mut Report) {
    report.expect(probes.len());
    let mut servers: BTreeMap<String, Vec<Probe>> = BTreeMap::new();
    for probe in probes {
        servers.entry(probe.server.clone()).or_default().push(probe);
    }
    let asked = servers.into_values().map(|probes| {
        let asked = stream::iter(probes).map(|probe| ask(env, client, probe));
        asked.buffer_unordered(PER_SERVER).boxed_local()
    });
    let mut asked = stream::select_all(asked);
    while let Some(outcome) = asked.next().await {
        report.take(outcome);
    }
}

async fn ask(env: &Env, client: &Client, probe: Probe) -> Outcome {
    let began = env.clock.monotonic();
    let answer = probe.ask(env, client).await;
    Outcome { took: env.clock.monotonic() - began, probe, answer }
}
