//! A region: the rows of a table in one key range, from open to close.
//!
//! Writers publish under one short lock and wait for the log. Readers take a view and no lock.
//! Flush and compaction run concurrently with both and install a new view at their end. Invariants:
//!
//! * Lock order: rows, then publish. Both are held for computation only, never across an await.
//! * The publish lock gives sequence ids, the log's queue, and the memstores the same order.
//! * An acknowledged write is durable, unless its client waived that: its response waits until the
//!   read point has passed it.
//! * A snapshot leaves the view only when its cells are in durable files of the same view.
//! * After a log failure nothing is served, because the memstores hold cells that may be lost.
//!
//! Not here: when to flush and compact ([`Maintenance`]), and which server has which region.

mod batch;
mod bulk_load;
mod cache_warming;
mod change;
mod check;
mod close;
mod compact;
mod compaction_progress;
mod delta;
mod encode;
mod files;
mod flush;
mod flush_wait;
mod inventory;
mod maintenance;
mod metrics;
mod mob_cleaner;
mod mob_output;
mod moved_files;
mod open;
mod options;
mod output;
mod read;
mod reader;
mod recovered_edits;
mod row_reader;
mod split;
mod split_policy;
mod storage_policy;
mod strays;
mod write;
mod write_clock;
mod write_pause;

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use arc_swap::ArcSwap;
use base::env::Env;
use base::metrics::Counts;
use bytes::Bytes;
use cell::mutation::{Durability, Mutation};
use cell::region::{RegionInfo, ServerName};
use cell::schema::{FamilyDescriptor, TableDescriptor};
use cell::{CellOrder, KeyValue};
use fs::FileSystem;
use layout::StoreFileTracker;
use wal::marker::MarkedRegion;

pub use bulk_load::{BulkFile, BulkLoad, BulkSource, MovableFile};
pub use change::Changed;
pub(crate) use close::log_close_of_unopened;
pub use compact::{CompactionKind, CompactionThrottle, SelectedCompaction, Unthrottled};
pub(crate) use files::{FileCache, open_files, open_listed, partition_replaced};
pub use flush::Flushed;
pub use maintenance::{FlushReason, Maintenance, NoMaintenance};
pub use metrics::{RegionMetrics, StoreMetrics};
pub use open::Opening;
pub use options::RegionOptions;
pub(crate) use read::limit_to_region;
pub use reader::RegionReader;
pub(crate) use recovered_edits::recovered_edits;
pub use row_reader::{BatchReader, RowReader};
pub use split_policy::SplitOptions;
pub use storage_policy::StoragePolicies;
pub use write::PendingBatch;

use crate::budget::MemstoreBudget;
use crate::compaction::Settings;
use crate::error::{Error, Result};
use crate::instruments::{Instruments, RegionInstruments, StoreCounts};
use crate::mob::{MobFiles, MobResolver};
use crate::mvcc::Mvcc;
use crate::nonces::Nonces;
use crate::region::write_clock::WriteClock;
use crate::scanner::{BlockLoader, FamilyRules};
use crate::store::{RegionView, StoreFile};

/// What the regions of a server share. Cheap to clone.
#[derive(Clone)]
pub struct RegionServices {
    /// Clock, random numbers, and tasks.
    pub env: Env,
    /// The file system.
    pub fs: Arc<dyn FileSystem>,
    /// The layout of the root directory.
    pub root: layout::RootDir,
    /// Which files belong to a store.
    pub tracker: Arc<dyn StoreFileTracker>,
    /// The log that makes writes durable.
    pub log: Arc<wal::Log>,
    /// Reads blocks of files through the cache.
    pub loader: Arc<BlockLoader>,
    /// The memory limit of all memstores.
    pub budget: Arc<MemstoreBudget>,
    /// The client operations that already ran.
    pub nonces: Arc<Nonces>,
    /// Runs flushes and compactions on request.
    pub maintenance: Arc<dyn Maintenance>,
    /// The open MOB files.
    pub mob: Arc<MobFiles>,
    /// Settings.
    pub options: Arc<RegionOptions>,
    /// The metrics of the server and its regions.
    pub instruments: Arc<Instruments>,
    /// The server's name in the log's markers; `None` for a region without a server.
    pub server: Option<ServerName>,
}

