//! Administration of namespaces.

use cell::schema::{NamespaceDescriptor, TableName};

use super::{Admin, malformed};
use crate::error::Result;

impl Admin {
    /// Creates a namespace.
    ///
    /// # Errors
    /// [`Error`](crate::Error).
    pub async fn create_namespace(&self, namespace: &NamespaceDescriptor) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request =
            proto::CreateNamespaceRequest { namespace_descriptor: namespace.into(), nonce_group, nonce };
        let answer: proto::CreateNamespaceResponse = self.call_master("CreateNamespace", &request).await?;
        self.wait_for(answer.proc_id).await
    }

    /// Replaces the settings of a namespace.
    ///
    /// # Errors
    /// [`Error`](crate::Error).
    pub async fn modify_namespace(&self, namespace: &NamespaceDescriptor) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request =
            proto::ModifyNamespaceRequest { namespace_descriptor: namespace.into(), nonce_group, nonce };
        let answer: proto::ModifyNamespaceResponse = self.call_master("ModifyNamespace", &request).await?;
        self.wait_for(answer.proc_id).await
    }

    /// Deletes an empty namespace.
    ///
    /// # Errors
    /// [`Error`](crate::Error).
    pub async fn delete_namespace(&self, name: &str) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = proto::DeleteNamespaceRequest { namespace_name: name.to_string(), nonce_group, nonce };
        let answer: proto::DeleteNamespaceResponse = self.call_master("DeleteNamespace", &request).await?;
        self.wait_for(answer.proc_id).await
    }

    /// A namespace's descriptor.
    ///
    /// # Errors
    /// [`Error`](crate::Error).
    pub async fn namespace(&self, name: &str) -> Result<NamespaceDescriptor> {
        let request = proto::GetNamespaceDescriptorRequest { namespace_name: name.to_string() };
        let answer: proto::GetNamespaceDescriptorResponse =
            self.call_master("GetNamespaceDescriptor", &request).await?;
        NamespaceDescriptor::try_from(&answer.namespace_descriptor).map_err(malformed)
    }

    /// All namespaces.
    ///
    /// # Errors
    /// [`Error`](crate::Error).
    pub async fn list_namespaces(&self) -> Result<Vec<NamespaceDescriptor>> {
        let request = proto::ListNamespaceDescriptorsRequest {};
        let answer: proto::ListNamespaceDescriptorsResponse =
            self.call_master("ListNamespaceDescriptors", &request).await?;
        let convert = |message| NamespaceDescriptor::try_from(message).map_err(malformed);
        answer.namespace_descriptor.iter().map(convert).collect()
    }

    /// The tables of a namespace.
    ///
    /// # Errors
    /// [`Error`](crate::Error).
    pub async fn list_namespace_tables(&self, namespace: &str) -> Result<Vec<TableName>> {
        let request = proto::ListTableNamesByNamespaceRequest { namespace_name: namespace.to_string() };
        let answer: proto::ListTableNamesByNamespaceResponse =
            self.call_master("ListTableNamesByNamespace", &request).await?;
        answer.table_name.iter().map(|name| TableName::try_from(name).map_err(malformed)).collect()
    }
}
