//! Namespaces. As in HBase 2.x, they are stored in rows of the table `hbase:namespace` (`info:d`),
//! and each has a directory. After the table has been read, they are also in memory.
//!
//! If the table cannot be read (it may be disabled), each directory counts as a namespace without
//! settings, so that the tables in it can still be used.

use std::collections::BTreeMap;
use std::sync::Mutex;

use cell::mutation::Mutation;
use cell::schema::{DEFAULT_NAMESPACE, NamespaceDescriptor, SYSTEM_NAMESPACE, TableDescriptor, TableName};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use prost::Message;
use proto::exception::{Answer, JavaException};
use tokio::sync::watch;
use tracing::warn;

use crate::assignment::RegionState;
use crate::context::Context;
use crate::master::{system_family, table_with};
use crate::meta::{scan_rows, write_rows};
use crate::refusal;
use crate::tables::file_exception;

/// Namespaces that always exist.
pub const RESERVED: &[&str] = &[DEFAULT_NAMESPACE, SYSTEM_NAMESPACE];

const FAMILY: &[u8] = b"info";
const DESCRIPTOR: &[u8] = b"d";

/// The namespaces of a cluster.
pub struct Namespaces {
    by_name: Mutex<BTreeMap<String, NamespaceDescriptor>>,
    loaded: watch::Sender<bool>,
}

impl Default for Namespaces {
    fn default() -> Namespaces {
        let reserved = RESERVED.iter().map(|name| ((*name).to_string(), without_settings(name))).collect();
        Namespaces { by_name: Mutex::new(reserved), loaded: watch::Sender::new(false) }
    }
}

impl Namespaces {
    /// All namespaces, sorted by name.
    pub fn all(&self) -> Vec<NamespaceDescriptor> {
        self.lock().values().cloned().collect()
    }

    /// Finds a namespace.
    ///
    /// # Errors
    /// `NamespaceNotFoundException`.
    pub fn get(&self, name: &str) -> Answer<NamespaceDescriptor> {
        self.lock().get(name).cloned().ok_or_else(|| refusal::namespace_not_found(name))
    }

    /// Returns an error if a namespace does not exist. Waits until the namespaces are loaded.
    ///
    /// # Errors
    /// `NamespaceNotFoundException`.
    pub async fn require(&self, name: &str) -> Answer<()> {
        // Do not wait for a reserved namespace: `hbase:namespace` is itself created in one, before
        // it can be loaded.
        if !RESERVED.contains(&name) {
            self.wait_loaded().await;
        }
        self.get(name).map(|_| ())
    }

    /// Waits until the namespaces are loaded.
    pub async fn wait_loaded(&self) {
        let mut loaded = self.loaded.subscribe();
        loaded.wait_for(|loaded| *loaded).await.expect("the sender lives as long as self");
    }

