//! The beans of a master.

use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use base::metrics::Registry;
use master::Master;

use crate::beans::{Identity, absent, connections, process};

/// HBase's context of a master's beans, a tag of each.
const CONTEXT: &str = "master";
/// HBase's bound (`hbase.metrics.rit.stuck.warning.threshold`).
const LONG_IN_TRANSITION: Duration = Duration::from_secs(60);

base::figures! {
    /// The tag that HBase has before all others: paths of metrics that are sent have tags in them, in their order.
    pub(super) struct LiveServers in "Master,sub=Server" {
        /// Region servers that report, with semicolons between them.
        names: Tag = "liveRegionServers",
    }
}

base::figures! {
    /// What a master says of the cluster.
    pub(super) struct MasterFigures in "Master,sub=Server" {
        /// Where clients find it.
        zookeeper_quorum: Tag = "zookeeperQuorum",
        /// Its name: host, port, start code.
        server_name: Tag = "serverName",
        /// The cluster's id.
        cluster_id: Tag = "clusterId",
        /// Whether it is the one that acts.
        is_active: Tag = "isActiveMaster",
        /// When it was started.
        start_time: Gauge<u64> = "masterStartTime" in EpochMilliseconds,
        /// When it became the one that acts: at its start.
        active_time: Gauge<u64> = "masterActiveTime" in EpochMilliseconds,
        /// When it was ready for clients.
        initialized_time: Gauge<u64> = "masterFinishedInitializationTime" in EpochMilliseconds,
        /// Region servers that report.
        servers: Gauge<u64> = "numRegionServers",
        /// Regions that each of them has on average.
        average_load: Gauge<f64> = "averageLoad",
        /// Rows read and mutations, in all regions that are open.
        requests: Counted = "clusterRequests",
    }
}

base::figures! {
    /// What a master says of regions on their way.
    pub(super) struct AssignmentFigures in "Master,sub=AssignmentManager" {
        /// Regions that are being opened, closed, moved or split.
        in_transition: Gauge<u64> = "ritCount",
        /// Of these those that have been so for more than a minute.
        long_in_transition: Gauge<u64> = "ritCountOverThreshold",
        /// For how long the one has been so that has been longest.
        longest_in_transition: Gauge<u64> = "ritOldestAge" in Milliseconds,
    }
}

base::figures! {
    /// What a master says of its balancer.
    pub(super) struct BalancerFigures in "Master,sub=Balancer" {
        /// Whether regions are moved between servers.
        is_active: Tag = "isBalancerActive",
    }
}

/// The beans of `master`.
pub(crate) fn beans(
    env: &Env,
    master: &Arc<Master>,
    calls: &Arc<rpc::Server>,
    identity: &Identity,
) -> Registry {
    let registry = Registry::new(env.clock.clone(), &master.server_name().host);
    let bean = |record: &str| registry.hbase_bean(CONTEXT, record);
    let (of, of_identity) = (master.clone(), identity.clone());
    let of_servers = master.clone();
    bean("Master,sub=Server").read(move || live_servers(&of_servers));
    bean("Master,sub=Server").add(Arc::new(absent::Plans));
    bean("Master,sub=Server").read(move || master_figures(&of, &of_identity));
    let of = master.clone();
    bean("Master,sub=AssignmentManager").read(move || assignment_figures(&of));
    let instruments = &master.context().instruments;
    bean("Master,sub=AssignmentManager").add(instruments.assignment.clone());
    bean("Master,sub=Snapshots").add(instruments.snapshots.clone());
    connections::show(&bean("Master,sub=IPC"), &bean("Master,sub=Grampus"), calls);
    bean("Master,sub=Balancer").read(|| BalancerFigures { is_active: "false".into() });
    absent::of_master(&bean);
    process::show(&registry, identity, "Master");
    registry
}

fn live_servers(master: &Master) -> LiveServers {
    let servers = master.context().servers.live();
    let names: Vec<String> = servers.iter().map(|(server, _)| server.to_string()).collect();
    LiveServers { names: names.join(";").into() }
}

fn master_figures(master: &Master, identity: &Identity) -> MasterFigures {
    let servers = master.context().servers.live();
    let regions: usize = servers.iter().map(|(_, load)| load.region_loads.len()).sum();
    let loads = servers.iter().flat_map(|(_, load)| &load.region_loads);
    MasterFigures {
        is_active: "true".into(),
        cluster_id: master.cluster_id().into(),
        server_name: master.server_name().to_string().into(),
        zookeeper_quorum: identity.zookeeper_quorum.as_str().into(),
        start_time: master.server_name().start_code.into(),
        active_time: master.server_name().start_code.into(),
        initialized_time: master.initialized_ms().into(),
        servers: servers.len().into(),
        average_load: (regions as f64 / servers.len().max(1) as f64).into(),
        requests: loads
            .map(|load| load.read_requests_count() + load.write_requests_count())
            .sum::<u64>()
            .into(),
    }
}

fn assignment_figures(master: &Master) -> AssignmentFigures {
    let moving = master.context().assignment.in_transition();
    AssignmentFigures {
        in_transition: moving.len().into(),
        long_in_transition: moving.iter().filter(|since| **since > LONG_IN_TRANSITION).count().into(),
        longest_in_transition: (moving.iter().max().map_or(0, Duration::as_millis) as u64).into(),
    }
}
