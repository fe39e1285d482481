//! Decommissioned region servers: the calls, and the znodes below `draining`.

use std::sync::Arc;
use std::time::Duration;

use base::testing::env;
use cell::region::ServerName;
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use master::assignment::RegionState;
use wire::service::MasterService;
use zk::Coordinator;

use crate::cluster::Cluster;
use crate::{alter, run};

async fn listed(cluster: &Cluster) -> Vec<proto::ServerName> {
    let request = proto::ListDecommissionedRegionServersRequest {};
    cluster.master.list_decommissioned_region_servers(request).await.unwrap().server_name
}

async fn decommission(cluster: &Cluster, server_name: proto::ServerName) {
    let request = proto::DecommissionRegionServersRequest { server_name: vec![server_name], offload: false };
    cluster.master.decommission_region_servers(request).await.unwrap();
}

async fn offload(cluster: &Cluster, server: &ServerName) {
    let request = proto::DecommissionRegionServersRequest { server_name: vec![server.into()], offload: true };
    cluster.master.decommission_region_servers(request).await.unwrap();
}

#[test]
fn a_server_is_decommissioned_until_it_is_recommissioned() {
    run(async {
        let cluster = Cluster::start(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
        let server: proto::ServerName = cluster.server.name().into();
        let stranger = proto::ServerName { port: Some(7), ..server.clone() };
        decommission(&cluster, stranger).await;
        assert_eq!(listed(&cluster).await, [], "a server that does not live");
        decommission(&cluster, server.clone()).await;
        decommission(&cluster, server.clone()).await;
        assert_eq!(listed(&cluster).await, std::slice::from_ref(&server));
        let request = proto::RecommissionRegionServerRequest { server_name: server, region: Vec::new() };
        cluster.master.recommission_region_server(request).await.unwrap();
        assert_eq!(listed(&cluster).await, []);
    });
}

#[test]
fn the_mark_of_a_server_is_removed_when_the_server_dies() {
    run(async {
        let cluster = Cluster::start_with_processes(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
        let server = cluster.add_server(4).await;
        decommission(&cluster, server.name().into()).await;
        let draining = zk::names::Names::below("/hbase").draining();
        let marks = async || cluster.coordinator.children(&draining).await.unwrap().0;
        assert_eq!(marks().await, [server.name().to_string()]);
        cluster.master.expire(server.name(), "test").await;
        cluster.env.clock.sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(marks().await, [""; 0]);
    });
}

#[test]
fn marks_of_other_tools_count() {
    run(async {
        let cluster = Cluster::start(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
        let name = cluster.server.name();
        let path = zk::names::Names::below("/hbase").draining_server(&name.to_string());
        let mode = zk::coordinator::Mode::Persistent;
        zk::coordinator::publish(&*cluster.coordinator, &path, Default::default(), mode).await.unwrap();
        cluster.env.clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(listed(&cluster).await, [name.into()]);
        cluster.coordinator.delete(&path, None).await.unwrap();
        cluster.env.clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(listed(&cluster).await, []);
    });
}

#[test]
fn all_regions_of_a_decommissioned_server_move_also_those_that_were_opening() {
    run(async {
        let env = env(1);
        let faulty = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
        let cluster = Cluster::start_with_processes(&env, Arc::new(faulty.clone())).await.unwrap();
        alter::two_regions(&cluster).await;
        let (assignment, server) = (&cluster.master.context().assignment, cluster.server.name());
        let other = cluster.add_server(4).await.name().clone();
        let regions = assignment.regions_in_meta(&alter::name());
        assignment.close(&regions[..1]).await.unwrap();
        faulty.add(Rule::new(Fault::Delay(Duration::from_secs(1))).on(Operation::Open).at("data/default/t"));
        assignment.begin_open(&regions[..1]).await.unwrap();
        assert_eq!(assignment.state(&regions[0]), Some(RegionState::Opening(server.clone())));
        decommission(&cluster, server.into()).await;
        // The server is marked already, and one of its regions cannot move yet.
        offload(&cluster, server).await;
        offload(&cluster, server).await;
        cluster.env.clock.sleep(Duration::from_secs(60)).await;
        assert_eq!(assignment.regions_on(server), []);
        for region in &regions {
            assert_eq!(assignment.state(region), Some(RegionState::Open(other.clone())));
        }
    });
}
