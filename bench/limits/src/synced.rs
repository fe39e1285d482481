//! The minimum cost of a log: each group of requests is one synced write with direct I/O, of the
//! same length as the requests. A group has one request of each connection, so that no connection
//! waits for a second group.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::mem;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::{IoSlice, ReadWriteFlags, pwritev2};
use tokio::sync::{mpsc, oneshot};

/// Block size of direct I/O.
const BLOCK_LEN: usize = 4096;
/// Preallocated zeros: a sync within them does not need to write metadata.
const RESERVED_LEN: u64 = 64 << 20;

/// Limit of the wait for connections that send nothing.
const PATIENCE: Duration = Duration::from_millis(100);
/// Maximum number of blocks of one write: the kernel's limit for the pieces of a write.
const BLOCKS_MAX: usize = 1024;

/// A block that is aligned for direct I/O.
#[repr(align(4096))]
struct Block([u8; BLOCK_LEN]);

/// Requests that wait for a sync, and the channel to the thread that syncs.
pub struct Log {
    waiting: Mutex<Waiting>,
    to_disk: Sender<Group>,
}

#[derive(Default)]
struct Waiting {
    connections: usize,
    group: Group,
    // Number of groups so far.
    groups: u64,
}

/// The waiters for one sync, and the bytes of their requests.
#[derive(Default)]
struct Group {
    bytes: usize,
    members: Vec<oneshot::Sender<()>>,
}

/// A connection that may wait, until it is dropped.
pub struct Member(Arc<Log>);

impl Log {
    /// Begins a log in a new file. Tasks of the calling runtime notify the waiters.
    ///
    /// # Errors
    /// If the file cannot be created.
    #[allow(clippy::disallowed_methods, reason = "a bare server is what this is about")]
    pub fn begin(path: &Path) -> io::Result<Arc<Log>> {
        reserve(path)?;
        let direct = i32::try_from(OFlags::DIRECT.bits()).unwrap_or_default();
        let file = OpenOptions::new().write(true).custom_flags(direct).open(path)?;
        let (to_disk, groups) = channel();
        let (done, mut synced) = mpsc::unbounded_channel::<Group>();
        std::thread::spawn(move || sync_all(&file, &groups, &done));
        tokio::spawn(async move {
            while let Some(group) = synced.recv().await {
                // The waiter is gone if its connection closed.
                group.members.into_iter().for_each(|one| one.send(()).unwrap_or(()));
            }
        });
        let log = Arc::new(Log { waiting: Mutex::default(), to_disk });
        let patient = Arc::clone(&log);
        tokio::spawn(async move { patient.sync_late_ones().await });
        Ok(log)
    }

    /// Syncs groups that stay incomplete. A periodic check costs complete groups nothing; a timer
    /// per group would.
    async fn sync_late_ones(&self) {
        let mut looks = tokio::time::interval(PATIENCE);
        let mut seen = 0;
        loop {
            looks.tick().await;
            let mut waiting = self.waiting();
            if waiting.groups == seen {
                self.sync(&mut waiting);
            }
            seen = waiting.groups;
        }
    }

    /// Adds a connection to the groups.
    pub fn join(self: &Arc<Log>) -> Member {
        self.waiting().connections += 1;
        Member(Arc::clone(self))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs the group if all connections are in it.
    fn sync_if_whole(&self, waiting: &mut Waiting) {
        if waiting.group.members.len() >= waiting.connections {
            self.sync(waiting);
        }
    }

    fn sync(&self, waiting: &mut Waiting) {
        if !waiting.group.members.is_empty() {
            waiting.groups += 1;
            // The sync thread ends only with this log.
            let _ = self.to_disk.send(mem::take(&mut waiting.group));
        }
    }
}

impl Member {
    /// Waits for the end of a sync that begins after this call and includes these bytes.
    pub async fn synced(&self, bytes: usize) {
        let (done, synced) = oneshot::channel();
        {
            let mut waiting = self.0.waiting();
            waiting.group.bytes += bytes;
            waiting.group.members.push(done);
            self.0.sync_if_whole(&mut waiting);
        }
        // An error means that the sync thread has ended, which it has reported.
        let _ = synced.await;
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting();
        waiting.connections -= 1;
        self.0.sync_if_whole(&mut waiting);
    }
}

/// Creates a file of written zeros.
#[allow(clippy::disallowed_methods, reason = "a bare server is what this is about")]
fn reserve(path: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    let zeros = vec![0; 1 << 20];
    for _ in 0..RESERVED_LEN / zeros.len() as u64 {
        file.write_all(&zeros)?;
    }
    file.sync_all()
}

fn sync_all(file: &File, groups: &Receiver<Group>, done: &mpsc::UnboundedSender<Group>) {
    let blocks: Vec<_> = (0..BLOCKS_MAX).map(|_| Block([b'v'; BLOCK_LEN])).collect();
    let pieces: Vec<_> = blocks.iter().map(|block| IoSlice::new(&block.0)).collect();
    let mut offset = 0;
    while let Ok(group) = groups.recv() {
        let mut left = group.bytes.div_ceil(BLOCK_LEN);
        while left > 0 {
            let count = left.min(BLOCKS_MAX);
            if offset + (count * BLOCK_LEN) as u64 > RESERVED_LEN {
                offset = 0;
            }
            let written = pwritev2(file, &pieces[..count], offset, ReadWriteFlags::DSYNC);
            if written != Ok(count * BLOCK_LEN) {
                eprintln!("limits: cannot write a group: {written:?}");
                std::process::exit(1);
            }
            offset += (count * BLOCK_LEN) as u64;
            left -= count;
        }
        let _ = done.send(group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that is removed at the end of the test.
    struct Scratch(std::path::PathBuf);

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[tokio::test]
    async fn a_group_is_synced_when_all_are_in_it_or_patience_ends() {
        let file = Scratch(std::env::temp_dir().join(format!("limits.{}", std::process::id())));
        // The temporary directory may not support direct I/O.
        let Ok(log) = Log::begin(&file.0) else { return };
        let (one, other) = (log.join(), log.join());
        // Both connections are in the group, so there is no wait: the count of groups shows this.
        tokio::join!(one.synced(10), other.synced(BLOCK_LEN + 1));
        assert_eq!(log.waiting().groups, 1);
        // One connection sends alone, while the other sends nothing.
        one.synced(10).await;
        assert_eq!(log.waiting().groups, 2);
        drop(other);
        one.synced(BLOCK_LEN * (BLOCKS_MAX + 1)).await;
        let written = std::fs::metadata(&file.0).unwrap().len();
        assert_eq!((log.waiting().groups, written), (3, RESERVED_LEN));
    }
}
