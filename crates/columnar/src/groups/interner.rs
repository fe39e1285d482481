//! Numbers for the distinct values of a column.

use std::collections::HashMap;

use bytes::Bytes;

use crate::groups::table_bytes;
use crate::strings::Raws;
use crate::value::{Kind, Value};
use crate::vector::{Values, Vector};

/// Marks an entry without a number in a batch's table.
const NONE: u32 = u32::MAX;
/// Allocator and reference counting overhead of a byte string.
const ALLOCATION_BYTES: usize = 48;

/// Numbers the distinct values of one column from 0; null has a number too.
pub(super) struct Interner {
    known: NumberTable,
    values: Vec<Value>,
    null: Option<u32>,
    raw_bytes: usize,
    // Lookup table of the current batch: numbers by dictionary code, or by distance from the
    // smallest value.
    table: Vec<u32>,
}

enum NumberTable {
    Whole(HashMap<i64, u32>),
    Real(HashMap<u64, u32>),
    Decimal(HashMap<i128, u32>),
    Raw(HashMap<Bytes, u32>),
}

impl Interner {
    pub(super) fn new(kind: Kind) -> Interner {
        let known = match kind {
            Kind::Whole => NumberTable::Whole(HashMap::new()),
            Kind::Real => NumberTable::Real(HashMap::new()),
            Kind::Decimal { .. } => NumberTable::Decimal(HashMap::new()),
            Kind::Raw => NumberTable::Raw(HashMap::new()),
        };
        Interner { known, values: Vec::new(), null: None, raw_bytes: 0, table: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn value(&self, number: u32) -> Value {
        self.values[number as usize].clone()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let known = match &self.known {
            NumberTable::Whole(known) => table_bytes::<(i64, u32)>(known.capacity()),
            NumberTable::Real(known) => table_bytes::<(u64, u32)>(known.capacity()),
            NumberTable::Decimal(known) => table_bytes::<(i128, u32)>(known.capacity()),
            NumberTable::Raw(known) => table_bytes::<(Bytes, u32)>(known.capacity()),
        };
        known + self.values.capacity() * size_of::<Value>() + self.raw_bytes
    }

    /// Adds the values of another interner of the same kind. Returns the own number of each of its
    /// values.
    pub(super) fn absorb(&mut self, other: &Interner) -> Vec<u32> {
        let number = |value: &Value| match value {
            Value::Null => self.null(),
            Value::Whole(value) => self.whole(*value),
            Value::Real(value) => self.real(*value),
            Value::Decimal(value) => self.decimal(*value),
            Value::Raw(value) => self.raw(value),
        };
        other.values.iter().map(number).collect()
    }

    /// Stores the numbers of the values of `rows` in `numbers` and replaces its contents.
    pub(super) fn numbers(&mut self, vector: &Vector, rows: &[u32], numbers: &mut Vec<u32>) {
        numbers.clear();
        match vector.values() {
            Values::Whole(values) => match narrow(vector, rows.len()) {
                Some((least, width)) => {
                    let at = |row: u32| (values[row as usize].wrapping_sub(least)) as usize;
                    self.by_table(vector, rows, numbers, width, at, |interner, row| {
                        interner.whole(values[row])
                    });
                }
                None => self.one_by_one(vector, rows, numbers, |interner, row| interner.whole(values[row])),
            },
            Values::Real(values) => {
                self.one_by_one(vector, rows, numbers, |interner, row| interner.real(values[row]));
            }
            Values::Decimal(values) => {
                self.one_by_one(vector, rows, numbers, |interner, row| interner.decimal(values[row]));
            }
            Values::Raw(raws @ Raws::Coded { codes, dictionary }) => {
                let at = |row: u32| codes[row as usize] as usize;
                let width = dictionary.len();
                self.by_table(vector, rows, numbers, width, at, |interner, row| interner.raw(raws.get(row)));
            }
            Values::Raw(Raws::Plain(strings)) => {
                self.one_by_one(vector, rows, numbers, |interner, row| interner.raw(strings.get(row)));
            }
        }
    }

    fn one_by_one(
        &mut self,
        vector: &Vector,
        rows: &[u32],
        numbers: &mut Vec<u32>,
        number: impl Fn(&mut Interner, usize) -> u32,
    ) {
        for row in rows {
            let row = *row as usize;
            numbers.push(if vector.has(row) { number(self, row) } else { self.null() });
        }
    }

    /// Looks up each distinct value of a batch once. `at` is less than `width`, and equal for equal
    /// values.
    fn by_table(
        &mut self,
        vector: &Vector,
        rows: &[u32],
        numbers: &mut Vec<u32>,
        width: usize,
        at: impl Fn(u32) -> usize,
        number: impl Fn(&mut Interner, usize) -> u32,
    ) {
        let mut table = std::mem::take(&mut self.table);
        table.clear();
        table.resize(width, NONE);
        for row in rows {
            if !vector.has(*row as usize) {
                numbers.push(self.null());
                continue;
            }
            let known = &mut table[at(*row)];
            if *known == NONE {
                *known = number(self, *row as usize);
            }
            numbers.push(*known);
        }
        self.table = table;
    }

    fn null(&mut self) -> u32 {
        *self.null.get_or_insert_with(|| {
            self.values.push(Value::Null);
            self.values.len() as u32 - 1
        })
    }

    fn whole(&mut self, value: i64) -> u32 {
        let NumberTable::Whole(known) = &mut self.known else { unreachable!("a column has one kind") };
        *known.entry(value).or_insert_with(|| {
            self.values.push(Value::Whole(value));
            self.values.len() as u32 - 1
        })
    }

    fn real(&mut self, value: f64) -> u32 {
        let NumberTable::Real(known) = &mut self.known else { unreachable!("a column has one kind") };
        // Equal values are one group: both zeros, and all NaNs.
        let value = if value.is_nan() { f64::NAN } else { value + 0.0 };
        *known.entry(value.to_bits()).or_insert_with(|| {
            self.values.push(Value::Real(value));
            self.values.len() as u32 - 1
        })
    }

    fn decimal(&mut self, value: i128) -> u32 {
        let NumberTable::Decimal(known) = &mut self.known else { unreachable!("a column has one kind") };
        *known.entry(value).or_insert_with(|| {
            self.values.push(Value::Decimal(value));
            self.values.len() as u32 - 1
        })
    }

    fn raw(&mut self, value: &[u8]) -> u32 {
        let NumberTable::Raw(known) = &mut self.known else { unreachable!("a column has one kind") };
        if let Some(number) = known.get(value) {
            return *number;
        }
        let (number, value) = (self.values.len() as u32, Bytes::copy_from_slice(value));
        self.raw_bytes += value.len() + ALLOCATION_BYTES;
        self.values.push(Value::Raw(value.clone()));
        known.insert(value, number);
        number
    }
}

/// The smallest value and the width of the value range, if a table for it is not much larger than
/// the batch.
fn narrow(vector: &Vector, rows: usize) -> Option<(i64, usize)> {
    let (Value::Whole(least), Value::Whole(greatest)) = vector.bounds()? else { return None };
    let width = usize::try_from(greatest.checked_sub(*least)?).ok()?.checked_add(1)?;
    (width <= 2 * rows + 256).then_some((*least, width))
}
