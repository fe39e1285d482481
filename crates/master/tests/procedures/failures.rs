//! Procedures with failing steps: what is refused before it is journaled, how steps are retried,
//! and what remains after a final failure or an abort.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use base::testing::env;
use bytes::Bytes;
use cell::region::RegionInfo;
use cell::schema::{FamilyDescriptor, NamespaceDescriptor, TableDescriptor, TableName};
use fs::FileSystem;
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use master::assignment::RegionState;
use master::procedure::executor::Progress;
use master::procedure::{Record, TablePlan, Waiting, Work};
use proto::exception::{Answer, JavaException, class};
use wire::service::MasterService;

use crate::cluster::Cluster;
use crate::{alter, run, splits};

/// Part of the path of a table that is being created.
const STAGED: &str = ".tmp/data";

fn table(name: &str) -> TableDescriptor {
    TableDescriptor::new(TableName::parse(name).unwrap()).with_family(FamilyDescriptor::new("f"))
}

async fn create_split(cluster: &Cluster, name: &str, split_keys: Vec<Bytes>) -> Answer<Option<u64>> {
    let request = proto::CreateTableRequest {
        table_schema: (&table(name)).into(),
        split_keys,
        ..proto::CreateTableRequest::default()
    };
    Ok(cluster.master.create_table(request).await?.proc_id)
}

async fn create(cluster: &Cluster, name: &str) -> Answer<Option<u64>> {
    create_split(cluster, name, Vec::new()).await
}

async fn create_namespace(cluster: &Cluster, name: &str) -> Answer<Option<u64>> {
    let namespace = NamespaceDescriptor { name: name.into(), configuration: Default::default() };
    let request = proto::CreateNamespaceRequest {
        namespace_descriptor: (&namespace).into(),
        ..proto::CreateNamespaceRequest::default()
    };
    Ok(cluster.master.create_namespace(request).await?.proc_id)
}

async fn abort(cluster: &Cluster, proc_id: u64, may_interrupt: bool) -> bool {
    let request = proto::AbortProcedureRequest { proc_id, may_interrupt_if_running: Some(may_interrupt) };
    cluster.master.abort_procedure(request).await.unwrap().is_procedure_aborted
}

async fn listed(cluster: &Cluster, proc_id: u64) -> proto::Procedure {
    let all = cluster.master.get_procedures(proto::GetProceduresRequest {}).await.unwrap().procedure;
    all.into_iter().find(|procedure| procedure.proc_id == proc_id).unwrap()
}

fn waiting(cluster: &Cluster, proc_id: u64) -> Option<Waiting> {
    cluster.master.procedures().status(proc_id).unwrap().waiting
}

/// A cluster on a disk with faults that the test injects.
async fn on_faulty_disk(disk: &MemoryFs) -> (Cluster, Faulty) {
    let env = env(3);
    let faulty = Faulty::new(Arc::new(disk.clone()), Plan::new(env.clock.clone()));
    let cluster = Cluster::start(&env, Arc::new(faulty.clone())).await.unwrap();
    (cluster, faulty)
}

