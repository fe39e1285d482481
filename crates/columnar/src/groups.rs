//! Group numbers: rows with equal values in the group-by columns get the same number.

mod interner;

use std::collections::HashMap;

use crate::value::{Kind, Value};
use crate::vector::Vector;
use interner::Interner;

/// Numbers groups from 0, in order of first occurrence.
///
/// First, the values of each column get numbers. A group of two columns is a pair of these numbers.
/// A group of three columns is a pair of that pair's number and the third column's number, and so
/// on.
pub struct Groups {
    columns: Vec<Interner>,
    pairs: Vec<Pairs>,
    // Numbers of the current column.
    ids: Vec<u32>,
    // True without group-by columns: all rows are one group.
    is_one: bool,
}

#[derive(Default)]
struct Pairs {
    known: HashMap<(u32, u32), u32>,
    list: Vec<(u32, u32)>,
}

impl Groups {
    /// No groups, for columns of these kinds. Without columns there is one group of all rows.
    pub fn by(kinds: impl IntoIterator<Item = Kind>) -> Groups {
        let columns: Vec<Interner> = kinds.into_iter().map(Interner::new).collect();
        let pairs = columns.iter().skip(1).map(|_| Pairs::default()).collect();
        Groups { is_one: columns.is_empty(), columns, pairs, ids: Vec::new() }
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        match (self.pairs.last(), self.columns.first()) {
            _ if self.is_one => 1,
            (Some(pairs), _) => pairs.list.len(),
            (None, Some(column)) => column.len(),
            (None, None) => 0,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Stores the group of each of `rows` in `groups` and replaces its contents. `columns` has the
    /// columns passed to [`by`](Groups::by).
    pub fn assign(&mut self, columns: &[&Vector], rows: &[u32], groups: &mut Vec<u32>) {
        debug_assert_eq!(columns.len(), self.columns.len(), "groups are by the same columns in each batch");
        groups.clear();
        if self.is_one {
            groups.resize(rows.len(), 0);
            return;
        }
        for (at, (interner, vector)) in self.columns.iter_mut().zip(columns).enumerate() {
            if at == 0 {
                interner.numbers(vector, rows, groups);
                continue;
            }
            interner.numbers(vector, rows, &mut self.ids);
            self.pairs[at - 1].join(groups, &self.ids);
        }
    }

    /// The key values of a group, in column order.
    pub fn key(&self, group: usize) -> Vec<Value> {
        if self.is_one {
            return Vec::new();
        }
        let mut key = Vec::with_capacity(self.columns.len());
        let mut left = group as u32;
        for (pairs, column) in self.pairs.iter().zip(&self.columns[1..]).rev() {
            let (rest, id) = pairs.list[left as usize];
            key.push(column.value(id));
            left = rest;
        }
        key.push(self.columns[0].value(left));
        key.reverse();
        key
    }

    /// Adds the groups of `other`, which has the same columns. Returns the own group of each of its
    /// groups.
    pub fn absorb(&mut self, other: &Groups) -> Vec<u32> {
        if self.is_one {
            return vec![0];
        }
        let mut to: Vec<u32> = Vec::new();
        for (at, (own, column)) in self.columns.iter_mut().zip(&other.columns).enumerate() {
            let column_numbers = own.absorb(column);
            if at == 0 {
                to = column_numbers;
                continue;
            }
            let pairs = &other.pairs[at - 1].list;
            let mut left: Vec<u32> = pairs.iter().map(|(left, _)| to[*left as usize]).collect();
            let right: Vec<u32> = pairs.iter().map(|(_, right)| column_numbers[*right as usize]).collect();
            self.pairs[at - 1].join(&mut left, &right);
            to = left;
        }
        to
    }

    /// Heap bytes of the groups.
    pub fn heap_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(Interner::heap_bytes).sum();
        let pairs = self.pairs.iter().map(|pairs| {
            table_bytes::<((u32, u32), u32)>(pairs.known.capacity())
                + pairs.list.capacity() * size_of::<(u32, u32)>()
        });
        columns + pairs.sum::<usize>()
    }
}

/// Bytes of a hash table with such entries: one eighth of the slots stay free, and each slot has a
/// control byte.
fn table_bytes<T>(capacity: usize) -> usize {
    capacity / 7 * 8 * (size_of::<T>() + 1)
}

impl Pairs {
    /// Replaces each entry of `left` by the number of its pair with the entry of `right`.
    fn join(&mut self, left: &mut [u32], right: &[u32]) {
        debug_assert_eq!(left.len(), right.len(), "each column numbers the same rows");
        let mut last = None;
        for (left, right) in left.iter_mut().zip(right) {
            let pair = (*left, *right);
            *left = match last {
                Some((known, number)) if known == pair => number,
                _ => *self.known.entry(pair).or_insert_with(|| {
                    self.list.push(pair);
                    self.list.len() as u32 - 1
                }),
            };
            last = Some((pair, *left));
        }
    }
}
