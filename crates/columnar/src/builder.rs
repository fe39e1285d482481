//! Building vectors: values as they are found, row by row.

use std::collections::HashMap;

use crate::bits::Bits;
use crate::column::Column;
use crate::encoding::Unreadable;
use crate::strings::{Raws, Strings};
use crate::value::Kind;
use crate::vector::{Values, Vector};

/// Different strings up to which rows have their places in a dictionary.
const DICTIONARY_MAX: usize = 1 << 12;

/// Builds the vector of one column.
pub struct VectorBuilder {
    column: Column,
    values: Growing,
    // Of the rows so far, only if one has no value.
    absent: Vec<u32>,
}

enum Growing {
    Whole(Vec<i64>),
    Real(Vec<f64>),
    Decimal(Vec<i128>),
    Coded { codes: Vec<u32>, dictionary: Strings, places: HashMap<Vec<u8>, u32>, last: u32 },
    Plain(Strings),
}

impl VectorBuilder {
    /// Begins before the first row.
    pub fn new(column: &Column) -> VectorBuilder {
        let values = match column.kind() {
            Kind::Whole => Growing::Whole(Vec::new()),
            Kind::Real => Growing::Real(Vec::new()),
            Kind::Decimal { .. } => Growing::Decimal(Vec::new()),
            Kind::Raw => Growing::Coded {
                codes: Vec::new(),
                dictionary: Strings::default(),
                places: HashMap::new(),
                last: 0,
            },
        };
        VectorBuilder { column: column.clone(), values, absent: Vec::new() }
    }

    /// The column.
    pub fn column(&self) -> &Column {
        &self.column
    }

    /// Rows so far.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.values {
            Growing::Whole(values) => values.len(),
            Growing::Real(values) => values.len(),
            Growing::Decimal(values) => values.len(),
            Growing::Coded { codes, .. } => codes.len(),
            Growing::Plain(strings) => strings.len(),
        }
    }

    /// Whether there are no rows yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of the next row, as it is written.
    ///
    /// # Errors
    /// [`Unreadable`], with the column's name; the row is then without a value.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Unreadable> {
        let encoding = self.column.encoding;
        let read = match &mut self.values {
            Growing::Whole(values) => encoding.read_whole(bytes).map(|value| {
                values.push(value.unwrap_or_default());
                value.is_some()
            }),
            Growing::Real(values) => encoding.read_real(bytes).map(|value| {
                values.push(value.unwrap_or_default());
                value.is_some()
            }),
            Growing::Decimal(values) => encoding.read_decimal(bytes, self.column.scale).map(|value| {
                values.push(value.unwrap_or_default());
                value.is_some()
            }),
            Growing::Coded { .. } | Growing::Plain(_) => return self.push_raw(bytes),
        };
        match read {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.absent.push(self.len() as u32 - 1);
                Ok(())
            }
            Err(unreadable) => {
                self.push_null();
                Err(self.named(unreadable))
            }
        }
    }

    fn push_raw(&mut self, bytes: &[u8]) -> Result<(), Unreadable> {
        match self.column.encoding.read_raw(bytes) {
            Ok(Some(string)) => self.push_string(&string),
            Ok(None) => self.push_null(),
            Err(unreadable) => {
                self.push_null();
                return Err(self.named(unreadable));
            }
        }
        Ok(())
    }

    fn push_string(&mut self, string: &[u8]) {
        if let Growing::Coded { codes, dictionary, places, last } = &mut self.values {
            if !dictionary.is_empty() && dictionary.get(*last as usize) == string {
                codes.push(*last);
                return;
            }
            if let Some(place) = places.get(string) {
                *last = *place;
                codes.push(*place);
                return;
            }
            if dictionary.len() < DICTIONARY_MAX {
                *last = dictionary.len() as u32;
                places.insert(string.to_vec(), *last);
                dictionary.push(string);
                codes.push(*last);
                return;
            }
            let mut strings = Strings::default();
            codes.iter().for_each(|code| strings.push(dictionary.get(*code as usize)));
            self.values = Growing::Plain(strings);
        }
        if let Growing::Plain(strings) = &mut self.values {
            strings.push(string);
        }
    }

    /// The next row has no value.
    pub fn push_null(&mut self) {
        self.absent.push(self.len() as u32);
        match &mut self.values {
            Growing::Whole(values) => values.push(0),
            Growing::Real(values) => values.push(0.0),
            Growing::Decimal(values) => values.push(0),
            Growing::Coded { .. } | Growing::Plain(_) => self.push_string(&[]),
        }
    }

    /// Rows without a value, until there are `len`.
    #[inline]
    pub fn fill(&mut self, len: usize) {
        while self.len() < len {
            self.push_null();
        }
    }

    /// The vector.
    pub fn finish(self) -> Vector {
        let len = self.len();
        let present = (!self.absent.is_empty()).then(|| {
            let mut absent = Bits::zeros(len);
            self.absent.iter().for_each(|row| absent.set(*row as usize));
            let mut present = Bits::ones(len);
            present.and_not(&absent);
            present
        });
        let values = match self.values {
            Growing::Whole(mut values) => {
                values.shrink_to_fit();
                Values::Whole(values)
            }
            Growing::Real(mut values) => {
                values.shrink_to_fit();
                Values::Real(values)
            }
            Growing::Decimal(mut values) => {
                values.shrink_to_fit();
                Values::Decimal(values)
            }
            Growing::Coded { mut codes, mut dictionary, .. } => {
                codes.shrink_to_fit();
                dictionary.shrink();
                Values::Raw(Raws::Coded { codes, dictionary })
            }
            Growing::Plain(mut strings) => {
                strings.shrink();
                Values::Raw(Raws::Plain(strings))
            }
        };
        Vector::new(values, present)
    }

    fn named(&self, unreadable: Unreadable) -> Unreadable {
        Unreadable(format!("{}: {}", self.column.place, unreadable.0))
    }
}
