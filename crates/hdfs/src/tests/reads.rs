//! Reads of files from DataNodes in memory.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::BoxFuture;
use base::env::{Clock, Env, Listener, Network, Stream, TaskClass};
use fs::{AccessPattern, Error, FilePath, FileSystem};
use futures_util::future::join_all;

use super::{Cluster, MINUTE, commit, set_all_after};
use crate::Limits;
use crate::read_slots::READS_PER_NODE_MAX;
use crate::testing::{Behavior, Mode, ReadBehavior, connect_with};

/// A file of `len` bytes in blocks of 4 KiB, on a cluster with these settings; its bytes and a
/// reader.
async fn written(cluster: &Cluster, len: usize) -> (Vec<u8>, Arc<dyn fs::FileReader>) {
    let path = FilePath::new("data");
    let bytes: Vec<u8> = (0..len).map(|at| (at * at / 7) as u8).collect();
    let mut file = cluster.fs.create(&path, AccessPattern::Data).await.unwrap();
    file.append(bytes.clone().into()).await.unwrap();
    file.close().await.unwrap();
    (bytes, cluster.fs.open(&path).await.unwrap())
}

impl Cluster {
    /// Settings of a file system with small blocks.
    async fn with_small_blocks(datanodes: u16, more: &[(&str, &str)]) -> Cluster {
        Cluster::in_order(datanodes, &[&[("dfs.blocksize", "4096")][..], more].concat()).await
    }

    fn reads(&self) -> Vec<usize> {
        self.datanodes.iter().map(|node| node.state.lock().unwrap().reads.len()).collect()
    }

    /// From now on, the NameNode lists only these DataNodes as those of the file.
    fn list(&self, ports: &[u16]) {
        let mut state = self.namenode.state.lock().unwrap();
        for block in &mut state.paths.get_mut("/hbase/data").unwrap().blocks {
            block.locs = ports.iter().map(|port| crate::testing::info(*port)).collect();
        }
    }

    fn remove_replicas(&self, node: usize) {
        self.datanodes[node].state.lock().unwrap().blocks.clear();
    }

    fn set_reads(&self, nodes: &[usize], behavior: ReadBehavior) {
        nodes.iter().for_each(|node| self.datanodes[*node].state.lock().unwrap().read = behavior);
    }
}

#[tokio::test(start_paused = true)]
async fn any_range_of_a_file_is_read() {
    let cluster = Cluster::with_small_blocks(3, &[]).await;
    let (bytes, reader) = written(&cluster, 10_001).await;
    assert_eq!(reader.len(), 10_001);
    let calls = cluster.namenode.state.lock().unwrap().calls.len();
    for (offset, len) in [(0, 1), (511, 2), (0, 4096), (4095, 2), (4096, 512), (1000, 9001), (10_000, 1)] {
        let read = reader.read_at(offset, len).await.unwrap();
        assert_eq!(read, bytes[offset as usize..offset as usize + len], "{len} bytes at {offset}");
    }
    assert_eq!(reader.read_at(10_001, 0).await.unwrap(), "");
    let end = reader.read_at(10_000, 2).await.unwrap_err();
    assert!(matches!(end, Error::PastEnd { end: 10_002, .. }));
    assert_eq!(cluster.reads(), [10, 0, 0], "each block is read from its nearest replica");
    assert_eq!(cluster.namenode.state.lock().unwrap().calls.len(), calls, "a read makes no call");
    cluster.fs.rename(&FilePath::new("data"), &FilePath::new("moved")).await.unwrap();
    cluster.set_reads(&[0, 1, 2], ReadBehavior::ExpiredToken);
    let failed = reader.read_at(0, 1).await.unwrap_err();
    assert!(failed.to_string().contains("token"), "{failed}");
    cluster.set_reads(&[0, 1, 2], ReadBehavior::Good);
    assert_eq!(reader.read_at(4000, 200).await.unwrap(), bytes[4000..4200], "after the file was renamed");
}

