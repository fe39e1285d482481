//! Groups: rows with the same values in some columns have the same number.

mod interner;

use std::collections::HashMap;

use crate::value::{Kind, Value};
use crate::vector::Vector;
use interner::Interner;

/// Gives numbers to groups, from 0 on, in the order in which they are met.
///
/// Each column's values get numbers first; groups of two columns are pairs of numbers, of three pairs of those and the third
/// column's, and so on.
pub struct Groups {
    columns: Vec<Interner>,
    pairs: Vec<Pairs>,
    // Numbers of the column at work.
    ids: Vec<u32>,
    // Without columns all rows are one group.
    is_one: bool,
}

#[derive(Default)]
struct Pairs {
    known: HashMap<(u32, u32), u32>,
    list: Vec<(u32, u32)>,
}

impl Groups {
    /// No groups yet, by columns of these kinds; without columns, the one group of all rows.
    pub fn by(kinds: impl IntoIterator<Item = Kind>) -> Groups {
        let columns: Vec<Interner> = kinds.into_iter().map(Interner::new).collect();
        let pairs = columns.iter().skip(1).map(|_| Pairs::default()).collect();
        Groups { is_one: columns.is_empty(), columns, pairs, ids: Vec::new() }
    }

    /// How many there are.
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

    /// The groups of `rows` by their values in `columns`, those that [`by`](Groups::by) was told of; replaces `groups`.
    pub fn assign(&mut self, columns: &[&Vector], rows: &[u32], groups: &mut Vec<u32>) {
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

    /// The values of a group, in the order of its columns.
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

    /// Takes the groups of others by the same columns; the own group of each of theirs.
    pub fn absorb(&mut self, other: &Groups) -> Vec<u32> {
        if self.is_one {
            return vec![0];
        }
        let mut to: Vec<u32> = Vec::new();
        for (at, (own, column)) in self.columns.iter_mut().zip(&other.columns).enumerate() {
            let of_column = own.absorb(column);
            if at == 0 {
                to = of_column;
                continue;
            }
            let pairs = &other.pairs[at - 1].list;
            let mut left: Vec<u32> = pairs.iter().map(|(left, _)| to[*left as usize]).collect();
            let right: Vec<u32> = pairs.iter().map(|(_, right)| of_column[*right as usize]).collect();
            self.pairs[at - 1].join(&mut left, &right);
            to = left;
        }
        to
    }

    /// Bytes of memory that they take.
    pub fn heap_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(Interner::heap_bytes).sum();
        let pairs = self.pairs.iter().map(|pairs| {
            table_bytes::<((u32, u32), u32)>(pairs.known.capacity())
                + pairs.list.capacity() * size_of::<(u32, u32)>()
        });
        columns + pairs.sum::<usize>()
    }
}

/// Bytes of a hash table of such entries: an eighth of its places stays free, and each has a byte beside it.
fn table_bytes<T>(capacity: usize) -> usize {
    capacity / 7 * 8 * (size_of::<T>() + 1)
}

impl Pairs {
    /// Puts the number of each pair of `left` and `right` in the place of the left one.
    fn join(&mut self, left: &mut [u32], right: &[u32]) {
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
