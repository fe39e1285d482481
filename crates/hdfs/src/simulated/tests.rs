//! The client of this crate on the model.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::BoxFuture;
use base::env::{Clock, Env};
use bytes::Bytes;
use fs::{AccessPattern, Error, Fence, FilePath, FileSystem, FileWriter, SyncLevel};
use prost::Message;

use super::*;
use crate::connection::{CLIENT_PROTOCOL, CallId, Connection, Identity};
use crate::generated::{BoolResponse, DeleteRequest};
use crate::options::Address;
use crate::testing::{NAMENODES, connect_with};
use crate::{HdfsFileSystem, Limits};

/// A disk whose accesses can be held back.
struct HeldDisk {
    clock: Arc<dyn Clock>,
    hangs: AtomicBool,
}

impl DataDisk for HeldDisk {
    fn access(&self, _: DiskAccess) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async move {
            while self.hangs.load(Ordering::Relaxed) {
                self.clock.sleep(Duration::from_millis(10)).await;
            }
            Ok(())
        })
    }
}

struct Model {
    env: Env,
    journal: Arc<Journal>,
    namenodes: Vec<Arc<NameNode>>,
    disks: Vec<Arc<HeldDisk>>,
    stores: Vec<Arc<ReplicaStore>>,
}

impl Model {
    async fn start(options: NameNodeOptions) -> Model {
        let env = base::testing::env(1);
        let (journal, record) = (Journal::new(), Arc::new(|_: &str| {}));
        let mut namenodes = Vec::new();
        for port in NAMENODES {
            let options = NameNodeOptions { port, ..options };
            namenodes.push(NameNode::start(&env, &journal, options, record.clone()).await.unwrap());
        }
        namenodes[0].activate();
        let (mut disks, mut stores) = (Vec::new(), Vec::new());
        for n in 1..=3 {
            let disk = Arc::new(HeldDisk { clock: env.clock.clone(), hangs: AtomicBool::new(false) });
            let store = Arc::new(ReplicaStore::default());
            let options = DataNodeOptions {
                name: format!("datanode{n}"),
                port: 100 * n,
                namenodes: NAMENODES.map(|port| ("host".to_owned(), port)).to_vec(),
                heartbeat: options.heartbeat,
                syncs_on_close: false,
            };
            DataNode::start(&env, &store, disk.clone(), options, record.clone()).await.unwrap();
            disks.push(disk);
            stores.push(store);
        }
        Model { env, journal, namenodes, disks, stores }
    }

    async fn client(&self) -> HdfsFileSystem {
        connect_with(&self.env, Limits::default(), &[("dfs.blocksize", "1024")]).await
    }

    fn len(&self, name: &str) -> Option<u64> {
        self.journal.file(&format!("/hbase/{name}")).filter(|file| !file.is_open).map(|file| file.len)
    }
}

async fn log(fs: &HdfsFileSystem, name: &str) -> Box<dyn FileWriter> {
    fs.create(&FilePath::new(name), AccessPattern::Log).await.unwrap()
}

async fn commit(log: &mut Box<dyn FileWriter>, bytes: &'static str) -> fs::Result<()> {
    log.append_and_sync(bytes.into(), bytes.len(), SyncLevel::Visible).await
}

