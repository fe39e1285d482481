//! A model of a region: HBase's rules (`super::rules`), applied literally to plain vectors.
//!
//! Cells are in layers as in a region (memory, then files). A flush or compaction drops excess
//! versions, hidden cells, and expired cells within the layers it reads, and later reads show the
//! difference.

use std::collections::BTreeSet;

use cell::cell::CellType;
use cell::condition::{Condition, Test};
use cell::mutation::{Mutation, MutationKind};
use cell::schema::TableDescriptor;
use cell::{Cell, LATEST_TIMESTAMP};

use super::rules::{self, ModelRead, Rules};

/// A cell in the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCell {
    pub row: Vec<u8>,
    pub family: Vec<u8>,
    pub qualifier: Vec<u8>,
    pub timestamp: i64,
    pub kind: CellType,
    pub value: Vec<u8>,
    /// Of cells with equal keys, the one with the highest order wins.
    pub order: u64,
}

/// A cell in the result of a scan.
pub type VisibleCell = (Vec<u8>, Vec<u8>, Vec<u8>, i64, Vec<u8>);

/// A file. The name is that of the region's file, and empty until it is known.
#[derive(Clone, Debug, Default)]
pub struct ModelFile {
    pub name: String,
    pub cells: Vec<ModelCell>,
}

#[derive(Clone, Debug)]
struct Family {
    name: Vec<u8>,
    rules: Rules,
    memory: Vec<ModelCell>,
    files: Vec<ModelFile>,
    /// Files that were dropped completely. A crash may bring them back.
    dropped: Vec<ModelFile>,
}

/// The expected state of a region.
#[derive(Clone, Debug)]
pub struct Model {
    families: Vec<Family>,
    next_order: u64,
    /// The clock of the region, which determines expired cells.
    pub now: i64,
}

impl ModelCell {
    /// The model's form of a cell that was read.
    pub fn of(cell: &Cell<'_>) -> ModelCell {
        ModelCell {
            row: cell.row().to_vec(),
            family: cell.family().to_vec(),
            qualifier: cell.qualifier().to_vec(),
            timestamp: cell.timestamp(),
            kind: cell.kind(),
            value: cell.value.to_vec(),
            order: 0,
        }
    }

    /// Its form in the result of a scan.
    pub fn visible_cell(&self) -> VisibleCell {
        let cell = self.clone();
        (cell.row, cell.family, cell.qualifier, cell.timestamp, cell.value)
    }
}

impl Model {
    pub fn new(table: &TableDescriptor) -> Model {
        let family = |family: &cell::schema::FamilyDescriptor| Family {
            name: family.name.to_vec(),
            rules: Rules::of(family),
            memory: Vec::new(),
            files: Vec::new(),
            dropped: Vec::new(),
        };
        Model { families: table.families.values().map(family).collect(), next_order: 0, now: 0 }
    }

    /// Sets how long a marker is retained after it could be dropped.
    pub fn purge_after(&mut self, ms: i64) {
        self.families.iter_mut().for_each(|family| family.rules.purge_after = ms);
    }

