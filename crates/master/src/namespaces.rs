//! Namespaces, kept as HBase 2.x keeps them: rows of the table `hbase:namespace` (`info:d`), and a directory for each.
//! They are in memory too, once the table could be read.
//!
//! If the table cannot be read (somebody disabled it), the directories tell which namespaces there are, without their
//! settings: their tables are served all the same.

use std::collections::BTreeMap;
use std::sync::Mutex;

use cell::mutation::Mutation;
use cell::schema::{DEFAULT_NAMESPACE, NamespaceDescriptor, SYSTEM_NAMESPACE, TableDescriptor, TableName};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use prost::Message;
use tokio::sync::watch;
use tracing::warn;
use wire::exception::{Answer, JavaException};

use crate::assignment::RegionState;
use crate::context::Context;
use crate::master::{system_family, table_with};
use crate::meta::{scan_rows, write_rows};
use crate::refusal;
use crate::tables::failed;

/// Namespaces that are always there.
pub const RESERVED: &[&str] = &[DEFAULT_NAMESPACE, SYSTEM_NAMESPACE];

const FAMILY: &[u8] = b"info";
const DESCRIPTOR: &[u8] = b"d";

/// The namespaces of a cluster.
pub struct Namespaces {
    known: Mutex<BTreeMap<String, NamespaceDescriptor>>,
    loaded: watch::Sender<bool>,
}

impl Default for Namespaces {
    fn default() -> Namespaces {
        let reserved = RESERVED.iter().map(|name| ((*name).to_string(), plain(name))).collect();
        Namespaces { known: Mutex::new(reserved), loaded: watch::Sender::new(false) }
    }
}

impl Namespaces {
    /// All namespaces by name.
    pub fn all(&self) -> Vec<NamespaceDescriptor> {
        self.lock().values().cloned().collect()
    }

    /// A namespace.
    ///
    /// # Errors
    /// `NamespaceNotFoundException`.
    pub fn get(&self, name: &str) -> Answer<NamespaceDescriptor> {
        self.lock().get(name).cloned().ok_or_else(|| refusal::namespace_not_found(name))
    }

    /// Refuses a namespace that does not exist. Waits until it is known which there are.
    ///
    /// # Errors
    /// `NamespaceNotFoundException`.
    pub async fn require(&self, name: &str) -> Answer<()> {
        // The table of the namespaces is made before they can be known.
        if !RESERVED.contains(&name) {
            self.wait_loaded().await;
        }
        self.get(name).map(|_| ())
    }

    /// Returns when it is known which namespaces there are.
    pub async fn wait_loaded(&self) {
        let mut loaded = self.loaded.subscribe();
        loaded.wait_for(|loaded| *loaded).await.expect("the sender lives as long as self");
    }

