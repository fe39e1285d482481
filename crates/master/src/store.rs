//! `master:store`: the master's own region, with its own log, below `MasterData`.
//!
//! It is opened before `hbase:meta`, because changes of `hbase:meta` are journaled in it.

use std::sync::Arc;

use base::env::{Env, Random};
use bytes::Bytes;
use cell::mutation::Mutation;
use cell::query::{CellSelection, Get};
use cell::region::{RegionInfo, ServerName};
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use engine::Region;
use engine::budget::MemstoreBudget;
use engine::chores::Chores;
use engine::instruments::Instruments;
use engine::recovery::{OnDamage, RecoveredLogs, other_servers_log_dirs};
use engine::region::{Opening, RegionOptions, RegionServices};
use engine::replay::{Entries, NoEntries};
use engine::scanner::BlockLoader;
use fs::{FilePath, FileSystem};
use layout::RootDir;

use crate::procedure::fence_dir;

/// The family of procedures.
pub const PROCEDURES: &[u8] = b"proc";
/// The family of region servers.
pub const SERVERS: &[u8] = b"rs";
/// The family of switches, which HBase has since 2.6.
pub const STATE: &[u8] = b"state";

/// The row with the time at which the last master became active, 8 bytes. HBase has no such row.
const ACTIVE_SINCE: &[u8] = b"grampus-active-since";

/// The row that states whether a cluster must replay all logs first, because a standalone server
/// used the directory last: one byte, 1 or 0. HBase has no such row.
const STANDALONE: &[u8] = b"grampus-standalone";

/// The shortest time in milliseconds between the recorded times of two masters. The numbers of a
/// master's orders start at its time, 1000 for each millisecond. So there is room for 60 million
/// orders of the previous master, also if its clock was ahead and its time has not come yet.
const ACTIVE_STEP_MS: u64 = 60_000;

/// Memstore size in bytes at which the region is flushed; procedures are small and short-lived.
const FLUSH_BYTES: u64 = 4 << 20;
/// Log size in bytes at which a new log is started.
const LOG_BYTES: u64 = 16 << 20;
/// Bytes of its block cache.
const CACHE_BYTES: u64 = 1 << 20;

/// The master's own region.
pub struct MasterStore(LoneRegion);

/// A region with a log of its own that is open without a region server.
pub struct LoneRegion {
    region: Arc<Region>,
    log: Arc<wal::Log>,
}

impl LoneRegion {
    /// Opens a region of a table whose directory exists. Does not read the logs of earlier runs.
    ///
    /// # Errors
    /// Why the region cannot be opened.
    pub async fn open(
        env: &Env,
        fs: &Arc<dyn FileSystem>,
        root: &RootDir,
        server: &ServerName,
        region: (TableDescriptor, RegionInfo),
    ) -> Result<LoneRegion, engine::Error> {
        // If the log fails, the caller's next write returns the error.
        LoneRegion::begin(env, fs, (root, server), region, Arc::new(|_: &wal::Error| ()), None).await
    }

    async fn begin(
        env: &Env,
        fs: &Arc<dyn FileSystem>,
        (root, server): (&RootDir, &ServerName),
        (table, info): (TableDescriptor, RegionInfo),
        on_fatal: Arc<dyn Fn(&wal::Error) + Send + Sync>,
        recovered: Option<RecoveredLogs>,
    ) -> Result<LoneRegion, engine::Error> {
        let options = wal::LogOptions {
            roll_bytes: LOG_BYTES,
            reserve_bytes: 0,
            record: recovered.is_some().then(|| root.log_record()),
            ..wal::LogOptions::new(root.wal_dir(server), &server.url_encoded(), root.old_wals_dir())
        };
        let log = wal::Log::start(env.clone(), fs.clone(), options, on_fatal).await?;
        let entries: Box<dyn Entries> = match &recovered {
            Some(recovered) => {
                log.adopt(recovered.old_logs());
                recovered.entries_of(fs.clone(), &info)
            }
            None => Box::new(NoEntries),
        };
        let services = RegionServices {
            env: env.clone(),
            fs: fs.clone(),
            root: root.clone(),
            tracker: Arc::new(layout::RenameTracker),
            log: log.clone(),
            loader: Arc::new(BlockLoader::new(CACHE_BYTES)),
            budget: Arc::new(MemstoreBudget::unlimited()),
            nonces: Arc::default(),
            maintenance: Arc::new(Chores::new(env.clone())),
            mob: Arc::default(),
            options: Arc::new(RegionOptions { flush_bytes: FLUSH_BYTES, ..RegionOptions::default() }),
            instruments: Arc::new(Instruments::begin(env.clock.monotonic())),
            server: Some(server.clone()),
        };
        let region = Region::open(services, Opening { info, table: Arc::new(table), entries }).await?;
        Ok(LoneRegion { region, log })
    }

