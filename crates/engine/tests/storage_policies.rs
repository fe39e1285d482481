//! Storage policies of a region's directories, on the model of HDFS: where the replicas of files
//! are after flushes, compactions, archiving, and a change of a policy.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::common::world::{Opened, open_table, options, store_dir};
use base::BoxFuture;
use base::env::Env;
use cell::cell::CellType;
use cell::mutation::Mutation;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use cell::{KeyValue, LATEST_TIMESTAMP};
use engine::region::{CompactionKind, RegionOptions, StoragePolicies};
use fs::{FilePath, FileSystem, PolicyCounts};
use hdfs::simulated::{
    DataDisk, DataNode, DataNodeOptions, DiskAccess, Journal, NameNode, NameNodeOptions, ReplicaStore,
};
use hdfs::{HdfsFileSystem, HdfsOptions, IfMissing, Limits};

/// Types of storage (HDFS: `StorageTypeProto`) of the three replicas of a block.
const DISK: [u32; 3] = [1; 3];
const SSD: [u32; 3] = [2; 3];
const ARCHIVE: [u32; 3] = [3; 3];
const ONE_SSD: [u32; 3] = [2, 1, 1];
const WARM: [u32; 3] = [1, 3, 3];

struct NoDelay;

impl DataDisk for NoDelay {
    fn access(&self, _: DiskAccess) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A simulated HDFS with three DataNodes, and a client of it.
struct World {
    env: Env,
    journal: Arc<Journal>,
    fs: Arc<HdfsFileSystem>,
}

impl World {
    async fn start(satisfier: bool) -> World {
        let (env, journal, record) = (base::testing::env(1), Journal::new(), Arc::new(|_: &str| ()));
        let node = NameNodeOptions { satisfier, ..NameNodeOptions::default() };
        NameNode::start(&env, &journal, node, record.clone()).await.unwrap().activate();
        for n in 1..=3 {
            let node = DataNodeOptions {
                name: format!("datanode{n}"),
                port: 100 * n,
                namenodes: vec![("host".to_owned(), node.port)],
                heartbeat: node.heartbeat,
                syncs_on_close: false,
            };
            let store = Arc::new(ReplicaStore::default());
            DataNode::start(&env, &store, Arc::new(NoDelay), node, record.clone()).await.unwrap();
        }
        let options = HdfsOptions {
            url: format!("hdfs://host:{}/hbase", node.port),
            user: "u".to_owned(),
            settings: HashMap::new(),
            limits: Limits::default(),
            if_missing: IfMissing::Create,
        };
        let fs = Arc::new(HdfsFileSystem::connect(&env, &options).await.unwrap());
        World { env, journal, fs }
    }

    /// Opens a region of a table whose family `f` has the policy, and `g` has none.
    async fn open(&self, policy: &str) -> Opened {
        let storage = StoragePolicies {
            region: StoragePolicies::named("WARM"),
            store: None,
            log: StoragePolicies::named("ONE_SSD"),
        };
        let table = TableDescriptor::new(TableName::parse("t").unwrap())
            .with_family(FamilyDescriptor::new("f").with("STORAGE_POLICY", policy))
            .with_family(FamilyDescriptor::new("g"));
        let options = RegionOptions { storage, ..options() };
        open_table(&self.env, self.fs.clone(), options, &table).await.unwrap()
    }

    /// The types of storage of all blocks of the only file in a directory.
    async fn types_in(&self, dir: &str) -> Vec<u32> {
        let listed = self.fs.list(&FilePath::new(dir)).await.unwrap();
        let names: Vec<_> = listed.iter().filter(|entry| !entry.is_dir).map(|entry| &entry.name).collect();
        assert_eq!(names.len(), 1, "{dir} has one file: {names:?}");
        self.journal.storage_types(&format!("/hbase/{dir}/{}", names[0]))
    }

    fn counts(&self) -> PolicyCounts {
        self.fs.policy_counts().unwrap()
    }

    /// Lets the requests of the background end.
    async fn settle(&self) {
        self.env.clock.sleep(Duration::from_secs(5)).await;
    }
}

async fn write(opened: &Opened, row: &str) {
    for family in ["f", "g"] {
        let cell =
            KeyValue::new(row.as_bytes(), family.as_bytes(), b"q", LATEST_TIMESTAMP, CellType::Put, b"v");
        let put = Mutation::put(row.as_bytes().to_vec(), vec![cell]);
        opened.region.batch(vec![put]).await.remove(0).unwrap();
    }
    opened.region.flush().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn replicas_are_where_the_policies_say() {
    let world = World::start(true).await;
    let opened = world.open("ALL_SSD").await;
    write(&opened, "a").await;
    assert_eq!(world.types_in(&store_dir("f")).await, SSD, "a flush");
    assert_eq!(world.types_in(&store_dir("g")).await, WARM, "the policy of the region");
    assert_eq!(world.types_in("WALs/host,16020,1").await, ONE_SSD);

    write(&opened, "b").await;
    assert_eq!(opened.region.compact(Some(b"f"), CompactionKind::Major).await.unwrap(), 2);
    assert_eq!(world.types_in(&store_dir("f")).await, SSD, "a compaction");
    world.settle().await;
    let archive = format!("archive/{}", store_dir("f"));
    for entry in world.fs.list(&FilePath::new(&archive)).await.unwrap() {
        let types = world.journal.storage_types(&format!("/hbase/{archive}/{}", entry.name));
        assert_eq!(types, DISK, "the archive has no policy");
    }
    assert_eq!((world.counts().moves, world.counts().errors), (2, 0));

    // The table is altered, so its regions open again.
    opened.region.close().await.unwrap();
    let opened = world.open("COLD").await;
    world.settle().await;
    assert_eq!(world.types_in(&store_dir("f")).await, ARCHIVE, "a change of the policy");
    assert_eq!(world.counts().moves, 3);
    write(&opened, "c").await;
    opened.region.compact(Some(b"f"), CompactionKind::Major).await.unwrap();
    world.settle().await;
    assert_eq!(world.types_in(&store_dir("f")).await, ARCHIVE);
}

#[tokio::test(start_paused = true)]
async fn a_region_serves_with_policies_that_hdfs_rejects() {
    let world = World::start(false).await;
    let opened = world.open("FASTEST").await;
    write(&opened, "a").await;
    write(&opened, "b").await;
    assert_eq!(opened.region.compact(Some(b"f"), CompactionKind::Major).await.unwrap(), 2);
    world.settle().await;
    // When the region opened, and when the directory for unfinished files was created.
    assert_eq!(world.counts().errors, 2);
    assert_eq!(world.types_in(&store_dir("f")).await, WARM, "it inherits the policy of the region");
    // There is no satisfier, so archived files stay where they were written.
    assert_eq!(world.counts().moves, 0);
}
