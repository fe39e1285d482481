//! Reading: which views a read sees at which read point, and which rows are this region's.
//!
//! A reader takes the view, then the read point, and begins again if the view was replaced between the two. So all its
//! read point lets it see is in its view: a write is in the memstores of the view before the read point passes it.

use std::sync::Arc;

use arc_swap::Guard;
use base::BoxFuture;
use base::spent::{self, Phase, Use};
use bytes::Bytes;
use cell::Cell;
use cell::query::{CellSelection, FamilyColumns, Get, Scan};
use cell::region::RegionInfo;
use hfile::{Block, BlockSource, Miss, Pinned};

use crate::error::{Error, Result};
use crate::mvcc::ReadGuard;
use crate::region::Region;
use crate::region::check::check_filter;
use crate::region::write::Halt;
use crate::scanner::{
    Aim, BlockLoader, CellList, FamilyRules, Keep, Limits, Read, RegionScanner, ResultSink, RowPlan, RowRead,
    Stopped, drive,
};
use crate::store::RegionView;

/// How often blocks are loaded for one row: those of filters, of indexes, of cells. Where that is not enough, others change the region.
const LOADS_MAX: usize = 8;

impl Region {
    /// Begins a scan of this region's part of the rows asked for.
    ///
    /// # Errors
    /// [`Error::NotServing`], [`Error::NoSuchFamily`], [`Error::BadRequest`]; nothing is read yet.
    pub fn scanner(&self, scan: &Scan) -> Result<RegionScanner> {
        self.check_serving()?;
        let (view, guard) = self.view_at(scan.read_point);
        self.scanner_of(scan, &view, guard)
    }

    /// Begins what is left of a scan whose scanner was lost: at the read point that it had, if all that was visible then
    /// is still kept here, else at the newest one.
    ///
    /// # Errors
    /// As [`Region::scanner`].
    pub fn scanner_again(&self, scan: &Scan) -> Result<RegionScanner> {
        self.check_serving()?;
        let (mut view, mut guard) = self.view_at(scan.read_point);
        if scan.read_point.is_some() && guard.read_point() < view.readable_since() {
            (view, guard) = self.view_at(None);
        }
        self.scanner_of(scan, &view, guard)
    }

    /// The newest view and a read point that is in it, for a scan of whole families; and which those are, all if none is named.
    ///
    /// # Errors
    /// [`Error::NotServing`], [`Error::NoSuchFamily`].
    pub(crate) fn view_to_scan(
        &self,
        families: &[Bytes],
    ) -> Result<(Arc<RegionView>, ReadGuard, Vec<usize>)> {
        self.check_serving()?;
        let mut stores =
            families.iter().map(|family| self.store_of(family)).collect::<Result<Vec<usize>>>()?;
        if stores.is_empty() {
            stores = (0..self.rules.len()).collect();
        }
        let (view, guard) = self.view_at(None);
        Ok((view, guard, stores))
    }

    /// Wakes a scanner of this region that rests; nothing happens to another.
    pub fn wake(&self, scanner: &mut RegionScanner) {
        if scanner.is_resting() {
            scanner.wake(self.rules.iter().zip(&self.view.load().stores));
        }
    }

    /// Whether an idle scanner of this region holds memstores that were flushed or files that were compacted away, and would let
    /// go of them.
    pub fn has_moved_on_from(&self, scanner: &RegionScanner) -> bool {
        scanner.holds_others_than(self.rules.iter().zip(&self.view.load().stores))
    }

    /// Checks that the filter of a read is not too large.
    ///
    /// # Errors
    /// [`Error::BadRequest`] naming the limit.
    pub fn check_filter(&self, selection: &CellSelection) -> Result<()> {
        let filter = selection.filter.as_ref();
        filter.map_or(Ok(()), |filter| check_filter(filter, self.options().filter_elements_max))
    }

    fn scanner_of(&self, scan: &Scan, view: &RegionView, guard: ReadGuard) -> Result<RegionScanner> {
        for columns in &scan.selection.columns {
            self.store_of(&columns.family)?;
        }
        self.check_filter(&scan.selection)?;
        let stores = self.rules.iter().zip(&view.stores);
        let now_ms = self.now_ms();
        let scan = cut_to_region(scan, &self.info);
        let loader = self.services.loader.clone();
        let mut scanner = RegionScanner::new(stores, self.table.order(), &scan, guard, now_ms, loader)?;
        scanner.limit_rows(self.options().row_bytes_max);
        if scan.read_point.is_some() {
            scanner.stay_awake();
        }
        if scan.selection.filter.as_ref().is_some_and(|filter| filter.size().is_random) {
            scanner.seed(&scan, self.services.env.random.next_u64())?;
        }
        scanner.account(self.services.env.clock.clone());
        scanner.count(self.store_counts.clone());
        Ok(scanner)
    }

