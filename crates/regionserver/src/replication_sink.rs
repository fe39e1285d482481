//! The receiving side of replication: `ReplicateWALEntry`, by which another cluster sends entries
//! of its logs.
//!
//! Tables have the same names in both clusters. Cells keep their timestamps, types and tags. As in
//! HBase, consecutive cells of a row and type become a put or a delete, and these are written like
//! those of clients: to the log, with the replication scopes of this cluster's tables. The log also
//! gets the ids of the clusters that have the edit, so that it does not return to one of them.
//!
//! Mutations of regions that this server has are applied directly. The others, and those that
//! failed, are written through a client of the cluster, which retries. If a mutation fails
//! nevertheless, the whole call fails, and the source repeats it. That is harmless, because the
//! timestamps are the same.
//!
//! The order of mutations of one row is kept. A batch has no two mutations of the same kind for one
//! row: the cells of a batch have one sequence id, so the later one would not replace the earlier.
//!
//! Source: HBase `ReplicationSink`, `HFileReplicator`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::BoxFuture;
use base::env::Env;
use bytes::Bytes;
use cell::codec::{CellBlockReader, Codec};
use cell::mutation::Mutation;
use cell::schema::TableName;
use cell::{CellType, KeyValue};
use engine::Region;
use engine::region::{BulkFile, BulkLoad, BulkSource};
use fs::FilePath;
use proto::exception::{Answer, JavaException, class};
use tokio::sync::Semaphore;
use tracing::{debug, warn};
use wal::marker::{self, BulkLoad as LoadEvent, Marker};

use crate::errors::java_exception;
use crate::foreign_files::{ForeignFile, FoundFile};
use crate::server::RegionServer;
use crate::write_pause::WritePause;

/// Number of calls that are applied at the same time
/// (`hbase.regionserver.replication.handler.count`).
const CONCURRENT_CALLS: usize = 3;
/// Maximum number of mutations of a batch (`hbase.rpc.rows.warning.threshold`).
const BATCH_MAX: usize = 5000;

/// Writes mutations of a table through a client of the cluster. The exception is that of the first
/// mutation that failed.
pub type ClusterWriter =
    Arc<dyn Fn(TableName, Vec<Mutation>) -> BoxFuture<'static, Answer<()>> + Send + Sync>;

base::instruments! {
    /// Edits that came by replication.
    pub struct SinkInstruments in "RegionServer,sub=Replication" {
        /// Entries of logs that were applied.
        applied_ops: Counter = "sink.appliedOps",
        /// Batches applied.
        applied_batches: Counter = "sink.appliedBatches",
        /// Store files applied.
        applied_files: Counter = "sink.appliedHFiles",
        /// Failed batches.
        failed_batches: Counter = "sink.failedBatches",
        /// Age of the last edit applied.
        age_of_last_op: Times = "Sink.ageOfLastAppliedOp",
    }
}

/// The receiving side of replication.
pub struct ReplicationSink {
    instruments: Arc<SinkInstruments>,
    calls: Semaphore,
    writer: Option<ClusterWriter>,
    begun_ms: u64,
    // The write time of the last entry, and the time at which it was applied, since the epoch.
    last_write_ms: AtomicU64,
    last_applied_ms: AtomicU64,
}

/// The ids of clusters, each a UUID with its most significant half first.
type ClusterIds = Arc<[(u64, u64)]>;

/// What a call has to apply.
#[derive(Default)]
struct Work {
    groups: Vec<Group>,
    // Positions of the groups.
    known_groups: HashMap<(TableName, ClusterIds), usize>,
    loads: Vec<(TableName, ClusterIds, LoadEvent, String)>,
    entries: u64,
    last_write_ms: u64,
}

/// Mutations of one table that the same clusters have.
struct Group {
    table: TableName,
    cluster_ids: ClusterIds,
    mutations: Vec<Mutation>,
}

impl Group {
    /// Adds a cell. It belongs to the last mutation if that has the same row and type, and is of
    /// the same entry.
    fn add(&mut self, row: Bytes, cell: KeyValue, continues_mutation: bool) {
        match self.mutations.last_mut() {
            Some(mutation) if continues_mutation => mutation.cells.push(cell),
            _ => {
                let is_put = cell.view(0).kind() == CellType::Put;
                let mutation =
                    if is_put { Mutation::put(row, vec![cell]) } else { Mutation::delete(row, vec![cell]) };
                let cluster_ids = Some(self.cluster_ids.clone());
                self.mutations.push(Mutation { cluster_ids, ..mutation });
            }
        }
    }
}