    fn put(&self, namespace: NamespaceDescriptor) {
        self.lock().insert(namespace.name.clone(), namespace);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, NamespaceDescriptor>> {
        self.known.lock().expect("no holder of this lock panics")
    }
}

fn plain(name: &str) -> NamespaceDescriptor {
    NamespaceDescriptor { name: name.to_string(), configuration: BTreeMap::new() }
}

/// `hbase:namespace`.
pub fn table_name() -> TableName {
    TableName::new(SYSTEM_NAMESPACE, "namespace").expect("a legal name")
}

/// The table's descriptor.
pub fn descriptor() -> TableDescriptor {
    table_with(table_name(), system_family("info"))
}

/// Reads which namespaces there are, and writes the rows of those that are always there.
pub(crate) async fn load(context: &Context) {
    match read(context).await {
        Ok(found) => found.into_iter().for_each(|namespace| context.namespaces.put(namespace)),
        Err(error) => {
            warn!(%error, "hbase:namespace cannot be read; the directories tell which namespaces there are");
            match context.tables.namespace_directories().await {
                Ok(names) => names.iter().for_each(|name| context.namespaces.put(plain(name))),
                Err(error) => warn!(%error, "namespaces are not known"),
            }
        }
    }
    context.namespaces.loaded.send_replace(true);
}

async fn read(context: &Context) -> Answer<Vec<NamespaceDescriptor>> {
    let mut found = Vec::new();
    let regions = context.assignment.regions_of(&table_name());
    if regions.is_empty() {
        return Err(JavaException::io("it has no regions"));
    }
    for (region, _) in regions {
        context.assignment.wait_for_open(std::slice::from_ref(&region)).await?;
        let Some(RegionState::Open(server)) = context.assignment.state(&region) else {
            return Err(JavaException::io("it is not open"));
        };
        for row in scan_rows(&*context.connections.client(&server), &region).await? {
            // Versions of one column: the newest comes first.
            let descriptor = row.iter().map(|cell| cell.view(0)).find(|cell| cell.qualifier() == DESCRIPTOR);
            found.extend(descriptor.and_then(|cell| parse(cell.value)));
        }
    }
    for name in RESERVED {
        if !found.iter().any(|known| known.name == *name) {
            write(context, row_of(&plain(name))).await?;
        }
    }
    found.extend(restore_lost(context, &found).await?);
    Ok(found)
}

/// Makes the rows of namespaces whose tables have directories: they were lost with files of `hbase:namespace`.
async fn restore_lost(context: &Context, found: &[NamespaceDescriptor]) -> Answer<Vec<NamespaceDescriptor>> {
    let tables = &context.tables;
    let with_tables = tables.root().list_tables(tables.fs()).await.map_err(failed)?;
    let mut names: Vec<&str> = with_tables.iter().map(TableName::namespace).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !RESERVED.contains(name) && !found.iter().any(|known| known.name == *name));
    let mut restored = Vec::new();
    for name in names {
        warn!(
            namespace = name,
            "hbase:namespace lacks a namespace that has tables; it is added without configuration"
        );
        let namespace = plain(name);
        write(context, row_of(&namespace)).await?;
        restored.push(namespace);
    }
    Ok(restored)
}

fn parse(value: &[u8]) -> Option<NamespaceDescriptor> {
    let namespace = proto::NamespaceDescriptor::decode(value)
        .map_err(|error| error.to_string())
        .and_then(|message| NamespaceDescriptor::try_from(&message).map_err(|error| error.to_string()));
    namespace.inspect_err(|error| warn!(error, "a row of hbase:namespace is passed over")).ok()
}

fn row_of(namespace: &NamespaceDescriptor) -> Mutation {
    let name = namespace.name.as_bytes();
    let value = proto::NamespaceDescriptor::from(namespace).encode_to_vec();
    let cell = KeyValue::new(name, FAMILY, DESCRIPTOR, LATEST_TIMESTAMP, CellType::Put, &value);
    Mutation::put(name.to_vec(), vec![cell])
}

/// Makes or changes a namespace: in its table, then in memory.
///
/// # Errors
/// What the table's server answered.
pub(crate) async fn put(context: &Context, namespace: &NamespaceDescriptor) -> Answer<()> {
    write(context, row_of(namespace)).await?;
    context.namespaces.put(namespace.clone());
    Ok(())
}

/// Removes a namespace: from its table, then from memory.
///
/// # Errors
/// What the table's server answered.
pub(crate) async fn remove(context: &Context, name: &str) -> Answer<()> {
    write(context, Mutation::delete(name.as_bytes().to_vec(), Vec::new())).await?;
    context.namespaces.lock().remove(name);
    Ok(())
}

async fn write(context: &Context, row: Mutation) -> Answer<()> {
    let regions = context.assignment.regions_of(&table_name());
    match regions.into_iter().find(|(region, _)| region.contains(&row.row)) {
        Some((region, RegionState::Open(server))) => {
            write_rows(&*context.connections.client(&server), &region, std::slice::from_ref(&row)).await
        }
        _ => Err(JavaException::io("hbase:namespace is not open")),
    }
}
