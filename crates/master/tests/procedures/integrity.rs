//! The regions of a table cover each row exactly once: edits that would violate this are refused, a
//! directory that violates it is repaired, and a region that cannot be opened does not keep other
//! regions offline.

use std::sync::Arc;
use std::time::Duration;

use base::testing::SeededRandom;
use bytes::Bytes;
use cell::region::{RegionInfo, ServerName};
use fs::FileSystem;
use fs::faulty::{Fault, Faulty, Plan, Rule};
use fs::memory::MemoryFs;
use layout::daughter::Daughter;
use master::assignment::RegionState;
use master::integrity::faults_of;
use proto::exception::{Answer, class};
use proto::region_state_transition::TransitionCode;
use wire::meta::MetaRegionState;
use wire::meta::row::put_region;
use wire::service::{MasterService, RegionServerStatusService};

use crate::alter::{ROWS, disable, enable, name, table, two_regions};
use crate::cluster::Cluster;
use crate::{Next, OBSERVED_FOR};

/// Number of splits and merges in the random test.
const STEPS: u64 = 60;

async fn start() -> (MemoryFs, Cluster) {
    let disk = MemoryFs::new();
    let cluster = Cluster::start(&base::testing::env(1), Arc::new(disk.clone())).await.unwrap();
    (disk, cluster)
}

fn infos(cluster: &Cluster) -> Vec<RegionInfo> {
    cluster.regions(&name()).iter().map(|region| region.info().clone()).collect()
}

async fn split(cluster: &Cluster, region: &RegionInfo, row: &[u8]) -> Answer<()> {
    let request = proto::SplitTableRegionRequest {
        region_info: region.into(),
        split_row: Some(Bytes::copy_from_slice(row)),
        ..proto::SplitTableRegionRequest::default()
    };
    cluster.wait(cluster.master.split_region(request).await?.proc_id).await
}

async fn merge(cluster: &Cluster, regions: &[RegionInfo], forcible: bool) -> Answer<()> {
    let request = proto::MergeTableRegionsRequest {
        region: regions.iter().map(wire::convert::region_specifier).collect(),
        forcible: Some(forcible),
        ..proto::MergeTableRegionsRequest::default()
    };
    cluster.wait(cluster.master.merge_table_regions(request).await?.proc_id).await
}

/// The regions of the table in `hbase:meta`. Checks that they cover each row exactly once.
async fn checked(cluster: &Cluster) -> Vec<RegionInfo> {
    let regions = cluster.master.context().meta.regions_of(&name()).await.unwrap();
    assert_eq!(faults_of(&name(), &regions), []);
    regions.into_iter().filter(|region| !region.is_split_parent()).collect()
}