impl ReplicationSink {
    /// Nothing is applied yet. Without a `writer`, this server has all regions.
    pub fn new(env: &Env, writer: Option<ClusterWriter>) -> ReplicationSink {
        ReplicationSink {
            instruments: Arc::new(SinkInstruments::begin(env.clock.monotonic())),
            calls: Semaphore::new(CONCURRENT_CALLS),
            writer,
            begun_ms: env.clock.now_ms(),
            last_write_ms: AtomicU64::new(0),
            last_applied_ms: AtomicU64::new(0),
        }
    }

    /// The metrics.
    pub fn instruments(&self) -> &Arc<SinkInstruments> {
        &self.instruments
    }

    /// The state for the report to the master.
    pub(crate) fn load(&self, now_ms: u64) -> proto::ReplicationLoadSink {
        let (written, applied) = (self.last_write_ms.load(Relaxed), self.last_applied_ms.load(Relaxed));
        // As in HBase, the age grows only while something is applied.
        let age = if written == 0 { 0 } else { applied.saturating_sub(written) };
        proto::ReplicationLoadSink {
            age_of_last_applied_op: age,
            time_stamps_of_last_applied_op: if applied == 0 { now_ms } else { applied },
            timestamp_started: Some(self.begun_ms),
            total_ops_processed: Some(self.instruments.applied_ops.get()),
        }
    }
}

/// Reads the entries of a `ReplicateWALEntry` without applying them.
#[cfg(fuzzing)]
pub fn read_entries(request: &proto::ReplicateWalEntryRequest, cells: Bytes, codec: Codec) {
    _ = Work::read(request, codec.read(cells), (1, 2));
}

/// Serves a `ReplicateWALEntry`: applies all entries. `cells` are those of all entries, in order.
///
/// # Errors
/// The exception of a mutation that failed. Some of the others are applied then.
pub async fn replicate(
    server: &Arc<RegionServer>,
    request: &proto::ReplicateWalEntryRequest,
    cells: Bytes,
    codec: Codec,
) -> Answer<proto::ReplicateWalEntryResponse> {
    let sink = server.replication_sink();
    let _permit = sink.calls.acquire().await.expect("the semaphore is never closed");
    let applied = async {
        let work = Work::read(request, codec.read(cells), own_id(server))?;
        let counts = (work.entries, work.last_write_ms);
        for group in work.groups {
            apply(server, group).await?;
        }
        for load in &work.loads {
            load_files(server, request, load).await?;
        }
        Ok(counts)
    };
    let (entries, last_write_ms) = applied.await.inspect_err(|error: &JavaException| {
        sink.instruments.failed_batches.increment();
        warn!(%error, entries = request.entry.len(), "cannot apply replicated entries; the source will repeat them");
    })?;
    server.lease().check()?;
    let now_ms = server.env().clock.now_ms();
    sink.instruments.applied_batches.increment();
    sink.instruments.applied_ops.add(entries);
    if last_write_ms > 0 {
        let age_ms = now_ms.saturating_sub(last_write_ms);
        sink.instruments.age_of_last_op.record(std::time::Duration::from_millis(age_ms));
        sink.last_write_ms.store(last_write_ms, Relaxed);
        sink.last_applied_ms.store(now_ms, Relaxed);
    }
    Ok(proto::ReplicateWalEntryResponse {})
}

impl Work {
    /// Sorts the cells of all entries. Skips entries that this cluster, `own_id`, has already.
    fn read(
        request: &proto::ReplicateWalEntryRequest,
        mut block: CellBlockReader,
        own_id: (u64, u64),
    ) -> Answer<Work> {
        let mut work = Work::default();
        for entry in &request.entry {
            let key = &entry.key;
            let table =
                std::str::from_utf8(&key.table_name).ok().and_then(|text| TableName::parse(text).ok());
            let table = table.ok_or_else(|| {
                JavaException::do_not_retry(format!("invalid table name {}", key.table_name.escape_ascii()))
            })?;
            let ids = key.cluster_ids.iter().chain(&key.cluster_id);
            let cluster_ids: ClusterIds = ids.map(|id| (id.most_sig_bits, id.least_sig_bits)).collect();
            let is_known = cluster_ids.contains(&own_id);
            let mut group = None;
            let mut last: Option<(Bytes, CellType)> = None;
            for _ in 0..entry.associated_cell_count() {
                let cell =
                    block.next().ok_or_else(|| JavaException::io("fewer cells than the entries state"))?;
                let cell = cell.map_err(|error| JavaException::io(error.to_string()))?;
                if is_known {
                    continue;
                }
                let view = cell.view(0);
                if view.family() == marker::FAMILY {
                    work.add_marker(&table, &cluster_ids, key, &cell)?;
                    continue;
                }
                let row = cell.bytes().slice_ref(view.row());
                let kind = view.kind();
                let continues = last.as_ref().is_some_and(|(of, like)| *of == row && *like == kind);
                let group = *group.get_or_insert_with(|| work.group_of(&table, &cluster_ids));
                work.groups[group].add(row.clone(), cell, continues);
                last = Some((row, kind));
            }
            if is_known {
                debug!(%table, "skipped an entry that has been in this cluster");
            }
            work.entries += 1;
            work.last_write_ms = key.write_time;
        }
        Ok(work)
    }

