//! Moves files to the storage tier where they belong: when a rule or a storage policy says so, when
//! they are read often or rarely, and when a tier is nearly full.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base::env::TaskClass;
use engine::Region;
use fs::{FilePath, Purpose, Role};
use tiers::{MoveError, Mover, PlannedMove, StoredFile, TieredFs};
use tracing::{error, info, warn};

use crate::server::RegionServer;

/// How long a file is in the archive before it moves. Most files are deleted from it earlier
/// (`hbase.master.hfilecleaner.ttl`, 5 minutes by default).
const ARCHIVED_AGE_MIN: Duration = Duration::from_secs(600);

/// Where files are moved to, and how fast.
#[derive(Clone)]
pub struct FileMoves {
    /// The tiers, which are the server's file system.
    pub tiers: TieredFs,
    /// The pause between two plans.
    pub period: Duration,
    /// Maximum number of bytes per second that are moved; 0 for no moves.
    pub bytes_per_s_max: u64,
}

/// Moves the files of a server.
struct FileMover {
    moves: FileMoves,
    mover: Mover,
    /// When each file was first seen in the archive, on the monotonic clock.
    archived: HashMap<FilePath, Duration>,
}

impl RegionServer {
    /// Starts to move files.
    pub(crate) fn move_files(self: &Arc<Self>, moves: FileMoves) {
        if moves.bytes_per_s_max == 0 {
            return;
        }
        let (weak, clock) = (Arc::downgrade(self), self.env().clock.clone());
        let mover = Mover::new(moves.tiers.clone(), moves.bytes_per_s_max);
        let mut mover = FileMover { moves, mover, archived: HashMap::new() };
        self.env().spawn(TaskClass::Background, async move {
            loop {
                clock.sleep(mover.moves.period).await;
                let Some(server) = weak.upgrade() else { return };
                mover.run_plan(&server).await;
            }
        });
    }
}

impl FileMover {
    /// Plans moves and makes them, for at most the period: a later plan knows more.
    async fn run_plan(&mut self, server: &RegionServer) {
        let clock = &server.env().clock;
        let begin = clock.monotonic();
        let planned = match self.plan(server, begin).await {
            Ok(planned) => planned,
            Err(error) => return warn!(%error, "cannot find the files to move between tiers"),
        };
        for planned in planned {
            if server.regions().is_stopping() || clock.monotonic() >= begin + self.moves.period {
                return;
            }
            self.make(server, &planned).await;
        }
    }

    async fn plan(&mut self, server: &RegionServer, now: Duration) -> fs::Result<Vec<PlannedMove>> {
        let regions = server.regions().all();
        let of_stores = regions.iter().flat_map(|region| region.file_purposes());
        let mut files: Vec<_> = of_stores.map(|(path, purpose)| StoredFile { path, purpose }).collect();
        files.extend(self.archived_files(server, now).await?);
        self.moves.tiers.plan(files).await
    }

    /// The files that have been in the archive for a while.
    async fn archived_files(&mut self, server: &RegionServer, now: Duration) -> fs::Result<Vec<StoredFile>> {
        let listed = files_below(&**server.fs(), server.root().archive_dir()).await?;
        let seen = std::mem::take(&mut self.archived);
        self.archived =
            listed.iter().map(|(path, _)| (path.clone(), seen.get(path).copied().unwrap_or(now))).collect();
        let is_due = |path: &FilePath| now >= self.archived[path] + ARCHIVED_AGE_MIN;
        let due = listed.into_iter().filter(|(path, _)| is_due(path));
        let purpose = |len| Purpose { expected_bytes: len, ..Purpose::of(Role::Archive) };
        Ok(due.map(|(path, len)| StoredFile { path, purpose: purpose(len) }).collect())
    }

    /// Moves a file. A failed move leaves it where it was; the next plan repeats it.
    async fn make(&self, server: &RegionServer, planned: &PlannedMove) {
        let PlannedMove { path, bytes, to } = planned;
        let tier = &self.moves.tiers.tiers()[*to].name;
        match self.mover.move_to(path, *to).await {
            Ok(Some(_)) => {
                info!(file = %path, bytes, tier = &**tier, "moved to another tier");
                for region in server.regions().all() {
                    reopen(&region, path).await;
                }
            }
            // It is there already, or was changed meanwhile.
            Ok(None) | Err(MoveError::Changed(_) | MoveError::Fs(fs::Error::NotFound { .. })) => {}
            Err(error @ MoveError::Damaged { .. }) => error!(%error, "a file is not moved"),
            Err(error) => warn!(file = %path, tier = &**tier, %error, "cannot move a file to another tier"),
        }
    }
}

async fn reopen(region: &Region, path: &FilePath) {
    if let Err(error) = region.reopen_moved(path).await {
        warn!(region = %region.info().encoded_name(), file = %path, %error,
            "cannot open a moved file; its old bytes stay in use, and keep their space");
    }
}

/// All files below a directory, with their lengths.
async fn files_below(fs: &dyn fs::FileSystem, dir: FilePath) -> fs::Result<Vec<(FilePath, u64)>> {
    let (mut files, mut dirs) = (Vec::new(), vec![dir]);
    while let Some(dir) = dirs.pop() {
        let entries = match fs.list(&dir).await {
            // It was deleted meanwhile, or nothing was archived yet.
            Err(fs::Error::NotFound { .. }) => continue,
            entries => entries?,
        };
        for entry in entries {
            let path = dir.join(&entry.name);
            match entry.is_dir {
                true => dirs.push(path),
                false => files.push((path, entry.len)),
            }
        }
    }
    Ok(files)
}
