//! Compressed vectors: values take only as many bytes as they need.
//!
//! A number is stored as its distance from the smallest one, in 1, 2, 4 or 8 bytes. A string's code
//! takes as many bytes as the dictionary requires. With few distinct values a packed vector takes
//! one eighth of the memory. Unpacking costs one addition per value, less than any operation on it.

use std::sync::Arc;

use crate::bits::Bits;
use crate::strings::{Raws, Strings};
use crate::value::Value;
use crate::vector::{Bounds, Values, Vector};

/// A packed vector.
#[derive(Clone, Debug)]
pub struct Packed {
    body: Body,
    present: Option<Bits>,
    bounds: Option<(Value, Value)>,
}

#[derive(Clone, Debug)]
enum Body {
    Whole {
        least: i64,
        distances: Distances,
    },
    Decimal {
        least: i128,
        distances: Distances,
    },
    Coded {
        codes: Distances,
        dictionary: Arc<Strings>,
    },
    /// A vector that would not become smaller.
    Unpacked(Arc<Vector>),
}

/// Non-negative numbers.
#[derive(Clone, Debug)]
enum Distances {
    Bytes(Box<[u8]>),
    Shorts(Box<[u16]>),
    Ints(Box<[u32]>),
    Longs(Box<[u64]>),
}

impl Distances {
    /// `None` if the greatest needs more than 8 bytes.
    fn new(greatest: u128, values: impl Iterator<Item = u128>) -> Option<Distances> {
        Some(match greatest {
            0..0x100 => Distances::Bytes(values.map(|value| value as u8).collect()),
            0x100..0x1_0000 => Distances::Shorts(values.map(|value| value as u16).collect()),
            0x1_0000..0x1_0000_0000 => Distances::Ints(values.map(|value| value as u32).collect()),
            0x1_0000_0000..0x1_0000_0000_0000_0000 => {
                Distances::Longs(values.map(|value| value as u64).collect())
            }
            _ => return None,
        })
    }

    /// All values, converted with `convert`.
    fn unpacked<T>(&self, convert: impl Fn(u64) -> T) -> Vec<T> {
        match self {
            Distances::Bytes(values) => values.iter().map(|value| convert(u64::from(*value))).collect(),
            Distances::Shorts(values) => values.iter().map(|value| convert(u64::from(*value))).collect(),
            Distances::Ints(values) => values.iter().map(|value| convert(u64::from(*value))).collect(),
            Distances::Longs(values) => values.iter().map(|value| convert(*value)).collect(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Distances::Bytes(values) => values.len(),
            Distances::Shorts(values) => values.len(),
            Distances::Ints(values) => values.len(),
            Distances::Longs(values) => values.len(),
        }
    }

    fn heap_len(&self) -> usize {
        match self {
            Distances::Bytes(values) => values.len(),
            Distances::Shorts(values) => values.len() * 2,
            Distances::Ints(values) => values.len() * 4,
            Distances::Longs(values) => values.len() * 8,
        }
    }
}

impl Packed {
    /// Packs a vector.
    pub fn new(vector: Vector) -> Packed {
        let (present, bounds) = (vector.present().cloned(), vector.bounds().cloned());
        let body = pack(&vector).unwrap_or_else(|| Body::Unpacked(Arc::new(vector)));
        Packed { body, present, bounds }
    }

    /// The vector.
    pub fn unpack(&self) -> Arc<Vector> {
        let values = match &self.body {
            Body::Unpacked(vector) => return vector.clone(),
            Body::Whole { least, distances } => {
                Values::Whole(distances.unpacked(|distance| least.wrapping_add_unsigned(distance)))
            }
            Body::Decimal { least, distances } => {
                Values::Decimal(distances.unpacked(|distance| least + i128::from(distance)))
            }
            Body::Coded { codes, dictionary } => {
                let codes = codes.unpacked(|code| code as u32);
                Values::Raw(Raws::Coded { codes, dictionary: (**dictionary).clone() })
            }
        };
        Arc::new(Vector::with_bounds(values, self.present.clone(), self.bounds.clone()))
    }

    /// The bounds of its values.
    pub fn bounds(&self) -> Bounds {
        match (&self.body, &self.bounds) {
            (Body::Unpacked(vector), _) => vector.value_bounds(),
            (Body::Coded { .. }, _) => Bounds::Unknown,
            (_, Some((least, greatest))) => Bounds::Between(least.clone(), greatest.clone()),
            (_, None) => Bounds::AllNull,
        }
    }

    /// Heap bytes of the vector after unpacking.
    pub fn unpacked_len(&self) -> usize {
        let values = match &self.body {
            Body::Unpacked(vector) => return vector.heap_len(),
            Body::Whole { distances, .. } => distances.len() * 8,
            Body::Decimal { distances, .. } => distances.len() * 16,
            Body::Coded { codes, dictionary } => codes.len() * 4 + dictionary.heap_len(),
        };
        size_of::<Vector>() + values + self.present.as_ref().map_or(0, Bits::heap_len)
    }

