//! Making a store file: of a snapshot (flush) or of other files (compaction).
//!
//! A file is written and synced outside its store, under the name it will have; then it is moved in, the directory is
//! synced, and it is opened again: only what was read back is published.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cell::schema::{BloomType, FamilyDescriptor};
use hfile::{StoreInfo, Writer, WriterOptions};

use crate::error::{Error, Result};
use crate::memstore::Memstore;
use crate::region::Region;
use crate::scanner::{CompactionScanner, Retention};
use crate::store::{StoreFile, StoreView};

/// What goes into one file.
pub(super) struct Merge {
    snapshot: Option<Arc<Memstore>>,
    files: Vec<Arc<StoreFile>>,
    retention: Retention,
    info: StoreInfo,
}

/// A file that is complete but not in its store yet.
pub(super) struct Output {
    store: usize,
    name: String,
}

impl Merge {
    /// The snapshot of a store, for a flush with the sequence id `seq_id`.
    pub(super) fn snapshot(store: &StoreView, seq_id: u64, replaced: Vec<String>) -> Merge {
        let info = StoreInfo { max_seq_id: seq_id, compacted_files: replaced, ..StoreInfo::default() };
        Merge { snapshot: store.snapshot.clone(), files: Vec::new(), retention: Retention::Minor, info }
    }

    /// All files of a store. `replaced` are the names of all that the output stands for: the files, and those that
    /// went into them but are not archived yet.
    pub(super) fn files(files: &[Arc<StoreFile>], replaced: Vec<String>) -> Merge {
        let max_seq_id = files.iter().map(|file| file.seq_id()).max().unwrap_or(0);
        let info = StoreInfo { max_seq_id, is_major: true, compacted_files: replaced, ..StoreInfo::default() };
        Merge { snapshot: None, files: files.to_vec(), retention: Retention::Major, info }
    }

    /// Whether a file is needed even if no cell is left: it says which files are replaced. Without it, one input
    /// archived before the others would take its delete markers away from them.
    fn is_needed_empty(&self) -> bool {
        !self.files.is_empty()
    }
}

impl Region {
    /// Writes a file of the store `at`; `None` if no cell was left and none is needed.
    pub(super) async fn write_output(&self, at: usize, merge: &Merge) -> Result<Option<Output>> {
        let family = &self.families[at];
        let name = layout::store::random_name(&*self.services.env.random);
        let mut writer = match merge.is_needed_empty() {
            true => Some(self.create_file(family, &name, merge).await?),
            false => None,
        };
        let mut cells = self.merged_cells(at, merge);
        while let Some(cell) = cells.next().await? {
            let writer = match &mut writer {
                Some(writer) => writer,
                none => none.insert(self.create_file(family, &name, merge).await?),
            };
            writer.append(&cell).await?;
        }
        let Some(mut writer) = writer else {
            return Ok(None);
        };
        writer.put_store_info(&merge.info);
        writer.finish().await?;
        Ok(Some(Output { store: at, name }))
    }

    /// Moves a file into its store, makes its name durable and opens it.
    pub(super) async fn move_in(&self, output: Output) -> Result<Arc<StoreFile>> {
        let family = &self.families[output.store].name;
        let root = &self.services.root;
        let from = root.family_tmp_dir(&self.info, family).join(&output.name);
        let to = root.family_dir(&self.info, family).join(&output.name);
        self.services.fs.rename(&from, &to).await?;
        match self.settle(output.store, &output.name).await {
            Ok(file) => Ok(file),
            Err(error) => {
                // Its cells are still elsewhere; left in place it would only be read twice after the next open.
                let _ = self.services.fs.delete(&to).await;
                Err(error)
            }
        }
    }

    /// The cells that live on, for readers from the smallest read point on.
    fn merged_cells(&self, at: usize, merge: &Merge) -> CompactionScanner {
        CompactionScanner::new(
            merge.snapshot.as_slice(),
            &merge.files,
            self.table.order(),
            &self.rules[at],
            merge.retention,
            self.mvcc.smallest_read_point(),
            self.services.env.clock.now_ms() as i64,
            self.services.loader.clone(),
        )
    }

    async fn create_file(&self, family: &FamilyDescriptor, name: &str, merge: &Merge) -> Result<Writer> {
        let mut options = self.writer_options(family)?;
        options.include_tags = match merge.files.is_empty() {
            true => self.has_tags.load(Ordering::Relaxed),
            false => merge.files.iter().any(|file| file.reader().info().includes_tags),
        };
        let fs = &*self.services.fs;
        let dir = self.services.root.family_tmp_dir(&self.info, &family.name);
        if fs.stat(&dir).await?.is_none() {
            fs.make_dirs(&dir).await?;
        }
        Ok(Writer::create(fs, &dir.join(name), options).await?)
    }

    /// How files of `family` are written.
    fn writer_options(&self, family: &FamilyDescriptor) -> Result<WriterOptions> {
        let compression = family.compression().ok_or_else(|| Error::Unsupported {
            what: format!("compression {}", family.attribute("COMPRESSION").unwrap_or("")),
        })?;
        let (bloom, bloom_prefix_len) = self.bloom_of(family);
        Ok(WriterOptions {
            order: self.table.order(),
            block_bytes: family.block_bytes().max(1),
            encoding: family.block_encoding(),
            compression,
            bloom,
            bloom_prefix_len,
            compress_tags: family.attribute("COMPRESS_TAGS").is_none_or(|text| !text.eq_ignore_ascii_case("false")),
            create_time_ms: self.services.env.clock.now_ms(),
            ..WriterOptions::default()
        })
    }

    /// The kind of Bloom filter and the length of its prefixes; HBase takes the latter from the settings of the table
    /// or family.
    fn bloom_of(&self, family: &FamilyDescriptor) -> (BloomType, u32) {
        const KEY: &str = "RowPrefixBloomFilter.prefix_length";
        match family.bloom_type() {
            BloomType::RowPrefix => {
                let text = family.configuration.get(KEY).or_else(|| self.table.configuration.get(KEY));
                match text.and_then(|text| text.parse().ok()) {
                    Some(len) if len > 0 => (BloomType::RowPrefix, len),
                    _ => (BloomType::Row, 0),
                }
            }
            bloom => (bloom, 0),
        }
    }
}
