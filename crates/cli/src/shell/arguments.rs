//! Typed access to a command's arguments. A command takes them one by one; arguments that it did
//! not take are an error, so that none is silently ignored.

use std::collections::VecDeque;

use bytes::Bytes;
use cell::query::TimeRange;
use cell::schema::TableName;

use super::error::{Result, ShellError, usage};
use super::text::quoted;
use super::value::{Hash, Value};

/// The arguments of a command that were not taken yet.
pub(crate) struct Arguments {
    command: &'static str,
    values: VecDeque<Value>,
}

impl Arguments {
    pub(crate) fn new(command: &'static str, values: Vec<Value>) -> Arguments {
        Arguments { command, values: values.into() }
    }

    /// Takes the next value, if there is one. `nil` counts as none.
    pub(crate) fn next(&mut self) -> Option<Value> {
        self.values.pop_front().filter(|value| *value != Value::Nil)
    }

    /// The next value, without taking it.
    pub(crate) fn peek(&self) -> Option<&Value> {
        self.values.front()
    }

    /// Takes the next value unless it is a hash.
    pub(crate) fn next_plain(&mut self) -> Option<Value> {
        match self.values.front() {
            Some(Value::Hash(_)) => None,
            _ => self.next(),
        }
    }

    /// Takes the next value, which must exist. `what` names it in the error.
    pub(crate) fn required(&mut self, what: &str) -> Result<Value> {
        let command = self.command;
        self.next()
            .ok_or_else(|| ShellError::Usage(format!("{command} requires {what}; see: help '{command}'")))
    }

    /// Takes the next value as bytes.
    pub(crate) fn bytes(&mut self, what: &str) -> Result<Vec<u8>> {
        let value = self.required(what)?;
        let found = value.kind();
        value.bytes().ok_or_else(|| ShellError::Usage(format!("{what} must be text, not {found}")))
    }

    /// Takes the next value as the name of a table.
    pub(crate) fn table(&mut self) -> Result<TableName> {
        let name = self.bytes("the name of a table")?;
        table_name(&name)
    }

    /// Takes the next value as options; empty if there are no more values.
    pub(crate) fn options(&mut self) -> Result<Options> {
        let command = self.command;
        match self.next() {
            None => Ok(Options { command, entries: Vec::new() }),
            Some(Value::Hash(entries)) => Options::new(command, entries),
            Some(other) => usage(format!("{command} wants options here, as {{NAME => value}}, not {other}")),
        }
    }

    /// Checks that no values are left.
    pub(crate) fn finish(mut self) -> Result<()> {
        match self.values.pop_front() {
            None => Ok(()),
            Some(value) => {
                let command = self.command;
                usage(format!("{command}: unexpected argument {value}; see: help '{command}'"))
            }
        }
    }
}

/// Parses and checks the name of a table.
pub(crate) fn table_name(name: &[u8]) -> Result<TableName> {
    let text = std::str::from_utf8(name)
        .map_err(|_| ShellError::Usage(format!("invalid table name {}: not UTF-8", quoted(name))))?;
    TableName::parse(text).map_err(|error| ShellError::Usage(error.to_string()))
}

/// Options of a command that were not taken yet.
pub(crate) struct Options {
    command: &'static str,
    entries: Vec<(String, Value)>,
}

impl Options {
    pub(crate) fn new(command: &'static str, hash: Hash) -> Result<Options> {
        let named = |(name, value): (Value, Value)| match name.string() {
            Some(name) => Ok((name, value)),
            None => usage(format!("invalid option name {name}")),
        };
        Ok(Options { command, entries: hash.into_iter().map(named).collect::<Result<_>>()? })
    }

