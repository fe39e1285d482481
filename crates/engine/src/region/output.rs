//! Writes store files: from a snapshot (flush) or from other files (compaction). A compaction can
//! split its output by timestamp; a time window without cells then gets no file.
//!
//! A file is written and synced outside its store, under its final name. Then it is moved in, the
//! directory is synced, and the file is opened again. Only a file that was read back is used.
//!
//! Files are written in directories of this opening of the region
//! ([`layout::RootDir::for_opening`]). The next opening, on any server, removes them first. So a
//! server that was frozen meanwhile can move no file in any more: the cells in it may have been
//! deleted since, and their delete markers dropped. The directory of a store is created for its
//! first file, because most regions are opened and closed more often than they get new files.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cell::schema::{BlockEncoding, BloomType, Compression, FamilyDescriptor};
use fs::{FilePath, Preferences, Purpose, Role};
use hfile::{Reader, StoreInfo, Writer, WriterOptions};
use layout::StoreDir;
use tracing::warn;

use crate::error::{Error, Result};
use crate::memstore::Memstore;
use crate::mob::FileRefs;
use crate::region::cache_warming::{UncachedBlock, cache_written};
use crate::region::compact::{CompactionThrottle, Unthrottled};
use crate::region::mob_output::{MobFileInUse, MobOutput, StoreOutput};
use crate::region::strays::{Removal, Stray};
use crate::region::{Region, RegionServices, storage_policy};
use crate::scanner::{CompactionScanner, Retention};
use crate::store::{StoreFile, StoreView};

/// Bytes of cells between two calls of a compaction's [`CompactionThrottle`].
const THROTTLE_BYTES: u64 = 64 << 10;

/// The pending bytes of all output files of a compaction together. A compaction can have thousands
/// of outputs, one for each time window.
const PENDING_BYTES_MAX: usize = 64 << 20;

/// The family attribute that, if true, adds a column sidecar to the family's files. A Grampus
/// extension; HBase keeps attributes it does not know.
const COLUMN_SIDECAR: &str = "COLUMN_SIDECAR";

/// The input of a flush or compaction, and properties of its output.
pub(super) struct OutputSource {
    snapshot: Option<Arc<Memstore>>,
    files: Vec<Arc<StoreFile>>,
    retention: Retention,
    info: StoreInfo,
    // Smallest timestamps of the outputs, ascending; empty for a single output.
    boundaries: Vec<i64>,
    // Whether the values in MOB files are written again.
    rewrites_mob: bool,
}

/// A complete file that is not in its store yet.
pub(super) struct OutputFile {
    pub(super) store: usize,
    pub(super) name: String,
    file_id: u64,
    uncached: Vec<UncachedBlock>,
    // The MOB files that were written with it.
    mob_files: Vec<MobFileInUse>,
    /// Serialized bytes of its cells.
    pub(super) cell_bytes: u64,
}

impl OutputFile {
    /// Takes the blocks that belong in the cache but found no space.
    pub(super) fn take_uncached(&mut self) -> Vec<UncachedBlock> {
        std::mem::take(&mut self.uncached)
    }

    /// Takes the names of the MOB files that were written with the file. They are in use until the
    /// result is dropped, which must be after a view has the file.
    pub(super) fn take_mob_files(&mut self) -> Vec<MobFileInUse> {
        std::mem::take(&mut self.mob_files)
    }
}

impl OutputSource {
    /// The snapshot of a store, for a flush with the sequence id `seq_id`.
    pub(super) fn snapshot(store: &StoreView, seq_id: u64) -> OutputSource {
        let info = StoreInfo { max_seq_id: seq_id, ..StoreInfo::default() };
        let retention = Retention::Minor;
        OutputSource {
            snapshot: store.snapshot.clone(),
            files: Vec::new(),
            retention,
            info,
            boundaries: Vec::new(),
            rewrites_mob: false,
        }
    }

    /// Some or all files of a store. `replaced` names all files that the outputs replace: the
    /// inputs, inputs of earlier compactions that are not archived yet, and strays (files that may
    /// be in the store's directory although no view has them).
    pub(super) fn files(
        files: &[Arc<StoreFile>],
        is_all: bool,
        boundaries: &[i64],
        replaced: Vec<String>,
    ) -> OutputSource {
        debug_assert!(
            files.is_sorted_by_key(|file| file.seq_id()),
            "files of a store are in the order of their sequence ids"
        );
        let max_seq_id = files.iter().map(|file| file.seq_id()).max().unwrap_or(0);
        let info =
            StoreInfo { max_seq_id, is_major: is_all, compacted_files: replaced, ..StoreInfo::default() };
        debug_assert!(
            boundaries.first().is_none_or(|oldest| *oldest == i64::MIN),
            "the first output takes the oldest cells"
        );
        let retention = if is_all { Retention::Major } else { Retention::Minor };
        OutputSource {
            snapshot: None,
            files: files.to_vec(),
            retention,
            info,
            boundaries: boundaries.to_vec(),
            rewrites_mob: false,
        }
    }

