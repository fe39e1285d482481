//! Bulk load: adds complete HFiles to the stores of a region.
//!
//! 1. Check all files. Nothing is changed if one of them does not fit.
//! 2. Copy the files of other file systems.
//! 3. Flush. The cells of the files get the sequence id of the flush: they are newer than all edits
//!    in files, and older than all edits in memory.
//! 4. Record the load in the region's directory ([`layout::bulk_load`]).
//! 5. Move the files into their stores.
//! 6. Install a view that has them, and append the marker to the log.
//! 7. When the marker is durable, remove the record.
//!
//! Invariants:
//!
//! * Readers see the files of all families or none: the view is replaced once.
//! * After a crash, the next open finds the record. If all files are in their stores, the load is
//!   complete, and the marker is logged again. Otherwise the files are moved back.
//! * A load first settles an earlier one whose record remains. It is complete if the view has its
//!   files.
//! * No flush runs between the steps 3 and 7, so at most one load of a region has a record.
//! * No compaction uses the files before step 7 has succeeded, so the record names existing files.
//!
//! HBase loads a part of the files if it crashes between two families.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::env::TaskClass;
use bytes::Bytes;
use cell::CellOrder;
use cell::mutation::Durability;
use fs::{FilePath, FileReader, FileSystem, IoClass, Purpose, SyncLevel};
use hfile::{OpenOptions, Reader, Walk};
use layout::{BulkLoadRecord, LoadedFile};
use tracing::{info, warn};
use wal::marker::{self, FamilyFiles};

use crate::error::{Error, Result};
use crate::region::flush::{Flushed, FrozenFlush};
use crate::region::output::purpose_of_reader;
use crate::region::strays::Stray;
use crate::region::write::check_cluster_ids;
use crate::region::{NewEdit, Region};
use crate::scanner::next_file_id;
use crate::store::{RegionView, StoreFile, StoreView};

/// Bytes that are copied at a time.
const COPY_BYTES: u64 = 1 << 20;

/// Files to add to the stores of a region.
pub struct BulkLoad {
    /// The files.
    pub files: Vec<BulkFile>,
    /// Whether the cells become newer than all earlier edits. If not, they are older than all cells
    /// with a sequence id.
    pub assigns_seq_id: bool,
    /// Whether files of the region's own file system are copied, too, and not moved.
    pub copies: bool,
    /// Ids of the clusters that have loaded the files, including this one.
    pub cluster_ids: Vec<String>,
    /// Whether the load is to be replicated.
    pub replicate: bool,
}

/// A file to add to the store of a family.
pub struct BulkFile {
    /// The family.
    pub family: Bytes,
    /// Where the file is.
    pub source: BulkSource,
}

/// Where a file to load is.
pub enum BulkSource {
    /// On the region's file system. The file is moved.
    Own(FilePath),
    /// On another file system. The file is copied.
    Other(Arc<dyn FileSystem>, FilePath),
    /// Outside of the root directory, but on the same storage. The file is moved.
    Movable(MovableFile),
}

/// A file outside of the root directory that a rename can move into it.
pub struct MovableFile {
    /// A file system that has both the file and the root directory.
    pub fs: Arc<dyn FileSystem>,
    /// The path of the file in `fs`.
    pub path: FilePath,
    /// The path in `fs` to which the file is moved first.
    pub staged: FilePath,
    /// The same path on the region's file system.
    pub own: FilePath,
}

/// A file that passed all checks.
struct CheckedFile<'a> {
    store: usize,
    source: &'a BulkSource,
    purpose: Purpose,
}

/// A complete file on the region's file system, before it is moved into its store.
struct StagedFile {
    store: usize,
    path: FilePath,
    bytes: u64,
    // A copy is removed after a failure. An original is moved back.
    is_copy: bool,
}

/// The result of staging the files of a load.
#[derive(Default)]
struct Staged<'a> {
    files: Vec<StagedFile>,
    // The files that were moved from outside of the root directory.
    moved: Vec<&'a MovableFile>,
}

impl Region {
    /// Adds files to the stores of their families: all or none, also after a crash. Returns `false`
    /// if a file has rows outside of the region; nothing has changed then. Continues if the caller
    /// stops waiting.
    ///
    /// # Errors
    /// [`Error::BadRequest`] for an unknown family or a file without cells; [`Error::Corrupt`] and
    /// [`Error::Unsupported`] for an invalid file; errors of the file system and the log. After any
    /// error except [`Error::Log`], no file was added.
    pub async fn bulk_load(&self, load: BulkLoad) -> Result<bool> {
        let this = self.this.upgrade().ok_or_else(|| self.not_serving())?;
        let loading = async move { this.load_files(&load).await };
        let loaded = self.services.env.run_to_end(TaskClass::Background, loading).await;
        loaded.unwrap_or_else(|| Err(Error::log("a bulk load was interrupted by a panic")))
    }

