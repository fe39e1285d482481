//! Records of many attributes. Each attribute is a column with an 8-byte number, derived from the
//! numbers of record and attribute.

use std::collections::BTreeMap;

use bytes::Bytes;
use cell::mutation::Mutation;
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};

/// The family of all attributes.
pub(super) const FAMILY: &[u8] = b"d";
/// Number of different values of an attribute. Attributes use these numbers round-robin.
const VALUES: [u64; 6] = [10, 100, 1_000, 10_000, 1_000_000, 1 << 32];
const KEY_LEN: usize = 10;

/// The records of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Records {
    pub(super) count: u64,
    pub(super) attributes: u64,
}

impl Records {
    /// The row key of a record: its number, zero-padded.
    pub(super) fn key(at: u64) -> Bytes {
        format!("{at:0KEY_LEN$}").into()
    }

    /// The qualifier of an attribute.
    pub(super) fn qualifier(attribute: u64) -> Bytes {
        format!("a{attribute:02}").into()
    }

    /// The value of an attribute: pseudorandom, but the same on each call.
    pub(super) fn value(&self, at: u64, attribute: u64) -> i64 {
        // SplitMix64 of the cell's number.
        let mut hash = (at * self.attributes + attribute).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((hash ^ hash >> 31) % VALUES[attribute as usize % VALUES.len()]) as i64
    }

    /// A put of a record.
    pub(super) fn put(&self, at: u64) -> Mutation {
        let row = Records::key(at);
        let cell = |attribute| {
            let (qualifier, value) = (Records::qualifier(attribute), self.value(at, attribute).to_be_bytes());
            KeyValue::new(&row, FAMILY, &qualifier, LATEST_TIMESTAMP, CellType::Put, &value)
        };
        let cells = (0..self.attributes).map(cell).collect();
        Mutation::put(row, cells)
    }

    /// The result of `SELECT group, sum(sum), count(*) WHERE condition = value GROUP BY group` over
    /// all records.
    pub(super) fn expected(&self, query: &RecordsQuery) -> BTreeMap<i64, (i128, u64)> {
        let mut groups = BTreeMap::new();
        for at in 0..self.count {
            if query.condition.is_none_or(|(attribute, value)| self.value(at, attribute) == value) {
                let key = query.group_by.map_or(0, |attribute| self.value(at, attribute));
                let (sum, count): &mut (i128, u64) = groups.entry(key).or_default();
                *sum += i128::from(self.value(at, query.sum));
                *count += 1;
            }
        }
        groups
    }
}

/// The query: which attribute to add up, of which records, in which groups.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordsQuery {
    pub(super) sum: u64,
    pub(super) condition: Option<(u64, i64)>,
    pub(super) group_by: Option<u64>,
}