    /// Also writes the values in MOB files again.
    pub(super) fn rewriting_mob(self, rewrites_mob: bool) -> OutputSource {
        OutputSource { rewrites_mob, ..self }
    }

    /// Whether the values in MOB files are written again.
    pub(super) fn rewrites_mob(&self) -> bool {
        self.rewrites_mob
    }

    /// Whether the input is a snapshot.
    pub(super) fn is_flush(&self) -> bool {
        self.files.is_empty()
    }

    /// The properties that all outputs share.
    pub(super) fn info(&self) -> &StoreInfo {
        &self.info
    }

    /// The greatest timestamp in the input, or the smallest possible one if there are no cells.
    pub(super) fn newest_ms(&self) -> i64 {
        let of_files = self.files.iter().map(|file| file.reader().info().time_range.max);
        let in_memory = self.snapshot.iter().filter_map(|memstore| memstore.timestamps());
        of_files.chain(in_memory.map(|(_, newest)| newest)).max().unwrap_or(i64::MIN)
    }

    /// The oldest read point for which the outputs have every visible version, if all versions that
    /// are visible at `smallest_read_point` or later are kept. If an input is a file of another
    /// region, this is the newest read point, `read_point`.
    fn readable_since(&self, smallest_read_point: u64, read_point: u64) -> u64 {
        let of_files = self.files.iter().map(|file| file.readable_since()).max().unwrap_or(0);
        of_files.max(smallest_read_point).min(read_point)
    }

    /// What an output is for, by which storage of several kinds chooses a disk.
    fn purpose(&self, family: &FamilyDescriptor) -> Purpose {
        let role = match (self.files.is_empty(), self.info.is_major) {
            (true, _) => Role::Flush,
            (false, false) => Role::MinorCompaction,
            (false, true) => Role::MajorCompaction,
        };
        let snapshot_bytes = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.data_bytes());
        let newest = self.files.iter().map(|file| file.reader().info().time_range.max).max();
        Purpose {
            role,
            policy: family.attribute(storage_policy::ATTRIBUTE).map(Into::into),
            expected_bytes: snapshot_bytes + self.files.iter().map(|file| file.len()).sum::<u64>(),
            newest_ms: newest.and_then(|newest| u64::try_from(newest).ok()),
        }
    }

    /// The index of the output for cells of this timestamp.
    fn output_of(&self, timestamp: i64) -> usize {
        self.boundaries.partition_point(|smallest| *smallest <= timestamp).max(1) - 1
    }
}

/// What a file of a store is for.
pub(super) fn purpose_of(file: &StoreFile, family: &FamilyDescriptor) -> Purpose {
    purpose_of_reader(file.reader(), family)
}

/// What a file is for in the store of `family`.
pub(super) fn purpose_of_reader(reader: &Reader, family: &FamilyDescriptor) -> Purpose {
    let info = reader.info();
    let role = match (info.is_major, info.compacted_files.is_empty()) {
        (true, _) => Role::MajorCompaction,
        (false, false) => Role::MinorCompaction,
        (false, true) => Role::Flush,
    };
    Purpose {
        role,
        policy: family.attribute(storage_policy::ATTRIBUTE).map(Into::into),
        expected_bytes: reader.len(),
        newest_ms: u64::try_from(info.time_range.max).ok(),
    }
}

/// Applies the preferences of the storage where the family states none. Only compactions do this: a
/// flush must be fast.
fn prefer(options: &mut WriterOptions, family: &FamilyDescriptor, wanted: &Preferences) {
    let compression = wanted.compression.as_deref().and_then(Compression::of_name);
    if let Some(compression) = compression.filter(|_| options.compression == Compression::None) {
        options.compression = compression;
    }
    let encoding = wanted.encoding.as_deref().and_then(BlockEncoding::of_name);
    if let Some(encoding) = encoding.filter(|_| family.attribute("DATA_BLOCK_ENCODING").is_none()) {
        options.encoding = encoding;
    }
}

/// A file that is being written.
struct UnfinishedOutput {
    output: OutputFile,
    writer: Writer,
    // The MOB files to which its cells refer.
    mob_refs: FileRefs,
}