    /// Heap bytes.
    pub fn heap_len(&self) -> usize {
        let body = match &self.body {
            Body::Unpacked(vector) => vector.heap_len(),
            Body::Whole { distances, .. } | Body::Decimal { distances, .. } => distances.heap_len(),
            Body::Coded { codes, dictionary } => codes.heap_len() + dictionary.heap_len(),
        };
        size_of::<Packed>() + body + self.present.as_ref().map_or(0, Bits::heap_len)
    }
}

/// The packed values; `None` if packing saves nothing.
fn pack(vector: &Vector) -> Option<Body> {
    match (vector.values(), vector.bounds()) {
        (Values::Whole(values), Some((Value::Whole(least), Value::Whole(greatest)))) => {
            // Rows without a value contain an arbitrary one, which may be out of bounds.
            let distance = |value: &i64| u128::from(value.clamp(least, greatest).abs_diff(*least));
            let distances = Distances::new(distance(greatest), values.iter().map(distance))?;
            let is_smaller = !matches!(distances, Distances::Longs(_));
            is_smaller.then_some(Body::Whole { least: *least, distances })
        }
        (Values::Decimal(values), Some((Value::Decimal(least), Value::Decimal(greatest)))) => {
            let distance = |value: &i128| value.clamp(least, greatest).abs_diff(*least);
            let distances = Distances::new(distance(greatest), values.iter().map(distance))?;
            Some(Body::Decimal { least: *least, distances })
        }
        (Values::Raw(Raws::Coded { codes, dictionary }), _) => {
            let greatest = dictionary.len().saturating_sub(1) as u128;
            let codes = Distances::new(greatest, codes.iter().map(|code| u128::from(*code)))?;
            Some(Body::Coded { codes, dictionary: Arc::new(dictionary.clone()) })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::VectorBuilder;
    use crate::column::{Column, ColumnLocation};
    use crate::encoding::Encoding;
    use crate::value::Kind;

    fn check(vector: &Vector, bytes_max: usize) {
        let packed = Packed::new(vector.clone());
        let unpacked = packed.unpack();
        assert_eq!(unpacked.len(), vector.len());
        for row in 0..vector.len() {
            assert_eq!(unpacked.get(row), vector.get(row));
        }
        assert_eq!(unpacked.bounds(), vector.bounds());
        assert_eq!(packed.bounds(), vector.value_bounds());
        assert!((unpacked.heap_len()..=vector.heap_len()).contains(&packed.unpacked_len()));
        // Bytes of the values only.
        let bytes = packed.heap_len() - size_of::<Packed>();
        let bytes = if let Body::Unpacked(_) = packed.body { bytes - size_of::<Vector>() } else { bytes };
        assert!(bytes <= bytes_max, "{bytes} bytes for {} rows", vector.len());
    }

    fn whole(values: &[Option<i64>]) -> Vector {
        let present = Bits::of(values.len(), |row| values[row].is_some());
        Vector::new(Values::Whole(values.iter().map(|value| value.unwrap_or(0)).collect()), Some(present))
    }

    #[test]
    fn numbers_take_the_bytes_of_their_differences() {
        let spread = |least: i64, greatest: i64| -> Vec<Option<i64>> {
            (0..1000).map(|at| Some(if at % 2 == 0 { least } else { greatest })).collect()
        };
        check(&whole(&spread(1_000_000_000_000, 1_000_000_000_255)), 1000);
        check(&whole(&spread(-100, 156)), 2000);
        check(&whole(&spread(i64::MIN, i64::MIN + 70_000)), 4000);
        check(&whole(&spread(i64::MIN, i64::MAX)), 8200);
        check(&whole(&spread(7, 7)), 1000);
    }

    #[test]
    fn rows_without_a_value_stay_so() {
        // The placeholder for a missing value, 0, is out of bounds.
        let some: Vec<Option<i64>> = (0..1000).map(|at| (at % 3 > 0).then_some(5_000_000 + at)).collect();
        check(&whole(&some), 2200);
        check(&whole(&[None; 64]), 8 * 64 + 64);
        check(&whole(&[]), 0);
        check(&Vector::nulls(Kind::Raw, 300), 400);
    }

    #[test]
    fn decimals_and_reals() {
        let decimals: Vec<i128> = (0..1000).map(|at| i128::MIN / 4 + at % 200).collect();
        check(&Vector::new(Values::Decimal(decimals), None), 1000);
        let far = Vector::new(Values::Decimal(vec![i128::MIN / 4, i128::MAX / 4]), None);
        check(&far, 1000);
        check(&Vector::new(Values::Real(vec![0.5; 100]), None), 1000);
    }

    #[test]
    fn strings_take_the_bytes_of_their_codes() {
        let location = ColumnLocation::Cell { family: "f".into(), qualifier: "q".into() };
        let mut builder = VectorBuilder::new(&Column { location, encoding: Encoding::Raw, scale: 0 });
        for at in 0..10_000 {
            builder.push(format!("town {}", at % 50).as_bytes()).unwrap();
        }
        check(&builder.finish(), 12_000);
    }
}
