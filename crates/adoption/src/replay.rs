//! Puts edits that are only in logs into store files, while no server uses the directory.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::env::Env;
use cell::KeyValue;
use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use engine::Region;
use engine::recovery::OnDamage;
use fs::FileSystem;
use layout::RootDir;

use crate::catalog::{self, Catalog, log_dirs};
use crate::offline::{self, OfflineLog, OfflineServer};
use crate::{Error, NoProgress, Progress, Result, recovered, refused};

/// Why nothing is replayed without `hbase:meta`. The master reports the same when it opens it.
const LOST_META: &str = "hbase:meta has no directory, but tables have theirs; restore the directory of hbase:meta, or \
    rebuild it with `grampus repair meta`";

/// What a replay did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// The number of regions with edits that were only in logs.
    pub regions: u64,
    /// What an operator should know about damaged, shortened, and missing logs.
    pub warnings: Vec<String>,
}

/// Puts the edits in the logs of all servers into store files. The logs can be of several runs.
/// Another call completes one that did not end. `master_store` is the region of the calling master,
/// which shows whether another master has taken over.
///
/// # Errors
/// Errors of the file system, and regions that may have lost edits in a damaged log, unless
/// `on_damage` accepts the loss. [`Error::Refused`] if `hbase:meta` is missing. That another master
/// has taken over.
pub async fn replay_logs(
    env: &Env,
    fs: &Arc<dyn FileSystem>,
    root: &RootDir,
    on_damage: OnDamage,
    master_store: &Region,
) -> Result<Replayed> {
    if fs.stat(&root.region_dir(&RegionInfo::meta())).await?.is_none() {
        // Either no server has served yet, or `hbase:meta` was lost. Then a replay of no region
        // would count as done, and not be repeated when `hbase:meta` is back.
        let has_user_tables = root.list_tables(&**fs).await?.iter().any(|table| !table.is_system());
        return match has_user_tables {
            true => refused(LOST_META),
            false => Ok(Replayed::default()),
        };
    }
    let stored = root.find_table_descriptor(&**fs, &TableName::meta()).await?;
    let replay = Replay::begin(env, fs, root, on_damage, Some(master_store)).await?;
    let meta = replay.server.open(stored.unwrap_or_else(wire::meta::descriptor), RegionInfo::meta()).await?;
    let regions = match catalog::read(&meta).await {
        Ok(catalog) => replay.flush_regions(&catalog, None, &NoProgress).await,
        Err(error) => Err(error),
    };
    meta.close_once().await?;
    let replayed = Replayed { regions: regions?.flushed, warnings: replay.server.warnings().to_vec() };
    replay.end().await?;
    // They name the logs of the last standalone server, which the cluster will remove from the
    // archive. The next standalone server would report these logs as missing.
    for record in root.log_records() {
        fs.delete(&record).await?;
    }
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
}

