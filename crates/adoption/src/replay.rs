//! Puts edits that are only in logs into store files, while no server uses the directory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::env::Env;
use cell::KeyValue;
use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use engine::Region;
use fs::FileSystem;
use layout::RootDir;

use crate::catalog::{self, Catalog, log_dirs};
use crate::offline::OfflineServer;
use crate::{Error, NoProgress, Progress, Result, recovered};

/// What a replay did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// The number of regions with edits that were only in logs.
    pub regions: u64,
    /// What an operator should know about damaged, shortened, and missing logs.
    pub warnings: Vec<String>,
}

/// Puts the edits in the logs of all servers into store files. The logs can be of several runs.
/// Another call completes one that did not end.
///
/// # Errors
/// Errors of the file system, and regions that may have lost edits in a damaged log.
pub async fn replay_logs(env: &Env, fs: &Arc<dyn FileSystem>, root: &RootDir) -> Result<Replayed> {
    if fs.stat(&root.region_dir(&RegionInfo::meta())).await?.is_none() {
        return Ok(Replayed::default()); // No server has served yet.
    }
    let stored = root.find_table_descriptor(&**fs, &TableName::meta()).await?;
    let replay = Replay::begin(env, fs, root).await?;
    let meta = replay.server.open(stored.unwrap_or_else(wire::meta::descriptor), RegionInfo::meta()).await?;
    let regions = match catalog::read(&meta).await {
        Ok(catalog) => replay.flush_regions(&catalog, None, &NoProgress).await,
        Err(error) => Err(error),
    };
    meta.close_once().await?;
    let replayed = Replayed { regions: regions?.flushed, warnings: replay.server.warnings().to_vec() };
    replay.end().await?;
    Ok(replayed)
}

/// The regions that a replay opened and closed.
#[derive(Default)]
pub(crate) struct FlushedRegions {
    /// Their number.
    pub(crate) flushed: u64,
    /// The rows of the table that was to be read.
    pub(crate) rows: Vec<Vec<KeyValue>>,
}

/// Descriptors that were read; `None` for a table that has none.
type Descriptors = BTreeMap<TableName, Option<TableDescriptor>>;

/// The logs of all servers, and a server that replays them.
pub(crate) struct Replay<'a> {
    fs: &'a Arc<dyn FileSystem>,
    root: &'a RootDir,
    /// Opens regions with their edits in the logs.
    pub(crate) server: OfflineServer,
    // Encoded names of the regions that have edits in logs.
    logged: BTreeSet<String>,
    is_damaged: bool,
}

impl<'a> Replay<'a> {
    /// Scans the logs.
    ///
    /// # Errors
    /// Errors of the file system, and logs of an unsupported format.
    pub(crate) async fn begin(
        env: &Env,
        fs: &'a Arc<dyn FileSystem>,
        root: &'a RootDir,
    ) -> Result<Replay<'a>> {
        let dirs = log_dirs(&**fs, root).await?;
        let mut paths = Vec::new();
        for dir in &dirs {
            paths.extend(wal::recovery::logs_in(&**fs, dir).await?);
        }
        let index = wal::recovery::scan_past_damage(&**fs, &paths).await?;
        let logged = index.regions().map(|(encoded, _)| encoded.to_string()).collect();
        let is_damaged = !index.damaged_parts().is_empty();
        let server = OfflineServer::start(env, fs, root, (&dirs, &[])).await?;
        Ok(Replay { fs, root, server, logged, is_damaged })
    }

    /// Whether a region must be opened: it may have edits in logs, or an interrupted bulk load,
    /// which is completed or rolled back when it opens.
    async fn is_needed_by(&self, region: &RegionInfo) -> Result<bool> {
        Ok(self.is_damaged
            || self.logged.contains(&region.encoded_name())
            || recovered::count_edits(&**self.fs, self.root, region).await? > 0
            || self.root.has_bulk_load(&**self.fs, region).await?)
    }

    /// Opens the regions that need it, and closes them, which flushes. Reads all rows of the table
    /// `read`.
    ///
    /// # Errors
    /// Errors of the file system and of the regions.
    pub(crate) async fn flush_regions(
        &self,
        catalog: &Catalog,
        read: Option<&TableName>,
        progress: &dyn Progress,
    ) -> Result<FlushedRegions> {
        progress.begin("flush regions", catalog.regions.len() as u64);
        let (mut done, mut descriptors) = (FlushedRegions::default(), Descriptors::new());
        for region in catalog.regions.iter().map(|row| &row.region) {
            let is_read = read == Some(&region.table);
            if (is_read || self.is_needed_by(region).await?)
                && let Some(opened) = self.open(region, &mut descriptors).await?
            {
                if is_read {
                    done.rows.extend(catalog::rows(&opened).await?);
                }
                opened.close_once().await?;
                done.flushed += 1;
            }
            progress.advance(1);
        }
        Ok(done)
    }

    /// Opens a region; `None` if it has no directory, or its table no descriptor.
    async fn open(&self, region: &RegionInfo, descriptors: &mut Descriptors) -> Result<Option<Arc<Region>>> {
        if self.fs.stat(&self.root.region_dir(region)).await?.is_none() {
            return Ok(None);
        }
        if !descriptors.contains_key(&region.table) {
            let found = self.root.find_table_descriptor(&**self.fs, &region.table).await?;
            descriptors.insert(region.table.clone(), found);
        }
        let Some(table) = descriptors.get(&region.table).cloned().flatten() else { return Ok(None) };
        let opened = self.server.open(table, region.clone()).await;
        opened.map(Some).map_err(|error| at_region(region, error))
    }

    /// Ends after all regions were closed.
    ///
    /// # Errors
    /// File system errors.
    pub(crate) async fn end(self) -> Result<()> {
        self.server.stop().await
    }
}

