//! Rows that are read one behind the other.

use std::sync::Arc;

use arc_swap::Guard;
use base::spent::{self, Use};
use cell::query::{Get, GetsAlike};

use crate::error::Result;
use crate::region::Region;
use crate::scanner::{Ahead, Read, ResultSink, RowPlan};
use crate::store::RegionView;

/// The reads of several Gets, made one behind the other. They need not see what is written from when they began.
///
/// While one row is read, the processor fetches what the reads of the next ones will look at.
pub struct Reads<'r> {
    region: &'r Region,
    gets: &'r GetsAlike,
    view: Arc<RegionView>,
    read_point: u64,
    ahead: Ahead,
    plan: RowPlan,
    // Whether what is planned was found to be possible here.
    is_checked: bool,
    rows_read: u64,
}

impl Region {
    /// Begins to read `gets`. Nothing is checked yet.
    pub fn reads<'r>(&'r self, gets: &'r GetsAlike) -> Reads<'r> {
        let (view, read_point) = self.view_now();
        Reads {
            region: self,
            gets,
            view: Guard::into_inner(view),
            read_point,
            ahead: Ahead::default(),
            plan: self.row_plan(&gets.first().selection),
            is_checked: false,
            rows_read: 0,
        }
    }
}

impl Reads<'_> {
    /// Reads the row of the Get at `at`, if that needs no wait and cannot fail: then its cells, if it has any, become one result of
    /// `sink`. Otherwise `sink` is as it was, and the row is for [`get_into`](Self::get_into). Quickest in order.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn get_now(&mut self, at: usize, sink: &mut dyn ResultSink) -> bool {
        let (gets, region) = (self.gets, self.region);
        let row = gets.row(at);
        if self.check(row).is_err() {
            return false;
        }
        let Reads { view, plan, .. } = self;
        let first = plan.first_store().map(|store| &view.stores[store]);
        let aim = self.ahead.aim(at, gets, first, &*region.services.loader);
        let read = region.read_row(row, plan, aim, view, self.read_point, sink);
        let is_read = matches!(read, Ok(Read::Whole));
        self.rows_read += u64::from(is_read);
        is_read
    }

    /// Reads the row of `get`, which may be any; its cells, if it has any, become one result of `sink`.
    ///
    /// # Errors
    /// As [`Region::get_into`].
    pub async fn get_into(&mut self, get: &Get, sink: &mut dyn ResultSink) -> Result<()> {
        self.region.get_into(get, sink).await?;
        self.go_on_from_now();
        Ok(())
    }

    /// As [`Region::check_get`] does; what all ask for alike, once.
    fn check(&mut self, row: &[u8]) -> Result<()> {
        self.region.check_row(row)?;
        if !self.is_checked {
            self.region.check_selection(&self.gets.first().selection)?;
            self.is_checked = true;
        }
        Ok(())
    }

    /// The others are not to see less than what was just read from the newest view.
    fn go_on_from_now(&mut self) {
        let (view, read_point) = self.region.view_now();
        (self.view, self.read_point) = (Guard::into_inner(view), read_point);
        // The region may have closed meanwhile, and more may have expired.
        self.tell_reads();
        self.plan = self.region.row_plan(&self.gets.first().selection);
        self.is_checked = false;
    }

    fn tell_reads(&mut self) {
        self.plan.tell_reads(&self.region.store_counts);
    }
}

impl Drop for Reads<'_> {
    fn drop(&mut self) {
        spent::used(Use::Rows, self.rows_read);
        self.region.instruments.note_rows_got(self.rows_read);
        self.tell_reads();
    }
}
