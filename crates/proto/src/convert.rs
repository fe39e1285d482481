//! Tables, families, regions, servers and namespaces: messages to and from the types of `cell`.
//!
//! To a message: `proto::RegionInfo::from(&region)`; back: `RegionInfo::try_from(&message)`. A
//! message that these types cannot represent (an illegal name, a port over 65535) is rejected with
//! [`Invalid`]. Attributes and settings are converted unchanged.

use bytes::Bytes;
use cell::cell::FAMILY_LEN_MAX;
use cell::region::{RegionInfo, ServerName};
use cell::schema::{
    Attributes, Configuration, FamilyDescriptor, IllegalName, NamespaceDescriptor, TableDescriptor, TableName,
};

use crate as pb;

/// The message has invalid content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);

impl From<IllegalName> for Invalid {
    fn from(error: IllegalName) -> Invalid {
        Invalid(error.0)
    }
}

fn text<'a>(bytes: &'a [u8], what: &str) -> Result<&'a str, Invalid> {
    std::str::from_utf8(bytes).map_err(|_| Invalid(format!("{what} is not UTF-8: {}", bytes.escape_ascii())))
}

impl From<&TableName> for pb::TableName {
    fn from(name: &TableName) -> pb::TableName {
        pb::TableName {
            namespace: Bytes::copy_from_slice(name.namespace().as_bytes()),
            qualifier: Bytes::copy_from_slice(name.qualifier().as_bytes()),
        }
    }
}

impl TryFrom<&pb::TableName> for TableName {
    type Error = Invalid;

    fn try_from(name: &pb::TableName) -> Result<TableName, Invalid> {
        Ok(TableName::new(text(&name.namespace, "namespace")?, text(&name.qualifier, "table qualifier")?)?)
    }
}

impl From<&RegionInfo> for pb::RegionInfo {
    /// Sets all fields, as HBase does.
    fn from(region: &RegionInfo) -> pb::RegionInfo {
        pb::RegionInfo {
            region_id: region.region_id,
            table_name: (&region.table).into(),
            start_key: Some(region.start_key.clone()),
            end_key: Some(region.end_key.clone()),
            offline: Some(region.offline),
            split: Some(region.split),
            replica_id: Some(region.replica_id.cast_signed()),
        }
    }
}

impl TryFrom<&pb::RegionInfo> for RegionInfo {
    type Error = Invalid;

    fn try_from(region: &pb::RegionInfo) -> Result<RegionInfo, Invalid> {
        let replica_id = region.replica_id();
        Ok(RegionInfo {
            table: (&region.table_name).try_into()?,
            start_key: region.start_key.clone().unwrap_or_default(),
            end_key: region.end_key.clone().unwrap_or_default(),
            region_id: region.region_id,
            replica_id: u32::try_from(replica_id).map_err(|_| Invalid(format!("replica id {replica_id}")))?,
            offline: region.offline(),
            split: region.split(),
        })
    }
}

impl From<&ServerName> for pb::ServerName {
    fn from(server: &ServerName) -> pb::ServerName {
        pb::ServerName {
            host_name: server.host.clone(),
            port: Some(u32::from(server.port)),
            start_code: Some(server.start_code),
        }
    }
}

impl TryFrom<&pb::ServerName> for ServerName {
    type Error = Invalid;

    fn try_from(server: &pb::ServerName) -> Result<ServerName, Invalid> {
        let port = u16::try_from(server.port()).map_err(|_| Invalid(format!("port {}", server.port())))?;
        Ok(ServerName { host: server.host_name.clone(), port, start_code: server.start_code() })
    }
}

impl From<&TableDescriptor> for pb::TableSchema {
    fn from(table: &TableDescriptor) -> pb::TableSchema {
        pb::TableSchema {
            table_name: Some((&table.name).into()),
            attributes: attributes_to(&table.attributes),
            column_families: table.families.values().map(Into::into).collect(),
            configuration: configuration_to(&table.configuration),
        }
    }
}

impl TryFrom<&pb::TableSchema> for TableDescriptor {
    type Error = Invalid;

    fn try_from(schema: &pb::TableSchema) -> Result<TableDescriptor, Invalid> {
        let name =
            schema.table_name.as_ref().ok_or_else(|| Invalid("the table schema has no name".into()))?;
        let mut table = TableDescriptor {
            attributes: attributes_from(&schema.attributes),
            configuration: configuration_from(&schema.configuration),
            ..TableDescriptor::new(name.try_into()?)
        };
        for family in &schema.column_families {
            table = table.with_family(family.try_into()?);
        }
        Ok(table)
    }
}

impl From<&FamilyDescriptor> for pb::ColumnFamilySchema {
    fn from(family: &FamilyDescriptor) -> pb::ColumnFamilySchema {
        pb::ColumnFamilySchema {
            name: family.name.clone(),
            attributes: attributes_to(&family.attributes),
            configuration: configuration_to(&family.configuration),
        }
    }
}

impl TryFrom<&pb::ColumnFamilySchema> for FamilyDescriptor {
    type Error = Invalid;

    fn try_from(family: &pb::ColumnFamilySchema) -> Result<FamilyDescriptor, Invalid> {
        if family.name.is_empty() {
            return Err(Invalid("Column Family name can not be empty".into()));
        }
        if family.name.len() > FAMILY_LEN_MAX {
            return Err(Invalid(format!(
                "column family name has {} bytes, the maximum is 127",
                family.name.len()
            )));
        }
        Ok(FamilyDescriptor {
            attributes: attributes_from(&family.attributes),
            configuration: configuration_from(&family.configuration),
            ..FamilyDescriptor::new(family.name.clone())
        })
    }
}

impl From<&NamespaceDescriptor> for pb::NamespaceDescriptor {
    fn from(namespace: &NamespaceDescriptor) -> pb::NamespaceDescriptor {
        pb::NamespaceDescriptor {
            name: Bytes::copy_from_slice(namespace.name.as_bytes()),
            configuration: configuration_to(&namespace.configuration),
        }
    }
}

impl TryFrom<&pb::NamespaceDescriptor> for NamespaceDescriptor {
    type Error = Invalid;

    fn try_from(namespace: &pb::NamespaceDescriptor) -> Result<NamespaceDescriptor, Invalid> {
        Ok(NamespaceDescriptor {
            configuration: configuration_from(&namespace.configuration),
            ..NamespaceDescriptor::new(text(&namespace.name, "namespace")?)?
        })
    }
}

fn attributes_to(attributes: &Attributes) -> Vec<pb::BytesBytesPair> {
    attributes
        .iter()
        .map(|(name, value)| pb::BytesBytesPair { first: name.clone(), second: value.clone() })
        .collect()
}

fn attributes_from(pairs: &[pb::BytesBytesPair]) -> Attributes {
    pairs.iter().map(|pair| (pair.first.clone(), pair.second.clone())).collect()
}

fn configuration_to(configuration: &Configuration) -> Vec<pb::NameStringPair> {
    configuration
        .iter()
        .map(|(name, value)| pb::NameStringPair { name: name.clone(), value: value.clone() })
        .collect()
}

fn configuration_from(pairs: &[pb::NameStringPair]) -> Configuration {
    pairs.iter().map(|pair| (pair.name.clone(), pair.value.clone())).collect()
}