    /// The open region.
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// Flushes and closes the region.
    ///
    /// # Errors
    /// The error of the flush. The log has the unflushed edits.
    pub async fn close(&self) -> Result<(), engine::Error> {
        let closed = self.region.close_once().await;
        if closed.is_err() {
            self.region.abandon();
        }
        self.log.close().await;
        closed
    }
}

impl MasterStore {
    /// Opens the region, after creating it if necessary, and replays the logs of earlier masters,
    /// which are in `dead_log_dirs`. `on_fatal` is called if its log fails.
    ///
    /// # Errors
    /// Why the region cannot be opened, for example if edits may be lost in a damaged log. The
    /// master cannot start then ([`cannot_open`]).
    pub async fn open(
        env: &Env,
        fs: &Arc<dyn FileSystem>,
        root: &RootDir,
        server: &ServerName,
        dead_log_dirs: &[FilePath],
        on_fatal: Arc<dyn Fn(&wal::Error) + Send + Sync>,
    ) -> Result<MasterStore, engine::Error> {
        let root = root.master_data();
        let (table, info) = (descriptor(), region_info());
        root.create_table(&**fs, &table, std::slice::from_ref(&info))
            .await
            .map_err(|error| engine::Error::bad_request(error.to_string()))?;
        let recovered = RecoveredLogs::scan(
            fs.clone(),
            &root,
            (dead_log_dirs, &root.log_records()),
            server.start_code,
            OnDamage::RefuseMasterStore,
        )
        .await?;
        let lone =
            LoneRegion::begin(env, fs, (&root, server), (table, info), on_fatal, Some(recovered)).await?;
        Ok(MasterStore(lone))
    }

    /// Records that a master becomes active. Returns the time in milliseconds since the Unix epoch:
    /// `now_ms`, or a minute after the time of the previous master if that is later. So the orders
    /// of a master have higher numbers than those of all earlier ones, whatever their clocks show.
    ///
    /// # Errors
    /// The region's error. The master must not become active then.
    pub async fn become_active(&self, now_ms: u64) -> Result<u64, engine::Error> {
        let last = self.value_of(ACTIVE_SINCE).await?.and_then(|value| value.as_slice().try_into().ok());
        let since_ms = now_ms.max(last.map_or(0, |last| u64::from_be_bytes(last) + ACTIVE_STEP_MS));
        let value = since_ms.to_be_bytes();
        // If the last master's clock was ahead, its cell would hide one with the current time.
        let timestamp = i64::try_from(since_ms).unwrap_or(i64::MAX);
        let cell = KeyValue::new(ACTIVE_SINCE, STATE, b"d", timestamp, CellType::Put, &value);
        self.region().batch_atomic(vec![Mutation::put(ACTIVE_SINCE, vec![cell])]).await?;
        Ok(since_ms)
    }

    /// Whether a cluster must replay all logs before it uses the directory
    /// ([`MasterStore::set_needs_replay`]). Also true if that is unknown, because no master of a
    /// cluster has become active since this region was created: the region may have replaced a
    /// damaged one. A replay that is not needed is harmless while no region server is live: it
    /// skips the edits that are in store files.
    ///
    /// # Errors
    /// The region's error.
    pub async fn needs_replay(&self) -> Result<bool, engine::Error> {
        match self.value_of(STANDALONE).await? {
            Some(value) => Ok(value == [1]),
            None => Ok(self.value_of(ACTIVE_SINCE).await?.is_none()),
        }
    }