    /// The position of the group of the entry's mutations.
    fn group_of(&mut self, table: &TableName, cluster_ids: &ClusterIds) -> usize {
        *self.known_groups.entry((table.clone(), cluster_ids.clone())).or_insert_with_key(|key| {
            let (table, cluster_ids) = key.clone();
            self.groups.push(Group { table, cluster_ids, mutations: Vec::new() });
            self.groups.len() - 1
        })
    }

    /// Bulk loads are applied, if they are to be replicated. All other markers concern only the
    /// source.
    fn add_marker(
        &mut self,
        table: &TableName,
        cluster_ids: &ClusterIds,
        key: &proto::WalKey,
        cell: &KeyValue,
    ) -> Answer<()> {
        let parsed = marker::parse(&cell.view(0)).map_err(|error| JavaException::io(error.to_string()))?;
        if let Marker::BulkLoad(load) = parsed
            && load.replicate
        {
            let region = String::from_utf8_lossy(&key.encoded_region_name).into_owned();
            self.loads.push((table.clone(), cluster_ids.clone(), load, region));
        }
        Ok(())
    }
}

/// The cluster's id as a number; zeros if it is not a UUID, which no entry has.
fn own_id(server: &RegionServer) -> (u64, u64) {
    let digits: String = server.cluster_id().chars().filter(|c| *c != '-').collect();
    let halves = (digits.len() == 32 && digits.is_ascii()).then(|| digits.split_at(16));
    let number = |text| u64::from_str_radix(text, 16).unwrap_or(0);
    halves.map_or((0, 0), |(most, least)| (number(most), number(least)))
}

/// Applies the mutations of a group in order.
async fn apply(server: &Arc<RegionServer>, group: Group) -> Answer<()> {
    let online: Vec<Arc<Region>> =
        server.regions().all().into_iter().filter(|region| region.info().table == group.table).collect();
    let (mut pending, mut pause) = (Vec::new(), WritePause::within(None));
    let mut rest = Vec::new();
    // Regions with a failed mutation. Their later mutations must not overtake it.
    let mut failed: HashSet<std::num::NonZeroU64> = HashSet::new();
    for batch in batches(group.mutations) {
        for (region, mutations) in by_region(&online, batch) {
            match region.filter(|region| !failed.contains(&region.number())) {
                None => rest.extend(mutations),
                Some(region) => {
                    let bytes = mutations.iter().map(Mutation::cells_len).sum();
                    pause.before(server, &region, bytes).await;
                    let begun = region.begin_batch(mutations.clone()).await;
                    if begun.refusal().is_some() {
                        failed.insert(region.number());
                        rest.extend(mutations);
                    } else {
                        pending.push((region, mutations, begun));
                    }
                }
            }
        }
    }
    let mut retried = Vec::new();
    for (region, mutations, begun) in pending {
        let results = region.end_batch(begun).await;
        for (mutation, result) in mutations.into_iter().zip(results) {
            match result {
                Ok(()) => {}
                // The table lacks the family: a client would get the same error after retries.
                Err(error @ engine::Error::NoSuchFamily { .. }) => return Err(java_exception(&error)),
                Err(error) => {
                    debug!(region = %region.name(), %error, "retrying a replicated mutation");
                    retried.push(mutation);
                }
            }
        }
    }
    retried.extend(rest);
    if retried.is_empty() {
        return Ok(());
    }
    match &server.replication_sink().writer {
        Some(writer) => {
            for batch in batches(retried) {
                writer(group.table.clone(), batch).await?;
            }
            Ok(())
        }
        None => Err(table_not_found(&group.table)),
    }
}

/// HBase's exception, whose text sources look for.
pub fn table_not_found(table: &TableName) -> JavaException {
    JavaException::new(class::TABLE_NOT_FOUND, format!("'{table}'"))
}

