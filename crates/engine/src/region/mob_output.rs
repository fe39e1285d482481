//! Moves the large values of a flush or compaction to a MOB file, and writes references in their
//! place.
//!
//! The MOB file is complete and durable under its name before the store file that refers to it is.
//! If the store file then fails, the MOB file stays without references, until the cleaner archives
//! it. It is never deleted: a store file whose rename failed may exist nevertheless.
//!
//! Source: HBase `DefaultMobStoreFlusher`, `DefaultMobStoreCompactor`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cell::query::MobReads;
use cell::schema::{BloomType, FamilyDescriptor};
use cell::{Cell, CellType};
use fs::Role;
use hfile::{RetainKinds, StoreInfo, Writer};
use tracing::warn;

use crate::error::{Error, Result};
use crate::mob::{FileRefs, MobCompaction, MobReference, MobResolver, ReferenceWriter, is_reference};
use crate::region::Region;
use crate::region::output::OutputSource;

/// Bytes of values between two checks of the disk's free space.
const SPACE_CHECK_BYTES: u64 = 64 << 20;

/// The MOB files of one flush or compaction of a store.
pub(super) struct MobOutput {
    store: usize,
    threshold: u64,
    // Whether the values of references are written again.
    rewrites: Option<MobCompaction>,
    resolver: Arc<MobResolver>,
    references: ReferenceWriter,
    owner: String,
    newest_ms: i64,
    // The file that is being written.
    file: Option<UnfinishedFile>,
    committed: Vec<MobFileInUse>,
    unchecked_bytes: u64,
    moved: Moved,
}

struct UnfinishedFile {
    in_use: MobFileInUse,
    writer: Writer,
    cells: u64,
    bytes: u64,
}

/// Cells and bytes of values that changed their kind of file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moved {
    pub(super) to_mob: (u64, u64),
    pub(super) from_mob: (u64, u64),
}

/// The name of a MOB file to which a store file refers that may not be in a view yet. While this
/// exists, the cleaner leaves the file alone.
pub(super) struct MobFileInUse {
    name: String,
    names: Arc<Mutex<Vec<String>>>,
}

impl MobFileInUse {
    fn begin(names: &Arc<Mutex<Vec<String>>>, name: String) -> MobFileInUse {
        lock(names).push(name.clone());
        MobFileInUse { name, names: names.clone() }
    }
}

impl Drop for MobFileInUse {
    fn drop(&mut self) {
        lock(&self.names).retain(|name| *name != self.name);
    }
}

fn lock(names: &Mutex<Vec<String>>) -> MutexGuard<'_, Vec<String>> {
    // Safe after a panic: the list of names is always consistent.
    names.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The store file to which the cells go.
pub(super) struct StoreOutput<'a> {
    pub(super) writer: &'a mut Writer,
    pub(super) refs: &'a mut FileRefs,
}

impl Region {
    /// The MOB files of an output of the store `at`; `None` if its family has no MOB files.
    pub(super) fn mob_output(&self, at: usize, source: &OutputSource) -> Option<MobOutput> {
        let family = &self.families[at];
        let resolver = self.mob.as_ref().filter(|_| family.is_mob())?.clone();
        Some(MobOutput {
            store: at,
            threshold: family.mob_threshold(),
            rewrites: source.rewrites_mob().then(|| self.mob_compaction(family)),
            resolver,
            references: ReferenceWriter::new(&self.info.table),
            owner: self.info.table.to_string(),
            newest_ms: source.newest_ms(),
            file: None,
            committed: Vec::new(),
            unchecked_bytes: 0,
            moved: Moved::default(),
        })
    }

    /// What a user's major compaction of `family` does with values in MOB files.
    fn mob_compaction(&self, family: &FamilyDescriptor) -> MobCompaction {
        const TYPE: &str = "hbase.mob.compaction.type";
        const FILE_BYTES_MAX: &str = "hbase.mob.compactions.max.file.size";
        let setting = |key: &str| family.setting(key).or_else(|| self.table.setting(key));
        let site = self.options().mob.compaction;
        let bytes_max = match (setting(FILE_BYTES_MAX).and_then(|text| text.parse().ok()), site) {
            (Some(bytes), _) | (None, MobCompaction::Optimized(bytes)) => bytes,
            (None, MobCompaction::Full) => MobCompaction::FILE_BYTES_MAX,
        };
        match setting(TYPE) {
            Some(kind) if kind.eq_ignore_ascii_case("optimized") => MobCompaction::Optimized(bytes_max),
            Some(_) => MobCompaction::Full,
            None if site == MobCompaction::Full => MobCompaction::Full,
            None => MobCompaction::Optimized(bytes_max),
        }
    }

