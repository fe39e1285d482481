//! The contents of the master's own region (`MasterData`): the location of `hbase:meta`, the known
//! region servers, switches and procedures.

use std::sync::Arc;

use base::env::Env;
use cell::mutation::Mutation;
use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use engine::Region;
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use layout::RootDir;
use master::procedure::Record;
use master::procedure::journal::Journal;
use master::store::{MasterStore, PROCEDURES, SERVERS, STATE};
use prost::Message;
use wire::meta::region_row;

use crate::catalog::{log_dirs, rows};
use crate::scratch::{copy_tree, list, walk};
use crate::{Result, file_lists, offline};

/// The family of the location of `hbase:meta`.
const INFO: &[u8] = b"info";
/// The qualifier of a procedure and of a switch.
const MESSAGE: &[u8] = b"d";
/// The directory of a region with logs of dead masters.
const RECOVERED_LOGS: &str = "recovered.wals";

/// The rows of switches: the names of HBase 2.6 and ours.
const SWITCHES: [(&[u8], &[u8]); 4] = [
    (b"split_enabled", b"split"),
    (b"merge_enabled", b"merge"),
    (b"snapshot_cleanup_enabled", b"snapshot-cleanup"),
    (b"load_balancer_on", b"load_balancer_on"),
];

/// A switch: its row, and whether it is on.
pub type Switch = (Vec<u8>, bool);

/// The contents of the master's own region.
#[derive(Debug, Default)]
pub struct MasterContent {
    /// The cells of the location of `hbase:meta`.
    pub location: Vec<KeyValue>,
    /// The region servers that the master knew.
    pub servers: Vec<ServerName>,
    /// Switches that were ever set, with the row names of HBase.
    pub switches: Vec<Switch>,
    /// All procedures.
    pub procedures: Vec<proto::Procedure>,
    /// Rows of procedures that cannot be decoded.
    pub unreadable: Vec<String>,
}

/// Reads the master's own region in the directory `dir`, which is not changed: it is copied to
/// memory. A missing directory has no content.
///
/// # Errors
/// Errors of reading, and damage in these files.
pub async fn inspect(env: &Env, fs: &dyn FileSystem, dir: &FilePath) -> Result<MasterContent> {
    let memory = MemoryFs::with_clock(env.clock.clone());
    let copy = RootDir::new(FilePath::root());
    let target = copy.master_data();
    let is_obsolete =
        |path: &FilePath| ["archive", "oldWALs"].iter().any(|name| path.is_at_or_below(&dir.join(name)));
    copy_tree(fs, dir, &memory, target.path(), |path| !is_obsolete(path)).await?;
    file_lists::remove_all(&memory, target.path()).await?;
    let mut logs = log_dirs(&memory, &target).await?;
    let entries = walk(&memory, &target.data_dir()).await?;
    logs.extend(
        entries
            .into_iter()
            .filter(|(_, entry)| entry.is_dir && entry.name == RECOVERED_LOGS)
            .map(|(dir, _)| dir),
    );
    let memory: Arc<dyn FileSystem> = Arc::new(memory);
    let store = open(env, &memory, &copy, &logs).await?;
    let content = read(store.region()).await;
    store.region().abandon();
    store.close().await?;
    content
}

/// Opens the master's own region of `root`.
pub(crate) async fn open(
    env: &Env,
    fs: &Arc<dyn FileSystem>,
    root: &RootDir,
    logs: &[FilePath],
) -> Result<MasterStore> {
    let name = offline::new_name(env, &**fs, &root.master_data()).await?;
    // If the log fails, the next write returns the error.
    let on_fatal = Arc::new(|_: &wal::Error| ());
    Ok(MasterStore::open(env, fs, root, &name, logs, on_fatal).await?)
}

/// Reads the open region.
///
/// # Errors
/// Errors of the region.
pub async fn read(region: &Region) -> Result<MasterContent> {
    let mut content = MasterContent::default();
    for cell in rows(region).await?.into_iter().flatten() {
        let view = cell.view(0);
        match view.family() {
            INFO if view.row() == &*region_row(&RegionInfo::meta()) => content.location.push(cell.clone()),
            SERVERS => {
                content.servers.extend(std::str::from_utf8(view.row()).ok().and_then(ServerName::parse))
            }
            STATE => content.switches.extend(switch_of(view.row(), view.value)),
            PROCEDURES if view.qualifier() == MESSAGE && !view.value.is_empty() => {
                match proto::Procedure::decode(view.value) {
                    Ok(procedure) => content.procedures.push(procedure),
                    Err(error) => content.unreadable.push(format!("{}: {error}", view.row().escape_ascii())),
                }
            }
            _ => {}
        }
    }
    Ok(content)
}

/// A switch of HBase or of Grampus, with HBase's row name.
fn switch_of(row: &[u8], value: &[u8]) -> Option<Switch> {
    let (name, _) = SWITCHES.iter().find(|(theirs, ours)| row == *theirs || row == *ours)?;
    let value = bytes::Bytes::copy_from_slice(value);
    let state: proto::SwitchState = proto::magic::without_magic(&value).ok()?;
    Some((name.to_vec(), state.enabled()))
}

