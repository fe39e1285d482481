//! Making store files: of a snapshot (flush) or of other files (compaction), where these are to be cut by timestamps, one
//! for each stretch of time that has cells.
//!
//! A file is written and synced outside its store, under the name it will have; then it is moved in, the directory is
//! synced, and it is opened again: only what was read back is published.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use cell::schema::{BloomType, FamilyDescriptor};
use fs::FilePath;
use hfile::{StoreInfo, Writer, WriterOptions};
use tracing::warn;

use crate::error::{Error, Result};
use crate::memstore::Memstore;
use crate::region::Region;
use crate::region::compact::{Pace, Unhurried};
use crate::region::warmth::{LeftOut, keep_written};
use crate::scanner::{CompactionScanner, Retention};
use crate::store::{StoreFile, StoreView};

/// Bytes of cells between two looks at the pace of a compaction.
const PACE_BYTES: u64 = 64 << 10;

/// The attribute of a family that has its files written with a column sidecar, where it is true. Ours: HBase keeps what it
/// does not know.
const COLUMN_SIDECAR: &str = "COLUMN_SIDECAR";

/// What goes into files.
pub(super) struct Merge {
    snapshot: Option<Arc<Memstore>>,
    files: Vec<Arc<StoreFile>>,
    retention: Retention,
    info: StoreInfo,
    // Smallest timestamps of the outputs, ascending; empty for a single one.
    boundaries: Vec<i64>,
}

/// A file that is complete but not in its store yet.
pub(super) struct Output {
    pub(super) store: usize,
    name: String,
    file_id: u64,
    left_out: Vec<LeftOut>,
    /// Serialized bytes of its cells.
    pub(super) cell_bytes: u64,
}

impl Output {
    /// Takes the blocks that should be in the cache and found no room.
    pub(super) fn take_left_out(&mut self) -> Vec<LeftOut> {
        std::mem::take(&mut self.left_out)
    }
}

impl Merge {
    /// The snapshot of a store, for a flush with the sequence id `seq_id`.
    pub(super) fn snapshot(store: &StoreView, seq_id: u64) -> Merge {
        let info = StoreInfo { max_seq_id: seq_id, ..StoreInfo::default() };
        let retention = Retention::Minor;
        Merge { snapshot: store.snapshot.clone(), files: Vec::new(), retention, info, boundaries: Vec::new() }
    }

    /// Files of a store: all of them, or some. `replaced` are the names of all that the outputs stand for: the files,
    /// others that went into files of the store but are not archived yet, and strays, whose cells are elsewhere too.
    pub(super) fn files(
        files: &[Arc<StoreFile>],
        is_all: bool,
        boundaries: &[i64],
        replaced: Vec<String>,
    ) -> Merge {
        let max_seq_id = files.iter().map(|file| file.seq_id()).max().unwrap_or(0);
        let info =
            StoreInfo { max_seq_id, is_major: is_all, compacted_files: replaced, ..StoreInfo::default() };
        let retention = if is_all { Retention::Major } else { Retention::Minor };
        Merge { snapshot: None, files: files.to_vec(), retention, info, boundaries: boundaries.to_vec() }
    }

    /// The oldest read point at which the outputs show all that was visible then, if nothing is dropped that readers at
    /// `smallest_read_point` see; the newest one, `read_point`, if files of another region are among the inputs.
    fn readable_since(&self, smallest_read_point: u64, read_point: u64) -> u64 {
        let of_files = self.files.iter().map(|file| file.readable_since()).max().unwrap_or(0);
        of_files.max(smallest_read_point).min(read_point)
    }

    /// The place of the output for cells of this timestamp.
    fn output_of(&self, timestamp: i64) -> usize {
        self.boundaries.partition_point(|smallest| *smallest <= timestamp).max(1) - 1
    }
}

/// A file that is being written.
struct Writing {
    output: Output,
    writer: Writer,
}

impl Region {
    /// Writes a snapshot of the store `at` to a file. On an error nothing is left.
    pub(super) async fn write_output(&self, at: usize, merge: &Merge) -> Result<Output> {
        let outputs = self.write_outputs(at, merge, &Unhurried).await?;
        let mut outputs = outputs.expect("nothing gives up that is not hurried");
        Ok(outputs.pop().expect("at least one"))
    }