    /// Takes an option's value. `nil` counts as none. If the option occurs twice, the last one
    /// counts.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        let mut found = None;
        self.entries.retain(|(option, value)| {
            let is_it = option == name;
            if is_it {
                found = Some(value.clone());
            }
            !is_it
        });
        found.filter(|value| *value != Value::Nil)
    }

    pub(crate) fn bytes(&mut self, name: &str) -> Result<Option<Vec<u8>>> {
        self.typed(name, "text", |value| value.bytes())
    }

    pub(crate) fn boolean(&mut self, name: &str) -> Result<Option<bool>> {
        self.typed(name, "true or false", |value| value.boolean())
    }

    /// Takes a number of at least `min` that fits `T`.
    pub(crate) fn number<T: TryFrom<i64>>(&mut self, name: &str, min: i64) -> Result<Option<T>> {
        let wanted = format!("a number of {min} or more");
        let convert = |value: &Value| T::try_from(value.integer().filter(|number| *number >= min)?).ok();
        self.typed(name, &wanted, convert)
    }

    fn typed<T>(
        &mut self,
        name: &str,
        wanted: &str,
        convert: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match convert(&value) {
            Some(converted) => Ok(Some(converted)),
            None => usage(format!("{name} must be {wanted}, not {value}")),
        }
    }

    /// Takes `TIMESTAMP => t` or `TIMERANGE => [from, to]`; the end is exclusive.
    pub(crate) fn time_range(&mut self) -> Result<TimeRange> {
        let range = self.take("TIMERANGE");
        let timestamp: Option<i64> = self.number("TIMESTAMP", 0)?;
        let Some(range) = range else {
            return Ok(
                timestamp.map_or(TimeRange::ALL, |at| TimeRange { from: at, to: at.saturating_add(1) })
            );
        };
        let bounds: Option<Vec<i64>> = match &range {
            Value::Array(bounds) => bounds.iter().map(Value::integer).collect(),
            _ => None,
        };
        match bounds.as_deref() {
            _ if timestamp.is_some() => usage("TIMESTAMP and TIMERANGE exclude each other"),
            Some([from, to]) if 0 <= *from && from <= to => Ok(TimeRange { from: *from, to: *to }),
            _ => usage(format!("TIMERANGE must be [from, to] with 0 <= from <= to, not {range}")),
        }
    }

    /// Rejects options of HBase's shell that are not supported yet.
    pub(crate) fn refuse(&mut self, names: &[&str]) -> Result<()> {
        match names.iter().find(|name| self.take(name).is_some()) {
            Some(name) => Err(ShellError::Unsupported(format!("{name} of {}", self.command))),
            None => Ok(()),
        }
    }

    /// Whether no options are left.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The options that were not taken.
    pub(crate) fn into_rest(self) -> Vec<(String, Value)> {
        self.entries
    }

    /// Checks that no options are left.
    pub(crate) fn finish(self) -> Result<()> {
        match self.entries.first() {
            None => Ok(()),
            Some((name, _)) => {
                let command = self.command;
                usage(format!("{command} has no option {name}; see: help '{command}'"))
            }
        }
    }
}

/// A column written as `family` or `family:qualifier`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) family: Bytes,
    /// `None` without a colon. The text after the first colon may be empty.
    pub(crate) qualifier: Option<Bytes>,
}

impl Column {
    pub(crate) fn parse(text: &[u8]) -> Result<Column> {
        let colon = text.iter().position(|byte| *byte == b':');
        let (family, qualifier) = match colon {
            Some(at) => (&text[..at], Some(Bytes::copy_from_slice(&text[at + 1..]))),
            None => (text, None),
        };
        if family.is_empty() || family.len() > cell::cell::FAMILY_LEN_MAX {
            return usage(format!("{} is no column; write 'family:qualifier'", quoted(text)));
        }
        Ok(Column { family: Bytes::copy_from_slice(family), qualifier })
    }
}

