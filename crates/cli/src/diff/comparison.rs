//! Compares two sequences of cells in key order.

use std::cmp::Ordering;

use bytes::Bytes;
use cell::{CellOrder, KeyValue};
use client::{Error, Scanner};
use futures_util::join;

/// After this number of rows, progress is reported.
const ROWS_PER_REPORT: u64 = 1000;

/// A cell that both tables do not have equally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The cell, from the first table that has it.
    pub(crate) cell: KeyValue,
    /// Its values in both tables; `None` where it is missing.
    pub(crate) values: [Option<Bytes>; 2],
}

/// How much of the differences a comparison retains. All are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retained {
    /// Number of differing cells.
    pub(crate) cells: usize,
    /// Bytes for the keys of differing rows.
    pub(crate) row_bytes: usize,
}

impl Retained {
    /// Differences are only counted.
    pub(crate) const NOTHING: Retained = Retained { cells: 0, row_bytes: 0 };
}

/// What a comparison found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Rows of any of the tables.
    pub(crate) rows: u64,
    /// Rows with a difference.
    pub(crate) differing_rows: u64,
    /// Cells of each table.
    pub(crate) cells: [u64; 2],
    /// Cells that only this table has.
    pub(crate) only: [u64; 2],
    /// Cells with different values.
    pub(crate) values: u64,
    /// The first differences, in key order.
    pub(crate) differences: Vec<Difference>,
    /// Keys of rows with a difference, in order; all of them if there are `differing_rows`.
    pub(crate) row_keys: Vec<Bytes>,
    free: Retained,
}

impl Comparison {
    /// Nothing was compared yet.
    pub(crate) fn new(retained: Retained) -> Comparison {
        Comparison {
            rows: 0,
            differing_rows: 0,
            cells: [0; 2],
            only: [0; 2],
            values: 0,
            differences: Vec::new(),
            row_keys: Vec::new(),
            free: retained,
        }
    }

    /// Whether no difference was found.
    pub(crate) fn is_equal(&self) -> bool {
        self.differing_rows == 0
    }

    /// Both results together; the keys of `next` are greater.
    pub(crate) fn followed_by(mut self, next: Comparison) -> Comparison {
        self.rows += next.rows;
        self.differing_rows += next.differing_rows;
        self.values += next.values;
        for side in [0, 1] {
            self.cells[side] += next.cells[side];
            self.only[side] += next.only[side];
        }
        next.differences.into_iter().for_each(|difference| self.retain(difference));
        next.row_keys.into_iter().for_each(|key| self.retain_row(key));
        self
    }

    fn add(&mut self, cell: KeyValue, values: [Option<Bytes>; 2]) {
        match &values {
            [Some(_), Some(_)] => self.values += 1,
            [Some(_), None] => self.only[0] += 1,
            _ => self.only[1] += 1,
        }
        self.retain(Difference { cell, values });
    }

    fn retain(&mut self, difference: Difference) {
        if let Some(free) = self.free.cells.checked_sub(1) {
            self.free.cells = free;
            self.differences.push(difference);
        }
    }

    fn retain_row(&mut self, key: Bytes) {
        if let Some(free) = self.free.row_bytes.checked_sub(key.len() + size_of::<Bytes>()) {
            self.free.row_bytes = free;
            self.row_keys.push(key);
        }
    }
}

/// Cells in key order.
pub(crate) trait Cells {
    /// The next cell.
    async fn next(&mut self) -> Result<Option<KeyValue>, Error>;
}

/// The cells of a scan.
pub(crate) struct TableCells {
    scanner: Scanner,
    ready: std::vec::IntoIter<KeyValue>,
}

impl TableCells {
    pub(crate) fn new(scanner: Scanner) -> TableCells {
        TableCells { scanner, ready: Vec::new().into_iter() }
    }
}

impl Cells for TableCells {
    async fn next(&mut self) -> Result<Option<KeyValue>, Error> {
        loop {
            if let Some(cell) = self.ready.next() {
                return Ok(Some(cell));
            }
            match self.scanner.next().await? {
                Some(row) => self.ready = row.cells.into_iter(),
                None => return Ok(None),
            }
        }
    }
}