async fn create(cluster: &Cluster, split_keys: &[&'static str]) {
    let request = proto::CreateTableRequest {
        table_schema: (&table()).into(),
        split_keys: split_keys.iter().map(|key| Bytes::from_static(key.as_bytes())).collect(),
        ..proto::CreateTableRequest::default()
    };
    let answer = cluster.master.create_table(request).await.unwrap();
    cluster.wait(answer.proc_id).await.unwrap();
}

#[test]
fn regions_that_are_not_adjacent_are_not_merged() {
    crate::run(async {
        let (_, cluster) = start().await;
        create(&cluster, &["d", "e", "m"]).await;
        for row in ["a", "c", "f", "m", "p", "t"] {
            cluster.put(&name(), row, "f", row).await;
        }
        let regions = infos(&cluster);
        let ends = [regions[0].clone(), regions[3].clone()];
        for forcible in [false, true] {
            let refused = merge(&cluster, &ends, forcible).await.unwrap_err();
            assert!(refused.is(class::MERGE_REGION), "{refused}");
            let apart =
                merge(&cluster, &[regions[0].clone(), regions[2].clone()], forcible).await.unwrap_err();
            assert!(apart.is(class::MERGE_REGION), "{apart}");
        }
        assert_eq!(checked(&cluster).await.len(), 4);
        // All of them, in any order: no region is between them.
        let [a, b, c, d] = &regions[..] else { panic!("{regions:?}") };
        merge(&cluster, &[d.clone(), a.clone(), c.clone(), b.clone()], true).await.unwrap();
        assert_eq!(checked(&cluster).await.len(), 1);
        let rows = cluster.cells(&name()).await;
        assert_eq!(rows, ["a/f=a", "c/f=c", "f/f=f", "m/f=m", "p/f=p", "t/f=t"]);
    });
}

/// Makes random splits and merges, many of which are refused. After each one, the regions must
/// cover each row exactly once, and all rows must exist.
#[test]
fn the_regions_cover_each_row_once_after_random_splits_and_merges() {
    crate::run(async {
        let (_, cluster) = start().await;
        create(&cluster, &["d", "h"]).await;
        let rows = ["a", "c", "e", "g", "i", "k", "m", "o"];
        for row in rows {
            cluster.put(&name(), row, "f", row).await;
        }
        let expected: Vec<String> = rows.iter().map(|row| format!("{row}/f={row}")).collect();
        let random = SeededRandom::new(7);
        let mut done = [0, 0];
        for _ in 0..STEPS {
            let regions = checked(&cluster).await;
            let any = || regions[random.next() as usize % regions.len()].clone();
            let outcome = match random.next() % 2 {
                0 => split(&cluster, &any(), &[b'a' + (random.next() % 16) as u8]).await,
                _ => merge(&cluster, &[any(), any()], random.next().is_multiple_of(4)).await,
            };
            let after = checked(&cluster).await;
            match outcome {
                Ok(()) => done[usize::from(after.len() < regions.len())] += 1,
                Err(error) => {
                    assert!(error.do_not_retry, "{error}");
                    assert_eq!(after, regions, "{error}");
                }
            }
            assert_eq!(cluster.cells(&name()).await, expected);
            // Compact, because daughters and merged regions with references cannot be split or
            // merged again.
            for region in cluster.regions(&name()) {
                region.compact(None, engine::region::CompactionKind::Major).await.unwrap();
                region.archive_retired().await;
            }
            cluster.master.run_catalog_scan(proto::RunCatalogScanRequest {}).await.unwrap();
            cluster.settle().await;
        }
        assert!(done[0] > 3 && done[1] > 3, "{done:?}");
        assert_eq!(cluster.master.context().integrity.faults(), []);
    });
}

/// Adds a region to `hbase:meta` and to the disk without the master, which finds it at the next
/// start.
async fn add_region_without_master(cluster: &Cluster, region: &RegionInfo) {
    let empty = Daughter { info: region.clone(), files: Vec::new(), max_seq_id: 0 };
    cluster.root.create_daughter(&*cluster.fs, &table(), &empty).await.unwrap();
    write_row(cluster, put_region(region, MetaRegionState::Closed)).await;
}

async fn write_row(cluster: &Cluster, row: cell::mutation::Mutation) {
    let regions = cluster.server.regions().all();
    let meta = regions.iter().find(|region| region.info().table.is_meta()).unwrap();
    meta.batch_atomic(vec![row]).await.unwrap();
}

/// Overlapping regions are merged by the next start, even if the power fails at any call of an
/// earlier attempt.
#[test]
fn overlapping_regions_are_merged_at_start() {
    let prepared = crate::run(async {
        let (disk, cluster) = start().await;
        two_regions(&cluster).await;
        add_region_without_master(&cluster, &RegionInfo::new(name(), "c".into(), "x".into(), 5)).await;
        add_region_without_master(&cluster, &RegionInfo::new(name(), "".into(), "".into(), 3)).await;
        cluster.stop().await;
        disk
    });
    for calls in (0..).step_by(9) {
        let random = SeededRandom::new(calls);
        let disk = prepared.crash(&mut || random.next());
        let is_whole = crate::run(async {
            let env = base::testing::env(7);
            env.clock.sleep(Duration::from_secs(3600)).await;
            let faulty = Faulty::new(Arc::new(disk.clone()), Plan::new(env.clock.clone()));
            faulty.add(Rule::new(Fault::Fail).after(calls));
            let started = env.timeout(OBSERVED_FOR, Cluster::start(&env, Arc::new(faulty.clone()))).await;
            matches!(started, Some(Ok(_))) && faulty.faults() == 0
        });
        crate::run(async {
            let env = base::testing::env(calls + 1000);
            env.clock.sleep(Duration::from_secs(7200)).await;
            let image = disk.crash(&mut || random.next());
            let cluster = Cluster::start(&env, Arc::new(image)).await.unwrap();
            cluster.settle().await;
            let regions = checked(&cluster).await;
            assert_eq!(regions.len(), 1, "power loss after {calls} calls: {regions:?}");
            assert_eq!(cluster.cells(&name()).await, ROWS);
        });
        if is_whole {
            assert!(calls > 100, "only {calls} calls");
            return;
        }
    }
}

#[test]
fn rows_of_overlapping_regions_are_kept_and_a_second_start_changes_nothing() {
    let (disk, before) = crate::run(async {
        let (disk, cluster) = start().await;
        two_regions(&cluster).await;
        let third = RegionInfo::new(name(), "c".into(), "x".into(), 5);
        add_region_without_master(&cluster, &third).await;
        cluster.stop().await;
        (disk, third)
    });
    let mut merged = Vec::new();
    for at in 1..3 {
        crate::run(async {
            let env = base::testing::env(at);
            env.clock.sleep(Duration::from_secs(3600 * at)).await;
            let cluster = Cluster::start(&env, Arc::new(disk.clone())).await.unwrap();
            cluster.settle().await;
            let regions = checked(&cluster).await;
            assert_eq!(regions.len(), 1);
            assert!(regions[0].region_id > before.region_id);
            assert_eq!(cluster.cells(&name()).await, ROWS);
            merged.push(regions[0].clone());
            cluster.stop().await;
        });
    }
    assert_eq!(merged[0], merged[1]);
}

async fn repair(cluster: &Cluster, what: &str, region: Option<&str>) -> Answer<String> {
    let argument = |region: &str| proto::NameStringPair { name: "region".into(), value: region.into() };
    let procedure = proto::ProcedureDescription {
        signature: master::repair::SIGNATURE.into(),
        instance: Some(what.into()),
        configuration: region.map(argument).into_iter().collect(),
        ..proto::ProcedureDescription::default()
    };
    let answer = cluster.master.exec_procedure(proto::ExecProcedureRequest { procedure }).await?;
    Ok(String::from_utf8(answer.return_data.unwrap().to_vec()).unwrap())
}

#[test]
fn holes_are_reported_and_filled_by_a_command() {
    crate::run(async {
        let (disk, cluster) = start().await;
        two_regions(&cluster).await;
        let low = infos(&cluster)[0].clone();
        write_row(&cluster, wire::meta::row::delete_region(&low)).await;
        cluster.stop().await;
        let env = base::testing::env(2);
        env.clock.sleep(Duration::from_secs(3600)).await;
        let cluster = Cluster::start(&env, Arc::new(disk)).await.unwrap();
        let status = repair(&cluster, "status", None).await.unwrap();
        assert!(status.contains("table t: no region covers the rows ['', 'm')"), "{status}");
        assert!(status.contains(&format!("hbase:meta lacks region {}", low.encoded_name())), "{status}");
        // The directory exists, so nothing is lost.
        let adopted = repair(&cluster, "adopt", Some(&low.encoded_name())).await.unwrap();
        assert!(adopted.contains("was added to hbase:meta"), "{adopted}");
        assert_eq!(repair(&cluster, "status", None).await.unwrap(), "no faults");
        assert_eq!(cluster.cells(&name()).await, ROWS);
        // Without the row, an empty region fills the hole.
        write_row(&cluster, wire::meta::row::delete_region(&low)).await;
        let filled = repair(&cluster, "holes", None).await.unwrap();
        assert!(filled.contains("created the empty region"), "{filled}");
        assert_eq!(checked(&cluster).await.len(), 2);
        assert!(repair(&cluster, "nonsense", None).await.is_err());
    });
}

/// It would be served without the archived files.
#[test]
fn a_region_that_is_being_archived_stays_closed_and_its_table_can_be_deleted() {
    crate::run(async {
        let (disk, cluster) = start().await;
        two_regions(&cluster).await;
        let low = infos(&cluster)[0].clone();
        cluster.stop().await;
        let dir = layout::RootDir::new(fs::FilePath::root()).region_dir(&low);
        disk.rename(&dir.join(".regioninfo"), &dir.join(".archiving")).await.unwrap();
        let env = base::testing::env(2);
        env.clock.sleep(Duration::from_secs(3600)).await;
        let cluster = Cluster::start(&env, Arc::new(disk.clone())).await.unwrap();
        assert_eq!(cluster.cells(&name()).await, ["z/g=2"]);
        let reason = cluster.master.context().assignment.failure(&low).unwrap().reason;
        assert!(reason.contains("is being deleted"), "{reason}");
        disable(&cluster).await;
        let request = proto::DeleteTableRequest {
            table_name: (&name()).into(),
            ..proto::DeleteTableRequest::default()
        };
        let deletion = cluster.master.delete_table(request).await.unwrap();
        cluster.wait(deletion.proc_id).await.unwrap();
        assert_eq!(cluster.state(&name()).await, None);
    });
}

/// One directory is missing, as if a disk were not mounted. Its region stays closed and reports the
/// reason; all others are online.
#[test]
fn a_region_without_its_directory_stays_closed_until_the_loss_is_accepted() {
    crate::run(async {
        let (disk, cluster) = start().await;
        two_regions(&cluster).await;
        let low = infos(&cluster)[0].clone();
        cluster.stop().await;
        let root = layout::RootDir::new(fs::FilePath::root());
        disk.delete(&root.region_dir(&low)).await.unwrap();
        let env = base::testing::env(2);
        env.clock.sleep(Duration::from_secs(3600)).await;
        let cluster = Cluster::start(&env, Arc::new(disk.clone())).await.unwrap();
        assert_eq!(cluster.cells(&name()).await, ["z/g=2"]);
        let assignment = &cluster.master.context().assignment;
        assert_eq!(assignment.state(&low), Some(RegionState::FailedOpen));
        let reason = assignment.failure(&low).unwrap().reason;
        assert!(reason.contains("is missing") && reason.contains(&low.encoded_name()), "{reason}");
        let request = proto::GetClusterStatusRequest::default();
        let status = cluster.master.get_cluster_status(request).await.unwrap().cluster_status;
        let shown = &status.regions_in_transition[0].region_state;
        assert_eq!(shown.state, proto::region_state::State::FailedOpen as i32);
        assert_eq!(shown.failure.as_deref(), Some(reason.as_str()));
        assert!(
            cluster.fs.stat(&root.region_dir(&low)).await.unwrap().is_none(),
            "no directory is created in its place"
        );
        // The table can still be changed, and the region is retried.
        disable(&cluster).await;
        enable(&cluster).await;
        env.clock.sleep(Duration::from_secs(10)).await;
        assert!(assignment.failure(&low).unwrap().attempts > 1);
        assert_eq!(cluster.cells(&name()).await, ["z/g=2"]);
        let other = infos(&cluster)[0].encoded_name();
        assert!(repair(&cluster, "region", Some(&other)).await.is_err(), "the region has lost nothing");
        let accepted = repair(&cluster, "region", Some(&low.encoded_name())).await.unwrap();
        assert!(accepted.contains("the rows of its files are lost"), "{accepted}");
        assert_eq!(assignment.failure(&low), None);
        cluster.put(&name(), "a", "f", "4").await;
        assert_eq!(cluster.cells(&name()).await, ["a/f=4", "z/g=2"]);
        assert_eq!(repair(&cluster, "status", None).await.unwrap(), "no faults");
    });
}

fn report(
    cluster: &Cluster,
    code: TransitionCode,
    region: &RegionInfo,
) -> proto::ReportRegionStateTransitionRequest {
    let transition = proto::RegionStateTransition {
        transition_code: code as i32,
        region_info: vec![region.into()],
        open_seq_num: Some(7),
        ..proto::RegionStateTransition::default()
    };
    proto::ReportRegionStateTransitionRequest {
        server: cluster.server.name().into(),
        transition: vec![transition],
    }
}

#[test]
fn only_reports_of_requested_servers_are_accepted() {
    crate::run(async {
        let (_, cluster) = start().await;
        two_regions(&cluster).await;
        let region = infos(&cluster)[0].clone();
        let unknown = RegionInfo::new(name(), "q".into(), "".into(), 1);
        let stranger = ServerName { host: "elsewhere".into(), port: 1, start_code: 1 };
        let earlier = ServerName { start_code: 1, ..cluster.server.name().clone() };
        let before = cluster.master.context().assignment.state(&region);
        for code in [TransitionCode::Opened, TransitionCode::Closed, TransitionCode::FailedOpen] {
            for server in [&stranger, &earlier] {
                let request = proto::ReportRegionStateTransitionRequest {
                    server: server.into(),
                    ..report(&cluster, code, &region)
                };
                let answer = cluster.master.report_region_state_transition(request).await.unwrap();
                assert!(answer.error_message().contains("No server node"), "{answer:?}");
            }
            let answer =
                cluster.master.report_region_state_transition(report(&cluster, code, &unknown)).await;
            assert!(answer.unwrap().error_message().contains("Unknown region"));
        }
        // The server has the region, but was not requested to close it.
        for code in [TransitionCode::Closed, TransitionCode::FailedOpen] {
            let answer = cluster.master.report_region_state_transition(report(&cluster, code, &region)).await;
            assert!(answer.unwrap().error_message().contains("Unexpected report"));
        }
        // A repeated report.
        let again = report(&cluster, TransitionCode::Opened, &region);
        let answer = cluster.master.report_region_state_transition(again).await.unwrap();
        assert_eq!(answer.error_message, None);
        assert_eq!(cluster.master.context().assignment.state(&region), before);
        let dead = |server: &ServerName| proto::ReportRsFatalErrorRequest {
            server: server.into(),
            error_message: "x".into(),
        };
        let refused = cluster.master.report_rs_fatal_error(dead(&stranger)).await.unwrap_err();
        assert!(refused.is(class::YOU_ARE_DEAD));
        let load = proto::RegionServerReportRequest { server: (&earlier).into(), load: None };
        assert!(cluster.master.region_server_report(load).await.unwrap_err().is(class::YOU_ARE_DEAD));
        assert_eq!(cluster.cells(&name()).await, ROWS);
    });
}

#[test]
fn reports_to_a_master_that_does_not_know_the_regions_yet_are_repeated() {
    crate::run(async {
        let (_, cluster) = start().await;
        two_regions(&cluster).await;
        let successor = cluster.master_without_regions();
        for region in [infos(&cluster)[0].clone(), RegionInfo::meta()] {
            let opened = report(&cluster, TransitionCode::Opened, &region);
            let answer = successor.report_region_state_transition(opened).await;
            assert!(
                answer.unwrap_err().is(class::SERVER_NOT_RUNNING_YET),
                "the server must not close {region:?}"
            );
        }
    });
}
