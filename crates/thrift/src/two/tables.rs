//! Tables, namespaces and regions.

use bytes::Bytes;
use cell::schema::NamespaceDescriptor;
use client::{Error, Location};

use super::descriptors::{family_from, name_to, table_from, table_name_of, table_to};
use super::types::{
    TColumnFamilyDescriptor, THRegionInfo, THRegionLocation, TNamespaceDescriptor, TServerName,
    TTableDescriptor, TTableName,
};
use crate::failure::{Failure, Result};
use crate::gateway::Gateway;
use crate::mutations::table_name;

impl Gateway {
    pub(super) async fn region_location(
        &self,
        table: &[u8],
        row: &Bytes,
        reload: bool,
    ) -> Result<THRegionLocation> {
        let location = self.client.table(table_name(table)?).location(row, reload).await?;
        Ok(location_to(&location))
    }

    pub(super) async fn region_locations(&self, table: &[u8]) -> Result<Vec<THRegionLocation>> {
        match self.client.table(table_name(table)?).regions().await {
            Ok(locations) => Ok(locations.iter().map(|location| location_to(location)).collect()),
            // As in HBase, a missing table has no regions.
            Err(Error::TableNotFound(_)) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn table_descriptor(&self, table: &TTableName) -> Result<TTableDescriptor> {
        Ok(table_to(&self.client.admin().describe(&table_name_of(table)?).await?))
    }

    /// The descriptors of those tables that exist.
    pub(super) async fn table_descriptors(&self, tables: &[TTableName]) -> Result<Vec<TTableDescriptor>> {
        let mut found = Vec::new();
        for table in tables {
            match self.client.admin().describe(&table_name_of(table)?).await {
                Ok(table) => found.push(table_to(&table)),
                Err(Error::TableNotFound(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(found)
    }

    pub(super) async fn descriptors_by_pattern(
        &self,
        regex: Option<&str>,
        with_system: bool,
    ) -> Result<Vec<TTableDescriptor>> {
        let tables = self.client.admin().list_descriptors(regex, with_system).await?;
        Ok(tables.iter().map(table_to).collect())
    }

    pub(super) async fn descriptors_by_namespace(&self, namespace: &str) -> Result<Vec<TTableDescriptor>> {
        let names = self.client.admin().list_namespace_tables(namespace).await?;
        let mut tables = self.client.admin().list_descriptors(None, true).await?;
        tables.retain(|table| names.contains(&table.name));
        Ok(tables.iter().map(table_to).collect())
    }

    pub(super) async fn names_by_pattern(
        &self,
        regex: Option<&str>,
        with_system: bool,
    ) -> Result<Vec<TTableName>> {
        let names = self.client.admin().list_tables(regex, with_system).await?;
        Ok(names.iter().map(name_to).collect())
    }

    pub(super) async fn names_by_namespace(&self, namespace: &str) -> Result<Vec<TTableName>> {
        let names = self.client.admin().list_namespace_tables(namespace).await?;
        Ok(names.iter().map(name_to).collect())
    }

    pub(super) async fn table_exists(&self, table: &TTableName) -> Result<bool> {
        Ok(self.client.admin().table_exists(&table_name_of(table)?).await?)
    }

    pub(super) async fn has_state(&self, table: &TTableName, enabled: bool) -> Result<bool> {
        Ok(self.client.admin().is_enabled(&table_name_of(table)?).await? == enabled)
    }

    /// Whether a table is enabled and all its regions have servers. With split keys, it must have a
    /// region that starts at each of them.
    pub(super) async fn is_available(
        &self,
        table: &TTableName,
        split_keys: Option<&[Bytes]>,
    ) -> Result<bool> {
        let (admin, table) = (self.client.admin(), table_name_of(table)?);
        match admin.is_enabled(&table).await {
            Ok(true) => {}
            Ok(false) | Err(Error::TableNotFound(_)) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let (regions, served) = (admin.regions(&table).await?, self.client.table(table).regions().await?);
        let regions: Vec<_> = regions.into_iter().filter(|region| !region.offline).collect();
        if served.len() < regions.len() {
            return Ok(false);
        }
        let Some(split_keys) = split_keys else { return Ok(true) };
        let has_key =
            |start: &Bytes| start.is_empty() || split_keys.iter().any(|split_key| split_key == start);
        let counted = regions.iter().filter(|region| has_key(&region.start_key)).count();
        Ok(counted == split_keys.len() + 1)
    }

    pub(super) async fn define_table(&self, table: &TTableDescriptor, split_keys: &[Bytes]) -> Result<()> {
        let mut split_keys = split_keys.to_vec();
        split_keys.sort();
        if split_keys.iter().any(Bytes::is_empty) {
            return Err(Failure::Internal);
        }
        if split_keys.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Failure::Internal);
        }
        Ok(self.client.admin().create_table(&table_from(table)?, &split_keys).await?)
    }

    pub(super) async fn modify_table(&self, table: &TTableDescriptor) -> Result<()> {
        Ok(self.client.admin().modify_table(&table_from(table)?).await?)
    }

    pub(super) async fn drop_table(&self, table: &TTableName) -> Result<()> {
        Ok(self.client.admin().delete_table(&table_name_of(table)?).await?)
    }

    pub(super) async fn truncate_table(&self, table: &TTableName, preserve_splits: bool) -> Result<()> {
        Ok(self.client.admin().truncate_table(&table_name_of(table)?, preserve_splits).await?)
    }

    pub(super) async fn set_state(&self, table: &TTableName, enabled: bool) -> Result<()> {
        let (admin, table) = (self.client.admin(), table_name_of(table)?);
        match enabled {
            true => admin.enable_table(&table).await?,
            false => admin.disable_table(&table).await?,
        }
        Ok(())
    }

    pub(super) async fn define_family(
        &self,
        table: &TTableName,
        family: &TColumnFamilyDescriptor,
        is_new: bool,
    ) -> Result<()> {
        let (admin, table) = (self.client.admin(), table_name_of(table)?);
        let family = family_from(family)?;
        match is_new {
            true => admin.add_family(&table, &family).await?,
            false => admin.modify_family(&table, &family).await?,
        }
        Ok(())
    }

    pub(super) async fn delete_family(&self, table: &TTableName, family: &Bytes) -> Result<()> {
        Ok(self.client.admin().delete_family(&table_name_of(table)?, family).await?)
    }

    pub(super) async fn define_namespace(
        &self,
        namespace: &TNamespaceDescriptor,
        is_new: bool,
    ) -> Result<()> {
        let admin = self.client.admin();
        let mut descriptor = NamespaceDescriptor::new(&namespace.name).map_err(|_| Failure::Internal)?;
        descriptor.configuration = namespace.configuration.clone().unwrap_or_default();
        match is_new {
            true => admin.create_namespace(&descriptor).await?,
            false => admin.modify_namespace(&descriptor).await?,
        }
        Ok(())
    }

    pub(super) async fn delete_namespace(&self, name: &str) -> Result<()> {
        Ok(self.client.admin().delete_namespace(name).await?)
    }

    pub(super) async fn namespace(&self, name: &str) -> Result<TNamespaceDescriptor> {
        Ok(namespace_to(self.client.admin().namespace(name).await?))
    }

    pub(super) async fn namespaces(&self) -> Result<Vec<TNamespaceDescriptor>> {
        let namespaces = self.client.admin().list_namespaces().await?;
        Ok(namespaces.into_iter().map(namespace_to).collect())
    }

    pub(super) async fn namespace_names(&self) -> Result<Vec<String>> {
        let namespaces = self.client.admin().list_namespaces().await?;
        Ok(namespaces.into_iter().map(|namespace| namespace.name).collect())
    }
}

fn namespace_to(namespace: NamespaceDescriptor) -> TNamespaceDescriptor {
    let configuration = Some(namespace.configuration).filter(|settings| !settings.is_empty());
    TNamespaceDescriptor { name: namespace.name, configuration }
}

fn location_to(location: &Location) -> THRegionLocation {
    let (server, region) = (&location.server, &location.region);
    THRegionLocation {
        server: TServerName {
            host: server.host.clone(),
            port: Some(server.port.into()),
            start_code: Some(server.start_code.cast_signed()),
        },
        region: THRegionInfo {
            // HBase does not set it.
            id: 0,
            table: region.table.to_string().into(),
            start_key: region.start_key.clone(),
            end_key: region.end_key.clone(),
            offline: region.offline,
            split: region.split,
            replica: region.replica_id.cast_signed(),
        },
    }
}
