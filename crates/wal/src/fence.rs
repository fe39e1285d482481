//! Fencing the logs of another process, which may be dead or only paused.

use base::env::Random;
use fs::{AccessPattern, Fence, FilePath, FileReader, FileSystem, Result};
use futures_util::stream::{self, StreamExt};
use tracing::warn;

use crate::header::{self, DecodedHeader, HEADER_LEN_MAX, LogFormat};
use crate::mark::{TRAILER_LEN, TRAILER_TAIL_LEN, trailer, trailer_len};
use crate::name::{LogKind, META_SUFFIX};

/// End of the name of a copy that is not complete. The name is not that of a log.
const COPY_SUFFIX: &str = ".copy";
/// Bytes to copy at a time.
const PIECE_BYTES: u64 = 1 << 20;
/// Logs that are fenced at the same time. On HDFS, each open log takes some seconds.
const CONCURRENT_FENCES: usize = 16;

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
/// The first error of the file system; then the call may be repeated. All other logs are fenced, so
/// that one log does not delay them.
pub async fn fence_logs(fs: &dyn FileSystem, random: &dyn Random, dir: &FilePath) -> Result<()> {
    fence(fs, random, dir, None).await
}

/// The same for the logs of one kind. Two calls for different kinds can run at the same time.
///
/// # Errors
/// As for [`fence_logs`].
pub async fn fence_logs_of(
    fs: &dyn FileSystem,
    random: &dyn Random,
    dir: &FilePath,
    kind: LogKind,
) -> Result<()> {
    fence(fs, random, dir, Some(kind)).await
}

/// Fences the logs of one kind, or of both kinds if `kind` is `None`.
async fn fence(
    fs: &dyn FileSystem,
    random: &dyn Random,
    dir: &FilePath,
    kind: Option<LogKind>,
) -> Result<()> {
    let files = match fs.list(dir).await {
        Err(fs::Error::NotFound { .. }) => return Ok(()),
        files => files?,
    };
    let is_wanted = |name: &str| kind.is_none_or(|kind| kind == kind_of(name));
    let files = files.iter().filter(|file| !file.is_dir && is_wanted(&file.name));
    let fences: Vec<_> = files.map(|file| fence_file(fs, random, dir.join(&file.name))).collect();
    let mut outcomes = stream::iter(fences).buffer_unordered(CONCURRENT_FENCES);
    let mut fenced = Ok(());
    while let Some(outcome) = outcomes.next().await {
        match outcome {
            Err(error) if fenced.is_err() => warn!(%error, "cannot fence another log"),
            outcome => fenced = fenced.and(outcome),
        }
    }
    fenced
}

/// The kind of a log or of its copy. A copy has the kind of its log, so that a call for the other
/// kind does not delete it.
fn kind_of(name: &str) -> LogKind {
    LogKind::of(name.strip_suffix(COPY_SUFFIX).unwrap_or(name))
}

/// Fences a log, or deletes a copy that is not complete.
async fn fence_file(fs: &dyn FileSystem, random: &dyn Random, path: FilePath) -> Result<()> {
    if path.name().ends_with(COPY_SUFFIX) {
        return fs.delete(&path).await;
    }
    match fence_log(fs, random, &path).await {
        // The log was archived meanwhile, by a task that knew that no region needs it.
        Err(fs::Error::NotFound { .. }) if fs.stat(&path).await?.is_none() => Ok(()),
        fenced => fenced,
    }
}

async fn fence_log(fs: &dyn FileSystem, random: &dyn Random, log: &FilePath) -> Result<()> {
    if fs.fence(log).await? == Fence::Complete {
        return Ok(());
    }
    let reader = fs.open(log).await?;
    // Nothing follows a trailer.
    if has_trailer(&*reader).await? { Ok(()) } else { replace_by_copy(fs, random, &*reader).await }
}

/// Whether the log ends with its trailer. The whole trailer of our own logs is compared, because
/// the value of a torn last entry may end like a trailer of HBase, but not with the log's salt.
async fn has_trailer(log: &dyn FileReader) -> Result<bool> {
    let head = log.read_at(0, log.len().min(HEADER_LEN_MAX as u64) as usize).await?;
    let salt = match header::decode(&head, log.len()) {
        DecodedHeader::Header { format: LogFormat::Checked { salt, .. }, .. } => Some(salt),
        DecodedHeader::Header { .. } => None,
        DecodedHeader::Torn | DecodedHeader::Damaged(_) | DecodedHeader::Unsupported(_) => return Ok(false),
    };
    let len = if salt.is_some() { TRAILER_LEN } else { TRAILER_TAIL_LEN };
    let Some(tail_at) = log.len().checked_sub(len as u64) else { return Ok(false) };
    let tail = log.read_at(tail_at, len).await?;
    Ok(match salt {
        Some(salt) => tail == trailer(salt, tail_at),
        None => trailer_len(&tail).is_some(),
    })
}