    fn put(&self, namespace: NamespaceDescriptor) {
        self.lock().insert(namespace.name.clone(), namespace);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, NamespaceDescriptor>> {
        self.by_name.lock().expect("no holder of this lock panics")
    }
}

fn without_settings(name: &str) -> NamespaceDescriptor {
    NamespaceDescriptor { name: name.to_string(), configuration: BTreeMap::new() }
}

/// The name of the table `hbase:namespace`.
pub fn table_name() -> TableName {
    TableName::new(SYSTEM_NAMESPACE, "namespace").expect("a legal name")
}

/// The descriptor of the table.
pub fn descriptor() -> TableDescriptor {
    table_with(table_name(), system_family("info"))
}

/// Loads the namespaces, and writes missing rows of the reserved ones.
pub(crate) async fn load(context: &Context) {
    match read(context).await {
        Ok(found) => found.into_iter().for_each(|namespace| context.namespaces.put(namespace)),
        Err(error) => {
            warn!(%error, "cannot read hbase:namespace; using the directories of namespaces instead");
            match context.tables.namespace_directories().await {
                Ok(names) => names.iter().for_each(|name| context.namespaces.put(without_settings(name))),
                Err(error) => warn!(%error, "cannot list the directories of namespaces"),
            }
        }
    }
    let was_loaded = context.namespaces.loaded.send_replace(true);
    debug_assert!(!was_loaded, "the namespaces are loaded once");
}

async fn read(context: &Context) -> Answer<Vec<NamespaceDescriptor>> {
    let mut found = Vec::new();
    let regions = context.assignment.regions_of(&table_name());
    if regions.is_empty() {
        return Err(JavaException::io("no regions"));
    }
    for (region, _) in regions {
        context.assignment.wait_for_open(std::slice::from_ref(&region)).await?;
        let Some(RegionState::Open(server)) = context.assignment.state(&region) else {
            return Err(JavaException::io("region not open"));
        };
        for row in scan_rows(&*context.connections.client(&server), &region).await? {
            // There may be several versions; the newest is first.
            let descriptor = row.iter().map(|cell| cell.view(0)).find(|cell| cell.qualifier() == DESCRIPTOR);
            found.extend(descriptor.and_then(|cell| parse(cell.value)));
        }
    }
    for name in RESERVED {
        if !found.iter().any(|known| known.name == *name) {
            write(context, row_of(&without_settings(name))).await?;
        }
    }
    found.extend(restore_lost(context, &found).await?);
    Ok(found)
}

/// Adds the missing rows of namespaces whose tables have directories. The rows were lost with files
/// of `hbase:namespace`.
async fn restore_lost(context: &Context, found: &[NamespaceDescriptor]) -> Answer<Vec<NamespaceDescriptor>> {
    let tables = &context.tables;
    let with_tables = tables.root().list_tables(tables.fs()).await.map_err(file_exception)?;
    let mut names: Vec<&str> = with_tables.iter().map(TableName::namespace).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !RESERVED.contains(name) && !found.iter().any(|known| known.name == *name));
    let mut restored = Vec::new();
    for name in names {
        warn!(
            namespace = name,
            "adding namespace to hbase:namespace, because it has tables; its settings are lost"
        );
        let namespace = without_settings(name);
        write(context, row_of(&namespace)).await?;
        restored.push(namespace);
    }
    Ok(restored)
}

fn parse(value: &[u8]) -> Option<NamespaceDescriptor> {
    let namespace = proto::NamespaceDescriptor::decode(value)
        .map_err(|error| error.to_string())
        .and_then(|message| NamespaceDescriptor::try_from(&message).map_err(|error| error.to_string()));
    namespace.inspect_err(|error| warn!(error, "skipping malformed row of hbase:namespace")).ok()
}

fn row_of(namespace: &NamespaceDescriptor) -> Mutation {
    let name = namespace.name.as_bytes();
    let value = proto::NamespaceDescriptor::from(namespace).encode_to_vec();
    let cell = KeyValue::new(name, FAMILY, DESCRIPTOR, LATEST_TIMESTAMP, CellType::Put, &value);
    Mutation::put(name.to_vec(), vec![cell])
}

/// Creates or changes a namespace, in its table and then in memory.
///
/// # Errors
/// The error of the table's server.
pub(crate) async fn put(context: &Context, namespace: &NamespaceDescriptor) -> Answer<()> {
    write(context, row_of(namespace)).await?;
    context.namespaces.put(namespace.clone());
    Ok(())
}

/// Removes a namespace, from its table and then from memory.
///
/// # Errors
/// The error of the table's server.
pub(crate) async fn remove(context: &Context, name: &str) -> Answer<()> {
    debug_assert!(!RESERVED.contains(&name), "reserved namespaces always exist");
    write(context, Mutation::delete(name.as_bytes().to_vec(), Vec::new())).await?;
    context.namespaces.lock().remove(name);
    Ok(())
}

async fn write(context: &Context, row: Mutation) -> Answer<()> {
    let regions = context.assignment.regions_of(&table_name());
    match regions.into_iter().find(|(region, _)| region.contains(&row.row)) {
        Some((region, RegionState::Open(server))) => {
            write_rows(&*context.connections.client(&server), &region, std::slice::from_ref(&row), None).await
        }
        _ => Err(JavaException::io("hbase:namespace is not open")),
    }
}
