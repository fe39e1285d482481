//! The specification of rows in a path: `row[,end][/column,…[/time[,time]]]`.

use bytes::Bytes;
use cell::query::column_parts as parse_column;
use cell::query::{CellSelection, FamilyColumns, TimeRange, selected_columns};

use crate::base64::{self, Alphabet};
use crate::escape;

/// How row keys and columns of a path are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyEncoding {
    /// Text.
    Plain,
    /// Base64 in the URL-safe alphabet.
    Url,
    /// Base64 in the standard alphabet.
    Standard,
}

impl KeyEncoding {
    /// The encoding of a name; `None` if it is unknown.
    pub fn of_name(name: Option<&str>) -> Option<KeyEncoding> {
        match name {
            None | Some("") => Some(KeyEncoding::Plain),
            Some("b64" | "base64" | "b64url" | "base64url") => Some(KeyEncoding::Url),
            Some("b64basic" | "base64basic") => Some(KeyEncoding::Standard),
            Some(_) => None,
        }
    }

    fn decode(self, text: String) -> Option<Bytes> {
        let alphabet = match self {
            KeyEncoding::Plain => return Some(text.into()),
            KeyEncoding::Url => Alphabet::Url,
            KeyEncoding::Standard => Alphabet::Standard,
        };
        base64::decode(text.as_bytes(), alphabet).map(Bytes::from)
    }
}

/// Rows, columns and times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowSpec {
    /// The row, or the first row of the range.
    pub row: Bytes,
    /// The end of a range (exclusive; empty for no end); `None` for one row.
    pub end_row: Option<Bytes>,
    /// Columns: `family` or `family:qualifier`.
    pub columns: Vec<Bytes>,
    /// The first timestamp of the range, 0 by default.
    pub start_time: i64,
    /// The end of the range of timestamps (exclusive), `i64::MAX` by default.
    pub end_time: i64,
}

impl RowSpec {
    /// Parses an undecoded specification. `None` if it is not valid.
    pub fn parse(text: &str, encoding: KeyEncoding) -> Option<RowSpec> {
        let text = text.trim_start_matches('/');
        let mut parts = text.splitn(4, '/');
        let (row, end_row) = parse_rows(parts.next()?, encoding)?;
        let mut spec = RowSpec { row, end_row, columns: Vec::new(), start_time: 0, end_time: i64::MAX };
        let mut given = parts.peekable();
        if let Some(columns) = given.next() {
            spec.columns = parse_columns(columns, encoding)?;
        }
        match given.next() {
            // Nothing follows the last slash.
            None => {}
            Some("") if given.peek().is_none() => {}
            Some(times) => spec.parse_times(times)?,
        }
        Some(spec)
    }

    fn parse_times(&mut self, text: &str) -> Option<()> {
        let number = |text: &str| escape::decode(text)?.parse::<i64>().ok();
        match text.split_once(',') {
            None => self.end_time = number(text)?,
            Some((first, second)) => {
                let (first, second) = (number(first)?, number(second)?);
                (self.start_time, self.end_time) = if second == 0 { (0, first) } else { (first, second) };
            }
        }
        Some(())
    }

    /// The timestamp of a delete; `None` if the path has none or a range.
    pub(crate) fn timestamp(&self) -> Option<i64> {
        (self.start_time == 0 && self.end_time != i64::MAX).then_some(self.end_time)
    }

    /// The cells to read. `None` if the range of timestamps is not valid.
    pub(crate) fn selection(&self, max_versions: u32) -> Option<CellSelection> {
        let time_range = time_range(self.start_time, self.end_time)?;
        Some(CellSelection {
            columns: selected(&self.columns),
            time_range,
            max_versions,
            ..CellSelection::default()
        })
    }
}

/// A range of timestamps, if HBase accepts it.
pub(crate) fn time_range(from: i64, to: i64) -> Option<TimeRange> {
    (from >= 0 && to >= from).then_some(TimeRange { from, to })
}

