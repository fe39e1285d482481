//! `grampus migrate switch`: the writers move from HBase to Grampus.
//!
//! The tables of HBase are disabled, so that HBase refuses writes from then on. Then the
//! replication queues show when Grampus has all edits, and clients may write to Grampus. Before
//! that, an increment or a conditional change could read an old value in Grampus.

use std::time::Duration;

use base::env::Env;
use cell::schema::TableDescriptor;
use client::ClusterKey;
use futures_util::future::{try_join, try_join_all};
use proto::replication_state::State;

use super::SwitchArguments;
use super::clusters::Clusters;
use super::lag;
use super::queues::Queues;
use super::record::{ABORT_FIRST, Phase, Record};
use super::writes;

/// Time between two reads of the queues. Clients wait for the result.
const POLL: Duration = Duration::from_millis(5);

/// Switches over. If Grampus does not get all edits in time, the tables of HBase become writable
/// again.
///
/// # Errors
/// Why the switch was not made.
pub(super) async fn switch(env: &Env, arguments: &SwitchArguments) -> Result<(), String> {
    let (mut record, clusters) = super::resume(env, &arguments.migration)?;
    match record.phase {
        Phase::Copied | Phase::Switching => {}
        Phase::Started => return Err("the tables are not copied yet: run `grampus migrate copy`".into()),
        // The last run was interrupted, perhaps before it reported this.
        Phase::Switched => {
            println!("{}", switched(&clusters.to));
            return finish(&clusters, &record).await;
        }
    }
    prepare(env, &clusters, &mut record, arguments).await?;
    let begun = env.clock.monotonic();
    let done = async {
        if !arguments.writers_stopped {
            writes::stop(&clusters, &record).await?;
        }
        let refused = env.clock.monotonic();
        drain(env, &clusters, &record.peer, Duration::from_secs(u64::from(arguments.timeout))).await?;
        Ok::<_, String>((refused, env.clock.monotonic()))
    };
    let (refused, drained) = match done.await {
        Ok(times) => times,
        Err(reason) => {
            let restored = writes::make_writable(&clusters, &mut record).await;
            restored.map_err(|error| format!("{reason}. {error}"))?;
            return Err(format!(
                "{reason}. The tables of HBase are as before the switch, and have all edits"
            ));
        }
    };
    record_switched(&mut record, || println!("{}", switched(&clusters.to)))?;
    let ms = |from: Duration, to: Duration| (to - from).as_millis();
    println!(
        "{} ms since the switch began: {} ms until HBase refused all writes, {} ms until Grampus had the last edit",
        ms(begun, drained),
        ms(begun, refused),
        ms(refused, drained)
    );
    finish(&clusters, &record).await
}

fn switched(to: &ClusterKey) -> String {
    format!("Grampus has all edits: direct the clients to {to}")
}

/// Records that Grampus has all edits, then reports it. After the report, clients write to Grampus,
/// so from then on `--abort` must be refused, also after a crash.
fn record_switched(record: &mut Record, report: impl FnOnce()) -> Result<(), String> {
    record.phase = Phase::Switched;
    record.save().map_err(|error| {
        format!("Grampus has all edits, but {error}. Do not direct clients to Grampus yet: repeat `grampus migrate switch`")
    })?;
    report();
    Ok(())
}

/// Does what is possible while HBase still accepts writes: little is left to flush and to send.
async fn prepare(
    env: &Env,
    clusters: &Clusters,
    record: &mut Record,
    arguments: &SwitchArguments,
) -> Result<(), String> {
    check_peer(clusters, record, arguments.max_lag).await?;
    if arguments.writers_stopped {
        return Ok(());
    }
    let tables = describe(clusters, record).await?;
    // An interrupted switch has stopped the writes already.
    if record.phase == Phase::Copied {
        writes::flush(env, clusters, &tables).await?;
        let begun = env.clock.monotonic();
        let sent = drain(env, clusters, &record.peer, Duration::from_secs(u64::from(arguments.max_lag)));
        sent.await.map_err(|reason| {
            format!("{reason}, so writes would be refused for longer: wait, or raise --max-lag")
        })?;
        let took = env.clock.monotonic() - begun;
        println!("HBase sends its edits within {} ms", took.as_millis());
    }
    writes::mark(record, &tables)
}

/// Lets clients read the tables of HBase, and removes the peer. Grampus has all edits.
async fn finish(clusters: &Clusters, record: &Record) -> Result<(), String> {
    writes::make_readable(clusters, record).await?;
    remove_peer(clusters, record).await
}

/// Removes the peer, if HBase still has it. Grampus has all edits.
async fn remove_peer(clusters: &Clusters, record: &Record) -> Result<(), String> {
    let (admin, peer) = (clusters.source.admin(), &record.peer);
    let peers = admin.list_peers().await.map_err(|error| clusters.at_source(&error))?;
    if peers.iter().any(|description| description.id == *peer) {
        admin.remove_peer(peer).await.map_err(|error| clusters.at_source(&error))?;
        println!("removed the peer {peer} from HBase");
    }
    println!("the migration is complete");
    Ok(())
}

