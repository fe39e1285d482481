//! Taking, cloning, restoring and deleting snapshots.

use std::sync::Arc;
use std::time::Duration;

use base::testing::env;
use bytes::Bytes;
use cell::mutation::Mutation;
use cell::region::RegionInfo;
use cell::schema::TableName;
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use proto::exception::{Answer, class};
use wire::service::MasterService;

use crate::alter::{ROWS, disable, enable, name, table, two_regions};
use crate::cluster::Cluster;
use crate::splits::{infos, rows_of_meta, split};
use crate::{ProcedureState, power_loss_at_every_call, run};

const ENABLED: i32 = 0;

fn described(snapshot: &str, table: &TableName) -> proto::SnapshotDescription {
    proto::SnapshotDescription {
        name: snapshot.into(),
        table: Some(table.to_string()),
        ..proto::SnapshotDescription::default()
    }
}

pub async fn take(cluster: &Cluster, snapshot: &str, table: &TableName) -> Answer<Option<u64>> {
    let request =
        proto::SnapshotRequest { snapshot: described(snapshot, table), ..proto::SnapshotRequest::default() };
    Ok(cluster.master.snapshot(request).await?.proc_id.map(|id| u64::try_from(id).unwrap()))
}

pub async fn restore(cluster: &Cluster, snapshot: &str, table: &TableName) -> Answer<Option<u64>> {
    let request = proto::RestoreSnapshotRequest {
        snapshot: described(snapshot, table),
        ..proto::RestoreSnapshotRequest::default()
    };
    Ok(Some(cluster.master.restore_snapshot(request).await?.proc_id))
}

async fn delete(cluster: &Cluster, snapshot: &str) -> Answer<()> {
    let request = proto::DeleteSnapshotRequest { snapshot: described(snapshot, &name()) };
    cluster.master.delete_snapshot(request).await.map(|_| ())
}

async fn list(cluster: &Cluster) -> Vec<String> {
    let request = proto::GetCompletedSnapshotsRequest {};
    let answer = cluster.master.get_completed_snapshots(request).await.unwrap();
    answer.snapshots.into_iter().map(|snapshot| snapshot.name).collect()
}

pub fn cloned() -> TableName {
    TableName::parse("clone").unwrap()
}

async fn major_compact(cluster: &Cluster, table: &TableName) {
    for region in cluster.regions(table) {
        region.flush().await.unwrap();
        region.compact(None, engine::region::CompactionKind::Major).await.unwrap();
    }
}

#[test]
fn a_clone_is_independent_of_the_table() {
    let disk = MemoryFs::new();
    run(async {
        let cluster = Cluster::start(&env(1), Arc::new(disk.clone())).await.unwrap();
        two_regions(&cluster).await;
        cluster.wait(take(&cluster, "s", &name()).await.unwrap()).await.unwrap();
        assert!(take(&cluster, "s", &name()).await.unwrap_err().is(class::SNAPSHOT_EXISTS));
        assert!(take(&cluster, "s2", &cloned()).await.unwrap_err().is(class::SNAPSHOT_CREATION));
        assert!(restore(&cluster, "no", &cloned()).await.unwrap_err().is(class::SNAPSHOT_DOES_NOT_EXIST));
        assert!(take(&cluster, "../s", &name()).await.is_err());
        cluster.put(&name(), "a", "f", "later").await;
        cluster.wait(restore(&cluster, "s", &cloned()).await.unwrap()).await.unwrap();
        assert_eq!(cluster.cells(&cloned()).await, ROWS);
        // The snapshot's files are moved to the archive; then the snapshot and the table are
        // deleted.
        major_compact(&cluster, &name()).await;
        delete(&cluster, "s").await.unwrap();
        assert!(delete(&cluster, "s").await.unwrap_err().is(class::SNAPSHOT_DOES_NOT_EXIST));
        assert!(list(&cluster).await.is_empty());
        disable(&cluster).await;
        let request = proto::DeleteTableRequest { table_name: (&name()).into(), ..Default::default() };
        cluster.wait(cluster.master.delete_table(request).await.unwrap().proc_id).await.unwrap();
        assert_eq!(cluster.cells(&cloned()).await, ROWS);
        cluster.put(&cloned(), "c", "f", "own").await;
        cluster.stop().await;
    });
    run(async {
        let env = env(2);
        env.clock.sleep(Duration::from_secs(3600)).await;
        let cluster = Cluster::start(&env, Arc::new(disk)).await.unwrap();
        let rows = ["a/f=1", "b/g=3", "c/f=own", "z/g=2"];
        assert_eq!(cluster.cells(&cloned()).await, rows);
        // A clone of the clone links to the same files.
        cluster.wait(take(&cluster, "s", &cloned()).await.unwrap()).await.unwrap();
        let second = TableName::parse("second").unwrap();
        cluster.wait(restore(&cluster, "s", &second).await.unwrap()).await.unwrap();
        major_compact(&cluster, &cloned()).await;
        assert_eq!(cluster.cells(&cloned()).await, rows);
        assert_eq!(cluster.cells(&second).await, rows);
    });
}