    /// Reads one row into a list.
    ///
    /// # Errors
    /// As [`Region::get_into`].
    pub async fn get(&self, get: &Get) -> Result<CellList> {
        let mut list = CellList::default();
        self.get_into(get, &mut list).await?;
        Ok(list)
    }

    /// Reads one row; its cells, if it has any, become one result of `sink`.
    ///
    /// # Errors
    /// As [`Region::scanner`], [`Error::WrongRegion`], and what reading files can fail with.
    pub async fn get_into(&self, get: &Get, sink: &mut dyn ResultSink) -> Result<()> {
        if !self.read_now(get, sink)? {
            self.read_apart(get, sink).await?;
        }
        spent::used(Use::Rows, 1);
        self.instruments.note_rows_got(1);
        Ok(())
    }

    /// Reads one row, if that needs no wait: then its cells, if it has any, become one result of `sink`. Otherwise `sink` is as
    /// it was, and the row is for [`read_apart`](Self::read_apart). Whose row it is counts it, together with what else he counts
    /// of his call.
    ///
    /// # Errors
    /// As [`get_into`](Self::get_into).
    // In place of its call, of which one is common; by itself the compiler does so in one build and not in the next.
    #[inline(always)]
    pub fn read_now(&self, get: &Get, sink: &mut dyn ResultSink) -> Result<bool> {
        self.check_get(get)?;
        let mut plan = self.row_plan(&get.selection);
        let (view, read_point) = self.view_now();
        let read = self.read_row(&get.row, &mut plan, &mut Aim::default(), &view, read_point, sink)?;
        plan.tell_reads(&self.store_counts);
        Ok(matches!(read, Read::Whole))
    }

    /// Whether it is a row of this region.
    pub(super) fn check_row(&self, row: &[u8]) -> Result<()> {
        if row.is_empty() {
            return Err(Error::bad_request("Row length is 0"));
        }
        self.check_contains(row)
    }

    /// Whether a row may be read here.
    pub(super) fn check_get(&self, get: &Get) -> Result<()> {
        self.check_row(&get.row)?;
        self.check_selection(&get.selection)
    }

    /// Whether cells may be read here, and all that are selected are of families there are.
    pub(super) fn check_selection(&self, selection: &CellSelection) -> Result<()> {
        self.check_serving()?;
        for columns in &selection.columns {
            self.store_of(&columns.family)?;
        }
        Ok(())
    }