/// Checks a row key.
pub(crate) fn row_key(row: Vec<u8>) -> Result<Bytes> {
    match row.len() {
        0 => usage("Row length is 0"),
        length if length > cell::cell::ROW_LEN_MAX => {
            usage(format!("a row key has at most {} bytes, not {length}", cell::cell::ROW_LEN_MAX))
        }
        _ => Ok(row.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::error::Position;
    use crate::shell::parser::parse;

    fn arguments(source: &str) -> Arguments {
        let statement = parse(&format!("get {source}"), Position::START).unwrap().remove(0);
        Arguments::new("get", statement.values)
    }

    fn options(source: &str) -> Options {
        arguments(&format!("{{{source}}}")).options().unwrap()
    }

    fn refused<T>(result: Result<T>) -> String {
        match result {
            Err(error) => error.to_string(),
            Ok(_) => panic!("accepted"),
        }
    }

    #[test]
    fn values_are_consumed_in_order_and_none_may_remain() {
        let mut given = arguments("'t', 1, nil, 'x'");
        assert_eq!(given.table().unwrap().to_string(), "t");
        assert_eq!(given.bytes("the row").unwrap(), b"1");
        assert_eq!(refused(given.required("a column")), "get requires a column; see: help 'get'");
        assert_eq!(refused(given.finish()), "get: unexpected argument 'x'; see: help 'get'");
        assert!(refused(arguments("['t']").table()).contains("must be text, not an array"));
        assert!(refused(arguments("'a b'").table()).contains("Illegal character"));
        assert!(refused(arguments("\"\\xff\"").table()).contains("not UTF-8"));
        assert!(refused(arguments("5").options()).contains("wants options here"));
    }

    #[test]
    fn options_are_checked() {
        let mut given = options("LIMIT => 5, RAW => true, ROW => \"\\x00\", LIMIT => 7");
        assert_eq!(given.number::<u32>("LIMIT", 1).unwrap(), Some(7));
        assert_eq!(given.boolean("RAW").unwrap(), Some(true));
        assert_eq!(given.bytes("ROW").unwrap(), Some(vec![0]));
        assert_eq!(given.bytes("ROW").unwrap(), None);
        given.finish().unwrap();
        assert_eq!(
            refused(options("LIMIT => 0").number::<u32>("LIMIT", 1)),
            "LIMIT must be a number of 1 or more, not 0"
        );
        assert!(refused(options("LIMIT => 5000000000").number::<u32>("LIMIT", 1)).contains("5000000000"));
        assert!(refused(options("RAW => 1").boolean("RAW")).contains("true or false"));
        assert_eq!(refused(options("LIMT => 5").finish()), "get has no option LIMT; see: help 'get'");
        assert_eq!(
            refused(options("FILTER => 'x'").refuse(&["FILTER"])),
            "FILTER of get is not supported yet"
        );
    }

    #[test]
    fn times_are_ranges() {
        let range = |from, to| TimeRange { from, to };
        assert_eq!(options("").time_range().unwrap(), TimeRange::ALL);
        assert_eq!(options("TIMESTAMP => 5").time_range().unwrap(), range(5, 6));
        assert_eq!(options("TIMERANGE => [5, 9]").time_range().unwrap(), range(5, 9));
        for wrong in ["TIMERANGE => [9, 5]", "TIMERANGE => [1]", "TIMERANGE => 5", "TIMERANGE => [-1, 5]"] {
            assert!(refused(options(wrong).time_range()).contains("0 <= from <= to"), "{wrong}");
        }
        assert!(refused(options("TIMESTAMP => -1").time_range()).contains("0 or more"));
        assert!(refused(options("TIMESTAMP => 1, TIMERANGE => [1, 2]").time_range()).contains("exclude"));
    }

    #[test]
    fn columns_are_split_at_the_first_colon() {
        let column = |family: &'static str, qualifier: Option<&'static str>| Column {
            family: family.into(),
            qualifier: qualifier.map(Bytes::from),
        };
        assert_eq!(Column::parse(b"f").unwrap(), column("f", None));
        assert_eq!(Column::parse(b"f:").unwrap(), column("f", Some("")));
        assert_eq!(Column::parse(b"f:q:r").unwrap(), column("f", Some("q:r")));
        assert!(Column::parse(b":q").is_err());
        assert!(Column::parse(b"").is_err());
        assert!(Column::parse(&[b'f'; 128]).is_err());
        assert!(row_key(vec![b'r'; 32_767]).is_ok());
        assert!(row_key(vec![b'r'; 32_768]).is_err());
        assert!(row_key(Vec::new()).is_err());
    }
}