/// Compares all cells. `on_rows` is called with the number of rows since the last call.
///
/// # Errors
/// The side that failed, 0 or 1, and why.
pub(crate) async fn compare(
    mut first: impl Cells,
    mut second: impl Cells,
    retained: Retained,
    on_rows: impl Fn(u64),
) -> Result<Comparison, (usize, Error)> {
    let mut found = Comparison::new(retained);
    let mut row = CurrentRow::default();
    let (left, right) = join!(first.next(), second.next());
    let (mut left, mut right) = (of_side(0, left)?, of_side(1, right)?);
    loop {
        let order = match (&left, &right) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(left), Some(right)) => CellOrder::Plain.compare(&left.view(0), &right.view(0)),
        };
        let cell = if order.is_gt() { &right } else { &left };
        let cell = cell.clone().expect("the order says which side has a cell");
        if row.begins_with(&cell) {
            found.rows += 1;
            if found.rows.is_multiple_of(ROWS_PER_REPORT) {
                on_rows(ROWS_PER_REPORT);
            }
        }
        let taken = [left.take_if(|_| order.is_le()), right.take_if(|_| order.is_ge())];
        for side in [0, 1] {
            found.cells[side] += u64::from(taken[side].is_some());
        }
        let [left_value, right_value] =
            taken.each_ref().map(|cell| cell.as_ref().map(|cell| cell.view(0).value));
        if left_value != right_value {
            if row.begins_to_differ() {
                found.differing_rows += 1;
                // A copy, because the cell shares the memory of a whole response.
                found.retain_row(Bytes::copy_from_slice(cell.view(0).row()));
            }
            found.add(cell, [left_value, right_value].map(|value| value.map(Bytes::copy_from_slice)));
        }
        match order {
            Ordering::Less => left = of_side(0, first.next().await)?,
            Ordering::Greater => right = of_side(1, second.next().await)?,
            Ordering::Equal => {
                let next = join!(first.next(), second.next());
                (left, right) = (of_side(0, next.0)?, of_side(1, next.1)?);
            }
        }
    }
    on_rows(found.rows % ROWS_PER_REPORT);
    Ok(found)
}

fn of_side<T>(side: usize, result: Result<T, Error>) -> Result<T, (usize, Error)> {
    result.map_err(|error| (side, error))
}

/// The row of the last compared cell.
#[derive(Default)]
struct CurrentRow {
    cell: Option<KeyValue>,
    differs: bool,
}

impl CurrentRow {
    /// Whether the cell is the first one of a new row.
    fn begins_with(&mut self, cell: &KeyValue) -> bool {
        let is_same = self.cell.as_ref().is_some_and(|last| last.view(0).row() == cell.view(0).row());
        if !is_same {
            *self = CurrentRow { cell: Some(cell.clone()), differs: false };
        }
        !is_same
    }