impl Region {
    /// Writes a snapshot of the store `at` to a file. On an error no file remains.
    pub(super) async fn write_output(&self, at: usize, source: &OutputSource) -> Result<OutputFile> {
        let outputs = self.write_outputs(at, source, &Unthrottled).await?;
        let mut outputs = outputs.expect("Unthrottled never stops a compaction");
        assert!(outputs.len() == 1, "a snapshot is written to one file");
        Ok(outputs.pop().expect("at least one output"))
    }

    /// Writes the output files; `None` if `throttle` stopped the compaction. Then, and on an error,
    /// no file remains.
    ///
    /// At least one file is written, even without cells, because it lists the files it replaces. If
    /// the list did not exist, archiving the inputs one by one could remove a delete marker before
    /// the cells it hides. After a flush, the file records up to which edit the log is not needed.
    pub(super) async fn write_outputs(
        &self,
        at: usize,
        source: &OutputSource,
        throttle: &dyn CompactionThrottle,
    ) -> Result<Option<Vec<OutputFile>>> {
        let mut unfinished = BTreeMap::new();
        let smallest_read_point = self.mvcc.smallest_read_point();
        let readable_since = source.readable_since(smallest_read_point, self.mvcc.read_point());
        let mut mob = self.mob_output(at, source);
        let written =
            self.write_cells(at, source, smallest_read_point, throttle, &mut unfinished, &mut mob).await;
        let outcome = match written {
            Ok(true) => {
                let finished = self.finish_writing(source, readable_since, &mut unfinished, &mut mob);
                finished.await.map(Some)
            }
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        if !matches!(outcome, Ok(Some(_))) {
            if let Some(mob) = &mut mob {
                mob.discard(self).await;
            }
            for UnfinishedOutput { output, .. } in unfinished.into_values() {
                self.discard(output).await;
            }
        }
        outcome
    }

    /// Writes each merged cell to the output for its timestamp. Returns false if `throttle` stopped
    /// the compaction.
    async fn write_cells(
        &self,
        at: usize,
        source: &OutputSource,
        smallest_read_point: u64,
        throttle: &dyn CompactionThrottle,
        unfinished: &mut BTreeMap<usize, UnfinishedOutput>,
        mob: &mut Option<MobOutput>,
    ) -> Result<bool> {
        if source.boundaries.len() < 2 {
            unfinished.insert(0, self.begin_writing(at, source).await?);
        }
        let mut cells = self.merged_cells(at, source, smallest_read_point);
        let mut read_bytes = 0;
        while let Some(cell) = cells.next().await? {
            let unfinished = match unfinished.entry(source.output_of(cell.timestamp())) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(self.begin_writing(at, source).await?),
            };
            let mut read = (cell.key.len() + cell.value.len()) as u64;
            match mob {
                None => unfinished.writer.append(&cell).await?,
                Some(mob) => {
                    let (writer, refs) = (&mut unfinished.writer, &mut unfinished.mob_refs);
                    read += mob.append(self, source, &cell, StoreOutput { writer, refs }).await?;
                }
            }
            unfinished.output.cell_bytes += cell.serialized_len() as u64;
            if cells.is_warm() {
                unfinished.writer.retain_block();
            }
            cache_written(
                &self.services.loader,
                &mut unfinished.writer,
                unfinished.output.file_id,
                &mut unfinished.output.uncached,
            );
            read_bytes += read;
            if read_bytes >= THROTTLE_BYTES && !source.files.is_empty() {
                if !self.allows_compactions() {
                    return Err(self.not_serving());
                }
                if !throttle.throttle(std::mem::take(&mut read_bytes)).await {
                    return Ok(false);
                }
            }
        }
        if unfinished.is_empty() {
            unfinished.insert(0, self.begin_writing(at, source).await?);
        }
        Ok(true)
    }

    async fn begin_writing(&self, at: usize, source: &OutputSource) -> Result<UnfinishedOutput> {
        let name = layout::store::random_name(&*self.services.env.random);
        let path = self.store_dir(at).join(&name);
        let file_id = self.services.loader.file_id(&path, self.caching(at));
        let (uncached, mob_files) = (Vec::new(), Vec::new());
        let output = OutputFile { store: at, name, file_id, uncached, mob_files, cell_bytes: 0 };
        match self.create_file(&output, source).await {
            Ok(writer) => Ok(UnfinishedOutput { output, writer, mob_refs: FileRefs::default() }),
            Err(error) => {
                self.discard(output).await;
                Err(error)
            }
        }
    }

