//! `ColumnRangeFilter`: columns between two qualifiers.

use std::cmp::Ordering;

use bytes::Bytes;
use cell::Cell;

use super::{Evaluate, FilterResult, Hint, ReturnCode};

pub(super) struct ColumnRange {
    pub(super) min: Option<Bytes>,
    pub(super) min_inclusive: bool,
    pub(super) max: Option<Bytes>,
    pub(super) max_inclusive: bool,
}

impl Evaluate for ColumnRange {
    fn filter_cell(&mut self, cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        let qualifier = cell.qualifier();
        match self.min.as_ref().map(|min| qualifier.cmp(min)) {
            Some(Ordering::Less) => return Ok(ReturnCode::SeekNextUsingHint),
            Some(Ordering::Equal) if !self.min_inclusive => return Ok(ReturnCode::NextCol),
            _ => {}
        }
        let within = match self.max.as_ref().map(|max| qualifier.cmp(max)) {
            None | Some(Ordering::Less) => true,
            Some(Ordering::Equal) => self.max_inclusive,
            Some(Ordering::Greater) => false,
        };
        Ok(if within { ReturnCode::Include } else { ReturnCode::NextRow })
    }
    fn next_hint<'a>(&'a mut self, _cell: &Cell<'_>) -> Option<Hint<'a>> {
        self.min.as_deref().map(Hint::Column)
    }
    fn is_hinting(&self) -> bool {
        true
    }
}
