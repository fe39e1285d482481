//! Metrics of a region, for the cluster status, the exported metrics, and the selection of regions
//! to flush and compact.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use bytes::Bytes;

use crate::instruments::{RegionCounts, RegionInstruments, Usage};
use crate::region::Region;

/// Counters of a region.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) flushing: AtomicBool,
    pub(super) flushed_seq_id: AtomicU64,
    pub(super) flushes: AtomicU64,
    pub(super) compactions: AtomicU64,
    pub(super) last_flush_ms: AtomicU64,
    /// Input cells of started and of finished compactions since open, as HBase reports them.
    pub(super) compacting_cells: AtomicU64,
    pub(super) compacted_cells: AtomicU64,
}

/// The metrics of a region at one moment.
#[derive(Clone, Debug, Default)]
pub struct RegionMetrics {
    /// By family, sorted by name.
    pub stores: Vec<StoreMetrics>,
    /// Bytes of all memstores, including those being flushed.
    pub memstore_bytes: u64,
    /// Serialized bytes of the cells in memstores.
    pub memstore_data_bytes: u64,
    /// Rows read by gets and scans since open.
    pub read_requests: u64,
    /// Rows excluded by filters since open.
    pub filtered_reads: u64,
    /// Mutations since open.
    pub write_requests: u64,
    /// Gets since open.
    pub gets: u64,
    /// Scan calls since open.
    pub scans: u64,
    /// Calls with puts since open: a single put, a batch that has puts, or a conditional change
    /// that has puts and whose condition held.
    pub puts: u64,
    /// Calls with deletes since open, counted like puts.
    pub deletes: u64,
    /// Increments since open.
    pub increments: u64,
    /// Appends since open.
    pub appends: u64,
    /// Resources used by calls since open.
    pub usage: Usage,
    /// The sequence id that follows the greatest one used before the region was opened.
    pub open_seq_id: u64,
    /// The newest readable write.
    pub read_point: u64,
    /// All edits of all stores up to this sequence id are in files.
    pub flushed_seq_id: u64,
    /// Whether a flush is running.
    pub is_flushing: bool,
    /// Flushes since open.
    pub flushes: u64,
    /// Compactions since open.
    pub compactions: u64,
    /// Failed compactions since open.
    pub compactions_failed: u64,
    /// Bytes of files read by compactions.
    pub compacted_bytes: u64,
    /// Number of files read by compactions.
    pub compacted_files: u64,
    /// When the last flush ended, or the region opened if there was none, in milliseconds since the
    /// epoch.
    pub last_flush_ms: u64,
    /// Input cells of all compactions since open, running or finished.
    pub compacting_cells: u64,
    /// Input cells of finished compactions since open.
    pub compacted_cells: u64,
}

/// The metrics of a store.
#[derive(Clone, Debug, Default)]
pub struct StoreMetrics {
    /// The family.
    pub family: Bytes,
    /// Number of files.
    pub files: usize,
    /// Bytes of the files on disk.
    pub file_bytes: u64,
    /// Cells in the files.
    pub file_cells: u64,
    /// The newest edit in the files.
    pub file_seq_id: u64,
    /// Whether all files were merged into one by a major compaction.
    pub is_major_compacted: bool,
    /// When the oldest file written by a major compaction was created, in milliseconds since the
    /// epoch; 0 if there is none.
    pub oldest_major_ms: u64,
    /// Files with a known creation time.
    pub files_with_creation_time: usize,
    /// The oldest creation time, in milliseconds since the epoch; 0 if none is known.
    pub oldest_file_ms: u64,
    /// The newest creation time, in milliseconds since the epoch; 0 if none is known.
    pub newest_file_ms: u64,
    /// Sum of the known creation times, in milliseconds since the epoch.
    pub creation_time_sum_ms: u64,
    /// Files that refer to a file of another region.
    pub reference_files: usize,
    /// Memory of the root indexes in bytes.
    pub root_index_bytes: u64,
    /// Uncompressed bytes of the files' indexes.
    pub index_bytes: u64,
    /// Uncompressed bytes of the files' Bloom filters.
    pub bloom_bytes: u64,
    /// Bytes of the memstores.
    pub memstore_bytes: u64,
    /// Rows read since open whose cells all came from memstores.
    pub memstore_reads: u64,
    /// Rows read since open with at least one cell from a file, whether or not other cells came
    /// from memstores.
    pub mixed_reads: u64,
    /// Bloom filter lookups since open.
    pub filter_lookups: u64,
    /// Bloom filter lookups since open that excluded a file.
    pub filter_negatives: u64,
    /// Bloom filter lookups since open in files without a suitable filter.
    pub filters_missing: u64,
}

impl Region {
    /// Memory of open files without their blocks, in bytes: mainly the root indexes, and the index
    /// of the chunks of each Bloom filter.
    pub fn open_file_bytes(&self) -> u64 {
        let view = self.view.load();
        let files = view.stores.iter().flat_map(|store| store.files.iter());
        files.map(|file| file.reader().heap_len() as u64).sum()
    }