#[test]
fn taking_a_snapshot_is_atomic() {
    power_loss_at_every_call(
        3,
        async |cluster| two_regions(cluster).await,
        async |cluster| take(cluster, "s", &name()).await,
        async |cluster, state| {
            if list(cluster).await.is_empty() {
                assert_eq!(state, ProcedureState::Unknown, "a submitted procedure must complete");
                cluster.wait(take(cluster, "s", &name()).await.unwrap()).await.unwrap();
            }
            cluster.put(&name(), "a", "f", "later").await;
            cluster.wait(restore(cluster, "s", &cloned()).await.unwrap()).await.unwrap();
            assert_eq!(cluster.cells(&cloned()).await, ROWS);
        },
    );
}

#[test]
fn restoring_a_region_that_was_split_keeps_its_row_in_meta() {
    run(async {
        let env = env(4);
        let cluster = Cluster::start(&env, Arc::new(MemoryFs::new())).await.unwrap();
        two_regions(&cluster).await;
        cluster.wait(take(&cluster, "s", &name()).await.unwrap()).await.unwrap();
        let before = infos(&cluster);
        cluster.wait(split(&cluster, &before[0], "b").await.unwrap()).await.unwrap();
        assert_eq!(infos(&cluster).len(), 3);
        disable(&cluster).await;
        cluster.wait(restore(&cluster, "s", &name()).await.unwrap()).await.unwrap();
        let rows = rows_of_meta(&cluster).await;
        assert!(!rows.iter().any(wire::meta::MetaRow::is_split_parent), "{rows:?}");
        assert_eq!(rows.into_iter().map(|row| row.region).collect::<Vec<_>>(), before);
        enable(&cluster).await;
        assert_eq!(cluster.cells(&name()).await, ROWS);
    });
}

#[test]
fn cloning_is_atomic() {
    power_loss_at_every_call(
        3,
        async |cluster| {
            two_regions(cluster).await;
            cluster.wait(take(cluster, "s", &name()).await.unwrap()).await.unwrap();
        },
        async |cluster| restore(cluster, "s", &cloned()).await,
        async |cluster, state| {
            if cluster.state(&cloned()).await.is_none() {
                assert_eq!(state, ProcedureState::Unknown, "a submitted procedure must complete");
                cluster.wait(restore(cluster, "s", &cloned()).await.unwrap()).await.unwrap();
            }
            assert_eq!(cluster.state(&cloned()).await, Some(ENABLED));
            assert_eq!(cluster.cells(&cloned()).await, ROWS);
        },
    );
}

#[test]
fn restoring_is_atomic() {
    power_loss_at_every_call(
        3,
        async |cluster| {
            two_regions(cluster).await;
            cluster.wait(take(cluster, "s", &name()).await.unwrap()).await.unwrap();
            cluster.put(&name(), "c", "f", "later").await;
            disable(cluster).await;
        },
        async |cluster| restore(cluster, "s", &name()).await,
        async |cluster, state| {
            enable(cluster).await;
            let cells = cluster.cells(&name()).await;
            if cells == ["a/f=1", "b/g=3", "c/f=later", "z/g=2"] {
                assert_eq!(state, ProcedureState::Unknown, "a submitted procedure must complete");
                return;
            }
            assert_eq!(cells, ROWS);
        },
    );
}

