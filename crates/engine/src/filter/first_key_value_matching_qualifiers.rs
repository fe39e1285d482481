//! `FirstKeyValueMatchingQualifiersFilter`: the cells of each row up to the first one in any of the
//! given columns.

use bytes::Bytes;
use cell::Cell;

use super::{Evaluate, FilterResult, ReturnCode};

pub(super) struct FirstKeyValueMatchingQualifiers {
    // Sorted.
    qualifiers: Vec<Bytes>,
    found: bool,
}

impl FirstKeyValueMatchingQualifiers {
    pub(super) fn new(qualifiers: Vec<Bytes>) -> FirstKeyValueMatchingQualifiers {
        FirstKeyValueMatchingQualifiers { qualifiers, found: false }
    }
}

impl Evaluate for FirstKeyValueMatchingQualifiers {
    fn reset(&mut self) {
        self.found = false;
    }
    fn filter_cell(&mut self, cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        if self.found {
            return Ok(ReturnCode::NextRow);
        }
        let qualifier = cell.qualifier();
        self.found = self.qualifiers.binary_search_by(|known| known[..].cmp(qualifier)).is_ok();
        Ok(ReturnCode::Include)
    }
}
