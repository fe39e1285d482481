//! What procedures and chores of the master do with MOB files.

use std::sync::Arc;
use std::time::Duration;

use base::testing::env;
use cell::region::RegionInfo;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use fs::faulty::{Fault, Faulty, Plan, Rule};
use fs::memory::MemoryFs;
use proto::exception::class;
use wire::service::MasterService;

use crate::alter::{disable, enable, name};
use crate::cluster::Cluster;
use crate::snapshots::{cloned, restore, take};
use crate::splits::{infos, run_janitor, split};
use crate::{ProcedureState, power_loss_at_every_call, run};

/// Longer than the period of the cluster's MOB cleaner and the minimum age of an unneeded file.
const CLEANER_PERIOD: Duration = Duration::from_secs(700);
/// A value above the threshold of the table.
const LARGE: &str = "a value in a MOB file";

fn table_with(families: &[&'static str]) -> TableDescriptor {
    let family =
        |name: &&'static str| FamilyDescriptor::new(*name).with("IS_MOB", "true").with("MOB_THRESHOLD", "4");
    families.iter().map(family).fold(TableDescriptor::new(name()), TableDescriptor::with_family)
}

/// Creates a table with a MOB file in each of the families.
async fn create(cluster: &Cluster, families: &[&'static str]) {
    let request = proto::CreateTableRequest {
        table_schema: (&table_with(families)).into(),
        ..proto::CreateTableRequest::default()
    };
    let answer = cluster.master.create_table(request).await.unwrap();
    cluster.wait(answer.proc_id).await.unwrap();
    for family in families {
        cluster.put(&name(), "a", family, LARGE).await;
        cluster.put(&name(), "z", family, LARGE).await;
    }
    flush(cluster).await;
}

async fn flush(cluster: &Cluster) {
    for region in cluster.regions(&name()) {
        region.flush().await.unwrap();
    }
}

async fn mob_files(cluster: &Cluster, table: &TableName, family: &str) -> Vec<String> {
    let listed = cluster.root.list_mob_files(&*cluster.fs, table, family.as_bytes()).await.unwrap();
    listed.into_iter().map(|file| file.name).collect()
}

#[test]
fn files_of_a_split_region_are_archived_only_if_every_store_file_is_known() {
    run(async {
        let cluster = Cluster::start(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
        create(&cluster, &["f"]).await;
        let before = mob_files(&cluster, &name(), "f").await;
        assert_eq!(before.len(), 1);
        cluster.wait(split(&cluster, &infos(&cluster)[0], "m").await.unwrap()).await.unwrap();
        // The compactions of the daughters write the values to MOB files of their own.
        run_janitor(&cluster).await;
        let rows = [format!("a/f={LARGE}"), format!("z/f={LARGE}")];
        assert_eq!(mob_files(&cluster, &name(), "f").await.len(), 3);
        // A directory without `.regioninfo` may contain store files that refer to any file.
        let unknown = RegionInfo::new(name(), "x".into(), "".into(), 9);
        let dir = cluster.root.region_dir(&unknown);
        cluster.fs.make_dirs(&dir).await.unwrap();
        cluster.env.clock.sleep(CLEANER_PERIOD).await;
        assert_eq!(mob_files(&cluster, &name(), "f").await.len(), 3);
        cluster.fs.delete(&dir).await.unwrap();
        // So may a store file on a missing disk.
        let link = cluster.root.family_dir(&infos(&cluster)[0], b"f").join(&"ab".repeat(16));
        cluster.fs.link(&link, "/mnt/missing/file").await.unwrap();
        cluster.env.clock.sleep(CLEANER_PERIOD).await;
        assert_eq!(mob_files(&cluster, &name(), "f").await.len(), 3);
        cluster.fs.delete(&link).await.unwrap();
        cluster.env.clock.sleep(CLEANER_PERIOD).await;
        let after = mob_files(&cluster, &name(), "f").await;
        assert!(after.len() == 2 && !after.contains(&before[0]), "{after:?}");
        assert_eq!(cluster.cells(&name()).await, rows);
    });
}

/// A master that was frozen may take files for unneeded that another master has used since.
#[test]
fn a_replaced_master_archives_no_mob_file() {
    run(async {
        let cluster = Cluster::start(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
        create(&cluster, &["f"]).await;
        cluster.wait(split(&cluster, &infos(&cluster)[0], "m").await.unwrap()).await.unwrap();
        run_janitor(&cluster).await;
        let before = mob_files(&cluster, &name(), "f").await;
        assert_eq!(before.len(), 3, "one is unneeded");
        cluster.take_master_store().await;
        cluster.env.clock.sleep(2 * CLEANER_PERIOD).await;
        assert_eq!(mob_files(&cluster, &name(), "f").await, before);
    });
}

/// A disabled table with a MOB file in the family `g`, which the snapshot `s` does not have.
async fn disabled_with_added_family(cluster: &Cluster) {
    create(cluster, &["f"]).await;
    cluster.wait(take(cluster, "s", &name()).await.unwrap()).await.unwrap();
    let request = proto::AddColumnRequest {
        table_name: (&name()).into(),
        column_families: (&table_with(&["g"]).families[&b"g"[..]]).into(),
        ..proto::AddColumnRequest::default()
    };
    cluster.wait(cluster.master.add_column(request).await.unwrap().proc_id).await.unwrap();
    cluster.put(&name(), "a", "g", LARGE).await;
    flush(cluster).await;
    assert_eq!(mob_files(cluster, &name(), "g").await.len(), 1);
    disable(cluster).await;
}

#[test]
fn a_restore_archives_the_mob_files_of_families_that_the_snapshot_lacks() {
    run(async {
        let cluster = Cluster::start(&env(2), Arc::new(MemoryFs::new())).await.unwrap();
        disabled_with_added_family(&cluster).await;
        cluster.wait(restore(&cluster, "s", &name()).await.unwrap()).await.unwrap();
        assert!(mob_files(&cluster, &name(), "g").await.is_empty());
        assert!(!mob_files(&cluster, &name(), "f").await.is_empty());
        let archive = cluster.root.archive_family_dir(&layout::mob::pseudo_region(&name()), b"g");
        assert_eq!(cluster.fs.list(&archive).await.unwrap().len(), 1);
    });
}

#[test]
fn a_restore_that_removes_a_mob_family_is_atomic() {
    power_loss_at_every_call(
        5,
        async |cluster| disabled_with_added_family(cluster).await,
        async |cluster| restore(cluster, "s", &name()).await,
        async |cluster, state| {
            enable(cluster).await;
            let cells = cluster.cells(&name()).await;
            let [first, last] = ["a", "z"].map(|row| format!("{row}/f={LARGE}"));
            if cells == [first.clone(), format!("a/g={LARGE}"), last.clone()] {
                assert_eq!(state, ProcedureState::Unknown, "a submitted procedure must complete");
                return;
            }
            assert_eq!(cells, [first, last]);
            assert!(mob_files(cluster, &name(), "g").await.is_empty());
        },
    );
}

#[test]
fn an_aborted_clone_leaves_no_links_to_mob_files() {
    run(async {
        let env = env(3);
        let faulty = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
        let cluster = Cluster::start(&env, Arc::new(faulty.clone())).await.unwrap();
        create(&cluster, &["f"]).await;
        cluster.wait(take(&cluster, "s", &name()).await.unwrap()).await.unwrap();
        // The links to MOB files exist when a link to a store file cannot be created.
        let store_link = format!("/t={}", infos(&cluster)[0].encoded_name());
        faulty.add(Rule::new(Fault::NoSpace).at(&store_link));
        let proc_id = restore(&cluster, "s", &cloned()).await.unwrap().unwrap();
        cluster.env.clock.sleep(Duration::from_secs(10)).await;
        assert_eq!(mob_files(&cluster, &cloned(), "f").await.len(), 1);
        faulty.heal();
        let request = proto::AbortProcedureRequest { proc_id, may_interrupt_if_running: Some(true) };
        assert!(cluster.master.abort_procedure(request).await.unwrap().is_procedure_aborted);
        assert!(cluster.wait(Some(proc_id)).await.unwrap_err().is(class::PROCEDURE_ABORTED));
        assert!(mob_files(&cluster, &cloned(), "f").await.is_empty());
    });
}

/// The directories of a table exist, but `hbase:meta` has lost its rows.
#[test]
fn a_refused_creation_leaves_the_mob_files_of_a_lost_table() {
    run(async {
        let cluster = Cluster::start(&env(4), Arc::new(MemoryFs::new())).await.unwrap();
        create(&cluster, &["f"]).await;
        let before = mob_files(&cluster, &name(), "f").await;
        assert_eq!(before.len(), 1);
        let context = cluster.master.context();
        context.meta.remove_table(&name(), &infos(&cluster)).await.unwrap();
        cluster.env.clock.sleep(Duration::from_secs(1)).await;
        let request = proto::CreateTableRequest {
            table_schema: (&table_with(&["f"])).into(),
            ..proto::CreateTableRequest::default()
        };
        let answer = cluster.master.create_table(request).await.unwrap();
        let refused = cluster.wait(answer.proc_id).await.unwrap_err();
        assert!(refused.message.contains("lacks region"), "{refused}");
        assert_eq!(mob_files(&cluster, &name(), "f").await, before);
    });
}
