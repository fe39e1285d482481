//! Compound Bloom filters: chunks of bits between the data blocks, and a meta block that locates
//! them.
//!
//! ```text
//! meta block: version 4 | bytes of all chunks 8 | hash count 4 | hash type 4 | keys 8
//!             | maximum keys 8 | chunks 4 | comparator, byte array
//!             | index of chunks in root form, keyed by the first key of each
//! ```
//!
//! A key can only be in the last chunk whose first key is not greater than it. "No" is certain,
//! "yes" is not. A store file has a general filter (rows, row prefixes, or row and qualifier), and
//! a filter of the rows with family delete markers.

pub(crate) mod chunk;
pub(crate) mod hash;
pub(crate) mod writer;

use std::cmp::Ordering;

use bytes::Bytes;
use cell::schema::BloomType;
use cell::{CellOrder, KeyBuf, key};

use crate::bloom::hash::HashType;
use crate::description::BloomDescription;
use crate::error::{Fault, Parsed};
use crate::index::{Index, Target};
use crate::input::Input;

/// The only version of meta blocks (HBase: `CompoundBloomFilterBase.VERSION`).
const VERSION: u32 = 3;
/// Bounds the work of a lookup in a damaged file. HBase's error rates need a dozen hashes at most.
const HASH_COUNT_MAX: u32 = 1000;
/// The comparator name that a ROWCOL filter states for its chunk keys.
const ROW_COL_COMPARATOR: &str = "org.apache.hadoop.hbase.CellComparatorImpl";

/// The meta block of a filter.
#[derive(Debug)]
pub(crate) struct BloomMeta {
    hash: HashType,
    hash_count: u32,
    chunks: Index,
    /// Bytes of all chunks, uncompressed.
    chunk_bytes: u64,
    /// Number of keys, and the number for which the filter has the intended error rate.
    key_count: u64,
    keys_max: u64,
    /// Whether the first keys of chunks are cell keys rather than rows.
    by_column: bool,
    order: CellOrder,
}

impl BloomMeta {
    /// Parses the payload of a meta block.
    pub(crate) fn parse(payload: Bytes, by_column: bool, order: CellOrder) -> Parsed<BloomMeta> {
        const CUT: &str = "Bloom meta truncated";
        let mut input = Input::new(&payload);
        if input.u32(CUT)? != VERSION {
            return Err(Fault::Unsupported("Bloom filter of another version than 3".into()));
        }
        let chunk_bytes = input.u64(CUT)?;
        let hash_count = input.u32(CUT)?;
        let hash = HashType::of(input.u32(CUT)?)?;
        let key_count = input.u64(CUT)?;
        let keys_max = input.u64(CUT)?;
        let chunk_count = input.u32(CUT)?;
        input.byte_array(CUT)?;
        if hash_count == 0 || hash_count > HASH_COUNT_MAX {
            return Err(Fault::Damaged("impossible number of Bloom hashes"));
        }
        let start = input.position();
        let (chunks, end) = Index::parse_root(payload.clone(), start, chunk_count)?;
        if end != payload.len() {
            return Err(Fault::Damaged("Bloom meta longer than its entries"));
        }
        let meta = BloomMeta { hash, hash_count, chunks, chunk_bytes, key_count, keys_max, by_column, order };
        meta.check_keys()?;
        Ok(meta)
    }

    /// Bytes of all chunks, uncompressed.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// The sizes of the filter.
    pub(crate) fn description(&self) -> BloomDescription {
        BloomDescription {
            bytes: self.chunk_bytes,
            key_count: self.key_count,
            keys_max: self.keys_max,
            chunk_count: self.chunks.len(),
            is_by_column: self.by_column,
        }
    }

    fn check_keys(&self) -> Parsed<()> {
        for at in 0..self.chunks.len() {
            if self.by_column {
                key::check(self.chunks.key(at))?;
            }
            if at > 0 && self.compare(self.chunks.key(at - 1), self.chunks.key(at)) == Ordering::Greater {
                return Err(Fault::Damaged("Bloom chunks out of order"));
            }
        }
        Ok(())
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        if self.by_column {
            self.order.compare_keys(left, right)
        } else {
            self.order.compare_rows(left, right)
        }
    }

