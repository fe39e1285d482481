//! `FilterList` with `MUST_PASS_ONE`: one filter must accept.
//!
//! Every filter evaluates every cell, unless its last code determines the result: a filter that
//! requested a jump does not see the cells before its target, which the other filters still need.
//! The code has the shortest jump of all. The hint is the nearest one, and there is none unless all
//! filters have one.
//!
//! Source: HBase `FilterListWithOR`.

use std::cmp::Ordering;

use cell::Cell;

use super::list::{Child, Children};
use super::{Evaluate, FilterResult, Hint, ReturnCode, ValueForm};

pub(super) struct ListOr {
    pub(super) children: Children,
    pub(super) reversed: bool,
}

impl Evaluate for ListOr {
    fn reset(&mut self) {
        self.children.reset();
    }

    /// Evaluates every filter, because some keep counts.
    fn filter_row_key(&mut self, row: &[u8]) -> FilterResult<bool> {
        let mut filtered = true;
        for child in &mut self.children.0 {
            if !child.filter.filter_all_remaining() && !child.filter.filter_row_key(row)? {
                filtered = false;
            }
        }
        Ok(filtered && !self.children.0.is_empty())
    }

    fn filter_cell(&mut self, cell: &Cell<'_>) -> FilterResult<ReturnCode> {
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
            child.set_previous(cell, own);
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
    fn is_row_local(&self) -> bool {
        self.children.is_row_local()
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
    /// The code of the filter for a cell before the target of its last jump.
    fn code_from_previous(&mut self, cell: &Cell<'_>, reversed: bool) -> Option<ReturnCode> {
        use ReturnCode::*;
        let code = self.previous?;
        // The row is the same: a reset comes between rows.
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

    fn set_previous(&mut self, cell: &Cell<'_>, code: ReturnCode) {
        self.previous = Some(code);
        if !matches!(code, ReturnCode::Include | ReturnCode::Skip) {
            self.previous_key.clear();
            self.previous_key.extend_from_slice(cell.key);
        }
    }
}

/// Combines the codes of two filters of which one must accept.
pub(super) fn merge(so_far: ReturnCode, own: ReturnCode) -> ReturnCode {
    if so_far == ReturnCode::SeekNextUsingHint && own == ReturnCode::SeekNextUsingHint {
        return ReturnCode::SeekNextUsingHint;
    }
    let included = so_far.includes() || own.includes();
    // A hint counts only if all have one.
    ReturnCode::of(included, so_far.jump().min(own.jump()))
}
