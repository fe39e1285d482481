//! Records as lines of text in columns. All text is ASCII, so a byte is a column of the terminal.

use std::collections::BTreeMap;

use super::field::Field;
use super::record::Record;

/// The separator of columns.
const GAP: &str = " ";

/// The widths of columns.
#[derive(Debug, Clone, Default)]
pub(super) struct Widths(BTreeMap<Field, usize>);

impl Widths {
    /// Widens columns to fit their headers and these records. No column becomes narrower.
    pub(super) fn fit(&mut self, fields: &[Field], records: &[Record]) {
        for field in fields {
            let longest = records.iter().map(|record| record.text(*field).len()).max();
            let needed = longest.unwrap_or_default().max(field.head().len());
            let width = self.0.entry(*field).or_default();
            *width = needed.max(*width);
        }
    }

    /// The header line.
    pub(super) fn head(&self, fields: &[Field]) -> String {
        self.line(fields, |field| field.head().to_string())
    }

    /// The line of a record.
    pub(super) fn record(&self, fields: &[Field], record: &Record) -> String {
        self.line(fields, |field| record.text(field))
    }

    /// Numbers are aligned right, text is aligned left.
    fn line(&self, fields: &[Field], shown: impl Fn(Field) -> String) -> String {
        let column = |field: &Field| {
            let (text, width) = (shown(*field), self.0.get(field).copied().unwrap_or_default());
            if field.kind().is_number() { format!("{text:>width$}") } else { format!("{text:<width$}") }
        };
        fields.iter().map(column).collect::<Vec<_>>().join(GAP).trim_end().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::super::value::Value;
    use super::*;

    #[test]
    fn columns_line_up_and_do_not_shrink() {
        let fields = [Field::Table, Field::StoreFiles, Field::Region];
        let record = |table: &str, files, region: &str| {
            Record::of([
                (Field::Table, Value::Text(table.into())),
                (Field::StoreFiles, Value::Count(files)),
                (Field::Region, Value::Text(region.into())),
            ])
        };
        let records = [record("usertable", 5, "abc"), record("t", 12_345, "")];
        let mut widths = Widths::default();
        widths.fit(&fields, &records);
        widths.fit(&fields, &records[1..]);
        let lines =
            [widths.head(&fields), widths.record(&fields, &records[0]), widths.record(&fields, &records[1])];
        assert_eq!(lines, ["TABLE       #SF REGION", "usertable     5 abc", "t         12345"]);
    }
}
