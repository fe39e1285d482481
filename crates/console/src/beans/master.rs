//! The beans of a master.

use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use base::metrics::Registry;
use cell::region::ServerName;
use master::Master;

use crate::beans::{Identity, absent, connections, process};

/// HBase's context of a master's beans, a tag of each.
const CONTEXT: &str = "master";
/// HBase's threshold (`hbase.metrics.rit.stuck.warning.threshold`).
const LONG_IN_TRANSITION: Duration = Duration::from_secs(60);

base::current_values! {
    /// The tags that precede all others in HBase. Paths of sent metrics contain the tags in order,
    /// so the order matters.
    pub(super) struct RegionServerNames in "Master,sub=Server" {
        /// Live region servers, separated by semicolons.
        live: Tag = "liveRegionServers",
        /// Dead region servers, separated by semicolons.
        dead: Tag = "deadRegionServers",
        /// Live region servers that are decommissioned, separated by semicolons.
        draining: Tag = "drainingRegionServers",
    }
}

base::current_values! {
    /// Which master this is.
    pub(super) struct MasterIdentity in "Master,sub=Server" {
        /// ZooKeeper address for clients.
        zookeeper_quorum: Tag = "zookeeperQuorum",
        /// Server name of the master: host, port, start code.
        server_name: Tag = "serverName",
        /// Cluster id.
        cluster_id: Tag = "clusterId",
        /// Whether this master is the active one.
        is_active: Tag = "isActiveMaster",
        /// Start time of the master.
        start_time: Gauge<u64> = "masterStartTime" in EpochMilliseconds,
    }
}

base::current_values! {
    /// Metrics of the cluster.
    pub(super) struct MasterMetrics in "Master,sub=Server" {
        /// Time at which it became the active master.
        active_time: Gauge<u64> = "masterActiveTime" in EpochMilliseconds,
        /// Time at which it became ready for clients.
        initialized_time: Gauge<u64> = "masterFinishedInitializationTime" in EpochMilliseconds,
        /// Live region servers.
        servers: Gauge<u64> = "numRegionServers",
        /// Number of dead region servers.
        dead_servers: Gauge<u64> = "numDeadRegionServers",
        /// Number of live region servers that are decommissioned.
        draining_servers: Gauge<u64> = "numDrainingRegionServers",
        /// Average number of regions per region server.
        average_load: Gauge<f64> = "averageLoad",
        /// Rows read plus mutations, over all region servers, also those that ended since this
        /// master became active.
        requests: Counted = "clusterRequests",
    }
}

base::current_values! {
    /// Metrics of regions in transition.
    pub(super) struct AssignmentMetrics in "Master,sub=AssignmentManager" {
        /// Regions being opened, closed, moved or split.
        in_transition: Gauge<u64> = "ritCount",
        /// Regions in transition for more than a minute.
        long_in_transition: Gauge<u64> = "ritCountOverThreshold",
        /// Time for which the oldest region in transition has been so.
        longest_in_transition: Gauge<u64> = "ritOldestAge" in Milliseconds,
    }
}

base::current_values! {
    /// Metrics of the balancer.
    pub(super) struct BalancerMetrics in "Master,sub=Balancer" {
        /// Whether regions are moved between servers.
        is_active: Tag = "isBalancerActive",
    }
}

/// The beans of a backup master.
pub fn backup_beans(env: &Env, server: &ServerName, identity: &Identity) -> Registry {
    let registry = Registry::new(env.clock.clone(), &server.host);
    let (server, of) = (server.clone(), identity.clone());
    let bean = registry.hbase_bean(CONTEXT, "Master,sub=Server");
    bean.read(move || master_identity(&server, &of, false));
    process::show(&registry, identity, "Master");
    registry
}

/// The beans of `master`.
pub fn beans(env: &Env, master: &Arc<Master>, calls: &Arc<rpc::Server>, identity: &Identity) -> Registry {
    let registry = Registry::new(env.clock.clone(), &master.server_name().host);
    let bean = |record: &str| registry.hbase_bean(CONTEXT, record);
    let (of, of_identity) = (master.clone(), identity.clone());
    let of_servers = master.clone();
    bean("Master,sub=Server").read(move || server_names(&of_servers));
    bean("Master,sub=Server").add(Arc::new(absent::NoNormalizer));
    bean("Master,sub=Server").read(move || master_identity(of.server_name(), &of_identity, true));
    let of = master.clone();
    bean("Master,sub=Server").read(move || master_metrics(&of));
    let of = master.clone();
    bean("Master,sub=AssignmentManager").read(move || assignment_metrics(&of));
    let instruments = &master.context().instruments;
    bean("Master,sub=AssignmentManager").add(instruments.assignment.clone());
    bean("Master,sub=Snapshots").add(instruments.snapshots.clone());
    bean("Master,sub=Server").add(instruments.recoveries.clone());
    connections::show(&bean("Master,sub=IPC"), &bean("Master,sub=Grampus"), calls);
    let of = master.clone();
    bean("Master,sub=Balancer").read(move || {
        let is_on = of.is_of_cluster() && of.context().switches.is_balancer_on();
        BalancerMetrics { is_active: is_on.to_string().into() }
    });
    absent::add_to_master(&bean);
    process::show(&registry, identity, "Master");
    registry
}

fn server_names(master: &Master) -> RegionServerNames {
    let servers = &master.context().servers;
    let joined = |names: Vec<ServerName>| {
        let names: Vec<String> = names.iter().map(ServerName::to_string).collect();
        names.join(";").into()
    };
    RegionServerNames {
        live: joined(servers.live_names()),
        dead: joined(servers.dead()),
        draining: joined(servers.decommissioned()),
    }
}

fn master_identity(server: &ServerName, identity: &Identity, is_active: bool) -> MasterIdentity {
    MasterIdentity {
        zookeeper_quorum: identity.zookeeper_quorum.as_str().into(),
        server_name: server.to_string().into(),
        cluster_id: identity.cluster_id.as_str().into(),
        is_active: is_active.to_string().into(),
        start_time: server.start_code.into(),
    }
}

fn master_metrics(master: &Master) -> MasterMetrics {
    let servers = master.context().servers.live();
    let regions: usize = servers.iter().map(|(_, load)| load.region_loads.len()).sum();
    MasterMetrics {
        active_time: master.active_since_ms().into(),
        initialized_time: master.initialized_ms().into(),
        servers: servers.len().into(),
        dead_servers: master.context().servers.dead().len().into(),
        draining_servers: master.context().servers.decommissioned().len().into(),
        average_load: (regions as f64 / servers.len().max(1) as f64).into(),
        requests: master.context().servers.total_requests().into(),
    }
}

fn assignment_metrics(master: &Master) -> AssignmentMetrics {
    let times = master.context().assignment.transition_times();
    AssignmentMetrics {
        in_transition: times.len().into(),
        long_in_transition: times.iter().filter(|since| **since > LONG_IN_TRANSITION).count().into(),
        longest_in_transition: (times.iter().max().map_or(0, Duration::as_millis) as u64).into(),
    }
}