/// The log still has the writes after the snapshot when the process is killed.
#[test]
fn reverted_edits_are_not_replayed_from_the_log() {
    let disk = MemoryFs::new();
    run(async {
        let cluster = Cluster::start(&env(1), Arc::new(disk.clone())).await.unwrap();
        two_regions(&cluster).await;
        cluster.wait(take(&cluster, "s", &name()).await.unwrap()).await.unwrap();
        cluster.put(&name(), "c", "f", "later").await;
        assert!(restore(&cluster, "s", &name()).await.is_err(), "the table is enabled");
        disable(&cluster).await;
        cluster.wait(restore(&cluster, "s", &name()).await.unwrap()).await.unwrap();
        enable(&cluster).await;
        cluster.put(&name(), "d", "f", "new").await;
    });
    let image = disk.crash(&mut || 0);
    run(async {
        let env = env(2);
        env.clock.sleep(Duration::from_secs(3600)).await;
        let cluster = Cluster::start(&env, Arc::new(image)).await.unwrap();
        assert_eq!(cluster.cells(&name()).await, ["a/f=1", "b/g=3", "d/f=new", "z/g=2"]);
    });
}

/// A standalone server was killed, and its regions cannot be opened since. Their edits, which only
/// logs have, were made before the restore.
#[test]
fn edits_of_regions_that_cannot_be_opened_are_reverted_by_a_restore() {
    let disk = MemoryFs::new();
    run(async {
        let env = env(1);
        let cluster = Cluster::start(&env, Arc::new(disk.clone())).await.unwrap();
        two_regions(&cluster).await;
        cluster.wait(take(&cluster, "s", &name()).await.unwrap()).await.unwrap();
        cluster.put(&name(), "c", "f", "later").await;
    });
    let image = disk.crash(&mut || 0);
    run(async {
        let env = env(2);
        env.clock.sleep(std::time::Duration::from_secs(3600)).await;
        let faulty = Faulty::new(Arc::new(image.clone()), Plan::new(env.clock.clone()));
        faulty.add(Rule::new(Fault::Fail).on(Operation::List).at("/f"));
        let cluster = Cluster::start(&env, Arc::new(faulty.clone())).await.unwrap();
        assert!(cluster.regions(&name()).is_empty(), "no region can be opened");
        disable(&cluster).await;
        faulty.heal();
        cluster.wait(restore(&cluster, "s", &name()).await.unwrap()).await.unwrap();
        enable(&cluster).await;
        assert_eq!(cluster.cells(&name()).await, ROWS);
        cluster.put(&name(), "d", "f", "new").await;
    });
    // The logs of both runs are replayed.
    let image = image.crash(&mut || 0);
    run(async {
        let env = env(3);
        env.clock.sleep(std::time::Duration::from_secs(7200)).await;
        let cluster = Cluster::start(&env, Arc::new(image)).await.unwrap();
        let cells = cluster.cells(&name()).await;
        assert_eq!(cells.len(), ROWS.len() + 1, "{cells:?}");
        assert!(
            cells.contains(&"d/f=new".to_string()) && !cells.contains(&"c/f=later".to_string()),
            "{cells:?}"
        );
    });
}

/// A file that was compacted away and could not be archived is not part of a snapshot.
#[test]
fn a_snapshot_of_a_disabled_table_has_no_replaced_files() {
    run(async {
        let env = env(1);
        let disk = MemoryFs::new();
        let faulty = Faulty::new(Arc::new(disk.clone()), Plan::new(env.clock.clone()));
        let cluster = Cluster::start(&env, Arc::new(faulty.clone())).await.unwrap();
        two_regions(&cluster).await;
        for region in cluster.regions(&name()) {
            region.flush().await.unwrap();
        }
        cluster.delete(&name(), "a").await;
        // Files stay in their stores.
        for region in cluster.regions(&name()) {
            let store = format!("data/default/t/{}/f/", region.info().encoded_name());
            faulty.add(Rule::new(Fault::Fail).on(Operation::Rename).at(&store));
        }
        major_compact(&cluster, &name()).await;
        let expected = cluster.cells(&name()).await;
        disable(&cluster).await;
        cluster.wait(take(&cluster, "s", &name()).await.unwrap()).await.unwrap();
        faulty.heal();
        cluster.wait(restore(&cluster, "s", &cloned()).await.unwrap()).await.unwrap();
        assert_eq!(cluster.cells(&cloned()).await, expected);
    });
}