/// Names the region in an error.
fn at_region(region: &RegionInfo, error: Error) -> Error {
    Error::Refused(format!("region {} of table {}: {error}", region.encoded_name(), region.table))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use cell::mutation::Mutation;
    use cell::query::Scan;
    use cell::region::ServerName;
    use cell::schema::FamilyDescriptor;
    use cell::{CellType, LATEST_TIMESTAMP};
    use fs::FilePath;
    use fs::memory::MemoryFs;
    use wire::meta::row::put_open;

    use super::*;

    fn root() -> RootDir {
        RootDir::new(FilePath::root())
    }

    fn table() -> TableDescriptor {
        TableDescriptor::new(TableName::parse("t").unwrap()).with_family(FamilyDescriptor::new("f"))
    }

    fn region() -> RegionInfo {
        RegionInfo::new(table().name, "".into(), "".into(), 1)
    }

    /// Starts a server that replays the logs of all earlier runs, writes a row to `hbase:meta` and
    /// one to the table, and loses power.
    async fn run_and_crash(fs: MemoryFs, seed: u64, row: &str) -> MemoryFs {
        let (env, root, memory) = (base::testing::env(seed), root(), fs.clone());
        let fs: Arc<dyn FileSystem> = Arc::new(fs);
        let dirs = log_dirs(&*fs, &root).await.unwrap();
        let server = OfflineServer::start(&env, &fs, &root, (&dirs, &[])).await.unwrap();
        let meta = server.open(wire::meta::descriptor(), RegionInfo::meta()).await.unwrap();
        let name = ServerName { host: "h".into(), port: 1, start_code: seed };
        meta.batch_atomic(vec![put_open(&region(), &name, 1)]).await.unwrap();
        let opened = server.open(table(), region()).await.unwrap();
        let cell = KeyValue::new(row.as_bytes(), b"f", b"q", LATEST_TIMESTAMP, CellType::Put, b"v");
        opened.batch_atomic(vec![Mutation::put(row.as_bytes().to_vec(), vec![cell])]).await.unwrap();
        memory.crash(&mut || 0)
    }

    #[tokio::test(start_paused = true)]
    async fn edits_of_several_runs_are_in_files_after_a_replay() {
        let fs = MemoryFs::new();
        root().create_table(&fs, &wire::meta::descriptor(), &[RegionInfo::meta()]).await.unwrap();
        root().create_table(&fs, &table(), &[region()]).await.unwrap();
        let fs = run_and_crash(fs, 1, "a").await;
        let fs = run_and_crash(fs, 2, "b").await;
        let (env, root) = (base::testing::env(3), root());
        let fs: Arc<dyn FileSystem> = Arc::new(fs);
        let replayed = replay_logs(&env, &fs, &root).await.unwrap();
        assert_eq!(replayed, Replayed { regions: 1, warnings: Vec::new() });
        // Without the logs.
        let server = OfflineServer::start(&env, &fs, &root, (&[], &[])).await.unwrap();
        let opened = server.open(table(), region()).await.unwrap();
        let rows = opened.scan_all(&Scan::default()).await.unwrap().cells;
        let rows: Vec<&[u8]> = rows.iter().map(|(cell, _)| cell.view(0).row()).collect();
        assert_eq!(rows, [b"a", b"b"]);
        let meta = server.open(wire::meta::descriptor(), RegionInfo::meta()).await.unwrap();
        assert!(catalog::read(&meta).await.unwrap().has(&region()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_directory_without_a_catalog_has_nothing_to_replay() {
        let fs: Arc<dyn FileSystem> = Arc::new(MemoryFs::new());
        let replayed = replay_logs(&base::testing::env(1), &fs, &root()).await.unwrap();
        assert_eq!(replayed, Replayed::default());
    }
}