    /// Applies mutations that become visible together. `now` is the server's clock.
    pub fn apply(&mut self, mutations: &[Mutation], now: i64) {
        let before = self.clone();
        for mutation in mutations {
            let mut markers: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
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
                        markers.push((cell.family().to_vec(), cell.qualifier().to_vec()));
                        let nth =
                            markers.iter().filter(|marker| **marker == *markers.last().unwrap()).count();
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

    /// Applies changes of one row if the condition holds, and returns whether it did. `Err` if a
    /// value to increment is not a number; then nothing has changed. Supports only puts,
    /// increments, and appends.
    pub fn change(
        &mut self,
        condition: Option<&Condition>,
        mutations: &[Mutation],
        now: i64,
    ) -> Result<bool, ()> {
        let before = self.clone();
        let mut puts_not_before = i64::MIN;
        if let Some(condition) = condition {
            let Test::Column(test) = &condition.test else { unreachable!("only column tests are supported") };
            let newest = before.newest(&condition.row, &test.family, &test.qualifier);
            if !test.passes(newest.as_ref().map(|put| &put.value[..])).map_err(drop)? {
                return Ok(false);
            }
            puts_not_before = newest.map_or(i64::MIN, |put| put.timestamp);
        }
        let outcome = mutations.iter().try_for_each(|mutation| match mutation.kind {
            MutationKind::Put => {
                self.apply(std::slice::from_ref(mutation), now.max(puts_not_before));
                Ok(())
            }
            MutationKind::Delete => unreachable!("deletes are not supported"),
            _ => mutation.cells.iter().try_for_each(|cell| self.add(&before, mutation, &cell.view(0), now)),
        });
        if outcome.is_err() {
            *self = before;
        }
        outcome.map(|()| true)
    }

    /// An increment or append of one column, based on the state `before`.
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
        self.versions(row, self.family(family), qualifier, 1).pop()
    }

    /// The newest visible versions of a column, as a Get returns them.
    fn versions(&self, row: &[u8], family: usize, qualifier: &[u8], versions: usize) -> Vec<ModelCell> {
        let read = ModelRead {
            qualifiers: Some(BTreeSet::from([qualifier.to_vec()])),
            versions,
            ..ModelRead::default()
        };
        self.read(family, &read).into_iter().filter(|put| put.row == row).collect()
    }

    fn family(&self, name: &[u8]) -> usize {
        self.families.iter().position(|known| known.name == name).expect("a family of the table")
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
        let name = self.families[family].name.clone();
        self.families[family].memory.push(ModelCell {
            row: row.to_vec(),
            family: name,
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
        let versions = self.versions(cell.row(), family, cell.qualifier(), nth);
        versions.get(nth - 1).map(|put| put.timestamp)
    }

    fn cells(&self, family: usize) -> Vec<ModelCell> {
        let family = &self.families[family];
        family.files.iter().flat_map(|file| &file.cells).chain(&family.memory).cloned().collect()
    }

    /// The cells of one family that a read returns, in order.
    pub fn read(&self, family: usize, read: &ModelRead) -> Vec<ModelCell> {
        rules::returned(&self.cells(family), &self.families[family].rules, read, self.now)
    }

    /// The result of a scan of all versions.
    pub fn scan(&self) -> Vec<VisibleCell> {
        let everything = ModelRead { versions: usize::MAX, ..ModelRead::default() };
        let of_families = (0..self.families.len()).flat_map(|family| self.read(family, &everything));
        rules::in_order(of_families.collect()).iter().map(ModelCell::visible_cell).collect()
    }

    /// Flushes the families that have cells in memory.
    pub fn flush(&mut self) {
        (0..self.families.len()).for_each(|family| self.flush_family(family));
    }

    /// Flushes one family. Writes a file even if no cell is kept.
    pub fn flush_family(&mut self, at: usize) {
        let now = self.now;
        let family = &mut self.families[at];
        let memory = std::mem::take(&mut family.memory);
        if !memory.is_empty() {
            let cells = rules::kept(&memory, &family.rules, None, now);
            family.files.push(ModelFile { name: String::new(), cells });
        }
    }

    /// Drops files whose cells are all expired, except the newest file. `order` has all names,
    /// oldest first.
    pub fn drop_expired(&mut self, at: usize, order: &[String]) {
        let now = self.now;
        let family = &mut self.families[at];
        let Some(ttl) = family.rules.ttl.filter(|_| family.rules.min_versions == 0) else { return };
        let newest = order.last();
        let is_expired = |file: &ModelFile| {
            let all_expired = file.cells.iter().all(|cell| cell.timestamp < now - ttl);
            Some(&file.name) != newest && !file.cells.is_empty() && all_expired
        };
        let (expired, left) = family.files.drain(..).partition(is_expired);
        family.dropped.extend::<Vec<ModelFile>>(expired);
        family.files = left;
    }

    /// Merges files into one, or into one for each time range between `boundaries` that has cells.
    pub fn compact_files(&mut self, at: usize, names: &[String], is_all: bool, boundaries: &[i64]) {
        let (inputs, left): (Vec<_>, Vec<_>) =
            self.families[at].files.drain(..).partition(|file| names.contains(&file.name));
        assert_eq!(inputs.len(), names.len(), "the region compacts existing files");
        self.families[at].files = left;
        self.merge(at, inputs, is_all, boundaries);
    }

    /// Merges all files of a family. A single file is rewritten only if `major` is set.
    pub fn compact(&mut self, at: usize, major: bool) {
        if self.file_count(at) >= if major { 1 } else { 2 } {
            let inputs = std::mem::take(&mut self.families[at].files);
            self.merge(at, inputs, true, &[]);
        }
    }

    fn merge(&mut self, at: usize, inputs: Vec<ModelFile>, is_all: bool, boundaries: &[i64]) {
        let now = self.now;
        let family = &mut self.families[at];
        let cells: Vec<ModelCell> = inputs.into_iter().flat_map(|file| file.cells).collect();
        let puts = cells.iter().filter(|cell| cell.kind == CellType::Put);
        let earliest_put = puts.map(|put| put.timestamp).min().unwrap_or(i64::MAX);
        let kept = rules::kept(&cells, &family.rules, is_all.then_some(earliest_put), now);
        let output_of =
            |cell: &ModelCell| boundaries.iter().filter(|smallest| **smallest <= cell.timestamp).count();
        let mut outputs: Vec<ModelFile> = (0..=boundaries.len())
            .map(|output| kept.iter().filter(|cell| output_of(cell) == output).cloned().collect::<Vec<_>>())
            .filter(|cells| !cells.is_empty())
            .map(|cells| ModelFile { name: String::new(), cells })
            .collect();
        if outputs.is_empty() {
            outputs.push(ModelFile::default());
        }
        family.files.extend(outputs);
    }

    /// Takes the names of new files from `order`, the names of all files, oldest first. Returns
    /// whether the numbers of files agree.
    pub fn learn_names(&mut self, at: usize, order: &[String]) -> bool {
        let family = &mut self.families[at];
        let known: BTreeSet<String> = family.files.iter().map(|file| file.name.clone()).collect();
        let mut new = order.iter().filter(|name| !known.contains(*name));
        for file in family.files.iter_mut().filter(|file| file.name.is_empty()) {
            let Some(name) = new.next() else { return false };
            file.name.clone_from(name);
        }
        new.next().is_none() && family.files.len() == order.len()
    }

    /// After a crash, restores dropped files that came back because their removal was not durable.
    pub fn crashed(&mut self, at: usize, order: &[String]) {
        let family = &mut self.families[at];
        let (back, gone) = family.dropped.drain(..).partition(|file| order.contains(&file.name));
        family.files.extend::<Vec<ModelFile>>(back);
        family.dropped = gone;
    }

    /// The daughter region with the rows for which `keeps` holds. The memory of this region must be
    /// empty. Files without such rows are omitted.
    pub fn part(&self, keeps: impl Fn(&[u8]) -> bool) -> Model {
        assert!(self.families.iter().all(|family| family.memory.is_empty()), "flushed before");
        let mut part = self.clone();
        for family in &mut part.families {
            for file in &mut family.files {
                file.cells.retain(|cell| keeps(&cell.row));
            }
            family.files.retain(|file| !file.cells.is_empty());
        }
        part
    }

    /// The region merged from this one and `other`. The memory of both must be empty.
    pub fn merged(mut self, other: Model) -> Model {
        let mut both = self.families.iter().chain(&other.families);
        assert!(both.all(|family| family.memory.is_empty()), "flushed before");
        for (family, others) in self.families.iter_mut().zip(other.families) {
            family.files.extend(others.files);
        }
        self.next_order = self.next_order.max(other.next_order);
        self
    }

    /// Number of files of a family.
    pub fn file_count(&self, family: usize) -> usize {
        self.families[family].files.len()
    }

    /// Rows with visible cells.
    pub fn rows(&self) -> BTreeSet<Vec<u8>> {
        self.scan().into_iter().map(|shown| shown.0).collect()
    }
}
