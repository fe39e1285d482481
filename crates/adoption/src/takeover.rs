//! Makes a root directory of HBase one of Grampus, or undoes this.
//!
//! No region is opened and no store file is written: the first start of a server replays the logs.
//! The steps, each durable before the next begins:
//!
//! 1. Write the record of the changes.
//! 2. Rename `hbase.version`, so that HBase does not start any more.
//! 3. Rename the directories of logs, so that a paused server cannot create another log, and fence
//!    the logs in them.
//! 4. Move the master's own region aside. Create a new one, with the procedures that are continued.
//! 5. Remove file lists, and the regions of splits and merges that were not committed.
//! 6. Write the marker of Grampus.
//!
//! An undo reverses the steps in the opposite order. It is possible until a server has started.

use std::sync::Arc;

use base::env::Env;
use cell::region::RegionInfo;
use cell::schema::TableName;
use fs::{FilePath, FileSystem};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use layout::RootDir;
use layout::ownership::{ADOPTION_DIR, Owner};
use master::procedure::{Record, Work};
use tracing::info;

use crate::inspection::Inspection;
use crate::procedure::judge_all;
use crate::record::{AdoptionRecord, kept, kept_master_data};
use crate::scratch::list;
use crate::{Error, Progress, Result, catalog, file_lists, master_data, refused};

/// The end of the name of a directory with the logs of a dead server.
const SPLITTING: &str = "-splitting";
/// Stages that are shown as progress.
const STAGES: u64 = 6;
/// Number of logs that are closed at the same time: HDFS needs some seconds for each open one.
const CLOSED_AT_ONCE: usize = 32;

/// Ends the writers of HBase's logs before an inspection, so that it sees exactly the edits that a
/// first start will replay. On HDFS it recovers the leases: HBase cannot write to these logs any
/// more. It changes no log that has no writer.
///
/// # Errors
/// Errors of the file system. The call may be repeated.
pub async fn close_logs(fs: &dyn FileSystem, root: &RootDir, progress: &dyn Progress) -> Result<()> {
    let mut logs = Vec::new();
    for root in [root, &root.master_data()] {
        for dir in catalog::log_dirs(fs, root).await? {
            let files = list(fs, &dir).await?.into_iter().filter(|entry| !entry.is_dir);
            logs.extend(files.map(|file| dir.join(&file.name)));
        }
    }
    progress.begin("close logs", logs.len() as u64);
    let close = async |log: FilePath| {
        let closed = match fs.fence(&log).await {
            // It was archived meanwhile.
            Err(fs::Error::NotFound { .. }) => Ok(()),
            fenced => fenced.map(drop),
        };
        progress.advance(1);
        closed
    };
    let closed = stream::iter(logs.into_iter().map(close)).buffer_unordered(CLOSED_AT_ONCE);
    Ok(closed.try_collect::<()>().await?)
}

/// Adopts a directory that was inspected, or continues an adoption that was interrupted. The caller
/// has checked that it is adoptable.
///
/// # Errors
/// Errors of the file system. The call may be repeated, or `undo` may follow.
pub async fn adopt(
    env: &Env,
    fs: &Arc<dyn FileSystem>,
    root: &RootDir,
    inspection: &Inspection,
    progress: &dyn Progress,
) -> Result<()> {
    progress.begin("take over", STAGES);
    let record = match root.owner(&**fs).await? {
        Owner::HBase => {
            let record = plan(root, inspection);
            fs.delete(&crate::record::dir(root)).await?;
            record.write(&**fs, root).await?;
            record
        }
        Owner::Adopting => match AdoptionRecord::read(&**fs, root).await? {
            Some(record) => record,
            None => {
                return refused("an undo was interrupted; complete it with `grampus adopt --undo`");
            }
        },
        owner => return refused(format!("the directory cannot be adopted (owner: {owner:?})")),
    };
    let step = || progress.advance(1);
    root.fence_from_hbase(&**fs).await?;
    step();
    fence_logs(env, &**fs, root, &record).await?;
    step();
    replace_master_data(env, fs, root, &record).await?;
    step();
    remove_file_lists(&**fs, root, &record).await?;
    step();
    for region in &record.removed_regions {
        root.move_path(&**fs, &root.path().join(region), &kept(root, region)).await?;
    }
    step();
    fs.make_dirs(&root.tmp_dir()).await?;
    root.write_marker(&**fs).await?;
    step();
    info!("the directory is one of Grampus now");
    Ok(())
}

