//! What a region says of itself: for the cluster's status, its metrics, and who chooses what to flush and compact.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use bytes::Bytes;

use crate::instruments::{RegionCounts, RegionInstruments, Usage};
use crate::region::Region;

/// Counted as it happens.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) flushing: AtomicBool,
    pub(super) flushed_seq_id: AtomicU64,
    pub(super) flushes: AtomicU64,
    pub(super) compactions: AtomicU64,
    pub(super) last_flush_ms: AtomicU64,
    /// Cells of running compactions: to be read and read so far; of ended ones too, as HBase reports them.
    pub(super) compacting_cells: AtomicU64,
    pub(super) compacted_cells: AtomicU64,
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
    /// Rows that filters kept from clients since open.
    pub filtered_reads: u64,
    /// Mutations since open.
    pub write_requests: u64,
    /// Gets since open.
    pub gets: u64,
    /// Calls of scans since open.
    pub scans: u64,
    /// Changes made together since open that had puts among them.
    pub puts: u64,
    /// The same with deletes.
    pub deletes: u64,
    /// Increments since open.
    pub increments: u64,
    /// Appends since open.
    pub appends: u64,
    /// What calls used since open.
    pub usage: Usage,
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
    /// Those that failed.
    pub compactions_failed: u64,
    /// Bytes of files that compactions read.
    pub compacted_bytes: u64,
    /// Files that they read.
    pub compacted_files: u64,
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
    /// Its files that say when they were made.
    pub dated_files: usize,
    /// When the oldest of these was made, milliseconds since the epoch; 0 if there is none.
    pub oldest_file_ms: u64,
    /// The same of its newest.
    pub newest_file_ms: u64,
    /// When they were made, added up.
    pub files_made_ms: u64,
    /// Files that refer to one of another region.
    pub reference_files: usize,
    /// Bytes of memory that the roots of their indexes take.
    pub root_index_bytes: u64,
    /// Bytes of the indexes of its files, unpacked.
    pub index_bytes: u64,
    /// Bytes of their Bloom filters, unpacked.
    pub bloom_bytes: u64,
    /// Bytes of its memstores.
    pub memstore_bytes: u64,
    /// Rows read since open all of whose cells came from memory.
    pub memstore_reads: u64,
    /// Rows read since open that had cells in files.
    pub mixed_reads: u64,
    /// Looks into Bloom filters since open.
    pub filter_looks: u64,
    /// Those that said no.
    pub filter_negatives: u64,
    /// Files, since open, whose filters would have been asked if they had any.
    pub filters_missing: u64,
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
        let of_families = self.families().iter().zip(&*self.store_counts);
        let stores = of_families.zip(&view.stores).map(|((family, counts), store)| StoreFigures {
            family: family.name.clone(),
            files: store.files.len(),
            file_bytes: store.files.iter().map(|file| file.len()).sum(),
            file_cells: store.files.iter().map(|file| file.cell_count()).sum(),
            file_seq_id: store.max_file_seq_id(),
            is_major_compacted: matches!(&store.files[..], [only] if only.reader().info().is_major),
            oldest_major_ms: oldest_major_ms(&store.files),
            dated_files: made_ms(&store.files).count(),
            oldest_file_ms: made_ms(&store.files).min().unwrap_or(0),
            newest_file_ms: made_ms(&store.files).max().unwrap_or(0),
            files_made_ms: made_ms(&store.files).sum(),
            reference_files: store.files.iter().filter(|file| file.is_reference()).count(),
            root_index_bytes: store.files.iter().map(|file| file.reader().root_index_bytes()).sum(),
            index_bytes: store.files.iter().map(|file| file.reader().trailer().data_index_plain_bytes).sum(),
            bloom_bytes: store.files.iter().map(|file| file.reader().bloom_bytes()).sum(),
            memstore_bytes: store.memstore_bytes(),
            memstore_reads: counts.get(|of| &of.memstore_reads),
            mixed_reads: counts.get(|of| &of.mixed_reads),
            filter_looks: counts.get(|of| &of.filter_looks),
            filter_negatives: counts.get(|of| &of.filter_negatives),
            filters_missing: counts.get(|of| &of.filters_missing),
        });
        let (counters, counts) = (&self.counters, self.instruments.counts());
        RegionFigures {
            stores: stores.collect(),
            memstore_bytes: view.memstore_bytes(),
            memstore_data_bytes: view.stores.iter().map(|store| store.data_bytes()).sum(),
            read_requests: RegionCounts::reads(counts),
            filtered_reads: counts.get(|of| &of.filtered_reads),
            write_requests: counts.get(|of| &of.writes),
            gets: counts.get(|of| &of.gets),
            scans: counts.get(|of| &of.scans),
            puts: counts.get(|of| &of.puts),
            deletes: counts.get(|of| &of.deletes),
            increments: counts.get(|of| &of.increments),
            appends: counts.get(|of| &of.appends),
            usage: Usage::of(counts),
            open_seq_id: self.open_seq_id(),
            read_point: self.mvcc.read_point(),
            flushed_seq_id: counters.flushed_seq_id.load(Relaxed),
            is_flushing: counters.flushing.load(Relaxed),
            flushes: counters.flushes.load(Relaxed),
            compactions: counters.compactions.load(Relaxed),
            compactions_failed: counts.get(|of| &of.compactions_failed),
            compacted_bytes: counts.get(|of| &of.compacted_bytes),
            compacted_files: counts.get(|of| &of.compacted_files),
            last_flush_ms: counters.last_flush_ms.load(Relaxed),
            compacting_cells: counters.compacting_cells.load(Relaxed),
            compacted_cells: counters.compacted_cells.load(Relaxed),
        }
    }

    /// Rows read by gets and scans, and mutations, since open.
    pub fn requests(&self) -> u64 {
        let counts = self.instruments.counts();
        RegionCounts::reads(counts) + counts.get(|of| &of.writes)
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

    /// Where the region notes what it does.
    pub fn instruments(&self) -> &RegionInstruments {
        &self.instruments
    }
}

/// When files were made that say so.
fn made_ms(files: &[std::sync::Arc<crate::store::StoreFile>]) -> impl Iterator<Item = u64> + '_ {
    files.iter().filter_map(|file| u64::try_from(file.reader().info().create_time_ms?).ok())
}

/// When the oldest file that a major compaction made was written; 0 if there is none.
fn oldest_major_ms(files: &[std::sync::Arc<crate::store::StoreFile>]) -> u64 {
    let infos = files.iter().map(|file| file.reader().info());
    let made = infos.filter(|info| info.is_major).filter_map(|info| u64::try_from(info.create_time_ms?).ok());
    made.min().unwrap_or(0)
}
