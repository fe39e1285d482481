//! `FilterList`: what both kinds of lists have in common. How they combine codes is in
//! [`list_and`](super::list_and) and [`list_or`](super::list_or).

use cell::Cell;

use super::{Evaluate, Node, ReturnCode, ValueForm};

/// The filters of a list, and the state that it keeps for each.
pub(super) struct Children(pub(super) Vec<Child>);

/// A filter of a list.
pub(super) struct Child {
    pub(super) filter: Node,
    pub(super) hinting: bool,
    /// Returned [`ReturnCode::SeekNextUsingHint`] for the current cell.
    pub(super) hints: bool,
    /// Included the current cell.
    pub(super) included: bool,
    /// The last code, and the key of its cell if that determines the next code.
    pub(super) previous: Option<ReturnCode>,
    pub(super) previous_key: Vec<u8>,
}

impl Children {
    pub(super) fn new(filters: Vec<Node>) -> Children {
        let child = |filter: Node| Child {
            hinting: filter.is_hinting(),
            filter,
            hints: false,
            included: false,
            previous: None,
            previous_key: Vec::new(),
        };
        Children(filters.into_iter().map(child).collect())
    }

    pub(super) fn reset(&mut self) {
        for child in &mut self.0 {
            child.filter.reset();
            child.hints = false;
            child.included = false;
            child.previous = None;
        }
    }

    pub(super) fn has_filter_row(&self) -> bool {
        self.any(Node::has_filter_row)
    }

    pub(super) fn edits_rows(&self) -> bool {
        self.any(Node::edits_rows)
    }

    pub(super) fn keeps(&self, cell: &Cell<'_>) -> bool {
        self.0.iter().all(|child| child.filter.keeps(cell))
    }

    /// The filters that included the cell transform its value in sequence.
    pub(super) fn transform(&self, value: ValueForm) -> ValueForm {
        let included = self.0.iter().filter(|child| child.included);
        included.fold(value, |value, child| child.filter.transform(value))
    }

    pub(super) fn is_family_essential(&self, family: &[u8]) -> bool {
        self.0.is_empty() || self.any(|filter| filter.is_family_essential(family))
    }

    pub(super) fn is_row_local(&self) -> bool {
        self.0.iter().all(|child| child.filter.is_row_local())
    }

    pub(super) fn may_end(&self) -> bool {
        self.any(Node::may_end)
    }

    pub(super) fn backtracks(&self) -> bool {
        self.any(Node::backtracks)
    }

    pub(super) fn sees_skipped_rows(&self) -> bool {
        self.any(Node::sees_skipped_rows)
    }

    fn any(&self, holds: impl Fn(&Node) -> bool) -> bool {
        self.0.iter().any(|child| holds(&child.filter))
    }
}
