//! The location of a column's values, as options spell it: `'f:price bytes_long'`.
//!
//! ```text
//! row                        the row key
//! row[0..8]                  its bytes 0 to 7; row[8..]: from byte 8 to its end
//! row part 2 by |            the second part between separators, counted from 1 (like split_part)
//! row[4..] part 1 by \x00    the same for the bytes after the fourth
//! f:price                    the newest cell of a column; f: for the column without a qualifier
//! ```
//!
//! An encoding may follow, and for times also the unit in which they are counted. Spaces and
//! non-printable bytes are written `\xNN`.

use std::fmt;

use bytes::Bytes;
use columnar::{ColumnLocation, Encoding};
use datafusion::arrow::datatypes::TimeUnit;

const UNITS: [(&str, TimeUnit); 4] = [
    ("seconds", TimeUnit::Second),
    ("millis", TimeUnit::Millisecond),
    ("micros", TimeUnit::Microsecond),
    ("nanos", TimeUnit::Nanosecond),
];

/// The location and encoding of values; unspecified parts are `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The location.
    pub location: ColumnLocation,
    /// The encoding.
    pub encoding: Option<Encoding>,
    /// The unit of times.
    pub unit: Option<TimeUnit>,
}

impl Mapping {
    /// Parses an option.
    ///
    /// # Errors
    /// A message that states what is wrong with it.
    pub fn parse(text: &str) -> Result<Mapping, String> {
        let mut words = text.split_whitespace().peekable();
        let first =
            words.next().ok_or("location of the values is missing: use 'row' or 'family:qualifier'")?;
        let location = match first.strip_prefix("row").filter(|rest| rest.is_empty() || rest.starts_with('['))
        {
            Some(bounds) => {
                let (offset, length) = parse_bounds(bounds)?;
                match words.next_if(|word| word.eq_ignore_ascii_case("part")) {
                    Some(_) => parse_part(offset, length, &mut words)?,
                    None => ColumnLocation::RowBytes { offset, length },
                }
            }
            None => parse_cell(first)?,
        };
        let mut mapping = Mapping { location, encoding: None, unit: None };
        for word in words {
            mapping.take(word)?;
        }
        Ok(mapping)
    }

    /// Parses a word after the location.
    fn take(&mut self, word: &str) -> Result<(), String> {
        let unit = UNITS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
        match (Encoding::from_name(&word.to_ascii_lowercase()), unit) {
            (Some(encoding), _) if self.encoding.is_none() => self.encoding = Some(encoding),
            (_, Some((_, unit))) if self.unit.is_none() => self.unit = Some(*unit),
            _ => {
                return Err(format!(
                    "'{word}' is not an encoding; use raw, bytes_*, text_*, ordered_* and phoenix_* (docs/sql.md \
                     lists them), and seconds, millis, micros and nanos for times"
                ));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            ColumnLocation::Cell { family, qualifier } => {
                write!(f, "{}:{}", escape(family), escape(qualifier))?
            }
            ColumnLocation::RowBytes { offset, length } => write_bounds(f, *offset, *length)?,
            ColumnLocation::RowPart { offset, separator, part } => {
                write_bounds(f, *offset, None)?;
                write!(f, " part {} by {}", part + 1, escape(separator))?;
            }
        }
        if let Some(encoding) = self.encoding {
            write!(f, " {}", encoding.name())?;
        }
        if let Some(unit) = self.unit {
            let (name, _) = UNITS.iter().find(|(_, known)| *known == unit).expect("all units have names");
            write!(f, " {name}")?;
        }
        Ok(())
    }
}

fn write_bounds(f: &mut fmt::Formatter<'_>, offset: usize, length: Option<usize>) -> fmt::Result {
    match (offset, length) {
        (0, None) => f.write_str("row"),
        (offset, None) => write!(f, "row[{offset}..]"),
        (offset, Some(length)) => write!(f, "row[{offset}..{}]", offset + length),
    }
}

/// Parses `[4..8]`, `[4..]` or nothing: offset and length.
fn parse_bounds(text: &str) -> Result<(usize, Option<usize>), String> {
    if text.is_empty() {
        return Ok((0, None));
    }
    let wrong = || format!("'row{text}': bytes of the row key are written row[0..8] or row[8..]");
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).ok_or_else(wrong)?;
    let (from, to) = inner.split_once("..").ok_or_else(wrong)?;
    // The protocol uses 32 bits for them; row keys have at most 32,767 bytes.
    let number = |text: &str| text.parse::<u16>().map(usize::from).map_err(|_| wrong());
    let from = if from.is_empty() { 0 } else { number(from)? };
    match to {
        "" => Ok((from, None)),
        to => match number(to)?.checked_sub(from) {
            None | Some(0) => Err(wrong()),
            length => Ok((from, length)),
        },
    }
}