#[test]
fn a_too_long_name_is_refused_before_journaling() {
    run(async {
        let cluster = Cluster::start(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
        let before = cluster.master.procedures().list().len();
        let mut refused = Vec::new();
        for name in ["t".repeat(256), "t".repeat(300), "t".repeat(1000), "ж".repeat(128)] {
            refused.push(create(&cluster, &name).await.unwrap_err());
        }
        refused.push(create(&cluster, &format!("{}:t", "n".repeat(256))).await.unwrap_err());
        refused.push(create_namespace(&cluster, &"n".repeat(256)).await.unwrap_err());
        for len in [32_740, 32_767, 32_768] {
            let key = Bytes::from(vec![b'k'; len]);
            refused.push(create_split(&cluster, "t", vec![key]).await.unwrap_err());
        }
        for exception in refused {
            assert!(exception.is(class::DO_NOT_RETRY_IO), "{exception}");
            assert!(exception.message.contains("limit"), "{exception}");
        }
        assert_eq!(cluster.master.procedures().list().len(), before, "nothing was journaled");
        let longest = "t".repeat(255);
        cluster.wait(create(&cluster, &longest).await.unwrap()).await.unwrap();
    });
}

#[test]
fn a_failed_step_is_retried_with_growing_pauses_and_reports_the_reason() {
    let disk = MemoryFs::new();
    run(async {
        let (cluster, faulty) = on_faulty_disk(&disk).await;
        faulty.add(Rule::new(Fault::NoSpace).at(STAGED));
        let id = create(&cluster, "t").await.unwrap().unwrap();
        cluster.env.clock.sleep(Duration::from_secs(3600)).await;
        let waits = waiting(&cluster, id).unwrap();
        assert!(waits.reason.message.contains("no space left"), "{waits:?}");
        assert!((60..75).contains(&waits.failures), "an hour of attempts: {waits:?}");
        let shown = listed(&cluster, id).await;
        assert_eq!(shown.state(), proto::ProcedureState::WaitingTimeout);
        assert!(shown.timeout.is_some_and(|pause_ms| pause_ms <= 60_000), "{shown:?}");
        let reason = JavaException::from_foreign(&shown.exception.unwrap());
        assert!(reason.message.contains("no space left"), "{reason}");
        faulty.heal();
        cluster.env.clock.sleep(Duration::from_secs(60)).await;
        cluster.wait(Some(id)).await.unwrap();
        assert_eq!(waiting(&cluster, id), None);
    });
}

#[test]
fn a_waiting_procedure_runs_after_a_restart() {
    let disk = MemoryFs::new();
    let id = run(async {
        let (cluster, faulty) = on_faulty_disk(&disk).await;
        faulty.add(Rule::new(Fault::NoSpace).at(STAGED));
        let id = create(&cluster, "t").await.unwrap().unwrap();
        cluster.env.clock.sleep(Duration::from_secs(100)).await;
        assert!(waiting(&cluster, id).is_some());
        id
    });
    run(async {
        let env = env(4);
        env.clock.sleep(Duration::from_secs(3600)).await;
        let cluster = Cluster::start(&env, Arc::new(disk.crash(&mut || 0))).await.unwrap();
        cluster.wait(Some(id)).await.unwrap();
        assert_eq!(cluster.state(&TableName::parse("t").unwrap()).await, Some(0));
    });
}

/// Creates a table with a nonce.
async fn create_once(cluster: &Cluster, name: &str) -> Answer<Option<u64>> {
    let request = proto::CreateTableRequest {
        table_schema: (&table(name)).into(),
        nonce_group: Some(7),
        nonce: Some(8),
        ..proto::CreateTableRequest::default()
    };
    Ok(cluster.master.create_table(request).await?.proc_id)
}

#[test]
fn an_outcome_outlives_the_master_until_its_retention_ends() {
    let disk = MemoryFs::new();
    let start = async |seed, pause_s| {
        let env = env(seed);
        env.clock.sleep(Duration::from_secs(pause_s)).await;
        Cluster::start(&env, Arc::new(disk.crash(&mut || 0))).await.unwrap()
    };
    let id = run(async {
        let (cluster, faulty) = on_faulty_disk(&disk).await;
        faulty.add(Rule::new(Fault::NoSpace).at(STAGED).on(Operation::Create).after(1));
        let id = create_once(&cluster, "t").await.unwrap().unwrap();
        cluster.env.clock.sleep(Duration::from_secs(1)).await;
        assert!(abort(&cluster, id, true).await);
        let aborted = cluster.wait(Some(id)).await.unwrap_err();
        assert!(aborted.is(class::PROCEDURE_ABORTED), "{aborted}");
        id
    });
    run(async {
        let cluster = start(4, 100).await;
        assert_eq!(create_once(&cluster, "t").await.unwrap(), Some(id), "the request is repeated");
        let aborted = cluster.wait(Some(id)).await.unwrap_err();
        assert!(aborted.is(class::PROCEDURE_ABORTED), "{aborted}");
        assert_eq!(cluster.state(&TableName::parse("t").unwrap()).await, None);
    });
    run(async {
        let cluster = start(5, 16 * 60).await;
        assert_eq!(cluster.master.procedures().status(id).map(|status| status.work), None);
        let new = create_once(&cluster, "t").await.unwrap();
        assert_ne!(new, Some(id));
        cluster.wait(new).await.unwrap();
    });
}

#[test]
fn an_aborted_creation_leaves_nothing_and_can_be_repeated() {
    let disk = MemoryFs::new();
    run(async {
        let (cluster, faulty) = on_faulty_disk(&disk).await;
        // Two files of the staged table are written before the disk fails.
        faulty.add(Rule::new(Fault::NoSpace).at(STAGED).on(Operation::Create).after(1));
        let id = create(&cluster, "t").await.unwrap().unwrap();
        cluster.env.clock.sleep(Duration::from_secs(100)).await;
        assert!(!abort(&cluster, id, false).await, "it has begun and may not be interrupted");
        assert!(!abort(&cluster, 12_345, true).await, "no such procedure");
        assert!(abort(&cluster, id, true).await);
        let ended = cluster.wait(Some(id)).await.unwrap_err();
        assert!(ended.message.contains("CreateTableProcedure on t was aborted"), "{ended}");
        assert_eq!(listed(&cluster, id).await.state(), proto::ProcedureState::Rolledback);
        assert!(!abort(&cluster, id, true).await, "it has ended");
        faulty.heal();
        let name = TableName::parse("t").unwrap();
        assert_eq!(cluster.state(&name).await, None);
        for dir in [cluster.root.table_dir(&name), cluster.root.staged_table_dir(&name)] {
            assert_eq!(cluster.fs.stat(&dir).await.unwrap(), None, "{dir}");
        }
        cluster.wait(create(&cluster, "t").await.unwrap()).await.unwrap();
    });
    // The abort is durable: the journal is empty.
    run(async {
        let env = env(4);
        env.clock.sleep(Duration::from_secs(3600)).await;
        let cluster = Cluster::start(&env, Arc::new(disk.crash(&mut || 0))).await.unwrap();
        assert!(cluster.master.procedures().list().is_empty());
    });
}

/// An alter closes and reopens each region.
#[test]
fn an_aborted_alter_leaves_no_region_closed() {
    run(async {
        let (cluster, faulty) = on_faulty_disk(&MemoryFs::new()).await;
        alter::two_regions(&cluster).await;
        faulty.add(Rule::new(Fault::NoSpace).at(".tableinfo").on(Operation::Create));
        let id = alter::modify(&cluster).await.unwrap().unwrap();
        while waiting(&cluster, id).is_none() {
            cluster.env.clock.sleep(Duration::from_millis(5)).await;
        }
        // As if the attempt had failed to reopen it.
        let regions = [cluster.regions(&alter::name())[0].info().clone()];
        let assignment = &cluster.master.context().assignment;
        assignment.close(&regions).await.unwrap();
        assert!(abort(&cluster, id, true).await);
        assert!(cluster.wait(Some(id)).await.unwrap_err().message.contains("aborted"));
        cluster.env.clock.sleep(Duration::from_secs(1)).await;
        assert!(matches!(assignment.state(&regions[0]), Some(RegionState::Open(_))));
    });
}

#[test]
fn a_queued_procedure_can_be_aborted() {
    let disk = MemoryFs::new();
    run(async {
        let (cluster, faulty) = on_faulty_disk(&disk).await;
        faulty.add(Rule::new(Fault::NoSpace).at(STAGED));
        let first = create(&cluster, "t").await.unwrap().unwrap();
        let request = proto::EnableTableRequest {
            table_name: (&TableName::parse("t").unwrap()).into(),
            ..proto::EnableTableRequest::default()
        };
        let second = cluster.master.enable_table(request).await.unwrap().proc_id.unwrap();
        cluster.env.clock.sleep(Duration::from_secs(5)).await;
        assert!(abort(&cluster, second, false).await, "it has not begun");
        assert!(cluster.wait(Some(second)).await.unwrap_err().message.contains("aborted"));
        assert_eq!(cluster.master.procedures().status(first).unwrap().progress, Progress::Running);
    });
}

/// A table of two regions, and a disk on which the files of the family `g` of one of them cannot be
/// archived.
async fn with_files_that_cannot_be_archived(disk: &MemoryFs) -> (Cluster, Faulty) {
    let (cluster, faulty) = on_faulty_disk(disk).await;
    alter::two_regions(&cluster).await;
    let family = format!("{}/g/", splits::infos(&cluster)[1].encoded_name());
    faulty.add(Rule::new(Fault::Fail).on(Operation::Rename).at(&family));
    (cluster, faulty)
}

#[test]
fn a_deletion_of_a_family_completes_although_it_was_aborted() {
    run(async {
        let (cluster, faulty) = with_files_that_cannot_be_archived(&MemoryFs::new()).await;
        let request = proto::DeleteColumnRequest {
            table_name: (&alter::name()).into(),
            column_name: "g".into(),
            ..proto::DeleteColumnRequest::default()
        };
        let id = cluster.master.delete_column(request).await.unwrap().proc_id.unwrap();
        cluster.env.clock.sleep(Duration::from_secs(10)).await;
        assert!(faulty.faults() > 0, "the files are to be archived");
        abort(&cluster, id, true).await;
        cluster.env.clock.sleep(Duration::from_secs(10)).await;
        assert_eq!(cluster.master.procedures().status(id).unwrap().progress, Progress::Running);
        faulty.heal();
        cluster.env.clock.sleep(Duration::from_secs(60)).await;
        cluster.wait(Some(id)).await.unwrap();
        alter::add_family(&cluster, "g").await;
        assert_eq!(cluster.cells(&alter::name()).await, ["a/f=1"]);
    });
}

#[test]
fn a_truncation_that_has_begun_completes() {
    run(async {
        let (cluster, faulty) = with_files_that_cannot_be_archived(&MemoryFs::new()).await;
        alter::disable(&cluster).await;
        let id = alter::truncate(&cluster, false).await.unwrap().unwrap();
        cluster.env.clock.sleep(Duration::from_secs(10)).await;
        assert!(faulty.faults() > 0, "the files are to be archived");
        abort(&cluster, id, true).await;
        cluster.env.clock.sleep(Duration::from_secs(10)).await;
        let status = cluster.master.procedures().status(id).unwrap();
        assert_eq!(status.progress, Progress::Running);
        assert!(status.waiting.is_some_and(|waiting| waiting.failures > 1), "it is retried");
        faulty.heal();
        cluster.env.clock.sleep(Duration::from_secs(60)).await;
        cluster.wait(Some(id)).await.unwrap();
        assert!(cluster.cells(&alter::name()).await.is_empty());
    });
}

/// The rows of an enabled table, after the failed truncation has left it disabled.
async fn rows_after_failed_truncation(cluster: &Cluster) -> Vec<String> {
    let staged = cluster.root.staged_table_dir(&alter::name());
    assert_eq!(cluster.fs.stat(&staged).await.unwrap(), None, "{staged}");
    alter::enable(cluster).await;
    cluster.cells(&alter::name()).await
}

/// Puts another file with the name of a file of the region into the archive.
async fn put_conflict(cluster: &Cluster, disk: &MemoryFs, region: &RegionInfo) {
    let files = disk.list(&cluster.root.family_dir(region, b"g")).await.unwrap();
    let file = files.iter().find(|entry| !entry.is_dir).expect("a store file");
    disk.put(&cluster.root.archive_family_dir(region, b"g").join(&file.name), "another file");
}

#[test]
fn a_truncation_whose_files_cannot_be_archived_ends_and_keeps_the_table() {
    let disk = MemoryFs::new();
    run(async {
        let (cluster, _) = on_faulty_disk(&disk).await;
        alter::two_regions(&cluster).await;
        let region = splits::infos(&cluster)[1].clone();
        alter::disable(&cluster).await;
        put_conflict(&cluster, &disk, &region).await;
        let id = alter::truncate(&cluster, false).await.unwrap();
        let ended = cluster.wait(id).await.unwrap_err();
        assert!(ended.message.contains("the file to archive has"), "{ended}");
        assert_eq!(rows_after_failed_truncation(&cluster).await, alter::ROWS);
    });
}

#[test]
fn a_truncation_that_has_archived_nothing_can_be_aborted() {
    run(async {
        let (cluster, faulty) = on_faulty_disk(&MemoryFs::new()).await;
        alter::two_regions(&cluster).await;
        alter::disable(&cluster).await;
        faulty.add(Rule::new(Fault::NoSpace).at(STAGED).on(Operation::Create).after(1));
        let id = alter::truncate(&cluster, false).await.unwrap().unwrap();
        cluster.env.clock.sleep(Duration::from_secs(10)).await;
        assert!(abort(&cluster, id, true).await);
        let ended = cluster.wait(Some(id)).await.unwrap_err();
        assert!(ended.is(class::PROCEDURE_ABORTED), "{ended}");
        faulty.heal();
        assert_eq!(rows_after_failed_truncation(&cluster).await, alter::ROWS);
    });
}

async fn delete_table(cluster: &Cluster) -> u64 {
    let request = proto::DeleteTableRequest {
        table_name: (&alter::name()).into(),
        ..proto::DeleteTableRequest::default()
    };
    cluster.master.delete_table(request).await.unwrap().proc_id.unwrap()
}

#[test]
fn a_deletion_that_has_archived_nothing_can_be_aborted() {
    run(async {
        let (cluster, faulty) = on_faulty_disk(&MemoryFs::new()).await;
        cluster.wait(create(&cluster, "t").await.unwrap()).await.unwrap();
        cluster.put(&alter::name(), "a", "f", "1").await;
        alter::disable(&cluster).await;
        faulty.add(Rule::new(Fault::NoSpace).on(Operation::MakeDirs).at("archive/data/default/t"));
        let id = delete_table(&cluster).await;
        cluster.env.clock.sleep(Duration::from_secs(10)).await;
        assert!(faulty.faults() > 0, "the files are to be archived");
        assert!(abort(&cluster, id, true).await);
        let ended = cluster.wait(Some(id)).await.unwrap_err();
        assert!(ended.is(class::PROCEDURE_ABORTED), "{ended}");
        faulty.heal();
        let descriptor = cluster.root.read_table_descriptor(&*cluster.fs, &alter::name()).await;
        assert_eq!(descriptor.unwrap().name, alter::name());
        alter::enable(&cluster).await;
        assert_eq!(cluster.cells(&alter::name()).await, ["a/f=1"]);
    });
}

/// Otherwise the table could be enabled, and would lack the rows of the archived files.
#[test]
fn a_deletion_that_has_begun_completes_although_it_was_aborted() {
    run(async {
        let (cluster, faulty) = with_files_that_cannot_be_archived(&MemoryFs::new()).await;
        alter::disable(&cluster).await;
        let id = delete_table(&cluster).await;
        cluster.env.clock.sleep(Duration::from_secs(10)).await;
        assert!(faulty.faults() > 0, "the files are to be archived");
        abort(&cluster, id, true).await;
        cluster.env.clock.sleep(Duration::from_secs(10)).await;
        assert_eq!(cluster.master.procedures().status(id).unwrap().progress, Progress::Running);
        faulty.heal();
        cluster.env.clock.sleep(Duration::from_secs(60)).await;
        cluster.wait(Some(id)).await.unwrap();
        assert_eq!(cluster.state(&alter::name()).await, None);
    });
}

#[test]
fn a_deletion_whose_files_cannot_be_archived_ends_and_keeps_the_table() {
    let disk = MemoryFs::new();
    run(async {
        let (cluster, _) = on_faulty_disk(&disk).await;
        alter::two_regions(&cluster).await;
        // The region that is archived last.
        let region = splits::infos(&cluster).into_iter().max_by_key(RegionInfo::encoded_name).unwrap();
        alter::disable(&cluster).await;
        put_conflict(&cluster, &disk, &region).await;
        let id = delete_table(&cluster).await;
        let ended = cluster.wait(Some(id)).await.unwrap_err();
        assert!(ended.message.contains("the file to archive has"), "{ended}");
        alter::enable(&cluster).await;
        assert_eq!(cluster.cells(&alter::name()).await, alter::ROWS);
    });
}

#[test]
fn a_truncation_of_a_region_without_its_description_can_be_aborted() {
    run(async {
        let (cluster, faulty) = on_faulty_disk(&MemoryFs::new()).await;
        alter::two_regions(&cluster).await;
        let region = splits::infos(&cluster)[1].clone();
        alter::disable(&cluster).await;
        cluster.fs.delete(&cluster.root.region_dir(&region).join(".regioninfo")).await.unwrap();
        faulty.add(Rule::new(Fault::NoSpace).at(STAGED).on(Operation::Create).after(1));
        let id = alter::truncate(&cluster, false).await.unwrap().unwrap();
        cluster.env.clock.sleep(Duration::from_secs(10)).await;
        assert!(abort(&cluster, id, true).await);
        let ended = cluster.wait(Some(id)).await.unwrap_err();
        assert!(ended.is(class::PROCEDURE_ABORTED), "{ended}");
        let family = cluster.root.family_dir(&region, b"g");
        assert!(cluster.fs.stat(&family).await.unwrap().is_some(), "the table keeps its files");
    });
}

/// The next master may have deleted the table, so the listed directory may be that of a new table.
#[test]
fn a_replaced_master_archives_no_table() {
    run(async {
        let (cluster, faulty) = on_faulty_disk(&MemoryFs::new()).await;
        alter::two_regions(&cluster).await;
        alter::disable(&cluster).await;
        let delay = Fault::Delay(Duration::from_secs(10));
        faulty.add(Rule::new(delay).on(Operation::List).at("data/default/t").times(1));
        let id = delete_table(&cluster).await;
        while faulty.faults() == 0 {
            cluster.env.clock.sleep(Duration::from_millis(5)).await;
        }
        cluster.replace_master().await;
        cluster.env.clock.sleep(Duration::from_secs(60)).await;
        faulty.heal();
        let regions = cluster.root.list_regions(&*cluster.fs, &alter::name()).await.unwrap();
        assert_eq!(regions.len(), 2);
        assert_eq!(cluster.master.procedures().status(id).unwrap().progress, Progress::Running);
    });
}

/// The next master may have completed the change, and added the family again.
#[test]
fn a_replaced_master_archives_no_family() {
    run(async {
        let (cluster, faulty) = on_faulty_disk(&MemoryFs::new()).await;
        alter::two_regions(&cluster).await;
        let region = cluster.regions(&alter::name())[0].info().clone();
        alter::disable(&cluster).await;
        // The rename of the new descriptor.
        let delay = Fault::Delay(Duration::from_secs(10));
        faulty.add(Rule::new(delay).on(Operation::Rename).at("data/default/t/.tmp").times(1));
        let id = alter::modify(&cluster).await.unwrap().unwrap();
        while faulty.faults() == 0 {
            cluster.env.clock.sleep(Duration::from_millis(5)).await;
        }
        cluster.replace_master().await;
        cluster.env.clock.sleep(Duration::from_secs(60)).await;
        faulty.heal();
        let family = cluster.root.family_dir(&region, b"g");
        assert!(cluster.fs.stat(&family).await.unwrap().is_some());
        assert_eq!(cluster.master.procedures().status(id).unwrap().progress, Progress::Running);
    });
}

#[test]
fn a_final_error_ends_the_procedure_and_keeps_other_files() {
    let disk = MemoryFs::new();
    run(async {
        let cluster = Cluster::start(&env(1), Arc::new(disk.clone())).await.unwrap();
        let name = TableName::parse("t").unwrap();
        let foreign = cluster.root.table_dir(&name).join("0123456789abcdef0123456789abcdef");
        disk.make_dirs(&foreign).await.unwrap();
        let id = create(&cluster, "t").await.unwrap();
        let ended = cluster.wait(id).await.unwrap_err();
        assert!(ended.message.contains("lacks region"), "{ended}");
        assert!(disk.stat(&foreign).await.unwrap().is_some(), "it was not created by this procedure");
        assert_eq!(cluster.state(&name).await, None);
        assert_eq!(cluster.fs.stat(&cluster.root.staged_table_dir(&name)).await.unwrap(), None);
    });
}

#[test]
fn a_repeated_call_is_answered_after_the_procedure_is_durable() {
    let disk = MemoryFs::new();
    run(async {
        let (cluster, faulty) = on_faulty_disk(&disk).await;
        let delay = Fault::Delay(Duration::from_secs(10));
        faulty.add(Rule::new(delay).on(Operation::Sync).at("MasterData"));
        let mut first = pin!(create_once(&cluster, "t"));
        let soon = Duration::from_secs(1);
        assert!(cluster.env.timeout(soon, &mut first).await.is_none(), "the disk is slow");
        // The connection broke, and the client repeats its call.
        let repeated = cluster.env.timeout(soon, create_once(&cluster, "t")).await;
        assert!(repeated.is_none(), "the procedure is not durable: {repeated:?}");
        let (first, repeated) = tokio::join!(first, create_once(&cluster, "t"));
        let id = first.unwrap();
        assert_eq!(repeated.unwrap(), id);
        cluster.wait(id).await.unwrap();
    });
}

/// Both were submitted while the table was disabled. The one with the higher id was the first to
/// get the lock of the table.
#[test]
fn a_procedure_that_is_half_done_is_resumed_before_one_with_a_lower_id() {
    let (disk, name) = (MemoryFs::new(), alter::name());
    let new = RegionInfo::new(name.clone(), "".into(), "".into(), 1);
    run(async {
        let cluster = Cluster::start(&env(1), Arc::new(disk.clone())).await.unwrap();
        alter::two_regions(&cluster).await;
        alter::disable(&cluster).await;
        let plan = TablePlan { table: Box::new(alter::table()), regions: vec![new.clone()] };
        // Of an older version, which archived the table first.
        let truncate = Work::TruncateTable {
            table: name.clone(),
            preserve_splits: false,
            plan: Some(plan),
            stages_first: false,
        };
        let submitted = [(5, Work::EnableTable(name.clone()), false), (6, truncate, true)];
        for (id, work, prepared) in submitted {
            let record = Record { id, work, prepared, submitted_ms: 0, nonce: (0, 0) };
            cluster.journal().put(&record).await.unwrap();
        }
        cluster.root.archive_table(&*cluster.fs, &name).await.unwrap();
        cluster.stop().await;
    });
    run(async {
        let env = env(2);
        env.clock.sleep(Duration::from_secs(3600)).await;
        let cluster = Cluster::start(&env, Arc::new(disk)).await.unwrap();
        cluster.wait(Some(6)).await.unwrap();
        assert!(cluster.wait(Some(5)).await.unwrap_err().is(class::TABLE_NOT_DISABLED));
        let rows = splits::rows_of_meta(&cluster).await;
        assert_eq!(rows.into_iter().map(|row| row.region).collect::<Vec<_>>(), [new]);
        assert!(cluster.cells(&name).await.is_empty());
    });
}

/// Whether the flush of the table that an older client requested has ended.
async fn is_flushed(cluster: &Cluster, flush: &proto::ProcedureDescription) -> bool {
    let request = proto::IsProcedureDoneRequest { procedure: Some(flush.clone()) };
    cluster.master.is_procedure_done(request).await.unwrap().done()
}

#[test]
fn an_older_client_waits_for_its_flush_also_if_another_master_completes_it() {
    let disk = MemoryFs::new();
    let flush = proto::ProcedureDescription {
        signature: "flush-table-proc".into(),
        instance: Some("t".into()),
        ..proto::ProcedureDescription::default()
    };
    run(async {
        let (cluster, faulty) = on_faulty_disk(&disk).await;
        alter::two_regions(&cluster).await;
        faulty.add(Rule::new(Fault::Fail).on(Operation::Create).at("/.tmp/g"));
        let request = proto::ExecProcedureRequest { procedure: flush.clone() };
        cluster.master.exec_procedure(request).await.unwrap();
        cluster.env.clock.sleep(Duration::from_secs(10)).await;
        assert!(!is_flushed(&cluster, &flush).await);
    });
    run(async {
        let env = env(4);
        env.clock.sleep(Duration::from_secs(3600)).await;
        let faulty = Faulty::new(Arc::new(disk.crash(&mut || 0)), Plan::new(env.clock.clone()));
        faulty.add(Rule::new(Fault::Fail).on(Operation::Create).at("/.tmp/g"));
        let cluster = Cluster::start(&env, Arc::new(faulty.clone())).await.unwrap();
        assert!(!is_flushed(&cluster, &flush).await);
        faulty.heal();
        cluster.settle().await;
        assert!(is_flushed(&cluster, &flush).await);
    });
}
