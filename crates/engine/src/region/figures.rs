//! What a region says of itself: for the cluster's status, its metrics, and who chooses what to flush and compact.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use bytes::Bytes;

use crate::region::Region;

/// Counted as it happens.
#[derive(Default)]
pub(super) struct Counters {
    reads: AtomicU64,
    writes: AtomicU64,
    pub(super) flushing: AtomicBool,
    pub(super) flushed_seq_id: AtomicU64,
    pub(super) flushes: AtomicU64,
    pub(super) compactions: AtomicU64,
    pub(super) last_flush_ms: AtomicU64,
    /// Cells of running compactions: to be read and read so far; of ended ones too, as HBase reports them.
    pub(super) compacting_cells: AtomicU64,
    pub(super) compacted_cells: AtomicU64,
}

impl Counters {
    pub(super) fn count_writes(&self, mutations: usize) {
        self.writes.fetch_add(mutations as u64, Relaxed);
    }
}

/// A region's figures at one moment.
#[derive(Clone, Debug, Default)]
pub struct RegionFigures {
    /// By family in order of names.
    pub stores: Vec<StoreFigures>,
    /// Bytes of all memstores, those being flushed too.
    pub memstore_bytes: u64,
    /// Serialized bytes of the cells in memstores.
    pub memstore_data_bytes: u64,
    /// Rows read by gets and scans since open.
    pub read_requests: u64,
    /// Mutations since open.
    pub write_requests: u64,
    /// The first sequence id that was free at open.
    pub open_seq_id: u64,
    /// The newest write that may be read.
    pub read_point: u64,
    /// The edit up to which all edits of all stores are in files.
    pub flushed_seq_id: u64,
    /// Whether a flush is running.
    pub is_flushing: bool,
    /// Flushes since open.
    pub flushes: u64,
    /// Compactions since open.
    pub compactions: u64,
    /// When the last flush ended (when the region was opened, if there was none), milliseconds since the epoch.
    pub last_flush_ms: u64,
    /// Cells that compactions had or have to read.
    pub compacting_cells: u64,
    /// Cells that they have read.
    pub compacted_cells: u64,
}

/// A store's figures.
#[derive(Clone, Debug, Default)]
pub struct StoreFigures {
    /// The family.
    pub family: Bytes,
    /// Its files.
    pub files: usize,
    /// Their bytes on disk.
    pub file_bytes: u64,
    /// Cells in its files.
    pub file_cells: u64,
    /// The newest edit in its files.
    pub file_seq_id: u64,
    /// Whether all is in one file made by a major compaction.
    pub is_major_compacted: bool,
    /// When the oldest of its files that major compactions made was written, milliseconds since the epoch; 0 if there
    /// is none.
    pub oldest_major_ms: u64,
    /// Bytes of its memstores.
    pub memstore_bytes: u64,
}

impl Region {
    /// Bytes of memory that open files take apart from their blocks: roots of indexes, places of filters.
    pub fn open_file_bytes(&self) -> u64 {
        let view = self.view.load();
        let files = view.stores.iter().flat_map(|store| store.files.iter());
        files.map(|file| file.reader().heap_len() as u64).sum()
    }

    /// The figures now.
    pub fn figures(&self) -> RegionFigures {
        let view = self.view.load();
        let stores = self.families().iter().zip(&view.stores).map(|(family, store)| StoreFigures {
            family: family.name.clone(),
            files: store.files.len(),
            file_bytes: store.files.iter().map(|file| file.len()).sum(),
            file_cells: store.files.iter().map(|file| file.cell_count()).sum(),
            file_seq_id: store.max_file_seq_id(),
            is_major_compacted: matches!(&store.files[..], [only] if only.reader().info().is_major),
            oldest_major_ms: oldest_major_ms(&store.files),
            memstore_bytes: store.memstore_bytes(),
        });
        let counters = &self.counters;
        RegionFigures {
            stores: stores.collect(),
            memstore_bytes: view.memstore_bytes(),
            memstore_data_bytes: view.stores.iter().map(|store| store.data_bytes()).sum(),
            read_requests: counters.reads.load(Relaxed),
            write_requests: counters.writes.load(Relaxed),
            open_seq_id: self.open_seq_id(),
            read_point: self.mvcc.read_point(),
            flushed_seq_id: counters.flushed_seq_id.load(Relaxed),
            is_flushing: counters.flushing.load(Relaxed),
            flushes: counters.flushes.load(Relaxed),
            compactions: counters.compactions.load(Relaxed),
            last_flush_ms: counters.last_flush_ms.load(Relaxed),
            compacting_cells: counters.compacting_cells.load(Relaxed),
            compacted_cells: counters.compacted_cells.load(Relaxed),
        }
    }

    /// Paths of the files of the store of `family`, oldest first.
    ///
    /// # Errors
    /// [`Error::NoSuchFamily`](crate::Error::NoSuchFamily).
    pub fn store_files(&self, family: &[u8]) -> crate::error::Result<Vec<fs::FilePath>> {
        let at = self.store_of(family)?;
        Ok(self.view.load().stores[at].files.iter().map(|file| file.path().clone()).collect())
    }

    /// Bytes of the memstores, those being flushed too.
    pub fn memstore_bytes(&self) -> u64 {
        self.view.load().memstore_bytes()
    }

    /// Takes note of rows that a get or a scan returned.
    pub fn count_reads(&self, rows: u64) {
        self.counters.reads.fetch_add(rows, Relaxed);
    }
}

/// When the oldest file that a major compaction made was written; 0 if there is none.
fn oldest_major_ms(files: &[std::sync::Arc<crate::store::StoreFile>]) -> u64 {
    let infos = files.iter().map(|file| file.reader().info());
    let made = infos.filter(|info| info.is_major).filter_map(|info| u64::try_from(info.create_time_ms?).ok());
    made.min().unwrap_or(0)
}
