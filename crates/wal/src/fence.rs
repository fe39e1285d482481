//! Fencing the logs of another process, which may be dead or only paused.

use base::env::Random;
use fs::{AccessPattern, Fence, FilePath, FileReader, FileSystem, Result};

use crate::mark::{TRAILER_TAIL_LEN, trailer_len};

/// End of the name of a copy that is not complete. The name is not that of a log.
const COPY_SUFFIX: &str = ".copy";
/// Bytes to copy at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// Fences all logs in a directory that no process can find by its old name any more. When this
/// returns, the entries of these logs are durable, and no process can add one.
///
/// The second part matters if the process was only paused. Its unfinished appends may reach a log
/// that it has open. They are never acknowledged. But if the log is read twice, because the first
/// server that recovered a region died too, the second reader would find entries that the first did
/// not. The region has used their sequence ids for other edits by then.
///
/// A missing directory has no logs.
///
/// # Errors
/// Errors of the file system; then the call may be repeated.
pub async fn fence_logs(fs: &dyn FileSystem, random: &dyn Random, dir: &FilePath) -> Result<()> {
    let files = match fs.list(dir).await {
        Err(fs::Error::NotFound { .. }) => return Ok(()),
        files => files?,
    };
    for file in files.iter().filter(|file| !file.is_dir) {
        let path = dir.join(&file.name);
        if file.name.ends_with(COPY_SUFFIX) {
            fs.delete(&path).await?;
            continue;
        }
        match fence_log(fs, random, &path).await {
            Ok(()) => {}
            // The log was archived meanwhile, by a task that knew that no region needs it.
            Err(fs::Error::NotFound { .. }) if fs.stat(&path).await?.is_none() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn fence_log(fs: &dyn FileSystem, random: &dyn Random, log: &FilePath) -> Result<()> {
    if fs.fence(log).await? == Fence::Complete {
        return Ok(());
    }
    let reader = fs.open(log).await?;
    // Nothing follows a trailer.
    if has_trailer(&*reader).await? { Ok(()) } else { replace_by_copy(fs, random, &*reader).await }
}

async fn has_trailer(log: &dyn FileReader) -> Result<bool> {
    match log.len().checked_sub(TRAILER_TAIL_LEN as u64) {
        Some(tail_at) => Ok(trailer_len(&log.read_at(tail_at, TRAILER_TAIL_LEN).await?).is_some()),
        None => Ok(false),
    }
}

/// Replaces a log by a copy. A process that has the log open continues to write the replaced file,
/// which no process reads.
///
/// The name of the copy is random: a master that was paused while it copied must not rename the
/// unfinished copy of its successor.
async fn replace_by_copy(fs: &dyn FileSystem, random: &dyn Random, log: &dyn FileReader) -> Result<()> {
    let dir = log.path().parent();
    let copy = dir.join(&format!("{:016x}{COPY_SUFFIX}", random.next_u64()));
    let mut writer = fs.create(&copy, AccessPattern::Data).await?;
    while writer.len() < log.len() {
        let len = (log.len() - writer.len()).min(PIECE_BYTES) as usize;
        writer.append(log.read_at(writer.len(), len).await?).await?;
    }
    writer.sync(fs::SyncLevel::Disk).await?;
    writer.close().await?;
    fs.rename(&copy, log.path()).await?;
    fs.sync_dir(&dir).await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base::testing;
    use bytes::Bytes;
    use fs::memory::MemoryFs;
    use fs::shared::Shared;
    use fs::{FileWriter, SyncLevel};

    use super::*;

    fn random() -> std::sync::Arc<dyn Random> {
        testing::env(1).random
    }

    struct Taken {
        memory: MemoryFs,
        fs: Shared,
        dir: FilePath,
        open: Box<dyn FileWriter>,
    }

    /// A directory with a log that a process has open, after it was renamed.
    async fn taken(contents: &'static str) -> Taken {
        let memory = MemoryFs::new();
        let fs = Shared::new(Arc::new(memory.clone()));
        let (before, dir) = (FilePath::new("WALs/a"), FilePath::new("WALs/a-splitting"));
        fs.make_dirs(&before).await.unwrap();
        let mut open = fs.create(&before.join("log.1"), AccessPattern::Log).await.unwrap();
        open.append_and_sync(contents.into(), contents.len(), SyncLevel::Disk).await.unwrap();
        fs.rename(&before, &dir).await.unwrap();
        fs.sync_dir(&FilePath::new("WALs")).await.unwrap();
        Taken { memory, fs, dir, open }
    }

    #[tokio::test]
    async fn a_paused_process_cannot_add_to_a_fenced_log() {
        let Taken { memory, fs, dir, mut open } = taken("entries").await;
        fence_logs(&fs, &*random(), &dir).await.unwrap();
        open.append(" of a paused process".into()).await.unwrap();
        open.sync(SyncLevel::Disk).await.unwrap_err();
        assert_eq!(memory.contents(&dir.join("log.1")).unwrap(), b"entries");
        for choice in [0, 1, u64::MAX] {
            let after = memory.crash(&mut || choice);
            assert_eq!(after.contents(&dir.join("log.1")).unwrap(), b"entries", "with the choice {choice}");
        }
    }

    #[tokio::test]
    async fn a_log_with_a_trailer_is_not_copied() {
        let Taken { memory, fs, dir, mut open } = taken("entries\0\0\0\0LAWP").await;
        fence_logs(&fs, &*random(), &dir).await.unwrap();
        open.append("x".into()).await.unwrap();
        assert_eq!(memory.contents(&dir.join("log.1")).unwrap(), b"entries\0\0\0\0LAWPx");
    }

    #[tokio::test]
    async fn an_unfinished_copy_of_another_master_is_removed() {
        let Taken { memory, fs, dir, open } = taken("entries").await;
        memory.put(&dir.join("00ff.copy"), Bytes::from_static(b"ent"));
        fence_logs(&fs, &*random(), &dir).await.unwrap();
        drop(open);
        let names: Vec<String> = fs.list(&dir).await.unwrap().into_iter().map(|file| file.name).collect();
        assert_eq!(names, ["log.1"]);
        assert_eq!(memory.contents(&dir.join("log.1")).unwrap(), b"entries");
    }
}
