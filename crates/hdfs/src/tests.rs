//! The file system on NameNodes and DataNodes in memory.

mod reads;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::env::{Env, Random};
use fs::{AccessPattern, Error, Fence, FilePath, FileSystem, FileWriter, SyncLevel};

use crate::testing::{
    Behavior, FakeDataNode, FakeNameNode, Mode, NAMENODES, connect, connect_with, try_connect,
};
use crate::{HdfsFileSystem, Limits};

const MINUTE: Duration = Duration::from_secs(60);

struct Cluster {
    env: Env,
    namenode: FakeNameNode,
    datanodes: Vec<FakeDataNode>,
    fs: HdfsFileSystem,
}

/// Numbers with which a shuffle changes nothing.
#[derive(Default)]
struct Ascending(AtomicU64);

impl Random for Ascending {
    fn next_u64(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

impl Cluster {
    async fn start(datanodes: u16) -> Cluster {
        let env = base::testing::env(1);
        let ports: Vec<u16> = (1..=datanodes).collect();
        let namenode = FakeNameNode::start(&env, &NAMENODES, &ports).await;
        let mut nodes = Vec::new();
        for port in ports {
            nodes.push(FakeDataNode::start(&env, port).await);
        }
        let fs = connect(&env, Limits::default()).await;
        Cluster { env, namenode, datanodes: nodes, fs }
    }

    /// A cluster whose file system has these settings, and reads the replicas in the order in which
    /// the NameNode lists them.
    async fn in_order(datanodes: u16, settings: &[(&str, &str)]) -> Cluster {
        let mut cluster = Cluster::start(datanodes).await;
        cluster.env.random = Arc::new(Ascending::default());
        cluster.fs = connect_with(&cluster.env, Limits::default(), settings).await;
        cluster
    }

    async fn log(&self, name: &str) -> Box<dyn FileWriter> {
        self.fs.create(&FilePath::new(name), AccessPattern::Log).await.unwrap()
    }

    /// The holder of a file's lease.
    fn holder(&self, name: &str) -> Option<String> {
        self.namenode.state.lock().unwrap().paths[&format!("/hbase/{name}")].holder.clone()
    }
}

async fn commit(log: &mut Box<dyn FileWriter>, bytes: &'static str) -> fs::Result<()> {
    log.append_and_sync(bytes.into(), bytes.len(), SyncLevel::Visible).await
}

#[tokio::test(start_paused = true)]
async fn a_commit_is_on_all_datanodes_when_it_returns() {
    let cluster = Cluster::start(3).await;
    let mut log = cluster.log("log").await;
    commit(&mut log, "one").await.unwrap();
    for node in &cluster.datanodes {
        assert_eq!(node.bytes(), b"one");
        assert_eq!(node.state.lock().unwrap().synced, 0, "hflush does not sync to disk");
    }
    log.sync(SyncLevel::Disk).await.unwrap();
    assert!(cluster.datanodes.iter().all(|node| node.state.lock().unwrap().synced == 3));
    commit(&mut log, "two").await.unwrap();
    assert_eq!(log.len(), 6);
    log.close().await.unwrap();
    for node in &cluster.datanodes {
        let state = node.state.lock().unwrap();
        assert_eq!((&state.bytes[..], state.is_final, state.setups.len()), (&b"onetwo"[..], true, 1));
        assert_eq!((state.setups[0].pipeline_size, state.setups[0].targets.len()), (1, 0));
    }
    assert_eq!(cluster.holder("log"), None);
    assert_eq!(cluster.fs.stat(&FilePath::new("log")).await.unwrap().unwrap().len, 6);
    assert_eq!(cluster.namenode.calls_of("fsync").len(), 1, "only the first commit calls the NameNode");
    assert_eq!(cluster.namenode.state.lock().unwrap().confirmed, [3]);
}

#[tokio::test(start_paused = true)]
async fn a_data_file_is_one_pipeline_and_has_several_packets() {
    let cluster = Cluster::start(3).await;
    let path = FilePath::new("data");
    let mut file = cluster.fs.create(&path, AccessPattern::Data).await.unwrap();
    let bytes: Vec<u8> = (0..1_000_000u32).map(|at| (at / 7) as u8).collect();
    for part in bytes.chunks(30_001) {
        file.append(part.to_vec().into()).await.unwrap();
    }
    file.close().await.unwrap();
    for (node, targets) in cluster.datanodes.iter().zip([2, 1, 0]) {
        let state = node.state.lock().unwrap();
        assert!(state.bytes == bytes && state.is_final);
        assert_eq!((state.setups[0].pipeline_size, state.setups[0].targets.len()), (3, targets));
    }
}

#[tokio::test(start_paused = true)]
async fn only_store_files_may_be_in_memory_at_first() {
    const LAZY_PERSIST: u32 = 15;
    const HOT: u32 = 7;
    let cluster = Cluster::start(3).await;
    let mut requested = Vec::new();
    for (policy, access) in
        [(LAZY_PERSIST, AccessPattern::Data), (LAZY_PERSIST, AccessPattern::Log), (HOT, AccessPattern::Data)]
    {
        cluster.namenode.state.lock().unwrap().storage_policy = Some(policy);
        let path = FilePath::new(&format!("{access:?}{policy}"));
        let mut file = cluster.fs.create(&path, access).await.unwrap();
        file.append("x".into()).await.unwrap();
        file.close().await.unwrap();
        let setups = &cluster.datanodes[0].state.lock().unwrap().setups;
        requested.push(setups.last().unwrap().allow_lazy_persist);
    }
    assert_eq!(requested, [Some(true), Some(false), Some(false)]);
}

#[tokio::test(start_paused = true)]
async fn a_file_has_several_blocks_if_it_is_longer_than_one() {
    let cluster = Cluster::start(3).await;
    let settings = [("dfs.blocksize", "1k"), ("hbase.regionserver.hlog.blocksize", "1k")];
    let fs = connect_with(&cluster.env, Limits::default(), &settings).await;
    for (name, access) in [("log", AccessPattern::Log), ("data", AccessPattern::Data)] {
        let path = FilePath::new(name);
        let mut file = fs.create(&path, access).await.unwrap();
        for _ in 0..5 {
            file.append(vec![7; 500].into()).await.unwrap();
            file.sync(SyncLevel::Visible).await.unwrap();
        }
        file.append(vec![8; 572].into()).await.unwrap();
        file.close().await.unwrap();
        let state = cluster.datanodes[0].state.lock().unwrap();
        assert_eq!(state.bytes, [vec![7; 452], vec![8; 572]].concat(), "{name}");
        assert!(state.is_final);
        assert_eq!(state.setups.len(), if access == AccessPattern::Log { 3 } else { 6 });
        assert_eq!(state.setups[1].header.base_header.block.num_bytes, Some(1024), "the size of a block");
    }
    let state = cluster.namenode.state.lock().unwrap();
    assert_eq!(state.confirmed, [500, 476, 452], "once for each block of the log");
    let previous: Vec<Option<u64>> = state.previous.iter().map(|block| block.map(|(_, len)| len)).collect();
    assert_eq!(previous, [None, Some(1024), Some(1024), None, Some(1024), Some(1024)]);
}

/// The bytes of a store file with several packets.
fn content() -> Vec<u8> {
    (0..3_000_000u32).map(|at| (at / 7) as u8).collect()
}

/// Writes a store file in appends of different lengths.
async fn write(cluster: &Cluster, name: &str, bytes: &[u8]) -> fs::Result<()> {
    let mut file = cluster.fs.create(&FilePath::new(name), AccessPattern::Data).await?;
    for part in bytes.chunks(130_001).flat_map(|part| part.chunks(100_000)) {
        file.append(part.to_vec().into()).await?;
    }
    file.close().await
}

/// Checks that exactly these DataNodes have the last block of a file with these bytes.
fn assert_replicas(cluster: &Cluster, name: &str, bytes: &[u8], ports: &[u16]) {
    let block = cluster.namenode.state.lock().unwrap().blocks[&format!("/hbase/{name}")].clone();
    assert_eq!(block.storages, ports.iter().map(|port| format!("storage-{port}")).collect::<Vec<_>>());
    for port in ports {
        let state = cluster.datanodes[usize::from(*port) - 1].state.lock().unwrap();
        assert!(state.bytes == bytes, "DataNode {port} has the bytes");
        assert!(state.is_final && state.stamp == block.stamp, "DataNode {port} has the last generation");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_file_survives_the_loss_of_any_datanode() {
    let bytes = content();
    for (lost, others) in [(1, [2, 3]), (2, [1, 3]), (3, [1, 2])] {
        for behavior in [
            Behavior::DiesAfter(1_200_000),
            Behavior::DiesAfter(0),
            Behavior::DiesAtEnd,
            Behavior::RejectsPackets,
        ] {
            let cluster = Cluster::start(3).await;
            cluster.datanodes[lost - 1].set(behavior.clone());
            let began = cluster.env.clock.monotonic();
            write(&cluster, "data", &bytes).await.unwrap();
            assert!(cluster.env.clock.monotonic() - began < Duration::from_millis(10), "{behavior:?}");
            assert_replicas(&cluster, "data", &bytes, &others);
            // New blocks avoid the lost node.
            write(&cluster, "next", b"x").await.unwrap();
            assert_replicas(&cluster, "next", b"x", &others);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_file_survives_a_datanode_that_does_not_respond() {
    let bytes = content();
    for (frozen, others) in [(1, [2, 3]), (2, [1, 3]), (3, [1, 2])] {
        let cluster = Cluster::start(3).await;
        let path = FilePath::new("data");
        let mut file = cluster.fs.create(&path, AccessPattern::Data).await.unwrap();
        file.append(bytes[..1_000_000].to_vec().into()).await.unwrap();
        file.sync(SyncLevel::Disk).await.unwrap();
        cluster.datanodes[frozen - 1].set(Behavior::Frozen);
        let began = cluster.env.clock.monotonic();
        file.append(bytes[1_000_000..].to_vec().into()).await.unwrap();
        file.sync(SyncLevel::Disk).await.unwrap();
        let took = cluster.env.clock.monotonic() - began;
        assert!(took < Limits::default().data_ack + Duration::from_secs(6), "{took:?}");
        for port in others {
            assert_eq!(cluster.datanodes[port - 1].state.lock().unwrap().synced, bytes.len());
        }
        file.close().await.unwrap();
        assert_replicas(&cluster, "data", &bytes, &others.map(|port| port as u16));
    }
}

#[tokio::test(start_paused = true)]
async fn a_datanode_that_does_not_respond_to_a_setup_costs_a_store_file_no_other_replica() {
    let bytes = content();
    for (frozen, others) in [(1, [2, 3]), (2, [1, 3]), (3, [1, 2])] {
        let cluster = Cluster::start(3).await;
        cluster.datanodes[frozen - 1].set(Behavior::Frozen);
        let began = cluster.env.clock.monotonic();
        write(&cluster, "data", &bytes).await.unwrap();
        let took = cluster.env.clock.monotonic() - began;
        assert!(took < Limits::default().setup * 2 + Duration::from_millis(10), "{took:?}");
        assert_replicas(&cluster, "data", &bytes, &others);
        // New blocks avoid only this node.
        write(&cluster, "next", b"x").await.unwrap();
        assert_replicas(&cluster, "next", b"x", &others);
        // It is used again when it responds.
        cluster.datanodes[frozen - 1].set(Behavior::Good);
        cluster.env.clock.sleep(Duration::from_secs(10)).await;
        write(&cluster, "last", b"x").await.unwrap();
        assert_replicas(&cluster, "last", b"x", &[1, 2, 3]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_file_is_created_on_datanodes_whose_setup_takes_long() {
    for nodes in [1, 3] {
        let cluster = Cluster::start(nodes).await;
        let setup = Duration::from_millis(1500);
        assert!(setup > Limits::default().setup);
        cluster.datanodes.iter().for_each(|node| node.set(Behavior::SetsUpAfter(setup)));
        write(&cluster, "data", b"x").await.unwrap();
        assert_replicas(&cluster, "data", b"x", &(1..=nodes).collect::<Vec<u16>>());
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_file_survives_a_short_restart_of_all_datanodes() {
    let cluster = Cluster::start(3).await;
    cluster.datanodes.iter().for_each(|node| node.set(Behavior::Dead));
    set_all_after(&cluster, Duration::from_millis(500), Behavior::Good);
    write(&cluster, "data", b"x").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_store_file_survives_two_datanodes_that_fail_in_different_ways() {
    let bytes = content();
    let cluster = Cluster::start(3).await;
    cluster.datanodes[2].set(Behavior::Frozen);
    cluster.datanodes[1].set(Behavior::DiesAfter(1_200_000));
    write(&cluster, "data", &bytes).await.unwrap();
    assert_replicas(&cluster, "data", &bytes, &[1]);
}

#[tokio::test(start_paused = true)]
async fn an_idle_store_file_survives_the_loss_of_a_datanode() {
    let cluster = Cluster::start(3).await;
    let mut file = cluster.fs.create(&FilePath::new("data"), AccessPattern::Data).await.unwrap();
    file.append("one".into()).await.unwrap();
    file.sync(SyncLevel::Visible).await.unwrap();
    cluster.datanodes[1].set(Behavior::Dead);
    cluster.env.clock.sleep(MINUTE).await;
    file.append("two".into()).await.unwrap();
    file.close().await.unwrap();
    assert_replicas(&cluster, "data", b"onetwo", &[1, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_store_file_fails_if_most_datanodes_are_lost() {
    let cluster = Cluster::start(3).await;
    cluster.datanodes[0].set(Behavior::DiesAfter(2_000_000));
    cluster.datanodes[1].set(Behavior::DiesAfter(1_000_000));
    let failed = write(&cluster, "data", &content()).await.unwrap_err();
    assert!(failed.to_string().contains("10.0.0.1:1"), "{failed}");
    cluster.env.clock.sleep(MINUTE).await;
    assert_eq!(cluster.holder("data"), None, "its lease was recovered");
    // Of two replicas, one is enough.
    let settings = [("dfs.replication", "2")];
    let fs = connect_with(&cluster.env, Limits::default(), &settings).await;
    cluster.namenode.state.lock().unwrap().datanodes = vec![2, 3];
    cluster.datanodes[1].set(Behavior::DiesAfter(3));
    let mut file = fs.create(&FilePath::new("two"), AccessPattern::Data).await.unwrap();
    file.append("twothree".into()).await.unwrap();
    file.close().await.unwrap();
    assert_replicas(&cluster, "two", b"twothree", &[3]);
}

#[tokio::test(start_paused = true)]
async fn a_fenced_store_file_is_not_recovered() {
    let cluster = Cluster::start(3).await;
    let path = FilePath::new("data");
    let mut file = cluster.fs.create(&path, AccessPattern::Data).await.unwrap();
    file.append("one".into()).await.unwrap();
    file.sync(SyncLevel::Visible).await.unwrap();
    assert_eq!(cluster.fs.fence(&path).await.unwrap(), Fence::Complete);
    cluster.datanodes[1].set(Behavior::Dead);
    file.append("two".into()).await.unwrap();
    let failed = file.sync(SyncLevel::Visible).await.unwrap_err();
    assert!(fs::shared::is_taken_over(&failed), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn the_loss_of_a_datanode_fails_the_commit_and_the_next_log_avoids_it() {
    let cluster = Cluster::start(3).await;
    let mut log = cluster.log("log.1").await;
    commit(&mut log, "one").await.unwrap();
    cluster.datanodes[1].set(Behavior::Dead);
    let began = cluster.env.clock.monotonic();
    let failed = commit(&mut log, "two").await.unwrap_err();
    assert!(failed.to_string().contains("DataNode 10.0.0.1:2"), "{failed}");
    let again = log.sync(SyncLevel::Visible).await.unwrap_err();
    assert_eq!(again.to_string(), failed.to_string(), "a failure is permanent");
    let mut next = cluster.log("log.2").await;
    commit(&mut next, "two").await.unwrap();
    assert!(cluster.env.clock.monotonic() - began < Duration::from_millis(10));
    assert_eq!(cluster.datanodes[0].bytes(), b"two");
    assert_eq!(cluster.datanodes[2].bytes(), b"two");
    drop(log);
    cluster.env.clock.sleep(MINUTE).await;
    assert_eq!(cluster.holder("log.1"), None, "the lease of the failed log was recovered");
    assert!(cluster.holder("log.2").is_some());
}

#[tokio::test(start_paused = true)]
async fn the_recovery_of_a_failed_file_spares_a_new_file_of_the_same_name() {
    let cluster = Cluster::start(3).await;
    let (name, aside) = (FilePath::new("log"), FilePath::new("old"));
    let mut old = cluster.log("log").await;
    cluster.datanodes[1].set(Behavior::RejectsPackets);
    // The recovery waits for the NameNode until the new file was created.
    cluster.namenode.set_modes(Mode::Hung);
    commit(&mut old, "one").await.unwrap_err();
    cluster.env.clock.sleep(Duration::from_millis(1)).await;
    cluster.namenode.set_modes(Mode::Active);
    cluster.fs.rename(&name, &aside).await.unwrap();
    let mut new = cluster.log("log").await;
    assert!(cluster.holder("old").is_some(), "the recovery did not begin yet");
    cluster.env.clock.sleep(MINUTE).await;
    assert_eq!(cluster.holder("old"), None);
    assert!(cluster.holder("log").is_some());
    commit(&mut new, "two").await.unwrap();
    new.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_datanode_that_fails_at_setup_is_replaced() {
    let cluster = Cluster::start(4).await;
    for behavior in [Behavior::Dead, Behavior::RejectsSetup { bad_link: None }, Behavior::Frozen] {
        cluster.datanodes[3].set(behavior);
        let began = cluster.env.clock.monotonic();
        let mut log = cluster.log(&format!("log.{}", began.as_millis())).await;
        commit(&mut log, "x").await.unwrap();
        assert!(cluster.env.clock.monotonic() - began <= Duration::from_millis(1100));
        log.close().await.unwrap();
        cluster.env.clock.sleep(MINUTE * 3).await;
    }
    assert_eq!(cluster.namenode.calls_of("abandonBlock").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_bad_link_of_a_pipeline_is_the_suspect() {
    let cluster = Cluster::start(3).await;
    let bad_link = Some("10.0.0.1:3".to_owned());
    cluster.datanodes[0].set(Behavior::RejectsSetup { bad_link });
    let path = FilePath::new("data");
    let mut file = cluster.fs.create(&path, AccessPattern::Data).await.unwrap();
    file.append("x".into()).await.unwrap();
    // The first node rejects all setups, so it is replaced after the node that it reported.
    file.sync(SyncLevel::Visible).await.unwrap();
    assert_eq!(cluster.datanodes[1].bytes(), b"x");
    let first = &cluster.datanodes[0].state.lock().unwrap().setups;
    let targets: Vec<usize> = first.iter().map(|setup| setup.targets.len()).collect();
    assert_eq!(targets, [2, 1], "the second setup has no DataNode 3");
}

#[tokio::test(start_paused = true)]
async fn a_slow_datanode_fails_the_commit_in_time() {
    let cluster = Cluster::start(3).await;
    let mut log = cluster.log("log.1").await;
    commit(&mut log, "one").await.unwrap();
    cluster.datanodes[2].set(Behavior::Frozen);
    let began = cluster.env.clock.monotonic();
    let failed = commit(&mut log, "two").await.unwrap_err();
    assert_eq!(cluster.env.clock.monotonic() - began, Limits::default().log_laggard);
    assert!(failed.to_string().contains("10.0.0.1:3"), "{failed}");
    // If no DataNode responds, the time is longer, and none is a suspect.
    cluster.datanodes[2].set(Behavior::Good);
    cluster.env.clock.sleep(MINUTE * 3).await;
    let mut log = cluster.log("log.2").await;
    cluster.datanodes.iter().for_each(|node| node.set(Behavior::Frozen));
    let began = cluster.env.clock.monotonic();
    commit(&mut log, "two").await.unwrap_err();
    assert_eq!(cluster.env.clock.monotonic() - began, Limits::default().log_ack);
    cluster.datanodes.iter().for_each(|node| node.set(Behavior::Good));
    let mut log = cluster.log("log.3").await;
    commit(&mut log, "two").await.unwrap();
    assert!(cluster.datanodes.iter().all(|node| node.bytes() == b"two"));
}

#[tokio::test(start_paused = true)]
async fn a_datanode_that_was_late_once_is_used_again_if_there_are_too_few() {
    let cluster = Cluster::start(3).await;
    let mut log = cluster.log("log.1").await;
    cluster.datanodes[2].set(Behavior::Frozen);
    commit(&mut log, "one").await.unwrap_err();
    cluster.datanodes[2].set(Behavior::Good);
    // The log that replaces the failed one does not wait for it.
    let mut log = cluster.log("log.2").await;
    commit(&mut log, "two").await.unwrap();
    assert_eq!(log.missing_replicas(), 1);
    log.close().await.unwrap();
    cluster.env.clock.sleep(Duration::from_secs(10)).await;
    let mut log = cluster.log("log.3").await;
    commit(&mut log, "three").await.unwrap();
    assert_eq!(log.missing_replicas(), 0);
    assert!(cluster.datanodes.iter().all(|node| node.bytes() == b"three"));
    // One that fails again delays a later log once, and is then left out.
    cluster.datanodes[2].set(Behavior::Frozen);
    commit(&mut log, "four").await.unwrap_err();
    cluster.env.clock.sleep(Duration::from_secs(10)).await;
    let (began, before) = (cluster.env.clock.monotonic(), cluster.namenode.calls_of("addBlock").len());
    let mut log = cluster.log("log.4").await;
    assert_eq!(cluster.env.clock.monotonic() - began, Limits::default().setup);
    assert_eq!(cluster.namenode.calls_of("addBlock").len(), before + 3);
    commit(&mut log, "five").await.unwrap();
    assert_eq!(log.missing_replicas(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_log_is_on_two_datanodes_although_two_of_three_were_late() {
    let cluster = Cluster::start(3).await;
    for late in [1, 2] {
        let mut log = cluster.log(&format!("log.{late}")).await;
        cluster.datanodes[late].set(Behavior::Frozen);
        commit(&mut log, "one").await.unwrap_err();
        cluster.datanodes[late].set(Behavior::Good);
    }
    let mut log = cluster.log("log.3").await;
    commit(&mut log, "two").await.unwrap();
    assert_eq!(log.missing_replicas(), 1);
}

#[tokio::test(start_paused = true)]
async fn no_datanode_is_avoided_if_all_were_late() {
    let cluster = Cluster::start(3).await;
    cluster.datanodes.iter().for_each(|node| node.set(Behavior::Frozen));
    set_all_after(&cluster, Duration::from_millis(1500), Behavior::Good);
    let mut log = cluster.log("log").await;
    commit(&mut log, "one").await.unwrap();
    assert!(cluster.datanodes.iter().all(|node| node.bytes() == b"one"));
}

/// Sets the behavior of all DataNodes after a time.
fn set_all_after(cluster: &Cluster, time: Duration, behavior: Behavior) {
    let (env, nodes) = (cluster.env.clone(), cluster.datanodes.clone());
    cluster.env.spawn(base::env::TaskClass::Service, async move {
        env.clock.sleep(time).await;
        nodes.iter().for_each(|node| node.set(behavior.clone()));
    });
}

#[tokio::test(start_paused = true)]
async fn a_log_waits_while_all_datanodes_are_restarted() {
    const RESTART: Duration = Duration::from_secs(20);
    for behavior in [Behavior::Dead, Behavior::Frozen] {
        let cluster = Cluster::start(3).await;
        let mut log = cluster.log("log.1").await;
        commit(&mut log, "one").await.unwrap();
        cluster.datanodes.iter().for_each(|node| node.set(behavior.clone()));
        commit(&mut log, "two").await.unwrap_err();
        set_all_after(&cluster, RESTART, Behavior::Good);
        let began = cluster.env.clock.monotonic();
        let mut log = cluster.log("log.2").await;
        let took = cluster.env.clock.monotonic() - began;
        assert!(took >= RESTART && took < RESTART + Duration::from_secs(9), "{behavior:?}: {took:?}");
        commit(&mut log, "two").await.unwrap();
        assert!(
            cluster.datanodes.iter().all(|node| node.bytes() == b"two"),
            "{behavior:?}: it has all replicas"
        );
        assert!(cluster.namenode.calls_of("addBlock").len() < 50, "the NameNode is not overloaded");
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_waits_for_a_datanode_for_a_limited_time() {
    let cluster = Cluster::start(3).await;
    cluster.datanodes.iter().for_each(|node| node.set(Behavior::Dead));
    let began = cluster.env.clock.monotonic();
    let failed = cluster.fs.create(&FilePath::new("log"), AccessPattern::Log).await.err().unwrap();
    let took = cluster.env.clock.monotonic() - began;
    let limit = Limits::default().log_setup;
    assert!(took >= limit && took < limit + Duration::from_secs(3), "{took:?}");
    assert!(matches!(failed, Error::Io { .. }), "{failed}: the log does not wait for space");
}

#[tokio::test(start_paused = true)]
async fn a_log_that_is_fenced_waits_for_no_datanode() {
    let cluster = Cluster::start(3).await;
    cluster.datanodes.iter().for_each(|node| node.set(Behavior::Dead));
    let fence_after = Duration::from_secs(10);
    let (env, namenode) = (cluster.env.clone(), cluster.namenode.clone());
    cluster.env.spawn(base::env::TaskClass::Service, async move {
        env.clock.sleep(fence_after).await;
        namenode.state.lock().unwrap().paths.get_mut("/hbase/log").unwrap().holder = None;
    });
    let began = cluster.env.clock.monotonic();
    let failed = cluster.fs.create(&FilePath::new("log"), AccessPattern::Log).await.err().unwrap();
    assert!(fs::shared::is_taken_over(&failed), "{failed}");
    assert!(cluster.env.clock.monotonic() - began < fence_after + Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_store_file_fails_if_no_datanode_responds() {
    let cluster = Cluster::start(3).await;
    let mut file = cluster.fs.create(&FilePath::new("data"), AccessPattern::Data).await.unwrap();
    file.append("one".into()).await.unwrap();
    file.sync(SyncLevel::Visible).await.unwrap();
    cluster.datanodes.iter().for_each(|node| node.set(Behavior::Frozen));
    file.append("two".into()).await.unwrap();
    let synced = cluster.env.timeout(MINUTE, file.sync(SyncLevel::Visible)).await;
    synced.expect("a file does not wait without end").unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn an_error_status_fails_the_commit() {
    let cluster = Cluster::start(3).await;
    let mut log = cluster.log("log").await;
    cluster.datanodes[0].set(Behavior::RejectsPackets);
    let failed = commit(&mut log, "one").await.unwrap_err();
    assert!(failed.to_string().contains("status 1"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn an_idle_log_stays_open_and_notices_a_lost_datanode() {
    let cluster = Cluster::start(3).await;
    let mut log = cluster.log("log").await;
    cluster.env.clock.sleep(MINUTE * 5 + Duration::from_secs(1)).await;
    commit(&mut log, "one").await.unwrap();
    assert!(cluster.datanodes.iter().all(|node| node.state.lock().unwrap().heartbeats == 30));
    assert_eq!(cluster.namenode.calls_of("renewLease").len(), 10);
    cluster.datanodes[1].set(Behavior::Dead);
    cluster.env.clock.sleep(Duration::from_secs(11)).await;
    cluster.datanodes[1].set(Behavior::Good);
    assert!(commit(&mut log, "two").await.is_err());
    assert_eq!(cluster.holder("log"), None);
}

#[tokio::test(start_paused = true)]
async fn an_idle_log_stays_open_while_no_namenode_responds() {
    let cluster = Cluster::start(3).await;
    let mut log = cluster.log("log").await;
    commit(&mut log, "header").await.unwrap();
    cluster.namenode.set_modes(Mode::Hung);
    cluster.env.clock.sleep(MINUTE * 5 + Duration::from_secs(1)).await;
    assert!(cluster.datanodes.iter().all(|node| node.state.lock().unwrap().heartbeats == 30));
    commit(&mut log, "one").await.unwrap();
    let renewals = || cluster.namenode.calls_of("renewLease").len();
    cluster.namenode.set_modes(Mode::Active);
    cluster.env.clock.sleep(MINUTE).await;
    let before = renewals();
    cluster.env.clock.sleep(MINUTE).await;
    assert_eq!(renewals(), before + 2, "the lease is renewed again");
}

#[tokio::test(start_paused = true)]
async fn a_fence_waits_for_replicas_of_earlier_blocks() {
    let cluster = Cluster::start(1).await;
    let mut log = cluster.log("log").await;
    commit(&mut log, "one").await.unwrap();
    let waiting = "org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException";
    cluster.namenode.state.lock().unwrap().recovery_exception = Some(waiting);
    let other = connect(&cluster.env, Limits::default()).await;
    assert_eq!(other.fence(&FilePath::new("log")).await.unwrap(), Fence::Complete);
    assert_eq!(cluster.namenode.calls_of("recoverLease").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_fenced_writer_fails_as_taken_over() {
    let cluster = Cluster::start(3).await;
    let mut log = cluster.log("log").await;
    commit(&mut log, "one").await.unwrap();
    cluster.namenode.state.lock().unwrap().recovery_polls = 3;
    let other = connect(&cluster.env, Limits::default()).await;
    assert_eq!(other.fence(&FilePath::new("log")).await.unwrap(), Fence::Complete);
    assert_eq!(cluster.namenode.calls_of("recoverLease").len(), 4);
    // Lease recovery stops the writer at the DataNodes.
    cluster.datanodes.iter().for_each(|node| node.set(Behavior::Dead));
    let failed = commit(&mut log, "two").await.unwrap_err();
    assert!(fs::shared::is_taken_over(&failed), "{failed}");
    assert!(fs::shared::is_taken_over(&log.close().await.unwrap_err()));
    let missing = other.fence(&FilePath::new("missing")).await.unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
}

#[tokio::test(start_paused = true)]
async fn a_log_whose_block_cannot_be_confirmed_acknowledges_nothing() {
    let cluster = Cluster::start(3).await;
    let mut log = cluster.log("log").await;
    cluster.namenode.state.lock().unwrap().paths.get_mut("/hbase/log").unwrap().holder = None;
    let failed = commit(&mut log, "one").await.unwrap_err();
    assert!(fs::shared::is_taken_over(&failed), "{failed}");
    assert!(fs::shared::is_taken_over(&commit(&mut log, "two").await.unwrap_err()));
    // Without a NameNode, the first bytes are not acknowledged either.
    let mut log = cluster.log("log.2").await;
    cluster.namenode.set_modes(Mode::Standby);
    let failed = commit(&mut log, "one").await.unwrap_err();
    assert!(failed.to_string().contains("no active NameNode"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_file_is_closed_with_its_bytes() {
    let cluster = Cluster::start(3).await;
    let mut log = cluster.log("log").await;
    log.append("one".into()).await.unwrap();
    drop(log);
    cluster.env.clock.sleep(MINUTE).await;
    assert_eq!(cluster.holder("log"), None);
    assert_eq!(cluster.datanodes[0].bytes(), b"one");
    // After a cancelled operation it is unknown what was sent, so the lease is recovered.
    let mut log = cluster.log("log.2").await;
    cluster.datanodes[0].set(Behavior::Frozen);
    let cancelled = cluster.env.timeout(Duration::from_millis(1), commit(&mut log, "one")).await;
    assert!(cancelled.is_none());
    assert!(commit(&mut log, "two").await.is_err());
    drop(log);
    cluster.env.clock.sleep(MINUTE).await;
    assert_eq!(cluster.holder("log.2"), None);
    assert_eq!(cluster.namenode.calls_of("recoverLease").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_active_namenode_is_found_and_remembered() {
    let cluster = Cluster::start(3).await;
    let dir = FilePath::new("dir");
    let others = [Mode::Standby, Mode::Hung];
    for mode in others {
        cluster.namenode.set_mode(8020, mode);
        cluster.namenode.set_mode(8021, Mode::Active);
        cluster.fs.make_dirs(&dir).await.unwrap();
        cluster.namenode.set_mode(8020, Mode::Active);
        cluster.namenode.set_mode(8021, mode);
        let began = cluster.env.clock.monotonic();
        assert!(cluster.fs.stat(&dir).await.unwrap().unwrap().is_dir);
        let took = cluster.env.clock.monotonic() - began;
        let limit = if mode == Mode::Hung { Limits::default().call } else { Duration::ZERO };
        assert_eq!(took, limit, "{mode:?}");
        let before = cluster.namenode.calls_of("getFileInfo").len();
        cluster.fs.stat(&dir).await.unwrap();
        let calls = cluster.namenode.calls_of("getFileInfo");
        assert_eq!((calls.len(), calls[before].0), (before + 1, 8020));
    }
}

#[tokio::test(start_paused = true)]
async fn a_namenode_that_responds_slowly_executes_calls() {
    let cluster = Cluster::start(3).await;
    let dir = FilePath::new("dir");
    cluster.fs.make_dirs(&dir).await.unwrap();
    cluster.namenode.set_mode(8021, Mode::Standby);
    for response in [7, 30].map(Duration::from_secs) {
        assert!(response > Limits::default().call);
        cluster.namenode.set_mode(8020, Mode::Slow(response));
        let began = cluster.env.clock.monotonic();
        assert!(cluster.fs.stat(&dir).await.unwrap().unwrap().is_dir);
        let took = cluster.env.clock.monotonic() - began;
        assert!(took < MINUTE * 2, "{response:?}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_is_not_sent_again_while_other_responses_arrive() {
    let cluster = Cluster::start(3).await;
    cluster.namenode.set_mode(8021, Mode::Standby);
    cluster.namenode.set_mode(8020, Mode::Slow(Duration::from_secs(4)));
    // The second response arrives after its first attempt.
    let (one, two) = (FilePath::new("one"), FilePath::new("two"));
    let (first, second) = tokio::join!(cluster.fs.make_dirs(&one), cluster.fs.make_dirs(&two));
    first.unwrap();
    second.unwrap();
    let active = cluster.namenode.calls_of("mkdirs").into_iter().filter(|call| call.0 == 8020);
    assert_eq!(active.count(), 3, "with that of the root directory");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_lost_after_a_response_is_replaced_after_one_attempt() {
    let cluster = Cluster::start(3).await;
    cluster.namenode.set_mode(8021, Mode::Standby);
    cluster.namenode.set_mode(8020, Mode::Slow(Duration::from_secs(1)));
    let (one, two) = (FilePath::new("one"), FilePath::new("two"));
    let clock = &cluster.env.clock;
    let began = clock.monotonic();
    let lose = async {
        clock.sleep(Duration::from_millis(500)).await;
        // The second call on the connection is lost.
        cluster.namenode.set_mode(8020, Mode::Hung);
        clock.sleep(Duration::from_secs(1)).await;
        cluster.namenode.set_mode(8020, Mode::Active);
    };
    let (first, second, ()) = tokio::join!(cluster.fs.make_dirs(&one), cluster.fs.make_dirs(&two), lose);
    first.unwrap();
    second.unwrap();
    let took = clock.monotonic() - began;
    assert!(took >= Limits::default().call && took < Duration::from_secs(7), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_namenode_that_refuses_connections_is_not_waited_for() {
    let cluster = Cluster::start(3).await;
    cluster.namenode.set_modes(Mode::Refuses);
    let began = cluster.env.clock.monotonic();
    let failed = try_connect(&cluster.env, Limits::default(), &[]).await.err().unwrap();
    assert!(failed.to_string().contains("SIMPLE authentication is not enabled"), "{failed}");
    assert!(cluster.env.clock.monotonic() - began < Duration::from_millis(10));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_by_one_namenode_does_not_end_a_call_to_another_one() {
    let cluster = Cluster::start(3).await;
    cluster.namenode.set_mode(8020, Mode::Slow(Duration::from_secs(7)));
    cluster.namenode.set_mode(8021, Mode::Refuses);
    assert!(cluster.fs.stat(&FilePath::root()).await.unwrap().unwrap().is_dir);
    // All refuse when the slow one is restarted with the same settings.
    cluster.namenode.set_modes(Mode::Refuses);
    let failed = cluster.fs.stat(&FilePath::root()).await.unwrap_err();
    assert!(failed.to_string().contains("SIMPLE authentication is not enabled"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn calls_wait_for_safe_mode_and_for_a_namenode() {
    let cluster = Cluster::start(3).await;
    for mode in [Mode::Safe, Mode::Standby] {
        cluster.namenode.set_modes(mode);
        let (env, namenode) = (cluster.env.clone(), cluster.namenode.clone());
        let task_env = env.clone();
        env.spawn(base::env::TaskClass::Service, async move {
            task_env.clock.sleep(MINUTE).await;
            namenode.set_mode(8021, Mode::Active);
        });
        let began = env.clock.monotonic();
        let name = format!("log.{}", began.as_millis());
        // Safe mode concerns the active NameNode.
        if mode == Mode::Safe {
            cluster.namenode.set_mode(8020, Mode::Standby);
        }
        let mut log = cluster.log(&name).await;
        let took = env.clock.monotonic() - began;
        assert!(took >= MINUTE && took < MINUTE * 2, "{took:?}");
        // Commits need no NameNode, except the first one.
        commit(&mut log, "header").await.unwrap();
        cluster.namenode.set_modes(mode);
        commit(&mut log, "x").await.unwrap();
        cluster.namenode.set_mode(8021, Mode::Active);
    }
    cluster.namenode.set_modes(Mode::Standby);
    let failed = cluster.fs.stat(&FilePath::new("x")).await.unwrap_err();
    assert!(failed.to_string().contains("no active NameNode"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_response_was_lost_is_executed_once() {
    let cluster = Cluster::start(3).await;
    let (one, two) = (FilePath::new("one"), FilePath::new("two"));
    for method in ["create", "rename2", "delete", "addBlock", "complete"] {
        cluster.namenode.state.lock().unwrap().lose_response = Some(method);
        let log = cluster.fs.create(&one, AccessPattern::Log).await.unwrap();
        log.close().await.unwrap();
        cluster.fs.rename(&one, &two).await.unwrap();
        cluster.fs.delete(&two).await.unwrap();
        let calls = cluster.namenode.calls_of(method);
        let retried: Vec<_> = calls.iter().filter(|(_, _, retries)| *retries > 0).collect();
        assert_eq!(retried.len(), 1, "{method}");
        assert!(calls.iter().any(|(_, id, retries)| *id == retried[0].1 && *retries == 0), "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn rename_replaces_files_only() {
    let cluster = Cluster::start(3).await;
    let path = |name: &str| FilePath::new(name);
    for name in ["a", "b"] {
        cluster.log(name).await.close().await.unwrap();
    }
    cluster.fs.make_dirs(&path("dir")).await.unwrap();
    cluster.fs.make_dirs(&path("dir2")).await.unwrap();
    let calls = |methods: [&str; 2]| methods.map(|method| cluster.namenode.calls_of(method).len());
    let [renames, stats] = calls(["rename2", "getFileInfo"]);
    cluster.fs.rename(&path("a"), &path("b")).await.unwrap();
    assert_eq!(calls(["rename2", "getFileInfo"]), [renames + 2, stats + 1]);
    assert_eq!(cluster.fs.stat(&path("a")).await.unwrap(), None);
    for (from, to) in [("b", "dir"), ("dir", "b"), ("dir", "dir2")] {
        let failed = cluster.fs.rename(&path(from), &path(to)).await.unwrap_err();
        assert!(matches!(&failed, Error::AlreadyExists { path } if path.as_str() == to), "{failed}");
    }
    for (from, to, missing) in [("a", "c", "a"), ("b", "none/c", "none/c")] {
        let failed = cluster.fs.rename(&path(from), &path(to)).await.unwrap_err();
        assert!(matches!(&failed, Error::NotFound { path } if path.as_str() == missing), "{failed}");
    }
    cluster.fs.rename(&path("b"), &path("b")).await.unwrap();
    let created = cluster.fs.create(&path("none/log"), AccessPattern::Log).await;
    assert!(matches!(created.err(), Some(Error::NotFound { .. })));
    let created = cluster.fs.create(&path("b"), AccessPattern::Log).await;
    assert!(matches!(created.err(), Some(Error::AlreadyExists { .. })));
}

#[tokio::test(start_paused = true)]
async fn no_space_is_reported_only_if_no_datanode_is_avoided() {
    let cluster = Cluster::start(1).await;
    let mut log = cluster.log("log.1").await;
    cluster.datanodes[0].set(Behavior::RejectsPackets);
    commit(&mut log, "x").await.unwrap_err();
    cluster.datanodes[0].set(Behavior::Good);
    // The only DataNode is a suspect, but there is no other.
    let mut log = cluster.log("log.2").await;
    commit(&mut log, "x").await.unwrap();
    cluster.namenode.state.lock().unwrap().datanodes.clear();
    let full = cluster.fs.create(&FilePath::new("log.3"), AccessPattern::Log).await.err().unwrap();
    assert!(matches!(full, Error::NoSpace { .. }), "{full}");
}

#[tokio::test(start_paused = true)]
async fn a_log_without_space_for_its_next_block_is_not_retried() {
    let cluster = Cluster::start(3).await;
    let settings = [("hbase.regionserver.hlog.blocksize", "1k"), ("dfs.blocksize", "1k")];
    let fs = connect_with(&cluster.env, Limits::default(), &settings).await;
    for (name, access) in [("log", AccessPattern::Log), ("data", AccessPattern::Data)] {
        let mut file = fs.create(&FilePath::new(name), access).await.unwrap();
        file.append(vec![7; 1024].into()).await.unwrap();
        file.sync(SyncLevel::Visible).await.unwrap();
        let datanodes = std::mem::take(&mut cluster.namenode.state.lock().unwrap().datanodes);
        file.append("more".into()).await.unwrap();
        let failed = file.sync(SyncLevel::Visible).await.unwrap_err();
        assert_eq!(matches!(failed, Error::NoSpace { .. }), access == AccessPattern::Data, "{failed}");
        cluster.namenode.state.lock().unwrap().datanodes = datanodes;
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_knows_the_replicas_that_it_lacks() {
    for datanodes in 1..=3 {
        let cluster = Cluster::start(datanodes).await;
        for access in [AccessPattern::Log, AccessPattern::Data] {
            let mut file = cluster.fs.create(&FilePath::new(&format!("{access:?}")), access).await.unwrap();
            assert_eq!(file.missing_replicas(), 0, "it has no block yet");
            file.append("x".into()).await.unwrap();
            file.sync(SyncLevel::Visible).await.unwrap();
            assert_eq!(file.missing_replicas(), 3 - usize::from(datanodes), "{access:?}");
            file.append_and_sync("y".into(), 1, SyncLevel::Visible).await.unwrap();
            assert_eq!(file.missing_replicas(), 3 - usize::from(datanodes), "{access:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn new_files_and_directories_have_the_modes_of_the_umask() {
    let cluster = Cluster::start(3).await;
    cluster.namenode.state.lock().unwrap().permissions.clear();
    let settings = [("fs.permissions.umask-mode", "027")];
    let fs = connect_with(&cluster.env, Limits::default(), &settings).await;
    for access in [AccessPattern::Data, AccessPattern::Log] {
        let path = FilePath::new(&format!("{access:?}"));
        fs.create(&path, access).await.unwrap().close().await.unwrap();
    }
    let modes = &cluster.namenode.state.lock().unwrap().permissions;
    assert_eq!(modes[..], [(0o750, 0o777), (0o640, 0o666), (0o640, 0o666)]);
}

#[tokio::test(start_paused = true)]
async fn encryption_zones_are_refused() {
    let cluster = Cluster::start(3).await;
    cluster.fs.make_dirs(&FilePath::new("zone")).await.unwrap();
    let mut file = cluster.fs.create(&FilePath::new("file"), AccessPattern::Data).await.unwrap();
    file.append("x".into()).await.unwrap();
    file.close().await.unwrap();
    let encrypt = |path: &str| {
        cluster.namenode.state.lock().unwrap().paths.get_mut(path).unwrap().is_encrypted = true;
    };
    encrypt("/hbase/zone");
    for access in [AccessPattern::Data, AccessPattern::Log] {
        let failed = cluster.fs.create(&FilePath::new("zone/new"), access).await.err().unwrap();
        assert!(failed.to_string().contains("/hbase/zone/new is in an encryption zone"), "{failed}");
    }
    encrypt("/hbase/file");
    let failed = cluster.fs.open(&FilePath::new("file")).await.err().unwrap();
    assert!(failed.to_string().contains("/hbase/file is in an encryption zone"), "{failed}");
    encrypt("/hbase");
    let failed = try_connect(&cluster.env, Limits::default(), &[]).await.err().unwrap();
    assert!(failed.to_string().contains("/hbase is in an encryption zone"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn a_log_in_an_erasure_coded_directory_is_refused() {
    let cluster = Cluster::start(3).await;
    cluster.namenode.state.lock().unwrap().erasure_coded = Some("/hbase");
    let failed = cluster.fs.create(&FilePath::new("log"), AccessPattern::Log).await.err().unwrap();
    assert!(failed.to_string().contains("RS-6-3-1024k"), "{failed}");
    assert_eq!(cluster.fs.stat(&FilePath::new("log")).await.unwrap(), None, "nothing was created");
    let mut file = cluster.fs.create(&FilePath::new("data"), AccessPattern::Data).await.unwrap();
    file.append("x".into()).await.unwrap();
    file.close().await.unwrap();
}
