//! Opens regions while no server runs: their edits in logs are replayed, and closing them flushes.

use std::sync::Arc;

use base::env::Env;
use cell::region::{RegionInfo, ServerName};
use cell::schema::TableDescriptor;
use engine::Region;
use engine::budget::MemstoreBudget;
use engine::chores::Chores;
use engine::instruments::Instruments;
use engine::recovery::{OnDamage, RecoveredLogs};
use engine::region::{Opening, RegionOptions, RegionServices};
use engine::scanner::BlockLoader;
use fs::{FilePath, FileSystem};
use layout::RootDir;
use master::procedure::fence_dir;

use crate::Result;
use crate::scratch::list;

/// The host in the name of this server. No server has this host name.
const HOST: &str = "grampus-offline";
/// Bytes of the block cache.
const CACHE_BYTES: u64 = 16 << 20;
/// Memstore size in bytes at which a region is flushed during replay.
const FLUSH_BYTES: u64 = 64 << 20;

/// A name that no earlier run had: one that was killed has left its logs, and the clock may not
/// have advanced since.
pub(crate) async fn new_name(env: &Env, fs: &dyn FileSystem, root: &RootDir) -> Result<ServerName> {
    let dirs = list(fs, &root.wals_dir()).await?;
    let names = dirs.iter().filter_map(|dir| ServerName::parse(dir.name.trim_end_matches("-splitting")));
    let last = names.filter(|name| name.host == HOST).map(|name| name.start_code).max();
    let start_code = last.map_or(0, |last| last.saturating_add(1)).max(env.clock.now_ms());
    Ok(ServerName { host: HOST.into(), port: 1, start_code })
}

/// Takes the directories `dirs` of the logs of earlier servers, and fences these logs. Returns the
/// new paths of the directories. A paused region server can then acknowledge no edit that a scan of
/// the logs would miss. A server of this kind may be frozen together with its clocks, like the
/// master that runs it. When it continues, it finds out that its log was taken over
/// ([`wal::Log::check_owned`]).
///
/// # Errors
/// File system errors. Another call can complete this one.
pub(crate) async fn take_logs(
    env: &Env,
    fs: &dyn FileSystem,
    root: &RootDir,
    dirs: Vec<FilePath>,
) -> Result<Vec<FilePath>> {
    let mut taken = Vec::with_capacity(dirs.len());
    for dir in dirs {
        let (from, to) = match RootDir::server_of_wal_dir(dir.name()) {
            Some((server, false)) => (dir, root.fenced_wal_dir(&server)),
            // The call that renamed it may have ended before it fenced all logs.
            Some((server, true)) => (root.wal_dir(&server), dir),
            // No server writes there.
            None => {
                taken.push(dir);
                continue;
            }
        };
        fence_dir(fs, &*env.random, &from, &to).await?;
        taken.push(to);
    }
    Ok(taken)
}

/// The log of a server that has not read the logs of earlier runs yet.
pub(crate) struct OfflineLog {
    env: Env,
    fs: Arc<dyn FileSystem>,
    root: RootDir,
    name: ServerName,
    log: Arc<wal::Log>,
}

impl OfflineLog {
    /// Begins a log below `root`.
    ///
    /// # Errors
    /// File system errors.
    pub(crate) async fn create(env: &Env, fs: &Arc<dyn FileSystem>, root: &RootDir) -> Result<OfflineLog> {
        let name = new_name(env, &**fs, root).await?;
        let options = wal::LogOptions {
            reserve_bytes: 0,
            ..wal::LogOptions::new(root.wal_dir(&name), &name.url_encoded(), root.old_wals_dir())
        };
        // If the log fails, the next flush returns the error.
        let log = wal::Log::start(env.clone(), fs.clone(), options, Arc::new(|_: &wal::Error| ())).await?;
        Ok(OfflineLog { env: env.clone(), fs: fs.clone(), root: root.clone(), name, log })
    }

