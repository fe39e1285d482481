//! Block index: sorted entries (key, offset, on-disk length), each of which points at a block.
//!
//! ```text
//! root:               ( offset 8 | on-disk length 4 | key length, vint | key )*
//!                     [ leaf offset 8 | leaf length 4 | entry in leaf 4 ]
//! leaf, intermediate: n 4 | start of entry 4 * (n + 1) | ( offset 8 | on-disk length 4 | key )*
//! ```
//!
//! The number of a root's entries is stored elsewhere. If the index has several levels, the
//! position of the middle of the file follows them.
//!
//! The keys of a data index separate blocks: each is greater than the last key of the previous
//! block, and not greater than the first key of its own block. They are complete keys, but may
//! belong to no existing cell. Bloom filters store their chunk index in root form too.

use std::cmp::Ordering;
use std::ops::Range;

use bytes::Bytes;
use cell::{CellOrder, key};

use crate::error::{Fault, Parsed};
use crate::heads::HeadSearch;
use crate::input::Input;

/// Bytes of an entry before its key.
pub(crate) const TARGET_LEN: usize = 8 + 4;
/// Bytes of the middle-of-file entry that follows a root.
pub(crate) const MIDDLE_LEN: usize = 8 + 4 + 4;

/// The checked entries of one index block. Keys stay in the block's payload.
#[derive(Debug)]
pub(crate) struct Index {
    payload: Bytes,
    head_search: HeadSearch<u64>,
    entries: Box<[Entry]>,
    // The row head of each entry's key, in a separate array so that a search touches few cache
    // lines. Either one per entry or empty. Heads have eight bytes here: rows of a file share a
    // shorter prefix than those of a block, and a full comparison of a key costs a cache miss.
    row_heads: Box<[u64]>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    target: Target,
    key_at: u32,
    key_len: u32,
}

/// A block that an index entry points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

impl Target {
    fn read(input: &mut Input<'_>, cut: &'static str) -> Parsed<Target> {
        Ok(Target { offset: input.u64(cut)?, len: input.u32(cut)? })
    }
}

/// The position of the middle of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MiddleEntry {
    pub(crate) leaf: Target,
    /// The entry of the leaf that points at the middle block.
    pub(crate) entry: u32,
}

impl Index {
    /// An index without heads.
    fn of(payload: Bytes, entries: Vec<Entry>) -> Index {
        Index { payload, head_search: HeadSearch::none(), entries: entries.into(), row_heads: Box::default() }
    }

    /// Parses `count` entries in root form from offset `start` of the payload. Also returns the
    /// offset after the last entry.
    pub(crate) fn parse_root(payload: Bytes, start: usize, count: u32) -> Parsed<(Index, usize)> {
        const CUT: &str = "root index truncated";
        let count = count as usize;
        let mut input = Input::starting(&payload, start);
        if count > input.remaining() / (TARGET_LEN + 1) {
            return Err(Fault::Damaged(CUT));
        }
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            let target = Target::read(&mut input, CUT)?;
            let key_len = input.byte_array(CUT)?.len() as u32;
            entries.push(Entry { target, key_at: input.position() as u32 - key_len, key_len });
        }
        let end = input.position();
        Ok((Index::of(payload, entries), end))
    }

    /// Parses the root of a data index, and the middle-of-file entry after it if there are several
    /// levels.
    pub(crate) fn parse_data_root(
        payload: Bytes,
        count: u32,
        levels: u32,
        order: CellOrder,
    ) -> Parsed<(Index, Option<MiddleEntry>)> {
        let (mut index, end) = Index::parse_root(payload, 0, count)?;
        index.check_keys(order)?;
        index.set_heads(order);
        let mut rest = Input::starting(&index.payload, end);
        let middle = if levels > 1 && rest.remaining() == MIDDLE_LEN {
            const CUT: &str = "middle-of-file entry truncated";
            let leaf = Target::read(&mut rest, CUT)?;
            Some(MiddleEntry { leaf, entry: rest.u32(CUT)? })
        } else {
            None
        };
        rest.end("root index longer than its entries")?;
        Ok((index, middle))
    }

    /// Parses the entries of a leaf or intermediate block.
    pub(crate) fn parse_inner(payload: Bytes, order: CellOrder) -> Parsed<Index> {
        const CUT: &str = "index block truncated";
        let mut input = Input::new(&payload);
        let count = input.u32(CUT)? as usize;
        if count == 0 || count > input.remaining() / (4 + TARGET_LEN) {
            return Err(Fault::Damaged("impossible number of index entries"));
        }
        let mut starts = Input::new(input.take(4 * (count + 1), CUT)?);
        let base = input.position();
        let mut entries = Vec::with_capacity(count);
        let mut start = starts.u32(CUT)? as usize;
        if start != 0 {
            return Err(Fault::Damaged("index entries do not start at zero"));
        }
        for _ in 0..count {
            let end = starts.u32(CUT)? as usize;
            if end < start + TARGET_LEN || end > input.remaining() {
                return Err(Fault::Damaged("index entries overlap"));
            }
            let target = Target::read(&mut Input::starting(&payload, base + start), CUT)?;
            let key_at = base + start + TARGET_LEN;
            let key_len = (base + end - key_at) as u32;
            entries.push(Entry { target, key_at: key_at as u32, key_len });
            start = end;
        }
        if start != input.remaining() {
            return Err(Fault::Damaged("index block longer than its entries"));
        }
        let mut index = Index::of(payload, entries);
        index.check_keys(order)?;
        index.set_heads(order);
        Ok(index)
    }

    fn check_keys(&self, order: CellOrder) -> Parsed<()> {
        for at in 0..self.len() {
            key::check(self.key(at))?;
            if at > 0 && order.compare_keys(self.key(at - 1), self.key(at)) == Ordering::Greater {
                return Err(Fault::Damaged("index entries out of order"));
            }
        }
        Ok(())
    }

    /// Computes the heads of the keys, which must be checked.
    fn set_heads(&mut self, order: CellOrder) {
        let Some(last) = self.len().checked_sub(1) else { return };
        let mut head_search = HeadSearch::of_rows(order, key::row(self.key(0)), key::row(self.key(last)));
        self.row_heads = (0..self.len()).map(|at| head_search.head(key::row(self.key(at)))).collect();
        head_search.set_samples(self.len(), |at| self.row_heads[at]);
        self.head_search = head_search;
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The key of an entry.
    #[inline]
    pub(crate) fn key(&self, at: usize) -> &[u8] {
        self.key_of(&self.entries[at])
    }

    #[inline]
    fn key_of(&self, entry: &Entry) -> &[u8] {
        &self.payload[entry.key_at as usize..][..entry.key_len as usize]
    }

    /// The block that an entry points at.
    #[inline]
    pub(crate) fn target(&self, at: usize) -> Target {
        self.entries[at].target
    }

    /// The last entry whose key satisfies `is_before`, which must hold for a prefix of the keys and
    /// for no others.
    #[inline]
    pub(crate) fn last_where(&self, is_before: impl Fn(&[u8]) -> bool) -> Option<usize> {
        self.count_before(0..self.len(), is_before).checked_sub(1)
    }

    /// The index of the first entry in `range` whose key does not satisfy `is_before`.
    #[inline]
    fn count_before(&self, range: Range<usize>, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let start = range.start;
        start + self.entries[range].partition_point(|entry| is_before(self.key_of(entry)))
    }

    /// Like [`last_where`](Self::last_where) for a data index. `is_before` compares index keys with
    /// one cell key, and `row` is the row of that cell key. Compares few keys.
    #[inline]
    pub(crate) fn last_where_by_head(&self, row: &[u8], is_before: impl Fn(&[u8]) -> bool) -> Option<usize> {
        let equal = self.head_search.equal_range(row, self.len(), |at| self.row_heads[at]);
        let low = self.count_before(equal.clone(), &is_before);
        if self.len() > 0 && self.head_search.has_common_prefix(row, key::row(self.key(0))) {
            return low.checked_sub(1);
        }
        // Heads prove nothing for other rows, so check the result against its neighbors. The keys
        // in `equal` were compared themselves.
        let is_found = (low > equal.start || low == 0 || is_before(self.key(low - 1)))
            && (low < equal.end || low == self.len() || !is_before(self.key(low)));
        if is_found { low.checked_sub(1) } else { self.last_where(is_before) }
    }

    /// Heap bytes, without the payload.
    pub(crate) fn heap_len(&self) -> usize {
        size_of_val(&*self.entries) + size_of_val(&*self.row_heads)
    }

    /// Length of the payload in bytes.
    pub(crate) fn payload_len(&self) -> usize {
        self.payload.len()
    }

    /// The payload from which the index was parsed.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.payload
    }
}

