//! Reads of a region: the view and the read point that a reader gets, and the scanners that use
//! them.
//!
//! A view lists the memstores and files of all stores at one moment ([`RegionView`]). It does not
//! change; flush and compaction replace it. A write is added to the memstores of the current view
//! before it becomes visible. A reader takes the view, then the read point, and starts over if the
//! view was replaced in between. So its view contains every write that is visible at its read
//! point.
//!
//! [`RowReader`](crate::region::RowReader) reads single rows, mostly without a scanner.

use std::sync::Arc;

use arc_swap::Guard;
use base::BoxFuture;
use base::spent::{self, Phase};
use cell::Cell;
use cell::query::{CellSelection, FamilyColumns, Get, MobReads, Scan};
use cell::region::RegionInfo;

use crate::error::{Error, Result};
use crate::mob::is_reference;
use crate::mvcc::ReadGuard;
use crate::region::Region;
use crate::region::check::check_filter;
use crate::region::write::{Cold, Warm, WriteAbort};
use crate::scanner::{
    BlockLoader, CellList, FamilyRules, Limits, RegionScanner, RowRead, ScannerParts, Stopped,
    StoreRowLocator, drive,
};
use crate::store::RegionView;

impl Region {
    /// A scanner of the rows of `scan` that belong to this region.
    ///
    /// # Errors
    /// [`Error::NotServing`], [`Error::NoSuchFamily`], [`Error::BadRequest`]. Nothing is read yet.
    pub fn scanner(&self, scan: &Scan) -> Result<RegionScanner> {
        self.check_serving()?;
        let (view, guard) = self.view_at(scan.read_point);
        self.scanner_of(scan, &view, guard)
    }

    /// A scanner for the remaining rows of a scan whose scanner was lost. It reads at the old read
    /// point if the region still has every version that is visible there. Otherwise it reads at the
    /// newest read point.
    ///
    /// # Errors
    /// As [`Region::scanner`].
    pub fn resumed_scanner(&self, scan: &Scan) -> Result<RegionScanner> {
        self.check_serving()?;
        let (mut view, mut guard) = self.view_at(scan.read_point);
        if scan.read_point.is_some() && guard.read_point() < view.readable_since() {
            (view, guard) = self.view_at(None);
        }
        self.scanner_of(scan, &view, guard)
    }

    /// Resumes a scanner of this region after [`RegionScanner::rest`]: gives it the current views.
    /// Does nothing if the scanner does not rest.
    pub fn wake(&self, scanner: &mut RegionScanner) {
        if scanner.is_resting() {
            scanner.wake(self.rules.iter().zip(&self.view.load().stores));
        }
    }

    /// Whether [`RegionScanner::rest`] would make `scanner`, a scanner of this region, release
    /// memstores or files that the region has replaced.
    pub fn should_rest(&self, scanner: &RegionScanner) -> bool {
        scanner.pins_outdated_views(self.rules.iter().zip(&self.view.load().stores))
    }

