//! Splitting and merging regions, and the cleanup afterwards.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cell::region::{RegionInfo, ServerName};
use fs::FilePath;
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use master::assignment::RegionState;
use master::procedure::executor::Progress;
use master::procedure::{Record, Work, daughters_of};
use proto::MasterSwitchType;
use proto::exception::{Answer, class};
use wire::service::{MasterService, RegionServerStatusService};

use crate::alter::{ROWS, disable, enable, name, two_regions};
use crate::cluster::Cluster;
use crate::{ProcedureState, power_loss_at_every_call};

pub fn infos(cluster: &Cluster) -> Vec<RegionInfo> {
    cluster.regions(&name()).iter().map(|region| region.info().clone()).collect()
}

pub async fn split(cluster: &Cluster, region: &RegionInfo, row: &'static str) -> Answer<Option<u64>> {
    let request = proto::SplitTableRegionRequest {
        region_info: region.into(),
        split_row: Some(Bytes::from_static(row.as_bytes())),
        ..proto::SplitTableRegionRequest::default()
    };
    Ok(cluster.master.split_region(request).await?.proc_id)
}

async fn merge(cluster: &Cluster, regions: &[RegionInfo]) -> Answer<Option<u64>> {
    let request = proto::MergeTableRegionsRequest {
        region: regions.iter().map(wire::convert::region_specifier).collect(),
        ..proto::MergeTableRegionsRequest::default()
    };
    Ok(cluster.master.merge_table_regions(request).await?.proc_id)
}

/// Major-compacts all regions, and archives the replaced files.
async fn compact(cluster: &Cluster) {
    for region in cluster.regions(&name()) {
        region.compact(None, engine::region::CompactionKind::Major).await.unwrap();
        region.archive_retired().await;
    }
}

/// Runs the janitor until no parents remain.
pub async fn run_janitor(cluster: &Cluster) {
    for _ in 0..1000 {
        compact(cluster).await;
        cluster.master.run_catalog_scan(proto::RunCatalogScanRequest {}).await.unwrap();
        cluster.settle().await;
        let on_disk = cluster.root.list_regions(&*cluster.fs, &name()).await.unwrap().len();
        if on_disk == cluster.regions(&name()).len() {
            return;
        }
        cluster.env.clock.sleep(Duration::from_millis(5)).await;
    }
    panic!("parents were not removed");
}

pub async fn rows_of_meta(cluster: &Cluster) -> Vec<wire::meta::MetaRow> {
    let mut rows = cluster.master.context().meta.read_all().await.unwrap().regions;
    rows.retain(|row| row.region.table == name());
    rows
}

#[test]
fn splitting_is_atomic() {
    power_loss_at_every_call(
        3,
        async |cluster| two_regions(cluster).await,
        async |cluster| split(cluster, &infos(cluster)[0], "b").await,
        async |cluster, state| {
            assert_eq!(cluster.cells(&name()).await, ROWS);
            let regions = infos(cluster);
            if regions.len() == 2 {
                assert_eq!(state, ProcedureState::Unknown, "a submitted procedure must complete");
                assert_eq!(rows_of_meta(cluster).await.len(), 2);
                return;
            }
            let starts: Vec<_> = regions.iter().map(|region| &region.start_key[..]).collect();
            assert_eq!(starts, [&b""[..], b"b", b"m"]);
            assert!(regions.iter().all(|region| !region.split && !region.offline));
            cluster.put(&name(), "aa", "f", "4").await;
            run_janitor(cluster).await;
            assert_eq!(rows_of_meta(cluster).await.len(), 3);
            assert_eq!(cluster.cells(&name()).await, ["a/f=1", "aa/f=4", "b/g=3", "z/g=2"]);
        },
    );
}

