//! Puts of rows: the row key, and a cell for each value that is not NULL.

use bytes::Bytes;
use cell::cell::ROW_LEN_MAX;
use cell::mutation::Mutation;
use cell::{CellType, KeyValue};
use columnar::{ColumnLocation, Value};
use datafusion::arrow::array::{Array, ArrayRef};

use crate::declaration::{Declaration, DeclaredColumn};
use crate::import::conversion::value;

/// Builds puts from the values of some declared columns.
#[derive(Debug)]
pub struct RowWriter {
    columns: Vec<DeclaredColumn>,
    key: Key,
    /// Indexes of columns of the row key that must be NULL, because `key` is built without them.
    absent: Vec<usize>,
    timestamp: i64,
}

/// How the row key is built; numbers are indexes of columns.
#[derive(Debug, PartialEq, Eq)]
enum Key {
    /// The value of one column.
    Whole(usize),
    /// Values one after the other.
    Joined {
        /// Columns whose values have fixed lengths, in order.
        fixed: Vec<usize>,
        /// The column of the remaining bytes.
        rest: Option<usize>,
        /// Columns between separators, in order.
        parts: Vec<usize>,
        separator: Bytes,
    },
}

/// A row that cannot be stored.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidRow {
    /// The index of the column.
    pub column: usize,
    /// What is wrong with its value.
    pub message: String,
}

impl RowWriter {
    /// A writer of rows with values for `columns` of a declaration, which get one timestamp.
    ///
    /// # Errors
    /// A message, if the columns do not determine the row key.
    pub fn new(declaration: &Declaration, columns: &[usize], timestamp: i64) -> Result<RowWriter, String> {
        Self::with_key_of(declaration, columns, timestamp, &|_| true)
    }

    /// A writer of JSON objects, in which any member may be missing. `first_members` are those of
    /// the first object: if it has the whole row key, all objects must. Otherwise the row key is
    /// built from the declared parts, or from those of the first object if these are ambiguous.
    ///
    /// # Errors
    /// A message, if the columns do not determine the row key.
    pub fn of_objects(
        declaration: &Declaration,
        columns: &[usize],
        timestamp: i64,
        first_members: &[String],
    ) -> Result<RowWriter, String> {
        let is_first = |column: &DeclaredColumn| first_members.contains(&column.name);
        if declaration.columns.iter().any(|column| is_whole_row(&column.location) && is_first(column)) {
            return Self::new(declaration, columns, timestamp);
        }
        Self::with_key_of(declaration, columns, timestamp, &|column| !is_whole_row(&column.location))
            .or_else(|_| Self::with_key_of(declaration, columns, timestamp, &is_first))
    }

    /// A writer that builds the row key from some of the columns. The others of the row key must be
    /// NULL.
    fn with_key_of(
        declaration: &Declaration,
        columns: &[usize],
        timestamp: i64,
        is_used: &dyn Fn(&DeclaredColumn) -> bool,
    ) -> Result<RowWriter, String> {
        let columns: Vec<_> = columns.iter().map(|at| declaration.columns[*at].clone()).collect();
        let key = Key::new(&columns, is_used)
            .map_err(|missing| format!("the row key of {} cannot be built: {missing}", declaration.name))?;
        let is_absent = |at: &usize| is_of_row(&columns[*at]) && !is_used(&columns[*at]);
        let absent = (0..columns.len()).filter(is_absent).collect();
        Ok(RowWriter { columns, key, absent, timestamp })
    }

    /// Its columns.
    pub fn columns(&self) -> &[DeclaredColumn] {
        &self.columns
    }

    /// The put of a row; `None` if all its values outside the row key are NULL, because a row of
    /// HBase consists of cells. `arrays` have the types of the columns.
    ///
    /// # Errors
    /// [`InvalidRow`].
    pub fn put(&self, arrays: &[ArrayRef], row: usize) -> Result<Option<Mutation>, InvalidRow> {
        let key = self.row_key(arrays, row)?;
        let mut cells = Vec::with_capacity(self.columns.len());
        for (at, column) in self.columns.iter().enumerate() {
            let ColumnLocation::Cell { family, qualifier } = &column.location else { continue };
            if let Some(bytes) = self.encoded(arrays, at, row)? {
                cells.push(KeyValue::new(&key, family, qualifier, self.timestamp, CellType::Put, &bytes));
            }
        }
        Ok((!cells.is_empty()).then(|| Mutation::put(key, cells)))
    }

