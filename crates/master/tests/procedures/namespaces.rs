//! Creating, changing and deleting namespaces.

use std::sync::Arc;
use std::time::Duration;

use base::testing::env;
use cell::schema::{FamilyDescriptor, NamespaceDescriptor, TableDescriptor, TableName};
use fs::faulty::{Fault, Faulty, Plan, Rule};
use fs::memory::MemoryFs;
use master::assignment::RegionState;
use proto::exception::{Answer, class};
use wire::service::MasterService;

use crate::cluster::Cluster;
use crate::{ProcedureState, power_loss_at_every_call, run};

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
fn namespaces_behave_as_in_hbase_and_survive_a_restart() {
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
        // Where HBase stores them.
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
fn namespace_creation_is_atomic() {
    power_loss_at_every_call(
        1,
        async |_| (),
        async |cluster| create(cluster, "n", "1").await,
        async |cluster, state| {
            if value(cluster, "n").await.is_none() {
                assert_eq!(state, ProcedureState::Unknown, "a submitted procedure must complete");
                cluster.wait(create(cluster, "n", "1").await.unwrap()).await.unwrap();
            }
            create_table(cluster, "n:t").await.unwrap();
        },
    );
}

#[test]
fn namespace_removal_is_atomic() {
    power_loss_at_every_call(
        1,
        async |cluster| cluster.wait(create(cluster, "n", "1").await.unwrap()).await.unwrap(),
        async |cluster| delete(cluster, "n").await,
        async |cluster, state| {
            if value(cluster, "n").await.is_some() {
                assert_eq!(state, ProcedureState::Unknown, "a submitted procedure must complete");
                return;
            }
            assert_eq!(cluster.fs.stat(&cluster.root.namespace_dir("n")).await.unwrap(), None);
            cluster.wait(create(cluster, "n", "1").await.unwrap()).await.unwrap();
        },
    );
}

/// If the table of the namespaces is disabled, their tables can still be used.
#[test]
fn without_their_table_namespaces_are_read_from_directories() {
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

/// A client that alters a namespace writes back the settings that it has read. So it must not read
/// a namespace without its settings.
#[test]
fn settings_are_read_as_soon_as_the_region_with_them_can_be_opened() {
    let (disk, table) = (MemoryFs::new(), TableName::parse("hbase:namespace").unwrap());
    let region = run(async {
        let cluster = Cluster::start(&env(1), Arc::new(disk.clone())).await.unwrap();
        cluster.wait(create(&cluster, "n", "1").await.unwrap()).await.unwrap();
        let region = cluster.regions(&table)[0].info().clone();
        cluster.stop().await;
        region
    });
    run(async {
        let env = env(2);
        env.clock.sleep(Duration::from_secs(3600)).await;
        let faulty = Faulty::new(Arc::new(disk), Plan::new(env.clock.clone()));
        faulty.add(Rule::new(Fault::Fail).at(&region.encoded_name()));
        let cluster = Cluster::start(&env, Arc::new(faulty.clone())).await.unwrap();
        let state = cluster.master.context().assignment.state(&region);
        assert_eq!(state, Some(RegionState::FailedOpen));
        assert_eq!(list(&cluster).await, ["default", "hbase", "n"]);
        let request = proto::GetNamespaceDescriptorRequest { namespace_name: "n".into() };
        let refused = cluster.master.get_namespace_descriptor(request).await.unwrap_err();
        assert!(refused.is(class::NOT_SERVING_REGION), "{refused}");
        let refused = modify(&cluster, "n", "2").await.unwrap_err();
        assert!(refused.is(class::NOT_SERVING_REGION), "{refused}");
        faulty.heal();
        env.clock.sleep(Duration::from_secs(60)).await;
        assert_eq!(value(&cluster, "n").await.as_deref(), Some("1"));
    });
}

#[test]
fn a_replaced_master_changes_no_namespace() {
    run(async {
        let cluster = Cluster::start(&env(1), Arc::new(MemoryFs::new())).await.unwrap();
        cluster.wait(create(&cluster, "n", "1").await.unwrap()).await.unwrap();
        let table = TableName::parse("hbase:namespace").unwrap();
        let before = cluster.cells(&table).await;
        cluster.replace_master().await;
        let id = modify(&cluster, "n", "2").await.unwrap();
        let unfinished = cluster.wait(id).await.unwrap_err();
        assert!(unfinished.message.contains("does not end"), "its successor resumes it: {unfinished}");
        let waiting = cluster.master.procedures().status(id.unwrap()).unwrap().waiting.unwrap();
        assert!(waiting.reason.message.contains("another one became active"), "{waiting:?}");
        assert_eq!(cluster.cells(&table).await, before);
    });
}
