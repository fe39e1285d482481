//! Namespaces that are made, changed and removed.

use std::sync::Arc;

use base::testing::env;
use cell::schema::{FamilyDescriptor, NamespaceDescriptor, TableDescriptor, TableName};
use fs::memory::MemoryFs;
use wire::exception::{Answer, class};
use wire::service::MasterService;

use crate::cluster::Cluster;
use crate::{Met, cut_everywhere, run};

fn namespace(name: &str, value: &str) -> NamespaceDescriptor {
    let configuration = [("k".to_string(), value.to_string())].into();
    NamespaceDescriptor { name: name.into(), configuration }
}

async fn create(cluster: &Cluster, name: &str, value: &str) -> Answer<Option<u64>> {
    let request = proto::CreateNamespaceRequest {
        namespace_descriptor: (&namespace(name, value)).into(),
        ..proto::CreateNamespaceRequest::default()
    };
    Ok(cluster.master.create_namespace(request).await?.proc_id)
}

async fn modify(cluster: &Cluster, name: &str, value: &str) -> Answer<Option<u64>> {
    let request = proto::ModifyNamespaceRequest {
        namespace_descriptor: (&namespace(name, value)).into(),
        ..proto::ModifyNamespaceRequest::default()
    };
    Ok(cluster.master.modify_namespace(request).await?.proc_id)
}

async fn delete(cluster: &Cluster, name: &str) -> Answer<Option<u64>> {
    let request = proto::DeleteNamespaceRequest {
        namespace_name: name.into(),
        ..proto::DeleteNamespaceRequest::default()
    };
    Ok(cluster.master.delete_namespace(request).await?.proc_id)
}

async fn create_table(cluster: &Cluster, name: &str) -> Answer<()> {
    let table = TableDescriptor::new(TableName::parse(name).unwrap()).with_family(FamilyDescriptor::new("f"));
    let request = proto::CreateTableRequest { table_schema: (&table).into(), ..Default::default() };
    let answer = cluster.master.create_table(request).await?;
    cluster.wait(answer.proc_id).await
}

async fn list(cluster: &Cluster) -> Vec<String> {
    let answer = cluster.master.list_namespaces(proto::ListNamespacesRequest {}).await.unwrap();
    answer.namespace_name
}

async fn value(cluster: &Cluster, name: &str) -> Option<String> {
    let request = proto::GetNamespaceDescriptorRequest { namespace_name: name.into() };
    let answer = cluster.master.get_namespace_descriptor(request).await.ok()?;
    answer.namespace_descriptor.configuration.into_iter().next().map(|pair| pair.value)
}

#[test]
fn namespaces_live_as_hbases_do_and_outlive_the_process() {
    let disk = MemoryFs::new();
    run(async {
        let cluster = Cluster::start(&env(1), Arc::new(disk.clone())).await.unwrap();
        assert!(create_table(&cluster, "n:t").await.unwrap_err().is(class::NAMESPACE_NOT_FOUND));
        cluster.wait(create(&cluster, "n", "1").await.unwrap()).await.unwrap();
        assert!(create(&cluster, "n", "1").await.unwrap_err().is(class::NAMESPACE_EXISTS));
        create_table(&cluster, "n:t").await.unwrap();
        assert!(delete(&cluster, "n").await.unwrap_err().is(class::CONSTRAINT));
        assert!(delete(&cluster, "default").await.unwrap_err().is(class::CONSTRAINT));
        assert!(delete(&cluster, "absent").await.unwrap_err().is(class::NAMESPACE_NOT_FOUND));
        assert!(modify(&cluster, "absent", "1").await.unwrap_err().is(class::NAMESPACE_NOT_FOUND));
        cluster.wait(modify(&cluster, "n", "2").await.unwrap()).await.unwrap();
        assert_eq!(list(&cluster).await, ["default", "hbase", "n"]);
        // Where HBase looks for them.
        let table = TableName::parse("hbase:namespace").unwrap();
        let rows: Vec<String> =
            cluster.cells(&table).await.iter().map(|cell| cell[..cell.find('=').unwrap()].into()).collect();
        assert_eq!(rows, ["default/info", "hbase/info", "n/info"]);
    });
    let image = disk.crash(&mut || 0);
    run(async {
        let env = env(2);
        env.clock.sleep(std::time::Duration::from_secs(3600)).await;
        let cluster = Cluster::start(&env, Arc::new(image)).await.unwrap();
        assert_eq!(list(&cluster).await, ["default", "hbase", "n"]);
        assert_eq!(value(&cluster, "n").await.as_deref(), Some("2"));
    });
}

#[test]
fn a_namespace_is_made_or_not() {
    cut_everywhere(
        1,
        async |_| (),
        async |cluster| create(cluster, "n", "1").await,
        async |cluster, met| {
            if value(cluster, "n").await.is_none() {
                assert_eq!(met, Met::Unknown, "what was submitted is done");
                cluster.wait(create(cluster, "n", "1").await.unwrap()).await.unwrap();
            }
            create_table(cluster, "n:t").await.unwrap();
        },
    );
}

#[test]
fn a_namespace_is_removed_or_not() {
    cut_everywhere(
        1,
        async |cluster| cluster.wait(create(cluster, "n", "1").await.unwrap()).await.unwrap(),
        async |cluster| delete(cluster, "n").await,
        async |cluster, met| {
            if value(cluster, "n").await.is_some() {
                assert_eq!(met, Met::Unknown, "what was submitted is done");
                return;
            }
            assert_eq!(cluster.fs.stat(&cluster.root.namespace_dir("n")).await.unwrap(), None);
            cluster.wait(create(cluster, "n", "1").await.unwrap()).await.unwrap();
        },
    );
}

/// Whoever disables the table of the namespaces keeps their tables.
#[test]
fn without_their_table_namespaces_are_those_that_have_directories() {
    let disk = MemoryFs::new();
    run(async {
        let cluster = Cluster::start(&env(1), Arc::new(disk.clone())).await.unwrap();
        cluster.wait(create(&cluster, "n", "1").await.unwrap()).await.unwrap();
        let table = TableName::parse("hbase:namespace").unwrap();
        let request = proto::DisableTableRequest { table_name: (&table).into(), ..Default::default() };
        cluster.wait(cluster.master.disable_table(request).await.unwrap().proc_id).await.unwrap();
        cluster.stop().await;
    });
    run(async {
        let env = env(2);
        env.clock.sleep(std::time::Duration::from_secs(3600)).await;
        let cluster = Cluster::start(&env, Arc::new(disk)).await.unwrap();
        assert_eq!(list(&cluster).await, ["default", "hbase", "n"]);
        create_table(&cluster, "n:t").await.unwrap();
    });
}