    fn row_key(&self, arrays: &[ArrayRef], row: usize) -> Result<Vec<u8>, InvalidRow> {
        if let Some(at) = self.absent.iter().find(|at| arrays[**at].is_valid(row)) {
            let message = "the first object has no such part of the row key, so no object may have it";
            return Err(InvalidRow { column: *at, message: message.into() });
        }
        let (key, first) = match &self.key {
            Key::Whole(column) => (self.encoded(arrays, *column, row)?, *column),
            Key::Joined { fixed, rest, parts, separator } => {
                let mut key = Vec::new();
                for column in fixed.iter().chain(rest) {
                    key.extend(self.encoded(arrays, *column, row)?.unwrap_or_default());
                }
                for (number, column) in parts.iter().enumerate() {
                    // A row key ends before its first missing part.
                    let Some(part) = self.encoded(arrays, *column, row)? else { break };
                    if number > 0 {
                        key.extend_from_slice(separator);
                    }
                    key.extend(part);
                }
                let first = *fixed.iter().chain(rest).chain(parts).next().unwrap_or(&0);
                (Some(key), first)
            }
        };
        let invalid = |message: String| InvalidRow { column: first, message };
        let key = key.ok_or_else(|| invalid("the row key is NULL".into()))?;
        if key.is_empty() || key.len() > ROW_LEN_MAX {
            return Err(invalid(format!(
                "the row key has {} bytes; it must have 1 to {ROW_LEN_MAX}",
                key.len()
            )));
        }
        self.check_parts(arrays, row, &key)?;
        Ok(key)
    }

    /// Checks that each part of the row key is read as it was in the file. Otherwise a part
    /// contains a separator, has another length, or differs from the whole key.
    fn check_parts(&self, arrays: &[ArrayRef], row: usize, key: &[u8]) -> Result<(), InvalidRow> {
        for (at, column) in self.columns.iter().enumerate() {
            if !is_of_row(column) || self.key == Key::Whole(at) || self.absent.contains(&at) {
                continue;
            }
            let stored = column
                .location
                .find_in_row(key)
                .map(|bytes| column.encoding.read(bytes, column.sql_type.scale()));
            let is_equal = match (&stored, value(&arrays[at], row)) {
                (None, Value::Null) => true,
                // The key is known without this value.
                (_, Value::Null) if matches!(self.key, Key::Whole(_)) => true,
                (Some(Ok(stored)), value) => *stored == value,
                _ => false,
            };
            if !is_equal {
                let message = format!(
                    "its value is not at {} of the row key '{}'",
                    column.location,
                    key.escape_ascii()
                );
                return Err(InvalidRow { column: at, message });
            }
        }
        Ok(())
    }

    fn encoded(&self, arrays: &[ArrayRef], at: usize, row: usize) -> Result<Option<Vec<u8>>, InvalidRow> {
        let column = &self.columns[at];
        match value(&arrays[at], row) {
            Value::Null => Ok(None),
            value => match column.encoding.write(&value, column.sql_type.scale()) {
                Some(bytes) => Ok(Some(bytes)),
                None => Err(InvalidRow {
                    column: at,
                    message: format!("the value cannot be encoded as {}", column.encoding.name()),
                }),
            },
        }
    }
}

fn is_whole_row(location: &ColumnLocation) -> bool {
    matches!(location, ColumnLocation::RowBytes { offset: 0, length: None })
}

fn is_of_row(column: &DeclaredColumn) -> bool {
    !matches!(column.location, ColumnLocation::Cell { .. })
}

