//! The cells that a flush or a compaction writes: those of its inputs that live on.

use std::sync::Arc;

use cell::{Cell, CellOrder};
use hfile::{Miss, Stop};

use crate::error::Result;
use crate::memstore::Memstore;
use crate::scanner::load::{BlockLoader, Keep, Runs};
use crate::scanner::matcher::{Major, Match, Matcher};
use crate::scanner::merge::Merge;
use crate::scanner::rules::FamilyRules;
use crate::scanner::source::Source;
use crate::scanner::watched::WatchedBlocks;
use crate::store::StoreFile;

/// Cells between two breaks for others.
const SLICE_CELLS: u32 = 512;

/// What becomes of delete markers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// They stay: other files may hold what they hide. Flushes, and compactions of some files.
    Minor,
    /// They go once nothing needs them: all files of the store are read.
    Major,
}

/// Merges memstores and files into the cells that live on, in order.
///
/// Cells that a reader at the smallest read point or later could see are all there.
pub struct CompactionScanner {
    merge: Merge,
    matcher: Matcher,
    row: Vec<u8>,
    // Whether a row was met yet: the first may be the empty one.
    in_row: bool,
    // The cell under the merge was handed out; where to go from it.
    handed_out: Option<Match>,
    slice_left: u32,
    blocks: WatchedBlocks,
    runs: Runs,
    _files: Vec<Arc<StoreFile>>,
}

impl CompactionScanner {
    /// A scanner of `memstores` and `files` (from the oldest to the newest, as in a view) of one store.
    ///
    /// `smallest_read_point` is that of all readers, `now_ms` the time by which cells expire.
    #[allow(clippy::too_many_arguments)] // Each is a fact of its own, and there are two callers.
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
            handed_out: None,
            slice_left: SLICE_CELLS,
            blocks: WatchedBlocks::new(loader, files),
            runs: Runs::default(),
            _files: files.to_vec(),
        }
    }

    /// The next cell to be written, `None` behind the last.
    ///
    /// # Errors
    /// [`Corrupt`](crate::Error::Corrupt), [`Fs`](crate::Error::Fs), [`Unsupported`](crate::Error::Unsupported).
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

    /// Whether a file is read where its blocks are cached: what the cells go to is then worth caching.
    pub fn is_warm(&self) -> bool {
        self.blocks.is_warm()
    }

    /// Goes to the next cell and judges it; whether it is one to hand out, or the end.
    fn step(&mut self) -> std::result::Result<bool, Stop> {
        if let Some(verdict) = self.handed_out.take() {
            self.go_on(verdict);
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
        self.handed_out = Some(verdict);
        Ok(lives)
    }

    fn go_on(&mut self, verdict: Match) {
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
        for block in loader.load_missed(miss, Some(&mut self.runs), Keep::Indexes).await? {
            self.blocks.supply(block);
        }
        Ok(())
    }
}

/// No put in `files` is older than this. Files that do not say count as holding the oldest.
fn earliest_put(files: &[Arc<StoreFile>]) -> i64 {
    let each = files.iter().map(|file| file.reader().info().earliest_put_ts.unwrap_or(i64::MIN));
    each.min().unwrap_or(i64::MIN)
}
