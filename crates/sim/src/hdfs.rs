//! HDFS in a simulated world: NameNodes and DataNodes as processes, and the product's client.
//!
//! The servers are the model of [`hdfs::simulated`]. All processes of the cluster use
//! [`HdfsFileSystem`], unchanged, over the simulated network.
//!
//! * [`disk`]: the disks of the DataNodes, with the faults of their processes;
//! * [`failover`]: which NameNode is active;
//! * [`faults`]: faults of HDFS;
//! * [`watch`]: checks of fenced files.
//!
//! In half of the worlds an acknowledged write is in the memory of all DataNodes of its block
//! (hflush), and no machine of a DataNode loses power. In the others it is on their disks (hsync),
//! and DataNodes sync replicas when they are finalized.

mod disk;
mod failover;
pub mod faults;
mod watch;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use fs::{FileSystem, SyncLevel};
use hdfs::simulated::{DataNode, DataNodeOptions, Journal, NameNode, NameNodeOptions, Record, ReplicaStore};
use hdfs::{HdfsFileSystem, HdfsOptions, IfMissing, Limits};

use self::disk::DataNodeDisk;
use self::watch::{FenceWatch, WatchedFs};
use crate::disk::DiskFaults;
use crate::network::{Crash, HostId};
use crate::process::{Life, Process};
use crate::random::RandomSource;
use crate::world::World;

const NAMENODES: [&str; 2] = ["namenode1", "namenode2"];
const NAMENODE_PORT: u16 = 8020;
const DATANODE_PORT: u16 = 9866;
const HEARTBEAT: Duration = Duration::from_secs(1);
/// The root directory of the cluster.
const ROOT: &str = "/hbase";
/// The pause between two attempts of a process to connect to HDFS.
const RECONNECTION: Duration = Duration::from_secs(1);
/// Small blocks, so that files have several ones. A log is rolled at 128 KiB, so some logs have
/// two.
const BLOCK_BYTES: &str = "65536";
const LOG_BLOCK_BYTES: &str = "163840";

/// HDFS in a world. See the module's documentation.
pub struct SimHdfs {
    world: Weak<World>,
    random: RandomSource,
    namenodes: Vec<Arc<Process>>,
    datanodes: Vec<Arc<Process>>,
    stores: BTreeMap<String, Arc<ReplicaStore>>,
    running: Arc<RunningNameNodes>,
    watch: Arc<FenceWatch>,
    is_synced: bool,
    unfenced: bool,
}

/// The NameNodes that run, by process.
#[derive(Default)]
struct RunningNameNodes(Mutex<BTreeMap<String, Weak<NameNode>>>);

impl RunningNameNodes {
    fn get(&self, process: &str) -> Option<Arc<NameNode>> {
        lock(&self.0).get(process).and_then(Weak::upgrade)
    }
}

impl SimHdfs {
    /// Starts two NameNodes, and three or four DataNodes. With `unfenced`, the product fences no
    /// file: a planted fault.
    pub fn start(world: &Arc<World>, unfenced: bool) -> Arc<SimHdfs> {
        let random = world.random("hdfs");
        let (is_synced, datanodes) = (random.one_in(2), 3 + random.index(2));
        let (journal, running) = (Journal::new(), Arc::<RunningNameNodes>::default());
        let namenodes = NAMENODES.map(|name| {
            let (journal, running) = (journal.clone(), running.clone());
            world.add_process(name, move |life| run_namenode(life, journal.clone(), running.clone()))
        });
        let names = (1..=datanodes).map(|n| format!("datanode{n}"));
        let stores: BTreeMap<String, Arc<ReplicaStore>> = names.map(|name| (name, Arc::default())).collect();
        let datanodes = stores.iter().map(|(name, store)| {
            let (store, seeds) = (store.clone(), world.random(&format!("disk of {name}")));
            world.add_process(name, move |life| {
                let random = RandomSource::new(seeds.next(), "life");
                run_datanode(life, store.clone(), random, is_synced)
            })
        });
        let datanodes: Vec<Arc<Process>> = datanodes.collect();
        namenodes.iter().chain(&datanodes).for_each(|process| drop(process.start()));
        let durability = durability(is_synced);
        let (timeline, scheduler) = (world.timeline().clone(), world.scheduler().clone());
        let hdfs = Arc::new(SimHdfs {
            world: Arc::downgrade(world),
            random,
            namenodes: namenodes.to_vec(),
            datanodes,
            stores,
            running,
            watch: FenceWatch::new(journal, timeline, scheduler, durability),
            is_synced,
            unfenced,
        });
        let kind = if is_synced { "hsync" } else { "hflush" };
        world.record("hdfs", &format!("{} DataNodes, logs are written with {kind}", hdfs.datanodes.len()));
        failover::start(world, &hdfs);
        hdfs
    }