/// A disk and two tables, `t` and a clone of it.
async fn two_tables() -> (Cluster, Faulty) {
    let env = env(1);
    let faulty = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
    let cluster = Cluster::start(&env, Arc::new(faulty.clone())).await.unwrap();
    two_regions(&cluster).await;
    cluster.wait(take(&cluster, "first", &name()).await.unwrap()).await.unwrap();
    cluster.wait(restore(&cluster, "first", &cloned()).await.unwrap()).await.unwrap();
    (cluster, faulty)
}

#[test]
fn a_snapshot_is_refused_while_one_of_another_table_has_its_name() {
    run(async {
        let (cluster, faulty) = two_tables().await;
        let delay = Fault::Delay(Duration::from_secs(10));
        faulty.add(Rule::new(delay).on(Operation::Create).at("data.manifest"));
        let id = take(&cluster, "s", &name()).await.unwrap();
        let refused = take(&cluster, "s", &cloned()).await.unwrap_err();
        assert!(refused.is(class::SNAPSHOT_CREATION), "{refused}");
        assert_eq!(
            refused.message,
            "Rejected taking { ss=s table=clone type=FLUSH ttl=0 } because we are already running another snapshot \
             with the same name"
        );
        cluster.wait(id).await.unwrap();
    });
}

/// Both were submitted at the same time.
#[test]
fn one_of_two_snapshots_of_the_same_name_is_refused() {
    run(async {
        let (cluster, faulty) = two_tables().await;
        for delay_s in [10, 20] {
            let delay = Fault::Delay(Duration::from_secs(delay_s));
            faulty.add(Rule::new(delay).on(Operation::Create).at("data.manifest").times(1));
        }
        let ended = async |table: &TableName| match take(&cluster, "s", table).await {
            Ok(id) => cluster.wait(id).await,
            Err(refused) => Err(refused),
        };
        let (table, clone) = (name(), cloned());
        let (first, second) = tokio::join!(ended(&table), ended(&clone));
        assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
        let taken = if first.is_ok() { table } else { clone };
        let described = cluster.root.find_snapshot(&*cluster.fs, "s").await.unwrap().unwrap();
        assert_eq!(described.table(), taken.to_string());
        assert_eq!(cluster.root.read_snapshot(&*cluster.fs, "s").await.unwrap().table.name, taken);
    });
}

/// The clone's links are the only ones to files of a dropped table. They are archived while the
/// cleaner runs, after a snapshot that the cleaner has not listed.
#[test]
fn the_cleaner_keeps_files_of_a_snapshot_that_is_taken_while_it_runs() {
    run(async {
        let (cluster, faulty) = two_tables().await;
        delete(&cluster, "first").await.unwrap();
        disable(&cluster).await;
        let request = proto::DeleteTableRequest { table_name: (&name()).into(), ..Default::default() };
        cluster.wait(cluster.master.delete_table(request).await.unwrap().proc_id).await.unwrap();
        cluster.env.clock.sleep(Duration::from_secs(1250)).await;
        let delay = Fault::Delay(Duration::from_secs(10));
        faulty.add(Rule::new(delay).on(Operation::List).at("data/default/clone").times(1));
        let clean = cluster.master.run_cleaner_chore(proto::RunCleanerChoreRequest {});
        let change = async {
            cluster.env.clock.sleep(Duration::from_secs(1)).await;
            assert_eq!(faulty.faults(), 1, "the cleaner has listed the snapshots");
            cluster.wait(take(&cluster, "s", &cloned()).await.unwrap()).await.unwrap();
            major_compact(&cluster, &cloned()).await;
            for region in cluster.regions(&cloned()) {
                region.archive_retired().await;
            }
        };
        let (cleaned, ()) = tokio::join!(clean, change);
        cleaned.unwrap();
        let second = TableName::parse("second").unwrap();
        cluster.wait(restore(&cluster, "s", &second).await.unwrap()).await.unwrap();
        assert_eq!(cluster.cells(&second).await, ROWS);
    });
}