/// Divides mutations, in order, into batches without two mutations of the same kind and row.
fn batches(mutations: Vec<Mutation>) -> Vec<Vec<Mutation>> {
    let mut batches: Vec<Vec<Mutation>> = Vec::new();
    let mut seen = HashSet::new();
    for mutation in mutations {
        let is_new = seen.insert((mutation.row.clone(), mutation.kind as u8));
        match batches.last_mut().filter(|batch| is_new && batch.len() < BATCH_MAX) {
            Some(batch) => batch.push(mutation),
            None => {
                seen.clear();
                seen.insert((mutation.row.clone(), mutation.kind as u8));
                batches.push(vec![mutation]);
            }
        }
    }
    batches
}

/// The mutations of each region, in order; `None` for rows of which no region is here.
fn by_region(online: &[Arc<Region>], mutations: Vec<Mutation>) -> Vec<(Option<Arc<Region>>, Vec<Mutation>)> {
    let mut found: Vec<(Option<Arc<Region>>, Vec<Mutation>)> = Vec::new();
    for mutation in mutations {
        let region = online.iter().find(|region| region.info().contains(&mutation.row)).cloned();
        let number = region.as_ref().map(|region| region.number());
        match found.iter_mut().find(|(of, _)| of.as_ref().map(|of| of.number()) == number) {
            Some((_, mutations)) => mutations.push(mutation),
            None => found.push((region, vec![mutation])),
        }
    }
    found
}

/// Loads the files of a bulk load that the source replicates. They must be readable here, and must
/// fit into regions of this server.
async fn load_files(
    server: &Arc<RegionServer>,
    request: &proto::ReplicateWalEntryRequest,
    (table, _, load, source_region): &(TableName, ClusterIds, LoadEvent, String),
) -> Answer<()> {
    let own = server.cluster_id();
    if load.cluster_ids.iter().any(|id| id == own) {
        return Ok(());
    }
    let mut loads: Vec<(Arc<Region>, Vec<BulkFile>)> = Vec::new();
    for store in &load.stores {
        for name in &store.files {
            let family = String::from_utf8_lossy(&store.family);
            let below =
                format!("{}/{}/{source_region}/{family}/{name}", table.namespace(), table.qualifier());
            let source = find_source(server, request, &below).await?;
            let region = region_of(server, table, &source).await?;
            let file = BulkFile { family: store.family.clone(), source };
            match loads.iter_mut().find(|(of, _)| of.number() == region.number()) {
                Some((_, files)) => files.push(file),
                None => loads.push((region, vec![file])),
            }
        }
    }
    for (region, files) in loads {
        let count = files.len() as u64;
        let mut cluster_ids = load.cluster_ids.clone();
        cluster_ids.push(own.to_owned());
        let load = BulkLoad { files, assigns_seq_id: true, copies: true, cluster_ids, replicate: true };
        match region.bulk_load(load).await.map_err(|error| java_exception(&error))? {
            true => server.replication_sink().instruments.applied_files.add(count),
            false => {
                return Err(JavaException::io(format!("files do not fit into region {}", region.name())));
            }
        }
    }
    Ok(())
}

/// The file in the source's data directory or archive. HBase skips a file that is in neither.
async fn find_source(
    server: &RegionServer,
    request: &proto::ReplicateWalEntryRequest,
    below: &str,
) -> Answer<BulkSource> {
    for base in [&request.source_base_namespace_dir_path, &request.source_h_file_archive_dir_path] {
        let Some(base) = base else { continue };
        let found =
            server.foreign_files().find(&format!("{base}/{below}")).await.map_err(JavaException::io)?;
        let (fs, path): (_, FilePath) = match found {
            FoundFile::Own(path) => (server.services().fs.clone(), path),
            FoundFile::Foreign(ForeignFile { fs, path, .. }) => (fs, path),
        };
        if fs.stat(&path).await.map_err(|error| JavaException::io(error.to_string()))?.is_some() {
            return Ok(BulkSource::Other(fs, path));
        }
    }
    Err(JavaException::io(format!(
        "the replicated file {below} cannot be read from the source's file system"
    )))
}

/// The region of this server that has all rows of a file.
async fn region_of(server: &RegionServer, table: &TableName, source: &BulkSource) -> Answer<Arc<Region>> {
    let mut of_table = server.regions().all();
    of_table.retain(|region| region.info().table == *table);
    for region in &of_table {
        if region.fits(source).await.map_err(|error| java_exception(&error))? {
            return Ok(region.clone());
        }
    }
    match server.root().read_table_descriptor(&*server.services().fs, table).await {
        Err(_) => Err(table_not_found(table)),
        Ok(_) => Err(JavaException::io(format!(
            "no region of {table} on this server has all rows of a replicated file; split the regions as in the source"
        ))),
    }
}
