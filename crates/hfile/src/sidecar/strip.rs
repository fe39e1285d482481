//! A strip: the values of one column for the rows of a stretch.

use bytes::Bytes;

use crate::error::{Fault, Parsed};
use crate::input::Input;

/// The values, stored contiguously. If some rows have no value, a bitmap marks those that do.
#[derive(Clone, Debug)]
pub struct Strip {
    rows: usize,
    // One bit per row, set if it has a value; the first row is the lowest bit of the first byte.
    // `None` if all rows have a value.
    present: Option<Bytes>,
    lengths: Lengths,
    values: Bytes,
}

#[derive(Clone, Debug)]
enum Lengths {
    /// The common length of all values.
    Equal(usize),
    /// The end offset of each value, four bytes each.
    Ends(Bytes),
}

const CUT: &str = "sidecar strip truncated";
const ALL_PRESENT: u8 = 0;
const SOME_PRESENT: u8 = 1;
const EQUAL_LENS: u8 = 0;
const OTHER_LENS: u8 = 1;

impl Strip {
    pub(super) fn parse(payload: Bytes, rows: usize) -> Parsed<Strip> {
        let mut input = Input::new(&payload);
        let (present, count) = match input.u8(CUT)? {
            ALL_PRESENT => (None, rows),
            SOME_PRESENT => {
                let bits = input.take(rows.div_ceil(8), CUT)?;
                let unused = bits.last().map_or(0, |last| last.checked_shr(rows as u32 % 8).unwrap_or(0));
                if !rows.is_multiple_of(8) && unused != 0 {
                    return Err(Fault::Damaged("sidecar strip has values after its rows"));
                }
                let count = bits.iter().map(|byte| byte.count_ones() as usize).sum();
                (Some(payload.slice_ref(bits)), count)
            }
            _ => return Err(Fault::Damaged("sidecar strip has an unknown form")),
        };
        let (lens, bytes_len) = match input.u8(CUT)? {
            EQUAL_LENS => {
                let len = input.u32(CUT)? as usize;
                (Lengths::Equal(len), len.checked_mul(count).ok_or(Fault::Damaged(CUT))?)
            }
            OTHER_LENS => {
                let ends = input.take(count.checked_mul(4).ok_or(Fault::Damaged(CUT))?, CUT)?;
                (Lengths::Ends(payload.slice_ref(ends)), checked_end(ends)?)
            }
            _ => return Err(Fault::Damaged("sidecar strip has an unknown form")),
        };
        let values = payload.slice_ref(input.take(bytes_len, CUT)?);
        input.end("sidecar strip has trailing bytes")?;
        Ok(Strip { rows, present, lengths: lens, values })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The value of each row, in order; `None` for a row without a value.
    pub fn values(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let (mut at, mut start) = (0, 0);
        (0..self.rows).map(move |row| {
            if !self.has(row) {
                return None;
            }
            let end = match &self.lengths {
                Lengths::Equal(len) => start + len,
                Lengths::Ends(ends) => end_of(ends, at),
            };
            let value = &self.values[start..end];
            (at, start) = (at + 1, end);
            Some(value)
        })
    }

    fn has(&self, row: usize) -> bool {
        self.present.as_ref().is_none_or(|bits| bits[row / 8] >> (row % 8) & 1 == 1)
    }
}

fn end_of(ends: &[u8], at: usize) -> usize {
    let end = ends[at * 4..].first_chunk().expect("one end per value, as checked by parse");
    u32::from_be_bytes(*end) as usize
}

/// Returns the end of the last value. Fails if an end is less than the previous one.
fn checked_end(ends: &[u8]) -> Parsed<usize> {
    let mut last = 0;
    for at in 0..ends.len() / 4 {
        let end = end_of(ends, at);
        if end < last {
            return Err(Fault::Damaged("sidecar strip out of order"));
        }
        last = end;
    }
    Ok(last)
}

/// A strip under construction.
#[derive(Debug, Default)]
pub(super) struct StripBuilder {
    // The row of each value.
    rows: Vec<u32>,
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl StripBuilder {
    /// Adds the value of `row`. Rows must be in ascending order.
    pub(super) fn push(&mut self, row: u32, value: &[u8]) {
        debug_assert!(self.rows.last().is_none_or(|last| *last < row), "a row has one value in a strip");
        self.rows.push(row);
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len() as u32);
    }

    /// Approximate bytes of memory.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() + self.rows.len() * 8
    }

    /// Encodes the payload for a stretch of `rows` rows.
    pub(super) fn payload(&self, rows: u32) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len() + 16);
        if self.rows.len() == rows as usize {
            out.push(ALL_PRESENT);
        } else {
            out.push(SOME_PRESENT);
            let start = out.len();
            out.resize(start + (rows as usize).div_ceil(8), 0);
            for row in &self.rows {
                out[start + *row as usize / 8] |= 1 << (row % 8);
            }
        }
        match self.equal_len() {
            Some(len) => {
                out.push(EQUAL_LENS);
                out.extend_from_slice(&len.to_be_bytes());
            }
            None => {
                out.push(OTHER_LENS);
                self.ends.iter().for_each(|end| out.extend_from_slice(&end.to_be_bytes()));
            }
        }
        out.extend_from_slice(&self.bytes);
        out
    }

    /// The common length of all values, if there is one.
    fn equal_len(&self) -> Option<u32> {
        let len = self.ends.first().copied().unwrap_or(0);
        let is_equal = |(at, end): (usize, &u32)| u64::from(*end) == u64::from(len) * (at as u64 + 1);
        self.ends.iter().enumerate().all(is_equal).then_some(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(values: &[Option<&[u8]>]) -> Bytes {
        let mut builder = StripBuilder::default();
        for (row, value) in values.iter().enumerate() {
            if let Some(value) = value {
                builder.push(row as u32, value);
            }
        }
        builder.payload(values.len() as u32).into()
    }

    #[test]
    fn written_contents_are_read_back() {
        let all: [&[Option<&[u8]>]; 5] = [
            &[Some(b"one"), Some(b"two"), Some(b"six")],
            &[Some(b"one"), None, Some(b"three"), Some(b"")],
            &[None, None, None, None, None, None, None, None, Some(b"nine")],
            &[None; 8],
            &[],
        ];
        for values in all {
            let strip = Strip::parse(written(values), values.len()).unwrap();
            assert_eq!(strip.values().collect::<Vec<_>>(), values);
        }
    }

    #[test]
    fn equal_lengths_are_stored_once() {
        let numbers: Vec<[u8; 8]> = (0..100_u64).map(u64::to_be_bytes).collect();
        let values: Vec<Option<&[u8]>> = numbers.iter().map(|number| Some(&number[..])).collect();
        assert_eq!(written(&values).len(), 1 + 1 + 4 + 800);
    }

    #[test]
    fn damage_is_found() {
        let payload = written(&[Some(b"one"), None, Some(b"three")]);
        for len in 0..payload.len() {
            assert!(Strip::parse(payload.slice(..len), 3).is_err(), "{len} bytes are too few");
        }
        assert!(Strip::parse(payload.clone(), 2).is_err(), "a value after the rows");
        assert!(Strip::parse(payload.clone(), 4).is_ok(), "one more empty row is not detectable");
        let mut out_of_order = payload.to_vec();
        out_of_order[6] = 200;
        assert!(Strip::parse(out_of_order.into(), 3).is_err());
    }
}
