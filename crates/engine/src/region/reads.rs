//! Rows that are read one behind the other.

use std::sync::Arc;

use arc_swap::Guard;
use base::spent::{self, Use};
use cell::query::Get;

use crate::error::Result;
use crate::region::Region;
use crate::scanner::{Aim, Read, ResultSink, RowPlan};
use crate::store::RegionView;

/// The reads of several Gets, made one behind the other. They need not see what is written from when they began.
///
/// What the processor has to wait for is asked for ahead, so that it waits once for all of them. So they should be few
/// enough for that to be still there when it is looked at: some tens.
pub struct Reads<'r> {
    region: &'r Region,
    view: Arc<RegionView>,
    read_point: u64,
    // Taken when the row is read.
    aims: Vec<Option<Aim>>,
    // For those that ask for the same as the one before.
    plan: Option<RowPlan>,
    // Whether what is planned was found to be possible here.
    is_checked: bool,
    rows_read: u64,
}

impl Region {
    /// Begins to read `gets`. Nothing is checked yet.
    pub fn reads<'g>(&self, gets: impl Iterator<Item = &'g Get> + Clone) -> Reads<'_> {
        let (view, read_point) = self.view_now();
        let mut plan = None;
        let aim = |get: &Get| {
            let first = self.plan_for(get, &mut plan).first_store().map(|store| &view.stores[store]);
            Some(Aim::at_block(&get.row, first, &*self.services.loader))
        };
        let mut aims: Vec<Option<Aim>> = gets.clone().map(aim).collect();
        // One step for all before the next: what the first asks for comes while the others ask.
        let of = aims.iter_mut().flatten().zip(gets.clone());
        of.for_each(|(aim, get)| aim.prefetch_search(get));
        let of = aims.iter_mut().flatten().zip(gets);
        of.for_each(|(aim, get)| aim.prefetch_cell(get));
        let view = Guard::into_inner(view);
        Reads { region: self, view, read_point, aims, plan, is_checked: false, rows_read: 0 }
    }

    /// The plan for `get`, which is `last` if that is for one that asks for the same.
    fn plan_for<'p>(&self, get: &Get, last: &'p mut Option<RowPlan>) -> &'p mut RowPlan {
        if let Some(mut other) = last.take_if(|last| !last.is_of(&get.selection)) {
            other.tell_reads(&self.store_counts);
        }
        last.get_or_insert_with(|| self.row_plan(&get.selection))
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
        let plan = self.region.plan_for(get, &mut self.plan);
        let read = self.region.read_row(&get.row, plan, &mut aim, &self.view, self.read_point, sink);
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
        let is_planned = self.plan.as_ref().is_some_and(|plan| plan.is_of(&get.selection));
        if is_planned && self.is_checked {
            return self.region.check_row(&get.row);
        }
        self.region.check_get(get)?;
        self.region.plan_for(get, &mut self.plan);
        self.is_checked = true;
        Ok(())
    }

    /// The others are not to see less than what was just read from the newest view.
    fn go_on_from_now(&mut self) {
        let (view, read_point) = self.region.view_now();
        (self.view, self.read_point) = (Guard::into_inner(view), read_point);
        // The region may have closed meanwhile, and more may have expired.
        self.tell_reads();
        (self.plan, self.is_checked) = (None, false);
    }

    fn tell_reads(&mut self) {
        if let Some(plan) = &mut self.plan {
            plan.tell_reads(&self.region.store_counts);
        }
    }
}

impl Drop for Reads<'_> {
    fn drop(&mut self) {
        spent::used(Use::Rows, self.rows_read);
        self.region.instruments.note_rows_got(self.rows_read);
        self.tell_reads();
    }
}