#[test]
fn merging_is_atomic() {
    power_loss_at_every_call(
        3,
        async |cluster| two_regions(cluster).await,
        async |cluster| merge(cluster, &infos(cluster)).await,
        async |cluster, state| {
            assert_eq!(cluster.cells(&name()).await, ROWS);
            let regions = infos(cluster);
            if regions.len() == 2 {
                assert_eq!(state, ProcedureState::Unknown, "a submitted procedure must complete");
                return;
            }
            assert_eq!((&regions[0].start_key[..], &regions[0].end_key[..]), (&b""[..], &b""[..]));
            cluster.put(&name(), "z", "f", "4").await;
            run_janitor(cluster).await;
            let rows = rows_of_meta(cluster).await;
            assert_eq!((rows.len(), rows[0].merged_from.len()), (1, 0));
            assert_eq!(cluster.cells(&name()).await, ["a/f=1", "b/g=3", "z/f=4", "z/g=2"]);
        },
    );
}

#[test]
fn a_parent_exists_until_it_is_archived() {
    power_loss_at_every_call(
        3,
        async |cluster| {
            two_regions(cluster).await;
            let first = infos(cluster)[0].clone();
            cluster.wait(split(cluster, &first, "b").await.unwrap()).await.unwrap();
            compact(cluster).await;
        },
        async |cluster| {
            let answer = cluster.master.run_catalog_scan(proto::RunCatalogScanRequest {}).await?;
            assert_eq!(answer.scan_result, Some(1));
            let all = cluster.master.get_procedures(proto::GetProceduresRequest {}).await?.procedure;
            let tidy = all.iter().rfind(|procedure| procedure.class_name.ends_with(".GCRegionProcedure"));
            Ok(tidy.map(|procedure| procedure.proc_id))
        },
        async |cluster, state| {
            assert_eq!(cluster.cells(&name()).await, ROWS);
            assert_eq!(infos(cluster).len(), 3);
            let rows = rows_of_meta(cluster).await;
            assert!(
                rows.len() == 3 || state == ProcedureState::Unknown,
                "a submitted procedure must complete"
            );
            run_janitor(cluster).await;
            assert_eq!(rows_of_meta(cluster).await.len(), 3);
            assert_eq!(cluster.cells(&name()).await, ROWS);
        },
    );
}

/// The next master may have completed the cleanup, and restored a snapshot that has the parent.
#[test]
fn a_replaced_master_archives_no_parent() {
    crate::run(async {
        let (_, cluster) = start().await;
        let parent = infos(&cluster)[0].clone();
        cluster.wait(split(&cluster, &parent, "b").await.unwrap()).await.unwrap();
        // The server compacts references after an open, too.
        cluster.env.clock.sleep(Duration::from_secs(1)).await;
        compact(&cluster).await;
        cluster.replace_master().await;
        cluster.master.run_catalog_scan(proto::RunCatalogScanRequest {}).await.unwrap();
        cluster.env.clock.sleep(Duration::from_secs(30)).await;
        let dir = cluster.root.region_dir(&parent);
        assert!(cluster.fs.stat(&dir).await.unwrap().is_some());
        assert!(cluster.master.procedures().is_running(|work| matches!(work, Work::GcSplitParent(_))));
    });
}

/// Splits a region or merges two, and compacts the result. Then moves the directory of the first
/// new region away. Its references are unknown, so its parents stay until it is restored.
async fn parents_stay_while_a_directory_is_missing(replace: impl AsyncFn(&Cluster) -> Answer<Option<u64>>) {
    let (_, cluster) = start().await;
    cluster.wait(replace(&cluster).await.unwrap()).await.unwrap();
    // The server compacts references after an open, too.
    cluster.env.clock.sleep(Duration::from_secs(1)).await;
    compact(&cluster).await;
    let dir = cluster.root.region_dir(&infos(&cluster)[0]);
    let aside = FilePath::new("aside");
    cluster.fs.rename(&dir, &aside).await.unwrap();
    let answer = cluster.master.run_catalog_scan(proto::RunCatalogScanRequest {}).await.unwrap();
    assert_eq!(answer.scan_result, Some(0));
    cluster.fs.rename(&aside, &dir).await.unwrap();
    run_janitor(&cluster).await;
    assert_eq!(cluster.cells(&name()).await, ROWS);
}

#[test]
fn a_split_parent_stays_while_the_directory_of_a_daughter_is_missing() {
    crate::run(parents_stay_while_a_directory_is_missing(async |cluster| {
        split(cluster, &infos(cluster)[0], "b").await
    }));
}

