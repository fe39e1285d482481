//! The hash functions of Bloom filters, as HBase computes them.
//!
//! Source: HBase `JenkinsHash`, `MurmurHash`, `MurmurHash3`. Tests compare the hashes with values
//! that HBase printed.

use crate::error::{Fault, Parsed};

/// A hash function. The codes are the on-disk values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum HashType {
    Jenkins = 0,
    /// HBase's default.
    Murmur = 1,
    Murmur3 = 2,
}

impl HashType {
    pub(crate) fn of(code: u32) -> Parsed<HashType> {
        match code {
            0 => Ok(HashType::Jenkins),
            1 => Ok(HashType::Murmur),
            2 => Ok(HashType::Murmur3),
            _ => Err(Fault::Unsupported(format!("Bloom hash type {code}"))),
        }
    }

    fn hash(self, key: &[u8], seed: u32) -> u32 {
        match self {
            HashType::Jenkins => jenkins(key, seed),
            HashType::Murmur => murmur(key, seed),
            HashType::Murmur3 => murmur3(key, seed),
        }
    }
}

/// The hash of a key, which determines the positions of its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyHash {
    pub(crate) first: u32,
    pub(crate) second: u32,
}

impl KeyHash {
    pub(crate) fn of(hash: HashType, key: &[u8]) -> KeyHash {
        let first = hash.hash(key, 0);
        KeyHash { first, second: hash.hash(key, first) }
    }

    /// The bit positions of the key in a filter of `bit_count` bits.
    pub(crate) fn bits(self, hash_count: u32, bit_count: u64) -> impl Iterator<Item = usize> {
        let mut sum = self.first as i32;
        (0..hash_count).map(move |_| {
            // Java's `Math.abs(sum % bitCount)`. A filter has less than 2^31 bytes, so bit counts
            // do not fit in an int.
            let bit = (i64::from(sum) % bit_count as i64).unsigned_abs() as usize;
            sum = sum.wrapping_add(self.second as i32);
            bit
        })
    }
}

fn le_u32(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("four bytes"))
}

/// MurmurHash2, except that the last one to three bytes are sign-extended.
fn murmur(key: &[u8], seed: u32) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut h = seed ^ key.len() as u32;
    let groups = key.chunks_exact(4);
    let tail = groups.remainder();
    for group in groups {
        let mut k = le_u32(group).wrapping_mul(M);
        k ^= k >> 24;
        h = h.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !tail.is_empty() {
        for (at, byte) in tail.iter().enumerate() {
            h ^= (i32::from(*byte as i8) as u32) << (8 * at);
        }
        h = h.wrapping_mul(M);
    }
    h = (h ^ (h >> 13)).wrapping_mul(M);
    h ^ (h >> 15)
}

/// MurmurHash3_x86_32.
fn murmur3(key: &[u8], seed: u32) -> u32 {
    let mix = |k: u32| k.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let groups = key.chunks_exact(4);
    let tail = groups.remainder();
    let mut h = seed;
    for group in groups {
        h = (h ^ mix(le_u32(group))).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    let k = tail.iter().rev().fold(0_u32, |k, byte| (k << 8) | u32::from(*byte));
    h ^= mix(k);
    h ^= key.len() as u32;
    h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

/// Bob Jenkins' lookup3, `hashlittle`.
fn jenkins(key: &[u8], seed: u32) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(key.len() as u32).wrapping_add(seed);
    let (mut a, mut b, mut c) = (start, start, start);
    let mut rest = key;
    while rest.len() > 12 {
        a = a.wrapping_add(le_u32(&rest[..4]));
        b = b.wrapping_add(le_u32(&rest[4..8]));
        c = c.wrapping_add(le_u32(&rest[8..12]));
        a = a.wrapping_sub(c) ^ c.rotate_left(4);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(6);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(8);
        b = b.wrapping_add(a);
        a = a.wrapping_sub(c) ^ c.rotate_left(16);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(19);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(4);
        b = b.wrapping_add(a);
        rest = &rest[12..];
    }
    if rest.is_empty() {
        return c;
    }
    let mut last = [0; 12];
    last[..rest.len()].copy_from_slice(rest);
    a = a.wrapping_add(le_u32(&last[..4]));
    b = b.wrapping_add(le_u32(&last[4..8]));
    c = c.wrapping_add(le_u32(&last[8..]));
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}
