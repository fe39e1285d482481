//! Approximate distinct counts: HyperLogLog with 4,096 registers and a standard error of 1.6 %.
//!
//! Source: Flajolet, Fusy, Gandouet, Meunier, "HyperLogLog: the analysis of a near-optimal
//! cardinality estimation algorithm" (2007). As in the paper, small counts are estimated from the
//! number of empty registers.

use crate::value::Value;

/// Hash bits that select the register.
const INDEX_BITS: u32 = 12;
/// Number of registers.
pub const REGISTERS: usize = 1 << INDEX_BITS;
/// Maximum number of registers in the sparse list.
const SPARSE_MAX: usize = 256;

/// Registers. Each contains one plus the greatest number of leading zeros of its hashes.
#[derive(Clone, Debug, PartialEq)]
pub enum Distinct {
    /// The registers that are not 0, in order.
    Sparse(Vec<(u16, u8)>),
    /// All registers.
    Dense(Box<[u8; REGISTERS]>),
}

impl Default for Distinct {
    fn default() -> Distinct {
        Distinct::Sparse(Vec::new())
    }
}

impl Distinct {
    /// Adds one value; null is ignored.
    pub fn add(&mut self, value: &Value) {
        if let Some(hash) = hash(value) {
            self.add_hash(hash);
        }
    }

    fn add_hash(&mut self, hash: u64) {
        let index = (hash >> (64 - INDEX_BITS)) as u16;
        // The added bit bounds the number of leading zeros.
        let rest = hash << INDEX_BITS | 1 << (INDEX_BITS - 1);
        self.raise_register(index, rest.leading_zeros() as u8 + 1);
    }

    /// Sets a register to at least `rank`; an index out of range is ignored.
    pub fn raise_register(&mut self, index: u16, rank: u8) {
        match self {
            Distinct::Dense(registers) => {
                if let Some(register) = registers.get_mut(index as usize) {
                    *register = rank.max(*register);
                }
            }
            Distinct::Sparse(list) => match list.binary_search_by_key(&index, |(index, _)| *index) {
                Ok(at) => list[at].1 = rank.max(list[at].1),
                Err(at) if list.len() < SPARSE_MAX => list.insert(at, (index, rank)),
                Err(_) => {
                    let mut registers = Box::new([0; REGISTERS]);
                    list.iter().for_each(|(index, rank)| registers[*index as usize % REGISTERS] = *rank);
                    *self = Distinct::Dense(registers);
                    self.raise_register(index, rank);
                }
            },
        }
    }

    /// Adds the values of `other`.
    pub fn merge(&mut self, other: &Distinct) {
        match other {
            Distinct::Sparse(list) => {
                list.iter().for_each(|(index, rank)| self.raise_register(*index, *rank))
            }
            Distinct::Dense(registers) => {
                let all = registers.iter().enumerate().filter(|(_, rank)| **rank > 0);
                all.for_each(|(index, rank)| self.raise_register(index as u16, *rank));
            }
        }
    }

    /// Estimated number of distinct values.
    pub fn estimate(&self) -> u64 {
        let count = REGISTERS as f64;
        let ranks: Vec<u8> = match self {
            Distinct::Sparse(list) => list.iter().map(|(_, rank)| *rank).collect(),
            Distinct::Dense(registers) => registers.iter().copied().filter(|rank| *rank > 0).collect(),
        };
        let empty = (REGISTERS - ranks.len().min(REGISTERS)) as f64;
        let sum = empty + ranks.iter().map(|rank| 0.5_f64.powi(i32::from(*rank))).sum::<f64>();
        let estimate = 0.7213 / (1.0 + 1.079 / count) * count * count / sum;
        let estimate =
            if estimate <= 2.5 * count && empty > 0.0 { count * (count / empty).ln() } else { estimate };
        estimate.round() as u64
    }

    /// Heap bytes, excluding `self`.
    pub fn heap_len(&self) -> usize {
        match self {
            Distinct::Sparse(list) => list.capacity() * 4,
            Distinct::Dense(_) => REGISTERS,
        }
    }
}

/// A hash that is equal on all servers: FNV-1a over the value's bytes, finalized as in splitmix64.
fn hash(value: &Value) -> Option<u64> {
    let bytes = |bytes: &[u8]| {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    };
    let hash = match value {
        Value::Null => return None,
        Value::Whole(value) => *value as u64,
        Value::Real(value) if value.is_nan() => f64::NAN.to_bits(),
        Value::Real(value) => (value + 0.0).to_bits(),
        Value::Decimal(value) => bytes(&value.to_be_bytes()),
        Value::Raw(value) => bytes(value),
    };
    let hash = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    Some(hash ^ hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_near() {
        for count in [0_i64, 1, 10, 255, 257, 1_000, 10_000, 100_000, 1_000_000] {
            let mut parts = [Distinct::default(), Distinct::default()];
            for value in 0..count {
                parts[value as usize % 2].add(&Value::Whole(value * 7919));
                parts[0].add(&Value::Whole(value * 7919));
            }
            let [mut all, other] = parts;
            all.merge(&other);
            let (estimate, count) = (all.estimate() as f64, count as f64);
            assert!((estimate - count).abs() <= count * 0.05 + 0.5, "{estimate} for {count}");
        }
    }

    #[test]
    fn equal_values_are_one() {
        let mut distinct = Distinct::default();
        for value in [0.0, -0.0, f64::NAN, -f64::NAN] {
            distinct.add(&Value::Real(value));
        }
        distinct.add(&Value::Null);
        assert_eq!(distinct.estimate(), 2);
    }
}