/// An open region.
pub struct Region {
    // Fixed at open.
    number: NonZeroU64,
    services: RegionServices,
    info: RegionInfo,
    table: Arc<TableDescriptor>,
    families: Vec<FamilyDescriptor>,
    rules: Vec<FamilyRules>,
    name: Arc<str>,
    encoded: Arc<str>,
    // Builds the markers that the region writes to the log.
    markers: MarkedRegion,
    scopes: Arc<[wal::Scope]>,
    // Set once, before the region serves.
    open_seq_id: AtomicU64,
    // Set by the first cell with tags. Files without tags are smaller.
    has_tags: AtomicBool,
    // Sequence id of the newest edit with cells that skip the log; 0 if there was none.
    newest_unlogged: AtomicU64,
    // For mutations that specify none.
    durability: Durability,
    read_only: bool,
    flush_bytes: u64,
    blocking_bytes: u64,
    split_policy: split_policy::SplitPolicy,
    this: Weak<Region>,
    mvcc: Arc<Mvcc>,
    // Lock order: rows, then publish.
    rows: crate::row_locks::RowLocks,
    publish: Mutex<PublishState>,
    // Replaced under the `publish` lock only; read without it.
    view: ArcSwap<RegionView>,
    // Changed under the `publish` lock only: a publisher that sees `Serving` precedes the change.
    state: AtomicU8,
    // The lock allows one flush at a time. `Some` if a flush failed and must be finished.
    flushing: tokio::sync::Mutex<Option<flush::FrozenFlush>>,
    // By store: which files are compacted, and when.
    compaction_settings: Vec<Settings>,
    // By store: the compactions in progress.
    compacting: Vec<Mutex<compact::InProgress>>,
    // By store: whether the directory for new files can be used, see `ready_output_dir`.
    output_dirs_ready: Vec<tokio::sync::Mutex<bool>>,
    // A running compaction holds the read lock; a close waits for the write lock.
    compactions_run: tokio::sync::RwLock<()>,
    archiving: tokio::sync::Mutex<()>,
    // The inventory on disk, if known.
    recorded: tokio::sync::Mutex<Option<layout::Inventory>>,
    // Files that were compacted away, each with the index of its store. They stay in their
    // directories until no view holds them.
    retired: Mutex<Vec<(usize, Arc<StoreFile>)>>,
    // Files that no view has but that may be in a store's directory.
    strays: Mutex<Vec<strays::Stray>>,
    // Resolves references to MOB files; `None` if no family has any.
    mob: Option<Arc<MobResolver>>,
    // Names of MOB files to which a store file that is being written refers.
    mob_files_in_use: Arc<Mutex<Vec<String>>>,
    counters: metrics::Counters,
    instruments: RegionInstruments,
    // By store: where reads find cells.
    store_counts: Arc<[Counts<StoreCounts>]>,
}

/// An edit for the log.
struct NewEdit {
    seq_id: u64,
    write_time_ms: u64,
    cells: Bytes,
    cell_count: u32,
    nonce: (u64, u64),
    // Whether the families' replication scopes apply. As in HBase, markers have none, except those
    // of bulk loads.
    is_replicated: bool,
    cluster_ids: Option<Arc<[(u64, u64)]>>,
    durability: Durability,
}

impl NewEdit {
    fn marker(seq_id: u64, write_time_ms: u64, cell: &KeyValue) -> NewEdit {
        NewEdit {
            seq_id,
            write_time_ms,
            cells: encode::logged_bytes(cell),
            cell_count: 1,
            nonce: (0, 0),
            is_replicated: false,
            cluster_ids: None,
            durability: Durability::SyncWal,
        }
    }

