//! What a region must show: HBase's rules on sorted vectors, applied literally.
//!
//! Cells lie in layers as in a region (memory, then files from the newest to the oldest), since a flush and a compaction
//! drop what is surplus or hidden within their layers, and later deletes of single versions show the difference.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use cell::cell::CellType;
use cell::condition::{Condition, Test};
use cell::mutation::{Mutation, MutationKind};
use cell::schema::TableDescriptor;
use cell::{Cell, LATEST_TIMESTAMP};

/// A cell as the model keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCell {
    pub row: Vec<u8>,
    pub family: Vec<u8>,
    pub qualifier: Vec<u8>,
    pub timestamp: i64,
    pub kind: CellType,
    pub value: Vec<u8>,
    /// Later ones win over equal keys.
    order: u64,
}

/// What a scan shows of a cell.
pub type Shown = (Vec<u8>, Vec<u8>, Vec<u8>, i64, Vec<u8>);

/// A region as it should be.
#[derive(Clone, Debug)]
pub struct Model {
    families: Vec<(Vec<u8>, usize)>,
    /// Memory first, then files from the newest to the oldest; by family, since stores are compacted alone.
    memory: Vec<Vec<ModelCell>>,
    files: Vec<Vec<Vec<ModelCell>>>,
    next_order: u64,
}

impl ModelCell {
    fn is_of_column(&self, other: &ModelCell) -> bool {
        (&self.row, &self.qualifier) == (&other.row, &other.qualifier)
    }

    /// Whether this marker hides `put`, a put of the same row and family.
    fn hides(&self, put: &ModelCell) -> bool {
        let same_column = self.qualifier == put.qualifier;
        match self.kind {
            CellType::DeleteFamily => self.timestamp >= put.timestamp,
            CellType::DeleteFamilyVersion => self.timestamp == put.timestamp,
            CellType::DeleteColumn => same_column && self.timestamp >= put.timestamp,
            CellType::Delete => same_column && self.timestamp == put.timestamp,
            _ => false,
        }
    }
}

/// The puts that a reader of all versions sees among `cells` of one family: not hidden, one per timestamp, the newest
/// `versions` of a column. With them those that are over that number.
fn judge(cells: &[ModelCell], versions: usize) -> (Vec<ModelCell>, Vec<ModelCell>) {
    let mut puts: Vec<&ModelCell> = cells.iter().filter(|cell| cell.kind == CellType::Put).collect();
    puts.sort_by_key(|put| (&put.row, &put.qualifier, Reverse(put.timestamp), Reverse(put.order)));
    puts.dedup_by_key(|put| (&put.row, &put.qualifier, put.timestamp));
    let hidden = |put: &ModelCell| cells.iter().any(|cell| cell.row == put.row && cell.hides(put));
    let (mut shown, mut surplus): (Vec<ModelCell>, Vec<ModelCell>) = Default::default();
    for put in puts.into_iter().filter(|put| !hidden(put)) {
        let of_column = |cell: &&ModelCell| cell.is_of_column(put);
        let is_surplus = shown.iter().filter(of_column).count() >= versions;
        if is_surplus { &mut surplus } else { &mut shown }.push(put.clone());
    }
    (shown, surplus)
}

fn visible(cells: &[ModelCell], versions: usize) -> Vec<ModelCell> {
    judge(cells, versions).0
}

/// What a flush keeps: what is visible, and markers. HBase goes to the next column at the first surplus version, past
/// markers behind it; only at the empty qualifier it goes on cell by cell, for the sake of markers of the family.
fn flushed(cells: &[ModelCell], versions: usize) -> Vec<ModelCell> {
    let (mut kept, surplus) = judge(cells, versions);
    let passed_over = |marker: &ModelCell| {
        let is_before = |put: &ModelCell| put.is_of_column(marker) && put.timestamp > marker.timestamp;
        !marker.qualifier.is_empty() && surplus.iter().any(is_before)
    };
    kept.extend(cells.iter().filter(|cell| cell.kind.is_delete() && !passed_over(cell)).cloned());
    kept
}

