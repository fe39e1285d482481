//! Opening a region: first its files, then the edits that only the logs have, then its sequence
//! ids.
//!
//! 1. Check that the log of this server was not taken over. Complete or undo an interrupted bulk
//!    load. Remove leftovers of unfinished flushes and compactions. A file under its final name is
//!    complete. Check the log again.
//! 2. Drop files that another file lists as replaced. A missing file of the inventory is an error.
//! 3. Replay logs and `recovered.edits`: put the edits that no file has into memory. Flush when
//!    they take much memory.
//! 4. Continue after the highest sequence id ever used, write the inventory, and record the open in
//!    the log.
//!
//! The replayed logs are kept until the region is flushed. Edits from `recovered.edits` are flushed
//! before the region serves, and these files are then deleted.
//!
//! A server may be frozen while it opens a region, together with its clocks, and continue when the
//! region is open elsewhere. It finds this out by the checks of its log (`Log::check_owned`), each
//! before it changes files that the other server may use. Whatever the checks miss, it can move no
//! file into a store (see `output`).

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use base::metrics::Counts;
use cell::region::RegionInfo;
use cell::schema::{FamilyDescriptor, TableDescriptor};
use fs::FilePath;
use layout::bulk_load::Settled;
use tracing::{info, warn};
use wal::marker::{Compaction, FamilyFiles};

use crate::caching::Caching;
use crate::compaction::Settings;
use crate::error::{Error, Result};
use crate::memstore::Memstore;
use crate::mob::MobResolver;
use crate::mvcc::Mvcc;
use crate::recovery::JoinedEntries;
use crate::region::files::{FileCache, OpenedFiles, open_files};
use crate::region::recovered_edits::RecoveredEdits;
use crate::region::split_policy::SplitPolicy;
use crate::region::strays::{Removal, Stray};
use crate::region::write_clock::WriteClock;
use crate::region::{
    PublishState, Region, RegionServices, RegionState, compact, durability_of, encode, marked, metrics,
};
use crate::replay::{Entries, Gaps, Replay};
use crate::row_locks::RowLocks;
use crate::scanner::FamilyRules;
use crate::store::{RegionView, StoreFile, StoreView};

/// The input for opening a region.
pub struct Opening {
    /// The region.
    pub info: RegionInfo,
    /// Its table.
    pub table: Arc<TableDescriptor>,
    /// The region's entries in the logs of an earlier run.
    pub entries: Box<dyn Entries>,
}

/// The next region number, counted from 1.
fn next_number() -> NonZeroU64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    NonZeroU64::MIN.saturating_add(LAST.fetch_add(1, Ordering::Relaxed))
}

