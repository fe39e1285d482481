//! Quotas of namespaces, and expiring snapshots.

use std::sync::Arc;
use std::time::Duration;

use base::testing::env;
use bytes::Bytes;
use cell::schema::{FamilyDescriptor, NamespaceDescriptor, TableDescriptor, TableName};
use fs::memory::MemoryFs;
use proto::exception::{Answer, class};
use wire::service::MasterService;

use crate::cluster::Cluster;
use crate::run;

/// Longer than the time to live of the snapshot that expires.
const AFTER_TTL: Duration = Duration::from_secs(5);

async fn create_namespace(cluster: &Cluster, tables: &str, regions: &str) {
    let configuration = [
        ("hbase.namespace.quota.maxtables".to_string(), tables.to_string()),
        ("hbase.namespace.quota.maxregions".to_string(), regions.to_string()),
    ];
    let namespace = NamespaceDescriptor { name: "n".into(), configuration: configuration.into() };
    let request = proto::CreateNamespaceRequest {
        namespace_descriptor: (&namespace).into(),
        ..proto::CreateNamespaceRequest::default()
    };
    let id = cluster.master.create_namespace(request).await.unwrap().proc_id;
    cluster.wait(id).await.unwrap();
}

async fn submit(cluster: &Cluster, name: &str, split_keys: &[&'static str]) -> Answer<Option<u64>> {
    let table = TableDescriptor::new(TableName::parse(name).unwrap()).with_family(FamilyDescriptor::new("f"));
    let request = proto::CreateTableRequest {
        table_schema: (&table).into(),
        split_keys: split_keys.iter().map(|key| Bytes::from_static(key.as_bytes())).collect(),
        ..proto::CreateTableRequest::default()
    };
    Ok(cluster.master.create_table(request).await?.proc_id)
}

async fn create(cluster: &Cluster, name: &str, split_keys: &[&'static str]) -> Answer<()> {
    let id = submit(cluster, name, split_keys).await?;
    cluster.wait(id).await
}

async fn split(cluster: &Cluster, name: &str, row: &'static str) -> Answer<()> {
    let table = TableName::parse(name).unwrap();
    let region = cluster.regions(&table)[0].info().clone();
    let request = proto::SplitTableRegionRequest {
        region_info: (&region).into(),
        split_row: Some(Bytes::from_static(row.as_bytes())),
        ..proto::SplitTableRegionRequest::default()
    };
    let id = cluster.master.split_region(request).await?.proc_id;
    cluster.wait(id).await
}

#[test]
fn a_namespace_has_no_more_tables_and_regions_than_its_quota() {
    run(async {
        let cluster = Cluster::start_with_quotas(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
        create_namespace(&cluster, "2", "4").await;
        create(&cluster, "n:a", &[]).await.unwrap();
        assert!(create(&cluster, "n:b", &["1", "2", "3"]).await.unwrap_err().is(class::QUOTA_EXCEEDED));
        create(&cluster, "n:b", &["1"]).await.unwrap();
        let refused = create(&cluster, "n:c", &[]).await.unwrap_err();
        assert!(refused.is(class::QUOTA_EXCEEDED) && refused.message.contains("permitted is 2"), "{refused}");
        split(&cluster, "n:a", "m").await.unwrap();
        let refused = split(&cluster, "n:b", "0").await.unwrap_err();
        assert!(refused.is(class::QUOTA_EXCEEDED), "{refused}");
        create(&cluster, "elsewhere", &["1", "2", "3"]).await.unwrap();
    });
}

#[test]
fn concurrent_creations_do_not_exceed_the_quota() {
    run(async {
        let cluster = Cluster::start_with_quotas(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
        create_namespace(&cluster, "1", "5").await;
        let (first, second) = tokio::join!(create(&cluster, "n:a", &[]), create(&cluster, "n:b", &[]));
        assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
        let refused = first.and(second).unwrap_err();
        assert!(refused.is(class::QUOTA_EXCEEDED), "{refused}");
    });
}

#[test]
fn without_quotas_limits_are_stored_and_not_enforced() {
    run(async {
        let cluster = Cluster::start(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
        create_namespace(&cluster, "1", "1").await;
        create(&cluster, "n:a", &["m"]).await.unwrap();
        create(&cluster, "n:b", &[]).await.unwrap();
    });
}

async fn snapshot(cluster: &Cluster, name: &str, ttl_s: i64) {
    let snapshot = proto::SnapshotDescription {
        name: name.into(),
        table: Some("t".into()),
        ttl: Some(ttl_s),
        ..proto::SnapshotDescription::default()
    };
    let request = proto::SnapshotRequest { snapshot, ..proto::SnapshotRequest::default() };
    let id = cluster.master.snapshot(request).await.unwrap().proc_id;
    cluster.wait(id.map(|id| u64::try_from(id).unwrap())).await.unwrap();
}

async fn restore(cluster: &Cluster, name: &str, table: &str) -> Answer<()> {
    let snapshot = proto::SnapshotDescription {
        name: name.into(),
        table: Some(table.into()),
        ..proto::SnapshotDescription::default()
    };
    let request = proto::RestoreSnapshotRequest { snapshot, ..proto::RestoreSnapshotRequest::default() };
    let id = cluster.master.restore_snapshot(request).await?.proc_id;
    cluster.wait(Some(id)).await
}

async fn names(cluster: &Cluster) -> Vec<String> {
    let request = proto::GetCompletedSnapshotsRequest {};
    let answer = cluster.master.get_completed_snapshots(request).await.unwrap();
    answer.snapshots.into_iter().map(|snapshot| snapshot.name).collect()
}

async fn switch_cleanup(cluster: &Cluster, enabled: bool) -> bool {
    let request = proto::SetSnapshotCleanupRequest { enabled, synchronous: Some(true) };
    cluster.master.switch_snapshot_cleanup(request).await.unwrap().prev_snapshot_cleanup
}

#[test]
fn an_expired_snapshot_is_not_cloned_and_is_removed() {
    let disk = MemoryFs::new();
    run(async {
        let cluster = Cluster::start(&env(1), Arc::new(disk.clone())).await.unwrap();
        create(&cluster, "t", &[]).await.unwrap();
        assert!(switch_cleanup(&cluster, false).await, "the default is on");
        snapshot(&cluster, "short", 1).await;
        snapshot(&cluster, "forever", 0).await;
        cluster.env.clock.sleep(AFTER_TTL).await;
        assert!(restore(&cluster, "short", "c").await.unwrap_err().is(class::SNAPSHOT_TTL_EXPIRED));
        restore(&cluster, "forever", "c").await.unwrap();
        assert_eq!(names(&cluster).await, ["forever", "short"], "the cleaner is off");
        cluster.stop().await;
    });
    run(async {
        let env = env(2);
        env.clock.sleep(Duration::from_secs(3600)).await;
        let cluster = Cluster::start(&env, Arc::new(disk)).await.unwrap();
        assert!(!switch_cleanup(&cluster, true).await, "the switch is durable");
        cluster.env.clock.sleep(Duration::from_secs(1801)).await;
        assert_eq!(names(&cluster).await, ["forever"]);
    });
}

#[test]
fn a_replaced_master_changes_no_quota() {
    run(async {
        let cluster = Cluster::start_with_quotas(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
        cluster.replace_master().await;
        let request = proto::SetQuotaRequest {
            user_name: Some("u".into()),
            bypass_globals: Some(true),
            ..proto::SetQuotaRequest::default()
        };
        let refused = cluster.master.set_quota(request).await.unwrap_err();
        assert!(refused.message.contains("another one became active"), "{refused}");
    });
}