    async fn load_files(&self, load: &BulkLoad) -> Result<bool> {
        self.check_serving()?;
        // A close of the region waits for the end of the load.
        let _open = self.compactions_run.read().await;
        self.check_serving()?;
        self.instruments.count_writes(1);
        check_cluster_ids(load.cluster_ids.len())?;
        let Some(checked) = self.check_files(load).await? else { return Ok(false) };
        let mut staged = Staged::default();
        let loaded = match self.stage(load, checked, &mut staged).await {
            Ok(()) => self.add_staged(load, &staged.files).await,
            Err(error) => Err(error),
        };
        if loaded.is_err() && self.mvcc.check_log().is_ok() {
            self.unstage(&staged).await;
        }
        loaded?;
        if self.options().compact_after_bulk_load {
            self.request_compactions();
        }
        Ok(true)
    }

    /// Checks all files. `None` if one of them has rows outside of the region.
    async fn check_files<'a>(&self, load: &'a BulkLoad) -> Result<Option<Vec<CheckedFile<'a>>>> {
        let mut checked = Vec::with_capacity(load.files.len());
        let mut do_all_fit = true;
        for BulkFile { family, source } in &load.files {
            let Ok(store) = self.store_of(family) else {
                return Err(Error::bad_request(format!("No such column family {}", family.escape_ascii())));
            };
            let reader = self.open_source(source).await?;
            let (Some(first), Some(last)) = (reader.first_row(), reader.last_row()) else {
                return Err(Error::bad_request("First key can not be null"));
            };
            if !self.info.contains(first) || !self.info.contains(last) {
                warn!(
                    region = %self.name, file = %reader.path(), first = %first.escape_ascii(),
                    last = %last.escape_ascii(), "file to load does not fit into the region"
                );
                do_all_fit = false;
            }
            if self.options().verify_bulk_loads {
                self.verify(&reader).await?;
            }
            checked.push(CheckedFile {
                store,
                source,
                purpose: purpose_of_reader(&reader, &self.families[store]),
            });
        }
        Ok(do_all_fit.then_some(checked))
    }

    /// Whether all rows of a file are in the region.
    ///
    /// # Errors
    /// Those of opening the file.
    pub async fn fits(&self, source: &BulkSource) -> Result<bool> {
        let reader = self.open_source(source).await?;
        let is_here = |row: Option<&[u8]>| row.is_some_and(|row| self.info.contains(row));
        Ok(is_here(reader.first_row()) && is_here(reader.last_row()))
    }

    async fn open_source(&self, source: &BulkSource) -> Result<Arc<Reader>> {
        let options = OpenOptions { order: Some(self.table.order()), assigned_seq_id: None };
        let (fs, path) = match source {
            BulkSource::Own(path) => (&self.services.fs, path),
            BulkSource::Other(fs, path) | BulkSource::Movable(MovableFile { fs, path, .. }) => (fs, path),
        };
        Ok(Reader::open(&**fs, path, next_file_id(), options).await?)
    }

    /// Reads a whole file, and checks the order of its cells.
    async fn verify(&self, reader: &Arc<Reader>) -> Result<()> {
        let order: CellOrder = reader.order();
        let mut walk = Walk::new(reader, IoClass::Read, 0);
        let mut last: Option<Vec<u8>> = None;
        loop {
            walk.next().await?;
            let Some(cell) = walk.cell() else { return Ok(()) };
            if last.as_ref().is_some_and(|last| order.compare_keys(last, cell.key).is_gt()) {
                let what = format!("the cells are not in order at row {}", cell.row().escape_ascii());
                return Err(Error::corrupt(reader.path(), 0, what));
            }
            match &mut last {
                Some(last) => {
                    last.clear();
                    last.extend_from_slice(cell.key);
                }
                None => last = Some(cell.key.to_vec()),
            }
        }
    }

    /// Brings all files to the region's file system: copies those that are not moved.
    async fn stage<'a>(
        &self,
        load: &BulkLoad,
        checked: Vec<CheckedFile<'a>>,
        staged: &mut Staged<'a>,
    ) -> Result<()> {
        let is_moved = |file: &CheckedFile<'_>| !load.copies && !matches!(file.source, BulkSource::Other(..));
        let copied: u64 =
            checked.iter().filter(|file| !is_moved(file)).map(|file| file.purpose.expected_bytes).sum();
        if copied > 0 && !self.services.budget.space().has(copied) {
            return Err(fs::Error::NoSpace { path: self.services.root.region_dir(&self.info) }.into());
        }
        for file in checked {
            let bytes = file.purpose.expected_bytes;
            match file.source {
                BulkSource::Own(path) if !load.copies => {
                    let (store, path) = (file.store, path.clone());
                    staged.files.push(StagedFile { store, path, bytes, is_copy: false });
                }
                BulkSource::Movable(movable) if !load.copies => {
                    self.services.fs.make_dirs(&movable.own.parent()).await?;
                    movable.fs.rename(&movable.path, &movable.staged).await?;
                    staged.moved.push(movable);
                    let (store, path) = (file.store, movable.own.clone());
                    staged.files.push(StagedFile { store, path, bytes, is_copy: false });
                }
                BulkSource::Own(path) => self.copy(&file, &self.services.fs, path, staged).await?,
                BulkSource::Other(fs, path) | BulkSource::Movable(MovableFile { fs, path, .. }) => {
                    self.copy(&file, fs, path, staged).await?;
                }
            }
        }
        Ok(())
    }

    async fn copy(
        &self,
        file: &CheckedFile<'_>,
        source: &Arc<dyn FileSystem>,
        from: &FilePath,
        staged: &mut Staged<'_>,
    ) -> Result<()> {
        let dir = self.ready_output_dir(file.store).await?;
        let path = dir.join(&layout::store::random_name(&*self.services.env.random));
        let reader = source.open(from).await?;
        let (store, bytes) = (file.store, reader.len());
        staged.files.push(StagedFile { store, path: path.clone(), bytes, is_copy: true });
        self.copy_bytes(&*reader, &path, &file.purpose).await
    }

    async fn copy_bytes(&self, reader: &dyn FileReader, to: &FilePath, purpose: &Purpose) -> Result<()> {
        let mut writer = self.services.fs.create_for(to, purpose).await?;
        let mut offset = 0;
        while offset < reader.len() {
            if !self.allows_compactions() {
                return Err(self.not_serving());
            }
            let len = COPY_BYTES.min(reader.len() - offset);
            writer.append(reader.read_for(purpose.class(), offset, len as usize).await?).await?;
            offset += len;
        }
        writer.sync(SyncLevel::Disk).await?;
        Ok(writer.close().await?)
    }

    /// Removes the copies of a failed load, and moves files back that were outside of the root
    /// directory. What remains in the staging directory is removed with it.
    async fn unstage(&self, staged: &Staged<'_>) {
        for copy in staged.files.iter().filter(|file| file.is_copy) {
            if let Err(error) = self.services.fs.delete(&copy.path).await {
                warn!(file = %copy.path, %error, "cannot remove the copy of a file that was not loaded");
            }
        }
        for moved in &staged.moved {
            if let Err(error) = moved.fs.rename(&moved.staged, &moved.path).await {
                warn!(file = %moved.staged, to = %moved.path, %error, "cannot move a file back that was not loaded");
            }
        }
    }

    /// Adds complete files to their stores.
    async fn add_staged(&self, load: &BulkLoad, staged: &[StagedFile]) -> Result<()> {
        let services = &self.services;
        // No flush runs until the load is complete.
        let mut pending = self.flushing.lock().await;
        self.check_serving()?;
        self.settle_earlier_load().await?;
        let seq_id = match load.assigns_seq_id {
            true => Some(self.flush_for_load(&mut pending).await?),
            false => None,
        };
        for file in staged {
            self.ready_output_dir(file.store).await?;
        }
        let record = self.record_of(load, staged, seq_id);
        // If the region is open elsewhere, its next load there would find this record.
        self.check_owned().await?;
        let placed = match services.root.write_bulk_load(&*services.fs, &self.info, &record).await {
            Ok(()) => self.place(staged, &record, seq_id.unwrap_or(0)).await,
            Err(error) => Err(error.into()),
        };
        let files = match placed {
            Ok(files) => files,
            Err(error) => {
                self.undo(&record).await;
                return Err(error);
            }
        };
        // No compaction may replace a file that the record names: the next open would take the load
        // for incomplete, and move the other files back.
        files.iter().for_each(|(store, file)| self.in_progress(*store).take(file));
        let marked = self.install_load(&files, &record.event)?;
        // If the log fails now, the record remains, and the next open completes the load.
        self.mvcc.wait_visible(marked).await?;
        match services.root.remove_bulk_load(&*services.fs, &self.info).await {
            Ok(()) => {
                for (store, file) in &files {
                    self.in_progress(*store).release(std::slice::from_ref(file));
                }
            }
            Err(error) => warn!(
                region = %self.name, %error,
                "cannot remove the record of a bulk load: its files are not compacted until the next load or opening"
            ),
        }
        drop(pending);
        self.record_new_files().await;
        info!(
            region = %self.name, files = files.len(), bytes = staged.iter().map(|file| file.bytes).sum::<u64>(),
            seq_id, "bulk loaded"
        );
        for (at, file) in files {
            self.warm_cache(at, vec![(file, Vec::new())]);
        }
        Ok(())
    }

    /// Settles an earlier load whose record remains: the record could not be removed, or the files
    /// could not be moved back, or a server that was frozen wrote the record after this one had
    /// opened the region. The caller holds the flush lock.
    async fn settle_earlier_load(&self) -> Result<()> {
        let (fs, root) = (&*self.services.fs, &self.services.root);
        let Some(record) = root.read_bulk_load(fs, &self.info).await? else { return Ok(()) };
        warn!(region = %self.name, files = record.files.len(), "settling an earlier bulk load");
        let Some(loaded) = self.files_in_view(&record) else {
            self.move_back(&record).await?;
            self.strays().retain(|stray| stray.removal.is_some());
            return Ok(());
        };
        self.check_owned().await?;
        root.remove_bulk_load(fs, &self.info).await?;
        for (store, file) in loaded {
            self.in_progress(store).release(std::slice::from_ref(&file));
        }
        Ok(())
    }

    /// The files of a load, each with the index of its store; `None` if the view lacks one.
    fn files_in_view(&self, record: &BulkLoadRecord) -> Option<Vec<(usize, Arc<StoreFile>)>> {
        let view = self.view.load();
        let find = |loaded: &LoadedFile| {
            let store = self.store_of(&loaded.family).ok()?;
            let file = view.stores[store].files.iter().find(|file| file.name() == loaded.name)?;
            Some((store, file.clone()))
        };
        record.files.iter().map(find).collect()
    }

    /// Flushes, and returns a sequence id so that all earlier edits are in files and all later ones
    /// in memory.
    async fn flush_for_load(&self, pending: &mut Option<FrozenFlush>) -> Result<u64> {
        loop {
            match self.flush_locked(pending, &self.all_families()).await? {
                Flushed::Files { seq_id, .. } => return Ok(seq_id),
                Flushed::Nothing => {}
            }
            if let Some(seq_id) = self.draw_seq_id()? {
                self.mvcc.wait_visible(seq_id).await?;
                return Ok(seq_id);
            }
        }
    }

    /// Draws a sequence id if all memstores are empty.
    fn draw_seq_id(&self) -> Result<Option<u64>> {
        let _publish = self.publish_lock()?;
        let view = self.view.load();
        if view.stores.iter().any(|store| store.snapshot.is_some() || !store.active.is_empty()) {
            return Ok(None);
        }
        let seq_id = self.mvcc.next_seq_id();
        self.append_edit(NewEdit {
            seq_id,
            write_time_ms: self.services.env.clock.now_ms(),
            cells: Bytes::new(),
            cell_count: 0,
            nonce: (0, 0),
            is_replicated: false,
            cluster_ids: None,
            durability: Durability::SkipWal,
        });
        Ok(Some(seq_id))
    }

    fn record_of(&self, load: &BulkLoad, staged: &[StagedFile], seq_id: Option<u64>) -> BulkLoadRecord {
        let mut stores: BTreeMap<usize, FamilyFiles> = BTreeMap::new();
        let mut files = Vec::with_capacity(staged.len());
        for file in staged {
            let name = layout::store::random_name(&*self.services.env.random);
            // HBase has no id in the name of a file without one, and treats its cells as if they
            // had the lowest.
            let name = format!("{name}_SeqId_{}_", seq_id.unwrap_or(0));
            let family = self.families[file.store].name.clone();
            let store = stores.entry(file.store).or_insert_with(|| FamilyFiles {
                family: family.clone(),
                files: Vec::new(),
                bytes: 0,
            });
            store.files.push(name.clone());
            store.bytes += file.bytes;
            let origin = (!file.is_copy).then(|| file.path.as_str().to_owned());
            files.push(LoadedFile { family, name, origin });
        }
        let event = self.markers.bulk_load_value(&marker::BulkLoad {
            seq_id,
            stores: stores.into_values().collect(),
            cluster_ids: load.cluster_ids.clone(),
            replicate: load.replicate,
        });
        BulkLoadRecord { event, files }
    }

    /// Moves the files into their stores, and opens them.
    async fn place(
        &self,
        staged: &[StagedFile],
        record: &BulkLoadRecord,
        seq_id: u64,
    ) -> Result<Vec<(usize, Arc<StoreFile>)>> {
        let services = &self.services;
        let mut names: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for (file, LoadedFile { name, .. }) in staged.iter().zip(&record.files) {
            let dir = services.tracker.output_dir(self.tracked_store(file.store));
            if !file.is_copy {
                // Its writer may not have synced it. Nothing else may write it any more.
                let _ = services.fs.fence(&file.path).await?;
            }
            services.fs.rename(&file.path, &dir.join(name)).await?;
            names.entry(file.store).or_default().push(name);
        }
        let now_ms = services.env.clock.now_ms();
        for (store, names) in &names {
            services.tracker.commit(self.tracked_store(*store), names, &[], now_ms).await?;
        }
        let mut files = Vec::with_capacity(staged.len());
        for (file, LoadedFile { name, .. }) in staged.iter().zip(&record.files) {
            files.push((file.store, self.open_moved_in(file.store, name, Some(seq_id)).await?));
            let (family, path) = (&self.families[file.store], self.store_dir(file.store).join(name));
            services.options.storage.satisfy_output(&*services.fs, family, &path);
        }
        Ok(files)
    }

    /// Moves the files of a failed load back. No view has them.
    async fn undo(&self, record: &BulkLoadRecord) {
        if let Err(error) = self.move_back(record).await {
            warn!(region = %self.name, %error, "cannot undo a bulk load; the next load or opening will");
            // Until then, compactions list the files as replaced, so that they never become
            // visible.
            for LoadedFile { family, name, .. } in &record.files {
                if let Ok(store) = self.store_of(family) {
                    self.strays().push(Stray { store, name: name.clone(), removal: None });
                }
            }
        }
    }

    async fn move_back(&self, record: &BulkLoadRecord) -> Result<()> {
        // A server that has opened the region since has completed the load, or rolled it back.
        self.check_owned().await?;
        let services = &self.services;
        let (fs, tracker, now_ms) = (&*services.fs, &*services.tracker, services.env.clock.now_ms());
        Ok(services.root.undo_bulk_load(fs, tracker, &self.info, record, now_ms).await?)
    }

    /// Adds the files to the view, and appends the marker. Returns the marker's sequence id.
    fn install_load(&self, files: &[(usize, Arc<StoreFile>)], event: &[u8]) -> Result<u64> {
        let mut publish = self.publish_lock()?;
        let view = self.view.load_full();
        let with_files = |(at, store): (usize, &StoreView)| {
            let new = files.iter().filter(|(store, _)| *store == at).map(|(_, file)| file.clone());
            store.loaded(new.collect())
        };
        let stores = view.stores.iter().enumerate().map(with_files).collect();
        self.set_view(&mut publish, RegionView { stores });
        Ok(self.append_load_marker(event))
    }

    /// Appends the marker of a bulk load, under the publish lock. Returns its sequence id.
    fn append_load_marker(&self, event: &[u8]) -> u64 {
        let (seq_id, now_ms) = (self.mvcc.next_seq_id(), self.services.env.clock.now_ms());
        let marker = self.markers.bulk_load(event, now_ms);
        self.append_edit(NewEdit { is_replicated: true, ..NewEdit::marker(seq_id, now_ms, &marker) });
        seq_id
    }

    /// Logs the marker of a load that a crash interrupted after all files were in their stores, and
    /// removes its record. The log may have the marker twice.
    pub(super) async fn finish_settled_load(&self, event: &[u8]) -> Result<()> {
        let marked = {
            let _publish = self.publish_lock()?;
            self.append_load_marker(event)
        };
        self.mvcc.wait_visible(marked).await?;
        Ok(self.services.root.remove_bulk_load(&*self.services.fs, &self.info).await?)
    }
}