    /// Writes the files of a merge; `None` if `pace` gave up. On an error nothing is left, and then neither.
    ///
    /// At least one is made, even if no cell is left: it says which files are replaced. Without it, one input archived
    /// before the others would take its delete markers away from them. And of a snapshot it says up to where the log is
    /// not needed.
    pub(super) async fn write_outputs(
        &self,
        at: usize,
        merge: &Merge,
        pace: &dyn Pace,
    ) -> Result<Option<Vec<Output>>> {
        let mut writing = BTreeMap::new();
        let smallest_read_point = self.mvcc.smallest_read_point();
        let readable_since = merge.readable_since(smallest_read_point, self.mvcc.read_point());
        let outcome = match self.write_cells(at, merge, smallest_read_point, pace, &mut writing).await {
            Ok(true) => self.finish_writing(merge, readable_since, &mut writing).await.map(Some),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        if !matches!(outcome, Ok(Some(_))) {
            for Writing { output, .. } in writing.into_values() {
                self.discard(output).await;
            }
        }
        outcome
    }

    /// Writes the cells of a merge, by the place of their output; whether it came to the end.
    async fn write_cells(
        &self,
        at: usize,
        merge: &Merge,
        smallest_read_point: u64,
        pace: &dyn Pace,
        writing: &mut BTreeMap<usize, Writing>,
    ) -> Result<bool> {
        if merge.boundaries.len() < 2 {
            writing.insert(0, self.begin_writing(at, merge).await?);
        }
        let mut cells = self.merged_cells(at, merge, smallest_read_point);
        let mut read_bytes = 0;
        while let Some(cell) = cells.next().await? {
            let writing = match writing.entry(merge.output_of(cell.timestamp())) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(self.begin_writing(at, merge).await?),
            };
            writing.writer.append(&cell).await?;
            writing.output.cell_bytes += cell.serialized_len() as u64;
            let read = (cell.key.len() + cell.value.len()) as u64;
            if cells.is_warm() {
                writing.writer.keep_block();
            }
            keep_written(
                &self.services.loader,
                &mut writing.writer,
                writing.output.file_id,
                &mut writing.output.left_out,
            );
            read_bytes += read;
            if read_bytes >= PACE_BYTES && !merge.files.is_empty() {
                if !self.lets_compactions_run() {
                    return Err(self.not_serving());
                }
                if !pace.go_on(std::mem::take(&mut read_bytes)).await {
                    return Ok(false);
                }
            }
        }
        if writing.is_empty() {
            writing.insert(0, self.begin_writing(at, merge).await?);
        }
        Ok(true)
    }

    async fn begin_writing(&self, at: usize, merge: &Merge) -> Result<Writing> {
        let name = layout::store::random_name(&*self.services.env.random);
        let path = self.store_dir(at).join(&name);
        let file_id = self.services.loader.file_id(&path, self.caching(at));
        let output = Output { store: at, name, file_id, left_out: Vec::new(), cell_bytes: 0 };
        match self.create_file(&output, merge).await {
            Ok(writer) => Ok(Writing { output, writer }),
            Err(error) => {
                self.discard(output).await;
                Err(error)
            }
        }
    }