    /// Scans the logs in directories, and compares them with records ([`OfflineServer::start`]).
    ///
    /// # Errors
    /// Errors of the file system, and logs of an unsupported format. This log is removed then.
    pub(crate) async fn recover(
        self,
        logs: (&[FilePath], &[FilePath]),
        on_damage: OnDamage,
    ) -> Result<OfflineServer> {
        let until_ms = self.name.start_code;
        let scanned = RecoveredLogs::scan(self.fs.clone(), &self.root, logs, until_ms, on_damage).await;
        match scanned {
            Ok(recovered) => Ok(self.serve(recovered)),
            Err(error) => {
                // If the removal fails, the next replay takes the directory.
                let _ = self.remove().await;
                Err(error.into())
            }
        }
    }

    fn serve(self, recovered: RecoveredLogs) -> OfflineServer {
        let OfflineLog { env, fs, root, name, log } = self;
        log.adopt(recovered.old_logs());
        let services = RegionServices {
            fs,
            root,
            tracker: Arc::new(layout::RenameTracker),
            log,
            loader: Arc::new(BlockLoader::new(CACHE_BYTES)),
            budget: Arc::new(MemstoreBudget::unlimited()),
            nonces: Arc::default(),
            maintenance: Arc::new(Chores::new(env.clone())),
            mob: Arc::default(),
            options: Arc::new(RegionOptions { flush_bytes: FLUSH_BYTES, ..RegionOptions::default() }),
            instruments: Arc::new(Instruments::begin(env.clock.monotonic())),
            server: Some(name.clone()),
            env,
        };
        OfflineServer { name, services, recovered }
    }

    /// Closes the log, and removes its directory, when no region uses it.
    ///
    /// # Errors
    /// File system errors.
    pub(crate) async fn remove(&self) -> Result<()> {
        self.log.close().await;
        Ok(self.fs.delete(&self.root.wal_dir(&self.name)).await?)
    }
}

/// Opens regions, with one log for all of them.
pub struct OfflineServer {
    name: ServerName,
    services: RegionServices,
    recovered: RecoveredLogs,
}

impl OfflineServer {
    /// Begins a log below `root`, and scans the logs in `log_dirs`. `records` list the logs that
    /// must be there. `on_damage` determines whether regions open without edits that are lost in a
    /// damaged log.
    ///
    /// # Errors
    /// Errors of the file system, and logs of an unsupported format.
    pub async fn start(
        env: &Env,
        fs: &Arc<dyn FileSystem>,
        root: &RootDir,
        logs: (&[FilePath], &[FilePath]),
        on_damage: OnDamage,
    ) -> Result<OfflineServer> {
        OfflineLog::create(env, fs, root).await?.recover(logs, on_damage).await
    }

    /// Opens a region and replays its edits in the logs.
    ///
    /// # Errors
    /// Why the region cannot be opened, for example if edits may be lost in a damaged log.
    pub async fn open(&self, table: TableDescriptor, info: RegionInfo) -> Result<Arc<Region>> {
        let entries = self.recovered.entries_of(self.services.fs.clone(), &info);
        Ok(Region::open(self.services.clone(), Opening { info, table: Arc::new(table), entries }).await?)
    }

    /// Whether the logs may have edits of a region.
    pub(crate) fn may_have_edits_of(&self, region: &RegionInfo) -> bool {
        self.recovered.may_have_edits_of(&region.encoded_name())
    }

    /// What an operator should know about damaged, shortened, and missing logs.
    pub fn warnings(&self) -> &[String] {
        self.recovered.warnings()
    }

    /// Closes the log, and removes its directory: all regions were closed, so that all edits are in
    /// store files.
    ///
    /// # Errors
    /// File system errors.
    pub async fn stop(self) -> Result<()> {
        self.services.log.close().await;
        let dir = self.services.root.wal_dir(&self.name);
        self.services.fs.delete(&dir).await?;
        Ok(())
    }
}