    /// The chunk that would contain `key`, or `None` if no chunk does.
    pub(crate) fn chunk_of(&self, key: &[u8]) -> Option<Target> {
        let at = self.chunks.last_where(|first| self.compare(first, key) != Ordering::Greater)?;
        Some(self.chunks.target(at))
    }

    /// Whether `bits`, the chunk of `key`, may contain it. False is certain.
    pub(crate) fn may_hold(&self, bits: &[u8], key: &[u8]) -> bool {
        chunk::may_hold(bits, self.hash, self.hash_count, key)
    }

    /// Heap bytes.
    pub(crate) fn heap_len(&self) -> usize {
        self.chunks.payload_len() + self.chunks.heap_len()
    }
}

/// The key of a column in a ROWCOL filter: a cell key without family that sorts before the column's
/// cells.
pub(crate) fn column_key(row: &[u8], qualifier: &[u8]) -> KeyBuf {
    KeyBuf::first_on_column(row, &[], qualifier)
}

/// The part of a row that a filter of type `bloom` contains.
pub(crate) fn row_part(bloom: BloomType, prefix_len: u32, row: &[u8]) -> &[u8] {
    match bloom {
        BloomType::RowPrefix => &row[..row.len().min(prefix_len as usize)],
        _ => row,
    }
}

#[cfg(test)]
mod tests {
    use super::chunk::{BloomOptions, ChunkSize};
    use super::hash::KeyHash;
    use super::*;

    /// Hashes and sizes that HBase printed.
    #[test]
    fn hashes_and_sizes_are_hbases() {
        let golden = include_str!("../../tests/vectors/golden.txt");
        let mut seen = 0;
        for line in golden.lines() {
            let field = |name: &str| line.split(&format!(" {name}=")).nth(1)?.split(' ').next();
            let number = |name: &str| field(name).map(|text| u32::from_str_radix(text, 16).unwrap());
            if line.starts_with("HASH") || line.starts_with("ROWCOLHASH") {
                let hash = HashType::of(number("type").unwrap()).unwrap();
                let key = match field("keybytes") {
                    Some(_) => column_key(b"row1", b"qual").to_vec(),
                    None => unescape(field("key").unwrap()),
                };
                let expected = KeyHash { first: number("h1").unwrap(), second: number("h2").unwrap() };
                assert_eq!(KeyHash::of(hash, &key), expected, "{line}");
                seen += 1;
            } else if line.starts_with("BLOOMSIZE") {
                let bloom = if line.contains("ROWCOL") { BloomType::RowCol } else { BloomType::Row };
                let decimal = |name: &str| field(name).unwrap().parse::<u32>().unwrap();
                let options =
                    BloomOptions { chunk_bytes: decimal("chunkBytesHint"), ..BloomOptions::default() };
                let expected = ChunkSize {
                    bytes: decimal("byteSize"),
                    hash_count: decimal("hashCount"),
                    keys_max: decimal("maxKeys"),
                };
                assert_eq!(ChunkSize::of(&options, bloom), expected, "{line}");
                seen += 1;
            }
        }
        assert_eq!(seen, 36);
    }

    fn unescape(text: &str) -> Vec<u8> {
        let mut parts = text.split("\\x");
        let mut out = parts.next().unwrap().as_bytes().to_vec();
        for part in parts {
            out.push(u8::from_str_radix(&part[..2], 16).unwrap());
            out.extend_from_slice(&part.as_bytes()[2..]);
        }
        out
    }

    #[test]
    fn folding_loses_no_key() {
        let size = ChunkSize::of(&BloomOptions::default(), BloomType::Row);
        let mut chunk = chunk::Chunk::new(size);
        let keys: Vec<String> = (0..500).map(|i| format!("row{i}")).collect();
        keys.iter().for_each(|key| chunk.add(HashType::Murmur, key.as_bytes()));
        let (size, bits) = chunk.fold();
        assert!(bits.len() <= 1024 && bits.len() == size.bytes as usize);
        let holds = |key: &str| chunk::may_hold(&bits, HashType::Murmur, size.hash_count, key.as_bytes());
        assert!(keys.iter().all(|key| holds(key)));
        let false_positives = (0..10_000).filter(|i| holds(&format!("absent{i}"))).count();
        assert!(false_positives < 200, "{false_positives} of 10000 absent keys pass");
    }
}
