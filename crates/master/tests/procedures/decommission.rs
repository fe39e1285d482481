//! Decommissioned region servers: the calls, and the znodes below `draining`.

use std::sync::Arc;

use base::testing::env;
use fs::memory::MemoryFs;
use wire::service::MasterService;
use zk::Coordinator;

use crate::cluster::Cluster;
use crate::run;

async fn listed(cluster: &Cluster) -> Vec<proto::ServerName> {
    let request = proto::ListDecommissionedRegionServersRequest {};
    cluster.master.list_decommissioned_region_servers(request).await.unwrap().server_name
}

async fn decommission(cluster: &Cluster, server_name: proto::ServerName) {
    let request = proto::DecommissionRegionServersRequest { server_name: vec![server_name], offload: false };
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
fn marks_of_other_tools_count() {
    run(async {
        let cluster = Cluster::start(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
        let name = cluster.server.name();
        let path = zk::names::Names::below("/hbase").draining_server(&name.to_string());
        let mode = zk::coordinator::Mode::Persistent;
        zk::coordinator::publish(&*cluster.coordinator, &path, Default::default(), mode).await.unwrap();
        cluster.env.clock.sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(listed(&cluster).await, [name.into()]);
        cluster.coordinator.delete(&path, None).await.unwrap();
        cluster.env.clock.sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(listed(&cluster).await, []);
    });
}