/// Parses `2 by |`, which follows `row part`.
fn parse_part<'a>(
    offset: usize,
    length: Option<usize>,
    words: &mut impl Iterator<Item = &'a str>,
) -> Result<ColumnLocation, String> {
    let wrong = || "parts of the row key are written: row part 1 by |".to_string();
    if length.is_some() {
        return Err("parts divide all the rest of the row key: write row[4..] part 1 by |".into());
    }
    let part: usize = words.next().and_then(|word| word.parse().ok()).ok_or_else(wrong)?;
    let part = part.checked_sub(1).ok_or("parts of the row key are counted from 1")?;
    words.next().filter(|word| word.eq_ignore_ascii_case("by")).ok_or_else(wrong)?;
    let separator = unescape(words.next().ok_or_else(wrong)?)?;
    Ok(ColumnLocation::RowPart { offset, separator, part })
}

fn parse_cell(word: &str) -> Result<ColumnLocation, String> {
    let (family, qualifier) = word
        .split_once(':')
        .filter(|(family, _)| !family.is_empty())
        .ok_or_else(|| format!("'{word}': use family:qualifier, or row for the row key"))?;
    Ok(ColumnLocation::Cell { family: unescape(family)?, qualifier: unescape(qualifier)? })
}

/// Decodes a word in which some bytes are written `\xNN`.
fn unescape(word: &str) -> Result<Bytes, String> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((plain, escaped)) = rest.split_once("\\x") {
        bytes.extend_from_slice(plain.as_bytes());
        let byte = escaped.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or_else(|| format!("'{word}': expected two hexadecimal digits after \\x"))?);
        rest = &escaped[2..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes.into())
}

/// The inverse of [`unescape`].
fn escape(bytes: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    bytes
        .iter()
        .map(|byte| if plain(*byte) { char::from(*byte).to_string() } else { format!("\\x{byte:02x}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_and_written(text: &str) -> Mapping {
        let mapping = Mapping::parse(text).unwrap();
        assert_eq!(mapping.to_string(), text);
        mapping
    }

    #[test]
    fn cells() {
        let mapping = read_and_written("f:price bytes_long");
        let location = ColumnLocation::Cell { family: "f".into(), qualifier: "price".into() };
        assert_eq!(mapping, Mapping { location, encoding: Some(Encoding::BytesLong), unit: None });
        let location = ColumnLocation::Cell { family: "f".into(), qualifier: Bytes::new() };
        assert_eq!(read_and_written("f:").location, location);
        let location = ColumnLocation::Cell { family: "f".into(), qualifier: (&b"a \x00\\b:c"[..]).into() };
        assert_eq!(read_and_written("f:a\\x20\\x00\\x5cb:c").location, location);
        assert_eq!(read_and_written("f:at text_long seconds").unit, Some(TimeUnit::Second));
    }

    #[test]
    fn parts_of_row_keys() {
        assert_eq!(read_and_written("row").location, ColumnLocation::RowBytes { offset: 0, length: None });
        assert_eq!(
            read_and_written("row[2..6] raw").location,
            ColumnLocation::RowBytes { offset: 2, length: Some(4) }
        );
        assert_eq!(
            Mapping::parse("row[..6]").unwrap().location,
            ColumnLocation::RowBytes { offset: 0, length: Some(6) }
        );
        assert_eq!(
            read_and_written("row[2..]").location,
            ColumnLocation::RowBytes { offset: 2, length: None }
        );
        let location = ColumnLocation::RowPart { offset: 0, separator: "|".into(), part: 1 };
        assert_eq!(read_and_written("row part 2 by | text_long").location, location);
        let location = ColumnLocation::RowPart { offset: 4, separator: (&b"\x00"[..]).into(), part: 0 };
        assert_eq!(read_and_written("row[4..] part 1 by \\x00").location, location);
        // A family's name may begin with `row`.
        assert!(matches!(read_and_written("rows:a").location, ColumnLocation::Cell { .. }));
    }

    #[test]
    fn invalid_mappings_are_reported() {
        for (text, expected) in [
            ("", "missing"),
            ("price", "family:qualifier"),
            (":q", "family:qualifier"),
            ("row[4..2]", "row[0..8]"),
            ("row[4]", "row[0..8]"),
            ("row part 0 by |", "from 1"),
            ("row part 1", "row part 1 by |"),
            ("row[0..4] part 1 by |", "all the rest"),
            ("f:a long", "not an encoding"),
            ("f:a raw raw", "not an encoding"),
            ("f:a\\xzz", "hexadecimal"),
        ] {
            let error = Mapping::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
