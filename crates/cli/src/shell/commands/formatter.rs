//! Formatting of cells: `timestamp=.., value=..`. Values are printed as `\xHH`-escaped text or
//! through a converter. Converters are functions of HBase's class `Bytes`, by name:
//! `FORMATTER => 'toLong'` for all values, `'f:q:toLong'` for a column.

use std::collections::HashMap;

use bytes::Bytes;
use cell::Cell;
use cell::schema::TableName;
use wire::meta::parse_region;

use crate::shell::arguments::{Column, Options};
use crate::shell::error::{Result, ShellError, usage};
use crate::shell::text::{binary, date_time};

/// The class whose functions are the converters.
const BYTES_CLASS: &str = "org.apache.hadoop.hbase.util.Bytes";

/// A function of HBase's class `Bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Converter {
    StringBinary,
    Text,
    Hex,
    Long,
    Int,
    Short,
    Float,
    Double,
    Boolean,
    Length,
}

impl Converter {
    fn by_name(name: &str) -> Result<Converter> {
        Ok(match name {
            "toStringBinary" => Converter::StringBinary,
            "toString" => Converter::Text,
            "toHex" => Converter::Hex,
            "toLong" => Converter::Long,
            "toInt" => Converter::Int,
            "toShort" => Converter::Short,
            "toFloat" => Converter::Float,
            "toDouble" => Converter::Double,
            "toBoolean" => Converter::Boolean,
            "len" => Converter::Length,
            _ => return Err(ShellError::Unsupported(format!("the converter {name}"))),
        })
    }

    /// Parses `toLong`, or `c(class).toLong` where the class must be HBase's `Bytes`.
    fn parse(text: &str) -> Result<Converter> {
        let Some((class, name)) = text.strip_prefix("c(").and_then(|rest| rest.split_once(").")) else {
            return Converter::by_name(text);
        };
        Converter::check_class(class)?;
        Converter::by_name(name)
    }

    fn check_class(class: &str) -> Result<()> {
        match class {
            BYTES_CLASS => Ok(()),
            _ => Err(ShellError::Unsupported(format!("converters of class {class}"))),
        }
    }

    fn convert(self, bytes: &[u8]) -> Result<String> {
        Ok(match self {
            Converter::StringBinary => binary(bytes),
            Converter::Text => String::from_utf8_lossy(bytes).into_owned(),
            Converter::Hex => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            Converter::Long => i64::from_be_bytes(sized(bytes)?).to_string(),
            Converter::Int => i32::from_be_bytes(sized(bytes)?).to_string(),
            Converter::Short => i16::from_be_bytes(sized(bytes)?).to_string(),
            Converter::Float => format!("{:?}", f64::from(f32::from_be_bytes(sized(bytes)?))),
            Converter::Double => format!("{:?}", f64::from_be_bytes(sized(bytes)?)),
            Converter::Boolean => (sized::<1>(bytes)? != [0]).to_string(),
            Converter::Length => bytes.len().to_string(),
        })
    }
}

fn sized<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    match bytes.try_into() {
        Ok(array) => Ok(array),
        Err(_) => usage(format!("Wrong length: {}, expected {N}", bytes.len())),
    }
}

/// The converters of a read.
#[derive(Default)]
pub(super) struct Converters {
    /// For names, and for values of columns without a converter.
    all: Option<Converter>,
    by_column: HashMap<(Bytes, Bytes), Converter>,
}

impl Converters {
    /// Takes `FORMATTER` and `FORMATTER_CLASS`.
    pub(super) fn take(options: &mut Options) -> Result<Converters> {
        if let Some(class) = options.bytes("FORMATTER_CLASS")? {
            Converter::check_class(&String::from_utf8_lossy(&class))?;
        }
        let name = options.bytes("FORMATTER")?;
        let all = name.map(|name| Converter::by_name(&String::from_utf8_lossy(&name))).transpose()?;
        Ok(Converters { all, by_column: HashMap::new() })
    }

    /// Splits the converter off `family:qualifier:converter`. As in HBase's shell, the text after a
    /// second colon is a converter, so a qualifier that contains a colon cannot be selected.
    pub(super) fn take_from(&mut self, column: Column) -> Result<Column> {
        let Column { family, qualifier: Some(qualifier) } = column else { return Ok(column) };
        let (qualifier, converter) = split_converter(qualifier);
        if let Some(converter) = converter {
            let converter = Converter::parse(&String::from_utf8_lossy(&converter))?;
            self.by_column.insert((family.clone(), qualifier.clone()), converter);
        }
        Ok(Column { family, qualifier: Some(qualifier) })
    }

    /// Formats a name: a row, a family or a qualifier.
    pub(super) fn name(&self, bytes: &[u8]) -> Result<String> {
        self.all.unwrap_or(Converter::StringBinary).convert(bytes)
    }

    /// Formats `family:qualifier`.
    pub(super) fn column(&self, cell: &Cell<'_>) -> Result<String> {
        Ok(format!("{}:{}", self.name(cell.family())?, self.name(cell.qualifier())?))
    }

    fn value(&self, cell: &Cell<'_>) -> Result<String> {
        let own = (!self.by_column.is_empty()).then(|| {
            let column = (Bytes::copy_from_slice(cell.family()), Bytes::copy_from_slice(cell.qualifier()));
            self.by_column.get(&column).copied()
        });
        own.flatten().or(self.all).unwrap_or(Converter::StringBinary).convert(cell.value)
    }
}

