//! Reads single rows: [`RowReader`] for Gets with the same [`CellSelection`] (which cells of a row
//! to return), [`BatchReader`] for a batch of such Gets.

use std::sync::Arc;

use arc_swap::Guard;
use base::spent::{self, Use};
use cell::query::{CellSelection, Get, MultiGet, Scan};

use crate::error::Result;
use crate::region::Region;
use crate::scanner::{Limits, Prefetcher, ResultSink, RowPlan, StoreRowLocator, drive};
use crate::store::RegionView;

/// Reads rows of one region with one selection of cells.
///
/// [`try_read`](Self::try_read) reads a row that is small and cached, and never waits.
/// [`read`](Self::read) reads any row. Rows are read at the reader's read point, except a row that
/// only `read` can read: it is read at the newest read point. The reader then moves to the newest
/// read point for the rows after it.
///
/// A reader adds the number of its rows to the metrics when it is dropped.
pub struct RowReader<'r> {
    region: &'r Region,
    selection: &'r Arc<CellSelection>,
    view: Guard<Arc<RegionView>>,
    read_point: u64,
    plan: RowPlan,
    // Whether the selection was checked since the view was taken.
    is_checked: bool,
    // Whether `try_read` returned false for the current row.
    is_tried: bool,
    rows_read: u64,
}

impl Region {
    /// A reader of rows by `selection`. Checks nothing yet.
    #[inline(always)] // A cached Get is short, and the compiler inlines this in some builds only.
    pub fn row_reader<'r>(&'r self, selection: &'r Arc<CellSelection>) -> RowReader<'r> {
        let (view, read_point) = self.view_now();
        let plan = self.row_plan(selection);
        RowReader {
            region: self,
            selection,
            view,
            read_point,
            plan,
            is_checked: false,
            is_tried: false,
            rows_read: 0,
        }
    }

    /// A reader of the rows of `gets`, which have one selection. Checks nothing yet.
    pub fn batch_reader<'r>(&'r self, gets: &'r MultiGet) -> BatchReader<'r> {
        let rows = self.row_reader(&gets.first().selection);
        BatchReader { rows, gets, prefetcher: Prefetcher::default() }
    }

    /// The plan for reads by `selection`, with the current time.
    pub(super) fn row_plan(&self, selection: &Arc<CellSelection>) -> RowPlan {
        RowPlan::of(selection, &self.rules, self.now_ms())
    }
}

impl RowReader<'_> {
    /// Reads `row` if it is small and cached. Then its cells, if it has any, become one result of
    /// `sink`. Returns false if the row needs [`read`](Self::read); `sink` is then unchanged.
    ///
    /// # Errors
    /// As [`Region::scanner`]; also for a row that is empty or of another region, and for damaged
    /// files.
    #[inline(always)]
    pub fn try_read(&mut self, row: &[u8], sink: &mut dyn ResultSink) -> Result<bool> {
        self.try_read_located(row, &mut StoreRowLocator::default(), sink)
    }

    /// [`try_read`](Self::try_read) with the locator of a prefetcher.
    #[inline(always)]
    fn try_read_located(
        &mut self,
        row: &[u8],
        locator: &mut StoreRowLocator,
        sink: &mut dyn ResultSink,
    ) -> Result<bool> {
        self.check(row)?;
        let view = &self.view.stores;
        let is_read =
            self.region.fast_row_read(row, locator, self.read_point).read(&mut self.plan, view, sink)?;
        self.rows_read += u64::from(is_read);
        self.is_tried = !is_read;
        Ok(is_read)
    }

    /// Reads the row of `get`, whose selection is the reader's or another one, and waits for blocks
    /// where necessary. Its cells, if it has any, become one result of `sink`. After
    /// [`try_read`](Self::try_read) returned false for the row, this method does not repeat it.
    ///
    /// # Errors
    /// As [`try_read`](Self::try_read), and errors of loading blocks.
    pub async fn read(&mut self, get: &Get, sink: &mut dyn ResultSink) -> Result<()> {
        let is_own = Arc::ptr_eq(&get.selection, self.selection);
        if is_own && !std::mem::take(&mut self.is_tried) && self.try_read(&get.row, sink)? {
            return Ok(());
        }
        self.region.check_row(&get.row)?;
        let mut scanner = self.region.scanner(&Scan::of(get))?;
        drive(&mut scanner, &mut Limits::default(), sink).await?;
        self.rows_read += 1;
        self.refresh();
        Ok(())
    }

    #[inline(always)]
    fn check(&mut self, row: &[u8]) -> Result<()> {
        self.region.check_row(row)?;
        if !self.is_checked {
            self.region.check_selection(self.selection)?;
            self.is_checked = true;
        }
        Ok(())
    }

    /// Moves to the newest view and read point. The region may have closed, and more cells may have
    /// expired.
    fn refresh(&mut self) {
        self.count_reads();
        let before = self.read_point;
        (self.view, self.read_point) = self.region.view_now();
        debug_assert!(self.read_point >= before, "the read point does not go back");
        self.plan = self.region.row_plan(self.selection);
        (self.is_checked, self.is_tried) = (false, false);
    }

    #[inline]
    fn count_reads(&mut self) {
        self.plan.count_reads(&self.region.store_counts);
    }
}

impl Drop for RowReader<'_> {
    #[inline]
    fn drop(&mut self) {
        spent::used(Use::Rows, self.rows_read);
        self.region.instruments.count_rows_got(self.rows_read);
        self.count_reads();
    }
}

/// Reads the rows of a batch of Gets, and prefetches the following rows while one is read.
pub struct BatchReader<'r> {
    rows: RowReader<'r>,
    gets: &'r MultiGet,
    prefetcher: Prefetcher,
}

impl<'r> BatchReader<'r> {
    /// [`RowReader::try_read`] for the Get at index `at`. Fastest in ascending order.
    ///
    /// # Errors
    /// As [`RowReader::try_read`].
    ///
    /// # Panics
    /// If `at` is out of range.
    pub fn try_read(&mut self, at: usize, sink: &mut dyn ResultSink) -> Result<bool> {
        let blocks = &*self.rows.region.services.loader;
        let first = self.rows.plan.first_store().map(|store| &self.rows.view.stores[store]);
        let locator = self.prefetcher.locator(at, self.gets, first, blocks);
        self.rows.try_read_located(self.gets.row(at), locator, sink)
    }

    /// The reader of single rows, for a Get that [`try_read`](Self::try_read) did not read.
    pub fn rows(&mut self) -> &mut RowReader<'r> {
        &mut self.rows
    }
}