/// A flush during a snapshot adds its files to the lists of all families, or to none.
#[test]
fn a_snapshot_lists_the_families_of_a_region_at_the_same_time() {
    run(async {
        let env = env(1);
        let faulty = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
        let cluster = Cluster::start(&env, Arc::new(faulty.clone())).await.unwrap();
        two_regions(&cluster).await;
        // The snapshot waits when it has the list of the first family.
        let family = format!("{}/f/", infos(&cluster)[0].encoded_name());
        let delay = Fault::Delay(Duration::from_secs(10));
        faulty.add(Rule::new(delay).on(Operation::Stat).at(&family).times(1));
        let id = take(&cluster, "s", &name()).await.unwrap();
        env.clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(faulty.faults(), 1, "the snapshot waits");
        for family in ["f", "g"] {
            cluster.put(&name(), "c", family, "later").await;
        }
        for region in cluster.regions(&name()) {
            region.flush().await.unwrap();
        }
        cluster.wait(id).await.unwrap();
        cluster.wait(restore(&cluster, "s", &cloned()).await.unwrap()).await.unwrap();
        assert_eq!(cluster.cells(&cloned()).await, ROWS);
    });
}

/// A snapshot with the files of a later flush of one family would have parts of rows.
#[test]
fn a_snapshot_has_no_file_of_a_later_flush_of_one_family() {
    run(async {
        let env = env(1);
        let faulty = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
        let cluster = Cluster::start(&env, Arc::new(faulty.clone())).await.unwrap();
        two_regions(&cluster).await;
        let region =
            cluster.regions(&name()).into_iter().find(|region| region.info().contains(b"c")).unwrap();
        // The flush of the snapshot archives a file that a compaction has replaced. So its call
        // returns long after the flush has ended.
        let store = format!("data/default/t/{}/f/", region.info().encoded_name());
        faulty.add(Rule::new(Fault::Fail).on(Operation::Rename).at(&store));
        major_compact(&cluster, &name()).await;
        faulty.heal();
        let faults = faulty.faults();
        let delay = Fault::Delay(Duration::from_secs(10));
        faulty.add(Rule::new(delay).on(Operation::Rename).at(&store).times(1));
        let id = take(&cluster, "s", &name()).await.unwrap();
        env.clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(faulty.faults(), faults + 1, "the flush has ended");
        for family in ["f", "g"] {
            cluster.put(&name(), "c", family, "later").await;
        }
        region.flush_families(&[Bytes::from_static(b"g")]).await.unwrap();
        cluster.wait(id).await.unwrap();
        cluster.wait(restore(&cluster, "s", &cloned()).await.unwrap()).await.unwrap();
        assert_eq!(cluster.cells(&cloned()).await, ROWS);
    });
}