fn parse_rows(text: &str, encoding: KeyEncoding) -> Option<(Bytes, Option<Bytes>)> {
    let (first, end) = match text.split_once(',') {
        Some((first, end)) => (first, Some(end)),
        None => (text, None),
    };
    let first = escape::decode(first)?;
    if let Some(end) = end {
        let end = encoding.decode(escape::decode(end)?)?;
        return Some((encoding.decode(first)?, Some(end)));
    }
    // A star at the end, escaped or not, selects the rows with this prefix.
    match first.strip_suffix('*') {
        Some(prefix) if !prefix.is_empty() => {
            let prefix = encoding.decode(prefix.to_owned())?;
            let end = [&prefix[..], &[0xff]].concat();
            Some((prefix, Some(end.into())))
        }
        _ => Some((encoding.decode(first)?, None)),
    }
}

fn parse_columns(text: &str, encoding: KeyEncoding) -> Option<Vec<Bytes>> {
    let mut columns: Vec<&str> = text.split(',').collect();
    // A comma at the end is ignored.
    if columns.last() == Some(&"") {
        columns.pop();
    }
    columns
        .into_iter()
        .map(|column| match column {
            "" => None,
            column => encoding.decode(escape::decode(column)?),
        })
        .collect()
}

/// Columns as a selection.
pub(crate) fn selected(columns: &[Bytes]) -> Vec<FamilyColumns> {
    selected_columns(columns.iter().map(parse_column))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<RowSpec> {
        RowSpec::parse(text, KeyEncoding::Plain)
    }

    fn check(text: &str, row: &str, end_row: Option<&[u8]>, columns: &[&str], times: (i64, i64)) {
        let expected = RowSpec {
            row: row.to_owned().into(),
            end_row: end_row.map(Bytes::copy_from_slice),
            columns: columns.iter().map(|column| Bytes::copy_from_slice(column.as_bytes())).collect(),
            start_time: times.0,
            end_time: times.1,
        };
        assert_eq!(parse(text), Some(expected), "{text}");
    }

    #[test]
    fn parts_are_split_before_they_are_decoded() {
        let all = (0, i64::MAX);
        check("r", "r", None, &[], all);
        check("r/", "r", None, &[], all);
        check("a%2Cb%2Fc", "a,b/c", None, &[], all);
        check("a+b/f:x+y", "a b", None, &["f:x y"], all);
        check("a,b", "a", Some(b"b"), &[], all);
        check("a,", "a", Some(b""), &[], all);
        check("a*", "a", Some(b"a\xff"), &[], all);
        check("a%2A/f", "a", Some(b"a\xff"), &["f"], all);
        check("*", "*", None, &[], all);
        check("r/f:a,g:%2C,h:", "r", None, &["f:a", "g:,", "h:"], all);
        check("r/f:a/5", "r", None, &["f:a"], (0, 5));
        check("r/f:a/5,7", "r", None, &["f:a"], (5, 7));
        check("r//5,7", "r", None, &[], (5, 7));
        check("r/f:a/1/2/3", "r", None, &["f:a"], (0, 1));
        check("r/f:a/", "r", None, &["f:a"], all);
        for text in ["r/,f:a", "r/f:a/x", "r/f:a/1,x", "%zz", "r/f:a//"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn keys_may_be_base64() {
        let spec = RowSpec::parse("AAH-_w/ZjoA_w==/7", KeyEncoding::Url).unwrap();
        assert_eq!((&spec.row[..], &spec.columns[0][..]), (&b"\0\x01\xfe\xff"[..], &b"f:\0\xff"[..]));
        assert_eq!(spec.timestamp(), Some(7));
        assert_eq!(RowSpec::parse("!!", KeyEncoding::Url), None);
        assert_eq!(KeyEncoding::of_name(Some("hex")), None);
    }

    #[test]
    fn the_last_entry_of_a_family_decides() {
        let names = |columns: &[&'static str]| {
            let columns: Vec<Bytes> =
                columns.iter().map(|column| Bytes::from_static(column.as_bytes())).collect();
            selected(&columns)
                .into_iter()
                .map(|family| family.qualifiers.map(|names| names.len()))
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&["f", "f:a"]), [Some(1)]);
        assert_eq!(names(&["f:a", "f"]), [None]);
        assert_eq!(names(&["g:b", "f:a", "g:b", "f:"]), [Some(2), Some(1)]);
    }
}
