//! Tables of a root directory that a server may be using, without writing a byte.
//!
//! The regions of a table are read from `hbase:meta`, its files and its logs. They are read again
//! after all store files are open: if the regions changed meanwhile, the reader starts over.
//! [`engine::stored`] describes what a reader of a region sees.
//!
//! A snapshot ([`snapshot`]) has a fixed set of files, whatever happens to its table.

use std::sync::Arc;
use std::time::Duration;

use cell::KeyValue;
use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use engine::stored::{StoredRegion, StoredRegions};
use layout::snapshot::SnapshotTracker;
use wal::recovery::{IndexedRegion, LogIndex};

use crate::read_only::ReadOnly;
use crate::{Error, Result, catalog, recovered};

/// How often a table may fail to open: its files and those of `hbase:meta` move meanwhile.
const ATTEMPTS_MAX: u32 = 20;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(50);

/// A snapshot whose regions can be opened.
pub struct StoredSnapshot {
    /// The descriptor of its table when it was taken.
    pub table: Arc<TableDescriptor>,
    /// Its regions, in order of their rows.
    pub regions: Vec<RegionInfo>,
    /// Opens the regions.
    pub stored: StoredRegions,
}

/// The store files of a table.
pub struct StoredTable {
    /// Its descriptor.
    pub table: Arc<TableDescriptor>,
    /// Its regions, in order of their rows.
    pub regions: Vec<StoredRegion>,
}

/// Opens the store files of a table. The caller chooses the tracker of its store files; for any
/// table of Grampus or HBase, [`DetectedTracker`](crate::file_lists::DetectedTracker).
///
/// # Errors
/// [`Error::Refused`] if `hbase:meta` has no region of the table; errors of reading that last.
pub async fn open(stored: &StoredRegions, name: &TableName) -> Result<StoredTable> {
    let stored = read_only(stored);
    let mut attempt = 1;
    loop {
        match try_open(&stored, name).await {
            Ok(Some(table)) => return Ok(table),
            Ok(None) if attempt == ATTEMPTS_MAX => {
                return Err(Error::Refused(format!("the regions of table {name} change all the time")));
            }
            Err(error) if attempt == ATTEMPTS_MAX || is_final(&error) => return Err(error),
            _ => attempt += 1,
        }
        stored.env.clock.sleep(PAUSE).await;
    }
}

/// Whether another attempt is useless: the format does not change, and [`StoredRegions::open`] has
/// retried for long while a store changed.
fn is_final(error: &Error) -> bool {
    matches!(error, Error::Engine(engine::Error::Unsupported { .. } | engine::Error::TooBusy { .. }))
}

/// Opens a table; `None` if its regions changed meanwhile.
async fn try_open(stored: &StoredRegions, name: &TableName) -> Result<Option<StoredTable>> {
    let infos = regions(stored, name).await?;
    let table = Arc::new(stored.root.read_table_descriptor(&*stored.fs, name).await?);
    let mut regions = Vec::with_capacity(infos.len());
    for info in &infos {
        regions.push(stored.open(table.clone(), info.clone()).await?);
    }
    let is_same = self::regions(stored, name).await? == infos;
    Ok(is_same.then_some(StoredTable { table, regions }))
}

/// The same regions, of a file system that refuses changes.
fn read_only(stored: &StoredRegions) -> StoredRegions {
    StoredRegions { fs: Arc::new(ReadOnly(stored.fs.clone())), ..stored.clone() }
}

/// Opens a snapshot of either layout.
///
/// # Errors
/// [`Error::Refused`] if there is none of this name; [`Error::Layout`] if it is damaged.
pub async fn snapshot(stored: &StoredRegions, name: &str) -> Result<StoredSnapshot> {
    let stored = read_only(stored);
    let manifest = match stored.root.read_snapshot(&*stored.fs, name).await {
        Err(layout::Error::Fs(fs::Error::NotFound { .. })) => {
            return Err(Error::Refused(format!("there is no snapshot {name:?}")));
        }
        manifest => manifest?,
    };
    let table = Arc::new(manifest.table.clone());
    let served = manifest.regions.iter().filter(|region| region.is_served());
    let regions = served.map(|region| region.info.clone()).collect();
    let stored = StoredRegions { tracker: Arc::new(SnapshotTracker(Arc::new(manifest))), ..stored };
    Ok(StoredSnapshot { table, regions, stored })
}

/// The regions of a table that have edits only in logs, or in what HBase split from logs. Their
/// store files lack rows. Logs outside of the root directory (`hbase.wal.dir`) are not read.
///
/// # Errors
/// Errors of reading the logs and the files, and damage in them.
pub async fn regions_with_edits(
    stored: &StoredRegions,
    table: &Arc<TableDescriptor>,
    regions: &[RegionInfo],
) -> Result<Vec<RegionInfo>> {
    let stored = read_only(stored);
    let mut logs = Vec::new();
    for dir in catalog::log_dirs(&*stored.fs, &stored.root).await? {
        logs.extend(wal::recovery::logs_in(&*stored.fs, &dir).await?);
    }
    let index = Arc::new(wal::recovery::scan(&*stored.fs, &logs).await?);
    let mut found = Vec::new();
    for info in regions {
        let (fs, root) = (&*stored.fs, &stored.root);
        if recovered::count_edits(fs, root, info).await? > 0
            || recovered::hfiles(fs, root, info).await?.is_some()
        {
            found.push(info.clone());
            continue;
        }
        // The log of a server that died keeps edits that were flushed by the next server.
        let may_have = |indexed: &IndexedRegion| indexed.highest_seq_id > indexed.closed_at;
        if index.region(&info.encoded_name()).is_some_and(may_have) {
            let region = stored.open(table.clone(), info.clone()).await?;
            if has_edits(&stored, &index, &region).await? {
                found.push(info.clone());
            }
        }
    }
    Ok(found)
}

/// Whether the logs have edits of a region that are not in its files.
async fn has_edits(stored: &StoredRegions, index: &Arc<LogIndex>, region: &StoredRegion) -> Result<bool> {
    let mut entries =
        wal::recovery::read_region(stored.fs.clone(), index.clone(), &region.info().encoded_name());
    while let Some(entry) = entries.next().await? {
        for bytes in entry.key_values() {
            let cell = KeyValue::from_bytes(bytes).map_err(engine::error::Error::from)?;
            // Markers, and cells of families that were deleted, are in no store.
            let flushed = region.flushed_seq_id(cell.view(0).family());
            if flushed.is_ok_and(|flushed| entry.key.seq_id > flushed) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The regions of a table, in order of their rows.
///
/// # Errors
/// [`Error::Refused`] if `hbase:meta` has no region of the table; errors of reading it.
pub async fn regions(stored: &StoredRegions, name: &TableName) -> Result<Vec<RegionInfo>> {
    let catalog = catalog::inspect(&stored.env, &*stored.fs, &stored.root).await?;
    let mut regions = catalog.served_regions(name);
    if regions.is_empty() {
        return Err(Error::Refused(format!("hbase:meta has no region of table {name}")));
    }
    regions.sort_by(|one, other| one.start_key.cmp(&other.start_key));
    Ok(regions)
}