#[test]
fn merged_regions_stay_while_the_directory_of_the_new_region_is_missing() {
    crate::run(parents_stay_while_a_directory_is_missing(async |cluster| {
        merge(cluster, &infos(cluster)).await
    }));
}

async fn start() -> (MemoryFs, Cluster) {
    let disk = MemoryFs::new();
    let cluster = Cluster::start(&base::testing::env(1), Arc::new(disk.clone())).await.unwrap();
    two_regions(&cluster).await;
    (disk, cluster)
}

/// The same, on a file system whose calls can fail.
async fn start_faulty() -> (Faulty, Cluster) {
    let env = base::testing::env(1);
    let faulty = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
    let cluster = Cluster::start(&env, Arc::new(faulty.clone())).await.unwrap();
    two_regions(&cluster).await;
    (faulty, cluster)
}

/// If files cannot be created, the split ends, and the region continues as before.
#[test]
fn a_failed_split_is_rolled_back() {
    crate::run(async {
        let (faulty, cluster) = start_faulty().await;
        faulty.add(Rule::new(Fault::Fail).on(Operation::Create).at(".tmp/data/").times(1));
        let id = split(&cluster, &infos(&cluster)[0], "b").await.unwrap();
        assert!(cluster.wait(id).await.is_err());
        assert_eq!(infos(&cluster).len(), 2);
        assert_eq!(cluster.cells(&name()).await, ROWS);
        let id = split(&cluster, &infos(&cluster)[0], "b").await.unwrap();
        cluster.wait(id).await.unwrap();
        assert_eq!(infos(&cluster).len(), 3);
        assert_eq!(cluster.cells(&name()).await, ROWS);
    });
}

/// Begins to split the first region of `cluster`. Returns the procedure and the daughters when the
/// directory of the second one is being put in place, which takes a second.
async fn slow_split(cluster: &Cluster, faulty: &Faulty) -> (u64, [RegionInfo; 2]) {
    let slow = Rule::new(Fault::Delay(Duration::from_secs(1)));
    faulty.add(slow.on(Operation::Rename).at(".tmp/data/").after(1).times(1));
    let id = split(cluster, &infos(cluster)[0], "b").await.unwrap().unwrap();
    while faulty.faults() == 0 {
        cluster.env.clock.sleep(Duration::from_millis(5)).await;
    }
    let Work::SplitRegion { daughters, .. } = cluster.master.procedures().status(id).unwrap().work else {
        panic!("it is a split");
    };
    (id, *daughters)
}

/// The next master resumes the split with the same daughters, which then get writes.
#[test]
fn a_replaced_master_removes_no_daughters() {
    replaced_master_removes_no_daughters(false);
}

/// The next master may have moved files, so that the split fails before its commit is refused.
#[test]
fn a_replaced_master_removes_no_daughters_after_an_error_of_its_own() {
    replaced_master_removes_no_daughters(true);
}

fn replaced_master_removes_no_daughters(has_failed: bool) {
    crate::run(async {
        let (faulty, cluster) = start_faulty().await;
        let (id, daughters) = slow_split(&cluster, &faulty).await;
        cluster.replace_master().await;
        if has_failed {
            faulty.add(Rule::new(Fault::Fail).on(Operation::SyncDir).at("data/default/t").times(1));
        }
        cluster.env.clock.sleep(Duration::from_secs(30)).await;
        for daughter in &daughters {
            let dir = cluster.root.region_dir(daughter);
            assert!(cluster.fs.stat(&dir).await.unwrap().is_some(), "{dir}");
        }
        let status = cluster.master.procedures().status(id).unwrap();
        assert_eq!(status.progress, Progress::Running);
        assert!(status.waiting.unwrap().reason.message.contains("another one became active"));
    });
}

#[test]
fn a_split_that_another_master_has_committed_is_not_rolled_back() {
    crate::run(async {
        let (faulty, cluster) = start_faulty().await;
        let parent = infos(&cluster)[0].clone();
        let (id, daughters) = slow_split(&cluster, &faulty).await;
        cluster.master.context().meta.put_split(&parent, &daughters).await.unwrap();
        faulty.add(Rule::new(Fault::Fail).on(Operation::SyncDir).at("data/default/t").times(1));
        cluster.wait(Some(id)).await.unwrap();
        assert_eq!(faulty.faults(), 2, "the split failed after it was committed");
        assert_eq!(infos(&cluster).len(), 3);
        assert_eq!(cluster.cells(&name()).await, ROWS);
    });
}

