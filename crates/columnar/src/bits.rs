//! Bit sets with one bit per row of a batch.

/// A bit for each of `len` rows. Bits after the last row are always zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    /// All bits zero.
    pub fn zeros(len: usize) -> Bits {
        Bits { words: vec![0; len.div_ceil(64)], len }
    }

    /// All bits one.
    pub fn ones(len: usize) -> Bits {
        let mut bits = Bits { words: vec![u64::MAX; len.div_ceil(64)], len };
        bits.trim();
        bits
    }

    /// Bits that are one for each row for which `holds` returns true.
    #[inline]
    pub fn of(len: usize, mut holds: impl FnMut(usize) -> bool) -> Bits {
        let mut words = Vec::with_capacity(len.div_ceil(64));
        let mut start = 0;
        while start < len {
            let end = (start + 64).min(len);
            words.push((start..end).fold(0, |word, row| word | u64::from(holds(row)) << (row - start)));
            start = end;
        }
        Bits { words, len }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bit of a row.
    #[inline]
    pub fn get(&self, row: usize) -> bool {
        self.words[row / 64] >> (row % 64) & 1 == 1
    }

    /// Sets the bit of a row to one.
    #[inline]
    pub fn set(&mut self, row: usize) {
        assert!(row < self.len);
        self.words[row / 64] |= 1 << (row % 64);
    }

    /// The bits of a range of rows.
    pub fn slice(&self, rows: std::ops::Range<usize>) -> Bits {
        Bits::of(rows.len(), |row| self.get(rows.start + row))
    }

    /// Number of one bits.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Intersection: clears bits that are zero in `other`.
    pub fn and(&mut self, other: &Bits) {
        self.zip(other, |left, right| left & right);
    }

    /// Union: sets bits that are one in `other`.
    pub fn or(&mut self, other: &Bits) {
        self.zip(other, |left, right| left | right);
    }

    /// Difference: clears bits that are one in `other`.
    pub fn and_not(&mut self, other: &Bits) {
        self.zip(other, |left, right| left & !right);
    }

    fn zip(&mut self, other: &Bits, join: impl Fn(u64, u64) -> u64) {
        assert_eq!(self.len, other.len, "both bit sets must have the same length");
        for (left, right) in self.words.iter_mut().zip(&other.words) {
            *left = join(*left, *right);
        }
    }

    /// Appends the rows whose bit is one to `rows`, in order.
    pub fn rows_into(&self, rows: &mut Vec<u32>) {
        for (at, word) in self.words.iter().enumerate() {
            let (mut left, start) = (*word, at as u32 * 64);
            if left == u64::MAX {
                rows.extend(start..start + 64);
                continue;
            }
            while left != 0 {
                rows.push(start + left.trailing_zeros());
                left &= left - 1;
            }
        }
    }

    /// Heap bytes, excluding `self`.
    pub fn heap_len(&self) -> usize {
        self.words.capacity() * 8
    }

    /// The bits as bytes, lowest bit first.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(self.len.div_ceil(8));
        bytes
    }

    fn trim(&mut self) {
        let rest = self.len % 64;
        if let Some(last) = self.words.last_mut()
            && rest != 0
        {
            *last &= (1 << rest) - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_all_lengths() {
        for len in [0, 1, 63, 64, 65, 128, 200] {
            let thirds = Bits::of(len, |row| row % 3 == 0);
            assert_eq!(thirds.count(), len.div_ceil(3));
            let mut rows = Vec::new();
            thirds.rows_into(&mut rows);
            assert_eq!(rows, (0..len as u32).step_by(3).collect::<Vec<_>>());
            let mut rest = Bits::ones(len);
            rest.and_not(&thirds);
            assert_eq!(rest, Bits::of(len, |row| row % 3 != 0));
            rest.or(&thirds);
            assert_eq!(rest, Bits::ones(len));
            assert_eq!(rest.to_bytes().len(), len.div_ceil(8));
        }
    }
}