    /// The current metrics.
    pub fn metrics(&self) -> RegionMetrics {
        let view = self.view.load();
        let of_families = self.families().iter().zip(&*self.store_counts);
        let stores = of_families.zip(&view.stores).map(|((family, counts), store)| StoreMetrics {
            family: family.name.clone(),
            files: store.files.len(),
            file_bytes: store.files.iter().map(|file| file.len()).sum(),
            file_cells: store.files.iter().map(|file| file.cell_count()).sum(),
            file_seq_id: store.max_file_seq_id(),
            is_major_compacted: matches!(&store.files[..], [only] if only.reader().info().is_major),
            oldest_major_ms: oldest_major_ms(&store.files),
            files_with_creation_time: creation_times_ms(&store.files).count(),
            oldest_file_ms: creation_times_ms(&store.files).min().unwrap_or(0),
            newest_file_ms: creation_times_ms(&store.files).max().unwrap_or(0),
            creation_time_sum_ms: creation_times_ms(&store.files).sum(),
            reference_files: store.files.iter().filter(|file| file.is_reference()).count(),
            root_index_bytes: store.files.iter().map(|file| file.reader().root_index_bytes()).sum(),
            index_bytes: store.files.iter().map(|file| file.reader().trailer().data_index_plain_bytes).sum(),
            bloom_bytes: store.files.iter().map(|file| file.reader().bloom_bytes()).sum(),
            memstore_bytes: store.memstore_bytes(),
            memstore_reads: counts.get(|fields| &fields.memstore_reads),
            mixed_reads: counts.get(|fields| &fields.mixed_reads),
            filter_lookups: counts.get(|fields| &fields.filter_lookups),
            filter_negatives: counts.get(|fields| &fields.filter_negatives),
            filters_missing: counts.get(|fields| &fields.filters_missing),
        });
        let (counters, counts) = (&self.counters, self.instruments.counts());
        RegionMetrics {
            stores: stores.collect(),
            memstore_bytes: view.memstore_bytes(),
            memstore_data_bytes: view.stores.iter().map(|store| store.data_bytes()).sum(),
            read_requests: RegionCounts::reads(counts),
            filtered_reads: counts.get(|fields| &fields.filtered_reads),
            write_requests: counts.get(|fields| &fields.writes),
            gets: counts.get(|fields| &fields.gets),
            scans: counts.get(|fields| &fields.scans),
            puts: counts.get(|fields| &fields.puts),
            deletes: counts.get(|fields| &fields.deletes),
            increments: counts.get(|fields| &fields.increments),
            appends: counts.get(|fields| &fields.appends),
            usage: Usage::of(counts),
            open_seq_id: self.open_seq_id(),
            read_point: self.mvcc.read_point(),
            flushed_seq_id: counters.flushed_seq_id.load(Relaxed),
            is_flushing: counters.flushing.load(Relaxed),
            flushes: counters.flushes.load(Relaxed),
            compactions: counters.compactions.load(Relaxed),
            compactions_failed: counts.get(|fields| &fields.compactions_failed),
            compacted_bytes: counts.get(|fields| &fields.compacted_bytes),
            compacted_files: counts.get(|fields| &fields.compacted_files),
            last_flush_ms: counters.last_flush_ms.load(Relaxed),
            compacting_cells: counters.compacting_cells.load(Relaxed),
            compacted_cells: counters.compacted_cells.load(Relaxed),
        }
    }

    /// Rows read by gets and scans plus mutations, since open.
    pub fn requests(&self) -> u64 {
        let counts = self.instruments.counts();
        RegionCounts::reads(counts) + counts.get(|fields| &fields.writes)
    }

    /// Paths of the files of the store of `family`, oldest first.
    ///
    /// # Errors
    /// [`Error::NoSuchFamily`](crate::Error::NoSuchFamily).
    pub fn store_files(&self, family: &[u8]) -> crate::error::Result<Vec<fs::FilePath>> {
        self.store_files_of(&[family])
    }

    /// Paths of the files of the stores of several families at one point in time: the files of a
    /// flush or of a bulk load are either all in the result or none of them.
    ///
    /// # Errors
    /// [`Error::NoSuchFamily`](crate::Error::NoSuchFamily).
    pub fn store_files_of(&self, families: &[impl AsRef<[u8]>]) -> crate::error::Result<Vec<fs::FilePath>> {
        let view = self.view.load();
        let mut paths = Vec::new();
        for family in families {
            let store = &view.stores[self.store_of(family.as_ref())?];
            paths.extend(store.files.iter().map(|file| file.path().clone()));
        }
        Ok(paths)
    }

    /// Paths of the files of all stores at one point in time.
    pub(super) fn all_store_files(&self) -> Vec<fs::FilePath> {
        let view = self.view.load();
        let files = view.stores.iter().flat_map(|store| store.files.iter());
        files.map(|file| file.path().clone()).collect()
    }

    /// Bytes of the memstores, including those being flushed.
    pub fn memstore_bytes(&self) -> u64 {
        self.view.load().memstore_bytes()
    }

    /// The counters of the region's operations.
    pub fn instruments(&self) -> &RegionInstruments {
        &self.instruments
    }
}

/// Creation times of the files that have one.
fn creation_times_ms(files: &[std::sync::Arc<crate::store::StoreFile>]) -> impl Iterator<Item = u64> + '_ {
    files.iter().filter_map(|file| u64::try_from(file.reader().info().create_time_ms?).ok())
}

/// When the oldest file written by a major compaction was created; 0 if there is none.
fn oldest_major_ms(files: &[std::sync::Arc<crate::store::StoreFile>]) -> u64 {
    let infos = files.iter().map(|file| file.reader().info());
    let made = infos.filter(|info| info.is_major).filter_map(|info| u64::try_from(info.create_time_ms?).ok());
    made.min().unwrap_or(0)
}