fn plan(root: &RootDir, inspection: &Inspection) -> AdoptionRecord {
    let is_splitting = |name: &&String| name.ends_with(SPLITTING);
    let prefix = format!("{}/", root.path());
    let relative =
        |path: &FilePath| path.as_str().trim_start_matches(&prefix).trim_start_matches('/').to_string();
    let file_lists = inspection.file_lists.iter().map(|path| relative(&FilePath::new(path))).collect();
    let removed = inspection.removed_regions();
    AdoptionRecord {
        log_dirs: inspection.log_dirs.iter().filter(|name| !is_splitting(name)).cloned().collect(),
        known_log_dirs: inspection.log_dirs.clone(),
        file_lists,
        removed_regions: removed
            .iter()
            .map(|region: &RegionInfo| relative(&root.region_dir(region)))
            .collect(),
        disabled: inspection
            .tables
            .iter()
            .filter(|table| table.is_disabled)
            .map(|table| table.name.to_string())
            .collect(),
    }
}

/// Renames the directories of logs, and fences the logs.
async fn fence_logs(env: &Env, fs: &dyn FileSystem, root: &RootDir, record: &AdoptionRecord) -> Result<()> {
    let splitting = |name: &String| root.wals_dir().join(&format!("{name}{SPLITTING}"));
    for name in &record.log_dirs {
        root.move_path(fs, &root.wals_dir().join(name), &splitting(name)).await?;
    }
    for dir in catalog::log_dirs(fs, root).await? {
        let name = dir.name().to_string();
        let is_known = record.known_log_dirs.contains(&name)
            || name
                .strip_suffix(SPLITTING)
                .is_some_and(|name| record.log_dirs.iter().any(|known| known == name));
        if !is_known {
            return refused(format!(
                "the logs of {name} are new: a server of HBase has started during the adoption; undo it with `grampus \
                 adopt --undo`"
            ));
        }
        wal::fence_logs(fs, &*env.random, &dir).await?;
    }
    Ok(())
}

/// Moves the master's own region aside, and creates one of Grampus.
async fn replace_master_data(
    env: &Env,
    fs: &Arc<dyn FileSystem>,
    root: &RootDir,
    record: &AdoptionRecord,
) -> Result<()> {
    let (master_data, kept) = (root.master_data(), kept_master_data(root));
    if fs.stat(&kept).await?.is_none() {
        match fs.stat(master_data.path()).await? {
            Some(_) => root.move_path(&**fs, master_data.path(), &kept).await?,
            None => fs.make_dirs(&kept).await?,
        }
    }
    let kept_root = RootDir::new(kept.clone());
    for dir in catalog::log_dirs(&**fs, &kept_root).await? {
        wal::fence_logs(&**fs, &*env.random, &dir).await?;
    }
    // What an interrupted attempt may have left.
    fs.delete(master_data.path()).await?;
    let content = master_data::inspect(env, &**fs, &kept).await?;
    let catalog = catalog::inspect(env, &**fs, root).await?;
    let judged = judge_all(&content.procedures, &catalog);
    let mut records: Vec<Record> = judged.iter().filter_map(crate::procedure::Judged::record).collect();
    let last = content.procedures.iter().map(|procedure| procedure.proc_id).max().unwrap_or(0);
    let disabled: Vec<TableName> = record.disabled.iter().map(|name| parsed(name)).collect::<Result<_>>()?;
    records.extend(disabled.into_iter().zip(last + 1..).map(|(table, id)| Record {
        id,
        work: Work::DisableTable(table),
        prepared: true,
        submitted_ms: env.clock.now_ms(),
        nonce: (0, 0),
    }));
    master_data::create(env, fs, root, &content, &records).await?;
    Ok(fs.sync_dir(root.path()).await?)
}

