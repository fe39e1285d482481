//! Vectors: the values of one column for the rows of a batch.

use bytes::Bytes;

use crate::bits::Bits;
use crate::strings::Raws;
use crate::value::{Kind, Value, compare_reals};

/// The values of one column, a row each.
#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    values: Values,
    // Which rows have a value; all, if there is nothing.
    present: Option<Bits>,
    // The least and the greatest value, of numbers.
    bounds: Option<(Value, Value)>,
}

/// What is known of the values of a column without a look at them.
#[derive(Clone, Debug, PartialEq)]
pub enum Bounds {
    /// Nothing: they may be any.
    Unknown,
    /// There are none but nulls.
    Nothing,
    /// The least and the greatest.
    Between(Value, Value),
}

/// Values by kind. Rows without a value have any: zero, mostly.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Of [`Kind::Whole`].
    Whole(Vec<i64>),
    /// Of [`Kind::Real`].
    Real(Vec<f64>),
    /// Of [`Kind::Decimal`], unscaled.
    Decimal(Vec<i128>),
    /// Of [`Kind::Raw`].
    Raw(Raws),
}

impl Vector {
    /// A vector; `present` is of as many rows.
    pub fn new(values: Values, present: Option<Bits>) -> Vector {
        let present = present.filter(|bits| bits.count() < bits.len());
        let bounds = bounds(&values, present.as_ref());
        Vector { values, present, bounds }
    }

    /// The same where the bounds are known already.
    pub(crate) fn with_bounds(
        values: Values,
        present: Option<Bits>,
        bounds: Option<(Value, Value)>,
    ) -> Vector {
        Vector { values, present, bounds }
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

    /// Rows.
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

    /// Which rows have a value; all, if there is nothing.
    pub fn present(&self) -> Option<&Bits> {
        self.present.as_ref()
    }

    /// Whether a row has a value.
    #[inline]
    pub fn has(&self, row: usize) -> bool {
        self.present.as_ref().is_none_or(|present| present.get(row))
    }

    /// The least and the greatest value of numbers; nothing if there are none.
    pub fn bounds(&self) -> Option<&(Value, Value)> {
        self.bounds.as_ref()
    }

    /// What is known of its values.
    pub fn known(&self) -> Bounds {
        match &self.bounds {
            Some((least, greatest)) => Bounds::Between(least.clone(), greatest.clone()),
            None if matches!(self.values, Values::Raw(_)) => Bounds::Unknown,
            None => Bounds::Nothing,
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

    /// Bytes of memory.
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
    let mut there = values.iter().enumerate().filter(|(row, _)| has(*row)).map(|(_, value)| *value);
    let first = there.next()?;
    Some(there.fold((first, first), |(least, greatest), value| {
        let least = if compare(&value, &least).is_lt() { value } else { least };
        let greatest = if compare(&value, &greatest).is_gt() { value } else { greatest };
        (least, greatest)
    }))
}