    /// The edit as the log takes it, for the region that `markers` names.
    fn into_log(
        self,
        markers: &MarkedRegion,
        region: Arc<str>,
        scopes: Arc<[wal::Scope]>,
        listener: Arc<Mvcc>,
    ) -> wal::Edit {
        wal::Edit {
            region,
            table: markers.table.clone(),
            seq_id: self.seq_id,
            write_time_ms: self.write_time_ms,
            cells: self.cells,
            cell_count: self.cell_count,
            nonce: self.nonce,
            scopes: if self.is_replicated { scopes } else { Arc::default() },
            cluster_ids: self.cluster_ids,
            logged: self.durability != Durability::SkipWal,
            forced: self.durability == Durability::FsyncWal,
            listener,
        }
    }
}

/// The region as markers in the log name it.
fn marked(info: &RegionInfo) -> MarkedRegion {
    MarkedRegion {
        table: info.table.to_string().into(),
        encoded: info.encoded_name().into(),
        name: info.name(),
        start_key: info.start_key.clone(),
    }
}

/// The state that the publish lock protects, in addition to the order of writes.
struct PublishState {
    // The timestamps of cells.
    clock: WriteClock,
    // The memstore bytes most recently reported to the budget.
    charged_bytes: u64,
}

/// The state of an opened region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RegionState {
    /// Serves reads and writes.
    Serving,
    /// Refuses new reads and writes; memory is written to files.
    Closing,
    /// Serves nothing.
    Closed,
}

impl Region {
    /// The region's table, range and id.
    pub fn info(&self) -> &RegionInfo {
        &self.info
    }

    /// The table descriptor when the region was opened.
    pub fn table(&self) -> &Arc<TableDescriptor> {
        &self.table
    }

    /// A number that is unique among all regions this process has opened.
    pub fn number(&self) -> NonZeroU64 {
        self.number
    }

    /// The full name, in printable form.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The encoded name: a hash of the full name.
    pub fn encoded_name(&self) -> &Arc<str> {
        &self.encoded
    }

    /// The sequence id that follows the greatest one used before the region was opened
    /// (`seqnumDuringOpen` in hbase:meta).
    pub fn open_seq_id(&self) -> u64 {
        self.open_seq_id.load(Ordering::Relaxed)
    }

    /// Sequence ids and read point of the region's writes.
    pub fn mvcc(&self) -> &Arc<Mvcc> {
        &self.mvcc
    }

    /// Whether the region serves, is closing, or is closed.
    pub fn state(&self) -> RegionState {
        match self.state.load(Ordering::Acquire) {
            state if state == RegionState::Serving as u8 => RegionState::Serving,
            state if state == RegionState::Closing as u8 => RegionState::Closing,
            _ => RegionState::Closed,
        }
    }

    /// Number of families.
    pub fn family_count(&self) -> usize {
        self.families.len()
    }

    /// The families, sorted by name. The index of a store is that of its family here.
    pub(crate) fn families(&self) -> &[FamilyDescriptor] {
        &self.families
    }

    /// Reads blocks of the region's files through the cache.
    pub fn loader(&self) -> &Arc<BlockLoader> {
        &self.services.loader
    }

    pub(crate) fn order(&self) -> CellOrder {
        self.table.order()
    }

    /// Clock, random numbers, and tasks of the region's server.
    pub fn env(&self) -> &Env {
        &self.services.env
    }

    pub(crate) fn options(&self) -> &RegionOptions {
        &self.services.options
    }

    /// The index of the store of `family`.
    ///
    /// # Errors
    /// [`Error::NoSuchFamily`].
    pub(crate) fn store_of(&self, family: &[u8]) -> Result<usize> {
        let found = self.families.iter().position(|known| known.name == family);
        found.ok_or_else(|| Error::NoSuchFamily {
            region: self.name.clone(),
            family: Bytes::copy_from_slice(family),
        })
    }

    /// Checks that `row` belongs to the region.
    ///
    /// # Errors
    /// [`Error::WrongRegion`].
    pub(crate) fn check_contains(&self, row: &[u8]) -> Result<()> {
        if self.info.contains(row) {
            return Ok(());
        }
        Err(Error::WrongRegion { region: self.name.clone(), row: Bytes::copy_from_slice(row) })
    }