impl Region {
    /// Opens a region whose directory exists. Creates missing directories of families.
    ///
    /// # Errors
    /// [`Corrupt`](crate::Error::Corrupt) or [`Unsupported`](crate::Error::Unsupported) for a file
    /// that cannot be served; errors of the file system and the log. Nothing of the region is then
    /// served.
    pub async fn open(services: RegionServices, opening: Opening) -> Result<Arc<Region>> {
        let started = services.env.clock.monotonic();
        let Opening { info, table, entries } = opening;
        let families: Vec<FamilyDescriptor> = table.families.values().cloned().collect();
        families.iter().try_for_each(check_codecs)?;
        let opening = layout::store::random_name(&*services.env.random);
        let services = RegionServices { root: services.root.for_opening(&opening), ..services };
        services.log.check_owned().await?;
        let fs = services.fs.clone();
        let now_ms = services.env.clock.now_ms();
        let settled = services.root.settle_bulk_load(&*fs, &*services.tracker, &info, now_ms).await?;
        prepare_directories(&services, &info, &families).await?;
        services.log.check_owned().await?;
        services.options.storage.apply(&*fs, &services.root, &info, &families).await;
        let inventory = services.root.read_inventory(&*fs, &info).await?;
        let mut stores = Vec::with_capacity(families.len());
        let mut strays = Vec::new();
        for (at, family) in families.iter().enumerate() {
            let caching = Caching::of(family, &services.options.caching);
            let cache = FileCache { loader: &services.loader, caching };
            let (root, inventory) = (&services.root, inventory.as_ref());
            let files =
                open_files(&*services.tracker, &*fs, root, Some(cache), &info, inventory, &family.name).await;
            let OpenedFiles { files, unarchived } = files.map_err(|error| add_repair_hint(error, &info))?;
            let removal = Some(Removal::Archive);
            strays.extend(unarchived.into_iter().map(|name| Stray { store: at, name, removal }));
            let store = StoreView::new(Arc::new(Memstore::new(table.order())), files);
            if let Some(common) = store.rows_common_prefix() {
                store.active.set_common_prefix(common);
            }
            stores.push(store);
        }
        let seq_id_file = services.root.read_max_seq_id(&*fs, &info).await?;
        entries.check(stores.iter().map(StoreView::max_file_seq_id).min().unwrap_or(0))?;
        let region = Region::new(services, info, table, families, stores, inventory);
        region.strays().extend(strays);
        let recovered = RecoveredEdits::find(&region.services, &region.info).await?;
        let files_of_split = recovered.files().to_vec();
        let replayed = region.replay(&mut JoinedEntries::new(vec![Box::new(recovered), entries])).await?;
        region.flush_recovered_edits(replayed, &files_of_split).await?;
        let last_used = region.last_used_seq_id(replayed, seq_id_file);
        region.start_serving(last_used, replayed, settled).await?;
        for (at, store) in region.view.load().stores.iter().enumerate() {
            region.warm_cache(at, store.files.iter().map(|file| (file.clone(), Vec::new())).collect());
        }
        info!(
            region = %region.name, seq_id = region.open_seq_id(), replayed_to = replayed,
            took = ?(region.services.env.clock.monotonic() - started), "opened"
        );
        Ok(region)
    }

    /// A region that does not serve yet.
    fn new(
        services: RegionServices,
        info: RegionInfo,
        table: Arc<TableDescriptor>,
        families: Vec<FamilyDescriptor>,
        stores: Vec<StoreView>,
        inventory: Option<layout::Inventory>,
    ) -> Arc<Region> {
        assert!(stores.len() == families.len(), "each family has a store");
        let instruments = services.instruments.of_region(&info.table, services.env.clock.monotonic());
        let full_name = info.name();
        let encoded: Arc<str> = info.encoded_name().into();
        let markers = marked(&info);
        let (clock, row_clock) = (WriteClock::new(&info.table), services.env.clock.clone());
        let flush_bytes = services.options.flush_bytes_of(&table);
        let site = &services.options.compaction;
        let settings_of = |family| Settings::of(&table, family, site, flush_bytes);
        let compaction_settings = families.iter().map(settings_of).collect();
        let has_mob = families.iter().any(FamilyDescriptor::is_mob);
        let mob = has_mob.then(|| Arc::new(MobResolver::new((&services).into(), info.table.clone())));
        let store_counts = families.iter().map(|_| Counts::default()).collect();
        let output_dirs_ready = families.iter().map(|_| tokio::sync::Mutex::default()).collect();
        Arc::new_cyclic(|this| Region {
            number: next_number(),
            durability: durability_of(&table),
            read_only: table.read_only(),
            flush_bytes,
            blocking_bytes: services.options.blocking_bytes_of(&table),
            split_policy: SplitPolicy::of(
                &table,
                &services.options.split,
                services.options.flush_bytes_of(&table),
                &*services.env.random,
            ),
            scopes: encode::scopes_of(&families),
            rules: families.iter().map(|family| FamilyRules::in_region(family, &services.options)).collect(),
            compaction_settings,
            compacting: compact::none_in_progress(families.len()),
            output_dirs_ready,
            compactions_run: tokio::sync::RwLock::default(),
            archiving: tokio::sync::Mutex::default(),
            recorded: tokio::sync::Mutex::new(inventory),
            name: full_name.escape_ascii().to_string().into(),
            services,
            info,
            table,
            families,
            encoded,
            markers,
            open_seq_id: AtomicU64::new(0),
            has_tags: AtomicBool::new(false),
            newest_unlogged: AtomicU64::new(0),
            this: this.clone(),
            mvcc: Mvcc::new(0),
            rows: RowLocks::new(row_clock),
            publish: Mutex::new(PublishState { clock, charged_bytes: 0 }),
            view: ArcSwap::from_pointee(RegionView { stores }),
            state: AtomicU8::new(RegionState::Closed as u8),
            flushing: tokio::sync::Mutex::new(None),
            retired: Mutex::default(),
            strays: Mutex::default(),
            mob,
            mob_files_in_use: Arc::default(),
            counters: metrics::Counters::default(),
            instruments,
            store_counts,
        })
    }