    /// Names of MOB files to which a store file that is being written refers.
    pub(super) fn mob_files_in_use(&self) -> Vec<String> {
        lock(&self.mob_files_in_use).clone()
    }
}

impl MobOutput {
    /// Writes a cell to the store file: as it is, as a reference, or with the value of a reference.
    /// Returns the bytes of values that were read or written in MOB files.
    ///
    /// # Errors
    /// Of a reference that cannot be resolved, and of the file system.
    pub(super) async fn append(
        &mut self,
        region: &Region,
        source: &OutputSource,
        cell: &Cell<'_>,
        store: StoreOutput<'_>,
    ) -> Result<u64> {
        if cell.kind() != CellType::Put {
            store.writer.append(cell).await?;
            return Ok(0);
        }
        if is_reference(cell.tags) {
            return self.append_reference(region, source, cell, store).await;
        }
        if !self.is_large(cell) {
            store.writer.append(cell).await?;
            return Ok(0);
        }
        add(&mut self.moved.to_mob, cell);
        self.move_out(region, source, cell, store).await
    }

    fn is_large(&self, cell: &Cell<'_>) -> bool {
        cell.value.len() as u64 > self.threshold && self.references.can_replace(cell)
    }

    async fn append_reference(
        &mut self,
        region: &Region,
        source: &OutputSource,
        cell: &Cell<'_>,
        store: StoreOutput<'_>,
    ) -> Result<u64> {
        let Some(reference) = MobReference::parse(cell) else {
            // A client wrote it. It stays, so that the flush of all other cells does not fail.
            store.writer.append(cell).await?;
            return Ok(0);
        };
        let stays = match self.rewrites {
            None => true,
            Some(MobCompaction::Full) => false,
            Some(MobCompaction::Optimized(bytes)) => self.resolver.file_len(cell).await? >= bytes,
        };
        if stays {
            store.refs.add(&reference.owner.to_string(), reference.file);
            store.writer.append(cell).await?;
            return Ok(0);
        }
        let found = self.resolver.resolve(cell, MobReads::default()).await?;
        let found = found.expect("a missing value is an error");
        let whole = found.in_place_of(cell);
        if self.is_large(&whole) {
            return Ok(self.move_out(region, source, &whole, store).await? + u64::from(reference.len));
        }
        add(&mut self.moved.from_mob, &whole);
        store.writer.append(&whole).await?;
        Ok(u64::from(reference.len))
    }

