//! Divides the rows of a region into units: by which files, and up to which row.

use std::sync::Arc;

use cell::CellOrder;
use engine::error::Result;
use engine::scanner::CursorBlocks;
use engine::store::StoreFile;

use crate::entry::StretchFacts;
use crate::plan::{self, OTHER_ROWS_MAX, Plan, ReadMethod, RowRange, STRETCHES_MAX, Unit};
use crate::scan::ColumnScan;

impl ColumnScan {
    /// Divides the rows, in order, into units of work. Stretches of the largest file come first.
    ///
    /// # Errors
    /// Those of reading the indexes of files.
    pub async fn plan(&self) -> Result<Plan> {
        self.plan_up_to(STRETCHES_MAX).await
    }

    /// Like [`plan`](ColumnScan::plan), with at most `stretches_max` stretches of a file.
    ///
    /// # Errors
    /// As [`plan`](ColumnScan::plan).
    pub async fn plan_up_to(&self, stretches_max: usize) -> Result<Plan> {
        let mut plan = Plan::default();
        if self.range.is_empty() {
            return Ok(plan);
        }
        let files = self.dividing_files();
        let mut range = self.range.clone();
        let mut of_files = Vec::with_capacity(files.len());
        let mut blocks = self.region().cursor_blocks();
        for file in &files {
            of_files.push(match self.counted(file, &mut blocks).await? {
                Some(counted) => vec![counted],
                None => self.stretches(file, &mut range, stretches_max, &mut plan, &mut blocks).await?,
            });
        }
        for (file, of_file) in files.iter().zip(&mut of_files) {
            // A counted unit is indivisible. If the plan ends within it, the file is divided into
            // stretches instead.
            let is_divided =
                |unit: &Unit| matches!(unit.method, ReadMethod::Counted(_)) && !range.contains(&unit.rows);
            if of_file.iter().any(is_divided) {
                *of_file = self.stretches(file, &mut range, stretches_max, &mut plan, &mut blocks).await?;
            }
        }
        plan::fill(range, &of_files, &mut plan.units);
        Ok(plan)
    }

    /// The stretches of a file. If the plan ends before the last one, shortens `range` and sets
    /// `plan.next_row`.
    async fn stretches(
        &self,
        file: &Arc<StoreFile>,
        range: &mut RowRange,
        max: usize,
        plan: &mut Plan,
        blocks: &mut CursorBlocks,
    ) -> Result<Vec<Unit>> {
        let mut found = plan::stretches(file, range, max, blocks).await?;
        if let Some(next_row) = found.next_row {
            range.stop = next_row.clone();
            plan.next_row = Some(next_row);
        }
        if self.store.is_none() {
            // All rows are merged; the files only determine where the units end.
            found.units.iter_mut().for_each(|unit| unit.method = ReadMethod::Merged);
        }
        Ok(found.units)
    }

    /// The files whose stretches become units, the largest first.
    fn dividing_files(&self) -> Vec<Arc<StoreFile>> {
        let (start, stop) = (&self.range.start, &self.range.stop);
        let files = self.stores.iter().flat_map(|at| self.reader.files(*at, start, stop));
        let mut files: Vec<Arc<StoreFile>> = files.cloned().collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.len()));
        if self.region().table().order() != CellOrder::Plain {
            files.clear();
        }
        files
    }

    /// All rows of a file as a counted unit, if only their number is wanted and the file contains
    /// it.
    async fn counted(&self, file: &Arc<StoreFile>, blocks: &mut CursorBlocks) -> Result<Option<Unit>> {
        let (Some(store), Some(rows), Some(range)) =
            (self.store, file.reader().info().plain_rows, plan::rows_of(file))
        else {
            return Ok(None);
        };
        let info = file.reader().info();
        let is_whole = self.query().columns.is_empty() && !file.is_reference() && self.range.contains(&range);
        let seq_id = file.reader().assigned_seq_id();
        let facts = StretchFacts {
            rows: rows as usize,
            // A bulk load assigns the sequence id of the cells, whatever the file contains.
            is_plain: info.bulk_load_time_ms.is_none() || seq_id.is_some(),
            seq_id_max: seq_id.unwrap_or(info.max_memstore_ts),
            timestamps: (info.time_range.min, info.time_range.max),
        };
        if !is_whole || !self.may_use_stretch(&facts, store) {
            return Ok(None);
        }
        let rows_of_file = (&range.start[..], &range.stop[..]);
        let others = self.reader.rows_outside(file, store, rows_of_file, OTHER_ROWS_MAX, blocks).await?;
        let is_alone = others.is_some_and(|others| others.is_empty());
        Ok(is_alone.then_some(Unit { rows: range, method: ReadMethod::Counted(rows) }))
    }
}
