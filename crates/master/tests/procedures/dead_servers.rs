//! The moment at which a region server counts as dead.

use std::sync::Arc;
use std::time::Duration;

use base::testing::env;
use cell::region::ServerName;
use fs::memory::MemoryFs;

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