    /// Records durably whether a cluster must replay all logs before it uses the directory. A
    /// standalone server sets this before it serves: any of its regions may then have edits in the
    /// logs of any run, and `hbase:meta` names only the last run.
    ///
    /// # Errors
    /// The region's error.
    pub async fn set_needs_replay(&self, needs_replay: bool) -> Result<(), engine::Error> {
        let value = [u8::from(needs_replay)];
        if self.value_of(STANDALONE).await?.is_some_and(|stored| stored == value) {
            return Ok(());
        }
        let cell = KeyValue::new(STANDALONE, STATE, b"d", LATEST_TIMESTAMP, CellType::Put, &value);
        self.region().batch_atomic(vec![Mutation::put(STANDALONE, vec![cell])]).await
    }

    /// The value of a row with one cell.
    async fn value_of(&self, row: &'static [u8]) -> Result<Option<Vec<u8>>, engine::Error> {
        let get = Get {
            row: Bytes::from_static(row),
            selection: CellSelection::default().into(),
            existence_only: false,
        };
        let list = self.region().get(&get).await?;
        Ok(list.cells.first().map(|(cell, _)| cell.view(0).value.to_vec()))
    }

    /// The open region.
    pub fn region(&self) -> &Arc<Region> {
        self.0.region()
    }

    /// Flushes and closes the region.
    ///
    /// # Errors
    /// The error of the flush. The log has the unflushed edits.
    pub async fn close(&self) -> Result<(), engine::Error> {
        self.0.close().await
    }
}

/// One line for the operator: why `master:store` cannot be opened, and the remedy. `remote_dirs`
/// are the URIs of the root directory and of the directory of logs if they are on HDFS, which
/// `grampus repair master` does not open.
pub fn cannot_open(error: &engine::Error, remote_dirs: &[String]) -> String {
    let remedy = match remote_dirs {
        [] => "replace it with an empty one: `grampus repair master`".to_string(),
        dirs => {
            let moves: Vec<String> = dirs.iter().map(|dir| set_aside_command(dir)).collect();
            format!("stop all processes and replace it with an empty one: `{}`", moves.join(" && "))
        }
    };
    format!("cannot open master:store: {error}; if its files are damaged, {remedy}")
}

/// The command that moves the files of `master:store` in a directory of HDFS aside.
fn set_aside_command(dir: &str) -> String {
    let dir = dir.trim_end_matches('/');
    format!(
        "hdfs dfs -mkdir -p {dir}/corrupt && hdfs dfs -mv {dir}/MasterData {dir}/corrupt/MasterData-$(date +%s)"
    )
}

/// Fences the logs of all earlier masters, and returns their directories: an earlier master that
/// still runs can write nothing any more. `own` is the name of this master.
///
/// # Errors
/// File system errors.
pub async fn fence_earlier_masters(
    fs: &dyn FileSystem,
    random: &dyn Random,
    root: &RootDir,
    own: &ServerName,
) -> fs::Result<Vec<FilePath>> {
    let root = root.master_data();
    let mut fenced = Vec::new();
    for dir in other_servers_log_dirs(fs, &root, own).await? {
        let to = match dir.name().ends_with(FENCED_SUFFIX) {
            // All its logs were archived.
            true if fs.list(&dir).await?.is_empty() => {
                fs.delete(&dir).await?;
                continue;
            }
            // The master that renamed the directory may have ended before it fenced all logs.
            true => {
                wal::fence_logs(fs, random, &dir).await?;
                dir
            }
            false => {
                let to = dir.parent().join(&format!("{}{FENCED_SUFFIX}", dir.name()));
                fence_dir(fs, random, &dir, &to).await?;
                to
            }
        };
        fenced.push(to);
    }
    Ok(fenced)
}

/// The end of the name of a directory with the logs of an earlier master (HBase
/// `MasterRegion.DEAD_WAL_DIR_SUFFIX`).
const FENCED_SUFFIX: &str = "-dead";

