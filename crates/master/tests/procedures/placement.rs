//! Which servers get regions, and what happens if they cannot open them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::env::Env;
use base::testing::env;
use cell::region::{RegionInfo, ServerName};
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use fs::FileSystem;
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use futures_util::future::{join, join3};
use master::assignment::RegionState;
use master::balancer::plan;
use master::procedure::Work;
use wire::service::MasterService;

use crate::cluster::Cluster;
use crate::{alter, run};

/// A cluster with a table of `count` regions on its only server.
async fn cluster_with_regions(count: usize) -> (Cluster, Vec<RegionInfo>) {
    cluster_on(&env(1), Arc::new(MemoryFs::new()), count).await
}

async fn cluster_on(env: &Env, fs: Arc<dyn FileSystem>, count: usize) -> (Cluster, Vec<RegionInfo>) {
    let cluster = Cluster::start_with_processes(env, fs).await.unwrap();
    let regions = create_table(&cluster, alter::name(), count).await;
    (cluster, regions)
}

async fn create_table(cluster: &Cluster, name: TableName, count: usize) -> Vec<RegionInfo> {
    let table = TableDescriptor::new(name.clone()).with_family(FamilyDescriptor::new("f"));
    let request = proto::CreateTableRequest {
        table_schema: (&table).into(),
        split_keys: (1..count).map(|at| format!("{at:02}").into()).collect(),
        ..proto::CreateTableRequest::default()
    };
    cluster.wait(cluster.master.create_table(request).await.unwrap().proc_id).await.unwrap();
    let regions = cluster.master.context().assignment.regions_in_meta(&name);
    assert_eq!(regions.len(), count);
    regions
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
    procedures.iter().filter(|(_, status)| matches!(status.work, Work::MoveRegion { .. })).count()
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

#[test]
fn a_server_that_the_master_cannot_call_gets_no_regions() {
    run(async {
        let (cluster, _) = cluster_with_regions(4).await;
        let is_reachable = Arc::new(AtomicBool::new(false));
        let server = cluster.add_interruptible_server(4, &is_reachable).await;
        cluster.env.clock.sleep(Duration::from_secs(60)).await;
        assert_eq!(moves(&cluster), 0, "the balancer leaves it out");
        let regions = create_table(&cluster, TableName::parse("u").unwrap(), 2).await;
        assert!(regions.iter().all(|region| is_open_on(&cluster, region, cluster.server.name())));
        is_reachable.store(true, Ordering::Relaxed);
        cluster.env.clock.sleep(Duration::from_secs(60)).await;
        let assignment = &cluster.master.context().assignment;
        assert_eq!(assignment.regions_on(server.name()).len(), 3, "half of the regions of each table");
    });
}

#[test]
fn regions_wait_only_briefly_for_the_answer_of_a_new_server() {
    run(async {
        let (cluster, _) = cluster_with_regions(4).await;
        let _server = cluster.add_silent_server(4).await;
        let begun = cluster.env.clock.monotonic();
        create_table(&cluster, TableName::parse("u").unwrap(), 2).await;
        assert!(cluster.env.clock.monotonic() - begun < Duration::from_secs(10));
    });
}

#[test]
fn regions_wait_for_a_server_that_is_starting() {
    run(async {
        let (cluster, _) = cluster_with_regions(4).await;
        let has_started = Arc::new(AtomicBool::new(false));
        let server = cluster.add_starting_server(4, &has_started).await;
        let start = async {
            cluster.env.clock.sleep(Duration::from_secs(1)).await;
            has_started.store(true, Ordering::Relaxed);
        };
        let (regions, ()) = join(create_table(&cluster, TableName::parse("u").unwrap(), 2), start).await;
        let is_open_there = |region: &RegionInfo| is_open_on(&cluster, region, server.name());
        assert!(regions.iter().any(is_open_there), "it has the fewest regions");
    });
}

#[test]
fn a_server_that_accepts_no_orders_gets_no_more_regions() {
    run(async {
        let (cluster, regions) = cluster_with_regions(2).await;
        let is_reachable = Arc::new(AtomicBool::new(true));
        let server = cluster.add_interruptible_server(4, &is_reachable).await;
        let context = cluster.master.context();
        wait_for_servers(&cluster, 2).await;
        is_reachable.store(false, Ordering::Relaxed);
        let moved = context.assignment.move_to(&regions[0], server.name());
        assert!(cluster.env.timeout(Duration::from_secs(6), moved).await.is_none());
        let opening = Some(RegionState::Opening(server.name().clone()));
        assert_eq!(context.assignment.state(&regions[0]), opening, "it may have executed the order");
        assert_eq!(context.servers.available(), [cluster.server.name().clone()]);
        is_reachable.store(true, Ordering::Relaxed);
        cluster.env.clock.sleep(Duration::from_secs(2)).await;
        assert!(is_open_on(&cluster, &regions[0], server.name()));
        assert_eq!(context.servers.available().len(), 2);
    });
}

/// Waits until the master has called `count` servers.
async fn wait_for_servers(cluster: &Cluster, count: usize) {
    while cluster.master.context().servers.available().len() < count {
        cluster.env.clock.sleep(Duration::from_millis(5)).await;
    }
}

async fn balance(cluster: &Cluster) -> proto::BalanceResponse {
    cluster.master.balance(proto::BalanceRequest::default()).await.unwrap()
}

#[test]
fn the_balancer_does_not_wait_for_a_procedure_of_a_table() {
    run(async {
        let env = env(1);
        let faulty = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
        let (cluster, _) = cluster_on(&env, Arc::new(faulty.clone()), 4).await;
        create_table(&cluster, TableName::parse("u").unwrap(), 4).await;
        cluster.put(&alter::name(), "a", "f", "1").await;
        let server = cluster.add_server(4).await;
        wait_for_servers(&cluster, 2).await;
        let delay = Fault::Delay(Duration::from_secs(10));
        faulty.add(Rule::new(delay).on(Operation::Create).at("data/default/t"));
        let request = proto::FlushTableRequest { table_name: (&alter::name()).into(), ..Default::default() };
        let flush = cluster.master.flush_table(request).await.unwrap().proc_id;
        let balanced = env.timeout(Duration::from_secs(2), balance(&cluster)).await.expect("it has ended");
        assert_eq!(balanced.moves_executed, Some(2), "the regions of the other table");
        assert_eq!(cluster.master.context().assignment.regions_on(server.name()).len(), 2);
        let flushed = env.timeout(Duration::from_secs(2), cluster.wait(flush)).await;
        assert!(flushed.is_none(), "the table was locked");
    });
}

#[test]
fn the_balancer_runs_once_at_a_time() {
    run(async {
        let (cluster, _) = cluster_with_regions(4).await;
        cluster.add_server(4).await;
        wait_for_servers(&cluster, 2).await;
        let (first, second) = tokio::join!(balance(&cluster), balance(&cluster));
        assert!(first.balancer_ran && !second.balancer_ran);
        assert_eq!((first.moves_executed, moves(&cluster)), (Some(2), 2));
    });
}

/// The client's moves are journaled, and the balancer plans, before any move begins.
#[test]
fn a_move_that_was_planned_before_a_move_of_a_client_does_not_revert_it() {
    run(async {
        let (cluster, regions) = cluster_with_regions(2).await;
        let added = [cluster.add_server(4).await, cluster.add_server(5).await];
        wait_for_servers(&cluster, 3).await;
        let context = cluster.master.context();
        let open = context.assignment.all().into_iter().filter_map(|(region, state)| match state {
            RegionState::Open(server) => Some((region, server)),
            _ => None,
        });
        let moves = plan(open.collect(), &context.servers.available(), |_| 0.0);
        let planned = moves.iter().find(|one| one.region.table == alter::name()).expect("one moves");
        let other = added.iter().map(|server| server.name()).find(|name| **name != planned.to).unwrap();
        let move_to_other = async |region: &RegionInfo| {
            let request = proto::MoveRegionRequest {
                region: wire::convert::region_specifier(region),
                dest_server_name: Some(other.into()),
            };
            cluster.master.move_region(request).await.unwrap();
        };
        let (first, second) = (move_to_other(&regions[0]), move_to_other(&regions[1]));
        let ((), (), balanced) = join3(first, second, balance(&cluster)).await;
        assert!(balanced.moves_calculated > Some(0));
        assert!(regions.iter().all(|region| is_open_on(&cluster, region, other)));
    });
}

#[test]
fn a_region_that_is_on_the_target_of_a_move_stays_open() {
    run(async {
        let (cluster, regions) = cluster_with_regions(1).await;
        let before = cluster.regions(&alter::name());
        let assignment = &cluster.master.context().assignment;
        assignment.move_to(&regions[0], cluster.server.name()).await.unwrap();
        assert!(Arc::ptr_eq(&before[0], &cluster.regions(&alter::name())[0]));
    });
}
