//! When a region server counts as dead, and that its regions are not opened elsewhere before.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use base::testing::env;
use cell::region::{RegionInfo, ServerName};
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use fs::faulty::{Fault, Faulty, Plan, Rule};
use fs::memory::MemoryFs;
use master::Master;
use master::assignment::RegionState;
use proto::exception::class;
use wire::service::{MasterService, RegionServerStatusService};

use crate::cluster::Cluster;
use crate::run;

/// Longer than any procedure takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process at the address of the test's other server.
fn server(start_code: u64) -> ServerName {
    ServerName { host: "h".into(), port: 3, start_code }
}

/// A master that counts a server as live. It does not know where `hbase:meta` is, so it cannot
/// journal a recovery yet.
async fn cluster_with_live_server(start_code: u64) -> (Cluster, Arc<Master>) {
    let cluster = Cluster::start(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
    let master = cluster.master_of_other_processes();
    assert!(master.context().servers.report(server(start_code), proto::ServerLoad::default()));
    (cluster, master)
}

/// Otherwise the regions of a dead server would count as closed, without the edits in its logs.
fn is_dead_and_in_recovery(master: &Master, server: &ServerName) -> bool {
    master.context().servers.is_dead(server) && master.context().recoveries.is_recovering(server)
}

/// Creates a table, and returns its region.
async fn create_table(cluster: &Cluster) -> RegionInfo {
    let name = TableName::parse("t").unwrap();
    let table = TableDescriptor::new(name.clone()).with_family(FamilyDescriptor::new("f"));
    let request = proto::CreateTableRequest { table_schema: (&table).into(), ..Default::default() };
    cluster.wait(cluster.master.create_table(request).await.unwrap().proc_id).await.unwrap();
    cluster.regions(&name)[0].info().clone()
}

#[test]
fn a_server_is_in_recovery_from_the_moment_at_which_it_counts_as_dead() {
    run(async {
        let (cluster, master) = cluster_with_live_server(1).await;
        let expired = cluster.env.timeout(PATIENCE, master.expire(&server(1), "test")).await;
        assert!(expired.is_none(), "the recovery is not journaled");
        assert!(is_dead_and_in_recovery(&master, &server(1)));
    });
}

#[test]
fn a_process_is_dead_as_soon_as_a_newer_one_has_its_address() {
    run(async {
        let (cluster, master) = cluster_with_live_server(2).await;
        // The session of the earlier process still lasts, so it was live for the previous master.
        let request =
            proto::RegionServerReportRequest { server: (&server(1)).into(), load: Default::default() };
        let reported = cluster.env.timeout(PATIENCE, master.region_server_report(request.clone())).await;
        assert!(reported.is_none(), "the recovery is not journaled");
        assert!(is_dead_and_in_recovery(&master, &server(1)));
        assert!(master.context().servers.is_live(&server(2)));
        let refused = master.region_server_report(request).await.unwrap_err();
        assert!(refused.is(class::YOU_ARE_DEAD), "{refused}");
    });
}

#[test]
fn a_region_is_not_opened_elsewhere_because_its_server_refuses_the_order() {
    run(async {
        let cluster = Cluster::start(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
        let region = create_table(&cluster).await;
        let (assignment, servers) = (&cluster.master.context().assignment, &cluster.master.context().servers);
        // The process at the address of this server is a newer one, which refuses orders for it.
        let replaced = ServerName { start_code: 1, ..cluster.server.name().clone() };
        assert!(servers.report(replaced.clone(), proto::ServerLoad::default()));
        let moved = cluster.env.timeout(PATIENCE, assignment.move_to(&region, &replaced)).await;
        assert!(moved.is_none(), "the order is repeated");
        assert_eq!(
            assignment.state(&region),
            Some(RegionState::Opening(replaced)),
            "its logs may have edits"
        );
    });
}

/// A cluster whose only live server could open neither `hbase:meta` nor the returned region. The
/// other server, which had both, is dead.
async fn cluster_without_meta() -> (Cluster, Faulty, ServerName, RegionInfo) {
    let env = env(1);
    let faulty = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
    let cluster = Cluster::start_with_processes(&env, Arc::new(faulty.clone())).await.unwrap();
    let region = create_table(&cluster).await;
    let live = cluster.add_server(4).await.name().clone();
    let assignment = &cluster.master.context().assignment;
    assignment.close(std::slice::from_ref(&region)).await.unwrap();
    faulty.add(Rule::new(Fault::Fail).at("data/default/t"));
    assignment.open_or_retry_later(std::slice::from_ref(&region)).await.unwrap();
    assert_eq!(assignment.state(&region), Some(RegionState::FailedOpen));
    faulty.add(Rule::new(Fault::Fail).at("data/hbase/meta"));
    cluster.master.expire(cluster.server.name(), "test").await;
    let until = env.clock.monotonic() + PATIENCE;
    while assignment.failure(&RegionInfo::meta()).is_none() {
        assert!(env.clock.monotonic() < until, "hbase:meta is opened on the live server");
        env.clock.sleep(Duration::from_millis(5)).await;
    }
    (cluster, faulty, live, region)
}

#[test]
fn meta_is_retried_while_the_retry_of_another_region_waits_for_it() {
    run(async {
        let (cluster, faulty, live, region) = cluster_without_meta().await;
        let assignment = &cluster.master.context().assignment;
        // Meanwhile both regions are retried.
        cluster.env.clock.sleep(Duration::from_secs(20)).await;
        assert!(assignment.failure(&RegionInfo::meta()).is_some_and(|failure| failure.attempts > 1));
        faulty.heal();
        cluster.env.clock.sleep(PATIENCE * 2).await;
        assert_eq!(assignment.state(&RegionInfo::meta()), Some(RegionState::Open(live.clone())));
        assert_eq!(assignment.state(&region), Some(RegionState::Open(live)));
    });
}

#[test]
fn meta_is_opened_before_the_other_regions_of_a_request() {
    run(async {
        let (cluster, faulty, live, region) = cluster_without_meta().await;
        let assignment = &cluster.master.context().assignment;
        faulty.heal();
        let both = [region, RegionInfo::meta()];
        let opened = cluster.env.timeout(PATIENCE, assignment.open(&both)).await;
        assert!(matches!(opened, Some(Ok(()))), "{opened:?}");
        assert!(both.iter().all(|one| assignment.state(one) == Some(RegionState::Open(live.clone()))));
    });
}

#[test]
fn a_region_is_closed_after_its_edits_in_the_logs_of_a_dead_server_are_in_files() {
    run(async {
        let env = env(1);
        let faulty = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
        let cluster = Cluster::start_with_processes(&env, Arc::new(faulty.clone())).await.unwrap();
        let region = create_table(&cluster).await;
        let context = cluster.master.context();
        cluster.put(&region.table, "row", "f", "value").await;
        cluster.add_server(4).await;
        faulty.add(Rule::new(Fault::Fail).at("data/default/t"));
        cluster.master.expire(cluster.server.name(), "test").await;
        let failed = || context.assignment.state(&region) == Some(RegionState::FailedOpen);
        while !failed() {
            env.clock.sleep(Duration::from_millis(5)).await;
        }
        let regions = [region.clone()];
        let mut close = pin!(context.assignment.close(&regions));
        assert!(env.timeout(PATIENCE, &mut close).await.is_none(), "its edits are only in the logs");
        assert!(!context.recoveries.list().is_empty());
        faulty.heal();
        let closed = env.timeout(PATIENCE * 2, close).await;
        assert!(matches!(closed, Some(Ok(()))), "{closed:?}");
        assert_eq!(context.assignment.state(&region), Some(RegionState::Closed));
        env.clock.sleep(PATIENCE).await;
        assert!(context.recoveries.list().is_empty(), "no region needs the logs");
    });
}
