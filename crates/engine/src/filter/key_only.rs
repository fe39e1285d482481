//! `KeyOnlyFilter`: cells without their values.

use cell::Cell;

use super::{Evaluate, Judged, ReturnCode};

/// What the value of an included cell becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueForm {
    /// The value itself, of so many bytes.
    Whole(u32),
    /// Nothing.
    Empty,
    /// Four bytes, a length.
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
    fn filter_cell(&mut self, _cell: &Cell<'_>) -> Judged<ReturnCode> {
        Ok(ReturnCode::Include)
    }
    fn transform(&self, value: ValueForm) -> ValueForm {
        if self.len_as_val { ValueForm::Length(value.len().to_be_bytes()) } else { ValueForm::Empty }
    }
    fn judges_rows_apart(&self) -> bool {
        true
    }
}
