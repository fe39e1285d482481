//! `FilterList` with `MUST_PASS_ONE`: one filter must let pass.
//!
//! Every filter is asked about every cell, except where its last code tells the answer: a filter that wanted to jump is not
//! shown what it wanted to jump over, though the others wanted to see it. The code is the shortest jump of all, the hint the
//! nearest, and there is none unless all have one.
//!
//! Source: HBase `FilterListWithOR`.

use std::cmp::Ordering;

use cell::Cell;

use super::list::{Child, Children};
use super::{Evaluate, Hint, Judged, ReturnCode, ValueForm};

pub(super) struct ListOr {
    pub(super) children: Children,
    pub(super) reversed: bool,
}

impl Evaluate for ListOr {
    fn reset(&mut self) {
        self.children.reset();
    }

    /// Every filter hears of the row, because some keep count.
    fn filter_row_key(&mut self, row: &[u8]) -> Judged<bool> {
        let mut filtered = true;
        for child in &mut self.children.0 {
            if !child.filter.filter_all_remaining() && !child.filter.filter_row_key(row)? {
                filtered = false;
            }
        }
        Ok(filtered && !self.children.0.is_empty())
    }

    fn filter_cell(&mut self, cell: &Cell<'_>) -> Judged<ReturnCode> {
        if self.children.0.is_empty() {
            return Ok(ReturnCode::Include);
        }
        let reversed = self.reversed;
        let mut code = None;
        for child in &mut self.children.0 {
            child.included = false;
            if child.filter.filter_all_remaining() {
                continue;
            }
            let own = match child.code_from_previous(cell, reversed) {
                Some(known) => known,
                None => child.filter.filter_cell(cell)?,
            };
            child.remember(cell, own);
            child.included = own.includes();
            code = Some(code.map_or(own, |so_far| merge(so_far, own)));
        }
        Ok(code.unwrap_or(ReturnCode::Skip))
    }

    fn filter_all_remaining(&self) -> bool {
        let children = &self.children.0;
        !children.is_empty() && children.iter().all(|child| child.filter.filter_all_remaining())
    }

    fn filter_row(&mut self) -> bool {
        let children = &mut self.children.0;
        !children.is_empty() && children.iter_mut().all(|child| child.filter.filter_row())
    }

    fn next_hint<'a>(&'a mut self, cell: &Cell<'_>) -> Option<Hint<'a>> {
        let reversed = self.reversed;
        let mut nearest: Option<Hint<'a>> = None;
        for child in &mut self.children.0 {
            if child.filter.filter_all_remaining() {
                continue;
            }
            let hint = child.filter.next_hint(cell)?;
            let is_nearer = nearest.as_ref().is_none_or(|known| {
                let order = hint.compare(known, cell);
                order == if reversed { Ordering::Greater } else { Ordering::Less }
            });
            if is_nearer {
                nearest = Some(hint);
            }
        }
        nearest
    }

    fn has_filter_row(&self) -> bool {
        self.children.has_filter_row()
    }
    fn edits_rows(&self) -> bool {
        self.children.edits_rows()
    }
    fn keeps(&self, cell: &Cell<'_>) -> bool {
        self.children.keeps(cell)
    }
    fn transform(&self, value: ValueForm) -> ValueForm {
        self.children.transform(value)
    }
    fn is_family_essential(&self, family: &[u8]) -> bool {
        self.children.is_family_essential(family)
    }
    fn judges_rows_apart(&self) -> bool {
        self.children.judges_rows_apart()
    }
    fn may_end(&self) -> bool {
        self.children.may_end()
    }
    fn sees_skipped_rows(&self) -> bool {
        self.children.sees_skipped_rows()
    }
    fn backtracks(&self) -> bool {
        self.children.backtracks()
    }
}

impl Child {
    /// What the filter would say of a cell that lies where it did not want to go.
    fn code_from_previous(&mut self, cell: &Cell<'_>, reversed: bool) -> Option<ReturnCode> {
        use ReturnCode::*;
        let code = self.previous?;
        // The row is the same: a reset comes between two rows.
        let before = Cell { key: &self.previous_key, value: &[], tags: &[], seq_id: 0 };
        match code {
            Include | Skip => None,
            IncludeAndNextCol | NextCol => {
                let same = before.family() == cell.family() && before.qualifier() == cell.qualifier();
                same.then_some(NextCol)
            }
            IncludeAndSeekNextRow | NextRow => (before.family() == cell.family()).then_some(NextRow),
            SeekNextUsingHint => {
                let order = self.filter.next_hint(&before)?.compare_to_cell(&before, cell);
                let not_there_yet = order == if reversed { Ordering::Less } else { Ordering::Greater };
                not_there_yet.then_some(SeekNextUsingHint)
            }
        }
    }

    fn remember(&mut self, cell: &Cell<'_>, code: ReturnCode) {
        self.previous = Some(code);
        if !matches!(code, ReturnCode::Include | ReturnCode::Skip) {
            self.previous_key.clear();
            self.previous_key.extend_from_slice(cell.key);
        }
    }
}

/// The code of two filters of which one must let pass.
pub(super) fn merge(so_far: ReturnCode, own: ReturnCode) -> ReturnCode {
    if so_far == ReturnCode::SeekNextUsingHint && own == ReturnCode::SeekNextUsingHint {
        return ReturnCode::SeekNextUsingHint;
    }
    let included = so_far.includes() || own.includes();
    // A hint that not all have is none.
    ReturnCode::of(included, so_far.jump().min(own.jump()))
}