/// Makes the tables of HBase writable again after an interrupted switch.
///
/// # Errors
/// HBase's, or that the switch was completed.
pub(super) async fn abort(env: &Env, arguments: &SwitchArguments) -> Result<(), String> {
    let (mut record, clusters) = super::resume(env, &arguments.migration)?;
    if record.phase == Phase::Switched {
        return Err("the switch was completed: HBase lacks what was written to Grampus since".into());
    }
    writes::make_writable(&clusters, &mut record).await?;
    println!("the tables of HBase are writable. The peer {} still sends edits", record.peer);
    Ok(())
}

/// The peer must be enabled, and HBase nearly done.
async fn check_peer(clusters: &Clusters, record: &Record, max_lag_s: u32) -> Result<(), String> {
    let admin = clusters.source.admin();
    let peers = admin.list_peers().await.map_err(|error| clusters.at_source(&error))?;
    let peer = &record.peer;
    match peers.iter().find(|description| description.id == *peer).map(|own| own.state.state()) {
        Some(State::Enabled) => {}
        Some(State::Disabled) => {
            return Err(format!("the peer {peer} of HBase is disabled: enable it in HBase's shell"));
        }
        None => return Err(format!("HBase has no peer {peer}, so it collects no edits: {ABORT_FIRST}")),
    }
    let status = admin.cluster_status().await.map_err(|error| clusters.at_source(&error))?;
    let lag_ms = lag::largest_ms(&lag::of_servers(&status.servers, peer));
    match lag_ms > u64::from(max_lag_s) * 1000 {
        true => Err(format!(
            "HBase's lag is {:.1} s, so writes would be refused for that time: wait, or raise --max-lag",
            lag_ms as f64 / 1000.0
        )),
        false => Ok(()),
    }
}

async fn describe(clusters: &Clusters, record: &Record) -> Result<Vec<TableDescriptor>, String> {
    let admin = clusters.source.admin();
    let described = record.tables.keys().map(|name| admin.describe(name));
    try_join_all(described).await.map_err(|error| clusters.at_source(&error))
}

/// Waits until Grampus has all edits that HBase's logs have now. `limit` includes all calls to
/// HBase.
async fn drain(env: &Env, clusters: &Clusters, peer: &str, limit: Duration) -> Result<(), String> {
    let sent = env.timeout(limit, all_sent(env, clusters, peer)).await;
    sent.unwrap_or_else(|| Err(format!("HBase has not sent all its edits within {} s", limit.as_secs())))
}

async fn all_sent(env: &Env, clusters: &Clusters, peer: &str) -> Result<(), String> {
    let admin = clusters.source.admin();
    let status = async { admin.cluster_status().await.map_err(|error| clusters.at_source(&error)) };
    // A new session each time: an idle one expires, and closing the regions can take long.
    let (mut queues, status) = try_join(Queues::connect(env, &clusters.from, peer), status).await?;
    let pending = queues.logs().await?;
    if pending.is_empty() {
        return Err("HBase has no replication queue of the peer in ZooKeeper".to_owned());
    }
    let rolls = status.servers.iter().map(|server| admin.roll_logs(&server.server));
    try_join_all(rolls).await.map_err(|error| clusters.at_source(&error))?;
    while !queues.are_sent(&pending).await? {
        env.clock.sleep(POLL).await;
    }
    queues.close().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_is_recorded_before_it_is_reported() {
        let path = std::env::temp_dir().join(format!("grampus-switch-{}.json", std::process::id()));
        let mut record = Record::new(&path, "a:1:/hbase".into(), "b:2:/hbase".into(), "p".into());
        record.phase = Phase::Switching;
        record.save().unwrap();
        let mut reported = None;
        record_switched(&mut record, || reported = Some(Record::load(&path).unwrap().phase)).unwrap();
        assert_eq!(reported, Some(Phase::Switched));
        record.remove().unwrap();

        let mut record = Record::new(&path.join("none"), "a:1".into(), "b:2".into(), "p".into());
        let failed = record_switched(&mut record, || panic!("an unrecorded switch is not reported"));
        assert!(failed.unwrap_err().contains("Do not direct clients to Grampus yet"));
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_hang_end_at_the_limit() {
        let env = base::testing::env(1);
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 2181));
        let _silent = env.net.listen(address).await.unwrap();
        let (from, to) = ("h:2181".parse().unwrap(), "h:2182".parse().unwrap());
        let clusters = Clusters::new(&env, &from, &to);
        let limit = Duration::from_secs(2);
        let failed = drain(&env, &clusters, "p", limit).await.unwrap_err();
        assert_eq!(failed, "HBase has not sent all its edits within 2 s");
        assert_eq!(env.clock.monotonic(), limit);
    }
}
