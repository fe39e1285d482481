//! When a region server counts as dead, and that its regions are not opened elsewhere before.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::testing::env;
use bytes::Bytes;
use cell::mutation::Mutation;
use cell::query::Scan;
use cell::region::{RegionInfo, ServerName};
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use fs::{AccessPattern, SyncLevel};
use master::Master;
use master::assignment::RegionState;
use master::recoveries::Recoveries;
use proto::exception::class;
use regionserver::RegionServer;
use wire::service::{MasterService, RegionServerStatusService};

use crate::cluster::Cluster;
use crate::{alter, run, snapshots, splits};

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

/// Writes a row to a region on `server`.
async fn put_on(server: &RegionServer, region: &RegionInfo, row: &'static str) {
    let cell = KeyValue::new(row.as_bytes(), b"f", b"q", LATEST_TIMESTAMP, CellType::Put, b"value");
    let region = server.regions().get(&region.encoded_name()).expect("it is open");
    region.batch_atomic(vec![Mutation::put(row, vec![cell])]).await.unwrap();
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

/// As if two tasks found at the same time that the server is dead, and the recovery that the first
/// one begins ended before the second one continues.
#[test]
fn only_one_of_two_tasks_that_find_a_server_dead_announces_its_recovery() {
    run(async {
        let (cluster, master) = cluster_with_live_server(1).await;
        let servers = &master.context().servers;
        let recoveries = Recoveries::new(Arc::new(cluster.journal()));
        let first = recoveries.announce_if(&server(1), || servers.remove(&server(1)));
        assert!(first && recoveries.is_recovering(&server(1)));
        let after_its_end = Recoveries::new(Arc::new(cluster.journal()));
        assert!(!after_its_end.announce_if(&server(1), || servers.remove(&server(1))));
        assert!(after_its_end.list().is_empty(), "nothing would end this recovery");
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
fn meta_opens_although_the_logs_of_user_tables_can_be_neither_fenced_nor_read() {
    run(async {
        let env = env(1);
        let faulty = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
        let cluster = Cluster::start_with_processes(&env, Arc::new(faulty.clone())).await.unwrap();
        let region = create_table(&cluster).await;
        cluster.put(&region.table, "row", "f", "value").await;
        let live = cluster.add_server(4).await;
        // The first rule that matches applies, so all calls for logs of `hbase:meta` succeed.
        faulty.add(Rule::new(Fault::Delay(Duration::ZERO)).at(".meta"));
        faulty.add(Rule::new(Fault::Fail).at("-splitting/"));
        cluster.master.expire(cluster.server.name(), "test").await;
        env.clock.sleep(PATIENCE).await;
        let assignment = &cluster.master.context().assignment;
        let open = Some(RegionState::Open(live.name().clone()));
        assert_eq!(assignment.state(&RegionInfo::meta()), open);
        let crashed = Some(RegionState::Crashed(cluster.server.name().clone()));
        assert_eq!(assignment.state(&region), crashed, "it waits until all logs are fenced");
        faulty.heal();
        env.clock.sleep(PATIENCE).await;
        assert_eq!(assignment.state(&region), open);
        let opened = live.regions().get(&region.encoded_name()).expect("it is open");
        assert_eq!(opened.scan_all(&Scan::default()).await.unwrap().cells.len(), 1);
    });
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

#[test]
fn a_master_starts_although_the_last_server_of_meta_died_before_it_could_open_meta() {
    run(async {
        let (cluster, faulty, live, region) = cluster_without_meta().await;
        cluster.master.expire(&live, "test").await;
        faulty.heal();
        let (master, server) = cluster.successor(5).await;
        let initialized = cluster.env.timeout(PATIENCE, master.initialize()).await;
        assert!(matches!(initialized, Some(Ok(()))), "{initialized:?}");
        cluster.env.clock.sleep(PATIENCE).await;
        for region in [RegionInfo::meta(), region] {
            let state = master.context().assignment.state(&region);
            assert_eq!(state, Some(RegionState::Open(server.name().clone())), "{}", region.table);
        }
    });
}

#[test]
fn a_master_starts_although_a_server_that_was_opening_regions_dies_meanwhile() {
    run(async {
        let env = env(1);
        let faulty = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
        let cluster = Cluster::start_with_processes(&env, Arc::new(faulty.clone())).await.unwrap();
        alter::two_regions(&cluster).await;
        let context = cluster.master.context();
        let regions = context.assignment.regions_in_meta(&alter::name());
        context.assignment.close(&regions).await.unwrap();
        let (master, live) = cluster.successor(5).await;
        let dying = cluster.add_server_of(&master, 6).await;
        context.meta.set_opening(&regions, dying.name()).await.unwrap();
        // The server dies while the order for the first region is written to `hbase:meta`.
        let delay = Fault::Delay(Duration::from_secs(1));
        faulty.add(Rule::new(delay).on(Operation::Sync).at("WALs/h,5"));
        let assignment = &master.context().assignment;
        let opening = Some(RegionState::Opening(dying.name().clone()));
        let death = async {
            while assignment.state(&regions[0]) != opening {
                env.clock.sleep(Duration::from_millis(5)).await;
            }
            master.expire(dying.name(), "test").await;
        };
        let start = async { tokio::join!(master.initialize(), death).0 };
        let started = env.timeout(PATIENCE, start).await;
        assert!(matches!(started, Some(Ok(()))), "{started:?}");
        env.clock.sleep(PATIENCE).await;
        for region in &regions {
            assert_eq!(assignment.state(region), Some(RegionState::Open(live.name().clone())));
        }
    });
}

/// The region is opened when it is closed.
#[test]
fn a_master_starts_although_a_region_cannot_be_closed() {
    run(async {
        let env = env(1);
        let faulty = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
        let cluster = Cluster::start_with_processes(&env, Arc::new(faulty.clone())).await.unwrap();
        let regions = [create_table(&cluster).await];
        let active = Arc::new(Mutex::new(cluster.master.clone()));
        let server = cluster.add_server_following(&active, 4).await;
        let previous = &cluster.master.context().assignment;
        previous.move_to(&regions[0], server.name()).await.unwrap();
        put_on(&server, &regions[0], "unflushed").await;
        faulty.add(Rule::new(Fault::Fail).on(Operation::Create).at("data/default/t"));
        assert!(env.timeout(Duration::from_secs(5), previous.close(&regions)).await.is_none());
        let master = cluster.successor_with(&server);
        *active.lock().unwrap() = master.clone();
        let initialized = env.timeout(PATIENCE, master.initialize()).await;
        assert!(matches!(initialized, Some(Ok(()))), "{initialized:?}");
        let state = || master.context().assignment.state(&regions[0]);
        assert_eq!(state(), Some(RegionState::Closing(server.name().clone())));
        faulty.heal();
        env.clock.sleep(PATIENCE).await;
        assert_eq!(state(), Some(RegionState::Open(server.name().clone())));
    });
}

#[test]
fn a_dead_server_is_recovered_although_the_cluster_could_not_be_shut_down() {
    run(async {
        let cluster = Cluster::start_with_processes(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
        let region = create_table(&cluster).await;
        let live = cluster.add_server(4).await.name().clone();
        cluster.coordinator.suspend();
        assert!(cluster.master.shutdown(proto::ShutdownRequest {}).await.is_err());
        cluster.coordinator.resume();
        cluster.master.expire(cluster.server.name(), "test").await;
        cluster.env.clock.sleep(PATIENCE).await;
        assert_eq!(cluster.master.context().assignment.state(&region), Some(RegionState::Open(live)));
    });
}

#[test]
fn a_server_that_dies_while_it_reports_meta_is_not_the_location_of_meta() {
    run(async {
        let env = env(1);
        let faulty = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
        let cluster = Cluster::start_with_processes(&env, Arc::new(faulty.clone())).await.unwrap();
        let dying = cluster.add_server(4).await;
        let (context, meta) = (cluster.master.context(), RegionInfo::meta());
        // The report is stored before it is published.
        let slow = Rule::new(Fault::Delay(Duration::from_secs(1)));
        faulty.add(slow.on(Operation::Sync).at("MasterData/WALs"));
        let death = async {
            while dying.regions().get(&meta.encoded_name()).is_none() {
                env.clock.sleep(Duration::from_millis(5)).await;
            }
            env.clock.sleep(Duration::from_millis(100)).await;
            let location = context.meta.location().get();
            assert_eq!(location.as_ref(), Some(cluster.server.name()), "the report is not published yet");
            cluster.master.expire(dying.name(), "test").await;
        };
        let follow = async {
            let here = Some(RegionState::Open(cluster.server.name().clone()));
            while context.servers.is_live(dying.name()) || context.assignment.state(&meta) != here {
                let location = context.meta.location().get();
                assert!(location.is_none_or(|server| context.servers.is_live(&server)));
                env.clock.sleep(Duration::from_millis(5)).await;
            }
        };
        let moving = context.assignment.move_to(&meta, dying.name());
        let moved = env.timeout(PATIENCE, async { tokio::join!(moving, death, follow).0 }).await;
        assert!(matches!(moved, Some(Ok(()))), "{moved:?}");
    });
}

/// It does not keep the thread busy: then this test would not end.
#[test]
fn a_region_is_not_closed_after_its_server_has_ended_in_a_shutdown() {
    run(async {
        let cluster = Cluster::start_with_processes(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
        let regions = [create_table(&cluster).await];
        cluster.master.shutdown(proto::ShutdownRequest {}).await.unwrap();
        cluster.master.expire(cluster.server.name(), "test").await;
        let close = cluster.master.context().assignment.close(&regions);
        assert!(cluster.env.timeout(PATIENCE, close).await.is_none());
    });
}

/// Changes a byte of `value` in the logs of a server. No process may write to them any more.
async fn damage_log(cluster: &Cluster, value: &str) {
    let (fs, dir) = (&*cluster.fs, cluster.root.wal_dir(cluster.server.name()));
    for log in fs.list(&dir).await.unwrap() {
        let path = dir.join(&log.name);
        let reader = fs.open(&path).await.unwrap();
        let mut bytes = reader.read_at(0, reader.len() as usize).await.unwrap().to_vec();
        let found = bytes.windows(value.len()).position(|window| window == value.as_bytes());
        let Some(at) = found else { continue };
        bytes[at] ^= 1;
        fs.delete(&path).await.unwrap();
        let mut writer = fs.create(&path, AccessPattern::Log).await.unwrap();
        writer.append(bytes.into()).await.unwrap();
        writer.sync(SyncLevel::Disk).await.unwrap();
        return writer.close().await.unwrap();
    }
    panic!("{value} is in no log");
}

#[test]
fn a_region_with_edits_only_in_a_damaged_log_is_not_split() {
    run(async {
        let env = env(1);
        let faulty = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
        let cluster = Cluster::start_with_processes(&env, Arc::new(faulty.clone())).await.unwrap();
        let region = create_table(&cluster).await;
        for (row, value) in [("a", "damaged"), ("b", "readable"), ("c", "readable")] {
            cluster.put(&region.table, row, "f", value).await;
        }
        cluster.add_server(4).await;
        // The region cannot be flushed, so the split waits until the region is closed.
        faulty.add(Rule::new(Fault::Fail).on(Operation::Create).at("data/default/t"));
        let split = splits::split(&cluster, &region, "b").await.unwrap();
        let assignment = &cluster.master.context().assignment;
        while !matches!(assignment.state(&region), Some(RegionState::Closing(_))) {
            env.clock.sleep(Duration::from_millis(5)).await;
        }
        damage_log(&cluster, "damaged").await;
        cluster.master.expire(cluster.server.name(), "test").await;
        faulty.heal();
        let refused = cluster.wait(split).await.unwrap_err();
        assert!(refused.message.contains("only in logs"), "{refused}");
        let regions = assignment.regions_in_meta(&region.table);
        assert_eq!(regions, std::slice::from_ref(&region), "it is not split");
        env.clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(assignment.state(&region), Some(RegionState::FailedOpen));
    });
}

/// A disabled table and its region, with a snapshot `s` and a later edit that is only in the log of
/// a dead server. The region cannot be opened on the live server, because a file is damaged.
async fn disabled_table_with_edits_in_logs() -> (Cluster, RegionInfo, Arc<RegionServer>) {
    let cluster = Cluster::start_with_processes(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
    let region = create_table(&cluster).await;
    cluster.put(&region.table, "a", "f", "kept").await;
    cluster.wait(snapshots::take(&cluster, "s", &region.table).await.unwrap()).await.unwrap();
    cluster.put(&region.table, "b", "f", "reverted").await;
    let server = cluster.add_server(4).await;
    let damaged = cluster.root.family_dir(&region, b"f").join("0123456789abcdef0123456789abcdef");
    let mut writer = cluster.fs.create(&damaged, AccessPattern::Data).await.unwrap();
    writer.append(Bytes::from_static(b"no store file")).await.unwrap();
    writer.close().await.unwrap();
    cluster.master.expire(cluster.server.name(), "test").await;
    while cluster.master.context().assignment.state(&region) != Some(RegionState::FailedOpen) {
        cluster.env.clock.sleep(Duration::from_millis(5)).await;
    }
    alter::disable(&cluster).await;
    (cluster, region, server)
}

#[test]
fn a_snapshot_of_a_disabled_table_does_not_lack_edits_that_are_only_in_logs() {
    run(async {
        let (cluster, region, _) = disabled_table_with_edits_in_logs().await;
        let id = snapshots::take(&cluster, "later", &region.table).await.unwrap();
        let refused = cluster.wait(id).await.unwrap_err();
        assert!(refused.message.contains("only in logs"), "{refused}");
    });
}

#[test]
fn a_restored_region_gets_no_edits_that_were_only_in_the_logs_of_a_dead_server() {
    run(async {
        let (cluster, region, server) = disabled_table_with_edits_in_logs().await;
        let context = cluster.master.context();
        cluster.wait(snapshots::restore(&cluster, "s", &region.table).await.unwrap()).await.unwrap();
        alter::enable(&cluster).await;
        let opened = server.regions().get(&region.encoded_name()).expect("it is open");
        assert_eq!(opened.scan_all(&Scan::default()).await.unwrap().cells.len(), 1);
        cluster.env.clock.sleep(PATIENCE).await;
        assert!(context.recoveries.list().is_empty(), "no region needs the logs");
    });
}
