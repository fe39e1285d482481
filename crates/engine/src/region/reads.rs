//! Rows that are read one behind the other.

use std::sync::Arc;

use arc_swap::Guard;
use cell::query::Get;

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
        Reads { region: self, view: Guard::into_inner(view), read_point, now_ms: self.now_ms(), aims }
    }
}

impl Reads<'_> {
    /// Reads the row of `get`, which must be the one at `at` of those that were begun; its cells, if it has any, become one
    /// result of `sink`.
    ///
    /// # Errors
    /// As [`Region::get_into`].
    pub async fn get_into(&mut self, at: usize, get: &Get, sink: &mut dyn ResultSink) -> Result<()> {
        self.region.check_get(get)?;
        let aim = self.aims.get_mut(at).and_then(Option::take).filter(|aim| aim.is_at(get));
        let mut aim = aim.unwrap_or_else(|| Aim::at_row(&get.row));
        let read = self.region.read_row(get, &mut aim, &self.view, self.read_point, self.now_ms, sink)?;
        if read == Read::Left {
            self.region.scan_row_apart(get, sink).await?;
            self.go_on_from_now();
        }
        self.region.count_reads(1);
        Ok(())
    }

    /// The others are not to see less than what was just read from the newest view.
    fn go_on_from_now(&mut self) {
        let (view, read_point) = self.region.view_now();
        (self.view, self.read_point) = (Guard::into_inner(view), read_point);
        self.now_ms = self.region.now_ms();
    }
}
