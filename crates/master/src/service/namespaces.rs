//! Calls about namespaces. There are two, and they cannot be changed yet.

use std::sync::Arc;

use cell::schema::TableDescriptor;
use wire::exception::Answer;

use crate::master::Master;
use crate::namespaces::{NAMESPACES, exists, message};
use crate::refusal;

/// `GetNamespaceDescriptor`.
pub(super) async fn descriptor(
    _: &Master,
    request: proto::GetNamespaceDescriptorRequest,
) -> Answer<proto::GetNamespaceDescriptorResponse> {
    if !exists(&request.namespace_name) {
        return Err(refusal::namespace_not_found(&request.namespace_name));
    }
    Ok(proto::GetNamespaceDescriptorResponse { namespace_descriptor: message(&request.namespace_name) })
}

/// `ListNamespaceDescriptors`.
pub(super) async fn descriptors(
    _: &Master,
    _: proto::ListNamespaceDescriptorsRequest,
) -> Answer<proto::ListNamespaceDescriptorsResponse> {
    Ok(proto::ListNamespaceDescriptorsResponse {
        namespace_descriptor: NAMESPACES.iter().map(|name| message(name)).collect(),
    })
}

/// `ListNamespaces`.
pub(super) async fn names(
    _: &Master,
    _: proto::ListNamespacesRequest,
) -> Answer<proto::ListNamespacesResponse> {
    Ok(proto::ListNamespacesResponse {
        namespace_name: NAMESPACES.iter().map(|name| (*name).to_string()).collect(),
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
    if !exists(namespace) {
        return Err(refusal::namespace_not_found(namespace));
    }
    let mut tables = master.context().tables.all();
    tables.retain(|table| table.name.namespace() == namespace);
    Ok(tables)
}
