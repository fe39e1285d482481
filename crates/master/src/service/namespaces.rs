//! Calls for namespaces.

use std::sync::Arc;

use cell::schema::{NamespaceDescriptor, TableDescriptor};
use proto::exception::Answer;

use crate::master::Master;
use crate::procedure::Work;
use crate::{limits, refusal};

/// `CreateNamespace`.
pub(super) async fn create(
    master: &Master,
    request: proto::CreateNamespaceRequest,
) -> Answer<proto::CreateNamespaceResponse> {
    let new = namespace(&request.namespace_descriptor)?;
    limits::check_namespace_name(&new.name)?;
    let work = Work::CreateNamespace(new);
    let proc_id = master.submit_checked(work, (request.nonce_group(), request.nonce())).await?;
    Ok(proto::CreateNamespaceResponse { proc_id: Some(proc_id) })
}

/// `ModifyNamespace`.
pub(super) async fn modify(
    master: &Master,
    request: proto::ModifyNamespaceRequest,
) -> Answer<proto::ModifyNamespaceResponse> {
    let work = Work::ModifyNamespace(namespace(&request.namespace_descriptor)?);
    let proc_id = master.submit_checked(work, (request.nonce_group(), request.nonce())).await?;
    Ok(proto::ModifyNamespaceResponse { proc_id: Some(proc_id) })
}

/// `DeleteNamespace`.
pub(super) async fn delete(
    master: &Master,
    request: proto::DeleteNamespaceRequest,
) -> Answer<proto::DeleteNamespaceResponse> {
    let work = Work::DeleteNamespace(request.namespace_name.clone());
    let proc_id = master.submit_checked(work, (request.nonce_group(), request.nonce())).await?;
    Ok(proto::DeleteNamespaceResponse { proc_id: Some(proc_id) })
}

fn namespace(message: &proto::NamespaceDescriptor) -> Answer<NamespaceDescriptor> {
    NamespaceDescriptor::try_from(message).map_err(refusal::bad_schema)
}

/// `GetNamespaceDescriptor`. A client may write the settings back, so they must be known.
pub(super) async fn descriptor(
    master: &Master,
    request: proto::GetNamespaceDescriptorRequest,
) -> Answer<proto::GetNamespaceDescriptorResponse> {
    master.context().namespaces.require_settings().await?;
    let namespace = master.context().namespaces.get(&request.namespace_name)?;
    Ok(proto::GetNamespaceDescriptorResponse { namespace_descriptor: (&namespace).into() })
}

/// `ListNamespaceDescriptors`.
pub(super) async fn descriptors(
    master: &Master,
    _: proto::ListNamespaceDescriptorsRequest,
) -> Answer<proto::ListNamespaceDescriptorsResponse> {
    let all = master.context().namespaces.all();
    Ok(proto::ListNamespaceDescriptorsResponse { namespace_descriptor: all.iter().map(Into::into).collect() })
}

/// `ListNamespaces`.
pub(super) async fn names(
    master: &Master,
    _: proto::ListNamespacesRequest,
) -> Answer<proto::ListNamespacesResponse> {
    let all = master.context().namespaces.all();
    Ok(proto::ListNamespacesResponse {
        namespace_name: all.into_iter().map(|namespace| namespace.name).collect(),
    })
}

/// `ListTableDescriptorsByNamespace`.
pub(super) async fn tables(
    master: &Master,
    request: proto::ListTableDescriptorsByNamespaceRequest,
) -> Answer<proto::ListTableDescriptorsByNamespaceResponse> {
    let found = tables_of(master, &request.namespace_name)?;
    Ok(proto::ListTableDescriptorsByNamespaceResponse {
        table_schema: found.iter().map(|table| (&**table).into()).collect(),
    })
}

/// `ListTableNamesByNamespace`.
pub(super) async fn table_names(
    master: &Master,
    request: proto::ListTableNamesByNamespaceRequest,
) -> Answer<proto::ListTableNamesByNamespaceResponse> {
    let found = tables_of(master, &request.namespace_name)?;
    Ok(proto::ListTableNamesByNamespaceResponse {
        table_name: found.iter().map(|table| (&table.name).into()).collect(),
    })
}

fn tables_of(master: &Master, namespace: &str) -> Answer<Vec<Arc<TableDescriptor>>> {
    let context = master.context();
    context.namespaces.get(namespace)?;
    let mut tables = context.tables.all();
    tables.retain(|table| table.name.namespace() == namespace);
    Ok(tables)
}