fn put(row: &[u8], family: &[u8], qualifier: &[u8], value: &[u8]) -> Mutation {
    Mutation::put(
        row.to_vec(),
        vec![KeyValue::new(row, family, qualifier, LATEST_TIMESTAMP, CellType::Put, value)],
    )
}

fn switch_value(on: bool) -> bytes::Bytes {
    proto::magic::with_magic(&proto::SwitchState { enabled: Some(on) })
}

/// Creates the master's own region of Grampus, with the parts of `content` that it needs, and with
/// `records`: procedures that its master continues.
///
/// # Errors
/// Errors of the region. The call may be repeated after the directory was removed.
pub async fn create(
    env: &Env,
    fs: &Arc<dyn FileSystem>,
    root: &RootDir,
    content: &MasterContent,
    records: &[Record],
) -> Result<()> {
    let store = open(env, fs, root, &[]).await?;
    // In a directory of HBase, `hbase:meta` names the server that has a region's edits in its logs.
    store.set_needs_replay(false).await?;
    let region = store.region();
    let mut mutations = Vec::new();
    for cell in &content.location {
        let view = cell.view(0);
        mutations.push(put(view.row(), INFO, view.qualifier(), view.value));
    }
    mutations.extend(
        content.servers.iter().map(|server| put(server.to_string().as_bytes(), SERVERS, STATE, b"ONLINE")),
    );
    for (name, on) in &content.switches {
        let ours = SWITCHES.iter().find(|(theirs, _)| name == theirs).map(|(_, ours)| *ours);
        mutations.extend(ours.map(|row| put(row, STATE, MESSAGE, &switch_value(*on))));
    }
    for mutation in mutations {
        region.batch_atomic(vec![mutation]).await?;
    }
    let journal = Journal::new(region.clone());
    for record in records {
        journal.put(record).await?;
    }
    store.close().await?;
    remove_logs(&**fs, root).await
}

/// Makes the master's own region one that HBase's master reads: no procedures, `hbase:meta` open on
/// `server`, and `server` the only known one. `has_switches`: HBase stores switches in the region.
///
/// # Errors
/// Errors of the region; the call may be repeated.
pub async fn hand_back(
    env: &Env,
    fs: &Arc<dyn FileSystem>,
    root: &RootDir,
    server: &ServerName,
    has_switches: bool,
) -> Result<MasterContent> {
    let logs = log_dirs(&**fs, &root.master_data()).await?;
    let store = open(env, fs, root, &logs).await?;
    let region = store.region();
    let content = read(region).await?;
    for cells in rows(region).await? {
        let row = cells[0].view(0).row().to_vec();
        // A delete would also hide a cell that is written within the same millisecond.
        let is_rewritten =
            row == *region_row(&RegionInfo::meta()) || SWITCHES.iter().any(|(theirs, _)| row == *theirs);
        if !is_rewritten {
            region.batch_atomic(vec![Mutation::delete(row, Vec::new())]).await?;
        }
    }
    let meta = RegionInfo::meta();
    let mut mutations = vec![
        wire::meta::row::put_opening(&meta, server),
        wire::meta::row::put_open(&meta, server, 1),
        put(server.to_string().as_bytes(), SERVERS, STATE, b"ONLINE"),
        // An empty value only states that no smaller id may be used again. Ids of Grampus follow
        // the clock.
        put(&env.clock.now_ms().to_be_bytes(), PROCEDURES, MESSAGE, b""),
    ];
    if has_switches {
        let switches = content.switches.iter();
        mutations.extend(switches.map(|(name, on)| put(name, STATE, MESSAGE, &switch_value(*on))));
    }
    for mutation in mutations {
        region.batch_atomic(vec![mutation]).await?;
    }
    store.close().await?;
    remove_logs(&**fs, root).await?;
    name_tracker(&**fs, &root.master_data()).await?;
    // HBase takes a table directory without this mark for one that was interrupted.
    fs.make_dirs(&root.master_data().data_dir().join("master/store/.initialized")).await?;
    Ok(content)
}

/// Names the store file tracker in the descriptor: HBase's master does not start without this, and
/// migrates the region itself if its configuration has another tracker.
async fn name_tracker(fs: &dyn FileSystem, root: &RootDir) -> Result<()> {
    let table = TableName::new("master", "store").expect("a legal name");
    let mut descriptor = root.read_table_descriptor(fs, &table).await?;
    let before = descriptor.attributes.insert(file_lists::KEY.into(), "DEFAULT".into());
    if before.as_deref() != Some(b"DEFAULT") {
        root.write_table_descriptor(fs, &descriptor).await?;
    }
    Ok(())
}

/// Removes all logs of the master's own region: its edits are in store files.
async fn remove_logs(fs: &dyn FileSystem, root: &RootDir) -> Result<()> {
    let root = root.master_data();
    for entry in list(fs, &root.wals_dir()).await? {
        fs.delete(&root.wals_dir().join(&entry.name)).await?;
    }
    fs.delete(&root.log_record().parent()).await?;
    Ok(())
}
