//! Values of bytes, one behind the other.

/// A list of byte strings in one piece of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strings {
    // Where each ends.
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl Strings {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// One of them.
    #[inline]
    pub fn get(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.bytes[start..self.ends[at] as usize]
    }

    /// Adds one. All together are of less than 4 GiB: batches are far smaller.
    pub fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(u32::try_from(self.bytes.len()).expect("a batch holds far less than 4 GiB"));
    }

    /// Bytes of all of them.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of memory beside the value itself.
    pub fn heap_len(&self) -> usize {
        self.ends.capacity() * 4 + self.bytes.capacity()
    }

    /// Lets go of memory that is not used.
    pub fn shrink(&mut self) {
        self.ends.shrink_to_fit();
        self.bytes.shrink_to_fit();
    }
}

/// The byte strings of the rows of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Raws {
    /// Few different ones: rows have their places in the list.
    Coded {
        /// The place of each row's.
        codes: Vec<u32>,
        /// All that there are, each once.
        dictionary: Strings,
    },
    /// One for each row.
    Plain(Strings),
}

impl Raws {
    /// That of a row.
    #[inline]
    pub fn get(&self, row: usize) -> &[u8] {
        match self {
            Raws::Coded { codes, dictionary } => dictionary.get(codes[row] as usize),
            Raws::Plain(strings) => strings.get(row),
        }
    }

    /// Bytes of memory beside the value itself.
    pub fn heap_len(&self) -> usize {
        match self {
            Raws::Coded { codes, dictionary } => codes.capacity() * 4 + dictionary.heap_len(),
            Raws::Plain(strings) => strings.heap_len(),
        }
    }
}