impl Model {
    pub fn new(table: &TableDescriptor) -> Model {
        let families: Vec<(Vec<u8>, usize)> = table
            .families
            .values()
            .map(|family| (family.name.to_vec(), family.max_versions() as usize))
            .collect();
        let stores = families.len();
        Model { families, memory: vec![Vec::new(); stores], files: vec![Vec::new(); stores], next_order: 0 }
    }

    /// Applies mutations that become visible together; `now` is the server's clock.
    pub fn apply(&mut self, mutations: &[Mutation], now: i64) {
        let before = self.clone();
        for mutation in mutations {
            let mut markers_met: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            if mutation.cells.is_empty() && mutation.kind == MutationKind::Delete {
                for family in 0..self.families.len() {
                    let timestamp =
                        if mutation.timestamp == LATEST_TIMESTAMP { now } else { mutation.timestamp };
                    self.put_in(family, &mutation.row, b"", timestamp, CellType::DeleteFamily, b"");
                }
            }
            for key_value in &mutation.cells {
                let cell = key_value.view(0);
                let timestamp = match cell.timestamp() {
                    LATEST_TIMESTAMP if cell.kind() == CellType::Delete => {
                        markers_met.push((cell.family().to_vec(), cell.qualifier().to_vec()));
                        let nth =
                            markers_met.iter().filter(|met| **met == *markers_met.last().unwrap()).count();
                        before.nth_newest(&cell, nth).unwrap_or(now)
                    }
                    LATEST_TIMESTAMP => now,
                    timestamp => timestamp,
                };
                let family = self.family(cell.family());
                self.put_in(family, cell.row(), cell.qualifier(), timestamp, cell.kind(), cell.value);
            }
        }
    }

    /// Makes changes of one row, if the condition holds; whether it did. `Err` for an increment of what is no number,
    /// and nothing has changed then. No others among the mutations than puts, increments and appends.
    pub fn change(
        &mut self,
        condition: Option<&Condition>,
        mutations: &[Mutation],
        now: i64,
    ) -> Result<bool, ()> {
        let before = self.clone();
        let mut puts_not_before = i64::MIN;
        if let Some(condition) = condition {
            let Test::Column(test) = &condition.test else { unreachable!("only columns are asked for") };
            let newest = before.newest(&condition.row, &test.family, &test.qualifier);
            if !test.passes(newest.as_ref().map(|put| &put.value[..])) {
                return Ok(false);
            }
            puts_not_before = newest.map_or(i64::MIN, |put| put.timestamp);
        }
        let outcome = mutations.iter().try_for_each(|mutation| match mutation.kind {
            MutationKind::Put => {
                self.apply(std::slice::from_ref(mutation), now.max(puts_not_before));
                Ok(())
            }
            MutationKind::Delete => unreachable!("only the others are made"),
            _ => mutation.cells.iter().try_for_each(|cell| self.add(&before, mutation, &cell.view(0), now)),
        });
        if outcome.is_err() {
            *self = before;
        }
        outcome.map(|()| true)
    }

    /// An increment or append of one column, over what was there `before`.
    fn add(&mut self, before: &Model, mutation: &Mutation, delta: &Cell<'_>, now: i64) -> Result<(), ()> {
        let current = before.newest(delta.row(), delta.family(), delta.qualifier());
        let number = |value: &[u8]| value.try_into().map(i64::from_be_bytes).map_err(drop);
        let value = match (&current, mutation.kind) {
            (None, _) => delta.value.to_vec(),
            (Some(put), MutationKind::Append) => [&put.value[..], delta.value].concat(),
            (Some(put), _) => number(&put.value)?.wrapping_add(number(delta.value)?).to_be_bytes().to_vec(),
        };
        let own = if delta.timestamp() == LATEST_TIMESTAMP { now } else { delta.timestamp() };
        let timestamp = current.map_or(own, |put| now.max(put.timestamp + 1));
        let family = self.family(delta.family());
        self.put_in(family, delta.row(), delta.qualifier(), timestamp, CellType::Put, &value);
        Ok(())
    }

