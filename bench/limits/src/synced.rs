//! Groups of requests that one write past the page cache, as long as they are and synced, is for: what a log costs at
//! least. All who have connected are in each group, so that none waits for a second one.

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

/// What a file is written in past the page cache.
const BLOCK_LEN: usize = 4096;
/// Zeros that are there beforehand: a sync of what lies in them has nothing else to write.
const RESERVED_LEN: u64 = 64 << 20;

/// Nobody waits much longer for those who have nothing more to ask.
const PATIENCE: Duration = Duration::from_millis(100);
/// Blocks of one write at most, the kernel's limit for pieces of one.
const BLOCKS_MAX: usize = 1024;

/// A block that the disk can take from where it is.
#[repr(align(4096))]
struct Block([u8; BLOCK_LEN]);

/// Requests that wait for a sync, and who syncs.
pub struct Log {
    waiting: Mutex<Waiting>,
    to_disk: Sender<Group>,
}

#[derive(Default)]
struct Waiting {
    connections: usize,
    group: Group,
    // How many groups there were.
    groups: u64,
}

/// Who waits for one sync, and how many bytes they sent.
#[derive(Default)]
struct Group {
    bytes: usize,
    members: Vec<oneshot::Sender<()>>,
}

/// One who may wait, for as long as he is connected.
pub struct Member(Arc<Log>);

impl Log {
    /// Begins a log in a file that is made for it. Who waits is told by tasks of the runtime this is called in.
    ///
    /// # Errors
    /// If the file cannot be made.
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
                // Who broke off is not there to be told.
                group.members.into_iter().for_each(|one| one.send(()).unwrap_or(()));
            }
        });
        let log = Arc::new(Log { waiting: Mutex::default(), to_disk });
        let patient = Arc::clone(&log);
        tokio::spawn(async move { patient.sync_late_ones().await });
        Ok(log)
    }

    /// Syncs groups that never become whole. A look now and then takes nothing from those who are in time, which a timer for each
    /// group would.
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

    /// Takes part, as one more who is waited for.
    pub fn join(self: &Arc<Log>) -> Member {
        self.waiting().connections += 1;
        Member(Arc::clone(self))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the group to the disk if all are in it.
    fn sync_if_whole(&self, waiting: &mut Waiting) {
        if waiting.group.members.len() >= waiting.connections {
            self.sync(waiting);
        }
    }

    fn sync(&self, waiting: &mut Waiting) {
        if !waiting.group.members.is_empty() {
            waiting.groups += 1;
            // The disk's thread ends with this only.
            let _ = self.to_disk.send(mem::take(&mut waiting.group));
        }
    }
}

impl Member {
    /// Waits until a sync that begins behind this call is over, of so many bytes and what others sent.
    pub async fn synced(&self, bytes: usize) {
        let (done, synced) = oneshot::channel();
        {
            let mut waiting = self.0.waiting();
            waiting.group.bytes += bytes;
            waiting.group.members.push(done);
            self.0.sync_if_whole(&mut waiting);
        }
        // An error is the end of the disk's thread, which has said why.
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

/// Makes a file of zeros that have been written.
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
                eprintln!("limits: a group could not be written: {written:?}");
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

    /// A file that is gone with the test.
    struct Scratch(std::path::PathBuf);

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[tokio::test]
    async fn a_group_is_synced_when_all_are_in_it_or_patience_ends() {
        let file = Scratch(std::env::temp_dir().join(format!("limits.{}", std::process::id())));
        // Where the system's directory for such files cannot be written to past the page cache.
        let Ok(log) = Log::begin(&file.0) else { return };
        let (one, other) = (log.join(), log.join());
        // Both: nobody's patience is needed, which is told by the count of groups.
        tokio::join!(one.synced(10), other.synced(BLOCK_LEN + 1));
        assert_eq!(log.waiting().groups, 1);
        // One alone, while the other has nothing to ask.
        one.synced(10).await;
        assert_eq!(log.waiting().groups, 2);
        drop(other);
        one.synced(BLOCK_LEN * (BLOCKS_MAX + 1)).await;
        let written = std::fs::metadata(&file.0).unwrap().len();
        assert_eq!((log.waiting().groups, written), (3, RESERVED_LEN));
    }
}
