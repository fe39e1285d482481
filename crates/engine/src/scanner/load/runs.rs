//! Reading ahead: which blocks are loaded beside one that was missed.

use hfile::{Block, BlockKind, BlockRef};

/// Bytes of the first run that is read ahead, doubled by each run that follows it.
const RUN_BYTES_MIN: usize = 128 << 10;
/// Bytes of a run at most: on a disk the seek is paid for, and ten scanners at once take little memory.
const RUN_BYTES_MAX: usize = 1 << 20;
/// Files whose runs a scanner follows.
const RUNS_MAX: usize = 16;

/// Which files a scanner reads front to back, and how far ahead pays there.
#[derive(Default)]
pub(crate) struct Runs {
    files: Vec<Run>,
}

struct Run {
    file_id: u64,
    // Where the last data block that was loaded ends.
    end: u64,
    // Bytes of the last run, 0 before the first.
    bytes: usize,
}

/// Blocks between the end of a run and the next data block that do not break the run: index and filter blocks lie among
/// the data.
const GAP_BYTES_MAX: u64 = 256 << 10;

impl Runs {
    /// How many bytes to read at once for a missed block: `None` if not more than the block.
    pub(super) fn bytes_for(&mut self, block: &BlockRef) -> Option<usize> {
        if block.kind != BlockKind::Data {
            return None;
        }
        let run = self.files.iter_mut().find(|run| run.file_id == block.file.file_id())?;
        let goes_on = (run.end..run.end + GAP_BYTES_MAX).contains(&block.offset);
        run.bytes = if goes_on { (run.bytes * 2).clamp(RUN_BYTES_MIN, RUN_BYTES_MAX) } else { 0 };
        (run.bytes > 0).then_some(run.bytes)
    }

    pub(super) fn loaded(&mut self, last: &Block) {
        if last.kind() != BlockKind::Data {
            return;
        }
        let end = last.offset() + u64::from(last.on_disk_len());
        match self.files.iter_mut().find(|run| run.file_id == last.file_id()) {
            Some(run) => run.end = end,
            None => {
                if self.files.len() >= RUNS_MAX {
                    self.files.remove(0);
                }
                self.files.push(Run { file_id: last.file_id(), end, bytes: 0 });
            }
        }
    }
}