    /// Checks the size of a filter.
    ///
    /// # Errors
    /// [`Error::BadRequest`] that names the limit.
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
        let parts = ScannerParts { pins_views: scan.read_point.is_some(), ..self.scanner_parts(guard) };
        RegionScanner::new(stores, &limit_to_region(scan, &self.info), parts)
    }

    /// The parts of a new scanner that do not depend on its rows. `guard` holds its read point.
    pub(super) fn scanner_parts(&self, guard: ReadGuard) -> ScannerParts {
        ScannerParts {
            order: self.table.order(),
            guard,
            now_ms: self.now_ms(),
            loader: self.services.loader.clone(),
            store_bytes_max: self.options().row_bytes_max,
            pins_views: false,
            seed: self.services.env.random.next_u64(),
            clock: self.services.env.clock.clone(),
            mob: self.mob.clone(),
            counts: self.store_counts.clone(),
        }
    }

    /// Reads one row into a list.
    ///
    /// # Errors
    /// As [`RowReader::read`](crate::region::RowReader::read).
    pub async fn get(&self, get: &Get) -> Result<CellList> {
        let mut list = CellList::default();
        self.row_reader(&get.selection).read(get, &mut list).await?;
        Ok(list)
    }

    /// Checks that `row` is not empty and belongs to this region.
    pub(super) fn check_row(&self, row: &[u8]) -> Result<()> {
        if row.is_empty() {
            return Err(Error::bad_request("Row length is 0"));
        }
        self.check_contains(row)
    }

    /// Checks that the region serves reads and has the families of `selection`.
    pub(super) fn check_selection(&self, selection: &CellSelection) -> Result<()> {
        self.check_serving()?;
        for columns in &selection.columns {
            self.store_of(&columns.family)?;
        }
        Ok(())
    }

    /// Prepares a read of one row without a scanner.
    #[inline(always)]
    pub(super) fn fast_row_read<'a>(
        &'a self,
        row: &'a [u8],
        locator: &'a mut StoreRowLocator,
        read_point: u64,
    ) -> RowRead<'a> {
        RowRead::new(row, locator, self.table.order(), read_point, &*self.services.loader)
            .row_bytes_max(self.options().row_bytes_max)
    }

    /// The newest view and read point. The read point is not registered. A reader that uses only
    /// this view needs no registration, because views do not change.
    pub(super) fn view_now(&self) -> (Guard<Arc<RegionView>>, u64) {
        loop {
            let view = self.view.load();
            let read_point = self.mvcc.read_point();
            if Arc::ptr_eq(&view, &self.view.load()) {
                return (view, read_point);
            }
        }
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.services.env.clock.now_ms() as i64
    }

    /// Reads all results of a scan into a list, for tests and tools that expect few of them.
    ///
    /// # Errors
    /// As [`Region::scanner`], and errors of reading files.
    pub async fn scan_all(&self, scan: &Scan) -> Result<CellList> {
        let mut scanner = self.scanner(scan)?;
        let mut list = CellList::default();
        while drive(&mut scanner, &mut Limits::default(), &mut list).await?.stopped != Stopped::Exhausted {}
        self.instruments.count_rows_scanned(list.results.len() as u64);
        Ok(list)
    }

    /// The newest view, and a read point that is registered for this reader. The read point is the
    /// smaller one of `wanted` and the newest read point. If `wanted` is `None`, it is the newest
    /// read point. The view has all writes up to the read point.
    pub(super) fn view_at(&self, wanted: Option<u64>) -> (Arc<RegionView>, ReadGuard) {
        loop {
            let view = self.view.load_full();
            // A read must not see writes that could still be lost.
            let wanted = wanted.map(|wanted| wanted.min(self.mvcc.read_point()));
            let guard = self.mvcc.register_reader(wanted);
            debug_assert!(
                guard.read_point() <= self.mvcc.read_point(),
                "a read does not see edits that may be lost"
            );
            if Arc::ptr_eq(&view, &self.view.load()) {
                return (view, guard);
            }
        }
    }

    /// The timestamp of the `nth` newest version (counted from 1) of the column of `cell`. Includes
    /// writes that are not durable yet.
    ///
    /// # Errors
    /// [`WriteAbort::Cold`] if a needed block is neither in `warm` nor cached.
    pub(super) fn newest_timestamp(
        &self,
        cell: &Cell<'_>,
        nth: u32,
        warm: &Warm,
    ) -> std::result::Result<Option<i64>, WriteAbort> {
        let found = self.read_published(&newest_versions(cell, nth), warm)?;
        Ok(found.cells.get(nth as usize - 1).map(|(cell, _)| cell.view(0).timestamp()))
    }

    /// Reads the latest state of a row, including writes that are not durable yet. The caller must
    /// hold the row lock. Counts as a row read, as in HBase.
    ///
    /// # Errors
    /// [`WriteAbort::Cold`] if a needed block is neither in `warm` nor cached;
    /// [`Error::BadRequest`] for invalid filters.
    pub(super) fn read_published(&self, get: &Get, warm: &Warm) -> std::result::Result<CellList, WriteAbort> {
        let view = self.view.load();
        let mut found = CellList::default();
        let mut plan = self.row_plan(&get.selection);
        let mut locator = StoreRowLocator::default();
        let read = self.fast_row_read(&get.row, &mut locator, u64::MAX);
        if read.read(&mut plan, &view.stores, &mut found).map_err(Error::from)? {
            self.instruments.count_rows_scanned(1);
            plan.count_reads(&self.store_counts);
            return self.with_values(found, get, warm);
        }
        let stores = self.rules.iter().zip(&view.stores);
        let parts = self.scanner_parts(self.mvcc.register_reader(Some(u64::MAX)));
        let mut scanner = RegionScanner::new(stores, &Scan::of(get), parts)?;
        warm.blocks.iter().for_each(|block| scanner.supply(block.clone()));
        while scanner.next(&mut Limits::default(), &mut found)?.stopped != Stopped::Exhausted {}
        self.instruments.count_rows_scanned(1);
        match scanner.failure() {
            None => self.with_values(found, get, warm),
            Some(failure) => Err(failure.into()),
        }
    }

    /// Replaces references to MOB files in `found` by the values in `warm`.
    ///
    /// # Errors
    /// [`WriteAbort::Cold`] if a value is not there.
    fn with_values(
        &self,
        mut found: CellList,
        get: &Get,
        warm: &Warm,
    ) -> std::result::Result<CellList, WriteAbort> {
        if self.mob.is_none() || get.selection.mob.raw {
            return Ok(found);
        }
        let mut missing = Vec::new();
        for (cell, seq_id) in &mut found.cells {
            let view = cell.view(*seq_id);
            if !is_reference(view.tags) {
                continue;
            }
            match warm.values.iter().find(|(reference, _)| reference == cell) {
                Some((_, value)) => *cell = value.in_place_of(&view).to_key_value(),
                None => missing.push((cell.clone(), *seq_id)),
            }
        }
        if missing.is_empty() { Ok(found) } else { Err(WriteAbort::Cold(Cold::Values(missing))) }
    }

    /// Loads what a write lacks into `warm`. Boxed, so that the futures of writes stay small.
    pub(super) fn load<'a>(&'a self, cold: Cold, warm: &'a mut Warm) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match cold {
                Cold::Blocks(miss) => {
                    for missed in &miss.blocks {
                        let load = self.services.loader.load(missed);
                        let block = spent::timed_wait(Phase::Disk, &*self.services.env.clock, load).await?;
                        BlockLoader::count_read(&block);
                        warm.blocks.push(block);
                    }
                }
                Cold::Values(references) => {
                    let mob = self.mob.as_ref().expect("only regions with MOB files have references");
                    for (reference, seq_id) in references {
                        let value = mob.resolve(&reference.view(seq_id), MobReads::default()).await?;
                        let value = value.expect("a missing value is an error");
                        warm.values.push((reference, value));
                    }
                }
            }
            Ok(())
        })
    }
}