    /// Puts the entries that no file holds into memory. Returns the greatest sequence id found.
    async fn replay(&self, entries: &mut dyn Entries) -> Result<u64> {
        let mut replay = Replay {
            info: &self.info,
            families: &self.families,
            in_files: self.view.load().stores.iter().map(StoreView::max_file_seq_id).collect(),
            highest: 0,
            has_tags: false,
            cells: 0,
            gaps: Gaps::default(),
        };
        while let Some(entry) = entries.next().await? {
            let (key, now_ms) = (&entry.key, self.services.env.clock.now_ms());
            self.services.nonces.replayed(key.nonce, key.seq_id, key.write_time_ms, now_ms);
            let view = self.view.load_full();
            for compaction in replay.apply(&entry, &view.stores)? {
                self.finish_compaction(&compaction).await?;
            }
            if replay.has_tags {
                self.has_tags.store(true, Ordering::Relaxed);
            }
            let bytes = self.report_memstore_bytes(&mut *self.publish_lock()?);
            // On a full disk the edits stay in memory, as before the restart.
            if bytes > self.flush_bytes && self.services.budget.space().has(bytes.saturating_mul(2)) {
                // The files would promise to hold all edits up to the highest one. If this open
                // fails, the next one would skip the edits that were not read yet.
                if entries.lowest_to_come().is_none_or(|lowest| lowest > replay.highest) {
                    self.flush_replayed(replay.highest).await?;
                }
            }
        }
        if let Some((first, last)) = replay.gaps.first {
            warn!(
                region = %self.name, missing = replay.gaps.missing, first, last,
                "sequence ids are missing in the logs: writes that skipped the log (SKIP_WAL), or edits that \
                 are lost"
            );
        }
        Ok(replay.highest)
    }

