//! `FilterList` with `MUST_PASS_ALL`: every filter must accept.
//!
//! Filters are evaluated in order until one does not include the cell. The code has the farthest
//! jump of all of these. The remaining hinting filters are evaluated anyway. A hint takes
//! precedence over every code, and the farthest hint over the others.
//!
//! Source: HBase `FilterListWithAND`.

use std::cmp::Ordering;

use cell::Cell;

use super::list::Children;
use super::{Evaluate, FilterResult, Hint, ReturnCode, ValueForm};

pub(super) struct ListAnd {
    pub(super) children: Children,
    pub(super) reversed: bool,
}

impl Evaluate for ListAnd {
    fn reset(&mut self) {
        self.children.reset();
    }

    /// Evaluates every filter, because some keep counts. Stops at one that has ended.
    fn filter_row_key(&mut self, row: &[u8]) -> FilterResult<bool> {
        let (mut filtered, mut hinting_passed) = (false, false);
        for child in &mut self.children.0 {
            if child.filter.filter_all_remaining() {
                return Ok(true);
            }
            if child.filter.filter_row_key(row)? {
                filtered = true;
            } else if child.hinting {
                // It must see the row's cells to give a hint.
                hinting_passed = true;
            }
        }
        Ok(filtered && !hinting_passed)
    }

    fn filter_cell(&mut self, cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        let mut code = ReturnCode::Include;
        let mut any_hint = false;
        // After a filter that does not include the cell, only hinting ones are evaluated.
        let mut round_over = false;
        for child in &mut self.children.0 {
            child.hints = false;
            if round_over {
                if child.hinting && child.filter.filter_cell(cell)? == ReturnCode::SeekNextUsingHint {
                    child.hints = true;
                    any_hint = true;
                }
                continue;
            }
            // In this kind of list every filter transforms the value of a cell that is included.
            child.included = true;
            if child.filter.filter_all_remaining() {
                code = ReturnCode::NextRow;
                round_over = true;
                continue;
            }
            let own = child.filter.filter_cell(cell)?;
            child.hints = own == ReturnCode::SeekNextUsingHint;
            any_hint |= child.hints;
            code = merge(code, own);
            round_over = !code.includes();
        }
        Ok(if any_hint { ReturnCode::SeekNextUsingHint } else { code })
    }

    fn filter_all_remaining(&self) -> bool {
        self.children.0.iter().any(|child| child.filter.filter_all_remaining())
    }

    fn filter_row(&mut self) -> bool {
        self.children.0.iter_mut().any(|child| child.filter.filter_row())
    }

    fn next_hint<'a>(&'a mut self, cell: &Cell<'_>) -> Option<Hint<'a>> {
        let reversed = self.reversed;
        let mut farthest: Option<Hint<'a>> = None;
        let hinting = self.children.0.iter_mut().filter(|child| child.hints);
        for child in hinting.filter(|child| !child.filter.filter_all_remaining()) {
            let Some(hint) = child.filter.next_hint(cell) else { continue };
            let is_farther = farthest.as_ref().is_none_or(|known| {
                let order = hint.compare(known, cell);
                order == if reversed { Ordering::Less } else { Ordering::Greater }
            });
            if is_farther {
                farthest = Some(hint);
            }
        }
        farthest
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

/// Combines the codes of two filters that must both accept.
pub(super) fn merge(so_far: ReturnCode, own: ReturnCode) -> ReturnCode {
    if own == ReturnCode::SeekNextUsingHint || so_far == ReturnCode::SeekNextUsingHint {
        return ReturnCode::SeekNextUsingHint;
    }
    let included = so_far.includes() && own.includes();
    ReturnCode::of(included, so_far.jump().max(own.jump()))
}
