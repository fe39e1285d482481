//! `grampus migrate status`: the progress of the copy, and what HBase has not sent yet.

use std::fmt::Write;
use std::time::Duration;

use base::env::Env;
use comfy_table::{Table, presets};
use indicatif::{HumanCount, HumanDuration};
use proto::replication_state::State;

use super::StatusArguments;
use super::clusters::Clusters;
use super::lag::{self, ServerLag};
use super::record::{ABORT_FIRST, Phase, Record};

/// Under load there is always a small lag. HBase's servers report every three seconds, so a smaller
/// one means nothing.
const CAUGHT_UP_MS: u64 = 3000;

/// Prints the state, from two samples, once or until everything is sent.
///
/// # Errors
/// HBase's.
pub(super) async fn status(env: &Env, arguments: &StatusArguments) -> Result<(), String> {
    let (record, clusters) = super::resume(env, &arguments.migration)?;
    println!("{}", copied(&record));
    if record.phase == Phase::Switched {
        // The peer is removed.
        return Ok(());
    }
    let interval = Duration::from_secs(u64::from(arguments.interval));
    let mut before = sample(&clusters, &record.peer).await?;
    // A single sample can be older than the last change of the peer.
    loop {
        env.clock.sleep(interval).await;
        let after = sample(&clusters, &record.peer).await?;
        print!("{}", text(&before, &after, interval));
        if !arguments.watch || after.has_caught_up() {
            return Ok(());
        }
        before = after;
    }
}

/// The state of the peer at one time.
struct Sample {
    is_enabled: bool,
    servers: Vec<ServerLag>,
}

impl Sample {
    fn has_caught_up(&self) -> bool {
        self.is_enabled && lag::largest_ms(&self.servers) <= CAUGHT_UP_MS
    }
}

async fn sample(clusters: &Clusters, peer: &str) -> Result<Sample, String> {
    let admin = clusters.source.admin();
    let peers = admin.list_peers().await.map_err(|error| clusters.at_source(&error))?;
    let own = peers.iter().find(|description| description.id == peer);
    let own =
        own.ok_or_else(|| format!("HBase has no peer {peer}, so it collects no edits: {ABORT_FIRST}"))?;
    let status = admin.cluster_status().await.map_err(|error| clusters.at_source(&error))?;
    let servers = lag::of_servers(&status.servers, peer);
    Ok(Sample { is_enabled: own.state.state() == State::Enabled, servers })
}

/// The progress of the copy, in one line.
fn copied(record: &Record) -> String {
    let ranges = || record.tables.values().flat_map(|table| &table.ranges);
    let (done, all) = (ranges().filter(|range| range.is_done).count(), ranges().count());
    let cells = HumanCount(ranges().map(|range| range.cells).sum());
    match record.phase {
        Phase::Started if all == 0 => "HBase collects edits. Next: grampus migrate copy".to_owned(),
        Phase::Started => format!("copied {done} of {all} ranges, {cells} cells"),
        Phase::Copied => format!("copied all {all} ranges, {cells} cells; HBase sends its edits"),
        Phase::Switching => {
            "a switch was begun: repeat `grampus migrate switch`, or reverse it with --abort".to_owned()
        }
        Phase::Switched => {
            "Grampus has all edits. If `grampus migrate switch` was interrupted, repeat it".to_owned()
        }
    }
}

fn text(before: &Sample, after: &Sample, elapsed: Duration) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["server of HBase", "lag", "logs", "recovered queues", "entries sent"]);
    for server in &after.servers {
        let ServerLag { server, lag_ms, logs, recovered_queues, sent } = server;
        let name = format!("{},{},{}", server.host, server.port, server.start_code);
        let lag = format!("{:.1} s", *lag_ms as f64 / 1000.0);
        table.add_row([name, lag, logs.to_string(), recovered_queues.to_string(), sent.to_string()]);
    }
    let mut out = format!("{table}\n");
    writeln!(out, "{}", summary(before, after, elapsed)).expect("writing to a string succeeds");
    out
}

fn summary(before: &Sample, after: &Sample, elapsed: Duration) -> String {
    if !after.is_enabled {
        return "the peer is disabled: HBase collects edits".to_owned();
    }
    let (lag_before, lag_now) = (lag::largest_ms(&before.servers), lag::largest_ms(&after.servers));
    let per_s = lag::sent_per_s(&before.servers, &after.servers, elapsed);
    if after.has_caught_up() {
        let lag = lag_now as f64 / 1000.0;
        let next = "Next: grampus migrate verify, then grampus migrate switch";
        return format!("HBase has caught up: lag {lag:.1} s, {per_s:.0} entries/s. {next}");
    }
    let left = match lag::time_left(lag_before, lag_now, elapsed) {
        Some(left) => format!("about {} left", HumanDuration(left)),
        None => "the lag does not shrink".to_owned(),
    };
    format!("lag {:.1} s, {per_s:.0} entries/s, {left}", lag_now as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use cell::region::ServerName;

    use super::*;

    fn sample(is_enabled: bool, lag_ms: u64, sent: u64) -> Sample {
        let server = ServerName { host: "h".into(), port: 1, start_code: 2 };
        let servers = vec![ServerLag { server, lag_ms, logs: 3, recovered_queues: 0, sent }];
        Sample { is_enabled, servers }
    }

    #[test]
    fn the_rate_and_the_time_left_are_estimated() {
        let shown = text(&sample(true, 9000, 10), &sample(true, 6000, 310), Duration::from_secs(3));
        assert!(shown.contains("h,1,2"), "{shown}");
        assert!(shown.ends_with("lag 6.0 s, 100 entries/s, about 6 seconds left\n"), "{shown}");
        let growing = summary(&sample(true, 3001, 1), &sample(true, 3002, 1), Duration::from_secs(1));
        assert!(growing.ends_with("the lag does not shrink"), "{growing}");
    }

    #[test]
    fn the_next_step_is_named() {
        let second = Duration::from_secs(1);
        for lag_ms in [0, CAUGHT_UP_MS] {
            let shown = summary(&sample(true, 9000, 1), &sample(true, lag_ms, 1), second);
            assert!(shown.contains("grampus migrate verify"), "{shown}");
        }
        assert!(summary(&sample(false, 9, 1), &sample(false, 0, 1), second).contains("disabled"));
    }
}
