//! One log file that is being written: a header, commit groups, and finally a trailer. While the
//! file is open, an end mark follows the last group.
//!
//! Invariant: `durable` is the end of the last synced group, and the next group states it.

use std::time::Duration;

use bytes::Bytes;
use fs::{FilePath, FileSystem, FileWriter, LONG_APPEND_BYTES, SyncLevel};

use crate::entry;
use crate::header::{self, HEADER_LEN, Previous};
use crate::key::{KEY_LEN_MAX, encoded_len};
use crate::mark::{END_MARK, Salt, idle_end_mark, trailer};
use crate::{CELLS_LEN_MAX, Edit};

/// A log file that is being written.
pub(crate) struct Segment {
    writer: Box<dyn FileWriter>,
    salt: Salt,
    number: u64,
    durable: u64,
    reserved_to: u64,
    /// When it was opened, on the monotonic clock.
    pub(crate) opened: Duration,
}

/// Whether `edit` is small enough for an entry.
pub(crate) fn fits_entry(edit: &Edit) -> bool {
    edit.cells.len() <= CELLS_LEN_MAX && encoded_len(edit, true) <= KEY_LEN_MAX
}

impl Segment {
    /// Begins a new log in an empty file. When this returns, its header and name are durable.
    pub(crate) async fn begin(
        fs: &dyn FileSystem,
        mut writer: Box<dyn FileWriter>,
        salt: Salt,
        number: u64,
        previous: Previous,
        now: Duration,
    ) -> fs::Result<Segment> {
        assert!(number > previous.number, "the numbers of logs ascend");
        // The first end mark is written with the header, so that HBase never finds zeros where it
        // expects an entry.
        let start = Bytes::from([&header::encode(salt, previous)[..], &END_MARK].concat());
        writer.append_with_end(start, HEADER_LEN).await?;
        writer.sync(SyncLevel::Disk).await?;
        fs.sync_dir(&writer.path().parent()).await?;
        let durable = writer.len();
        debug_assert_eq!(durable, HEADER_LEN as u64);
        Ok(Segment { writer, salt, number, durable, reserved_to: durable, opened: now })
    }

    pub(crate) fn path(&self) -> &FilePath {
        self.writer.path()
    }

    /// What the next log's header states about this log.
    pub(crate) fn as_previous(&self) -> Previous {
        Previous { number: self.number, durable: self.durable }
    }

    /// Bytes written and synced.
    pub(crate) fn len(&self) -> u64 {
        self.durable
    }

    /// Replicas that the storage did not create.
    pub(crate) fn missing_replicas(&self) -> usize {
        self.writer.missing_replicas()
    }

    /// Whether it has no entries.
    pub(crate) fn is_empty(&self) -> bool {
        self.durable == HEADER_LEN as u64
    }

    /// Encodes the logged edits of a group and an end mark into `out`. Returns the length before
    /// the mark.
    pub(crate) fn encode_group(&self, out: &mut Vec<u8>, group: &[Edit]) -> usize {
        out.clear();
        for edit in group.iter().filter(|edit| edit.logged && fits_entry(edit)) {
            let durable = out.is_empty().then_some(self.durable);
            entry::encode(out, edit, self.salt, self.writer.len(), durable);
        }
        let content_len = out.len();
        out.extend_from_slice(&END_MARK);
        content_len
    }

    /// Writes and syncs a group that [`Segment::encode_group`] encoded. After
    /// [`fs::Error::NoSpace`] nothing was written, and the call may be retried. After any other
    /// error the segment must not be used any more.
    pub(crate) async fn commit(
        &mut self,
        group: Bytes,
        content_len: usize,
        durability: SyncLevel,
        reserve: u64,
    ) -> fs::Result<()> {
        debug_assert!(content_len > 0 && content_len < group.len(), "a group has entries, then an end mark");
        let start = self.writer.len();
        self.reserve_for(group.len() as u64, reserve).await?;
        self.writer.append_and_sync(group, content_len, durability).await?;
        debug_assert!(self.writer.len() == start + content_len as u64, "only entries make a log longer");
        self.durable = self.writer.len();
        Ok(())
    }

    // Reserved zeros make syncs cheaper but are optional: on a full disk the group itself may still
    // fit.
    async fn reserve_for(&mut self, bytes: u64, reserve: u64) -> fs::Result<()> {
        let len = self.writer.len();
        if reserve == 0 || bytes >= LONG_APPEND_BYTES as u64 || len + bytes <= self.reserved_to {
            return Ok(());
        }
        let wanted = bytes.max(reserve);
        match self.writer.reserve(wanted).await {
            Ok(()) => self.reserved_to = len + wanted,
            Err(fs::Error::NoSpace { .. } | fs::Error::VolumeFull { .. }) => (),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Writes a durability mark for the last group, without a sync.
    pub(crate) async fn write_durability_mark(&mut self) -> fs::Result<()> {
        self.writer.append_with_end(idle_end_mark(self.salt, self.durable), 0).await
    }

    /// Ends the log with a trailer and closes it.
    pub(crate) async fn finish(mut self) -> fs::Result<()> {
        debug_assert!(self.writer.len() == self.durable, "all of a log is durable before it ends");
        self.writer.append(trailer(self.salt, self.durable)).await?;
        self.writer.sync(SyncLevel::Disk).await?;
        self.writer.close().await
    }
}
