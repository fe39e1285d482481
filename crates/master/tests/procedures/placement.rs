//! Which servers get regions, and what happens if they cannot open them.

use std::sync::Arc;
use std::time::Duration;

use base::testing::env;
use cell::region::{RegionInfo, ServerName};
use cell::schema::{FamilyDescriptor, TableDescriptor};
use fs::faulty::{Fault, Faulty, Plan, Rule};
use fs::memory::MemoryFs;
use master::assignment::RegionState;
use master::procedure::Work;
use wire::service::MasterService;

use crate::cluster::Cluster;
use crate::{alter, run};

/// A cluster with a table of `count` regions on its only server.
async fn cluster_with_regions(count: usize) -> (Cluster, Vec<RegionInfo>) {
    let cluster = Cluster::start_with_processes(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
    let table = TableDescriptor::new(alter::name()).with_family(FamilyDescriptor::new("f"));
    let request = proto::CreateTableRequest {
        table_schema: (&table).into(),
        split_keys: (1..count).map(|at| format!("{at:02}").into()).collect(),
        ..proto::CreateTableRequest::default()
    };
    cluster.wait(cluster.master.create_table(request).await.unwrap().proc_id).await.unwrap();
    let regions = cluster.master.context().assignment.regions_in_meta(&alter::name());
    assert_eq!(regions.len(), count);
    (cluster, regions)
}

/// Starts a server that cannot read the files of the table.
async fn add_broken_server(cluster: &Cluster, port: u16) -> ServerName {
    let faulty = Faulty::new(cluster.fs.clone(), Plan::new(cluster.env.clock.clone()));
    faulty.add(Rule::new(Fault::Fail).at("data/default/t"));
    cluster.add_server_with_access(port, Arc::new(faulty)).await.name().clone()
}

fn is_open_on(cluster: &Cluster, region: &RegionInfo, server: &ServerName) -> bool {
    cluster.master.context().assignment.state(region) == Some(RegionState::Open(server.clone()))
}

/// The number of moves that have begun.
fn moves(cluster: &Cluster) -> usize {
    let procedures = cluster.master.procedures().list();
    procedures.iter().filter(|(_, status)| matches!(status.work, Work::MoveRegion(..))).count()
}

#[test]
fn a_region_is_opened_on_the_only_server_that_can_open_it() {
    run(async {
        let (cluster, regions) = cluster_with_regions(4).await;
        let broken = add_broken_server(&cluster, 4).await;
        add_broken_server(&cluster, 5).await;
        let assignment = &cluster.master.context().assignment;
        assignment.move_to(&regions[0], &broken).await.unwrap();
        assert_eq!(assignment.failure(&regions[0]).unwrap().attempts, 2, "both were tried");
        // Both have fewer regions than the first server.
        let until = cluster.env.clock.monotonic() + Duration::from_secs(5);
        while !is_open_on(&cluster, &regions[0], cluster.server.name()) {
            assert!(cluster.env.clock.monotonic() < until, "{:?}", assignment.state(&regions[0]));
            cluster.env.clock.sleep(Duration::from_millis(5)).await;
        }
    });
}

#[test]
fn the_balancer_stops_when_a_server_cannot_open_regions() {
    run(async {
        let (cluster, regions) = cluster_with_regions(20).await;
        add_broken_server(&cluster, 4).await;
        cluster.env.clock.sleep(Duration::from_secs(60)).await;
        assert_eq!(moves(&cluster), 8, "the first moves of one run");
        assert!(regions.iter().all(|region| is_open_on(&cluster, region, cluster.server.name())));
    });
}
