//! A region: the rows of a table from one key to another, from open to close.
//!
//! Writers publish under one short lock and wait for the log; readers take views and never lock; flush and compaction
//! work beside both and publish a new view at their end. Invariants:
//!
//! * Lock order: rows, then publish. Both are held for plain computation only, never across an await.
//! * Under the publish lock the order of sequence ids, of the log's queue and of the memstores is made one.
//! * What is acknowledged is durable: an answer waits until the read point has passed its write.
//! * A snapshot leaves the view only when its cells are in durable files of the same view.
//! * Once the log has failed nothing is served: cells that may be lost are in the memstores.
//!
//! Not here: when to flush and compact (`budget::Maintenance`), which server has which region.

mod batch;
mod change;
mod check;
mod close;
mod compact;
mod delta;
mod encode;
mod figures;
mod files;
mod flush;
mod inventory;
mod open;
mod options;
mod output;
mod read;
mod reads;
mod split;
mod split_policy;
mod warmth;
mod write;

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
use wal::marker::MarkedRegion;

pub use change::Changed;
pub use compact::{CompactionKind, Pace, Selected, Unhurried};
pub use figures::{RegionFigures, StoreFigures};
pub(crate) use files::{open_files, open_listed};
pub use flush::Flushed;
pub use open::Opening;
pub(crate) use open::recovered_edits;
pub use options::RegionOptions;
pub use reads::Reads;
pub use split_policy::SplitOptions;
pub use write::BatchBegun;

use crate::budget::{FlushReason, Maintenance, MemstoreBudget};
use crate::compaction::Settings;
use crate::error::{Error, Result};
use crate::instruments::{Instruments, RegionInstruments, StoreCounts};
use crate::mvcc::Mvcc;
use crate::nonces::Nonces;
use crate::scanner::{BlockLoader, FamilyRules};
use crate::store::{RegionView, StoreFile};

/// What the regions of a server share. Cheap to clone.
#[derive(Clone)]
pub struct RegionServices {
    /// Time, chance, tasks.
    pub env: Env,
    /// The files.
    pub fs: Arc<dyn FileSystem>,
    /// Where what lies.
    pub root: layout::RootDir,
    /// Makes writes durable.
    pub log: Arc<wal::Log>,
    /// Reads blocks of files through the cache.
    pub loader: Arc<BlockLoader>,
    /// The memory of all memstores.
    pub budget: Arc<MemstoreBudget>,
    /// Which operations of clients were carried out already.
    pub nonces: Arc<Nonces>,
    /// Does the chores.
    pub maintenance: Arc<dyn Maintenance>,
    /// Settings.
    pub options: Arc<RegionOptions>,
    /// Where they note what they do.
    pub instruments: Arc<Instruments>,
    /// The server's name for the log's markers; none for a region used alone.
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
    marked: MarkedRegion,
    scopes: Arc<[wal::Scope]>,
    // Set once, before the region serves.
    open_seq_id: AtomicU64,
    // Set by the first cell with tags; files without any are smaller.
    has_tags: AtomicBool,
    // Of a mutation that does not say.
    durability: Durability,
    read_only: bool,
    flush_bytes: u64,
    blocking_bytes: u64,
    split_policy: split_policy::SplitPolicy,
    this: Weak<Region>,
    mvcc: Arc<Mvcc>,
    // Lock order: rows, then publish.
    rows: crate::row_locks::RowLocks,
    publish: Mutex<Publish>,
    // Replaced under `publish` only; read without.
    view: ArcSwap<RegionView>,
    // Changed under `publish` only, so that a publisher that saw `Serving` is before the change.
    state: AtomicU8,
    // One flush at a time; what is left of one that failed.
    flushing: tokio::sync::Mutex<Option<flush::Pending>>,
    // By store: which files are compacted when.
    compaction_settings: Vec<Settings>,
    // By store: what is being compacted.
    compacting: Vec<Mutex<compact::InProgress>>,
    // Read as long as a compaction runs; a close waits for its end.
    compactions_run: tokio::sync::RwLock<()>,
    archiving: tokio::sync::Mutex<()>,
    // The inventory on disk, if it is known.
    recorded: tokio::sync::Mutex<Option<layout::Inventory>>,
    // Compacted away, in their directories until no view holds them: index of the store and file.
    retired: Mutex<Vec<(usize, Arc<StoreFile>)>>,
    // Names that may be in a store's directory although no view has the file: index of the store and name.
    strays: Mutex<Vec<(usize, String)>>,
    counters: figures::Counters,
    instruments: RegionInstruments,
    // By store: what reads find there.
    store_counts: Arc<[Counts<StoreCounts>]>,
}

/// What the publish lock guards beside the order of things.
#[derive(Default)]
struct Publish {
    // The last timestamp given to a cell: none shortly before it is given again.
    last_timestamp: i64,
    // What the budget was told last.
    charged_bytes: u64,
}

/// A region's life after it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RegionState {
    /// Reads and writes.
    Serving,
    /// No new reads and writes; what is in memory goes to files.
    Closing,
    /// Nothing any more.
    Closed,
}

impl Region {
    /// The region's table, range and id.
    pub fn info(&self) -> &RegionInfo {
        &self.info
    }

    /// The table as it was when the region was opened.
    pub fn table(&self) -> &Arc<TableDescriptor> {
        &self.table
    }

    /// A number that no other region of this process has had.
    pub fn number(&self) -> NonZeroU64 {
        self.number
    }

    /// The full name, printable.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The encoded name.
    pub fn encoded_name(&self) -> &Arc<str> {
        &self.encoded
    }