    /// The effective durability of `mutation`.
    pub(crate) fn durability_of(&self, mutation: &Mutation) -> Durability {
        if self.info.table.is_meta() {
            return Durability::SyncWal;
        }
        match mutation.durability {
            Durability::UseDefault => self.durability,
            durability => durability,
        }
    }

    /// Checks that no other process has taken over the log, which it does before it opens regions
    /// of this one. A process that was frozen together with its clocks does not know that its
    /// regions are open elsewhere.
    ///
    /// # Errors
    /// [`TakenOver`](fs::Error::TakenOver), and errors of the file system.
    pub async fn check_owned(&self) -> Result<()> {
        Ok(self.services.log.check_owned().await?)
    }

    fn not_serving(&self) -> Error {
        Error::NotServing { region: self.name.clone() }
    }

    /// Checks that the region serves reads and writes.
    ///
    /// # Errors
    /// [`Error::NotServing`], or the log's error after it has failed.
    fn check_serving(&self) -> Result<()> {
        if self.state() != RegionState::Serving {
            return Err(self.not_serving());
        }
        self.mvcc.check_log()
    }

    /// Takes the publish lock.
    ///
    /// # Errors
    /// If a holder panicked, an edit may be in the memstore but not in the log. The region then
    /// fails permanently with this error.
    fn publish_lock(&self) -> Result<MutexGuard<'_, PublishState>> {
        self.publish.lock().map_err(|_| {
            let error = Error::log("a write was interrupted by a panic");
            self.mvcc.fail(error.clone());
            error
        })
    }

    /// Replaces the view and updates the budget, under the lock of `_publish`.
    fn set_view(&self, publish: &mut PublishState, view: RegionView) {
        assert!(view.stores.len() == self.families.len(), "a view has a store for each family");
        self.view.store(Arc::new(view));
        self.report_memstore_bytes(publish);
    }

    /// Reports the current size of the memstores to the budget, and returns it.
    fn report_memstore_bytes(&self, publish: &mut PublishState) -> u64 {
        let now = self.view.load().memstore_bytes();
        self.services.budget.resized(publish.charged_bytes, now);
        publish.charged_bytes = now;
        now
    }

    /// Appends a marker to the log's queue, under the lock of `_publish`. Returns its sequence id.
    fn append_marker(&self, publish: &mut PublishState, marker: impl FnOnce(u64, u64) -> KeyValue) -> u64 {
        let _ = publish;
        let seq_id = self.mvcc.next_seq_id();
        let now_ms = self.services.env.clock.now_ms();
        let cell = marker(seq_id, now_ms);
        self.append_edit(NewEdit::marker(seq_id, now_ms, &cell));
        seq_id
    }

    /// Appends a marker to the log and waits until it is durable.
    async fn log_marker(&self, marker: impl FnOnce(u64, u64) -> KeyValue) -> Result<u64> {
        let seq_id = self.append_marker(&mut *self.publish_lock()?, marker);
        self.mvcc.wait_visible(seq_id).await?;
        Ok(seq_id)
    }

    fn append_edit(&self, edit: NewEdit) {
        let (region, listener) = (self.encoded.clone(), self.mvcc.clone());
        self.services.log.append(edit.into_log(&self.markers, region, self.scopes.clone(), listener));
    }

    fn request_flush(&self, reason: FlushReason) {
        if let Some(this) = self.this.upgrade() {
            self.services.maintenance.request_flush(&this, reason);
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let charged = self
            .publish
            .get_mut()
            .map_or_else(|poison| poison.into_inner().charged_bytes, |p| p.charged_bytes);
        self.services.budget.resized(charged, 0);
    }
}

/// The durability of mutations that specify none.
fn durability_of(table: &TableDescriptor) -> Durability {
    match table.attribute("DURABILITY").map(str::to_ascii_uppercase).as_deref() {
        Some("SKIP_WAL") => Durability::SkipWal,
        Some("ASYNC_WAL") => Durability::AsyncWal,
        Some("FSYNC_WAL") => Durability::FsyncWal,
        _ => Durability::SyncWal,
    }
}
