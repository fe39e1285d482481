//! `KeyOnlyFilter`: cells without their values.

use cell::Cell;

use super::{Evaluate, FilterResult, ReturnCode};

/// The form in which the value of an included cell is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueForm {
    /// The value itself, with this many bytes.
    Whole(u32),
    /// An empty value.
    Empty,
    /// The length of the value, in four bytes.
    Length([u8; 4]),
}

impl ValueForm {
    fn len(self) -> u32 {
        match self {
            ValueForm::Whole(len) => len,
            ValueForm::Empty => 0,
            ValueForm::Length(bytes) => bytes.len() as u32,
        }
    }
}

pub(super) struct KeyOnly {
    pub(super) len_as_val: bool,
}

impl Evaluate for KeyOnly {
    fn filter_cell(&mut self, _cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        Ok(ReturnCode::Include)
    }
    fn transform(&self, value: ValueForm) -> ValueForm {
        if self.len_as_val { ValueForm::Length(value.len().to_be_bytes()) } else { ValueForm::Empty }
    }
    fn is_row_local(&self) -> bool {
        true
    }
}