impl<'a> Replay<'a> {
    /// Fences and scans the logs. Earlier servers, and an earlier replay that did not end, can
    /// acknowledge and change nothing any more. `master_store`: see [`replay_logs`].
    ///
    /// # Errors
    /// Errors of the file system, and logs of an unsupported format. That another master has taken
    /// over.
    pub(crate) async fn begin(
        env: &Env,
        fs: &'a Arc<dyn FileSystem>,
        root: &'a RootDir,
        on_damage: OnDamage,
        master_store: Option<&Region>,
    ) -> Result<Replay<'a>> {
        let dirs = log_dirs(&**fs, root).await?;
        // If another master takes over after this check, its region servers are not in the list.
        check_owned(master_store).await?;
        let taken = offline::take_logs(env, &**fs, root, dirs).await?;
        let log = OfflineLog::create(env, fs, root).await?;
        // If another master takes over after this check, its replay takes the directory of the log.
        if let Err(error) = check_owned(master_store).await {
            // If the removal fails, a later replay takes the directory.
            let _ = log.remove().await;
            return Err(error);
        }
        let server = log.recover((&taken, &root.log_records()), on_damage).await?;
        Ok(Replay { fs, root, server })
    }

    /// Whether a region must be opened: it may have edits in logs, or an interrupted bulk load,
    /// which is completed or rolled back when it opens.
    async fn is_needed_by(&self, region: &RegionInfo) -> Result<bool> {
        Ok(self.server.may_have_edits_of(region)
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

/// Checks that no other master has taken over, if the caller is a master. A master that was frozen
/// together with its clocks does not know that.
async fn check_owned(master_store: Option<&Region>) -> Result<()> {
    match master_store {
        Some(region) => Ok(region.check_owned().await?),
        None => Ok(()),
    }
}

/// Names the region in an error.
fn at_region(region: &RegionInfo, error: Error) -> Error {
    Error::Refused(format!("region {} of table {}: {error}", region.encoded_name(), region.table))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use base::env::Random;
    use base::testing::SeededRandom;
    use cell::mutation::Mutation;
    use cell::query::{CellSelection, Scan};
    use cell::region::ServerName;
    use cell::schema::FamilyDescriptor;
    use cell::{CellType, LATEST_TIMESTAMP};
    use fs::FilePath;
    use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
    use fs::memory::MemoryFs;
    use master::store::{LoneRegion, fence_earlier_masters};
    use wire::meta::row::put_open;

    use super::*;
    use crate::master_data;
    use crate::scratch::{list, walk};

    /// The rows after two runs.
    const ROWS: [&str; 4] = ["row-1", "row-2", "z-row-1", "z-row-2"];
    /// How long a replay on a failed disk is observed, on the test's clock.
    const OBSERVED_FOR: Duration = Duration::from_secs(2);
    /// How long a master is frozen: until another one has replayed the logs.
    const FROZEN_FOR: Duration = Duration::from_secs(3600);

    fn root() -> RootDir {
        RootDir::new(FilePath::root())
    }

    fn shared(fs: &MemoryFs) -> Arc<dyn FileSystem> {
        Arc::new(fs.clone())
    }

    fn table() -> TableDescriptor {
        TableDescriptor::new(TableName::parse("t").unwrap()).with_family(FamilyDescriptor::new("f"))
    }

    fn regions() -> [RegionInfo; 2] {
        [("", "s"), ("s", "")].map(|(start, end)| RegionInfo::new(table().name, start.into(), end.into(), 1))
    }

    /// The environment of a run, whose clock is ahead of those of earlier runs.
    async fn env_of(run: u64) -> Env {
        let env = base::testing::env(run);
        env.clock.sleep(Duration::from_secs(60 * run)).await;
        env
    }

    /// Starts a server that replays the logs of all earlier runs, writes the rows of regions to
    /// `hbase:meta` and a row to each region, and loses power.
    async fn run_and_crash(memory: MemoryFs, run: u64) -> MemoryFs {
        let (env, root, fs) = (env_of(run).await, root(), shared(&memory));
        let dirs = log_dirs(&*fs, &root).await.unwrap();
        let server = OfflineServer::start(&env, &fs, &root, (&dirs, &[]), OnDamage::Refuse).await.unwrap();
        let meta = server.open(wire::meta::descriptor(), RegionInfo::meta()).await.unwrap();
        let name = ServerName { host: "h".into(), port: 1, start_code: run };
        let mut open = Vec::new();
        for (region, row) in regions().into_iter().zip([format!("row-{run}"), format!("z-row-{run}")]) {
            meta.batch_atomic(vec![put_open(&region, &name, 1)]).await.unwrap();
            let opened = server.open(table(), region).await.unwrap();
            let cell = KeyValue::new(row.as_bytes(), b"f", b"q", LATEST_TIMESTAMP, CellType::Put, b"v");
            opened.batch_atomic(vec![Mutation::put(row.into_bytes(), vec![cell])]).await.unwrap();
            open.push(opened);
        }
        memory.crash(&mut || 0)
    }

    /// A directory after two runs, each of which ended with a power loss.
    async fn two_runs() -> MemoryFs {
        let fs = MemoryFs::new();
        root().create_table(&fs, &wire::meta::descriptor(), &[RegionInfo::meta()]).await.unwrap();
        root().create_table(&fs, &table(), &regions()).await.unwrap();
        let fs = run_and_crash(fs, 1).await;
        run_and_crash(fs, 2).await
    }

    /// The rows of the regions in `hbase:meta`, read without the logs.
    async fn rows_in_files(fs: &MemoryFs) -> Vec<String> {
        let (env, root, fs) = (env_of(9).await, root(), shared(fs));
        let server = OfflineServer::start(&env, &fs, &root, (&[], &[]), OnDamage::Refuse).await.unwrap();
        let meta = server.open(wire::meta::descriptor(), RegionInfo::meta()).await.unwrap();
        let selection = CellSelection { max_versions: u32::MAX, ..CellSelection::default() };
        let scan = Scan { selection, ..Scan::default() };
        let mut rows = Vec::new();
        for row in catalog::read(&meta).await.unwrap().regions {
            let opened = server.open(table(), row.region).await.unwrap();
            let cells = opened.scan_all(&scan).await.unwrap().cells;
            rows.extend(cells.iter().map(|(cell, _)| cell.view(0).row().escape_ascii().to_string()));
        }
        rows
    }

    /// The names of all logs, in place and archived.
    async fn logs(fs: &MemoryFs) -> BTreeSet<String> {
        let dirs = log_dirs(fs, &root()).await.unwrap();
        let mut names = BTreeSet::new();
        for dir in dirs.into_iter().chain([root().old_wals_dir()]) {
            names.extend(list(fs, &dir).await.unwrap().into_iter().map(|log| log.name));
        }
        names
    }

    /// Replays the logs for a master that no other one replaces.
    async fn replay(env: &Env, fs: &Arc<dyn FileSystem>, on_damage: OnDamage) -> Result<Replayed> {
        let store = master_data::open(env, &shared(&MemoryFs::new()), &root(), &[]).await.unwrap();
        replay_logs(env, fs, &root(), on_damage, store.region()).await
    }

    #[tokio::test(start_paused = true)]
    async fn edits_of_several_runs_are_in_files_after_a_replay() {
        let fs = two_runs().await;
        let replayed = replay(&env_of(3).await, &shared(&fs), OnDamage::Refuse).await.unwrap();
        assert_eq!(replayed, Replayed { regions: 2, warnings: Vec::new() });
        assert_eq!(rows_in_files(&fs).await, ROWS);
    }

    /// Replays on a disk on which all calls fail after the first `calls`. Returns whether none
    /// failed.
    async fn replay_until_failure(disk: &MemoryFs, calls: u64) -> bool {
        let env = env_of(3).await;
        let plan = Plan::new(env.clock.clone()).rule(Rule::new(Fault::Fail).after(calls));
        let faulty = Faulty::new(shared(disk), plan);
        let fs: Arc<dyn FileSystem> = Arc::new(faulty.clone());
        let replayed = env.timeout(OBSERVED_FOR, replay(&env, &fs, OnDamage::Refuse)).await;
        matches!(replayed, Some(Ok(_))) && faulty.faults() == 0
    }

    #[tokio::test(start_paused = true)]
    async fn a_replay_may_lose_power_at_every_call_and_is_completed_by_the_next() {
        let prepared = two_runs().await;
        let logs_before = logs(&prepared).await;
        assert_eq!(logs_before.len(), 2);
        for calls in 0.. {
            let random = SeededRandom::new(calls);
            let disk = prepared.crash(&mut || random.next_u64());
            let is_complete = replay_until_failure(&disk, calls).await;
            let image = disk.crash(&mut || random.next_u64());
            let replayed = replay(&env_of(4).await, &shared(&image), OnDamage::Refuse).await;
            assert!(replayed.is_ok(), "power loss after {calls} calls: {replayed:?}");
            assert_eq!(rows_in_files(&image).await, ROWS, "power loss after {calls} calls");
            let logs_after = logs(&image).await;
            assert!(logs_after.is_superset(&logs_before), "power loss after {calls} calls: {logs_after:?}");
            if is_complete {
                assert!(calls > 50, "a replay makes many calls");
                break;
            }
        }
    }

    /// As by a master that was frozen together with its clocks, and continues when another master
    /// has completed the replay.
    #[tokio::test(start_paused = true)]
    async fn an_earlier_replay_changes_no_region_any_more() {
        let disk = two_runs().await;
        let (env, root, fs) = (env_of(3).await, root(), shared(&disk));
        let earlier = Replay::begin(&env, &fs, &root, OnDamage::Refuse, None).await.unwrap();
        let [open, closed] = regions();
        let opened = earlier.server.open(table(), open.clone()).await.unwrap();
        replay(&env_of(4).await, &fs, OnDamage::Refuse).await.unwrap();
        let files = async |region: &RegionInfo| list(&*fs, &root.family_dir(region, b"f")).await.unwrap();
        let before = [files(&open).await, files(&closed).await];
        assert!(opened.close_once().await.is_err());
        assert!(earlier.server.open(table(), closed.clone()).await.is_err());
        assert_eq!([files(&open).await, files(&closed).await], before);
        assert_eq!(rows_in_files(&disk).await, ROWS);
    }

    /// A master is frozen at the first call that `operation` and `at` select. Another one takes
    /// over and replays the logs, and a region server begins a log. Then the first one continues.
    async fn assert_changes_nothing_when_frozen_at(operation: Operation, at: &str) {
        let disk = two_runs().await;
        let (env, root, fs) = (env_of(3).await, root(), shared(&disk));
        let rule = Rule::new(Fault::Delay(FROZEN_FOR)).on(operation).at(at).times(1);
        let faulty = Faulty::new(fs.clone(), Plan::new(env.clock.clone()).rule(rule));
        let frozen: Arc<dyn FileSystem> = Arc::new(faulty.clone());
        let store = master_data::open(&env, &fs, &root, &[]).await.unwrap();
        let first = replay_logs(&env, &frozen, &root, OnDamage::Refuse, store.region());
        let log = root.wals_dir().join("h,1,9/log");
        let second = async {
            let env = env_of(4).await;
            let own = ServerName { host: "second".into(), port: 1, start_code: 1 };
            fence_earlier_masters(&*fs, &*env.random, &root, &own).await.unwrap();
            replay(&env, &fs, OnDamage::Refuse).await.unwrap();
            disk.put(&log, "edits");
            walk(&*fs, &root.data_dir()).await.unwrap()
        };
        let (first, before) = tokio::join!(first, second);
        assert_eq!(faulty.faults(), 1);
        let shown = first.unwrap_err().to_string();
        assert!(shown.contains("another process has taken over"), "{shown}");
        assert_eq!(walk(&*fs, &root.data_dir()).await.unwrap(), before);
        assert!(fs.stat(&log).await.unwrap().is_some(), "the log of a live region server");
    }

    #[tokio::test(start_paused = true)]
    async fn a_replaced_master_takes_no_logs_of_live_region_servers() {
        assert_changes_nothing_when_frozen_at(Operation::List, "WALs").await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_replaced_master_whose_log_no_other_one_has_taken_opens_no_region() {
        assert_changes_nothing_when_frozen_at(Operation::MakeDirs, "WALs/grampus-offline").await;
    }

    /// As by a region server that was paused, and whose session has expired.
    #[tokio::test(start_paused = true)]
    async fn an_earlier_region_server_acknowledges_no_edit_after_the_scan() {
        let disk = MemoryFs::new();
        root().create_table(&disk, &table(), &regions()).await.unwrap();
        let (env, root, fs) = (env_of(3).await, root(), shared(&disk));
        let fs: Arc<dyn FileSystem> = Arc::new(fs::shared::Shared::new(fs));
        let name = ServerName { host: "h".into(), port: 1, start_code: 3 };
        let [region, _] = regions();
        let paused = LoneRegion::open(&env, &fs, &root, &name, (table(), region.clone())).await.unwrap();
        let put = async |row: &'static str| {
            let cell = KeyValue::new(row.as_bytes(), b"f", b"q", LATEST_TIMESTAMP, CellType::Put, b"v");
            paused.region().batch_atomic(vec![Mutation::put(row.as_bytes().to_vec(), vec![cell])]).await
        };
        put("row-1").await.unwrap();
        let replay = Replay::begin(&env_of(4).await, &fs, &root, OnDamage::Refuse, None).await.unwrap();
        assert!(put("row-2").await.is_err());
        assert!(replay.server.may_have_edits_of(&region));
    }

    #[tokio::test(start_paused = true)]
    async fn a_replay_loses_edits_in_a_damaged_log_only_with_consent() {
        let fs = two_runs().await;
        let dir = &log_dirs(&fs, &root()).await.unwrap()[0];
        let name = list(&fs, dir).await.unwrap()[0].name.clone();
        let mut bytes = fs.contents(&dir.join(&name)).unwrap();
        let damaged = bytes.windows(5).position(|window| window == b"row-1").unwrap();
        bytes[damaged] ^= 1;
        fs.put(&dir.join(&name), bytes);
        let replayed = replay(&env_of(3).await, &shared(&fs), OnDamage::Refuse).await;
        let shown = replayed.unwrap_err().to_string();
        assert!(shown.contains("restart with hbase.hlog.split.skip.errors=true"), "{shown}");
        replay(&env_of(4).await, &shared(&fs), OnDamage::Skip).await.unwrap();
        assert_eq!(rows_in_files(&fs).await, ROWS[1..]);
        assert!(fs.stat(&root().corrupt_dir().join(&name)).await.unwrap().is_some(), "the log is kept");
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_log_of_the_standalone_server_is_reported_once() {
        let fs = two_runs().await;
        let record = "grampus logs 1\n500 WALs/h,1,1/h%2C1%2C1.1\n";
        let check = base::checksum::crc32c(record.as_bytes());
        fs.put(&root().log_record(), format!("{record}crc32c {check:08x}\n"));
        let replayed = replay(&env_of(3).await, &shared(&fs), OnDamage::Refuse).await.unwrap();
        assert!(matches!(&replayed.warnings[..], [lost] if lost.contains("is missing")), "{replayed:?}");
        // As when a standalone server uses the directory again.
        let replayed = replay(&env_of(4).await, &shared(&fs), OnDamage::Refuse).await.unwrap();
        assert_eq!(replayed, Replayed::default());
    }

    #[tokio::test(start_paused = true)]
    async fn a_directory_that_has_lost_its_catalog_is_refused() {
        let fs = two_runs().await;
        fs.delete(&root().table_dir(&TableName::meta())).await.unwrap();
        let replayed = replay(&env_of(3).await, &shared(&fs), OnDamage::Refuse).await;
        assert!(replayed.unwrap_err().to_string().contains("grampus repair meta"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_directory_without_a_catalog_has_nothing_to_replay() {
        let fs: Arc<dyn FileSystem> = Arc::new(MemoryFs::new());
        let replayed = replay(&base::testing::env(1), &fs, OnDamage::Refuse).await.unwrap();
        assert_eq!(replayed, Replayed::default());
    }
}