#[test]
fn invalid_splits_and_merges_are_refused() {
    crate::run(async {
        let (_, cluster) = start().await;
        let regions = infos(&cluster);
        let outside = split(&cluster, &regions[0], "x").await.unwrap_err();
        assert!(outside.message.starts_with("Split row is not inside region key range splitKey:x region: {"));
        assert!(split(&cluster, &regions[1], "m").await.unwrap_err().message.contains("equal to startkey"));
        let unknown = RegionInfo::new(name(), "q".into(), "".into(), 1);
        assert!(split(&cluster, &unknown, "r").await.unwrap_err().is(class::UNKNOWN_REGION));
        assert!(merge(&cluster, &[unknown]).await.unwrap_err().is(class::UNKNOWN_REGION));
        assert!(merge(&cluster, &regions[..1]).await.unwrap_err().is(class::MERGE_REGION));
        let id = split(&cluster, &regions[0], "b").await.unwrap();
        cluster.wait(id).await.unwrap();
        let parent = split(&cluster, &regions[0], "a").await.unwrap_err();
        assert!(
            parent.is(class::DO_NOT_RETRY_REGION) && parent.message.ends_with("is not OPEN; state=SPLIT")
        );
        disable(&cluster).await;
        assert!(split(&cluster, &infos_of_disabled(&cluster)[0], "a").await.is_err());
        enable(&cluster).await;
        assert_eq!(cluster.cells(&name()).await, ROWS);
    });
}

fn infos_of_disabled(cluster: &Cluster) -> Vec<RegionInfo> {
    cluster.master.context().assignment.regions_of(&name()).into_iter().map(|(region, _)| region).collect()
}

#[test]
fn switches_take_effect_and_survive_a_restart() {
    let set = async |cluster: &Cluster, kind: MasterSwitchType, enabled| {
        let request = proto::SetSplitOrMergeEnabledRequest {
            enabled,
            synchronous: Some(true),
            switch_types: vec![kind as i32],
        };
        cluster.master.set_split_or_merge_enabled(request).await.unwrap().prev_value
    };
    let disk = crate::run(async {
        let (disk, cluster) = start().await;
        assert_eq!(set(&cluster, MasterSwitchType::Split, false).await, [true]);
        let refused = split(&cluster, &infos(&cluster)[0], "b").await.unwrap_err();
        assert!(refused.message.ends_with("failed due to split switch off"), "{refused}");
        disk
    });
    let image = disk.crash(&mut || 0);
    crate::run(async {
        let env = base::testing::env(2);
        env.clock.sleep(Duration::from_secs(3600)).await;
        let cluster = Cluster::start(&env, Arc::new(image)).await.unwrap();
        assert!(split(&cluster, &infos(&cluster)[0], "b").await.is_err());
        assert_eq!(set(&cluster, MasterSwitchType::Split, true).await, [false]);
        assert_eq!(set(&cluster, MasterSwitchType::Merge, false).await, [true]);
        let refused = merge(&cluster, &infos(&cluster)).await.unwrap_err();
        assert!(refused.message.ends_with("failed because merge switch is off"), "{refused}");
        let id = split(&cluster, &infos(&cluster)[0], "b").await.unwrap();
        cluster.wait(id).await.unwrap();
    });
}

/// A region server's request to split a large region.
fn split_request(server: &ServerName, parent: &RegionInfo) -> proto::ReportRegionStateTransitionRequest {
    let [low, high] = daughters_of(parent, &"b".into(), 1);
    let transition = proto::RegionStateTransition {
        transition_code: proto::region_state_transition::TransitionCode::ReadyToSplit as i32,
        region_info: vec![parent.into(), (&low).into(), (&high).into()],
        ..proto::RegionStateTransition::default()
    };
    proto::ReportRegionStateTransitionRequest { server: server.into(), transition: vec![transition] }
}