/// Splits `qualifier` at its first colon.
pub(super) fn split_converter(qualifier: Bytes) -> (Bytes, Option<Bytes>) {
    match qualifier.iter().position(|byte| *byte == b':') {
        Some(colon) => (qualifier.slice(..colon), Some(qualifier.slice(colon + 1..))),
        None => (qualifier, None),
    }
}

/// Formatting options of a read.
pub(super) struct CellFormatter {
    converters: Converters,
    length_max: Option<usize>,
    is_meta: bool,
}

impl CellFormatter {
    pub(super) fn new(
        table: &TableName,
        converters: Converters,
        options: &mut Options,
    ) -> Result<CellFormatter> {
        Ok(CellFormatter {
            converters,
            length_max: options.number("MAXLENGTH", 0)?,
            is_meta: table.is_meta(),
        })
    }

    pub(super) fn row(&self, row: &[u8]) -> Result<String> {
        self.converters.name(row)
    }

    pub(super) fn column(&self, cell: &Cell<'_>) -> Result<String> {
        self.converters.column(cell)
    }

    /// Formats the time and value of a cell.
    pub(super) fn content(&self, cell: &Cell<'_>) -> Result<String> {
        let timestamp = date_time(cell.timestamp());
        let shown = match cell.kind().is_delete() {
            true => format!("timestamp={timestamp}, type={:?}", cell.kind()),
            false => format!("timestamp={timestamp}, value={}", self.value(cell)?),
        };
        Ok(match self.length_max {
            Some(max) => shown.chars().take(max).collect(),
            None => shown,
        })
    }

    /// Formats a value. In `hbase:meta`, some values are decoded as in HBase's shell.
    fn value(&self, cell: &Cell<'_>) -> Result<String> {
        if !self.is_meta || cell.family() != b"info" {
            return self.converters.value(cell);
        }
        match cell.qualifier() {
            b"regioninfo" | b"splitA" | b"splitB" => Ok(region_text(cell.value)),
            qualifier if qualifier.starts_with(b"merge") => Ok(region_text(cell.value)),
            b"serverstartcode" if !cell.value.is_empty() => Converter::Long.convert(cell.value),
            _ => self.converters.value(cell),
        }
    }
}

/// Formats a region as Java's `RegionInfo` does; empty if the value is no region.
fn region_text(value: &[u8]) -> String {
    let Some(region) = parse_region(value) else { return String::new() };
    let mut states = String::new();
    if region.offline {
        states.push_str(", OFFLINE => true");
    }
    if region.split {
        states.push_str(", SPLIT => true");
    }
    format!(
        "{{ENCODED => {}, NAME => '{}', STARTKEY => '{}', ENDKEY => '{}'{states}}}",
        region.encoded_name(),
        binary(&region.name()),
        binary(&region.start_key),
        binary(&region.end_key),
    )
}

#[cfg(test)]
mod tests {
    use cell::{CellType, KeyValue};

    use super::*;
    use crate::shell::arguments::Arguments;
    use crate::shell::error::Position;
    use crate::shell::parser::parse;

    fn shown(source: &str) -> CellFormatter {
        let statement = parse(&format!("get {{{source}}}"), Position::START).unwrap().remove(0);
        let mut options = Arguments::new("get", statement.values).options().unwrap();
        let converters = Converters::take(&mut options).unwrap();
        let shown = CellFormatter::new(&TableName::parse("t").unwrap(), converters, &mut options).unwrap();
        options.finish().unwrap();
        shown
    }

    #[test]
    fn cells_are_shown_as_hbase_shows_them() {
        let put = KeyValue::new(b"r", b"f", b"q\x00", 1_700_000_000_123, CellType::Put, b"v\xff");
        let put = put.view(0);
        assert_eq!(shown("").column(&put).unwrap(), "f:q\\x00");
        assert_eq!(shown("").content(&put).unwrap(), "timestamp=2023-11-14T22:13:20.123, value=v\\xFF");
        assert_eq!(shown("MAXLENGTH => 12").content(&put).unwrap(), "timestamp=20");
        let delete = KeyValue::new(b"r", b"f", b"", 1, CellType::DeleteFamily, b"");
        assert_eq!(shown("").column(&delete.view(0)).unwrap(), "f:");
        let content = shown("").content(&delete.view(0)).unwrap();
        assert_eq!(content, "timestamp=1970-01-01T00:00:00.001, type=DeleteFamily");
    }

    #[test]
    fn converters_are_functions_of_bytes() {
        let convert = |name: &str, bytes: &[u8]| Converter::parse(name).unwrap().convert(bytes);
        assert_eq!(convert("toLong", &5_i64.to_be_bytes()).unwrap(), "5");
        assert_eq!(convert("toInt", &(-5_i32).to_be_bytes()).unwrap(), "-5");
        assert_eq!(convert("toDouble", &1.0_f64.to_be_bytes()).unwrap(), "1.0");
        assert_eq!(convert("toBoolean", &[1]).unwrap(), "true");
        assert_eq!(convert("toString", "\u{e9}".as_bytes()).unwrap(), "\u{e9}");
        assert_eq!(convert("c(org.apache.hadoop.hbase.util.Bytes).len", b"abc").unwrap(), "3");
        assert_eq!(convert("toLong", b"abc").unwrap_err().to_string(), "Wrong length: 3, expected 8");
        assert!(Converter::parse("c(java.lang.System).exit").is_err());
        assert!(Converter::parse("noSuch").is_err());
    }
}