    /// The file system of a process. Waits until HDFS is available.
    pub async fn connect(self: &Arc<Self>, life: &Life) -> Arc<dyn FileSystem> {
        let options = HdfsOptions {
            url: format!("hdfs://ns{ROOT}"),
            user: "hbase".to_string(),
            settings: settings(),
            limits: Limits::default(),
            if_missing: IfMissing::Create,
        };
        loop {
            match HdfsFileSystem::connect(&life.env, &options).await {
                Ok(inner) => {
                    let name = life.process.name();
                    return Arc::new(WatchedFs::new(inner, &self.watch, name, ROOT, self.unfenced));
                }
                Err(error) => life.process.record(&format!("cannot connect to HDFS: {error}")),
            }
            life.env.clock.sleep(RECONNECTION).await;
        }
    }

    /// What an acknowledged write survives.
    pub fn durability(&self) -> SyncLevel {
        durability(self.is_synced)
    }

    /// All processes of HDFS.
    pub fn processes(&self) -> impl Iterator<Item = &Arc<Process>> {
        self.namenodes.iter().chain(&self.datanodes)
    }

    /// The hosts of all processes of HDFS.
    pub fn hosts(&self) -> Vec<HostId> {
        self.processes().map(|process| process.host()).collect()
    }

    /// All hosts of HDFS lose power. If the cluster does not survive this, all processes are killed
    /// instead.
    pub fn lose_power(&self) {
        self.namenodes.iter().for_each(|process| process.crash(Crash::Host));
        self.datanodes.iter().for_each(|process| self.power_off(process));
    }

    /// The machine of a DataNode loses power, unless the cluster does not survive this: then only
    /// the process ends.
    fn power_off(&self, datanode: &Arc<Process>) {
        match self.is_synced {
            true => {
                datanode.crash(Crash::Host);
                self.stores[datanode.name()].lose_power(&mut || self.random.next());
            }
            false => datanode.crash(Crash::Process),
        }
    }

    /// Ends all faults.
    pub fn heal(&self) {
        for process in self.processes() {
            process.resume();
            if process.disk_faults() != DiskFaults::default() {
                process.set_disk_faults(DiskFaults::default());
            }
        }
    }

    /// The process of the active NameNode, if it runs.
    fn active(&self) -> Option<&Arc<Process>> {
        let is_active = |process: &&Arc<Process>| {
            self.running.get(process.name()).is_some_and(|namenode| namenode.is_active())
        };
        self.namenodes.iter().find(is_active)
    }

    /// The first violation of a fence.
    ///
    /// # Errors
    /// The violated invariant.
    pub fn check(&self) -> Result<(), String> {
        self.watch.check()
    }

    /// Checks that all processes run and that a NameNode is active.
    ///
    /// # Errors
    /// The first condition that does not hold.
    pub fn check_settled(&self) -> Result<(), String> {
        if let Some(stopped) = self.processes().find(|process| !process.is_running()) {
            return Err(format!("{} does not run", stopped.name()));
        }
        self.active().map(drop).ok_or_else(|| "no NameNode is active".to_string())
    }

    fn world(&self) -> Arc<World> {
        self.world.upgrade().expect("the world exists while something happens in it")
    }
}

fn durability(is_synced: bool) -> SyncLevel {
    if is_synced { SyncLevel::Disk } else { SyncLevel::Visible }
}

/// Settings of the client.
fn settings() -> HashMap<String, String> {
    let mut settings = HashMap::from([
        ("dfs.ha.namenodes.ns".to_string(), NAMENODES.join(",")),
        ("dfs.blocksize".to_string(), BLOCK_BYTES.to_string()),
        ("hbase.regionserver.hlog.blocksize".to_string(), LOG_BLOCK_BYTES.to_string()),
    ]);
    for name in NAMENODES {
        let key = format!("dfs.namenode.rpc-address.ns.{name}");
        settings.insert(key, format!("{name}:{NAMENODE_PORT}"));
    }
    settings
}

/// Records the events of a server as those of its process.
fn recorder(life: &Life) -> Record {
    let process = life.process.clone();
    Arc::new(move |event| process.record(event))
}

async fn run_namenode(life: Life, journal: Arc<Journal>, running: Arc<RunningNameNodes>) {
    let options = NameNodeOptions {
        port: NAMENODE_PORT,
        heartbeat: HEARTBEAT,
        // Short pages, so that listings have several.
        listing_page: 16,
        ..NameNodeOptions::default()
    };
    match NameNode::start(&life.env, &journal, options, recorder(&life)).await {
        Ok(namenode) => {
            lock(&running.0).insert(life.process.name().to_string(), Arc::downgrade(&namenode));
            std::future::pending().await
        }
        Err(error) => life.exit(&error.to_string()),
    }
}

async fn run_datanode(life: Life, store: Arc<ReplicaStore>, random: RandomSource, syncs_on_close: bool) {
    let options = DataNodeOptions {
        name: life.process.name().to_string(),
        port: DATANODE_PORT,
        namenodes: NAMENODES.map(|name| (name.to_string(), NAMENODE_PORT)).to_vec(),
        heartbeat: HEARTBEAT,
        syncs_on_close,
    };
    let disk = Arc::new(DataNodeDisk::new(&life, random));
    match DataNode::start(&life.env, &store, disk, options, recorder(&life)).await {
        Ok(()) => std::future::pending().await,
        Err(error) => life.exit(&error.to_string()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