/// Replaces a log by a copy. A process that has the log open continues to write the replaced file,
/// which no process reads.
///
/// The name of the copy is random: a master that was paused while it copied must not rename the
/// unfinished copy of its successor.
async fn replace_by_copy(fs: &dyn FileSystem, random: &dyn Random, log: &dyn FileReader) -> Result<()> {
    let dir = log.path().parent();
    let suffix = match LogKind::of(log.path().name()) {
        LogKind::Meta => META_SUFFIX,
        LogKind::User => "",
    };
    let copy = dir.join(&format!("{:016x}{suffix}{COPY_SUFFIX}", random.next_u64()));
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
    use std::time::Duration;

    use base::testing;
    use bytes::Bytes;
    use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
    use fs::memory::MemoryFs;
    use fs::shared::Shared;
    use fs::{FileWriter, SyncLevel};

    use super::*;
    use crate::header::Previous;
    use crate::mark::Salt;

    const SALT: Salt = Salt(*b"saltsalt");

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
    async fn taken(contents: impl Into<Bytes>) -> Taken {
        let contents: Bytes = contents.into();
        let memory = MemoryFs::new();
        let fs = Shared::new(Arc::new(memory.clone()));
        let (before, dir) = (FilePath::new("WALs/a"), FilePath::new("WALs/a-splitting"));
        fs.make_dirs(&before).await.unwrap();
        let mut open = fs.create(&before.join("log.1"), AccessPattern::Log).await.unwrap();
        open.append_and_sync(contents.clone(), contents.len(), SyncLevel::Disk).await.unwrap();
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

    /// A log with these bytes as its entries.
    fn log_of(entries: &[u8]) -> Vec<u8> {
        [&header::encode(SALT, Previous::NONE), entries].concat()
    }

    /// Whether a process that has the log open can add to it after the fence.
    async fn can_be_added_to(contents: Vec<u8>) -> bool {
        let Taken { memory, fs, dir, mut open } = taken(contents.clone()).await;
        fence_logs(&fs, &*random(), &dir).await.unwrap();
        open.append("x".into()).await.unwrap();
        let now = memory.contents(&dir.join("log.1")).unwrap();
        assert!(now.starts_with(&contents));
        now.len() > contents.len()
    }

    #[tokio::test]
    async fn only_a_log_with_a_trailer_is_not_copied() {
        let open = log_of(b"entries");
        let trailer = crate::mark::trailer(SALT, open.len() as u64);
        assert!(!can_be_added_to(open.clone()).await);
        assert!(can_be_added_to([&open[..], &trailer].concat()).await);
        // The value of the last entry, which is torn, ends like a trailer of HBase.
        assert!(!can_be_added_to(log_of(b"entry\0\0\0\0LAWP")).await);
        // The same with a copy of the trailer of another log.
        let other = crate::mark::trailer(Salt(*b"another!"), open.len() as u64);
        assert!(!can_be_added_to([&open[..], &other].concat()).await);
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

    #[tokio::test(start_paused = true)]
    async fn all_logs_are_fenced_at_once_although_one_cannot_be() {
        let env = testing::env(1);
        let Taken { memory, dir, open, .. } = taken(log_of(b"entries")).await;
        for log in ["log.2", "log.3", "log.4"] {
            memory.put(&dir.join(log), log_of(b"entries"));
        }
        let slow = Rule::new(Fault::Delay(Duration::from_secs(2))).on(Operation::Fence);
        let failing = Rule::new(Fault::Fail).on(Operation::Fence).at("log.2");
        let faulty = Faulty::new(Arc::new(memory), Plan::new(env.clock.clone()).rule(failing).rule(slow));
        let begun = env.clock.monotonic();
        let shared = Shared::new(Arc::new(faulty.clone()));
        let error = fence_logs(&shared, &*random(), &dir).await.unwrap_err();
        assert!(error.to_string().contains("log.2"), "{error}");
        assert_eq!(faulty.calls(Operation::Fence), 4);
        assert!(env.clock.monotonic() - begun < Duration::from_secs(3), "the delays add up");
        drop(open);
    }

    #[tokio::test]
    async fn the_logs_of_each_kind_are_fenced_without_those_of_the_other() {
        let Taken { memory, fs, dir, open } = taken("entries").await;
        let (user_copy, meta_copy) = ("00ff.copy", "00ff.meta.copy");
        for name in ["log.2.meta", user_copy, meta_copy] {
            memory.put(&dir.join(name), "entries");
        }
        let faulty = Faulty::new(Arc::new(fs), Plan::new(testing::env(1).clock));
        for (kind, left) in [
            (LogKind::Meta, vec![user_copy, "log.1", "log.2.meta"]),
            (LogKind::User, vec!["log.1", "log.2.meta"]),
        ] {
            let before = faulty.calls(Operation::Fence);
            fence_logs_of(&faulty, &*random(), &dir, kind).await.unwrap();
            assert_eq!(faulty.calls(Operation::Fence), before + 1, "{kind:?}");
            let files = faulty.list(&dir).await.unwrap();
            let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
            assert_eq!(names, left, "{kind:?}");
        }
        drop(open);
    }
}
