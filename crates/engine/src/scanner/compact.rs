//! The cells that a flush or a compaction writes: those of its inputs that are retained.

use std::sync::Arc;

use cell::{Cell, CellOrder};
use hfile::{Miss, Stop};

use crate::error::Result;
use crate::memstore::Memstore;
use crate::scanner::compaction_blocks::CompactionBlocks;
use crate::scanner::load::{BlockLoader, CachePolicy, ReadAhead};
use crate::scanner::matcher::{Major, Match, Matcher};
use crate::scanner::merge::Merge;
use crate::scanner::rules::FamilyRules;
use crate::scanner::source::Source;
use crate::store::StoreFile;

/// Cells between two pauses for other tasks.
const SLICE_CELLS: u32 = 512;

/// How delete markers are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// Retained, because other files may hold cells that they hide: flushes, and compactions of
    /// some files.
    Minor,
    /// Dropped once they are not needed: compactions of all files of the store.
    Major,
}

/// Merges memstores and files into the cells that are retained, in order.
///
/// All cells that a reader at the smallest read point or later may see are retained.
pub struct CompactionScanner {
    merge: Merge,
    matcher: Matcher,
    row: Vec<u8>,
    // Whether a row has begun: the first row may be empty.
    in_row: bool,
    // The verdict on the merge's current cell, which was judged. It determines the next move.
    verdict: Option<Match>,
    slice_left: u32,
    blocks: CompactionBlocks,
    read_ahead: ReadAhead,
    _files: Vec<Arc<StoreFile>>,
}

impl CompactionScanner {
    /// A scanner of `memstores` and `files` of one store. `files` are sorted from the oldest to the
    /// newest, as in a view. `smallest_read_point` is the smallest one of all readers; `now_ms` is
    /// the time by which cells expire.
    #[allow(clippy::too_many_arguments)] // Independent values, and only two callers.
    pub fn new(
        memstores: &[Arc<Memstore>],
        files: &[Arc<StoreFile>],
        order: CellOrder,
        rules: &FamilyRules,
        retention: Retention,
        smallest_read_point: u64,
        now_ms: i64,
        loader: Arc<BlockLoader>,
    ) -> CompactionScanner {
        let major = (retention == Retention::Major).then(|| Major { earliest_put: earliest_put(files) });
        let matcher = Matcher::compaction(rules, smallest_read_point, major, now_ms);
        let memstores = memstores.iter().map(|memstore| Source::memstore(memstore.cursor(), u64::MAX));
        let from_files = files.iter().rev().map(|file| Source::file(file, u64::MAX, None));
        let mut merge = Merge::new(order, memstores.chain(from_files).collect());
        merge.seek_row(b"");
        CompactionScanner {
            merge,
            matcher,
            row: Vec::new(),
            in_row: false,
            verdict: None,
            slice_left: SLICE_CELLS,
            blocks: CompactionBlocks::new(loader, files),
            read_ahead: ReadAhead::default(),
            _files: files.to_vec(),
        }
    }

    /// The next cell to write; `None` at the end.
    ///
    /// # Errors
    /// [`Corrupt`](crate::Error::Corrupt), [`Fs`](crate::Error::Fs),
    /// [`Unsupported`](crate::Error::Unsupported).
    pub async fn next(&mut self) -> Result<Option<Cell<'_>>> {
        loop {
            self.slice_left -= 1;
            if self.slice_left == 0 {
                self.slice_left = SLICE_CELLS;
                tokio::task::yield_now().await;
            }
            match self.step() {
                Ok(true) => return Ok(self.merge.cell()),
                Ok(false) => {}
                Err(Stop::Miss(miss)) => self.load(&miss).await?,
                Err(Stop::Failed(error)) => return Err(error.into()),
            }
        }
    }

    /// Whether one of the files is read at a cached block, so that the cells written now are worth
    /// caching.
    pub fn is_warm(&self) -> bool {
        self.blocks.is_warm()
    }

    /// Moves to the next cell and judges it. Returns whether it is to be written, or the end is
    /// reached.
    fn step(&mut self) -> std::result::Result<bool, Stop> {
        if let Some(verdict) = self.verdict.take() {
            self.advance(verdict);
        }
        self.merge.settle(&self.blocks)?;
        self.blocks.release_taken();
        let Some(cell) = self.merge.cell() else {
            return Ok(true);
        };
        if !self.in_row || self.row != cell.row() {
            self.in_row = true;
            self.row.clear();
            self.row.extend_from_slice(cell.row());
            self.matcher.begin_row();
        }
        let verdict = self.matcher.check(&cell);
        let lives =
            matches!(verdict, Match::Include | Match::IncludeAndNextColumn | Match::IncludeAndNextRow);
        self.verdict = Some(verdict);
        Ok(lives)
    }

    fn advance(&mut self, verdict: Match) {
        match verdict {
            Match::Include | Match::Skip => self.merge.next(),
            Match::IncludeAndNextColumn | Match::NextColumn => self.merge.pass_column(self.matcher.hint()),
            Match::IncludeAndNextRow | Match::NextRow => self.merge.pass_row(),
        }
    }

    async fn load(&mut self, miss: &Miss) -> Result<()> {
        let loader = self.blocks.loader().clone();
        for missed in &miss.blocks {
            self.blocks.drop_before(missed.file.file_id(), missed.offset);
        }
        for block in loader.load_missed(miss, Some(&mut self.read_ahead), CachePolicy::Compaction).await? {
            self.blocks.supply(block);
        }
        Ok(())
    }
}

/// A timestamp that no put in `files` precedes. Files without the information count as holding the
/// oldest possible put.
fn earliest_put(files: &[Arc<StoreFile>]) -> i64 {
    let each = files.iter().map(|file| file.reader().info().earliest_put_ts.unwrap_or(i64::MIN));
    each.min().unwrap_or(i64::MIN)
}
