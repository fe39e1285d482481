//! `ColumnPrefixFilter`: columns whose qualifiers begin with a prefix.

use bytes::Bytes;
use cell::Cell;

use super::{Evaluate, FilterResult, Hint, ReturnCode};

pub(super) struct ColumnPrefix(pub(super) Bytes);

impl Evaluate for ColumnPrefix {
    fn filter_cell(&mut self, cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        let qualifier = cell.qualifier();
        if qualifier.starts_with(&self.0) {
            return Ok(ReturnCode::Include);
        }
        Ok(if qualifier < &self.0[..] { ReturnCode::SeekNextUsingHint } else { ReturnCode::NextRow })
    }
    fn next_hint<'a>(&'a mut self, _cell: &Cell<'_>) -> Option<Hint<'a>> {
        Some(Hint::Column(&self.0))
    }
    fn is_hinting(&self) -> bool {
        true
    }
}