    /// Reads a row, waiting for what has to be waited for. Boxed, so that the futures of all who read stay small.
    ///
    /// # Errors
    /// As [`get_into`](Self::get_into).
    pub fn read_apart<'a>(&'a self, get: &'a Get, sink: &'a mut dyn ResultSink) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if self.read_loading(get, sink).await? {
                return Ok(());
            }
            let mut scanner = self.scanner(&Scan::of(get))?;
            drive(&mut scanner, &mut Limits::default(), sink).await?;
            Ok(())
        })
    }

    /// Reads a row of few blocks, and loads what is missed: then it is read again from the start, which takes less than a scanner
    /// that can go on. Otherwise `sink` is as it was, and the row is for a scanner.
    async fn read_loading(&self, get: &Get, sink: &mut dyn ResultSink) -> Result<bool> {
        let loader = &self.services.loader;
        // It asks for a block several times until it has it: a miss is counted when it is loaded.
        let mut blocks = Pinned::new(Some(loader.clone() as Arc<dyn BlockSource>));
        let keep = Keep::of_reads(&get.selection);
        for _ in 0..LOADS_MAX {
            let miss = match self.read_from(get, &blocks, sink)? {
                Read::Whole => {
                    spent::used(Use::Rows, 1);
                    return Ok(true);
                }
                Read::Left => return Ok(false),
                Read::Missed(miss) => miss,
            };
            loader.note_missed(&miss);
            let load = loader.load_missed(&miss, None, keep);
            for block in spent::waited(Phase::Disk, &*self.services.env.clock, load).await? {
                BlockLoader::note_read(&block);
                blocks.supply(block);
            }
        }
        Ok(false)
    }

    fn read_from(&self, get: &Get, blocks: &Pinned, sink: &mut dyn ResultSink) -> Result<Read> {
        self.check_get(get)?;
        let mut plan = self.row_plan(&get.selection);
        let (view, read_point) = self.view_now();
        let mut aim = Aim::default();
        let read = RowRead::new(&get.row, &mut aim, self.table.order(), read_point, blocks).loading();
        let read = read.row_bytes_max(self.options().row_bytes_max).read(&mut plan, &view.stores, sink)?;
        plan.tell_reads(&self.store_counts);
        Ok(read)
    }

    /// How rows are read for a selection now.
    pub(super) fn row_plan(&self, selection: &Arc<CellSelection>) -> RowPlan {
        RowPlan::of(selection, &self.rules, self.now_ms())
    }

    /// Reads a row as far as that needs no scanner.
    pub(super) fn read_row(
        &self,
        row: &[u8],
        plan: &mut RowPlan,
        aim: &mut Aim,
        view: &RegionView,
        read_point: u64,
        sink: &mut dyn ResultSink,
    ) -> Result<Read> {
        let read = RowRead::new(row, aim, self.table.order(), read_point, &*self.services.loader);
        let read = read.row_bytes_max(self.options().row_bytes_max);
        Ok(read.read(plan, &view.stores, sink)?)
    }

    /// The newest view and read point. Nobody need know of a reader who reads to its end from one view, which no flush
    /// or compaction changes.
    pub(super) fn view_now(&self) -> (Guard<Arc<RegionView>>, u64) {
        loop {
            let view = self.view.load();
            let read_point = self.mvcc.read_point();
            if Arc::ptr_eq(&view, &self.view.load()) {
                return (view, read_point);
            }
        }
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.services.env.clock.now_ms() as i64
    }

    /// Reads all that a scan gives into a list; for tests and tools that know it to be small.
    ///
    /// # Errors
    /// As [`Region::scanner`], and what reading files can fail with.
    pub async fn scan_all(&self, scan: &Scan) -> Result<CellList> {
        let mut scanner = self.scanner(scan)?;
        let mut list = CellList::default();
        while drive(&mut scanner, &mut Limits::default(), &mut list).await?.stopped != Stopped::Exhausted {}
        self.instruments.note_rows_scanned(list.results.len() as u64);
        Ok(list)
    }

    /// A view, and a read point (the newest one, or `wanted` if that is older) all of which is in the view.
    fn view_at(&self, wanted: Option<u64>) -> (Arc<RegionView>, ReadGuard) {
        loop {
            let view = self.view.load_full();
            // Never beyond what is committed, whatever is asked for: nothing may be seen that could be lost.
            let wanted = wanted.map(|wanted| wanted.min(self.mvcc.read_point()));
            let guard = self.mvcc.register_reader(wanted);
            if Arc::ptr_eq(&view, &self.view.load()) {
                return (view, guard);
            }
        }
    }

    /// The timestamp of the `nth` newest version, counted from 1, of the column of `cell`, of all that was published.
    ///
    /// # Errors
    /// [`Halt::Cold`] if blocks that are not in `warm` nor in the cache are needed.
    pub(super) fn newest_timestamp(
        &self,
        cell: &Cell<'_>,
        nth: u32,
        warm: &[Arc<Block>],
    ) -> std::result::Result<Option<i64>, Halt> {
        let found = self.read_published(&newest_versions(cell, nth), warm)?;
        Ok(found.cells.get(nth as usize - 1).map(|(cell, _)| cell.view(0).timestamp()))
    }

    /// Reads one row as the last write left it, durable or not. For those who hold its lock. It counts as a row read, as in HBase.
    ///
    /// # Errors
    /// [`Halt::Cold`] if blocks that are not in `warm` nor in the cache are needed; [`Error::BadRequest`] for filters
    /// that cannot be answered.
    pub(super) fn read_published(
        &self,
        get: &Get,
        warm: &[Arc<Block>],
    ) -> std::result::Result<CellList, Halt> {
        let view = self.view.load();
        let mut found = CellList::default();
        let mut plan = self.row_plan(&get.selection);
        let read = self.read_row(&get.row, &mut plan, &mut Aim::default(), &view, u64::MAX, &mut found)?;
        if matches!(read, Read::Whole) {
            self.instruments.note_rows_scanned(1);
            plan.tell_reads(&self.store_counts);
            return Ok(found);
        }
        let (stores, now_ms) = (self.rules.iter().zip(&view.stores), self.now_ms());
        let guard = self.mvcc.register_reader(Some(u64::MAX));
        let loader = self.services.loader.clone();
        let scan = Scan::of(get);
        let mut scanner = RegionScanner::new(stores, self.table.order(), &scan, guard, now_ms, loader)?;
        scanner.limit_rows(self.options().row_bytes_max);
        scanner.account(self.services.env.clock.clone());
        scanner.count(self.store_counts.clone());
        warm.iter().for_each(|block| scanner.supply(block.clone()));
        while scanner.next(&mut Limits::default(), &mut found)?.stopped != Stopped::Exhausted {}
        self.instruments.note_rows_scanned(1);
        scanner.refused().map_or(Ok(found), |refused| Err(refused.into()))
    }

    /// Loads the blocks of a miss and keeps them at hand. Boxed: it is seldom, and the futures of all who write stay small.
    pub(super) fn load<'a>(&'a self, miss: Miss, warm: &'a mut Vec<Arc<Block>>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            for missed in &miss.blocks {
                let load = self.services.loader.load(missed);
                let block = spent::waited(Phase::Disk, &*self.services.env.clock, load).await?;
                BlockLoader::note_read(&block);
                warm.push(block);
            }
            Ok(())
        })
    }
}