#[test]
fn a_snapshot_of_a_disabled_table_fails_while_a_disk_is_missing() {
    run(async {
        let cluster = Cluster::start(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
        two_regions(&cluster).await;
        let dir = cluster.root.family_dir(&infos(&cluster)[0], b"f");
        disable(&cluster).await;
        let name_of_file = cluster.fs.list(&dir).await.unwrap().remove(0).name;
        let (file, aside) = (dir.join(&name_of_file), FilePath::new("aside"));
        cluster.fs.rename(&file, &aside).await.unwrap();
        cluster.fs.link(&file, "/mnt/missing/file").await.unwrap();
        let failed = cluster.wait(take(&cluster, "s", &name()).await.unwrap()).await.unwrap_err();
        assert!(failed.message.contains(&name_of_file), "{failed}");
        assert!(list(&cluster).await.is_empty());
        cluster.fs.rename(&aside, &file).await.unwrap();
        cluster.wait(take(&cluster, "s", &name()).await.unwrap()).await.unwrap();
        cluster.wait(restore(&cluster, "s", &cloned()).await.unwrap()).await.unwrap();
        assert_eq!(cluster.cells(&cloned()).await, ROWS);
    });
}

#[test]
fn edits_of_a_region_that_was_being_disabled_at_a_kill_are_reverted_by_a_restore() {
    let disk = MemoryFs::new();
    run(async {
        let env = env(1);
        let faulty = Faulty::new(Arc::new(disk.clone()), Plan::new(env.clock.clone()));
        let cluster = Cluster::start(&env, Arc::new(faulty.clone())).await.unwrap();
        two_regions(&cluster).await;
        cluster.wait(take(&cluster, "s", &name()).await.unwrap()).await.unwrap();
        cluster.put(&name(), "c", "f", "later").await;
        // The regions cannot be flushed, so they stay open.
        faulty.add(Rule::new(Fault::Fail).on(Operation::Create).at("data/default/t"));
        let disabled = env.timeout(Duration::from_secs(30), disable(&cluster)).await;
        assert!(disabled.is_none(), "the regions cannot be closed");
    });
    let image = disk.crash(&mut || 0);
    run(async {
        let env = env(2);
        env.clock.sleep(Duration::from_secs(3600)).await;
        let cluster = Cluster::start(&env, Arc::new(image)).await.unwrap();
        cluster.settle().await;
        cluster.wait(restore(&cluster, "s", &name()).await.unwrap()).await.unwrap();
        enable(&cluster).await;
        assert_eq!(cluster.cells(&name()).await, ROWS);
    });
}

/// Restores a disabled table on a disk with the fault that `fault` returns for its first region.
/// Meanwhile the snapshot is deleted, as by a call that checked earlier that no procedure uses it.
async fn restore_without_snapshot(fault: impl FnOnce(&RegionInfo) -> Rule) -> (Cluster, Answer<()>) {
    let env = env(1);
    let faulty = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
    let cluster = Cluster::start(&env, Arc::new(faulty.clone())).await.unwrap();
    two_regions(&cluster).await;
    cluster.wait(take(&cluster, "s", &name()).await.unwrap()).await.unwrap();
    cluster.put(&name(), "c", "f", "later").await;
    let region = infos(&cluster)[0].clone();
    disable(&cluster).await;
    faulty.add(fault(&region));
    let id = restore(&cluster, "s", &name()).await.unwrap();
    env.clock.sleep(Duration::from_secs(1)).await;
    assert!(faulty.faults() > 0, "the restore waits");
    cluster.root.delete_snapshot(&*cluster.fs, "s").await.unwrap();
    faulty.heal();
    let ended = cluster.wait(id).await;
    enable(&cluster).await;
    (cluster, ended)
}

#[test]
fn a_restore_ends_if_the_snapshot_was_deleted_before_its_first_change() {
    run(async {
        let (cluster, ended) = restore_without_snapshot(|_| Rule::new(Fault::Fail).at(".tmp/data")).await;
        let ended = ended.unwrap_err();
        assert!(ended.is(class::SNAPSHOT_DOES_NOT_EXIST), "{ended}");
        assert_eq!(cluster.cells(&name()).await, ["a/f=1", "b/g=3", "c/f=later", "z/g=2"]);
    });
}

#[test]
fn a_restore_completes_although_the_snapshot_was_deleted_after_its_first_change() {
    run(async {
        // Its files cannot be moved to the archive.
        let fault = |region: &RegionInfo| {
            let family = format!("{}/f/", region.encoded_name());
            Rule::new(Fault::Fail).on(Operation::Rename).at(&family)
        };
        let (cluster, ended) = restore_without_snapshot(fault).await;
        ended.unwrap();
        assert_eq!(cluster.cells(&name()).await, ROWS);
    });
}

/// Creates the table with regions whose first rows are `a`, `b`, and so on.
async fn create_regions(cluster: &Cluster, count: u8) {
    let request = proto::CreateTableRequest {
        table_schema: (&table()).into(),
        split_keys: (1..count).map(|at| vec![b'a' + at].into()).collect(),
        ..proto::CreateTableRequest::default()
    };
    cluster.wait(cluster.master.create_table(request).await.unwrap().proc_id).await.unwrap();
}

#[test]
fn a_slow_server_delays_no_flush_of_another_server() {
    const REGIONS: u8 = 12;
    run(async {
        let env = env(1);
        let disk: Arc<dyn FileSystem> = Arc::new(MemoryFs::new());
        let slow = Faulty::new(disk.clone(), Plan::new(env.clock.clone()));
        let cluster = Cluster::start_with_processes(&env, Arc::new(slow.clone())).await.unwrap();
        create_regions(&cluster, REGIONS).await;
        for at in 0..REGIONS - 1 {
            cluster.put(&name(), &char::from(b'a' + at).to_string(), "f", "1").await;
        }
        let fast = cluster.add_server_with_access(4, disk).await;
        let assignment = &cluster.master.context().assignment;
        let (last, _) = assignment.regions_of(&name()).pop().unwrap();
        assignment.move_to(&last, fast.name()).await.unwrap();
        let region = fast.regions().all().into_iter().find(|region| region.info() == &last).unwrap();
        let cell = KeyValue::new(b"z", b"f", b"q", LATEST_TIMESTAMP, CellType::Put, b"1");
        region.batch_atomic(vec![Mutation::put("z", vec![cell])]).await.unwrap();
        let delay = Fault::Delay(Duration::from_secs(5));
        slow.add(Rule::new(delay).on(Operation::Create).at("/.tmp/f"));
        let request = proto::FlushTableRequest { table_name: (&name()).into(), ..Default::default() };
        let id = cluster.master.flush_table(request).await.unwrap().proc_id;
        env.clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(slow.faults(), 3, "three regions are flushed at the same time");
        assert_eq!(region.metrics().memstore_data_bytes, 0, "the last region was flushed");
        cluster.wait(id).await.unwrap();
        assert!(slow.faults() >= u64::from(REGIONS - 1));
    });
}

#[test]
fn regions_are_flushed_several_at_a_time() {
    const REGIONS: u8 = 12;
    run(async {
        let env = env(1);
        let faulty = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
        let cluster = Cluster::start(&env, Arc::new(faulty.clone())).await.unwrap();
        create_regions(&cluster, REGIONS).await;
        // Each flush takes at least a second.
        let delay = Fault::Delay(Duration::from_secs(1));
        faulty.add(Rule::new(delay).on(Operation::Create).at("/.tmp/f"));
        let put_all = async |value| {
            for at in 0..REGIONS {
                cluster.put(&name(), &char::from(b'a' + at).to_string(), "f", value).await;
            }
        };
        put_all("1").await;
        let begun = env.clock.monotonic();
        cluster.wait(take(&cluster, "s", &name()).await.unwrap()).await.unwrap();
        let took = env.clock.monotonic() - begun;
        assert!(faulty.faults() >= u64::from(REGIONS) && took < Duration::from_secs(8), "{took:?}");
        put_all("2").await;
        let begun = env.clock.monotonic();
        let request = proto::FlushTableRequest { table_name: (&name()).into(), ..Default::default() };
        cluster.wait(cluster.master.flush_table(request).await.unwrap().proc_id).await.unwrap();
        let took = env.clock.monotonic() - begun;
        assert!(faulty.faults() >= 2 * u64::from(REGIONS) && took < Duration::from_secs(8), "{took:?}");
        // The snapshot has the regions in order.
        let manifest = cluster.root.read_snapshot(&*cluster.fs, "s").await.unwrap();
        let taken: Vec<RegionInfo> = manifest.regions.into_iter().map(|region| region.info).collect();
        assert_eq!(taken, infos(&cluster));
    });
}

/// The next master may have removed the snapshot, and taken another one of the same name.
#[test]
fn a_replaced_master_removes_no_snapshot() {
    run(async {
        let cluster = Cluster::start(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
        two_regions(&cluster).await;
        let snapshot = proto::SnapshotDescription { ttl: Some(1), ..described("s", &name()) };
        let request = proto::SnapshotRequest { snapshot, ..proto::SnapshotRequest::default() };
        cluster.master.snapshot(request).await.unwrap();
        cluster.settle().await;
        cluster.take_master_store().await;
        assert!(delete(&cluster, "s").await.is_err());
        // Longer than the period of the search for expired snapshots.
        cluster.env.clock.sleep(Duration::from_secs(3000)).await;
        assert_eq!(list(&cluster).await, ["s"]);
    });
}
