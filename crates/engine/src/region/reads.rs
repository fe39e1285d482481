//! Rows that are read one behind the other.

use std::sync::Arc;

use arc_swap::Guard;
use cell::query::Get;

use crate::error::Result;
use crate::region::Region;
use crate::scanner::{Aim, Read, ResultSink};
use crate::store::RegionView;

/// The reads of several Gets, in order. They need not see what is written from when they began.
///
/// What the processor has to wait for is asked for ahead, so that it waits once for all of them. So they should be few
/// enough for that to be still there when it is looked at: some tens.
pub struct Reads<'r> {
    region: &'r Region,
    view: Arc<RegionView>,
    read_point: u64,
    now_ms: i64,
    aims: Vec<Aim>,
    // How many were read, or are being read.
    begun: usize,
}

impl Region {
    /// Begins to read `gets`. Nothing is checked yet.
    pub fn reads<'g>(&self, gets: impl Iterator<Item = &'g Get> + Clone) -> Reads<'_> {
        let (view, read_point) = self.view_now();
        let view = Guard::into_inner(view);
        let stores = || self.rules.iter().zip(&view.stores);
        let mut aims: Vec<Aim> =
            gets.clone().map(|get| Aim::at_block(get, stores(), &*self.services.loader)).collect();
        // One step for all before the next: what the first asks for comes while the others ask.
        aims.iter().zip(gets.clone()).for_each(|(aim, get)| aim.prefetch_search(get));
        aims.iter_mut().zip(gets).for_each(|(aim, get)| aim.prefetch_cell(get));
        Reads { region: self, view, read_point, now_ms: self.now_ms(), aims, begun: 0 }
    }
}

impl Reads<'_> {
    /// Reads the row of the next Get, which is `get`; its cells, if it has any, become one result of `sink`.
    ///
    /// # Errors
    /// As [`Region::get_into`].
    pub async fn next(&mut self, get: &Get, sink: &mut dyn ResultSink) -> Result<()> {
        let aim = &mut self.aims[self.begun];
        self.begun += 1;
        self.region.check_get(get)?;
        if self.region.read_row(get, aim, &self.view, self.read_point, self.now_ms, sink)? == Read::Left {
            self.region.scan_row_apart(get, sink).await?;
        }
        self.region.count_reads(1);
        Ok(())
    }
}