    /// Makes the files durable, in the order in which they are to be moved into the store. The last
    /// file lists the replaced files. On an error, unfinished files remain in `unfinished`.
    async fn finish_writing(
        &self,
        source: &OutputSource,
        readable_since: u64,
        unfinished: &mut BTreeMap<usize, UnfinishedOutput>,
        mob: &mut Option<MobOutput>,
    ) -> Result<Vec<OutputFile>> {
        assert!(!unfinished.is_empty(), "a flush or compaction writes at least one file");
        let mut mob_files = match mob {
            Some(mob) => mob.finish(self, source).await?,
            None => Vec::new(),
        };
        let mut outputs = Vec::new();
        while let Some((_, UnfinishedOutput { mut output, mut writer, mob_refs })) = unfinished.pop_first() {
            output.mob_files.append(&mut mob_files);
            writer.complete_blocks();
            cache_written(&self.services.loader, &mut writer, output.file_id, &mut output.uncached);
            let mut info = StoreInfo { readable_since: Some(readable_since), ..source.info.clone() };
            if !unfinished.is_empty() {
                info.compacted_files.clear();
            }
            if mob.is_some() {
                mob_refs.put_in(&mut info);
            }
            writer.put_store_info(&info);
            writer.put_plain_rows();
            outputs.push(output);
            match writer.finish().await {
                Ok(written) => self.report_unreadable_cells(&written),
                Err(error) => {
                    for output in outputs {
                        self.discard(output).await;
                    }
                    return Err(error.into());
                }
            }
        }
        Ok(outputs)
    }

    /// Reports cells that clients cannot decode. HBase stores them without a check.
    fn report_unreadable_cells(&self, written: &hfile::WrittenFile) {
        let (unreadable, malformed_tags) = (written.unreadable_cells, written.malformed_tags);
        if unreadable > 0 || malformed_tags > 0 {
            warn!(
                region = %self.name, file = %written.path.name(), unreadable, malformed_tags,
                "cells with a negative timestamp or an unknown type are retained but not read; malformed tags are dropped"
            );
        }
    }

    /// Removes a file that will not be moved in. If that fails, the next open removes it.
    pub(super) async fn discard(&self, output: OutputFile) {
        self.services.loader.evict_file(&self.store_dir(output.store).join(&output.name), output.file_id);
        let path = self.scratch_path(&output);
        if let Err(error) = self.services.fs.delete(&path).await {
            warn!(file = %path, %error, "cannot remove unfinished file");
        }
    }

    /// Moves a file into its store, makes its name durable, and opens it. After an error the file
    /// is gone from the store, or recorded as a stray.
    pub(super) async fn move_in(&self, output: OutputFile) -> Result<Arc<StoreFile>> {
        let (services, store) = (&self.services, self.tracked_store(output.store));
        let now_ms = services.env.clock.now_ms();
        let moved = match services.tracker.commit(store, &[&output.name], &[], now_ms).await {
            Ok(()) => self.open_moved_in(output.store, &output.name, None).await,
            Err(error) => Err(error.into()),
        };
        if moved.is_ok() {
            services.options.storage.satisfy_output(
                &*services.fs,
                &self.families[output.store],
                &self.store_dir(output.store).join(&output.name),
            );
        } else {
            // A rename that failed may still have taken effect.
            self.remove_from_store(output.store, &output.name).await;
            self.discard(output).await;
        }
        moved
    }

    /// Removes a file from its store. No view has it, and its cells are also elsewhere.
    ///
    /// If the removal cannot be confirmed, the file is recorded as a stray: the removal is retried,
    /// and until then, compactions list the file as replaced.
    pub(super) async fn remove_from_store(&self, store: usize, name: &str) {
        if let Err(error) = self.remove_from_dir(store, name, Removal::Delete).await {
            let file = self.store_dir(store).join(name);
            warn!(%file, %error, "cannot remove unneeded file; compactions will list it as replaced");
            self.strays().push(Stray { store, name: name.to_string(), removal: Some(Removal::Delete) });
        }
    }

