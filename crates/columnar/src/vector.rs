//! Vectors: the values of one column for the rows of a batch.

use bytes::Bytes;

use crate::bits::Bits;
use crate::strings::Raws;
use crate::value::{Kind, Value, compare_reals};

/// The values of one column, one per row.
#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    values: Values,
    // Rows with a value; `None` means all.
    present: Option<Bits>,
    // Smallest and greatest value, for numbers.
    bounds: Option<(Value, Value)>,
}

/// Bounds of the values of a column, known without reading them.
#[derive(Clone, Debug, PartialEq)]
pub enum Bounds {
    /// No bounds: any values are possible.
    Unknown,
    /// All rows are null.
    AllNull,
    /// The smallest and the greatest value.
    Between(Value, Value),
}

/// Values by kind. Rows without a value contain a placeholder, usually 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Values of [`Kind::Whole`].
    Whole(Vec<i64>),
    /// Values of [`Kind::Real`].
    Real(Vec<f64>),
    /// Unscaled values of [`Kind::Decimal`].
    Decimal(Vec<i128>),
    /// Values of [`Kind::Raw`].
    Raw(Raws),
}

impl Vector {
    /// A vector; `present` must have the same number of rows.
    pub fn new(values: Values, present: Option<Bits>) -> Vector {
        let present = present.filter(|bits| bits.count() < bits.len());
        let bounds = bounds(&values, present.as_ref());
        Vector::with_bounds(values, present, bounds)
    }

    /// Like [`Vector::new`], with known bounds.
    pub(crate) fn with_bounds(
        values: Values,
        present: Option<Bits>,
        bounds: Option<(Value, Value)>,
    ) -> Vector {
        let vector = Vector { values, present, bounds };
        debug_assert!(
            vector.present.as_ref().is_none_or(|present| present.len() == vector.len()),
            "a vector knows of each row whether it has a value"
        );
        vector
    }

    /// A vector of nulls.
    pub fn nulls(kind: Kind, len: usize) -> Vector {
        let values = match kind {
            Kind::Whole => Values::Whole(vec![0; len]),
            Kind::Real => Values::Real(vec![0.0; len]),
            Kind::Decimal { .. } => Values::Decimal(vec![0; len]),
            Kind::Raw => {
                let mut dictionary = crate::strings::Strings::default();
                dictionary.push(&[]);
                Values::Raw(Raws::Coded { codes: vec![0; len], dictionary })
            }
        };
        Vector::new(values, Some(Bits::zeros(len)))
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match &self.values {
            Values::Whole(values) => values.len(),
            Values::Real(values) => values.len(),
            Values::Decimal(values) => values.len(),
            Values::Raw(Raws::Coded { codes, .. }) => codes.len(),
            Values::Raw(Raws::Plain(strings)) => strings.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Rows with a value; `None` means all.
    pub fn present(&self) -> Option<&Bits> {
        self.present.as_ref()
    }

    /// Whether a row has a value.
    #[inline]
    pub fn has(&self, row: usize) -> bool {
        self.present.as_ref().is_none_or(|present| present.get(row))
    }

    /// Smallest and greatest value of numbers; `None` if there are none.
    pub fn bounds(&self) -> Option<&(Value, Value)> {
        self.bounds.as_ref()
    }

    /// The bounds of its values.
    pub fn value_bounds(&self) -> Bounds {
        match &self.bounds {
            Some((least, greatest)) => Bounds::Between(least.clone(), greatest.clone()),
            None if matches!(self.values, Values::Raw(_)) => Bounds::Unknown,
            None => Bounds::AllNull,
        }
    }

    /// The value of a row.
    pub fn get(&self, row: usize) -> Value {
        if !self.has(row) {
            return Value::Null;
        }
        match &self.values {
            Values::Whole(values) => Value::Whole(values[row]),
            Values::Real(values) => Value::Real(values[row]),
            Values::Decimal(values) => Value::Decimal(values[row]),
            Values::Raw(raws) => Value::Raw(Bytes::copy_from_slice(raws.get(row))),
        }
    }

    /// Heap bytes, including `self`.
    pub fn heap_len(&self) -> usize {
        let values = match &self.values {
            Values::Whole(values) => values.capacity() * 8,
            Values::Real(values) => values.capacity() * 8,
            Values::Decimal(values) => values.capacity() * 16,
            Values::Raw(raws) => raws.heap_len(),
        };
        size_of::<Vector>() + values + self.present.as_ref().map_or(0, Bits::heap_len)
    }
}

fn bounds(values: &Values, present: Option<&Bits>) -> Option<(Value, Value)> {
    let has = |row: usize| present.is_none_or(|present| present.get(row));
    match values {
        Values::Whole(values) => {
            let (least, greatest) = ends(values, has, i64::cmp)?;
            Some((Value::Whole(least), Value::Whole(greatest)))
        }
        Values::Real(values) => {
            let (least, greatest) = ends(values, has, |left, right| compare_reals(*left, *right))?;
            Some((Value::Real(least), Value::Real(greatest)))
        }
        Values::Decimal(values) => {
            let (least, greatest) = ends(values, has, i128::cmp)?;
            Some((Value::Decimal(least), Value::Decimal(greatest)))
        }
        Values::Raw(_) => None,
    }
}

fn ends<T: Copy>(
    values: &[T],
    has: impl Fn(usize) -> bool,
    compare: impl Fn(&T, &T) -> std::cmp::Ordering,
) -> Option<(T, T)> {
    let mut present_values = values.iter().enumerate().filter(|(row, _)| has(*row)).map(|(_, value)| *value);
    let first = present_values.next()?;
    Some(present_values.fold((first, first), |(least, greatest), value| {
        let least = if compare(&value, &least).is_lt() { value } else { least };
        let greatest = if compare(&value, &greatest).is_gt() { value } else { greatest };
        (least, greatest)
    }))
}