#[test]
fn a_large_region_is_split() {
    crate::run(async {
        let (_, cluster) = start().await;
        let request = split_request(cluster.server.name(), &infos(&cluster)[0]);
        cluster.master.report_region_state_transition(request).await.unwrap();
        cluster.settle().await;
        assert_eq!(infos(&cluster).len(), 3);
        assert_eq!(cluster.cells(&name()).await, ROWS);
    });
}

/// A split of the previous master may be half done. It must get the lock of the table first.
#[test]
fn a_server_requests_no_split_before_procedures_are_resumed() {
    crate::run(async {
        let env = base::testing::env(1);
        let faulty = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
        let cluster = Cluster::start_with_processes(&env, Arc::new(faulty.clone())).await.unwrap();
        two_regions(&cluster).await;
        let context = cluster.master.context();
        let regions = context.assignment.regions_in_meta(&name());
        context.assignment.close(&regions).await.unwrap();
        let (master, server) = cluster.successor(5).await;
        context.meta.set_opening(&regions, server.name()).await.unwrap();
        // Until the repeated orders are in `hbase:meta`, no procedure is resumed.
        let slow = Rule::new(Fault::Delay(Duration::from_secs(1)));
        faulty.add(slow.on(Operation::Sync).at("WALs/h,5"));
        let request = async {
            let opening = Some(RegionState::Opening(server.name().clone()));
            while master.context().assignment.state(&regions[0]) != opening {
                env.clock.sleep(Duration::from_millis(5)).await;
            }
            master.report_region_state_transition(split_request(server.name(), &regions[0])).await
        };
        let start = async { tokio::join!(request, master.initialize()) };
        let (requested, initialized) = env.timeout(Duration::from_secs(60), start).await.unwrap();
        initialized.unwrap();
        let refused = requested.unwrap_err();
        assert!(refused.is(class::SERVER_NOT_RUNNING_YET), "{refused}");
    });
}

/// A master that ended during a split left it in the journal. Meanwhile the region was split into
/// other daughters.
#[test]
fn a_split_opens_no_daughters_that_are_not_in_meta() {
    let disk = MemoryFs::new();
    let discarded = crate::run(async {
        let cluster = Cluster::start(&base::testing::env(1), Arc::new(disk.clone())).await.unwrap();
        two_regions(&cluster).await;
        let parent = infos(&cluster)[0].clone();
        let daughters = daughters_of(&parent, &"a".into(), parent.region_id + 1);
        for daughter in &daughters {
            cluster.fs.make_dirs(&cluster.root.region_dir(daughter)).await.unwrap();
        }
        cluster.wait(split(&cluster, &parent, "b").await.unwrap()).await.unwrap();
        let work = Work::SplitRegion { parent, daughters: Box::new(daughters.clone()) };
        let record = Record { id: 5, work, prepared: true, submitted_ms: 0, nonce: (0, 0) };
        cluster.journal().put(&record).await.unwrap();
        cluster.stop().await;
        daughters
    });
    crate::run(async {
        let env = base::testing::env(2);
        env.clock.sleep(Duration::from_secs(3600)).await;
        let cluster = Cluster::start(&env, Arc::new(disk)).await.unwrap();
        let refused = cluster.wait(Some(5)).await.unwrap_err();
        assert!(refused.message.ends_with("was split into other daughters"), "{refused}");
        let rows = rows_of_meta(&cluster).await;
        assert_eq!(rows.len(), 4, "the split region, its daughters, and the other region");
        for daughter in &discarded {
            assert!(!rows.iter().any(|row| row.region == *daughter));
            assert!(cluster.fs.stat(&cluster.root.region_dir(daughter)).await.unwrap().is_none());
        }
        assert_eq!(cluster.cells(&name()).await, ROWS);
    });
}

