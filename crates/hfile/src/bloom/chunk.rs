//! One chunk of a compound Bloom filter: its bits, its size, and folding.
//!
//! Source: HBase `BloomFilterUtil`, `BloomFilterChunk`. Tests compare the sizes with values that
//! HBase printed.

use cell::schema::BloomType;

use crate::bloom::hash::{HashType, KeyHash};

/// Settings of the Bloom filters of a file (HBase's `io.storefile.bloom.*`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BloomOptions {
    /// Bytes of a chunk before folding.
    pub chunk_bytes: u32,
    /// Fraction of absent keys that may pass.
    pub error_rate: f32,
    /// Minimum number of times that a chunk's size can be halved.
    pub fold_max: u32,
}

impl Default for BloomOptions {
    fn default() -> BloomOptions {
        BloomOptions { chunk_bytes: 128 << 10, error_rate: 0.01, fold_max: 7 }
    }
}

/// Bytes, hash functions and keys of a full chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkSize {
    pub(crate) bytes: u32,
    pub(crate) hash_count: u32,
    pub(crate) keys_max: u32,
}

impl ChunkSize {
    /// The size that HBase computes from the settings.
    pub(crate) fn of(options: &BloomOptions, bloom: BloomType) -> ChunkSize {
        // A get of a column tests two keys in a ROWCOL filter, so each test gets about half of the
        // error rate.
        let error_rate = match bloom {
            BloomType::RowCol => (1.0 - (1.0 - f64::from(options.error_rate)).sqrt()) as f32,
            _ => options.error_rate,
        };
        let bytes = options.chunk_bytes.next_multiple_of(1 << options.fold_max);
        let bits = u64::from(bytes) * 8;
        let ln2 = std::f64::consts::LN_2;
        let error_ln = f64::from(error_rate).ln();
        let ideal_keys = (bits as f64 * (ln2 * ln2 / -error_ln)) as u64;
        // HBase's Java code uses integer division here.
        let hash_count = (ln2 * (bits / ideal_keys.max(1)) as f64).ceil();
        let keys_max = -(bits as f64) / hash_count * (1.0 - (error_ln / hash_count).exp()).ln();
        ChunkSize { bytes, hash_count: hash_count as u32, keys_max: keys_max as u32 }
    }
}

/// A chunk under construction.
pub(crate) struct Chunk {
    size: ChunkSize,
    bits: Vec<u8>,
    key_count: u32,
}

impl Chunk {
    pub(crate) fn new(size: ChunkSize) -> Chunk {
        Chunk { size, bits: vec![0; size.bytes as usize], key_count: 0 }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.key_count >= self.size.keys_max
    }

    pub(crate) fn add(&mut self, hash: HashType, key: &[u8]) {
        for bit in KeyHash::of(hash, key).bits(self.size.hash_count, self.bits.len() as u64 * 8) {
            self.bits[bit / 8] |= 1 << (bit % 8);
        }
        self.key_count += 1;
    }

    /// Halves the bits as long as the keys still fit. Returns the resulting size and bits.
    pub(crate) fn fold(mut self) -> (ChunkSize, Vec<u8>) {
        while self.bits.len().is_multiple_of(2) && self.size.keys_max > 2 * self.key_count {
            let half = self.bits.len() / 2;
            let (lower, upper) = self.bits.split_at_mut(half);
            lower.iter_mut().zip(upper).for_each(|(low, high)| *low |= *high);
            self.bits.truncate(half);
            self.size.keys_max /= 2;
        }
        self.size.bytes = self.bits.len() as u32;
        (self.size, self.bits)
    }
}

/// Whether a chunk may contain a key. False is certain.
pub(crate) fn may_hold(bits: &[u8], hash: HashType, hash_count: u32, key: &[u8]) -> bool {
    // An empty chunk excludes no key.
    bits.is_empty()
        || KeyHash::of(hash, key)
            .bits(hash_count, bits.len() as u64 * 8)
            .all(|bit| bits[bit / 8] & (1 << (bit % 8)) != 0)
}