impl Key {
    /// Determines how those of these columns that are used form the row key.
    fn new(columns: &[DeclaredColumn], is_used: &dyn Fn(&DeclaredColumn) -> bool) -> Result<Key, String> {
        let position = |is_wanted: &dyn Fn(&ColumnLocation) -> bool| {
            columns.iter().position(|column| is_wanted(&column.location) && is_used(column))
        };
        if let Some(at) = position(&is_whole_row) {
            return Ok(Key::Whole(at));
        }
        let at_offset = |from: usize| {
            position(
                &|location| matches!(location, ColumnLocation::RowBytes { offset, .. } if *offset == from),
            )
        };
        let (mut fixed, mut rest, mut end) = (Vec::new(), None, 0);
        while let Some(at) = at_offset(end) {
            match columns[at].location {
                ColumnLocation::RowBytes { length: Some(length), .. } => {
                    fixed.push(at);
                    end += length;
                }
                _ => {
                    rest = Some(at);
                    break;
                }
            }
        }
        let mut parts = Vec::new();
        let mut separators = Vec::new();
        let part_at = |number: usize| {
            position(
                &|location| matches!(location, ColumnLocation::RowPart { part, offset, .. } if *part == number && *offset == end),
            )
        };
        while let Some(at) = part_at(parts.len()).filter(|_| rest.is_none()) {
            if let ColumnLocation::RowPart { separator, .. } = &columns[at].location {
                separators.push(separator.clone());
            }
            parts.push(at);
        }
        separators.dedup();
        let used = fixed.len() + usize::from(rest.is_some()) + parts.len();
        match columns.iter().filter(|column| is_of_row(column) && is_used(column)).count() {
            0 => Err("the file has no column for it".into()),
            count if count == used && separators.len() <= 1 => {
                let separator = separators.pop().unwrap_or_default();
                Ok(Key::Joined { fixed, rest, parts, separator })
            }
            _ => Err("its parts in the file do not follow each other from its first byte".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Int32Array, Int64Array, StringArray};

    use super::*;
    use crate::declaration::tests::declared;

    fn declaration(columns: &str, options: &str) -> Declaration {
        let sql =
            format!("CREATE EXTERNAL TABLE t ({columns}) STORED AS GRAMPUS LOCATION 't' OPTIONS ({options})");
        declared(&sql, &["f"]).unwrap()
    }

    fn text(value: &str) -> ArrayRef {
        Arc::new(StringArray::from(vec![value]))
    }

    #[test]
    fn null_is_no_cell_and_a_row_needs_cells() {
        let declaration = declaration("id VARCHAR PRIMARY KEY, a BIGINT, b INT", "'table.encoding' 'bytes'");
        let writer = RowWriter::new(&declaration, &[1, 0, 2], 7).unwrap();
        let long = |value: Option<i64>| -> ArrayRef { Arc::new(Int64Array::from(vec![value])) };
        let int: ArrayRef = Arc::new(Int32Array::from(vec![None]));
        let put = writer.put(&[long(Some(5)), text("k"), Arc::clone(&int)], 0).unwrap().unwrap();
        assert_eq!(put.row, "k");
        let cell = KeyValue::new(b"k", b"f", b"a", 7, CellType::Put, &5_i64.to_be_bytes());
        assert_eq!(put.cells, [cell]);
        assert_eq!(writer.put(&[long(None), text("k"), Arc::clone(&int)], 0).unwrap(), None);
        let empty = writer.put(&[long(Some(1)), text(""), Arc::clone(&int)], 0).unwrap_err();
        assert!(empty.column == 1 && empty.message.contains("0 bytes"), "{empty:?}");
        let long_key = writer.put(&[long(Some(1)), text(&"x".repeat(40_000)), int], 0).unwrap_err();
        assert!(long_key.message.contains("40000 bytes"), "{long_key:?}");
        assert!(RowWriter::new(&declaration, &[1, 2], 7).unwrap_err().contains("no column"));
    }

    #[test]
    fn row_keys_are_joined_from_parts() {
        let declaration = declaration(
            "n INT, region VARCHAR, day VARCHAR, a VARCHAR",
            "'n' 'row[0..4] bytes_int', 'region' 'row[4..] part 1 by |', 'day' 'row[4..] part 2 by |'",
        );
        let writer = RowWriter::new(&declaration, &[2, 0, 1, 3], 1).unwrap();
        let number: ArrayRef = Arc::new(Int32Array::from(vec![258]));
        let day: ArrayRef = text("05");
        let put = writer.put(&[day.clone(), number.clone(), text("north"), text("v")], 0).unwrap().unwrap();
        assert_eq!(put.row, &b"\x00\x00\x01\x02north|05"[..]);
        // A missing last part.
        let none: ArrayRef = Arc::new(StringArray::from(vec![None::<&str>]));
        let put = writer.put(&[none.clone(), number.clone(), text("north"), text("v")], 0).unwrap().unwrap();
        assert_eq!(put.row, &b"\x00\x00\x01\x02north"[..]);
        let separator = writer.put(&[day.clone(), number.clone(), text("no|rth"), text("v")], 0).unwrap_err();
        assert!(separator.message.contains("is not at part"), "{separator:?}");
        let gap = writer.put(&[day, number, none, text("v")], 0).unwrap_err();
        assert_eq!(gap.column, 0);
        assert!(RowWriter::new(&declaration, &[0, 2, 3], 1).unwrap_err().contains("do not follow"));
    }

    fn object_writer(declaration: &Declaration, first_members: &[&str]) -> Result<RowWriter, String> {
        let columns: Vec<usize> = (0..declaration.columns.len()).collect();
        let first_members: Vec<String> = first_members.iter().map(ToString::to_string).collect();
        RowWriter::of_objects(declaration, &columns, 1, &first_members)
    }

    fn row_of(writer: &RowWriter, values: &[Option<&str>]) -> Result<Bytes, InvalidRow> {
        let array = |value: &Option<&str>| -> ArrayRef { Arc::new(StringArray::from(vec![*value])) };
        let arrays: Vec<ArrayRef> = values.iter().map(array).collect();
        writer.put(&arrays, 0).map(|put| put.unwrap().row)
    }

    #[test]
    fn objects_may_lack_the_last_parts_of_the_row_key() {
        let columns = "a VARCHAR, day VARCHAR, region VARCHAR";
        let declaration = declaration(columns, "'day' 'row part 2 by |', 'region' 'row part 1 by |'");
        let writer = object_writer(&declaration, &["region", "a"]).unwrap();
        assert_eq!(row_of(&writer, &[Some("v"), None, Some("north")]).unwrap(), "north");
        assert_eq!(row_of(&writer, &[Some("v"), Some("05"), Some("north")]).unwrap(), "north|05");
        let gap = row_of(&writer, &[Some("v"), Some("05"), None]).unwrap_err();
        assert!(gap.column == 2 && gap.message.contains("0 bytes"), "{gap:?}");
    }

    #[test]
    fn all_objects_have_the_same_kind_of_row_key() {
        let declaration =
            declaration("id VARCHAR PRIMARY KEY, region VARCHAR, a VARCHAR", "'region' 'row part 1 by |'");
        let whole = object_writer(&declaration, &["id"]).unwrap();
        assert_eq!(row_of(&whole, &[Some("x|1"), None, Some("v")]).unwrap(), "x|1");
        assert_eq!(row_of(&whole, &[Some("x|1"), Some("x"), Some("v")]).unwrap(), "x|1");
        assert!(row_of(&whole, &[None, Some("x"), Some("v")]).unwrap_err().message.contains("NULL"));
        let parts = object_writer(&declaration, &["region"]).unwrap();
        assert_eq!(row_of(&parts, &[None, Some("x"), Some("v")]).unwrap(), "x");
        let mixed = row_of(&parts, &[Some("x|1"), Some("x"), Some("v")]).unwrap_err();
        assert!(mixed.column == 0 && mixed.message.contains("first object"), "{mixed:?}");
    }

    /// Overlapping parts: the first object decides which of them are used.
    #[test]
    fn objects_with_ambiguous_parts_are_alike() {
        let declaration = declaration(
            "code VARCHAR, word VARCHAR, a VARCHAR",
            "'code' 'row[0..2]', 'word' 'row part 1 by |'",
        );
        let writer = object_writer(&declaration, &["word", "a"]).unwrap();
        assert_eq!(row_of(&writer, &[None, Some("north"), Some("v")]).unwrap(), "north");
        let other = row_of(&writer, &[Some("so"), None, Some("v")]).unwrap_err();
        assert!(other.column == 0 && other.message.contains("first object"), "{other:?}");
        assert!(object_writer(&declaration, &["a"]).unwrap_err().contains("no column"));
    }

    #[test]
    fn parts_must_agree_with_the_whole_key() {
        let declaration = declaration("id VARCHAR PRIMARY KEY, n INT, a VARCHAR", "'n' 'row part 2 by |'");
        let writer = RowWriter::new(&declaration, &[0, 1, 2], 1).unwrap();
        let number = |value: i32| -> ArrayRef { Arc::new(Int32Array::from(vec![value])) };
        // Another spelling of the same number.
        assert!(writer.put(&[text("x|007"), number(7), text("v")], 0).unwrap().is_some());
        let differs = writer.put(&[text("x|007"), number(8), text("v")], 0).unwrap_err();
        assert!(differs.column == 1 && differs.message.contains("'x|007'"), "{differs:?}");
    }
}
