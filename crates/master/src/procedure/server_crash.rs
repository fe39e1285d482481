//! Recovers a dead server: fences its logs, opens its regions on other servers, and archives the
//! logs when no region needs them.
//!
//! A region reads its edits from the fenced logs when it opens; nothing is rewritten before. The
//! logs are shared by all servers that open regions of the dead one, and each reads only the ranges
//! of its own regions.
//!
//! Source: HBase `ServerCrashProcedure`. HBase first splits the logs into files per region.

use std::time::Duration;

use base::env::Random;
use cell::region::{RegionInfo, ServerName};
use fs::{FilePath, FileSystem};
use proto::exception::{Answer, JavaException};
use tracing::{info, warn};
use wal::LogKind;

use crate::context::Context;

/// The pause before a failed step is repeated.
const PAUSE: Duration = Duration::from_millis(200);
/// The longest time between two checks whether regions still need the logs.
const CHECK_PERIOD: Duration = Duration::from_secs(5);

/// The warning if a log cannot be fenced. The error names the file.
const CANNOT_FENCE: &str = "cannot fence a log of a dead server; retrying. Until all its logs are fenced, its regions \
    stay closed. If the file is lost, move it to another directory: the regions then open without the edits that only \
    this file has.";

/// Runs before the regions of the server are opened, and determines which they are: fences the
/// logs, opens `hbase:meta` elsewhere if the server had it, and returns the regions. Repeats failed
/// steps until they succeed, because nothing else can recover the server.
///
/// `hbase:meta` waits only for its own logs. The other logs can be many, and if one of them cannot
/// be fenced, only the regions of this server must stay closed. No region of a user table is opened
/// before all logs are fenced: until this returns, the regions stay in the state `Crashed`.
pub(super) async fn prepare(context: &Context, server: &ServerName, had_meta: bool) -> Vec<RegionInfo> {
    let meta = async {
        fence(context, server, LogKind::Meta).await;
        if had_meta {
            // A procedure of the previous master may resume before this master knows where
            // `hbase:meta` was.
            context.assignment.meta_known().await;
            recover_regions(context, server, &[RegionInfo::meta()]).await;
        }
    };
    tokio::join!(meta, fence(context, server, LogKind::User));
    context.meta_loaded().await;
    context.assignment.crashed_regions(server)
}

/// Fences the logs of one kind. After this, the server can acknowledge no more writes to them.
async fn fence(context: &Context, server: &ServerName, kind: LogKind) {
    while let Err(error) = try_fence(context, server, kind).await {
        warn!(%server, %error, "{CANNOT_FENCE}");
        context.env.clock.sleep(PAUSE).await;
    }
}

/// Takes the directory of the logs, so that the server can create none, and fences those of one
/// kind: syncs of existing logs fail ([`fs::shared`]).
async fn try_fence(context: &Context, server: &ServerName, kind: LogKind) -> Answer<()> {
    let (fs, root) = (context.tables.fs(), context.tables.root());
    let (from, to) = (root.wal_dir(server), root.fenced_wal_dir(server));
    take_dir(fs, &from, &to).await.map_err(io)?;
    wal::fence_logs_of(fs, &*context.env.random, &to, kind).await.map_err(io)
}

/// Takes a directory of logs, and fences each log: a process that has a log open can add nothing to
/// it. The caller can repeat this.
///
/// # Errors
/// The file system's error, also if both directories exist.
pub async fn fence_dir(
    fs: &dyn FileSystem,
    random: &dyn Random,
    from: &FilePath,
    to: &FilePath,
) -> fs::Result<()> {
    take_dir(fs, from, to).await?;
    wal::fence_logs(fs, random, to).await
}

