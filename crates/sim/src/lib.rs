//! Deterministic simulation of a cluster.
//!
//! [`World::run`] runs all processes of a cluster on one thread, in virtual time.
//! Everything that happens, including faults, follows from one seed, so a failing run can be
//! repeated. The processes run the code of the product over a simulated [`Env`](base::env::Env) and
//! [`FileSystem`](fs::FileSystem).
//!
//! * [`world`], [`process`]: the world, its processes, and how they end or pause;
//! * [`scheduler`]: the order of tasks, and virtual time;
//! * [`network`]: byte streams with latency, partitions, resets;
//! * [`disk`]: the shared file system;
//! * [`hdfs`]: HDFS, in place of the shared file system;
//! * [`duplicates`]: calls that arrive twice;
//! * [`ensemble`]: ZooKeeper: sessions, and when they expire;
//! * [`history`], [`workload`]: what clients write and read, and the checks of it;
//! * [`node`], [`scenario`]: the standalone server, and the runs of it;
//! * [`cluster`]: a cluster, and the runs of it;
//! * [`batch`]: many runs;
//! * [`timeline`]: the events of a run, and their digest;
//! * [`random`], [`entropy`]: decisions from the seed, and hash keys.
//!
//! Knows nothing about: real clocks, sockets and disks.

pub mod batch;
pub mod cluster;
pub mod disk;
pub mod duplicates;
pub mod ensemble;
pub mod entropy;
pub mod hdfs;
pub mod history;
pub mod network;
pub mod node;
pub mod process;
pub mod random;
mod ready;
pub mod scenario;
pub mod scheduler;
pub mod timeline;
pub mod workload;
pub mod world;

pub use world::{Run, World, WorldOptions};