/// A scan of the `nth` newest versions of a cell's column.
fn newest_versions(cell: &Cell<'_>, nth: u32) -> Get {
    let columns = FamilyColumns {
        family: cell.family().to_vec().into(),
        qualifiers: Some(vec![cell.qualifier().to_vec().into()]),
    };
    let selection = CellSelection { columns: vec![columns], max_versions: nth, ..CellSelection::default() };
    Get { row: cell.row().to_vec().into(), selection: selection.into(), existence_only: false }
}

/// The part of a scan that lies in a region.
fn cut_to_region(scan: &Scan, info: &RegionInfo) -> Scan {
    let mut scan = scan.clone();
    let order = info.table.order();
    let is_before = |left: &[u8], right: &[u8]| order.compare_rows(left, right).is_lt();
    let (low, high) = (&info.start_key, &info.end_key);
    // The region's own bounds: its first row belongs to it, its end row does not.
    if scan.reversed {
        if !high.is_empty() && (scan.start_row.is_empty() || !is_before(&scan.start_row, high)) {
            (scan.start_row, scan.include_start_row) = (high.clone(), false);
        }
        if !low.is_empty() && (scan.stop_row.is_empty() || is_before(&scan.stop_row, low)) {
            (scan.stop_row, scan.include_stop_row) = (low.clone(), true);
        }
    } else {
        if is_before(&scan.start_row, low) {
            (scan.start_row, scan.include_start_row) = (low.clone(), true);
        }
        if !high.is_empty() && (scan.stop_row.is_empty() || !is_before(&scan.stop_row, high)) {
            (scan.stop_row, scan.include_stop_row) = (high.clone(), false);
        }
    }
    scan
}

impl FamilyRules {
    /// The rules by which a region of these settings keeps the cells of `family`.
    pub(super) fn in_region(
        family: &cell::schema::FamilyDescriptor,
        options: &super::RegionOptions,
    ) -> FamilyRules {
        let purge_deletes_after_ms = options.purge_deletes_after.as_millis() as i64;
        FamilyRules { purge_deletes_after_ms, ..FamilyRules::of(family) }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use cell::schema::TableName;

    use super::*;

    fn cut(start: &'static str, stop: &'static str, reversed: bool) -> (Bytes, bool, Bytes, bool) {
        let info = RegionInfo::new(TableName::parse("t").unwrap(), "c".into(), "g".into(), 1);
        let scan = Scan {
            start_row: start.into(),
            stop_row: stop.into(),
            include_stop_row: true,
            reversed,
            ..Scan::default()
        };
        let scan = cut_to_region(&scan, &info);
        (scan.start_row, scan.include_start_row, scan.stop_row, scan.include_stop_row)
    }

    #[test]
    fn scans_are_cut_to_the_region() {
        let bounds = |start: &'static str, with_start, stop: &'static str, with_stop| {
            (Bytes::from(start), with_start, Bytes::from(stop), with_stop)
        };
        assert_eq!(cut("", "", false), bounds("c", true, "g", false));
        assert_eq!(cut("d", "e", false), bounds("d", true, "e", true));
        assert_eq!(cut("a", "g", false), bounds("c", true, "g", false));
        assert_eq!(cut("", "", true), bounds("g", false, "c", true));
        assert_eq!(cut("e", "d", true), bounds("e", true, "d", true));
        assert_eq!(cut("g", "a", true), bounds("g", false, "c", true));
        assert_eq!(cut("z", "c", true), bounds("g", false, "c", true));
    }
}