#[tokio::test(start_paused = true)]
async fn an_opened_file_costs_one_call() {
    let cluster = Cluster::with_small_blocks(1, &[]).await;
    written(&cluster, 9000).await;
    let before = cluster.namenode.state.lock().unwrap().calls.len();
    cluster.fs.open(&FilePath::new("data")).await.unwrap();
    assert_eq!(cluster.namenode.state.lock().unwrap().calls.len(), before + 1);
}

#[tokio::test(start_paused = true)]
async fn an_open_file_without_known_replicas_is_not_read_as_shorter() {
    let cluster = Cluster::with_small_blocks(3, &[]).await;
    let (_, reader) = written(&cluster, 5000).await;
    {
        let mut state = cluster.namenode.state.lock().unwrap();
        let inode = state.paths.get_mut("/hbase/data").unwrap();
        inode.open_block = Some(crate::testing::located(900, &[]));
    }
    let failed = cluster.fs.open(&FilePath::new("data")).await.err().unwrap().to_string();
    assert!(failed.contains("the length of its last block is not known"), "{failed}");
    assert!(failed.contains("no DataNode has reported a replica"), "{failed}");
    drop(reader);
}

#[tokio::test(start_paused = true)]
async fn a_lost_datanode_delays_one_read() {
    let cluster = Cluster::with_small_blocks(3, &[]).await;
    let (bytes, reader) = written(&cluster, 5000).await;
    assert_eq!(reader.read_at(0, 10).await.unwrap(), bytes[..10]);
    cluster.datanodes[0].set(Behavior::Dead);
    let began = cluster.env.clock.monotonic();
    for at in 0..5 {
        assert_eq!(reader.read_at(at, 10).await.unwrap(), bytes[at as usize..at as usize + 10]);
    }
    assert!(cluster.env.clock.monotonic() - began < Duration::from_millis(10));
    assert_eq!(cluster.reads()[1], 5, "the next replica");
    cluster.datanodes[1].set(Behavior::Frozen);
    let began = cluster.env.clock.monotonic();
    for _ in 0..5 {
        assert_eq!(reader.read_at(0, 10).await.unwrap(), bytes[..10]);
    }
    let took = cluster.env.clock.monotonic() - began;
    assert!((5000..5100).contains(&took.as_millis()), "one read waits for the frozen node: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_was_moved_costs_one_read() {
    let cluster = Cluster::with_small_blocks(3, &[]).await;
    let (bytes, reader) = written(&cluster, 4000).await;
    let refreshes = || cluster.namenode.calls_of("getBlockLocations").len();
    cluster.remove_replicas(0);
    cluster.list(&[2, 3]);
    for _ in 0..10 {
        assert_eq!(reader.read_at(0, 4000).await.unwrap(), bytes);
    }
    cluster.env.clock.sleep(MINUTE * 2).await;
    assert_eq!((cluster.reads(), refreshes()), (vec![1, 10, 0], 1));
    // A refresh may return the old locations. The next one begins at least a minute later.
    cluster.remove_replicas(1);
    for _ in 0..120 {
        assert_eq!(reader.read_at(0, 4000).await.unwrap(), bytes);
        cluster.env.clock.sleep(Duration::from_secs(1)).await;
    }
    assert_eq!((cluster.reads(), refreshes()), (vec![1, 10 + 2, 120], 2));
}

#[tokio::test(start_paused = true)]
async fn a_read_tries_the_old_locations_while_no_namenode_responds() {
    let cluster = Cluster::with_small_blocks(3, &[]).await;
    let (bytes, reader) = written(&cluster, 4000).await;
    cluster.namenode.set_modes(Mode::Hung);
    cluster.datanodes.iter().for_each(|node| node.set(Behavior::Dead));
    set_all_after(&cluster, Duration::from_secs(1), Behavior::Good);
    let began = cluster.env.clock.monotonic();
    assert_eq!(reader.read_at(0, 4000).await.unwrap(), bytes);
    let took = cluster.env.clock.monotonic() - began;
    assert!(took < Duration::from_secs(6), "{took:?}");
    // If no replica can be read, the read fails within a minute.
    cluster.datanodes.iter().for_each(|node| node.set(Behavior::Dead));
    let failed = cluster.env.timeout(MINUTE, reader.read_at(0, 4000)).await;
    failed.expect("a read does not wait for a NameNode").unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn the_replica_of_this_machine_is_read() {
    let cluster = Cluster::with_small_blocks(3, &[]).await;
    let (bytes, _) = written(&cluster, 4000).await;
    for block in &mut cluster.namenode.state.lock().unwrap().paths.get_mut("/hbase/data").unwrap().blocks {
        block.locs[2] = crate::testing::info_at("127.0.0.1", 3);
    }
    let reader = cluster.fs.open(&FilePath::new("data")).await.unwrap();
    assert_eq!(reader.read_at(0, 4000).await.unwrap(), bytes);
    assert_eq!(cluster.reads(), [0, 0, 1]);
    cluster.remove_replicas(2);
    assert_eq!(reader.read_at(0, 4000).await.unwrap(), bytes);
    assert_eq!(cluster.reads(), [1, 0, 2]);
}

#[tokio::test(start_paused = true)]
async fn readers_share_the_replicas_of_other_machines() {
    let cluster = Cluster::start(3).await;
    let (bytes, _) = written(&cluster, 4000).await;
    for _ in 0..30 {
        let reader = cluster.fs.open(&FilePath::new("data")).await.unwrap();
        assert_eq!(reader.read_at(0, 4000).await.unwrap(), bytes);
    }
    assert!(cluster.reads().iter().all(|reads| *reads > 0), "{:?}", cluster.reads());
}

#[tokio::test(start_paused = true)]
async fn a_dead_machine_delays_few_reads() {
    let cluster = Cluster::with_small_blocks(3, &[]).await;
    let (_, reader) = written(&cluster, 4000).await;
    let is_slow = async || {
        let began = cluster.env.clock.monotonic();
        reader.read_at(0, 4000).await.unwrap();
        cluster.env.clock.monotonic() - began > Duration::from_millis(100)
    };
    cluster.datanodes[0].set(Behavior::Frozen);
    let mut slow = Vec::new();
    for _ in 0..20 {
        let (one, other) = tokio::join!(is_slow(), is_slow());
        slow.push(usize::from(one) + usize::from(other));
        cluster.env.clock.sleep(MINUTE).await;
    }
    assert_eq!(slow[0], 2, "both begin before the DataNode has failed");
    assert_eq!(slow[1..].iter().sum::<usize>(), 3, "after 2, 4 and 8 minutes: {slow:?}");
    // After another 16 minutes it is used again.
    cluster.datanodes[0].set(Behavior::Good);
    cluster.env.clock.sleep(MINUTE * 16).await;
    for _ in 0..3 {
        assert!(!is_slow().await);
    }
    assert_eq!(cluster.reads()[0], 3);
}

#[tokio::test(start_paused = true)]
async fn a_datanode_that_refuses_a_read_has_not_failed() {
    let cluster = Cluster::with_small_blocks(2, &[]).await;
    let (bytes, reader) = written(&cluster, 4000).await;
    let other = cluster.fs.open(&FilePath::new("data")).await.unwrap();
    cluster.datanodes[0].set(Behavior::Frozen);
    assert_eq!(reader.read_at(0, 4000).await.unwrap(), bytes);
    cluster.datanodes[0].set(Behavior::Good);
    cluster.remove_replicas(0);
    cluster.env.clock.sleep(MINUTE * 3).await;
    for (reader, reads) in [(reader, [1, 2]), (other, [2, 3])] {
        assert_eq!(reader.read_at(0, 4000).await.unwrap(), bytes);
        assert_eq!(cluster.reads(), reads);
    }
}

/// What happens to new connections.
#[derive(Clone, Copy)]
enum Connecting {
    Succeeds,
    /// The process has no descriptor for them.
    HasNoDescriptor,
    /// Those to this port take this time.
    IsSlow(u16, Duration),
    /// Those to this port never succeed.
    IsLost(u16),
}

/// A network on which new connections may fail.
struct FaultyNetwork {
    net: Arc<dyn Network>,
    clock: Arc<dyn Clock>,
    connecting: Mutex<Connecting>,
}

impl FaultyNetwork {
    /// Makes the file system of a cluster use such a network.
    async fn install(cluster: &mut Cluster) -> Arc<FaultyNetwork> {
        let env = &cluster.env;
        let connecting = Mutex::new(Connecting::Succeeds);
        let net = Arc::new(FaultyNetwork { net: env.net.clone(), clock: env.clock.clone(), connecting });
        let faulty = Env { net: net.clone(), ..env.clone() };
        cluster.fs = connect_with(&faulty, Limits::default(), &[]).await;
        net
    }

    fn set(&self, connecting: Connecting) {
        *self.connecting.lock().unwrap() = connecting;
    }
}

impl Network for FaultyNetwork {
    fn listen(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        self.net.listen(address)
    }

    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        let connecting = *self.connecting.lock().unwrap();
        Box::pin(async move {
            match connecting {
                Connecting::HasNoDescriptor => return Err(io::Error::from_raw_os_error(24)),
                Connecting::IsSlow(slow, time) if slow == port => self.clock.sleep(time).await,
                Connecting::IsLost(lost) if lost == port => std::future::pending::<()>().await,
                Connecting::IsSlow(..) | Connecting::IsLost(_) | Connecting::Succeeds => {}
            }
            self.net.connect(host, port).await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_lack_of_descriptors_is_not_the_fault_of_a_datanode() {
    let mut cluster = Cluster::with_small_blocks(2, &[]).await;
    let net = FaultyNetwork::install(&mut cluster).await;
    let (bytes, reader) = written(&cluster, 4000).await;
    net.set(Connecting::HasNoDescriptor);
    let failed = reader.read_at(0, 4000).await.unwrap_err();
    assert!(matches!(failed, Error::NoDescriptor { .. }), "{failed}");
    net.set(Connecting::Succeeds);
    assert_eq!(reader.read_at(0, 4000).await.unwrap(), bytes);
    assert_eq!(cluster.reads(), [1, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_lacks_descriptors_waits_and_blames_no_datanode() {
    let mut cluster = Cluster::with_small_blocks(2, &[]).await;
    let net = FaultyNetwork::install(&mut cluster).await;
    let (bytes, reader) = written(&cluster, 4000).await;
    cluster.namenode.state.lock().unwrap().datanodes = vec![1];
    let shortage = Duration::from_secs(10);
    net.set(Connecting::HasNoDescriptor);
    let (env, began) = (cluster.env.clone(), cluster.env.clock.monotonic());
    cluster.env.spawn(TaskClass::Service, async move {
        env.clock.sleep(shortage).await;
        net.set(Connecting::Succeeds);
    });
    let mut log = cluster.log("log").await;
    commit(&mut log, "one").await.unwrap();
    let took = cluster.env.clock.monotonic() - began;
    assert!(took >= shortage && took < shortage + Duration::from_secs(3), "{took:?}");
    assert!(cluster.namenode.calls_of("addBlock").len() < 30, "the NameNode is not overloaded");
    assert_eq!(reader.read_at(0, 4000).await.unwrap(), bytes);
    assert_eq!(cluster.reads(), [1, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_datanode_has_a_bounded_number_of_reads() {
    let cluster = Cluster::with_small_blocks(1, &[]).await;
    let (bytes, reader) = written(&cluster, 4000).await;
    cluster.set_reads(&[0], ReadBehavior::Slow);
    let clock = &cluster.env.clock;
    // One after another, because a listener has a short backlog.
    let read = |at: u32| {
        let (clock, reader) = (clock.clone(), reader.clone());
        async move {
            clock.sleep(Duration::from_millis(5) * at).await;
            reader.read_at(0, 10).await
        }
    };
    let running = async {
        clock.sleep(Duration::from_secs(2)).await;
        cluster.reads()[0]
    };
    let (all, running) = tokio::join!(join_all((0..300).map(read)), running);
    assert_eq!(running, READS_PER_NODE_MAX);
    assert!(all.into_iter().all(|read| read.unwrap() == bytes[..10]));
}

#[tokio::test(start_paused = true)]
async fn reads_that_wait_for_a_slot_do_not_wait_for_a_datanode_that_fails() {
    let cluster = Cluster::with_small_blocks(2, &[]).await;
    let (bytes, reader) = written(&cluster, 4000).await;
    cluster.datanodes[0].set(Behavior::Frozen);
    let clock = &cluster.env.clock;
    // One after another, because a listener has a short backlog.
    let read = |at: u32| {
        let (clock, reader) = (clock.clone(), reader.clone());
        async move {
            clock.sleep(Duration::from_millis(5) * at).await;
            reader.read_at(0, 10).await
        }
    };
    let began = clock.monotonic();
    let all = join_all((0..300).map(read)).await;
    assert!(all.into_iter().all(|read| read.unwrap() == bytes[..10]));
    let took = clock.monotonic() - began;
    assert!(took < Duration::from_secs(7), "{took:?}: the time limit passes once");
}

#[tokio::test(start_paused = true)]
async fn a_late_acknowledgement_moves_no_reads() {
    let cluster = Cluster::with_small_blocks(3, &[]).await;
    let (bytes, reader) = written(&cluster, 4000).await;
    let mut log = cluster.log("log").await;
    cluster.datanodes[0].set(Behavior::Frozen);
    commit(&mut log, "late").await.unwrap_err();
    cluster.datanodes[0].set(Behavior::Good);
    assert_eq!(reader.read_at(0, 4000).await.unwrap(), bytes);
    assert_eq!(cluster.reads(), [1, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_late_setup_moves_no_reads() {
    let cluster = Cluster::with_small_blocks(3, &[]).await;
    let (bytes, reader) = written(&cluster, 4000).await;
    cluster.datanodes[0].set(Behavior::Frozen);
    let mut log = cluster.log("log").await;
    commit(&mut log, "x").await.unwrap();
    assert_eq!(log.missing_replicas(), 1);
    cluster.datanodes[0].set(Behavior::Good);
    assert_eq!(reader.read_at(0, 4000).await.unwrap(), bytes);
    assert_eq!(cluster.reads(), [1, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn no_read_waits_for_a_lost_machine_that_acknowledged_late() {
    let mut cluster = Cluster::with_small_blocks(3, &[]).await;
    let net = FaultyNetwork::install(&mut cluster).await;
    let (bytes, reader) = written(&cluster, 4000).await;
    let mut log = cluster.log("log").await;
    cluster.datanodes[0].set(Behavior::Frozen);
    net.set(Connecting::IsLost(1));
    commit(&mut log, "late").await.unwrap_err();
    let clock = &cluster.env.clock;
    clock.sleep(Duration::from_secs(2)).await;
    let began = clock.monotonic();
    assert_eq!(reader.read_at(0, 4000).await.unwrap(), bytes);
    assert!(clock.monotonic() - began < Duration::from_millis(100));
    assert_eq!(cluster.reads(), [0, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_corrupt_replica_is_reported_once_at_a_time() {
    let cluster = Cluster::with_small_blocks(2, &[]).await;
    let (bytes, reader) = written(&cluster, 3000).await;
    let other = cluster.fs.open(&FilePath::new("data")).await.unwrap();
    cluster.set_reads(&[0], ReadBehavior::Corrupt);
    cluster.namenode.set_modes(Mode::Hung);
    for reader in [reader, other] {
        assert_eq!(reader.read_at(0, 3000).await.unwrap(), bytes);
    }
    cluster.namenode.set_modes(Mode::Active);
    cluster.env.clock.sleep(MINUTE).await;
    assert_eq!(cluster.namenode.state.lock().unwrap().bad_blocks.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_long_read_is_limited_only_while_no_bytes_arrive() {
    let cluster = Cluster::in_order(2, &[]).await;
    let (bytes, reader) = written(&cluster, 20_000).await;
    cluster.set_reads(&[0], ReadBehavior::Slow);
    let began = cluster.env.clock.monotonic();
    assert_eq!(reader.read_at(0, 20_000).await.unwrap(), bytes);
    assert_eq!(cluster.env.clock.monotonic() - began, Duration::from_secs(15), "five packets");
    cluster.set_reads(&[0], ReadBehavior::Good);
    assert_eq!(reader.read_at(0, 10).await.unwrap(), bytes[..10]);
    assert_eq!(cluster.reads(), [2, 0], "a slow DataNode is not a suspect");
    cluster.set_reads(&[0], ReadBehavior::Stalls);
    let began = cluster.env.clock.monotonic();
    assert_eq!(reader.read_at(0, 20_000).await.unwrap(), bytes);
    assert_eq!(cluster.env.clock.monotonic() - began, Duration::from_secs(5), "the limit");
    assert_eq!(cluster.reads(), [3, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_hedged_read_does_not_wait_for_a_frozen_datanode() {
    let hedged =
        [("dfs.client.hedged.read.threadpool.size", "5"), ("dfs.client.hedged.read.threshold.millis", "50")];
    let cluster = Cluster::with_small_blocks(3, &hedged).await;
    let (bytes, reader) = written(&cluster, 5000).await;
    cluster.datanodes[0].set(Behavior::Frozen);
    cluster.datanodes[1].set(Behavior::Frozen);
    let began = cluster.env.clock.monotonic();
    assert_eq!(reader.read_at(100, 4900).await.unwrap(), bytes[100..]);
    let took = cluster.env.clock.monotonic() - began;
    assert!((200..220).contains(&took.as_millis()), "two hedges for each of two blocks: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn the_number_of_hedges_is_limited() {
    let hedged =
        [("dfs.client.hedged.read.threadpool.size", "1"), ("dfs.client.hedged.read.threshold.millis", "50")];
    let cluster = Cluster::with_small_blocks(2, &hedged).await;
    let (bytes, reader) = written(&cluster, 4000).await;
    cluster.datanodes[0].set(Behavior::Frozen);
    cluster.set_reads(&[1], ReadBehavior::Slow);
    let hedges = async {
        cluster.env.clock.sleep(Duration::from_secs(1)).await;
        cluster.reads()[1]
    };
    let (one, other, hedges) = tokio::join!(reader.read_at(0, 10), reader.read_at(0, 10), hedges);
    assert_eq!(one.unwrap(), bytes[..10]);
    assert_eq!(other.unwrap(), bytes[..10]);
    assert_eq!((hedges, cluster.reads()), (1, vec![0, 2]));
}

/// A clock that counts its timers.
struct CountingClock {
    clock: Arc<dyn Clock>,
    timers: AtomicUsize,
}

impl Clock for CountingClock {
    fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.timers.fetch_add(1, Ordering::Relaxed);
        self.clock.sleep(duration)
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_without_a_permit_for_a_hedge_does_not_poll_without_end() {
    let hedged =
        [("dfs.client.hedged.read.threadpool.size", "1"), ("dfs.client.hedged.read.threshold.millis", "0")];
    let mut cluster = Cluster::with_small_blocks(2, &[]).await;
    let clock = Arc::new(CountingClock { clock: cluster.env.clock.clone(), timers: AtomicUsize::new(0) });
    let counted = Env { clock: clock.clone(), ..cluster.env.clone() };
    cluster.fs = connect_with(&counted, Limits::default(), &hedged).await;
    let (bytes, reader) = written(&cluster, 4000).await;
    cluster.set_reads(&[0, 1], ReadBehavior::Slow);
    let before = clock.timers.load(Ordering::Relaxed);
    let (one, other) = tokio::join!(reader.read_at(0, 10), reader.read_at(0, 10));
    assert_eq!(one.unwrap(), bytes[..10]);
    assert_eq!(other.unwrap(), bytes[..10]);
    let timers = clock.timers.load(Ordering::Relaxed) - before;
    assert!(timers < 500, "{timers} in 3 s");
}

#[tokio::test(start_paused = true)]
async fn a_read_is_not_hedged_to_a_datanode_that_failed() {
    let hedged =
        [("dfs.client.hedged.read.threadpool.size", "5"), ("dfs.client.hedged.read.threshold.millis", "50")];
    let cluster = Cluster::with_small_blocks(2, &hedged).await;
    let (bytes, reader) = written(&cluster, 4000).await;
    cluster.datanodes[0].set(Behavior::Dead);
    assert_eq!(reader.read_at(0, 10).await.unwrap(), bytes[..10]);
    cluster.datanodes[0].set(Behavior::Good);
    cluster.set_reads(&[1], ReadBehavior::Slow);
    assert_eq!(reader.read_at(0, 10).await.unwrap(), bytes[..10]);
    assert_eq!(cluster.reads(), [0, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_corrupt_replica_is_reported_and_another_one_read() {
    let cluster = Cluster::with_small_blocks(2, &[]).await;
    let (bytes, reader) = written(&cluster, 3000).await;
    cluster.set_reads(&[0], ReadBehavior::Corrupt);
    assert_eq!(reader.read_at(0, 3000).await.unwrap(), bytes);
    cluster.env.clock.sleep(Duration::from_secs(1)).await;
    {
        let state = cluster.namenode.state.lock().unwrap();
        let bad: Vec<_> = state.bad_blocks.iter().map(|block| block.locs.clone()).collect();
        assert_eq!(bad, [[crate::testing::info(1)]]);
    }
    cluster.set_reads(&[0], ReadBehavior::Misplaced);
    assert_eq!(reader.read_at(600, 100).await.unwrap(), bytes[600..700]);
    cluster.set_reads(&[1], ReadBehavior::Misplaced);
    let failed = reader.read_at(600, 100).await.unwrap_err();
    assert!(failed.to_string().contains("wrong position"), "no other bytes are returned: {failed}");
    cluster.set_reads(&[0, 1], ReadBehavior::Corrupt);
    let failed = reader.read_at(0, 3000).await.unwrap_err();
    assert!(failed.to_string().contains("checksums"), "no corrupt byte is returned: {failed}");
}

#[tokio::test(start_paused = true)]
async fn a_read_that_waits_for_locations_does_not_delay_other_calls() {
    let mut cluster = Cluster::with_small_blocks(3, &[]).await;
    let net = FaultyNetwork::install(&mut cluster).await;
    let (bytes, reader) = written(&cluster, 4000).await;
    cluster.namenode.set_mode(8020, Mode::Hung);
    net.set(Connecting::IsSlow(8021, Duration::from_secs(1)));
    cluster.datanodes.iter().for_each(|node| node.set(Behavior::Frozen));
    let clock = &cluster.env.clock;
    let stat = async {
        // After 15 s, all replicas have failed. After 20 s, the read tries them again, while its
        // request for locations connects to the other NameNode.
        clock.sleep(Duration::from_millis(20_500)).await;
        let began = clock.monotonic();
        cluster.fs.stat(&FilePath::new("data")).await.unwrap().unwrap();
        cluster.datanodes.iter().for_each(|node| node.set(Behavior::Good));
        clock.monotonic() - began
    };
    let (read, took) = tokio::join!(reader.read_at(0, 4000), stat);
    assert_eq!(read.unwrap(), bytes);
    assert!(took < Duration::from_secs(2), "{took:?}");
}