    /// Writes a cell to the MOB file, and a reference to the store file.
    async fn move_out(
        &mut self,
        region: &Region,
        source: &OutputSource,
        cell: &Cell<'_>,
        store: StoreOutput<'_>,
    ) -> Result<u64> {
        self.unchecked_bytes += cell.value.len() as u64;
        if self.unchecked_bytes >= SPACE_CHECK_BYTES {
            self.unchecked_bytes = 0;
            if !source.is_flush() && !region.services.budget.space().has(SPACE_CHECK_BYTES) {
                let path = region.services.root.mob_tmp_dir();
                return Err(fs::Error::NoSpace { path }.into());
            }
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let file = region.begin_mob_file(self.store, source, self.newest_ms).await?;
                self.file.insert(file)
            }
        };
        file.writer.append(cell).await?;
        file.cells += 1;
        file.bytes += cell.value.len() as u64;
        let reference = self.references.reference(cell, &file.in_use.name);
        store.refs.add(&self.owner, &file.in_use.name);
        store.writer.append(&reference).await?;
        let is_full = matches!(self.rewrites, Some(MobCompaction::Optimized(max)) if file.bytes > max);
        if is_full {
            self.commit_file(region, source).await?;
        }
        Ok(cell.value.len() as u64)
    }

    /// Completes the MOB file, and makes it durable under its name.
    async fn commit_file(&mut self, region: &Region, source: &OutputSource) -> Result<()> {
        let Some(UnfinishedFile { in_use, mut writer, cells, .. }) = self.file.take() else {
            return Ok(());
        };
        assert!(cells > 0, "a MOB file is begun for a cell");
        let info = StoreInfo { mob_cells: Some(cells), compacted_files: Vec::new(), ..source.info().clone() };
        writer.complete_blocks();
        writer.put_store_info(&info);
        // Before anything can fail, so that `discard` does not lose track of the file.
        self.committed.push(in_use);
        let name = &self.committed[self.committed.len() - 1].name;
        let (fs, root) = (&*region.services.fs, &region.services.root);
        let family = &region.families[self.store].name;
        let committed = async {
            let written = writer.finish().await?;
            let path = root.commit_mob_file(fs, &region.info.table, family, name).await?;
            Ok::<_, Error>((written, path))
        };
        let (written, path) = match committed.await {
            Ok(committed) => committed,
            Err(error) => {
                // A rename that returned an error may have had its effect. Then this does nothing.
                delete_unfinished(region, name).await;
                return Err(error);
            }
        };
        // Only a file that was read back is used.
        let file = self.resolver.open_at(&path).await?;
        if file.len() != written.bytes {
            let what = format!("has {} bytes, but {} were written", file.len(), written.bytes);
            return Err(Error::corrupt(&path, 0, what));
        }
        Ok(())
    }

    /// Completes all MOB files. Returns their names, which are in use until the result is dropped.
    ///
    /// # Errors
    /// Those of the file system. [`discard`](MobOutput::discard) is still to be called.
    pub(super) async fn finish(
        &mut self,
        region: &Region,
        source: &OutputSource,
    ) -> Result<Vec<MobFileInUse>> {
        self.commit_file(region, source).await?;
        self.count(region, source);
        Ok(std::mem::take(&mut self.committed))
    }

    /// Removes an unfinished file.
    pub(super) async fn discard(&mut self, region: &Region) {
        if let Some(UnfinishedFile { in_use, writer, .. }) = self.file.take() {
            drop(writer);
            delete_unfinished(region, &in_use.name).await;
        }
    }

    fn count(&self, region: &Region, source: &OutputSource) {
        let counts = region.services.mob.instruments();
        let Moved { to_mob, from_mob } = self.moved;
        if source.is_flush() {
            counts.flushes.add(u64::from(to_mob.0 > 0));
            counts.flushed_cells.add(to_mob.0);
            counts.flushed_bytes.add(to_mob.1);
        } else {
            counts.compacted_cells_to_mob.add(to_mob.0);
            counts.compacted_bytes_to_mob.add(to_mob.1);
            counts.compacted_cells_from_mob.add(from_mob.0);
            counts.compacted_bytes_from_mob.add(from_mob.1);
        }
    }
}

impl Region {
    async fn begin_mob_file(
        &self,
        at: usize,
        source: &OutputSource,
        newest_ms: i64,
    ) -> Result<UnfinishedFile> {
        let family = &self.families[at];
        let mut options = self.writer_options(family, source)?;
        options.bloom = BloomType::None;
        options.delete_family_bloom = false;
        options.include_tags = true;
        options.sidecar = false;
        options.retain = RetainKinds::default();
        options.purpose.role = Role::Mob;
        let name = layout::mob::new_name(&self.info, newest_ms, &*self.services.env.random);
        let in_use = MobFileInUse::begin(&self.mob_files_in_use, name);
        let (fs, dir) = (&*self.services.fs, self.services.root.mob_tmp_dir());
        if fs.stat(&dir).await?.is_none() {
            fs.make_dirs(&dir).await?;
        }
        match Writer::create(fs, &dir.join(&in_use.name), options).await {
            Ok(writer) => Ok(UnfinishedFile { in_use, writer, cells: 0, bytes: 0 }),
            Err(error) => {
                delete_unfinished(self, &in_use.name).await;
                Err(error.into())
            }
        }
    }
}

/// Removes a file that was not completed. If that fails, the next open removes it.
async fn delete_unfinished(region: &Region, name: &str) {
    let path = region.services.root.mob_tmp_dir().join(name);
    if let Err(error) = region.services.fs.delete(&path).await {
        warn!(file = %path, %error, "cannot remove unfinished MOB file");
    }
}

fn add(total: &mut (u64, u64), cell: &Cell<'_>) {
    total.0 += 1;
    total.1 += cell.value.len() as u64;
}