    /// Flushes the edits of `recovered.edits`, which were replayed up to `replayed`, and deletes
    /// its files.
    async fn flush_recovered_edits(&self, replayed: u64, files: &[FilePath]) -> Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let in_memory = self.view.load().stores.iter().map(|store| store.active.max_seq_id()).max();
        self.flush_replayed(replayed.max(in_memory.unwrap_or(0))).await?;
        for path in files {
            self.services.fs.delete(path).await?;
        }
        Ok(())
    }

    /// Finishes a compaction that a log records: drops its inputs, if all outputs exist.
    async fn finish_compaction(&self, compaction: &Compaction) -> Result<()> {
        let Ok(at) = self.store_of(&compaction.family) else { return Ok(()) };
        let files = self.view.load().stores[at].files.clone();
        let is_there = |name: &String| files.iter().any(|file| file.name() == name);
        if compaction.outputs.is_empty() || !compaction.outputs.iter().all(is_there) {
            return Ok(());
        }
        let inputs: Vec<Arc<StoreFile>> = files
            .iter()
            .filter(|file| compaction.inputs.iter().any(|name| name == file.name()))
            .cloned()
            .collect();
        if !inputs.is_empty() {
            info!(region = %self.name, inputs = inputs.len(), "finishing a compaction recorded in the log");
            self.install_compaction(at, &inputs, &[])?;
            self.archive_retired().await;
        }
        Ok(())
    }

    /// The greatest sequence id known to have been used.
    fn last_used_seq_id(&self, replayed: u64, seq_id_file: u64) -> u64 {
        let view = self.view.load();
        let files = view.stores.iter().flat_map(|store| store.files.iter());
        // HBase counts the sequence ids of cells one higher; a region without files begins at 1.
        let in_files = files.map(|file| file.seq_id().max(file.max_own_seq_id() + 1)).max();
        in_files.unwrap_or(1).max(replayed).max(seq_id_file)
    }

    /// Starts to serve with sequence ids greater than `last_used`.
    async fn start_serving(&self, last_used: u64, replayed: u64, settled: Settled) -> Result<()> {
        assert!(replayed <= last_used, "new edits have greater sequence ids than replayed ones");
        let open_seq_id = last_used + 1;
        self.record_seq_id(last_used).await?;
        self.mvcc.continue_after(open_seq_id);
        self.open_seq_id.store(open_seq_id, Ordering::Relaxed);
        self.publish_lock()?.clock.continue_after(self.view.load().newest_timestamp().unwrap_or(0));
        if self.view.load().stores.iter().all(|store| store.active.is_empty()) {
            // All edits that the old logs have of this region are in files.
            self.record_flushed(replayed);
        }
        let (files, server) = (self.family_files(), self.services.server.as_ref());
        self.log_marker(|_, now_ms| self.markers.open(open_seq_id, &files, server, now_ms)).await?;
        if let Settled::Complete(event) = settled {
            self.finish_settled_load(&event).await?;
        }
        self.set_state(RegionState::Serving)
    }

    /// The families and their files.
    pub(super) fn family_files(&self) -> Vec<FamilyFiles> {
        let view = self.view.load();
        let stores = self.families.iter().zip(&view.stores).map(|(family, store)| FamilyFiles {
            family: family.name.clone(),
            files: store.files.iter().map(|file| file.name().to_string()).collect(),
            bytes: store.files.iter().map(|file| file.len()).sum(),
        });
        stores.collect()
    }
}

/// Rejects a family whose files could not be written, already when the region opens and not at the
/// first flush (HBase: `HRegion.checkCompressionCodecs`).
fn check_codecs(family: &FamilyDescriptor) -> Result<()> {
    match family.unsupported_compression() {
        None => Ok(()),
        Some(codec) => Err(Error::Unsupported {
            what: format!("compression {codec} of family {}", family.name.escape_ascii()),
        }),
    }
}

/// Adds the available remedies to the error for a damaged store file. For `hbase:meta` there are
/// none, because it is rebuilt as a whole.
fn add_repair_hint(error: Error, info: &RegionInfo) -> Error {
    match error {
        Error::Corrupt { file, offset, what } if !info.table.is_meta() => Error::Corrupt {
            file,
            offset,
            what: format!(
                "{what}. Restore the file from a backup, or accept the loss of its rows by `grampus repair region {}`",
                info.encoded_name()
            ),
        },
        error => error,
    }
}

/// Removes unfinished files of an earlier opening, and creates missing directories of families.
async fn prepare_directories(
    services: &RegionServices,
    info: &RegionInfo,
    families: &[FamilyDescriptor],
) -> Result<()> {
    let (fs, root) = (&*services.fs, &services.root);
    fs.delete(&root.region_tmp_dir(info)).await?;
    if families.iter().any(FamilyDescriptor::is_mob) {
        root.remove_unfinished_mob_files(fs, info).await?;
    }
    for family in families {
        layout::store::check_family(&root.region_dir(info), &family.name)?;
        let dir = root.family_dir(info, &family.name);
        if fs.stat(&dir).await?.is_none() {
            fs.make_dirs(&dir).await?;
        }
    }
    Ok(())
}