    /// The first sequence id that was free at open (what hbase:meta has as `seqnumDuringOpen`).
    pub fn open_seq_id(&self) -> u64 {
        self.open_seq_id.load(Ordering::Relaxed)
    }

    /// The order of its writes.
    pub fn mvcc(&self) -> &Arc<Mvcc> {
        &self.mvcc
    }

    /// Whether it reads and writes.
    pub fn state(&self) -> RegionState {
        match self.state.load(Ordering::Acquire) {
            state if state == RegionState::Serving as u8 => RegionState::Serving,
            state if state == RegionState::Closing as u8 => RegionState::Closing,
            _ => RegionState::Closed,
        }
    }

    /// How many families it has.
    pub fn family_count(&self) -> usize {
        self.families.len()
    }

    /// The families in order of names; a store's index is its family's here.
    pub(crate) fn families(&self) -> &[FamilyDescriptor] {
        &self.families
    }

    pub(crate) fn rules(&self) -> &[FamilyRules] {
        &self.rules
    }

    pub(crate) fn loader(&self) -> &Arc<BlockLoader> {
        &self.services.loader
    }

    pub(crate) fn order(&self) -> CellOrder {
        self.table.order()
    }

    /// Time, chance and tasks of the server that has the region.
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

    /// Whether `row` lies in the region.
    ///
    /// # Errors
    /// [`Error::WrongRegion`].
    pub(crate) fn check_contains(&self, row: &[u8]) -> Result<()> {
        if self.info.contains(row) {
            return Ok(());
        }
        Err(Error::WrongRegion { region: self.name.clone(), row: Bytes::copy_from_slice(row) })
    }

    /// How safe `mutation` is to be made.
    pub(crate) fn durability_of(&self, mutation: &Mutation) -> Durability {
        if self.info.table.is_meta() {
            return Durability::SyncWal;
        }
        match mutation.durability {
            Durability::UseDefault => self.durability,
            durability => durability,
        }
    }

    fn not_serving(&self) -> Error {
        Error::NotServing { region: self.name.clone() }
    }

    /// Whether the region reads and writes.
    ///
    /// # Errors
    /// [`Error::NotServing`], or the log's error once it has failed.
    fn check_serving(&self) -> Result<()> {
        if self.state() != RegionState::Serving {
            return Err(self.not_serving());
        }
        self.mvcc.check()
    }

    /// The publish lock.
    ///
    /// # Errors
    /// The error of the region's end, if a holder panicked: an edit may be in the memstore and not in the log.
    fn publish_lock(&self) -> Result<MutexGuard<'_, Publish>> {
        self.publish.lock().map_err(|_| {
            let error = Error::log("a write was torn by a panic");
            self.mvcc.fail(error.clone());
            error
        })
    }

    /// Replaces the view and tells the budget. `_publish` is the lock it is done under.
    fn set_view(&self, publish: &mut Publish, view: RegionView) {
        self.view.store(Arc::new(view));
        self.charge(publish);
    }

    /// Tells the budget what the memstores take now, and gives it back.
    fn charge(&self, publish: &mut Publish) -> u64 {
        let now = self.view.load().memstore_bytes();
        self.services.budget.moved(publish.charged_bytes, now);
        publish.charged_bytes = now;
        now
    }

    /// Puts a marker into the log's queue; `_publish` is the lock it is done under. Returns its sequence id.
    fn append_marker(&self, publish: &mut Publish, marker: impl FnOnce(u64, u64) -> KeyValue) -> u64 {
        let _ = publish;
        let seq_id = self.mvcc.next_seq_id();
        let now_ms = self.services.env.clock.now_ms();
        let cell = marker(seq_id, now_ms);
        self.append_edit(seq_id, now_ms, encode::logged_bytes(&cell), 1, (0, 0), true);
        seq_id
    }

    /// Puts a marker into the log and waits until it is durable.
    async fn log_marker(&self, marker: impl FnOnce(u64, u64) -> KeyValue) -> Result<u64> {
        let seq_id = self.append_marker(&mut *self.publish_lock()?, marker);
        self.mvcc.wait_visible(seq_id).await?;
        Ok(seq_id)
    }

    fn append_edit(
        &self,
        seq_id: u64,
        write_time_ms: u64,
        cells: Bytes,
        cell_count: u32,
        nonce: (u64, u64),
        logged: bool,
    ) {
        self.services.log.append(wal::Edit {
            region: self.encoded.clone(),
            table: self.marked.table.clone(),
            seq_id,
            write_time_ms,
            cells,
            cell_count,
            nonce,
            scopes: self.scopes.clone(),
            logged,
            committed: self.mvcc.clone(),
        });
    }

    fn want_flush(&self, reason: FlushReason) {
        if let Some(this) = self.this.upgrade() {
            self.services.maintenance.flush_wanted(&this, reason);
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let charged = self
            .publish
            .get_mut()
            .map_or_else(|poison| poison.into_inner().charged_bytes, |p| p.charged_bytes);
        self.services.budget.moved(charged, 0);
    }
}

/// How safe the mutations of a table are made that do not say.
fn durability_of(table: &TableDescriptor) -> Durability {
    match table.attribute("DURABILITY").map(str::to_ascii_uppercase).as_deref() {
        Some("SKIP_WAL") => Durability::SkipWal,
        Some("ASYNC_WAL") => Durability::AsyncWal,
        Some("FSYNC_WAL") => Durability::FsyncWal,
        _ => Durability::SyncWal,
    }
}
