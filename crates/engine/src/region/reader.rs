//! Reads a region at one read point, by any number of scanners and cursors.
//!
//! For callers that combine several reads into one result: all see the same cells, whatever is
//! written, flushed, or compacted in between.

use std::sync::Arc;

use bytes::Bytes;
use cell::KeyBuf;
use cell::query::Scan;

use crate::error::Result;
use crate::mvcc::ReadGuard;
use crate::region::Region;
use crate::scanner::{CursorBlocks, FamilyRules, Order, RegionScanner, ScannerParts, Source, may_have_rows};
use crate::store::{RegionView, StoreFile};

/// A region at one read point and one time. Several tasks may share it.
///
/// Stores are named by the indexes that [`stores_of`](RegionReader::stores_of) returns.
pub struct RegionReader {
    region: Arc<Region>,
    view: Arc<RegionView>,
    guard: ReadGuard,
    now_ms: i64,
}

impl Region {
    /// Blocks for cursors of the region's files.
    pub fn cursor_blocks(&self) -> CursorBlocks {
        CursorBlocks::new(self.services.loader.clone(), self.services.env.clock.clone())
    }

    /// A reader at the newest read point.
    ///
    /// # Errors
    /// [`Error::NotServing`](crate::error::Error::NotServing).
    pub fn reader(self: &Arc<Region>) -> Result<RegionReader> {
        self.check_serving()?;
        let (view, guard) = self.view_at(None);
        Ok(RegionReader { region: self.clone(), view, guard, now_ms: self.now_ms() })
    }
}

impl RegionReader {
    /// The region.
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// The read point.
    pub fn read_point(&self) -> u64 {
        self.guard.read_point()
    }

    /// The indexes of the stores of `families` (empty: all).
    ///
    /// # Errors
    /// [`Error::NoSuchFamily`](crate::error::Error::NoSuchFamily).
    pub fn stores_of(&self, families: &[Bytes]) -> Result<Vec<usize>> {
        match families {
            [] => Ok((0..self.region.rules.len()).collect()),
            _ => families.iter().map(|family| self.region.store_of(family)).collect(),
        }
    }

    /// The retention rules of a store.
    pub fn rules(&self, store: usize) -> &FamilyRules {
        &self.region.rules[store]
    }

    /// The oldest timestamp in a store that has not expired.
    pub fn oldest_unexpired(&self, store: usize) -> i64 {
        self.rules(store).oldest_unexpired(self.now_ms)
    }

    /// The files of a store that may have rows from `start` to `stop`. An empty bound is no bound.
    pub fn files<'a>(
        &'a self,
        store: usize,
        start: &'a [u8],
        stop: &'a [u8],
    ) -> impl Iterator<Item = &'a Arc<StoreFile>> {
        let (order, files) = (self.region.order(), &self.view.stores[store].files);
        files.iter().filter(move |file| may_have_rows(file, order, start, stop))
    }

    /// A scanner at this read point. The caller limits `scan` to rows of the region.
    ///
    /// # Errors
    /// As [`RegionScanner::new`].
    pub fn scanner(&self, scan: &Scan) -> Result<RegionScanner> {
        let guard = self.region.mvcc.register_reader(Some(self.guard.read_point()));
        let stores = self.region.rules.iter().zip(&self.view.stores);
        let parts = ScannerParts { now_ms: self.now_ms, ..self.region.scanner_parts(guard) };
        RegionScanner::new(stores, scan, parts)
    }

    /// The rows of a store from `start` to `stop` that have cells outside of `file`: in a memstore
    /// or another file. Sorted, each row once. `None` if there are more than `max`, counted once
    /// per memstore and file. An empty bound is no bound.
    ///
    /// # Errors
    /// Those of reading the files.
    pub async fn rows_outside(
        &self,
        file: &Arc<StoreFile>,
        store: usize,
        (start, stop): (&[u8], &[u8]),
        max: usize,
        blocks: &mut CursorBlocks,
    ) -> Result<Option<Vec<Bytes>>> {
        let (view, read_point, order) = (&self.view.stores[store], self.read_point(), self.region.order());
        let memstores = std::iter::once(&view.active).chain(&view.snapshot);
        let memstores = memstores.filter(|memstore| !memstore.is_empty());
        let mut others: Vec<Source> =
            memstores.map(|memstore| Source::memstore(memstore.cursor(), read_point)).collect();
        let files = self.files(store, start, stop).filter(|other| !Arc::ptr_eq(other, file));
        others.extend(files.map(|file| Source::file(file, read_point, None)));
        let is_inside = |row: &Bytes| stop.is_empty() || order.compare_rows(row, stop).is_lt();
        let mut rows = Vec::new();
        for other in &mut others {
            let mut next = start.to_vec();
            while let Some(row) = self.row_from(other, &next, blocks).await?.filter(is_inside) {
                if rows.len() >= max {
                    return Ok(None);
                }
                next.clear();
                next.extend_from_slice(&row);
                next.push(0);
                rows.push(row);
            }
        }
        rows.sort_by(|left, right| order.compare_rows(left, right));
        rows.dedup();
        Ok(Some(rows))
    }

    /// The first row of `source` that is not before `row`.
    async fn row_from(
        &self,
        source: &mut Source,
        row: &[u8],
        blocks: &mut CursorBlocks,
    ) -> Result<Option<Bytes>> {
        let (order, key) = (self.region.order(), KeyBuf::first_on_row(row));
        source.order(Order::Seek);
        loop {
            match source.settle(order, key.as_slice(), blocks.source()) {
                Ok(()) => break,
                Err(stop) => blocks.handle(stop).await?,
            }
        }
        blocks.step_succeeded();
        Ok(source.cell().map(|cell| Bytes::copy_from_slice(cell.row())))
    }
}