    /// The store as its tracker sees it.
    pub(super) fn tracked_store(&self, at: usize) -> StoreDir<'_> {
        let RegionServices { fs, root, .. } = &self.services;
        StoreDir { fs: &**fs, root, region: &self.info, family: &self.families[at].name }
    }

    pub(super) fn store_dir(&self, at: usize) -> FilePath {
        self.services.root.family_dir(&self.info, &self.families[at].name)
    }

    fn scratch_path(&self, output: &OutputFile) -> FilePath {
        self.services.tracker.output_dir(self.tracked_store(output.store)).join(&output.name)
    }

    /// The cells to keep for readers at `smallest_read_point` and later.
    fn merged_cells(&self, at: usize, source: &OutputSource, smallest_read_point: u64) -> CompactionScanner {
        CompactionScanner::new(
            source.snapshot.as_slice(),
            &source.files,
            self.table.order(),
            &self.rules[at],
            source.retention,
            smallest_read_point,
            self.services.env.clock.now_ms() as i64,
            self.services.loader.clone(),
        )
    }

    async fn create_file(&self, output: &OutputFile, source: &OutputSource) -> Result<Writer> {
        let mut options = self.writer_options(&self.families[output.store], source)?;
        options.retain = self.caching(output.store).keep_written(!source.files.is_empty());
        options.pending_bytes_max = PENDING_BYTES_MAX / source.boundaries.len().max(1);
        options.include_tags = match source.files.is_empty() {
            true => self.has_tags.load(Ordering::Relaxed),
            false => source.files.iter().any(|file| file.reader().info().includes_tags),
        };
        // References have tags.
        options.include_tags |= self.families[output.store].is_mob();
        let fs = &*self.services.fs;
        if !source.files.is_empty() {
            let wanted = fs.preferences(&options.purpose);
            prefer(&mut options, &self.families[output.store], &wanted);
        }
        let dir = self.ready_output_dir(output.store).await?;
        Ok(Writer::create(fs, &dir.join(&output.name), options).await?)
    }

    /// The directory for new files of the store `at`, which exists. Only another opening removes
    /// it, or an operator.
    ///
    /// A server that was frozen before it creates the directory must not use it: no other opening
    /// may remove it any more. So the directory counts as ready only after a check that follows its
    /// creation, also for the next call if this one fails.
    ///
    /// # Errors
    /// If the region is open elsewhere; file system errors.
    pub(super) async fn ready_output_dir(&self, at: usize) -> Result<FilePath> {
        let fs = &*self.services.fs;
        let dir = self.services.tracker.output_dir(self.tracked_store(at));
        let mut is_ready = self.output_dirs_ready[at].lock().await;
        if *is_ready && fs.stat(&dir).await?.is_some() {
            return Ok(dir);
        }
        *is_ready = false;
        // If another opening removed the directory, the region does not get it back.
        self.check_owned().await?;
        fs.make_dirs(&dir).await?;
        if let Some(policy) = self.services.options.storage.of_family(&self.families[at]) {
            fs.set_storage_policy(&dir, &policy).await;
        }
        self.check_owned().await?;
        *is_ready = true;
        Ok(dir)
    }

    /// The options for writing a file of `family`.
    pub(super) fn writer_options(
        &self,
        family: &FamilyDescriptor,
        source: &OutputSource,
    ) -> Result<WriterOptions> {
        let compression = match source.files.is_empty() {
            true => family.compression(),
            false => family.compaction_compression(source.info.is_major),
        };
        let compression = compression.ok_or_else(|| Error::Unsupported {
            what: format!("compression of family {}", family.name.escape_ascii()),
        })?;
        let (bloom, bloom_prefix_len) = self.bloom_of(family);
        Ok(WriterOptions {
            order: self.table.order(),
            block_bytes: family.block_bytes().max(1),
            encoding: family.block_encoding(),
            compression,
            bloom,
            bloom_prefix_len,
            compress_tags: family
                .attribute("COMPRESS_TAGS")
                .is_none_or(|text| !text.eq_ignore_ascii_case("false")),
            create_time_ms: self.services.env.clock.now_ms(),
            purpose: source.purpose(family),
            sidecar: family.attribute(COLUMN_SIDECAR).is_some_and(|text| text.eq_ignore_ascii_case("true")),
            ..WriterOptions::default()
        })
    }

    /// The kind of Bloom filter, and the length of its prefixes. As in HBase, the length is a
    /// setting of the table or family.
    fn bloom_of(&self, family: &FamilyDescriptor) -> (BloomType, u32) {
        const KEY: &str = "RowPrefixBloomFilter.prefix_length";
        match family.bloom_type() {
            BloomType::RowPrefix => {
                match family
                    .setting(KEY)
                    .or_else(|| self.table.setting(KEY))
                    .and_then(|text| text.parse().ok())
                {
                    Some(len) if len > 0 => (BloomType::RowPrefix, len),
                    _ => (BloomType::Row, 0),
                }
            }
            bloom => (bloom, 0),
        }
    }
}
