//! Namespaces. As in HBase 2.x, they are stored in rows of the table `hbase:namespace` (`info:d`),
//! and each has a directory. After the table has been read, they are also in memory.
//!
//! If the table cannot be read (it may be disabled, or its region cannot be opened yet), each
//! directory counts as a namespace, so that the tables in it can still be used. The settings are
//! unknown then. They can be neither queried nor changed until the table has been read: a client
//! changes them by writing back what it has read, and would remove the stored ones.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::env::TaskClass;
use cell::mutation::Mutation;
use cell::schema::{DEFAULT_NAMESPACE, NamespaceDescriptor, SYSTEM_NAMESPACE, TableDescriptor, TableName};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use prost::Message;
use proto::exception::{Answer, JavaException, class};
use tokio::sync::watch;
use tracing::{info, warn};

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

/// How long the start of a master waits for the table. All calls of clients wait meanwhile.
const READ_PATIENCE: Duration = Duration::from_secs(60);
/// The pause before another attempt to read the table.
const READ_PAUSE: Duration = Duration::from_secs(1);

/// The namespaces of a cluster.
pub struct Namespaces {
    by_name: Mutex<BTreeMap<String, NamespaceDescriptor>>,
    source: watch::Sender<Source>,
}

/// Where the namespaces in memory come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// They are not loaded; only the reserved ones are known.
    Nothing,
    /// The directories. The settings are unknown.
    Directories,
    /// The table.
    Table,
}

impl Default for Namespaces {
    fn default() -> Namespaces {
        Namespaces { by_name: Mutex::new(by_name(Vec::new())), source: watch::Sender::new(Source::Nothing) }
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

    /// Waits until the namespaces are loaded. Returns an error if their settings are still unknown.
    ///
    /// # Errors
    /// `NotServingRegionException`; the client may retry.
    pub async fn require_settings(&self) -> Answer<()> {
        match self.wait_loaded().await {
            Source::Table => Ok(()),
            _ => Err(JavaException::new(
                class::NOT_SERVING_REGION,
                "hbase:namespace has not been read, because its region is not open (retry)",
            )),
        }
    }

    async fn wait_loaded(&self) -> Source {
        let mut source = self.source.subscribe();
        *source.wait_for(|source| *source != Source::Nothing).await.expect("the sender lives as long as self")
    }

    fn put(&self, namespace: NamespaceDescriptor) {
        self.lock().insert(namespace.name.clone(), namespace);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, NamespaceDescriptor>> {
        self.by_name.lock().expect("no holder of this lock panics")
    }
}

/// These namespaces and the reserved ones, by name.
fn by_name(found: Vec<NamespaceDescriptor>) -> BTreeMap<String, NamespaceDescriptor> {
    let reserved = RESERVED.iter().map(|name| without_settings(name));
    reserved.chain(found).map(|namespace| (namespace.name.clone(), namespace)).collect()
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

/// Loads the namespaces, and writes missing rows of the reserved ones. If the table cannot be read,
/// uses the directories, and repeats the attempt until it succeeds.
pub(crate) async fn load(context: &Arc<Context>) {
    let loaded = context.env.timeout(READ_PATIENCE, load_table(context)).await;
    let late = || Err(JavaException::io(format!("not read within {READ_PATIENCE:?}")));
    let Err(error) = loaded.unwrap_or_else(late) else { return };
    warn!(%error, "cannot read hbase:namespace; using the directories of namespaces instead; retrying");
    match context.tables.namespace_directories().await {
        Ok(names) => names.iter().for_each(|name| context.namespaces.put(without_settings(name))),
        Err(error) => warn!(%error, "cannot list the directories of namespaces"),
    }
    context.namespaces.source.send_replace(Source::Directories);
    let weak = Arc::downgrade(context);
    context.env.spawn(TaskClass::Service, async move {
        while let Some(context) = weak.upgrade() {
            if load_table(&context).await.is_ok() {
                return info!("hbase:namespace has been read");
            }
            let clock = context.env.clock.clone();
            drop(context);
            clock.sleep(READ_PAUSE).await;
        }
    });
}

/// Loads the namespaces from the table. Until then no procedure changes one, so the table has the
/// latest state.
async fn load_table(context: &Context) -> Answer<()> {
    let found = read(context).await?;
    *context.namespaces.lock() = by_name(found);
    let earlier = context.namespaces.source.send_replace(Source::Table);
    debug_assert!(earlier != Source::Table, "the table is loaded once");
    Ok(())
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
            let (client, since_ms) =
                (context.connections.client(&server), context.assignment.active_since_ms());
            write_rows(&*client, &region, std::slice::from_ref(&row), since_ms).await
        }
        _ => Err(JavaException::io("hbase:namespace is not open")),
    }
}