    /// The newest visible version of a column.
    fn newest(&self, row: &[u8], family: &[u8], qualifier: &[u8]) -> Option<ModelCell> {
        let of_column = |put: &ModelCell| put.row == row && put.qualifier == qualifier;
        self.visible_of(self.family(family)).into_iter().find(of_column)
    }

    fn family(&self, name: &[u8]) -> usize {
        self.families.iter().position(|(known, _)| known == name).expect("a family of the table")
    }

    fn put_in(
        &mut self,
        family: usize,
        row: &[u8],
        qualifier: &[u8],
        timestamp: i64,
        kind: CellType,
        value: &[u8],
    ) {
        self.next_order += 1;
        self.memory[family].push(ModelCell {
            row: row.to_vec(),
            family: self.families[family].0.clone(),
            qualifier: qualifier.to_vec(),
            timestamp,
            kind,
            value: value.to_vec(),
            order: self.next_order,
        });
    }

    /// The timestamp of the nth newest visible version of a column, counted from 1.
    fn nth_newest(&self, cell: &Cell<'_>, nth: usize) -> Option<i64> {
        let family = self.family(cell.family());
        let of_column = |put: &ModelCell| put.row == cell.row() && put.qualifier == cell.qualifier();
        self.visible_of(family).into_iter().filter(of_column).nth(nth - 1).map(|put| put.timestamp)
    }

    fn visible_of(&self, family: usize) -> Vec<ModelCell> {
        let cells: Vec<ModelCell> =
            self.files[family].iter().flatten().chain(&self.memory[family]).cloned().collect();
        visible(&cells, self.families[family].1)
    }

    /// All that a scan of all versions shows, in order.
    pub fn scan(&self) -> Vec<Shown> {
        let mut shown: Vec<Shown> = (0..self.families.len())
            .flat_map(|family| self.visible_of(family))
            .map(|put| (put.row, put.family, put.qualifier, put.timestamp, put.value))
            .collect();
        shown.sort_by(|left, right| {
            (&left.0, &left.1, &left.2, Reverse(left.3)).cmp(&(
                &right.0,
                &right.1,
                &right.2,
                Reverse(right.3),
            ))
        });
        shown
    }

    /// Memory becomes a file of each family that has cells there.
    pub fn flush(&mut self) {
        (0..self.families.len()).for_each(|family| self.flush_family(family));
    }

    /// Memory of one family becomes a file, if there are cells.
    pub fn flush_family(&mut self, family: usize) {
        let cells = std::mem::take(&mut self.memory[family]);
        let kept = flushed(&cells, self.families[family].1);
        if !kept.is_empty() {
            self.files[family].push(kept);
        }
    }

    /// The files of a family become one, without markers and what they hide; with a single file only if `major`.
    pub fn compact(&mut self, family: usize, major: bool) {
        let enough = if major { 1 } else { 2 };
        if self.files[family].len() >= enough {
            let cells: Vec<ModelCell> = self.files[family].drain(..).flatten().collect();
            self.files[family].push(visible(&cells, self.families[family].1));
        }
    }

    /// The region that a split leaves of this one, whose memory is in files: the rows for which `keeps` holds. Files without
    /// any do not come along.
    pub fn part(&self, keeps: impl Fn(&[u8]) -> bool) -> Model {
        assert!(self.memory.iter().all(Vec::is_empty), "flushed before");
        let mut part = self.clone();
        for files in &mut part.files {
            for file in files.iter_mut() {
                file.retain(|cell| keeps(&cell.row));
            }
            files.retain(|file| !file.is_empty());
        }
        part
    }

    /// The region that a merge makes of this one and `other`, whose memories are in files.
    pub fn merged(mut self, other: Model) -> Model {
        assert!(self.memory.iter().chain(&other.memory).all(Vec::is_empty), "flushed before");
        for (files, others) in self.files.iter_mut().zip(other.files) {
            files.extend(others);
        }
        self.next_order = self.next_order.max(other.next_order);
        self
    }

    /// Files of a family.
    pub fn file_count(&self, family: usize) -> usize {
        self.files[family].len()
    }

    /// Rows with visible cells.
    pub fn rows(&self) -> BTreeSet<Vec<u8>> {
        self.scan().into_iter().map(|shown| shown.0).collect()
    }
}
