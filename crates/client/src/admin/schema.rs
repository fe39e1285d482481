//! Schema changes of existing tables.

use bytes::Bytes;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};

use super::Admin;
use crate::error::Result;

impl Admin {
    /// Replaces a table's descriptor: attributes, settings and families. All regions use it when
    /// this returns.
    ///
    /// # Errors
    /// [`Error`](crate::Error).
    pub async fn modify_table(&self, table: &TableDescriptor) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = proto::ModifyTableRequest {
            table_name: (&table.name).into(),
            table_schema: table.into(),
            nonce_group,
            nonce,
            ..proto::ModifyTableRequest::default()
        };
        let answer: proto::ModifyTableResponse = self.call_master("ModifyTable", &request).await?;
        self.wait_for(answer.proc_id).await
    }

    /// Adds a family to a table.
    ///
    /// # Errors
    /// [`Error`](crate::Error).
    pub async fn add_family(&self, table: &TableName, family: &FamilyDescriptor) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = proto::AddColumnRequest {
            table_name: table.into(),
            column_families: family.into(),
            nonce_group,
            nonce,
        };
        let answer: proto::AddColumnResponse = self.call_master("AddColumn", &request).await?;
        self.wait_for(answer.proc_id).await
    }

    /// Replaces the descriptor of a table's family.
    ///
    /// # Errors
    /// [`Error`](crate::Error).
    pub async fn modify_family(&self, table: &TableName, family: &FamilyDescriptor) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = proto::ModifyColumnRequest {
            table_name: table.into(),
            column_families: family.into(),
            nonce_group,
            nonce,
        };
        let answer: proto::ModifyColumnResponse = self.call_master("ModifyColumn", &request).await?;
        self.wait_for(answer.proc_id).await
    }

    /// Removes a family and its data from a table.
    ///
    /// # Errors
    /// [`Error`](crate::Error).
    pub async fn delete_family(&self, table: &TableName, family: &[u8]) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = proto::DeleteColumnRequest {
            table_name: table.into(),
            column_name: Bytes::copy_from_slice(family),
            nonce_group,
            nonce,
        };
        let answer: proto::DeleteColumnResponse = self.call_master("DeleteColumn", &request).await?;
        self.wait_for(answer.proc_id).await
    }

    /// Number of regions that have not applied the last change yet, and total number of regions.
    ///
    /// # Errors
    /// [`Error`](crate::Error).
    pub async fn alter_status(&self, table: &TableName) -> Result<(u32, u32)> {
        let request = proto::GetSchemaAlterStatusRequest { table_name: table.into() };
        let answer: proto::GetSchemaAlterStatusResponse =
            self.call_master("GetSchemaAlterStatus", &request).await?;
        Ok((answer.yet_to_update_regions(), answer.total_regions()))
    }
}
