//! Files and logs on HDFS, as a [`fs::FileSystem`].
//!
//! * [`HdfsFileSystem`]: the file system, below a root such as `hdfs://nameservice/hbase`;
//! * [`HdfsOptions`]: its root, user and settings, as in `core-site.xml` and `hdfs-site.xml`;
//!   [`open()`] and [`open_foreign`] take them from a configuration;
//! * [`Limits`]: how long it waits for NameNodes and DataNodes;
//! * `connection`, `namenode`: Hadoop RPC, and the calls to the NameNodes of a name service;
//! * `packet`, `link`, `block`: the data transfer protocol, and the writing of one block;
//! * `unacked`: the packets of a block that may have to be sent again;
//! * `file`, `writer`: a file that is being written, and its lease;
//! * `hosts`: which hosts have the bytes of a file, and which DataNodes are on this machine;
//! * `policy`: storage policies of directories, and requests to move replicas;
//! * `suspects`: DataNodes that failed recently;
//! * `located`, `locations`, `visible`: where the blocks of a file are, the refresh of this list,
//!   and the length of a block that is being written;
//! * `replica`, `idle`, `read_slots`, `reader`: reads of one replica, idle connections, the limit
//!   of reads of one DataNode, and reads of a file;
//! * `corrupt`: reports of corrupt replicas;
//! * `coding`, `striped`: the codes of erasure-coded files, and reads of these files, through the
//!   crate `hdfs-native`;
//! * `simulated`: a model of NameNodes and DataNodes for simulations, with the Cargo feature of
//!   this name.
//!
//! Knows nothing about: the contents of the files.
//!
//! # Writing
//!
//! A log is written with *fan-out*: one connection to each DataNode of the block. A commit takes
//! one round trip to the slowest node, and an error names the node at fault. All nodes must
//! acknowledge: if one is left out without a call to the NameNode, its shorter replica has the same
//! generation stamp, and lease recovery truncates the block to the shortest one. Other files are
//! written as a *pipeline*: one connection, and each DataNode forwards to the next, so that a flush
//! does not multiply the traffic of this machine. Only the setup of a block needs fan-out if a
//! pipeline does not respond to it: a pipeline does not show which node is at fault.
//!
//! [`SyncLevel::Visible`](fs::SyncLevel::Visible) is HDFS's hflush: the bytes are in the memory of
//! all DataNodes of the block. [`SyncLevel::Disk`](fs::SyncLevel::Disk) is hsync: each DataNode has
//! called fsync.
//!
//! A log that fails is never repaired. After an error, a late acknowledgement or the loss of a
//! DataNode the writer fails within the time that [`Limits`] state, and permanently. The DataNode
//! at fault is left out of new blocks for two minutes, so the caller continues in a new file with
//! the bytes that were not acknowledged. If too few others run, new blocks use that DataNode again
//! after some seconds. The lease of the failed file is recovered in the background: the file then
//! has all acknowledged bytes, and possibly some that were not. It is recovered by the file's id,
//! because a newer file may have its name.
//!
//! Other files continue on the DataNodes that are left: see `file::recovery`.
//!
//! # Directories
//!
//! A file system in an encryption zone is refused, and so are encrypted files. A log is refused in
//! a directory with an erasure coding policy. Other files in such a directory are read, and new
//! ones are replicated. The modes of new files and directories depend on
//! `fs.permissions.umask-mode`.
//!
//! # Fencing
//!
//! [`fence`](fs::FileSystem::fence) recovers the lease. This stops the old writer at the DataNodes.
//! Its next sync fails with [`fs::Error::TakenOver`] if the NameNode is reachable, else with
//! [`fs::Error::Io`]. If the old writer had no replicas yet, the NameNode stops it: a log reports
//! the first bytes of each block with the call `fsync`, before they count as durable. Later commits
//! make no call. Renaming the directory of a log does not stop its writer, but prevents new
//! logs: files are never created with their parent directories.
//!
//! # Storage policies
//!
//! The policy of a directory is set with `setStoragePolicy`. A task in the background checks files
//! that were renamed, or whose policy was changed: if a replica is on another type of storage than
//! the policy names, it calls `satisfyStoragePolicy`, and the external satisfier of the cluster
//! moves the replicas. A NameNode without a satisfier refuses the call; the replicas then stay
//! where they are until `hdfs mover` runs. No operation fails because of a policy.
//!
//! # NameNodes
//!
//! All addresses of a name service are tried. A retry has the same call id, so a NameNode that has
//! executed the call returns the first result: a rename or a deletion whose response was lost does
//! not fail when it is repeated. A call to a slow NameNode is not repeated: after 5 s, the next
//! NameNode is tried, and then the call waits for the first one again. While no NameNode is active,
//! or the active one is in safe mode, calls wait and log a warning.
//!
//! # What bypasses `Env`
//!
//! Everything uses the clock, tasks and network of [`Env`](base::env::Env), except reads of
//! erasure-coded files: `hdfs-native` has its own sockets and timers on the tokio runtime of the
//! service threads, its own random numbers, and no interface to replace them. It also reads
//! `HADOOP_CONF_DIR` and `HADOOP_HOME`; the settings in [`HdfsOptions`] override what it finds
//! there.
//!
//! # Why `hdfs-native` reads erasure-coded files only (0.14.8)
//!
//! * An open makes three calls to the NameNode instead of one. A reader does not show where the
//!   blocks are, and a caller cannot choose the replica.
//! * Its calls to NameNodes have no time limit, so a NameNode that hangs blocks them permanently.
//!   It does not repeat a changing call whose response was lost, because it would use a new call
//!   id.
//! * It ignores the response of a DataNode to the setup of a pipeline, and cannot exclude DataNodes
//!   from new blocks. After the loss of one of three DataNodes, every new file fails until the
//!   NameNode declares the node dead, 10 minutes later.
//! * `hsync` does not return if the pipeline fails, and there is no hflush.
//!
//! # Limitations
//!
//! * Kerberos, and protected or encrypted data transfer, are rejected when the file system is
//!   opened.
//! * A block that loses a DataNode gets no replacement while it is written.
//! * A file of another process that is still being written has the bytes that were flushed when it
//!   was opened. A recovery of the lease may truncate those that the writer has not confirmed.
//! * The bytes of a recovered file are in the memory of DataNodes. Unless
//!   `dfs.datanode.synconclose` is set, they survive the loss of all these machines' power only if
//!   they were synced to disk before.

#[rustfmt::skip]
#[allow(missing_docs, clippy::all)]
mod generated;

mod block;
mod coding;
mod configured;
mod connection;
mod corrupt;
mod failure;
mod file;
mod filesystem;
#[cfg(fuzzing)]
pub mod fuzzing;
mod hosts;
mod idle;
mod link;
mod located;
mod locations;
mod namenode;
mod options;
mod packet;
mod policy;
mod read_slots;
mod reader;
mod replica;
#[cfg(any(test, feature = "simulated"))]
#[cfg_attr(not(feature = "simulated"), allow(dead_code, unreachable_pub))]
pub mod simulated;
mod striped;
mod suspects;
mod unacked;
mod visible;
mod writer;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use configured::{open, open_foreign};
pub use filesystem::{ConnectError, HdfsFileSystem};
pub use options::{HdfsOptions, IfMissing, Limits, OptionsError};