/// A Get of the `count` newest versions of the column of `cell`.
fn newest_versions(cell: &Cell<'_>, count: u32) -> Get {
    let columns = FamilyColumns {
        family: cell.family().to_vec().into(),
        qualifiers: Some(vec![cell.qualifier().to_vec().into()]),
    };
    // Only the timestamps are of interest.
    let mob = MobReads { raw: true, ..MobReads::default() };
    let selection =
        CellSelection { columns: vec![columns], max_versions: count, mob, ..CellSelection::default() };
    Get { row: cell.row().to_vec().into(), selection: selection.into(), existence_only: false }
}

/// A copy of `scan` that is limited to the rows of a region.
pub(crate) fn limit_to_region(scan: &Scan, info: &RegionInfo) -> Scan {
    let mut scan = scan.clone();
    let order = info.table.order();
    let is_before = |left: &[u8], right: &[u8]| order.compare_rows(left, right).is_lt();
    let (low, high) = (&info.start_key, &info.end_key);
    // A region contains its start key, but not its end key.
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
    /// The rules of `family` in a region with these options.
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

    fn limited(start: &'static str, stop: &'static str, reversed: bool) -> (Bytes, bool, Bytes, bool) {
        let info = RegionInfo::new(TableName::parse("t").unwrap(), "c".into(), "g".into(), 1);
        let scan = Scan {
            start_row: start.into(),
            stop_row: stop.into(),
            include_stop_row: true,
            reversed,
            ..Scan::default()
        };
        let scan = limit_to_region(&scan, &info);
        (scan.start_row, scan.include_start_row, scan.stop_row, scan.include_stop_row)
    }

    #[test]
    fn scans_are_limited_to_the_region() {
        let bounds = |start: &'static str, with_start, stop: &'static str, with_stop| {
            (Bytes::from(start), with_start, Bytes::from(stop), with_stop)
        };
        assert_eq!(limited("", "", false), bounds("c", true, "g", false));
        assert_eq!(limited("d", "e", false), bounds("d", true, "e", true));
        assert_eq!(limited("a", "g", false), bounds("c", true, "g", false));
        assert_eq!(limited("", "", true), bounds("g", false, "c", true));
        assert_eq!(limited("e", "d", true), bounds("e", true, "d", true));
        assert_eq!(limited("g", "a", true), bounds("g", false, "c", true));
        assert_eq!(limited("z", "c", true), bounds("g", false, "c", true));
    }
}