/// A split from the first row: the server flushes, finds the region too large, and requests a
/// split.
#[test]
fn a_growing_table_is_split_automatically() {
    use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
    crate::run(async {
        let cluster = Cluster::start(&base::testing::env(1), Arc::new(MemoryFs::new())).await.unwrap();
        let table = TableName::parse("grown").unwrap();
        let mut descriptor = TableDescriptor::new(table.clone()).with_family(FamilyDescriptor::new("f"));
        descriptor.attributes.insert("MEMSTORE_FLUSHSIZE".into(), "1048576".into());
        let request = proto::CreateTableRequest { table_schema: (&descriptor).into(), ..Default::default() };
        let answer = cluster.master.create_table(request).await.unwrap();
        cluster.wait(answer.proc_id).await.unwrap();
        let value = "x".repeat(100_000);
        for row in 0..60 {
            cluster.put_with_retries(&table, &format!("{row:02}"), "f", &value).await;
        }
        let until = cluster.env.clock.monotonic() + Duration::from_secs(60);
        while cluster.regions(&table).len() < 2 {
            assert!(cluster.env.clock.monotonic() < until, "the region was not split");
            cluster.env.clock.sleep(Duration::from_millis(5)).await;
        }
        cluster.settle().await;
        let starts: Vec<_> =
            cluster.regions(&table).iter().map(|region| region.info().start_key.clone()).collect();
        assert!(starts[1..].iter().all(|start| start.len() == 2), "{starts:?}");
        assert_eq!(cluster.cells(&table).await.len(), 60);
    });
}

/// The files in the archive.
async fn archived(cluster: &Cluster) -> Vec<FilePath> {
    let files = cluster.root.archived_files(&*cluster.fs).await.unwrap();
    files.into_iter().map(|file| file.path).collect()
}

/// Runs the cleaner once. Returns whether it completed.
async fn run_cleaner(cluster: &Cluster) -> bool {
    let request = proto::RunCleanerChoreRequest {};
    cluster.master.run_cleaner_chore(request).await.unwrap().cleaner_chore_ran
}

async fn clean(cluster: &Cluster) {
    assert!(run_cleaner(cluster).await);
    cluster.env.clock.sleep(Duration::from_secs(601)).await;
    assert!(run_cleaner(cluster).await);
}

/// Moves two files of the table to the archive, which nothing needs.
async fn archive_files(cluster: &Cluster) {
    cluster.put(&name(), "a", "f", "1").await;
    for region in cluster.regions(&name()) {
        region.flush().await.unwrap();
    }
    compact(cluster).await;
    assert!(archived(cluster).await.len() >= 2);
}

/// A master that was frozen may take files for unneeded that another master has used since.
#[test]
fn a_replaced_master_removes_no_file() {
    crate::run(async {
        let (_, cluster) = start().await;
        archive_files(&cluster).await;
        let before = archived(&cluster).await;
        assert!(run_cleaner(&cluster).await);
        cluster.take_master_store().await;
        cluster.env.clock.sleep(Duration::from_secs(601)).await;
        run_cleaner(&cluster).await;
        let after = archived(&cluster).await;
        assert!(before.iter().all(|file| after.contains(file)), "{before:?} {after:?}");
    });
}

#[test]
fn unneeded_files_are_removed() {
    crate::run(async {
        let (_, cluster) = start().await;
        let snapshot = proto::SnapshotDescription {
            name: "s".into(),
            table: Some(name().to_string()),
            ..proto::SnapshotDescription::default()
        };
        let request = proto::SnapshotRequest { snapshot: snapshot.clone(), ..Default::default() };
        cluster.master.snapshot(request).await.unwrap();
        cluster.settle().await;
        // Compacted and therefore archived: one file of the snapshot, and later ones that nothing
        // needs.
        archive_files(&cluster).await;
        let before = archived(&cluster).await;
        cluster.master.run_cleaner_chore(proto::RunCleanerChoreRequest {}).await.unwrap();
        assert_eq!(archived(&cluster).await, before, "not old enough");
        clean(&cluster).await;
        let of_snapshot = archived(&cluster).await;
        assert!(!of_snapshot.is_empty() && of_snapshot.len() < before.len(), "{before:?} {of_snapshot:?}");
        // A clone links to the snapshot's files.
        let clone = cell::schema::TableName::parse("clone").unwrap();
        let request = proto::RestoreSnapshotRequest {
            snapshot: proto::SnapshotDescription { table: Some(clone.to_string()), ..snapshot.clone() },
            ..Default::default()
        };
        let id = cluster.master.restore_snapshot(request).await.unwrap().proc_id;
        cluster.wait(Some(id)).await.unwrap();
        let request = proto::DeleteSnapshotRequest { snapshot };
        cluster.master.delete_snapshot(request).await.unwrap();
        clean(&cluster).await;
        assert_eq!(archived(&cluster).await, of_snapshot, "the clone needs them");
        assert_eq!(cluster.cells(&clone).await, ROWS);
        for region in cluster.regions(&clone) {
            region.compact(None, engine::region::CompactionKind::Major).await.unwrap();
            region.archive_retired().await;
        }
        clean(&cluster).await;
        clean(&cluster).await;
        assert_eq!(archived(&cluster).await, Vec::<FilePath>::new());
        assert_eq!(cluster.cells(&clone).await, ROWS);
        assert_eq!(cluster.cells(&name()).await, ROWS);
    });
}

