//! `hbase:namespace`: the table in which HBase 2.x keeps namespaces. Here it is made and filled once, so that clients
//! and tools that look into it find what they expect.

use cell::mutation::Mutation;
use cell::region::RegionInfo;
use cell::schema::{DEFAULT_NAMESPACE, SYSTEM_NAMESPACE, TableDescriptor, TableName};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use prost::Message;
use wire::exception::Answer;

use crate::assignment::RegionState;
use crate::context::Context;
use crate::master::{system_family, table_with};
use crate::meta::write_rows;

/// The namespaces that there are; they cannot be changed yet.
pub const NAMESPACES: &[&str] = &[DEFAULT_NAMESPACE, SYSTEM_NAMESPACE];

/// Whether tables can be in `namespace`.
pub fn exists(namespace: &str) -> bool {
    NAMESPACES.contains(&namespace)
}

/// The message for a namespace.
pub fn message(name: &str) -> proto::NamespaceDescriptor {
    proto::NamespaceDescriptor { name: bytes::Bytes::copy_from_slice(name.as_bytes()), configuration: vec![] }
}

/// `hbase:namespace`.
pub fn table_name() -> TableName {
    TableName::new(SYSTEM_NAMESPACE, "namespace").expect("a legal name")
}

/// The table's descriptor.
pub fn descriptor() -> TableDescriptor {
    table_with(table_name(), system_family("info"))
}

/// Writes a row for each namespace.
///
/// # Errors
/// What the region's server answered.
pub async fn fill(context: &Context, region: &RegionInfo) -> Answer<()> {
    let Some(RegionState::Open(server)) = context.assignment.state(region) else { return Ok(()) };
    let rows: Vec<_> = NAMESPACES
        .iter()
        .map(|name| {
            let value = message(name).encode_to_vec();
            let cell = KeyValue::new(name.as_bytes(), b"info", b"d", LATEST_TIMESTAMP, CellType::Put, &value);
            Mutation::put(name.as_bytes(), vec![cell])
        })
        .collect();
    write_rows(&*context.connections.client(&server), region, &rows).await
}
