//! Rows that are read one behind the other.

use std::sync::Arc;

use arc_swap::Guard;
use cell::query::{CellSelection, Get};

use crate::error::Result;
use crate::region::Region;
use crate::scanner::{Aim, Read, ResultSink};
use crate::store::RegionView;

/// The reads of several Gets, made one behind the other. They need not see what is written from when they began.
///
/// What the processor has to wait for is asked for ahead, so that it waits once for all of them. So they should be few
/// enough for that to be still there when it is looked at: some tens.
pub struct Reads<'r> {
    region: &'r Region,
    view: Arc<RegionView>,
    read_point: u64,
    now_ms: i64,
    // Taken when the row is read.
    aims: Vec<Option<Aim>>,
    // What was found to be possible here.
    checked: Option<Arc<CellSelection>>,
    rows_read: u64,
}

impl Region {
    /// Begins to read `gets`. Nothing is checked yet.
    pub fn reads<'g>(&self, gets: impl Iterator<Item = &'g Get> + Clone) -> Reads<'_> {
        let (view, read_point) = self.view_now();
        let stores = || self.rules.iter().zip(&view.stores);
        let mut aims: Vec<Option<Aim>> =
            gets.clone().map(|get| Some(Aim::at_block(get, stores(), &*self.services.loader))).collect();
        // One step for all before the next: what the first asks for comes while the others ask.
        let of = aims.iter().flatten().zip(gets.clone());
        of.for_each(|(aim, get)| aim.prefetch_search(get));
        let of = aims.iter_mut().flatten().zip(gets);
        of.for_each(|(aim, get)| aim.prefetch_cell(get));
        let (view, now_ms) = (Guard::into_inner(view), self.now_ms());
        Reads { region: self, view, read_point, now_ms, aims, checked: None, rows_read: 0 }
    }
}

impl Reads<'_> {
    /// Reads the row of `get`, which must be the one at `at` of those that were begun, if that needs no wait and cannot fail: then
    /// its cells, if it has any, become one result of `sink`. Otherwise `sink` is as it was, and the row is for
    /// [`get_into`](Self::get_into).
    pub fn get_now(&mut self, at: usize, get: &Get, sink: &mut dyn ResultSink) -> bool {
        if self.check(get).is_err() {
            return false;
        }
        let aim = self.aims.get_mut(at).and_then(Option::take).filter(|aim| aim.is_at(get));
        let mut aim = aim.unwrap_or_else(|| Aim::at_row(&get.row));
        let read = self.region.read_row(get, &mut aim, &self.view, self.read_point, self.now_ms, sink);
        let is_read = matches!(read, Ok(Read::Whole));
        self.rows_read += u64::from(is_read);
        is_read
    }

    /// Reads the row of `get`; its cells, if it has any, become one result of `sink`.
    ///
    /// # Errors
    /// As [`Region::get_into`].
    pub async fn get_into(&mut self, get: &Get, sink: &mut dyn ResultSink) -> Result<()> {
        self.region.get_into(get, sink).await?;
        self.go_on_from_now();
        Ok(())
    }

    /// As [`Region::check_get`] does; what all ask for alike, once.
    fn check(&mut self, get: &Get) -> Result<()> {
        if self.checked.as_ref().is_some_and(|checked| Arc::ptr_eq(checked, &get.selection)) {
            return self.region.check_row(&get.row);
        }
        self.region.check_get(get)?;
        self.checked = Some(get.selection.clone());
        Ok(())
    }

    /// The others are not to see less than what was just read from the newest view.
    fn go_on_from_now(&mut self) {
        let (view, read_point) = self.region.view_now();
        (self.view, self.read_point) = (Guard::into_inner(view), read_point);
        self.now_ms = self.region.now_ms();
        // The region may have closed meanwhile.
        self.checked = None;
    }
}

impl Drop for Reads<'_> {
    fn drop(&mut self) {
        self.region.count_reads(self.rows_read);
    }
}