/// Renames a directory of logs, and makes the new name and the directory's entries durable. A
/// missing directory was renamed before, or never existed.
///
/// The entries must be durable because a log that the dead process had removed or archived must not
/// reappear after a power loss. By then the regions may have been opened without its edits, and new
/// edits may have received the same sequence ids.
async fn take_dir(fs: &dyn FileSystem, from: &FilePath, to: &FilePath) -> fs::Result<()> {
    match fs.rename(from, to).await {
        Ok(()) | Err(fs::Error::NotFound { .. }) => {}
        Err(error) => return Err(error),
    }
    for dir in [&to.parent(), to] {
        match fs.sync_dir(dir).await {
            Ok(()) | Err(fs::Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Orders living servers to open those of `regions` that are in the state `Crashed` on the dead
/// server. Returns when none is in this state, and does not wait until they are open.
async fn recover_regions(context: &Context, server: &ServerName, regions: &[RegionInfo]) {
    loop {
        if let Err(error) = context.assignment.begin_recovery(server, regions).await {
            warn!(%server, %error, "cannot open regions of a dead server; retrying");
        }
        let crashed = context.assignment.crashed_regions(server);
        if !regions.iter().any(|region| crashed.contains(region)) {
            return;
        }
        context.env.clock.sleep(PAUSE).await;
    }
}

/// Opens the regions, and ends when no region needs the logs.
pub(super) async fn act(context: &Context, server: &ServerName, regions: &[RegionInfo]) -> Answer<()> {
    // A procedure of the previous master may resume before `hbase:meta` has been loaded. Until
    // then, this master does not know the regions of the dead server: they would count as deleted,
    // and the logs would be archived.
    context.meta_loaded().await;
    let begun = context.env.clock.monotonic();
    // A region that is not listed in the journal can also be in the state `Crashed` on the server:
    // the order to open it there was recorded, but the previous master did not get the response,
    // and did not send the order.
    let crashed = context.assignment.crashed_regions(server);
    recover_regions(context, server, &crashed).await;
    context.assignment.wait_while_opening(regions).await;
    let took = context.env.clock.monotonic().saturating_sub(begun);
    info!(%server, regions = regions.len(), ?took, "the regions of a dead server are open elsewhere");
    while context.recoveries.waiting(server) > 0 {
        // Regions of deleted tables need nothing any more.
        context.recoveries.retain(|encoded| context.assignment.find(encoded).is_some());
        context.env.timeout(CHECK_PERIOD, context.recoveries.changed()).await;
    }
    archive_logs(context, server).await?;
    context.recoveries.end(server);
    Ok(())
}

/// Moves the logs of the server to the archive, and removes their directory.
async fn archive_logs(context: &Context, server: &ServerName) -> Answer<()> {
    let (fs, root) = (context.tables.fs(), context.tables.root());
    let (dir, archive) = (root.fenced_wal_dir(server), root.old_wals_dir());
    let logs = match fs.list(&dir).await {
        Ok(logs) => logs,
        Err(fs::Error::NotFound { .. }) => Vec::new(),
        Err(error) => return Err(io(error)),
    };
    fs.make_dirs(&archive).await.map_err(io)?;
    for log in logs.iter().filter(|status| !status.is_dir) {
        fs.rename(&dir.join(&log.name), &archive.join(&log.name)).await.map_err(io)?;
    }
    fs.sync_dir(&archive).await.map_err(io)?;
    fs.delete(&dir).await.map_err(io)?;
    fs.delete(&root.process_dir(server)).await.map_err(io)?;
    fs.delete(&root.log_record_dir(server)).await.map_err(io)
}

fn io(error: fs::Error) -> JavaException {
    JavaException::io(error.to_string())
}

/// The names of `regions` for the list of those that need the logs.
pub(super) fn encoded_names(regions: &[RegionInfo]) -> impl Iterator<Item = String> {
    regions.iter().map(RegionInfo::encoded_name)
}

#[cfg(test)]
mod tests {
    use fs::AccessPattern;
    use fs::memory::MemoryFs;

    use super::*;

    #[tokio::test]
    async fn a_log_that_was_removed_before_the_fence_is_not_back_after_a_power_loss() {
        let (from, to) = (FilePath::new("WALs/s"), FilePath::new("WALs/s-splitting"));
        let (fs, archive) = (MemoryFs::new(), FilePath::new("oldWALs"));
        fs.make_dirs(&from).await.unwrap();
        fs.make_dirs(&archive).await.unwrap();
        for log in ["removed", "kept"] {
            fs.create(&from.join(log), AccessPattern::Log).await.unwrap().close().await.unwrap();
        }
        fs.sync_dir(&from).await.unwrap();
        fs.rename(&from.join("removed"), &archive.join("removed")).await.unwrap();
        fence_dir(&fs, &*base::testing::env(1).random, &from, &to).await.unwrap();
        for choice in [0, 1, u64::MAX] {
            let after = fs.crash(&mut || choice);
            let logs: Vec<String> = after.list(&to).await.unwrap().into_iter().map(|log| log.name).collect();
            assert_eq!(logs, ["kept"], "with the choice {choice}");
        }
    }
}