/// The name of a table in the record.
fn parsed(name: &str) -> Result<TableName> {
    TableName::parse(name).map_err(|error| Error::Refused(format!("the record of the adoption: {error}")))
}

async fn remove_file_lists(fs: &dyn FileSystem, root: &RootDir, record: &AdoptionRecord) -> Result<()> {
    for relative in &record.file_lists {
        let path = root.path().join(relative);
        if fs.stat(&path).await?.is_some() {
            file_lists::archive_unlisted(fs, root, &path.parent()).await?;
            root.move_path(fs, &path, &kept(root, relative)).await?;
        }
    }
    Ok(())
}

/// Undoes an adoption, also one that was interrupted. Afterwards HBase may start.
///
/// # Errors
/// [`Error::Refused`](crate::Error::Refused) if a server of Grampus has started since: it has
/// written. Errors of the file system; then the call may be repeated.
pub async fn undo(fs: &Arc<dyn FileSystem>, root: &RootDir) -> Result<()> {
    let fs = &**fs;
    let owner = root.owner(fs).await?;
    match owner {
        Owner::Grampus | Owner::Adopting => {}
        Owner::Released => return Ok(root.open_to_hbase(fs).await?),
        Owner::HBase => return refused("the directory is not adopted: there is nothing to undo"),
        Owner::Releasing => return refused("a release was interrupted: complete it with `grampus release`"),
        Owner::Nothing => return refused("this is not a root directory"),
    }
    let Some(record) = AdoptionRecord::read(fs, root).await? else {
        return undo_without_record(fs, root, owner).await;
    };
    if fs.stat(&root.log_record().parent()).await?.is_some() {
        return refused(
            "a server of Grampus has used the directory since it was adopted; use `grampus release`, which keeps what \
             was written",
        );
    }
    root.remove_entry(fs, layout::identity::MARKER).await?;
    root.remove_entry(fs, layout::identity::MARKER_BEING_WRITTEN).await?;
    for relative in record.removed_regions.iter().chain(&record.file_lists) {
        root.move_path(fs, &kept(root, relative), &root.path().join(relative)).await?;
    }
    restore_master_data(fs, root).await?;
    for name in &record.log_dirs {
        let from = root.wals_dir().join(&format!("{name}{SPLITTING}"));
        root.move_path(fs, &from, &root.wals_dir().join(name)).await?;
    }
    // The record goes last: without it, the undo could not be repeated.
    crate::record::remove_kept(fs, root).await?;
    open_to_hbase(fs, root).await
}

/// Completes an undo that was interrupted after it removed the record. It had restored everything.
async fn undo_without_record(fs: &dyn FileSystem, root: &RootDir, owner: Owner) -> Result<()> {
    if owner == Owner::Grampus {
        return refused("the directory was not adopted from HBase; use `grampus release`");
    }
    if !list(fs, &crate::record::dir(root)).await?.is_empty() {
        return refused(format!(
            "the record of the adoption is missing, but not the files that it describes: restore {ADOPTION_DIR}/record"
        ));
    }
    open_to_hbase(fs, root).await
}

async fn open_to_hbase(fs: &dyn FileSystem, root: &RootDir) -> Result<()> {
    root.remove_entry(fs, ADOPTION_DIR).await?;
    Ok(root.open_to_hbase(fs).await?)
}

async fn restore_master_data(fs: &dyn FileSystem, root: &RootDir) -> Result<()> {
    let (master_data, kept) = (root.master_data(), kept_master_data(root));
    if fs.stat(&kept).await?.is_none() {
        return Ok(());
    }
    fs.delete(master_data.path()).await?;
    match list(fs, &kept).await?.is_empty() {
        // HBase had none.
        true => fs.delete(&kept).await?,
        false => root.move_path(fs, &kept, master_data.path()).await?,
    }
    Ok(fs.sync_dir(root.path()).await?)
}
