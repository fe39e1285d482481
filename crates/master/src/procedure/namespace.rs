//! Creates, changes and deletes namespaces.

use cell::schema::NamespaceDescriptor;
use proto::exception::{JavaException, class};

use crate::context::Context;
use crate::namespace_quotas;
use crate::namespaces::{self, RESERVED};

/// Checks that no namespace of this name exists.
pub(super) async fn check_create(
    context: &Context,
    namespace: &NamespaceDescriptor,
) -> Result<(), JavaException> {
    context.namespaces.require_settings().await?;
    namespace_quotas::check_settings(namespace)?;
    match context.namespaces.get(&namespace.name) {
        Ok(_) => Err(JavaException::new(
            class::NAMESPACE_EXISTS,
            format!("Namespace {} already exists", namespace.name),
        )),
        Err(_) => Ok(()),
    }
}

/// Creates the namespace.
pub(super) async fn create(context: &Context, namespace: &NamespaceDescriptor) -> Result<(), JavaException> {
    context.namespaces.require_settings().await?;
    context.tables.make_namespace(&namespace.name).await?;
    namespaces::put(context, namespace).await
}

/// Checks that the namespace exists.
pub(super) async fn check_modify(
    context: &Context,
    namespace: &NamespaceDescriptor,
) -> Result<(), JavaException> {
    context.namespaces.require_settings().await?;
    namespace_quotas::check_settings(namespace)?;
    context.namespaces.get(&namespace.name).map(|_| ())
}

/// Changes the namespace.
pub(super) async fn modify(context: &Context, namespace: &NamespaceDescriptor) -> Result<(), JavaException> {
    context.namespaces.require_settings().await?;
    namespaces::put(context, namespace).await
}

/// Checks that the namespace exists, has no tables and is not reserved.
pub(super) async fn check_delete(context: &Context, name: &str) -> Result<(), JavaException> {
    context.namespaces.require_settings().await?;
    context.namespaces.get(name)?;
    if RESERVED.contains(&name) {
        return Err(JavaException::constraint(format!("Reserved namespace {name} cannot be removed.")));
    }
    match context.tables.count_in(name) {
        0 => Ok(()),
        tables => Err(JavaException::constraint(format!(
            "Only empty namespaces can be removed. Namespace {name} has {tables} tables"
        ))),
    }
}

/// Deletes the namespace.
pub(super) async fn delete(context: &Context, name: &str) -> Result<(), JavaException> {
    context.namespaces.require_settings().await?;
    namespaces::remove(context, name).await?;
    context.tables.delete_namespace(name).await
}
