//! Truncating and altering tables.

use std::sync::Arc;

use base::testing::env;
use bytes::Bytes;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use fs::memory::MemoryFs;
use proto::exception::{Answer, class};
use wire::service::MasterService;

use crate::cluster::Cluster;
use crate::{ProcedureState, power_loss_at_every_call, run};

const ENABLED: i32 = 0;
const DISABLED: i32 = 1;

pub fn name() -> TableName {
    TableName::parse("t").unwrap()
}

pub fn table() -> TableDescriptor {
    TableDescriptor::new(name())
        .with_family(FamilyDescriptor::new("f").with("VERSIONS", "1"))
        .with_family(FamilyDescriptor::new("g").with("VERSIONS", "1"))
}

/// Creates a table of two regions, with rows in files and rows that only the log has.
pub async fn two_regions(cluster: &Cluster) {
    let request = proto::CreateTableRequest {
        table_schema: (&table()).into(),
        split_keys: vec!["m".into()],
        ..proto::CreateTableRequest::default()
    };
    let answer = cluster.master.create_table(request).await.unwrap();
    cluster.wait(answer.proc_id).await.unwrap();
    cluster.put(&name(), "a", "f", "1").await;
    cluster.put(&name(), "z", "g", "2").await;
    for region in cluster.regions(&name()) {
        region.flush().await.unwrap();
    }
    cluster.put(&name(), "b", "g", "3").await;
}

pub const ROWS: [&str; 3] = ["a/f=1", "b/g=3", "z/g=2"];

pub async fn disable(cluster: &Cluster) {
    let request =
        proto::DisableTableRequest { table_name: (&name()).into(), ..proto::DisableTableRequest::default() };
    let answer = cluster.master.disable_table(request).await.unwrap();
    cluster.wait(answer.proc_id).await.unwrap();
}

pub async fn enable(cluster: &Cluster) {
    let request =
        proto::EnableTableRequest { table_name: (&name()).into(), ..proto::EnableTableRequest::default() };
    let answer = cluster.master.enable_table(request).await.unwrap();
    cluster.wait(answer.proc_id).await.unwrap();
}

pub async fn truncate(cluster: &Cluster, preserve_splits: bool) -> Answer<Option<u64>> {
    let request = proto::TruncateTableRequest {
        table_name: (&name()).into(),
        preserve_splits: Some(preserve_splits),
        ..proto::TruncateTableRequest::default()
    };
    Ok(cluster.master.truncate_table(request).await?.proc_id)
}

fn truncated(preserve_splits: bool) {
    power_loss_at_every_call(
        3,
        async |cluster| {
            two_regions(cluster).await;
            disable(cluster).await;
        },
        async |cluster| truncate(cluster, preserve_splits).await,
        async |cluster, procedure| {
            let state = cluster.state(&name()).await;
            if state == Some(DISABLED) {
                assert_eq!(procedure, ProcedureState::Unknown, "a submitted procedure must complete");
                enable(cluster).await;
                assert_eq!(cluster.cells(&name()).await, ROWS);
                return;
            }
            assert_eq!(state, Some(ENABLED));
            let regions = if preserve_splits { 2 } else { 1 };
            assert_eq!(cluster.regions(&name()).len(), regions);
            let on_disk = cluster.root.list_regions(&*cluster.fs, &name()).await.unwrap();
            assert_eq!(on_disk.len(), regions);
            assert!(cluster.cells(&name()).await.is_empty());
            cluster.put(&name(), "z", "g", "new").await;
            assert_eq!(cluster.cells(&name()).await, ["z/g=new"]);
        },
    );
}

#[test]
fn truncation_is_atomic() {
    truncated(false);
}

#[test]
fn truncation_with_splits_is_atomic() {
    truncated(true);
}

pub async fn modify(cluster: &Cluster) -> Answer<Option<u64>> {
    let mut table = table();
    table.families.remove(&b"g"[..]);
    table = table.with_family(FamilyDescriptor::new("f").with("VERSIONS", "5"));
    table = table.with_family(FamilyDescriptor::new("h"));
    table.attributes.insert("note".into(), "new".into());
    let request = proto::ModifyTableRequest {
        table_name: (&name()).into(),
        table_schema: (&table).into(),
        ..proto::ModifyTableRequest::default()
    };
    Ok(cluster.master.modify_table(request).await?.proc_id)
}

async fn is_changed(cluster: &Cluster) -> bool {
    let request = proto::GetTableDescriptorsRequest {
        table_names: vec![(&name()).into()],
        ..proto::GetTableDescriptorsRequest::default()
    };
    let answer = cluster.master.get_table_descriptors(request).await.unwrap();
    let found = TableDescriptor::try_from(&answer.table_schema[0]).unwrap();
    found.attribute("note") == Some("new")
}