#[test]
fn an_archived_log_is_removed_when_no_holder_retains_it() {
    crate::run(async {
        let (disk, cluster) = start().await;
        let dir = cluster.root.old_wals_dir();
        let (held, free) = (dir.join("h%2C2%2C1.1"), dir.join("h%2C2%2C1.2"));
        disk.put(&held, "edits");
        disk.put(&free, "edits");
        cluster.master.log_holders().hold("peer", held.name());
        clean(&cluster).await;
        assert!(disk.contents(&held).is_some() && disk.contents(&free).is_none());
        cluster.master.log_holders().release_all("peer");
        clean(&cluster).await;
        assert_eq!(disk.contents(&held), None);
    });
}

#[test]
fn an_unreadable_snapshot_does_not_keep_old_logs() {
    crate::run(async {
        let (disk, cluster) = start().await;
        archive_files(&cluster).await;
        let before = archived(&cluster).await;
        let manifest = FilePath::new(".hbase-snapshot/s/data.manifest");
        disk.put(&manifest, b"\xff".to_vec());
        let log = cluster.root.old_wals_dir().join("h%2C2%2C1.1");
        disk.put(&log, "edits");
        run_cleaner(&cluster).await;
        cluster.env.clock.sleep(Duration::from_secs(601)).await;
        assert!(!run_cleaner(&cluster).await);
        assert_eq!(disk.contents(&log), None);
        assert_eq!(archived(&cluster).await, before, "the snapshot may need them");
    });
}

#[test]
fn a_file_that_cannot_be_removed_does_not_keep_others() {
    crate::run(async {
        let (faulty, cluster) = start_faulty().await;
        archive_files(&cluster).await;
        let first = archived(&cluster).await.remove(0);
        faulty.add(Rule::new(Fault::Fail).on(Operation::Delete).at(first.as_str()));
        run_cleaner(&cluster).await;
        cluster.env.clock.sleep(Duration::from_secs(601)).await;
        assert!(!run_cleaner(&cluster).await);
        assert_eq!(archived(&cluster).await, [first]);
        faulty.heal();
        assert!(run_cleaner(&cluster).await);
        assert_eq!(archived(&cluster).await, Vec::<FilePath>::new());
    });
}

#[test]
fn a_region_that_cannot_be_listed_does_not_keep_the_parents_of_others() {
    crate::run(async {
        let (faulty, cluster) = start_faulty().await;
        let parents = infos(&cluster);
        for (parent, row) in parents.iter().zip(["b", "q"]) {
            cluster.wait(split(&cluster, parent, row).await.unwrap()).await.unwrap();
        }
        compact(&cluster).await;
        let daughter = cluster.root.region_dir(&infos(&cluster)[0]);
        faulty.add(Rule::new(Fault::Fail).on(Operation::List).at(daughter.as_str()));
        let parents_on_disk = async || {
            cluster.settle().await;
            let on_disk = cluster.root.list_regions(&*cluster.fs, &name()).await.unwrap();
            on_disk.into_iter().filter(|region| parents.contains(region)).collect::<Vec<_>>()
        };
        let scan = async || cluster.master.run_catalog_scan(proto::RunCatalogScanRequest {}).await;
        assert!(scan().await.is_err());
        assert_eq!(parents_on_disk().await, parents[..1]);
        faulty.heal();
        assert_eq!(scan().await.unwrap().scan_result, Some(1));
        assert_eq!(parents_on_disk().await, []);
        assert_eq!(cluster.cells(&name()).await, ROWS);
    });
}
