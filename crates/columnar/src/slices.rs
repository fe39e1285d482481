//! Splits batches with large values into slices, so that work on them can be interrupted.

use std::ops::Range;
use std::sync::Arc;

use crate::strings::{Raws, Strings};
use crate::vector::{Values, Vector};

/// A slice ends after the row with which its byte strings exceed this size: a few milliseconds of
/// comparisons.
const SLICE_BYTES: usize = 4 << 20;

/// Splits `rows` of `vectors` into consecutive ranges with byte strings of limited size. Rows with
/// only numbers are one range.
pub fn slice_ranges(vectors: &[Arc<Vector>], rows: Range<usize>) -> Vec<Range<usize>> {
    let large: Vec<&Raws> = vectors.iter().filter_map(|vector| raws(vector)).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    if large.iter().map(|raws| raws.bytes_len()).sum::<usize>() <= SLICE_BYTES {
        return vec![rows];
    }
    let mut ranges = Vec::new();
    let mut seen: Vec<Vec<bool>> = large.iter().map(|raws| new_seen(raws)).collect();
    let (mut start, mut bytes) = (rows.start, 0);
    for row in rows.clone() {
        if bytes > SLICE_BYTES {
            ranges.push(start..row);
            (start, bytes) = (row, 0);
            seen.iter_mut().for_each(|seen| seen.fill(false));
        }
        for (raws, seen) in large.iter().zip(&mut seen) {
            bytes += raws.cost(row, seen);
        }
    }
    ranges.push(start..rows.end);
    debug_assert_eq!(ranges.iter().map(Range::len).sum::<usize>(), rows.len(), "each row is in one slice");
    ranges
}

fn raws(vector: &Vector) -> Option<&Raws> {
    if let Values::Raw(raws) = vector.values() { Some(raws) } else { None }
}

fn new_seen(raws: &Raws) -> Vec<bool> {
    match raws {
        Raws::Coded { dictionary, .. } => vec![false; dictionary.len()],
        Raws::Plain(_) => Vec::new(),
    }
}

impl Raws {
    /// Bytes of all distinct strings.
    fn bytes_len(&self) -> usize {
        match self {
            Raws::Coded { dictionary, .. } => dictionary.bytes_len(),
            Raws::Plain(strings) => strings.bytes_len(),
        }
    }

    /// Bytes that a row adds to a slice. A dictionary string counts for the first row that has it.
    fn cost(&self, row: usize, seen: &mut [bool]) -> usize {
        match self {
            Raws::Coded { codes, dictionary } => {
                let code = codes[row] as usize;
                if std::mem::replace(&mut seen[code], true) { 0 } else { dictionary.get(code).len() }
            }
            Raws::Plain(strings) => strings.get(row).len(),
        }
    }

    fn slice(&self, rows: Range<usize>) -> Raws {
        match self {
            Raws::Coded { codes, dictionary } => {
                let (mut used, mut new_codes) = (Strings::default(), vec![None; dictionary.len()]);
                let new_code = |code: &u32| {
                    *new_codes[*code as usize].get_or_insert_with(|| {
                        used.push(dictionary.get(*code as usize));
                        used.len() as u32 - 1
                    })
                };
                let codes = codes[rows].iter().map(new_code).collect();
                Raws::Coded { codes, dictionary: used }
            }
            Raws::Plain(strings) => {
                let mut slice = Strings::default();
                rows.for_each(|row| slice.push(strings.get(row)));
                Raws::Plain(slice)
            }
        }
    }
}

impl Vector {
    /// The values of a range of rows.
    pub fn slice(&self, rows: Range<usize>) -> Vector {
        let values = match self.values() {
            Values::Whole(values) => Values::Whole(values[rows.clone()].to_vec()),
            Values::Real(values) => Values::Real(values[rows.clone()].to_vec()),
            Values::Decimal(values) => Values::Decimal(values[rows.clone()].to_vec()),
            Values::Raw(raws) => Values::Raw(raws.slice(rows.clone())),
        };
        Vector::new(values, self.present().map(|present| present.slice(rows)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::VectorBuilder;
    use crate::column::{Column, ColumnLocation};
    use crate::encoding::Encoding;

    fn raw_vector(values: impl Iterator<Item = Option<Vec<u8>>>) -> Arc<Vector> {
        let location = ColumnLocation::RowBytes { offset: 0, length: None };
        let mut builder = VectorBuilder::new(&Column { location, encoding: Encoding::Raw, scale: 0 });
        for value in values {
            match value {
                Some(value) => builder.push(&value).expect("any bytes"),
                None => builder.push_null(),
            }
        }
        Arc::new(builder.finish())
    }

    /// Checks that the slices contain the rows in order, and exceed the limit by at most one row of
    /// strings.
    fn check(vector: &Arc<Vector>, rows: Range<usize>) -> Vec<Range<usize>> {
        let ranges = slice_ranges(std::slice::from_ref(vector), rows.clone());
        let all: Vec<usize> = ranges.iter().cloned().flatten().collect();
        assert_eq!(all, rows.collect::<Vec<_>>());
        for range in &ranges {
            let slice = vector.slice(range.clone());
            for (at, row) in range.clone().enumerate() {
                assert_eq!(slice.get(at), vector.get(row));
            }
            assert!(raws(&slice).expect("bytes").bytes_len() <= SLICE_BYTES + (1 << 20));
        }
        ranges
    }

    #[test]
    fn vectors_of_large_values_are_sliced_and_small_ones_are_not() {
        let value = |row: usize| (!row.is_multiple_of(7)).then(|| format!("{row}").into_bytes());
        assert_eq!(check(&raw_vector((0..10_000).map(value)), 17..9000).len(), 1);
        // A few large values that repeat count once each; distinct ones count separately.
        let large = |row: usize| (!row.is_multiple_of(7)).then(|| vec![row as u8; 1 << 20]);
        assert_eq!(check(&raw_vector((0..60).map(|row| large(row % 3))), 0..60).len(), 1);
        assert!(check(&raw_vector((0..20).map(large)), 3..20).len() >= 3);
        assert!(check(&raw_vector((0..20).map(large)), 5..5).is_empty());
    }
}