async fn read(fs: &HdfsFileSystem, name: &str) -> Bytes {
    let reader = fs.open(&FilePath::new(name)).await.unwrap();
    reader.read_at(0, reader.len() as usize).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn files_are_written_and_found() {
    let model = Model::start(NameNodeOptions { listing_page: 2, ..NameNodeOptions::default() }).await;
    let fs = model.client().await;
    let data: Bytes = (0..5000).map(|n| n as u8).collect::<Vec<u8>>().into();
    for name in ["a", "b", "c"] {
        let mut file = fs.create(&FilePath::new(name), AccessPattern::Data).await.unwrap();
        file.append(data.clone()).await.unwrap();
        file.close().await.unwrap();
    }
    assert_eq!(read(&fs, "b").await, data);
    fs.make_dirs(&FilePath::new("dir/below")).await.unwrap();
    fs.rename(&FilePath::new("b"), &FilePath::new("dir/d")).await.unwrap();
    let names = async |dir: &str| -> Vec<String> {
        fs.list(&FilePath::new(dir)).await.unwrap().into_iter().map(|entry| entry.name).collect()
    };
    assert_eq!(names("").await, ["a", "c", "dir"]);
    assert_eq!(names("dir").await, ["below", "d"]);
    assert_eq!(read(&fs, "dir/d").await, data);
    assert!(fs.delete_empty_dir(&FilePath::new("dir")).await.is_err());
    fs.delete_empty_dir(&FilePath::new("dir/below")).await.unwrap();
    assert_eq!(names("dir").await, ["d"]);
    fs.delete(&FilePath::new("dir")).await.unwrap();
    assert!(matches!(fs.open(&FilePath::new("dir/d")).await, Err(Error::NotFound { .. })));
    // The replicas are deleted with the next heartbeats.
    model.env.clock.sleep(Duration::from_secs(3)).await;
    assert!(
        model.stores.iter().all(|store| store.changes(None).1.len() <= 10),
        "2 files of 5 blocks are left"
    );
}

#[tokio::test(start_paused = true)]
async fn readers_of_an_open_file_see_the_flushed_bytes() {
    let model = Model::start(NameNodeOptions::default()).await;
    let fs = model.client().await;
    let mut log = log(&fs, "log").await;
    assert_eq!(read(&fs, "log").await, "");
    let mut written = String::new();
    // The log has several blocks in the end.
    for part in ["one", "two", &"x".repeat(3000), "three"] {
        log.append_and_sync(part.to_owned().into(), part.len(), SyncLevel::Visible).await.unwrap();
        written.push_str(part);
        assert_eq!(read(&fs, "log").await, written);
    }
    // A DataNode that restarted does not know which bytes were acknowledged; the others do.
    model.stores[0].restart();
    assert_eq!(read(&fs, "log").await, written);
    model.stores[1].restart();
    model.stores[2].restart();
    let error = fs.open(&FilePath::new("log")).await.err().unwrap().to_string();
    assert!(error.contains("until its lease is recovered"), "{error}");
    assert_eq!(fs.fence(&FilePath::new("log")).await.unwrap(), Fence::Complete);
    assert_eq!(read(&fs, "log").await, written);
}

#[tokio::test(start_paused = true)]
async fn an_open_block_without_replicas_is_empty() {
    let model = Model::start(NameNodeOptions::default()).await;
    let fs = model.client().await;
    let _log = log(&fs, "log").await;
    let mut written = log(&fs, "written").await;
    commit(&mut written, "one").await.unwrap();
    for store in &model.stores {
        let blocks: Vec<u64> = store.changes(None).1.iter().map(|replica| replica.block_id).collect();
        store.delete(&blocks);
    }
    assert_eq!(read(&fs, "log").await, "");
    // The NameNode knows that this one had bytes.
    let error = fs.open(&FilePath::new("written")).await.err().unwrap().to_string();
    assert!(error.contains("no DataNode has a replica"), "{error}");
}

/// A process that pauses between the allocation of a log's block and the creation of its replicas.
#[tokio::test(start_paused = true)]
async fn a_log_that_was_fenced_before_it_had_replicas_acknowledges_nothing() {
    let heartbeat = Duration::from_millis(200);
    let model = Model::start(NameNodeOptions { heartbeat, ..NameNodeOptions::default() }).await;
    let (writer, other) = (model.client().await, model.client().await);
    let set_pause = |hangs| model.disks.iter().for_each(|disk| disk.hangs.store(hangs, Ordering::Relaxed));
    set_pause(true);
    let (mut log, ()) = tokio::join!(log(&writer, "log"), async {
        model.env.clock.sleep(Duration::from_millis(20)).await;
        assert_eq!(other.fence(&FilePath::new("log")).await.unwrap(), Fence::Complete);
        set_pause(false);
    });
    assert_eq!(model.len("log"), Some(0));
    assert!(model.stores.iter().all(|store| store.changes(None).1.len() == 1), "the replicas exist");
    let failed = commit(&mut log, "one").await.unwrap_err();
    assert!(matches!(failed, Error::TakenOver { .. }), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn a_namenode_that_knows_no_replica_does_not_close_a_log_as_empty() {
    let model = Model::start(NameNodeOptions::default()).await;
    let writer = model.client().await;
    let mut log = log(&writer, "log").await;
    commit(&mut log, "one").await.unwrap();
    // The DataNodes of the log do not report to this NameNode.
    const PORT: u16 = 8030;
    let record: Record = Arc::new(|_: &str| {});
    let options = NameNodeOptions { port: PORT, ..NameNodeOptions::default() };
    let restarted = NameNode::start(&model.env, &model.journal, options, record.clone()).await.unwrap();
    let options = DataNodeOptions {
        name: "datanode4".to_owned(),
        port: 400,
        namenodes: vec![("host".to_owned(), PORT)],
        heartbeat: Duration::from_secs(1),
        syncs_on_close: false,
    };
    let store = Arc::new(ReplicaStore::default());
    DataNode::start(&model.env, &store, model.disks[0].clone(), options, record).await.unwrap();
    model.env.clock.sleep(Duration::from_secs(2)).await;
    restarted.activate();
    let settings = [("dfs.namenode.rpc-address.ns.a", "one:8030")];
    let other = connect_with(&model.env, Limits::default(), &settings).await;
    let path = FilePath::new("log");
    assert!(model.env.timeout(Duration::from_secs(40), other.fence(&path)).await.is_none());
    assert_eq!(model.len("log"), None, "it is still open");
    model.namenodes[0].activate();
    assert_eq!(model.client().await.fence(&path).await.unwrap(), Fence::Complete);
    assert_eq!(model.len("log"), Some(3));
    assert!(commit(&mut log, "two").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_fence_closes_the_file_and_stops_its_writer() {
    let model = Model::start(NameNodeOptions::default()).await;
    let (writer, other) = (model.client().await, model.client().await);
    let mut log = log(&writer, "log").await;
    commit(&mut log, "one").await.unwrap();
    assert_eq!(model.len("log"), None);
    assert_eq!(other.fence(&FilePath::new("log")).await.unwrap(), Fence::Complete);
    assert_eq!(model.len("log"), Some(3));
    assert!(matches!(commit(&mut log, "two").await, Err(Error::TakenOver { .. })));
    assert_eq!(read(&other, "log").await, "one");
}

#[tokio::test(start_paused = true)]
async fn a_recovered_block_has_the_bytes_that_all_replicas_have() {
    let model = Model::start(NameNodeOptions::default()).await;
    let fs = model.client().await;
    let mut log = log(&fs, "log").await;
    commit(&mut log, "one").await.unwrap();
    model.disks[1].hangs.store(true, Ordering::Relaxed);
    commit(&mut log, "two").await.unwrap_err();
    let lens = |stores: &[Arc<ReplicaStore>]| -> Vec<u64> {
        stores.iter().map(|store| store.changes(None).1[0].len).collect()
    };
    assert_eq!(lens(&model.stores), [6, 3, 6]);
    // The recovery begins with a heartbeat. Then the packet that is held back is not stored.
    model.env.clock.sleep(Duration::from_secs(2)).await;
    model.disks[1].hangs.store(false, Ordering::Relaxed);
    assert_eq!(fs.fence(&FilePath::new("log")).await.unwrap(), Fence::Complete);
    assert_eq!(lens(&model.stores), [3, 3, 3]);
    assert_eq!(read(&fs, "log").await, "one");
}

#[tokio::test(start_paused = true)]
async fn a_failover_preserves_files_and_results() {
    let model = Model::start(NameNodeOptions::default()).await;
    let fs = model.client().await;
    let mut log = log(&fs, "log").await;
    commit(&mut log, "one").await.unwrap();
    let identity = Identity { user: "u".to_owned(), client_id: [7; 16] };
    let delete = async |port| {
        let address = Address { host: "host".to_owned(), port };
        let connection = Connection::open(&model.env, &address, &identity, CLIENT_PROTOCOL).await.unwrap();
        let request = DeleteRequest { src: "/hbase/removed".to_owned(), recursive: true };
        let response = connection.call("delete", CallId { id: 5, retries: 0 }, &request).await;
        response.ok().map(|mut bytes| BoolResponse::decode_length_delimited(&mut bytes).unwrap().result)
    };
    fs.make_dirs(&FilePath::new("removed")).await.unwrap();
    assert_eq!(delete(NAMENODES[1]).await, None, "it is in standby");
    assert_eq!(delete(NAMENODES[0]).await, Some(true));
    model.namenodes[1].activate();
    assert!(!model.namenodes[0].is_active());
    assert_eq!(delete(NAMENODES[0]).await, None, "it was replaced");
    assert_eq!(delete(NAMENODES[1]).await, Some(true), "the result of the first call");
    commit(&mut log, "two").await.unwrap();
    log.close().await.unwrap();
    assert_eq!(read(&fs, "log").await, "onetwo");
}

#[tokio::test(start_paused = true)]
async fn another_client_gets_a_lease_after_the_soft_limit() {
    // The writer renews its lease each 30 s.
    let soft_limit = Duration::from_secs(10);
    let model = Model::start(NameNodeOptions { soft_limit, ..NameNodeOptions::default() }).await;
    let (writer, other) = (model.client().await, model.client().await);
    let mut log = log(&writer, "log").await;
    commit(&mut log, "one").await.unwrap();
    let create = || async { other.create(&FilePath::new("log"), AccessPattern::Log).await.map(drop) };
    create().await.unwrap_err();
    model.env.clock.sleep(Duration::from_secs(5)).await;
    assert_eq!(model.len("log"), None);
    model.env.clock.sleep(Duration::from_secs(15)).await;
    create().await.unwrap_err();
    model.env.clock.sleep(Duration::from_secs(5)).await;
    assert_eq!(model.len("log"), Some(3));
    assert!(commit(&mut log, "two").await.is_err());
}

#[test]
fn a_loss_of_power_loses_what_was_not_synced() {
    let store = ReplicaStore::default();
    let (synced, unsynced) = (store.create(1, 10).unwrap(), store.create(2, 11).unwrap());
    store.write(&synced, 0, b"0123456789").unwrap();
    store.mark_synced(&synced, 4).unwrap();
    store.write(&unsynced, 0, b"0123456789").unwrap();
    store.lose_power(&mut || 1);
    let (_, left) = store.changes(None);
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].block_id, left[0].len), (1, 5));
    assert_eq!(left[0].state, super::store::ReplicaState::Waiting.number());
    assert!(store.write(&synced, 5, b"5").is_err(), "its writer ended with the process");
}

#[test]
fn a_replica_belongs_to_its_last_writer_and_recovery() {
    let store = ReplicaStore::default();
    let first = store.create(1, 10).unwrap();
    store.write(&first, 0, b"0123").unwrap();
    store.acknowledge(&first, 2, false).unwrap();
    assert!(store.resume(1, (10, 12), (3, 4)).is_err(), "only two bytes were acknowledged");
    let second = store.resume(1, (10, 12), (2, 4)).unwrap();
    assert!(store.write(&first, 4, b"4").is_err());
    store.write(&second, 2, b"23").unwrap();
    assert_eq!(store.begin_recovery(1, 12, 20).unwrap().unwrap().len, 4);
    assert!(store.write(&second, 4, b"4").is_err());
    assert!(store.begin_recovery(1, 12, 19).is_err(), "a later recovery has begun");
    store.begin_recovery(1, 12, 21).unwrap();
    assert!(store.end_recovery(1, 20, 3, false).is_err());
    store.end_recovery(1, 21, 3, false).unwrap();
    assert_eq!(store.read(1, 21).unwrap(), b"012");
    assert!(store.read(1, 22).is_err());
}

/// Types of storage.
const DISK: u32 = 1;
const SSD: u32 = 2;
const ARCHIVE: u32 = 3;

async fn write_file(fs: &HdfsFileSystem, path: &FilePath) {
    fs.make_dirs(&path.parent()).await.unwrap();
    let mut file = fs.create(path, AccessPattern::Data).await.unwrap();
    file.append(Bytes::from_static(&[1; 3000])).await.unwrap();
    file.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn replicas_follow_the_storage_policies_of_directories() {
    let model = Model::start(NameNodeOptions { satisfier: true, ..NameNodeOptions::default() }).await;
    let fs = model.client().await;
    let [hot, cold] = ["data/f", "archive/f"].map(FilePath::new);
    let types = |path: &FilePath| {
        let found = model.journal.storage_types(&format!("/hbase/{path}"));
        assert_eq!(found.len(), 9, "three blocks with three replicas");
        found
    };
    fs.make_dirs(&hot.parent()).await.unwrap();
    fs.set_storage_policy(&hot.parent(), "all_ssd").await;
    write_file(&fs, &hot).await;
    assert_eq!(types(&hot), [SSD; 9]);
    // No rename moves replicas.
    fs.make_dirs(&cold.parent()).await.unwrap();
    fs.rename(&hot, &cold).await.unwrap();
    assert_eq!(types(&cold), [SSD; 9]);
    let settled = || model.env.clock.sleep(Duration::from_secs(5));
    fs.satisfy_storage_policy(&cold);
    settled().await;
    assert_eq!(types(&cold), [DISK; 9], "a directory without a policy is HOT");
    assert_eq!(fs.policy_counts(), Some(fs::PolicyCounts { set: 1, moves: 1, errors: 0 }));
    // They are where the policy says.
    fs.satisfy_storage_policy(&cold);
    settled().await;
    assert_eq!(fs.policy_counts().unwrap().moves, 1);
    // A change of the policy of a directory concerns all files in it.
    fs.set_storage_policy(&cold.parent(), "WARM").await;
    fs.satisfy_storage_policy(&cold.parent());
    settled().await;
    assert_eq!(types(&cold)[..3], [DISK, ARCHIVE, ARCHIVE]);
    assert_eq!(fs.policy_counts(), Some(fs::PolicyCounts { set: 2, moves: 2, errors: 0 }));
    // A file that is gone is no error.
    fs.satisfy_storage_policy(&FilePath::new("archive/gone"));
    settled().await;
    assert_eq!(fs.policy_counts().unwrap().errors, 0);
}

#[tokio::test(start_paused = true)]
async fn errors_of_storage_policies_fail_nothing() {
    let model = Model::start(NameNodeOptions::default()).await;
    let fs = model.client().await;
    let file = FilePath::new("data/f");
    fs.make_dirs(&file.parent()).await.unwrap();
    fs.set_storage_policy(&file.parent(), "FASTEST").await;
    fs.set_storage_policy(&FilePath::new("missing"), "HOT").await;
    assert_eq!(fs.policy_counts(), Some(fs::PolicyCounts { set: 0, moves: 0, errors: 2 }));
    write_file(&fs, &file).await;
    // There is no satisfier.
    fs.set_storage_policy(&file.parent(), "COLD").await;
    fs.satisfy_storage_policy(&file);
    model.env.clock.sleep(Duration::from_secs(5)).await;
    assert_eq!(model.journal.storage_types("/hbase/data/f"), [DISK; 9]);
    assert_eq!(fs.policy_counts(), Some(fs::PolicyCounts { set: 1, moves: 0, errors: 2 }));
    assert_eq!(read(&fs, "data/f").await.len(), 3000);
}
