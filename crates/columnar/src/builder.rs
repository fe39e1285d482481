//! Builders that create vectors row by row.

use std::collections::HashMap;

use crate::bits::Bits;
use crate::column::Column;
use crate::encoding::Unreadable;
use crate::strings::{Raws, Strings};
use crate::value::Kind;
use crate::vector::{Values, Vector};

/// Maximum number of distinct strings in a dictionary.
const DICTIONARY_MAX: usize = 1 << 12;

/// Builds the vector of one column.
pub struct VectorBuilder {
    column: Column,
    values: BuilderValues,
    // Rows without a value.
    absent: Vec<u32>,
}

enum BuilderValues {
    Whole(Vec<i64>),
    Real(Vec<f64>),
    Decimal(Vec<i128>),
    Coded { codes: Vec<u32>, dictionary: Strings, codes_by_string: HashMap<Vec<u8>, u32>, last: u32 },
    Plain(Strings),
}

impl VectorBuilder {
    /// An empty builder.
    pub fn new(column: &Column) -> VectorBuilder {
        let values = match column.kind() {
            Kind::Whole => BuilderValues::Whole(Vec::new()),
            Kind::Real => BuilderValues::Real(Vec::new()),
            Kind::Decimal { .. } => BuilderValues::Decimal(Vec::new()),
            Kind::Raw => BuilderValues::Coded {
                codes: Vec::new(),
                dictionary: Strings::default(),
                codes_by_string: HashMap::new(),
                last: 0,
            },
        };
        VectorBuilder { column: column.clone(), values, absent: Vec::new() }
    }

    /// The column.
    pub fn column(&self) -> &Column {
        &self.column
    }

    /// Number of rows so far.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.values {
            BuilderValues::Whole(values) => values.len(),
            BuilderValues::Real(values) => values.len(),
            BuilderValues::Decimal(values) => values.len(),
            BuilderValues::Coded { codes, .. } => codes.len(),
            BuilderValues::Plain(strings) => strings.len(),
        }
    }

    /// Whether there are no rows yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Decodes and appends the value of the next row.
    ///
    /// # Errors
    /// [`Unreadable`] with the column's name; the row then has no value.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Unreadable> {
        let encoding = self.column.encoding;
        let read = match &mut self.values {
            BuilderValues::Whole(values) => encoding.read_whole(bytes).map(|value| {
                values.push(value.unwrap_or_default());
                value.is_some()
            }),
            BuilderValues::Real(values) => encoding.read_real(bytes).map(|value| {
                values.push(value.unwrap_or_default());
                value.is_some()
            }),
            BuilderValues::Decimal(values) => encoding.read_decimal(bytes, self.column.scale).map(|value| {
                values.push(value.unwrap_or_default());
                value.is_some()
            }),
            BuilderValues::Coded { .. } | BuilderValues::Plain(_) => return self.push_raw(bytes),
        };
        match read {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.absent.push(self.len() as u32 - 1);
                Ok(())
            }
            Err(unreadable) => {
                self.push_null();
                Err(self.with_column_name(unreadable))
            }
        }
    }

    fn push_raw(&mut self, bytes: &[u8]) -> Result<(), Unreadable> {
        match self.column.encoding.read_raw(bytes) {
            Ok(Some(string)) => self.push_string(&string),
            Ok(None) => self.push_null(),
            Err(unreadable) => {
                self.push_null();
                return Err(self.with_column_name(unreadable));
            }
        }
        Ok(())
    }

    fn push_string(&mut self, string: &[u8]) {
        if let BuilderValues::Coded { codes, dictionary, codes_by_string, last } = &mut self.values {
            if !dictionary.is_empty() && dictionary.get(*last as usize) == string {
                codes.push(*last);
                return;
            }
            if let Some(code) = codes_by_string.get(string) {
                *last = *code;
                codes.push(*code);
                return;
            }
            if dictionary.len() < DICTIONARY_MAX {
                *last = dictionary.len() as u32;
                codes_by_string.insert(string.to_vec(), *last);
                dictionary.push(string);
                codes.push(*last);
                return;
            }
            let mut strings = Strings::default();
            codes.iter().for_each(|code| strings.push(dictionary.get(*code as usize)));
            self.values = BuilderValues::Plain(strings);
        }
        if let BuilderValues::Plain(strings) = &mut self.values {
            strings.push(string);
        }
    }

    /// Appends a row without a value.
    pub fn push_null(&mut self) {
        self.absent.push(self.len() as u32);
        match &mut self.values {
            BuilderValues::Whole(values) => values.push(0),
            BuilderValues::Real(values) => values.push(0.0),
            BuilderValues::Decimal(values) => values.push(0),
            BuilderValues::Coded { .. } | BuilderValues::Plain(_) => self.push_string(&[]),
        }
    }

    /// Appends rows without a value until there are `len` rows.
    #[inline]
    pub fn fill(&mut self, len: usize) {
        while self.len() < len {
            self.push_null();
        }
    }

    /// Returns the vector.
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
            BuilderValues::Whole(mut values) => {
                values.shrink_to_fit();
                Values::Whole(values)
            }
            BuilderValues::Real(mut values) => {
                values.shrink_to_fit();
                Values::Real(values)
            }
            BuilderValues::Decimal(mut values) => {
                values.shrink_to_fit();
                Values::Decimal(values)
            }
            BuilderValues::Coded { mut codes, mut dictionary, .. } => {
                codes.shrink_to_fit();
                dictionary.shrink();
                Values::Raw(Raws::Coded { codes, dictionary })
            }
            BuilderValues::Plain(mut strings) => {
                strings.shrink();
                Values::Raw(Raws::Plain(strings))
            }
        };
        Vector::new(values, present)
    }

    fn with_column_name(&self, unreadable: Unreadable) -> Unreadable {
        Unreadable(format!("{}: {}", self.column.location, unreadable.0))
    }
}
