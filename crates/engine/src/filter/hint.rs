//! The position to which a filter wants a scan to seek, relative to the cell that it was evaluated
//! for.

use std::cmp::Ordering;

use cell::{Cell, CellOrder};

/// A position to seek to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint<'a> {
    /// The start of a row.
    Row(&'a [u8]),
    /// The start of the column with this qualifier, in the cell's row and family.
    Column(&'a [u8]),
    /// The newest version of the cell's column that is not newer than this timestamp.
    Version(i64),
    /// The end of the cell's column.
    ColumnEnd,
}

impl Hint<'_> {
    /// Compares the position, given for the cell `base`, with `cell` in the order of cells. It is
    /// never equal to a cell's position.
    pub(crate) fn compare_to_cell(&self, base: &Cell<'_>, cell: &Cell<'_>) -> Ordering {
        // HBase compares hints in the order of plain tables, even in `hbase:meta`.
        let row = match self {
            Hint::Row(row) => row,
            _ => base.row(),
        };
        let rows = CellOrder::Plain.compare_rows(row, cell.row());
        match self {
            Hint::Row(_) => rows.then(Ordering::Less),
            Hint::Column(qualifier) => rows
                .then_with(|| base.family().cmp(cell.family()))
                .then_with(|| (*qualifier).cmp(cell.qualifier()))
                .then(Ordering::Less),
            Hint::Version(timestamp) => rows.then_with(|| columns(base, cell)).then_with(|| {
                // Newer versions come first. The position comes before every cell of its timestamp.
                cell.timestamp().cmp(timestamp).then(Ordering::Less)
            }),
            Hint::ColumnEnd => rows.then_with(|| columns(base, cell)).then(Ordering::Greater),
        }
    }

    /// Compares two positions given for the same cell.
    pub(crate) fn compare(&self, other: &Hint<'_>, base: &Cell<'_>) -> Ordering {
        match (self, other) {
            (Hint::Row(left), Hint::Row(right)) => left.cmp(right),
            (Hint::Row(row), _) => (*row).cmp(base.row()).then(Ordering::Less),
            (_, Hint::Row(row)) => base.row().cmp(row).then(Ordering::Greater),
            (Hint::Column(left), Hint::Column(right)) => left.cmp(right),
            (Hint::Column(qualifier), _) => (*qualifier).cmp(base.qualifier()).then(Ordering::Less),
            (_, Hint::Column(qualifier)) => base.qualifier().cmp(qualifier).then(Ordering::Greater),
            (Hint::Version(left), Hint::Version(right)) => right.cmp(left),
            (Hint::Version(_), Hint::ColumnEnd) => Ordering::Less,
            (Hint::ColumnEnd, Hint::Version(_)) => Ordering::Greater,
            (Hint::ColumnEnd, Hint::ColumnEnd) => Ordering::Equal,
        }
    }
}

fn columns(left: &Cell<'_>, right: &Cell<'_>) -> Ordering {
    left.family().cmp(right.family()).then_with(|| left.qualifier().cmp(right.qualifier()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cell::{CellType, KeyBuf};

    fn key(base: &Cell<'_>, hint: Hint<'_>) -> KeyBuf {
        let (row, family, qualifier) = (base.row(), base.family(), base.qualifier());
        match hint {
            Hint::Row(row) => KeyBuf::first_on_row(row),
            Hint::Column(qualifier) => KeyBuf::first_on_column(row, family, qualifier),
            Hint::Version(at) => KeyBuf::new(row, family, qualifier, at, CellType::Maximum as u8),
            Hint::ColumnEnd => KeyBuf::last_on_column(row, family, qualifier),
        }
    }

    #[test]
    fn hints_compare_as_the_keys_they_stand_for() {
        let cells: Vec<KeyBuf> = ["a", "b", "c"]
            .iter()
            .flat_map(|row| ["f", "g"].map(|family| (row, family)))
            .flat_map(|(row, family)| ["p", "q", "r"].map(|qualifier| (row, family, qualifier)))
            .flat_map(|(row, family, qualifier)| {
                [7, 5].map(|at| {
                    KeyBuf::new(
                        row.as_bytes(),
                        family.as_bytes(),
                        qualifier.as_bytes(),
                        at,
                        CellType::Put as u8,
                    )
                })
            })
            .collect();
        let view = |key| Cell { key, value: &[], tags: &[], seq_id: 0 };
        let base_key = KeyBuf::new(b"b", b"f", b"q", 5, CellType::Put as u8);
        let base = view(&base_key[..]);
        let hints = [
            Hint::Row(b"a"),
            Hint::Row(b"b"),
            Hint::Row(b"c"),
            Hint::Column(b"p"),
            Hint::Column(b"q"),
            Hint::Column(b"qq"),
            Hint::Version(7),
            Hint::Version(6),
            Hint::Version(5),
            Hint::ColumnEnd,
        ];
        for left in hints {
            for cell in &cells {
                let expected = CellOrder::Plain.compare_keys(&key(&base, left), cell);
                assert_eq!(left.compare_to_cell(&base, &view(cell)), expected, "{left:?} {cell:?}");
            }
            for right in hints {
                let expected = CellOrder::Plain.compare_keys(&key(&base, left), &key(&base, right));
                assert_eq!(left.compare(&right, &base), expected, "{left:?} {right:?}");
            }
        }
    }
}
