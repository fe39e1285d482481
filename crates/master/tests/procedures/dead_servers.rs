//! When a region server counts as dead, and that its regions are not opened elsewhere before.

use std::sync::Arc;
use std::time::Duration;

use base::testing::env;
use cell::region::ServerName;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use fs::memory::MemoryFs;
use master::assignment::RegionState;
use proto::exception::class;
use wire::service::{MasterService, RegionServerStatusService};

use crate::cluster::Cluster;
use crate::run;

#[test]
fn a_server_is_in_recovery_from_the_moment_at_which_it_counts_as_dead() {
    run(async {
        let cluster = Cluster::start(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
        let master = cluster.master_of_other_processes();
        let (servers, recoveries) = (&master.context().servers, &master.context().recoveries);
        let server = ServerName { host: "h".into(), port: 3, start_code: 1 };
        assert!(servers.report(server.clone(), proto::ServerLoad::default()));
        // This master does not know where hbase:meta is, so it cannot journal the recovery yet.
        let expired = cluster.env.timeout(Duration::from_secs(60), master.expire(&server, "test")).await;
        assert!(expired.is_none(), "the recovery is not journaled");
        assert!(servers.is_dead(&server));
        assert!(
            recoveries.is_recovering(&server),
            "its regions would count as closed, without edits in logs"
        );
    });
}

#[test]
fn a_process_is_dead_as_soon_as_a_newer_one_has_its_address() {
    run(async {
        let cluster = Cluster::start(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
        let master = cluster.master_of_other_processes();
        let (servers, recoveries) = (&master.context().servers, &master.context().recoveries);
        let server = |start_code| ServerName { host: "h".into(), port: 3, start_code };
        assert!(servers.report(server(2), proto::ServerLoad::default()));
        // The session of the earlier process still lasts, so it was live for the previous master.
        let request =
            proto::RegionServerReportRequest { server: (&server(1)).into(), load: Default::default() };
        let reported =
            cluster.env.timeout(Duration::from_secs(60), master.region_server_report(request.clone())).await;
        assert!(reported.is_none(), "this master cannot journal a recovery yet");
        assert!(servers.is_dead(&server(1)) && recoveries.is_recovering(&server(1)));
        assert!(servers.is_live(&server(2)));
        let refused = master.region_server_report(request).await.unwrap_err();
        assert!(refused.is(class::YOU_ARE_DEAD), "{refused}");
    });
}

#[test]
fn a_region_is_not_opened_elsewhere_because_its_server_refuses_the_order() {
    run(async {
        let cluster = Cluster::start(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
        let name = TableName::parse("t").unwrap();
        let table = TableDescriptor::new(name.clone()).with_family(FamilyDescriptor::new("f"));
        let request = proto::CreateTableRequest { table_schema: (&table).into(), ..Default::default() };
        cluster.wait(cluster.master.create_table(request).await.unwrap().proc_id).await.unwrap();
        let region = cluster.regions(&name)[0].info().clone();
        let (assignment, servers) = (&cluster.master.context().assignment, &cluster.master.context().servers);
        // The process at the address of this server is a newer one, which refuses orders for it.
        let replaced = ServerName { start_code: 1, ..cluster.server.name().clone() };
        assert!(servers.report(replaced.clone(), proto::ServerLoad::default()));
        let moved =
            cluster.env.timeout(Duration::from_secs(60), assignment.move_to(&region, &replaced)).await;
        assert!(moved.is_none(), "the order is repeated");
        assert_eq!(
            assignment.state(&region),
            Some(RegionState::Opening(replaced)),
            "its logs may have edits"
        );
    });
}