/// A short key `m` with `last < m <= first`: the index key of a block that starts with `first`,
/// after a block that ends with `last`. For the plain order only.
pub(crate) fn separator(last: &[u8], first: &[u8]) -> Vec<u8> {
    use cell::KeyBuf;
    let column = |family: &[u8], qualifier: &[u8]| {
        KeyBuf::first_on_column(key::row(first), family, qualifier).to_vec()
    };
    if let Some(row) = shortest_between(key::row(last), key::row(first)) {
        KeyBuf::first_on_row(&row).to_vec()
    } else if let Some(family) = shortest_between(key::family(last), key::family(first)) {
        column(&family, &[])
    } else if let Some(qualifier) = shortest_between(key::qualifier(last), key::qualifier(first)) {
        column(key::family(first), &qualifier)
    } else {
        first.to_vec()
    }
}

/// The shortest byte string that is greater than `left` and not greater than `right`. `None` if
/// they are equal.
fn shortest_between(left: &[u8], right: &[u8]) -> Option<Vec<u8>> {
    debug_assert!(left <= right);
    let common = left.iter().zip(right).take_while(|(left, right)| left == right).count();
    let mut middle = left[..common].to_vec();
    match left.get(common) {
        // This byte is less than the one of `right`, so it is not 0xff.
        Some(byte) => middle.push(byte + 1),
        None if right.len() > common => middle.push(0),
        None => return None,
    }
    Some(middle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cell::KeyBuf;

    #[test]
    fn separators_are_short_and_between() {
        let put = |row: &str, family: &str, qualifier: &str| {
            KeyBuf::new(row.as_bytes(), family.as_bytes(), qualifier.as_bytes(), 5, 4)
        };
        let check = |last: &KeyBuf, first: &KeyBuf, expected: &[u8]| {
            let found = separator(last, first);
            assert_eq!(found, expected);
            assert_eq!(CellOrder::Plain.compare_keys(last, &found), Ordering::Less);
            assert_ne!(CellOrder::Plain.compare_keys(&found, first), Ordering::Greater);
        };
        check(&put("user0000", "f", "q"), &put("user0011", "f", "q"), &KeyBuf::first_on_row(b"user001"));
        check(&put("user", "f", "q"), &put("user5", "f", "q"), &KeyBuf::first_on_row(b"user\0"));
        check(&put("r", "f", "q"), &put("r", "g", "q"), &KeyBuf::first_on_column(b"r", b"g", b""));
        check(&put("r", "f", "name"), &put("r", "f", "zip"), &KeyBuf::first_on_column(b"r", b"f", b"o"));
        let newer = KeyBuf::new(b"r", b"f", b"q", 9, 4);
        check(&newer, &put("r", "f", "q"), &put("r", "f", "q"));
    }
}