pub async fn add_family(cluster: &Cluster, family: &'static str) {
    let request = proto::AddColumnRequest {
        table_name: (&name()).into(),
        column_families: (&FamilyDescriptor::new(family)).into(),
        ..proto::AddColumnRequest::default()
    };
    let answer = cluster.master.add_column(request).await.unwrap();
    cluster.wait(answer.proc_id).await.unwrap();
}

#[test]
fn a_table_change_is_atomic() {
    power_loss_at_every_call(
        3,
        async |cluster| two_regions(cluster).await,
        async |cluster| modify(cluster).await,
        async |cluster, state| {
            assert_eq!(cluster.state(&name()).await, Some(ENABLED));
            let regions = cluster.regions(&name());
            assert_eq!(regions.len(), 2);
            if !is_changed(cluster).await {
                assert_eq!(state, ProcedureState::Unknown, "a submitted procedure must complete");
                assert_eq!(cluster.cells(&name()).await, ROWS);
                return;
            }
            assert_eq!(cluster.cells(&name()).await, ["a/f=1"]);
            for region in regions {
                assert_eq!(region.table().families[&b"f"[..]].max_versions(), 5);
                let gone = cluster.root.family_dir(region.info(), b"g");
                assert_eq!(cluster.fs.stat(&gone).await.unwrap(), None);
            }
            cluster.put(&name(), "z", "h", "4").await;
            // A family that is added again has none of its old data.
            add_family(cluster, "g").await;
            assert_eq!(cluster.cells(&name()).await, ["a/f=1", "z/h=4"]);
        },
    );
}

/// The log still has the cells of the removed family when the process is killed.
#[test]
fn a_removed_family_is_not_replayed_from_the_log() {
    use std::sync::Arc;
    let disk = fs::memory::MemoryFs::new();
    crate::run(async {
        let cluster = Cluster::start(&base::testing::env(1), Arc::new(disk.clone())).await.unwrap();
        two_regions(&cluster).await;
        cluster.wait(modify(&cluster).await.unwrap()).await.unwrap();
        add_family(&cluster, "g").await;
        cluster.put(&name(), "c", "g", "5").await;
    });
    let image = disk.crash(&mut || 0);
    crate::run(async {
        let env = base::testing::env(2);
        env.clock.sleep(std::time::Duration::from_secs(3600)).await;
        let cluster = Cluster::start(&env, Arc::new(image)).await.unwrap();
        assert_eq!(cluster.cells(&name()).await, ["a/f=1", "c/g=5"]);
    });
}

#[test]
fn invalid_changes_are_refused() {
    use proto::exception::class;
    use std::sync::Arc;
    crate::run(async {
        let disk = Arc::new(fs::memory::MemoryFs::new());
        let cluster = Cluster::start(&base::testing::env(1), disk).await.unwrap();
        two_regions(&cluster).await;
        let delete = async |table: &TableName, family: &'static str| {
            let request = proto::DeleteColumnRequest {
                table_name: table.into(),
                column_name: Bytes::from_static(family.as_bytes()),
                ..proto::DeleteColumnRequest::default()
            };
            cluster.master.delete_column(request).await.map(|answer| answer.proc_id)
        };
        assert!(truncate(&cluster, true).await.unwrap_err().is(class::TABLE_NOT_DISABLED));
        assert!(delete(&name(), "x").await.unwrap_err().is(class::INVALID_FAMILY_OPERATION));
        let absent = TableName::parse("absent").unwrap();
        assert!(delete(&absent, "f").await.unwrap_err().is(class::TABLE_NOT_FOUND));
        assert!(delete(&TableName::meta(), "info").await.is_err());
        cluster.wait(delete(&name(), "f").await.unwrap()).await.unwrap();
        let last = delete(&name(), "g").await.unwrap_err();
        assert!(last.message.contains("only column family"), "{last}");
    });
}

#[test]
fn a_region_of_a_disabled_table_is_not_assigned() {
    run(async {
        let cluster = Cluster::start(&env(5), Arc::new(MemoryFs::new())).await.unwrap();
        two_regions(&cluster).await;
        let region = cluster.regions(&name())[0].info().clone();
        let request = proto::AssignRegionRequest {
            region: wire::convert::region_specifier(&region),
            ..proto::AssignRegionRequest::default()
        };
        disable(&cluster).await;
        let refused = cluster.master.assign_region(request).await.unwrap_err();
        let expected = format!(
            "t is disabled for state=CLOSED, location=null, table=t, region={}",
            region.encoded_name()
        );
        assert!(refused.is(class::DO_NOT_RETRY_IO) && refused.message == expected, "{refused:?}");
        enable(&cluster).await;
        assert_eq!(cluster.cells(&name()).await, ROWS);
    });
}