/// The descriptor of the table `master:store`, with HBase's families.
fn descriptor() -> TableDescriptor {
    let family = |name: &'static str, block_bytes: &str| {
        FamilyDescriptor::new(name.as_bytes())
            .with("VERSIONS", "1")
            .with("IN_MEMORY", "true")
            .with("BLOCKSIZE", block_bytes)
            .with("BLOOMFILTER", "ROWCOL")
            .with("DATA_BLOCK_ENCODING", "ROW_INDEX_V1")
    };
    let name = TableName::new("master", "store").expect("a legal name");
    TableDescriptor::new(name)
        .with_family(family("info", "8192"))
        .with_family(family("proc", "65536"))
        .with_family(family("rs", "65536"))
        .with_family(family("state", "65536"))
}

/// The only region. HBase uses the time of creation as its id. Here the id is constant, so that the
/// region can be found.
fn region_info() -> RegionInfo {
    RegionInfo::new(descriptor().name, "".into(), "".into(), 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use base::testing::env;
    use fs::memory::MemoryFs;

    /// The time that the next master records. Its clock is `ahead`.
    async fn become_active(fs: &Arc<dyn FileSystem>, start_code: u64, ahead: Duration) -> u64 {
        let (env, root) = (env(start_code), RootDir::new(FilePath::root()));
        env.clock.sleep(ahead).await;
        let own = ServerName { host: "own".into(), port: 1, start_code };
        let dead = fence_earlier_masters(&**fs, &*env.random, &root, &own).await.unwrap();
        let on_fatal = Arc::new(|_: &wal::Error| ());
        let store = MasterStore::open(&env, fs, &root, &own, &dead, on_fatal).await.unwrap();
        let since_ms = store.become_active(env.clock.now_ms()).await.unwrap();
        store.close().await.unwrap();
        since_ms
    }

    #[tokio::test(start_paused = true)]
    async fn a_needed_replay_is_recorded_and_assumed_for_a_new_region() {
        let fs: Arc<dyn FileSystem> = Arc::new(MemoryFs::new());
        let (env, root) = (env(1), RootDir::new(FilePath::root()));
        let own = ServerName { host: "own".into(), port: 1, start_code: 1 };
        let on_fatal = Arc::new(|_: &wal::Error| ());
        let store = MasterStore::open(&env, &fs, &root, &own, &[], on_fatal).await.unwrap();
        assert!(store.needs_replay().await.unwrap(), "the region may have replaced another one");
        for needs_replay in [true, true, false, true, false] {
            store.set_needs_replay(needs_replay).await.unwrap();
            assert_eq!(store.needs_replay().await.unwrap(), needs_replay);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_region_of_a_cluster_without_the_record_needs_no_replay() {
        let fs: Arc<dyn FileSystem> = Arc::new(MemoryFs::new());
        let (env, root) = (env(1), RootDir::new(FilePath::root()));
        let own = ServerName { host: "own".into(), port: 1, start_code: 1 };
        let on_fatal = Arc::new(|_: &wal::Error| ());
        let store = MasterStore::open(&env, &fs, &root, &own, &[], on_fatal).await.unwrap();
        store.become_active(env.clock.now_ms()).await.unwrap();
        assert!(!store.needs_replay().await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn the_region_is_not_opened_without_the_edits_of_a_damaged_log() {
        let memory = MemoryFs::new();
        let fs: Arc<dyn FileSystem> = Arc::new(memory.clone());
        let (env, root) = (env(1), RootDir::new(FilePath::root()));
        let server = |start_code| ServerName { host: "own".into(), port: 1, start_code };
        let on_fatal = Arc::new(|_: &wal::Error| ());
        let store = MasterStore::open(&env, &fs, &root, &server(1), &[], on_fatal.clone()).await.unwrap();
        store.become_active(env.clock.now_ms()).await.unwrap();
        store.set_needs_replay(true).await.unwrap();
        store.set_needs_replay(false).await.unwrap();

        let image = memory.crash(&mut || 0);
        let dir = root.master_data().wal_dir(&server(1));
        let log = dir.join(&image.list(&dir).await.unwrap()[0].name);
        let mut bytes = image.contents(&log).unwrap();
        let damaged = bytes.windows(ACTIVE_SINCE.len()).position(|window| window == ACTIVE_SINCE).unwrap();
        bytes[damaged] ^= 1;
        image.put(&log, bytes.clone());
        let fs: Arc<dyn FileSystem> = Arc::new(image.clone());
        let opened = MasterStore::open(&env, &fs, &root, &server(2), &[dir], on_fatal).await;
        let error = opened.err().expect("its log is damaged");
        let shown = cannot_open(&error, &[]);
        assert!(shown.contains("edits of this region") && shown.contains("grampus repair master"), "{shown}");
        assert!(!shown.contains("skip.errors"), "{shown}");
        assert_eq!(image.contents(&log), Some(bytes), "the log stays as it is");
    }

    /// `grampus repair master` works only on a local directory.
    #[test]
    fn the_remedy_on_hdfs_is_a_command_of_hdfs() {
        let dirs = ["hdfs://nn/hbase".to_string(), "hdfs://nn/logs/".to_string()];
        let shown = cannot_open(&engine::Error::bad_request("damaged"), &dirs);
        assert!(!shown.contains("grampus repair"), "{shown}");
        for dir in ["hdfs://nn/hbase", "hdfs://nn/logs"] {
            let command = format!("hdfs dfs -mv {dir}/MasterData {dir}/corrupt/MasterData-");
            assert!(shown.contains(&command), "{shown}");
        }
        assert!(shown.contains("stop all processes"), "{shown}");
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_room_for_the_orders_of_each_master_although_the_first_clock_was_ahead() {
        let fs: Arc<dyn FileSystem> = Arc::new(MemoryFs::new());
        let first = become_active(&fs, 1, Duration::from_secs(3600)).await;
        let second = become_active(&fs, 2, Duration::ZERO).await;
        let third = become_active(&fs, 3, Duration::ZERO).await;
        assert_eq!([second - first, third - second], [ACTIVE_STEP_MS; 2]);
    }

    #[tokio::test]
    async fn logs_of_earlier_masters_are_fenced_and_empty_directories_removed() {
        let (fs, root) = (MemoryFs::new(), RootDir::new(FilePath::root()));
        let wals = root.master_data().wals_dir();
        let own = ServerName { host: "own".into(), port: 1, start_code: 3 };
        for dir in ["old,1,1-dead", "last,1,2"] {
            fs.make_dirs(&wals.join(dir)).await.unwrap();
        }
        let log = fs.create(&wals.join("last,1,2/log"), fs::AccessPattern::Log).await.unwrap();
        drop(log);
        let fenced = fence_earlier_masters(&fs, &*base::testing::env(1).random, &root, &own).await.unwrap();
        assert_eq!(fenced, [wals.join("last,1,2-dead")]);
        let left: Vec<String> = fs.list(&wals).await.unwrap().into_iter().map(|dir| dir.name).collect();
        assert_eq!(left, ["last,1,2-dead"]);
    }

    #[tokio::test]
    async fn the_fence_of_a_master_that_ended_meanwhile_is_repeated() {
        let (memory, root) = (MemoryFs::new(), RootDir::new(FilePath::root()));
        let fs = fs::shared::Shared::new(Arc::new(memory.clone()));
        let own = ServerName { host: "own".into(), port: 1, start_code: 3 };
        // Renamed, but not fenced.
        let dir = root.master_data().wals_dir().join("last,1,2-dead");
        fs.make_dirs(&dir).await.unwrap();
        let mut open = fs.create(&dir.join("log"), fs::AccessPattern::Log).await.unwrap();
        open.append("entries".into()).await.unwrap();
        fence_earlier_masters(&fs, &*base::testing::env(1).random, &root, &own).await.unwrap();
        open.append(" of a paused master".into()).await.unwrap();
        assert_eq!(memory.contents(&dir.join("log")).unwrap(), b"entries");
    }
}
