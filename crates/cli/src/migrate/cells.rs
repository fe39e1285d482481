//! Mutations that write copied cells.

use bytes::Bytes;
use cell::KeyValue;
use cell::cell::CellType;
use cell::mutation::Mutation;
use client::Row;

/// Cells to write, and how far they extend.
#[derive(Default)]
pub(super) struct CopiedCells {
    mutations: Vec<Mutation>,
    cells: u64,
    bytes: u64,
    // The last row, of which more cells may follow.
    current_row: Bytes,
    // The last row of which all cells are here or were taken.
    complete_row: Bytes,
}

/// Cells that are to be written together.
pub(super) struct Batch {
    pub(super) mutations: Vec<Mutation>,
    pub(super) cells: u64,
    pub(super) bytes: u64,
    /// The last row of which all cells are in this batch or in earlier ones; empty if there is
    /// none.
    pub(super) complete_row: Bytes,
}

impl CopiedCells {
    /// Adds the cells of a row, or of a part of one. Their timestamps, types and tags are
    /// unchanged.
    pub(super) fn add(&mut self, row: Row) {
        let key = Bytes::copy_from_slice(row.key());
        if key != self.current_row {
            self.complete_row = std::mem::replace(&mut self.current_row, key.clone());
        }
        self.cells += row.cells.len() as u64;
        self.bytes += row.cells.iter().map(|cell| cell.bytes().len() as u64).sum::<u64>();
        let (puts, deletes): (Vec<KeyValue>, Vec<KeyValue>) =
            row.cells.into_iter().partition(|cell| cell.view(0).kind() == CellType::Put);
        if !puts.is_empty() {
            self.mutations.push(Mutation::put(key.clone(), puts));
        }
        if !deletes.is_empty() {
            self.mutations.push(Mutation::delete(key, deletes));
        }
    }

    /// Number of bytes that were not taken yet.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All cells that were not taken yet.
    pub(super) fn take(&mut self) -> Batch {
        Batch {
            mutations: std::mem::take(&mut self.mutations),
            cells: std::mem::take(&mut self.cells),
            bytes: std::mem::take(&mut self.bytes),
            complete_row: self.complete_row.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use cell::mutation::MutationKind;

    use super::*;

    fn row(key: &str, cells: &[(i64, CellType)]) -> Row {
        let cell = |(timestamp, kind): &(i64, CellType)| {
            KeyValue::new(key.as_bytes(), b"f", b"q", *timestamp, *kind, b"v")
        };
        Row { cells: cells.iter().map(cell).collect() }
    }

    #[test]
    fn puts_and_delete_markers_are_separate_mutations() {
        let mut copied = CopiedCells::default();
        let markers =
            [(5, CellType::Delete), (4, CellType::DeleteColumn), (3, CellType::Put), (2, CellType::Put)];
        copied.add(row("a", &markers));
        let batch = copied.take();
        let kinds: Vec<_> =
            batch.mutations.iter().map(|mutation| (mutation.kind, mutation.cells.len())).collect();
        assert_eq!(kinds, [(MutationKind::Put, 2), (MutationKind::Delete, 2)]);
        assert_eq!(batch.mutations[1].cells[0].view(0).timestamp(), 5);
        assert_eq!(batch.cells, 4);
        assert_eq!((copied.bytes(), copied.take().mutations.len()), (0, 0));
    }

    #[test]
    fn a_row_is_complete_when_the_next_one_begins() {
        let mut copied = CopiedCells::default();
        copied.add(row("a", &[(1, CellType::Put)]));
        assert_eq!(copied.take().complete_row, "");
        copied.add(row("a", &[(0, CellType::Put)]));
        copied.add(row("b", &[(1, CellType::Put)]));
        assert_eq!(copied.take().complete_row, "a");
        copied.add(row("c", &[(1, CellType::Put)]));
        assert_eq!(copied.take().complete_row, "b");
    }
}
