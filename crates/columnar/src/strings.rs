//! Byte strings in contiguous memory.

/// A list of byte strings in one allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strings {
    // End offset of each string.
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl Strings {
    /// Number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string at an index.
    #[inline]
    pub fn get(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.bytes[start..self.ends[at] as usize]
    }

    /// Appends a string. The total must be less than 4 GiB; batches are far smaller.
    pub fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(u32::try_from(self.bytes.len()).expect("a batch is far smaller than 4 GiB"));
    }

    /// Total bytes of the strings.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// Heap bytes, excluding `self`.
    pub fn heap_len(&self) -> usize {
        self.ends.capacity() * 4 + self.bytes.capacity()
    }

    /// Releases unused memory.
    pub fn shrink(&mut self) {
        self.ends.shrink_to_fit();
        self.bytes.shrink_to_fit();
    }
}

/// Byte strings of the rows of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Raws {
    /// Few distinct strings: rows have indexes into a dictionary.
    Coded {
        /// Dictionary index of each row.
        codes: Vec<u32>,
        /// The distinct strings.
        dictionary: Strings,
    },
    /// One string per row.
    Plain(Strings),
}

impl Raws {
    /// The string of a row.
    #[inline]
    pub fn get(&self, row: usize) -> &[u8] {
        match self {
            Raws::Coded { codes, dictionary } => dictionary.get(codes[row] as usize),
            Raws::Plain(strings) => strings.get(row),
        }
    }

    /// Heap bytes, excluding `self`.
    pub fn heap_len(&self) -> usize {
        match self {
            Raws::Coded { codes, dictionary } => codes.capacity() * 4 + dictionary.heap_len(),
            Raws::Plain(strings) => strings.heap_len(),
        }
    }
}
