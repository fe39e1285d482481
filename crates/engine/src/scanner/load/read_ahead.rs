//! Reading ahead: which blocks are loaded together with a missed block.

use hfile::{Block, BlockKind, BlockRef};

/// Bytes of the first run that is read ahead. Each following run doubles.
const RUN_BYTES_MIN: usize = 128 << 10;
/// Maximum bytes of a run. On a disk this outweighs the seek, and ten concurrent scanners take
/// little memory.
const RUN_BYTES_MAX: usize = 1 << 20;
/// Maximum number of files that a scanner tracks.
const FILES_MAX: usize = 16;

/// The files that a scanner reads sequentially, and how far reading ahead pays there.
#[derive(Default)]
pub(crate) struct ReadAhead {
    files: Vec<FileReadAhead>,
}

struct FileReadAhead {
    file_id: u64,
    // Where the last loaded data block ends.
    end: u64,
    // Bytes of the last run, 0 before the first.
    bytes: usize,
}

/// Maximum bytes between a run and the next data block that do not end the sequence: blocks of
/// indexes and filters lie among the data.
const GAP_BYTES_MAX: u64 = 256 << 10;

impl ReadAhead {
    /// Number of bytes to read for a missed block, or `None` to read the block only.
    pub(super) fn bytes_for(&mut self, block: &BlockRef) -> Option<usize> {
        if block.kind != BlockKind::Data {
            return None;
        }
        let run = self.files.iter_mut().find(|run| run.file_id == block.file.file_id())?;
        let is_sequential = (run.end..run.end + GAP_BYTES_MAX).contains(&block.offset);
        run.bytes = if is_sequential { (run.bytes * 2).clamp(RUN_BYTES_MIN, RUN_BYTES_MAX) } else { 0 };
        (run.bytes > 0).then_some(run.bytes)
    }

    pub(super) fn record_loaded(&mut self, last: &Block) {
        if last.kind() != BlockKind::Data {
            return;
        }
        let end = last.offset() + u64::from(last.on_disk_len());
        match self.files.iter_mut().find(|run| run.file_id == last.file_id()) {
            Some(run) => run.end = end,
            None => {
                if self.files.len() >= FILES_MAX {
                    self.files.remove(0);
                }
                self.files.push(FileReadAhead { file_id: last.file_id(), end, bytes: 0 });
            }
        }
    }
}