    /// Whether this is the first difference of the row.
    fn begins_to_differ(&mut self) -> bool {
        !std::mem::replace(&mut self.differs, true)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell as Counter;

    use cell::cell::CellType;
    use futures_util::FutureExt;

    use super::*;

    /// Cells that are known, then perhaps an error.
    struct Known {
        cells: std::vec::IntoIter<KeyValue>,
        fails: bool,
    }

    impl Cells for Known {
        async fn next(&mut self) -> Result<Option<KeyValue>, Error> {
            match self.cells.next() {
                None if self.fails => Err(Error::Malformed("broken".to_owned())),
                next => Ok(next),
            }
        }
    }

    /// Cells `ROW/QUALIFIER/TIMESTAMP=VALUE`, separated by spaces.
    fn cells(text: &str) -> Known {
        let parsed = |word: &str| {
            let (key, value) = word.split_once('=').unwrap();
            let [row, qualifier, timestamp] = key.split('/').collect::<Vec<_>>().try_into().unwrap();
            let timestamp = timestamp.parse().unwrap();
            let (row, qualifier) = (row.as_bytes(), qualifier.as_bytes());
            KeyValue::new(row, b"f", qualifier, timestamp, CellType::Put, value.as_bytes())
        };
        Known { cells: text.split_whitespace().map(parsed).collect::<Vec<_>>().into_iter(), fails: false }
    }

    fn compared(first: &str, second: &str, cells_max: usize) -> Comparison {
        let retained = Retained { cells: cells_max, row_bytes: 2 * (1 + size_of::<Bytes>()) };
        let compared = compare(cells(first), cells(second), retained, |_| {});
        compared.now_or_never().expect("known cells are ready").unwrap()
    }

    fn shown(found: &Comparison) -> Vec<String> {
        let text = |difference: &Difference| {
            let cell = difference.cell.view(0);
            let values = difference.values.each_ref().map(|value| match value {
                Some(value) => String::from_utf8(value.to_vec()).unwrap(),
                None => "-".to_owned(),
            });
            let (row, qualifier) = (cell.row().escape_ascii(), cell.qualifier().escape_ascii());
            format!("{row}/{qualifier}/{}: {} {}", cell.timestamp(), values[0], values[1])
        };
        found.differences.iter().map(text).collect()
    }

    #[test]
    fn equal_tables_have_no_difference() {
        let text = "a/p/2=x a/p/1=y a/q/1=z b/p/1=x";
        let found = compared(text, text, 10);
        assert!(found.is_equal());
        assert_eq!((found.rows, found.cells, found.differing_rows), (2, [4, 4], 0));
        assert!(compared("", "", 10).is_equal());
    }

    #[test]
    fn missing_cells_and_other_values_are_found() {
        let found = compared("a/p/2=x a/p/1=y c/p/1=x d/p/1=x", "a/p/2=X b/p/1=x c/p/1=x", 10);
        assert_eq!(shown(&found), ["a/p/2: x X", "a/p/1: y -", "b/p/1: - x", "d/p/1: x -"]);
        assert_eq!((found.rows, found.differing_rows, found.cells), (4, 3, [4, 3]));
        assert_eq!((found.only, found.values), ([2, 1], 1));
    }

    #[test]
    fn an_empty_value_differs_from_a_missing_cell() {
        let found = compared("a/p/1=", "", 10);
        assert_eq!(shown(&found), ["a/p/1:  -"]);
        assert!(compared("a/p/1=", "a/p/1=", 10).is_equal());
    }

    #[test]
    fn further_differences_are_counted_only() {
        let found = compared("a/p/1=x b/p/1=x c/p/1=x", "", 2);
        assert_eq!((shown(&found).len(), found.only), (2, [3, 0]));
        let both = found.followed_by(compared("d/p/1=x", "d/p/1=y", 2));
        assert_eq!((both.differences.len(), both.rows, both.differing_rows, both.values), (2, 4, 4, 1));
    }

    #[test]
    fn keys_of_differing_rows_are_retained_up_to_their_limit_of_bytes() {
        let large = format!("a/p/2=x a/p/1={}", "v".repeat(1000));
        let found = compared(&large, "", 0);
        assert_eq!((found.row_keys.as_slice(), found.differing_rows), (&[Bytes::from("a")][..], 1));
        let both = found.followed_by(compared("b/p/1=x c/p/1=x d/p/1=x", "b/p/1=x", 0));
        assert_eq!((both.row_keys.as_slice(), both.differing_rows), (&["a", "c"].map(Bytes::from)[..], 3));
        assert_eq!(both.differences, []);
    }

    #[test]
    fn an_error_names_its_side() {
        let broken = Known { fails: true, ..cells("a/p/1=x") };
        let failed =
            compare(cells("a/p/1=x b/p/1=x"), broken, Retained::NOTHING, |_| {}).now_or_never().unwrap();
        assert_eq!(failed.unwrap_err().0, 1);
    }

    #[test]
    fn all_rows_are_reported() {
        let text: String = (0..2500).map(|row| format!("{row:04}/p/1=x ")).collect();
        let reported = Counter::new(0);
        let found = compare(cells(&text), cells(&text), Retained::NOTHING, |rows| {
            reported.set(reported.get() + rows)
        });
        assert_eq!(found.now_or_never().unwrap().unwrap().rows, 2500);
        assert_eq!(reported.get(), 2500);
    }
}