    /// Makes the files durable, in the order in which they are to be moved in: the last one says what they replace. What
    /// was not done on an error stays in `writing`.
    async fn finish_writing(
        &self,
        merge: &Merge,
        readable_since: u64,
        writing: &mut BTreeMap<usize, Writing>,
    ) -> Result<Vec<Output>> {
        let mut outputs = Vec::new();
        while let Some((_, Writing { mut output, mut writer })) = writing.pop_first() {
            writer.complete_blocks();
            keep_written(&self.services.loader, &mut writer, output.file_id, &mut output.left_out);
            let mut info = StoreInfo { readable_since: Some(readable_since), ..merge.info.clone() };
            if !writing.is_empty() {
                info.compacted_files.clear();
            }
            writer.put_store_info(&info);
            writer.put_plain_rows();
            outputs.push(output);
            match writer.finish().await {
                Ok(written) => self.report_odd_cells(&written),
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

    /// Reports cells that a client could not decode: HBase stores them unchecked.
    fn report_odd_cells(&self, written: &hfile::Written) {
        let (unreadable, malformed_tags) = (written.unreadable_cells, written.malformed_tags);
        if unreadable > 0 || malformed_tags > 0 {
            warn!(
                region = %self.name, file = %written.path.name(), unreadable, malformed_tags,
                "cells with a negative timestamp or an unknown type are retained but not read; malformed tags are dropped"
            );
        }
    }

    /// Removes a file that will not be moved in. If that fails, the next open does it.
    pub(super) async fn discard(&self, output: Output) {
        self.services.loader.evict_file(&self.store_dir(output.store).join(&output.name), output.file_id);
        let path = self.scratch_path(&output);
        if let Err(error) = self.services.fs.delete(&path).await {
            warn!(file = %path, %error, "an unfinished file could not be removed");
        }
    }

    /// Moves a file into its store, makes its name durable and opens it. On an error it is in the store no more, or
    /// known as a stray.
    pub(super) async fn move_in(&self, output: Output) -> Result<Arc<StoreFile>> {
        let to = self.store_dir(output.store).join(&output.name);
        let moved = match self.services.fs.rename(&self.scratch_path(&output), &to).await {
            Ok(()) => self.settle(output.store, &output.name).await,
            Err(error) => Err(error.into()),
        };
        if moved.is_err() {
            // A rename that failed may have happened, or not.
            self.take_out(output.store, &output.name).await;
            self.discard(output).await;
        }
        moved
    }

    /// Removes a file from its store that no view has, and whose cells are elsewhere.
    ///
    /// Where it cannot be known to be gone, its name is remembered: compactions list it as replaced. Else it could come
    /// back after a crash, when what hid some of its cells was dropped.
    pub(super) async fn take_out(&self, store: usize, name: &str) {
        let dir = self.store_dir(store);
        let removed = async {
            self.services.fs.delete(&dir.join(name)).await?;
            self.services.fs.sync_dir(&dir).await
        };
        if let Err(error) = removed.await {
            warn!(file = %dir.join(name), %error, "a file that is not needed may come back; compactions will say so");
            self.strays().push((store, name.to_string()));
        }
    }

    /// Names of files of a store that may be in its directory although no view has them.
    pub(super) fn stray_names(&self, at: usize) -> Vec<String> {
        self.strays().iter().filter(|(store, _)| *store == at).map(|(_, name)| name.clone()).collect()
    }

    fn strays(&self) -> MutexGuard<'_, Vec<(usize, String)>> {
        // A list of names: whole after any panic.
        self.strays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store_dir(&self, at: usize) -> FilePath {
        self.services.root.family_dir(&self.info, &self.families[at].name)
    }

    fn scratch_path(&self, output: &Output) -> FilePath {
        self.services.root.family_tmp_dir(&self.info, &self.families[output.store].name).join(&output.name)
    }

    /// The cells that live on, for readers at `smallest_read_point` and later ones.
    fn merged_cells(&self, at: usize, merge: &Merge, smallest_read_point: u64) -> CompactionScanner {
        CompactionScanner::new(
            merge.snapshot.as_slice(),
            &merge.files,
            self.table.order(),
            &self.rules[at],
            merge.retention,
            smallest_read_point,
            self.services.env.clock.now_ms() as i64,
            self.services.loader.clone(),
        )
    }

    async fn create_file(&self, output: &Output, merge: &Merge) -> Result<Writer> {
        let mut options = self.writer_options(&self.families[output.store], merge)?;
        options.keep = self.caching(output.store).keep_written(!merge.files.is_empty());
        options.include_tags = match merge.files.is_empty() {
            true => self.has_tags.load(Ordering::Relaxed),
            false => merge.files.iter().any(|file| file.reader().info().includes_tags),
        };
        let fs = &*self.services.fs;
        let path = self.scratch_path(output);
        if fs.stat(&path.parent()).await?.is_none() {
            fs.make_dirs(&path.parent()).await?;
        }
        Ok(Writer::create(fs, &path, options).await?)
    }

    /// How the file of a merge of `family` is written.
    fn writer_options(&self, family: &FamilyDescriptor, merge: &Merge) -> Result<WriterOptions> {
        let compression = match merge.files.is_empty() {
            true => family.compression(),
            false => family.compaction_compression(merge.info.is_major),
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
            sidecar: family.attribute(COLUMN_SIDECAR).is_some_and(|text| text.eq_ignore_ascii_case("true")),
            ..WriterOptions::default()
        })
    }

    /// The kind of Bloom filter and the length of its prefixes; HBase takes the latter from the settings of the table
    /// or family.
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
