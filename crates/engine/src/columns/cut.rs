//! How the rows of a region are cut into units: by which files, and how far.

use std::sync::Arc;

use cell::CellOrder;

use crate::columns::kept::Facts;
use crate::columns::others;
use crate::columns::plan::{self, Plan, RowRange, STRETCHES_MAX, Unit, Way};
use crate::columns::reading::Reading;
use crate::columns::scan::ColumnScan;
use crate::error::Result;
use crate::scanner::may_have_rows;
use crate::store::StoreFile;

impl ColumnScan {
    /// The rows in order, cut into units of work: stretches of the largest file first.
    ///
    /// # Errors
    /// What reading the indexes of files can fail with.
    pub async fn plan(&self) -> Result<Plan> {
        self.plan_up_to(STRETCHES_MAX).await
    }

    /// The same with so many stretches of a file at most.
    ///
    /// # Errors
    /// The same.
    pub async fn plan_up_to(&self, stretches_max: usize) -> Result<Plan> {
        let mut plan = Plan::default();
        if self.range.is_empty() {
            return Ok(plan);
        }
        let files = self.files_to_cut_by();
        let mut range = self.range.clone();
        let mut of_files = Vec::with_capacity(files.len());
        let mut reading = Reading::new(self.region().loader());
        for file in &files {
            of_files.push(match self.counted(file, &mut reading).await? {
                Some(counted) => vec![counted],
                None => self.stretches(file, &mut range, stretches_max, &mut plan, &mut reading).await?,
            });
        }
        for (file, of_file) in files.iter().zip(&mut of_files) {
            // Of rows that are counted as a whole, all are in a plan or none.
            let is_cut = |unit: &Unit| matches!(unit.way, Way::Counted(_)) && !range.contains(&unit.rows);
            if of_file.iter().any(is_cut) {
                *of_file = self.stretches(file, &mut range, stretches_max, &mut plan, &mut reading).await?;
            }
        }
        plan::fill(range, &of_files, &mut plan.units);
        Ok(plan)
    }

    /// The stretches of a file, as far as they are planned; then `range` and `plan` end where they do.
    async fn stretches(
        &self,
        file: &Arc<StoreFile>,
        range: &mut RowRange,
        max: usize,
        plan: &mut Plan,
        reading: &mut Reading,
    ) -> Result<Vec<Unit>> {
        let mut found = plan::stretches(file, range, max, reading).await?;
        if let Some(next_row) = found.next_row {
            range.stop = next_row.clone();
            plan.next_row = Some(next_row);
        }
        if self.store.is_none() {
            // All is merged; files say where to cut.
            found.units.iter_mut().for_each(|unit| unit.way = Way::Merged);
        }
        Ok(found.units)
    }

    /// The files whose stretches are units, the largest first.
    fn files_to_cut_by(&self) -> Vec<Arc<StoreFile>> {
        let (start, stop) = (&self.range.start, &self.range.stop);
        let files = self.stores.iter().flat_map(|at| self.view().stores[*at].files.iter());
        let mut files: Vec<Arc<StoreFile>> =
            files.filter(|file| may_have_rows(file, CellOrder::Plain, start, stop)).cloned().collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.len()));
        if self.region().order() != CellOrder::Plain {
            files.clear();
        }
        files
    }

    /// All rows of a file, where nothing is asked of them and it says how many there are.
    async fn counted(&self, file: &Arc<StoreFile>, reading: &mut Reading) -> Result<Option<Unit>> {
        let (Some(store), Some(rows), Some(range)) =
            (self.store, file.reader().info().plain_rows, plan::rows_of(file))
        else {
            return Ok(None);
        };
        let info = file.reader().info();
        let is_whole =
            self.wanted().columns.is_empty() && !file.is_reference() && self.range.contains(&range);
        let seq_id = file.reader().assigned_seq_id();
        let facts = Facts {
            rows: rows as usize,
            // Whoever loads a file in bulk gives its cells their sequence id, whatever the file says.
            is_plain: info.bulk_load_time_ms.is_none() || seq_id.is_some(),
            seq_id_max: seq_id.unwrap_or(info.max_memstore_ts),
            timestamps: (info.time_range.min, info.time_range.max),
        };
        if !is_whole || !self.may_take(&facts, store) {
            return Ok(None);
        }
        let (view, read_point) = (&self.view().stores[store], self.read_point());
        let others = others::rows_of_others(&range, file, view, read_point, reading).await?;
        let is_alone = others.is_some_and(|others| others.is_empty());
        Ok(is_alone.then_some(Unit { rows: range, way: Way::Counted(rows) }))
    }
}
