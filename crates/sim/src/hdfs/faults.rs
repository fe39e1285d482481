//! Faults of HDFS.

use std::sync::Arc;

use super::SimHdfs;
use crate::disk::DiskFaults;
use crate::network::{Crash, HostId};
use crate::process::Process;
use crate::random::RandomSource;

/// A fault of HDFS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HdfsFault {
    /// The process of a DataNode is killed.
    KillDataNode,
    /// Two DataNodes are killed.
    KillTwoDataNodes,
    /// All DataNodes are killed.
    KillDataNodes,
    /// The machine of a DataNode loses power.
    PowerOffDataNode,
    /// A DataNode is paused.
    PauseDataNode,
    /// A DataNode is cut off from all other hosts.
    PartitionDataNode,
    /// A DataNode and a region server cannot reach each other.
    PartitionFromServer,
    /// Messages to a DataNode are held back.
    BlockDataNodeInput,
    /// The connections of a DataNode break.
    BreakDataNodeConnections,
    /// Messages to a DataNode are slow.
    SlowDataNodeNetwork,
    /// The disk of a DataNode is slow.
    SlowDataNodeDisk,
    /// The disk of a DataNode hangs.
    HangingDataNodeDisk,
    /// The disk of a DataNode fails now and then.
    FailingDataNodeDisk,
    /// The active NameNode is killed.
    KillNameNode,
    /// The machine of the active NameNode loses power.
    PowerOffNameNode,
    /// The active NameNode hangs.
    PauseNameNode,
    /// The active NameNode is cut off from all other hosts.
    PartitionNameNode,
    /// A failover without a fault.
    FailOver,
    /// All NameNodes are killed.
    KillNameNodes,
}

const FAULTS: [HdfsFault; 19] = [
    HdfsFault::KillDataNode,
    HdfsFault::KillTwoDataNodes,
    HdfsFault::KillDataNodes,
    HdfsFault::PowerOffDataNode,
    HdfsFault::PauseDataNode,
    HdfsFault::PartitionDataNode,
    HdfsFault::PartitionFromServer,
    HdfsFault::BlockDataNodeInput,
    HdfsFault::BreakDataNodeConnections,
    HdfsFault::SlowDataNodeNetwork,
    HdfsFault::SlowDataNodeDisk,
    HdfsFault::HangingDataNodeDisk,
    HdfsFault::FailingDataNodeDisk,
    HdfsFault::KillNameNode,
    HdfsFault::PowerOffNameNode,
    HdfsFault::PauseNameNode,
    HdfsFault::PartitionNameNode,
    HdfsFault::FailOver,
    HdfsFault::KillNameNodes,
];

impl SimHdfs {
    /// Injects a random fault. `server` is a process of the cluster, `others` are the hosts outside
    /// of HDFS.
    pub fn inject(&self, random: &RandomSource, server: &Process, others: &[HostId]) {
        let fault = FAULTS[random.index(FAULTS.len())];
        let datanode = &self.datanodes[random.index(self.datanodes.len())];
        let namenode = self.active().unwrap_or(&self.namenodes[0]);
        self.world().record("hdfs", &format!("{fault:?} ({}, {})", datanode.name(), namenode.name()));
        let world = self.world();
        let network = world.network();
        let apart = |process: &Arc<Process>| -> Vec<HostId> {
            let all = self.hosts().into_iter().chain(others.iter().copied());
            all.filter(|host| *host != process.host()).collect()
        };
        match fault {
            HdfsFault::KillDataNode => datanode.crash(Crash::Process),
            HdfsFault::KillTwoDataNodes => {
                datanode.crash(Crash::Process);
                self.datanodes[random.index(self.datanodes.len())].crash(Crash::Process);
            }
            HdfsFault::KillDataNodes => {
                self.datanodes.iter().for_each(|datanode| datanode.crash(Crash::Process));
            }
            HdfsFault::PowerOffDataNode => self.power_off(datanode),
            HdfsFault::PauseDataNode => datanode.pause(),
            HdfsFault::PartitionDataNode => network.partition(&[datanode.host()], &apart(datanode)),
            HdfsFault::PartitionFromServer => network.partition(&[datanode.host()], &[server.host()]),
            HdfsFault::BlockDataNodeInput => {
                apart(datanode).iter().for_each(|other| network.block(*other, datanode.host()));
            }
            HdfsFault::BreakDataNodeConnections => {
                let hosts = apart(datanode);
                hosts.iter().for_each(|other| network.break_connections(*other, datanode.host()));
            }
            HdfsFault::SlowDataNodeNetwork => {
                let factor = 1 + random.below(500) as u32;
                let hosts = apart(datanode);
                hosts.iter().for_each(|other| network.slow_down(*other, datanode.host(), factor));
            }
            HdfsFault::SlowDataNodeDisk => {
                let slowness = 1 + random.below(500) as u32;
                datanode.set_disk_faults(DiskFaults { slowness, ..DiskFaults::default() });
            }
            HdfsFault::HangingDataNodeDisk => {
                datanode.set_disk_faults(DiskFaults { hangs: true, ..DiskFaults::default() });
            }
            HdfsFault::FailingDataNodeDisk => {
                let failing_one_in = 1 + random.below(50);
                datanode.set_disk_faults(DiskFaults { failing_one_in, ..DiskFaults::default() });
            }
            HdfsFault::KillNameNode => namenode.crash(Crash::Process),
            HdfsFault::PowerOffNameNode => namenode.crash(Crash::Host),
            HdfsFault::PauseNameNode => namenode.pause(),
            HdfsFault::PartitionNameNode => network.partition(&[namenode.host()], &apart(namenode)),
            HdfsFault::FailOver => self.fail_over(),
            HdfsFault::KillNameNodes => {
                self.namenodes.iter().for_each(|namenode| namenode.crash(Crash::Process));
            }
        }
    }
}
