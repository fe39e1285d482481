//! Where a column's values are, as options say it: `'f:price bytes_long'`.
//!
//! ```text
//! row                        the row key
//! row[0..8]                  bytes of it, from the first up to, not including, the second; row[8..] to its end
//! row part 2 by |            the second of the parts between separators, counted from 1 as split_part does
//! row[4..] part 1 by \x00    the same of the bytes behind the fourth
//! f:price                    the newest cell of a column; f: for the column without a qualifier
//! ```
//!
//! Behind that an encoding may follow, and behind that of times the unit they are counted in. Bytes that are no plain
//! letters, and spaces, are written `\xNN`.

use std::fmt;

use bytes::Bytes;
use columnar::{Encoding, Place};
use datafusion::arrow::datatypes::TimeUnit;

const UNITS: [(&str, TimeUnit); 4] = [
    ("seconds", TimeUnit::Second),
    ("millis", TimeUnit::Millisecond),
    ("micros", TimeUnit::Microsecond),
    ("nanos", TimeUnit::Nanosecond),
];

/// Where values are and how they are written, as far as it was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Where.
    pub place: Place,
    /// How.
    pub encoding: Option<Encoding>,
    /// What times are counted in.
    pub unit: Option<TimeUnit>,
}

impl Mapping {
    /// Reads an option.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn parse(text: &str) -> Result<Mapping, String> {
        let mut words = text.split_whitespace().peekable();
        let first =
            words.next().ok_or("where the values are is missing: write 'row' or 'family:qualifier'")?;
        let place = match first.strip_prefix("row").filter(|rest| rest.is_empty() || rest.starts_with('[')) {
            Some(bounds) => {
                let (offset, length) = parse_bounds(bounds)?;
                match words.next_if(|word| word.eq_ignore_ascii_case("part")) {
                    Some(_) => parse_part(offset, length, &mut words)?,
                    None => Place::RowBytes { offset, length },
                }
            }
            None => parse_cell(first)?,
        };
        let mut mapping = Mapping { place, encoding: None, unit: None };
        for word in words {
            mapping.take(word)?;
        }
        Ok(mapping)
    }

    /// A word behind the place.
    fn take(&mut self, word: &str) -> Result<(), String> {
        let unit = UNITS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
        match (Encoding::from_name(&word.to_ascii_lowercase()), unit) {
            (Some(encoding), _) if self.encoding.is_none() => self.encoding = Some(encoding),
            (_, Some((_, unit))) if self.unit.is_none() => self.unit = Some(*unit),
            _ => {
                return Err(format!(
                    "'{word}' is no encoding; there are raw, bytes_*, text_*, ordered_* and phoenix_* (docs/sql.md \
                     lists them), and seconds, millis, micros and nanos for times"
                ));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Cell { family, qualifier } => write!(f, "{}:{}", escape(family), escape(qualifier))?,
            Place::RowBytes { offset, length } => write_bounds(f, *offset, *length)?,
            Place::RowPart { offset, separator, part } => {
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

/// `[4..8]` or `[4..]` or nothing: offset and length.
fn parse_bounds(text: &str) -> Result<(usize, Option<usize>), String> {
    if text.is_empty() {
        return Ok((0, None));
    }
    let wrong = || format!("'row{text}': bytes of the row key are written row[0..8] or row[8..]");
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).ok_or_else(wrong)?;
    let (from, to) = inner.split_once("..").ok_or_else(wrong)?;
    // The protocol has 32 bits for them; row keys are of 32,767 bytes at most.
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

/// `2 by |`, behind `row part`.
fn parse_part<'a>(
    offset: usize,
    length: Option<usize>,
    words: &mut impl Iterator<Item = &'a str>,
) -> Result<Place, String> {
    let wrong = || "parts of the row key are written: row part 1 by |".to_string();
    if length.is_some() {
        return Err("parts are of all the rest of the row key: write row[4..] part 1 by |".into());
    }
    let part: usize = words.next().and_then(|word| word.parse().ok()).ok_or_else(wrong)?;
    let part = part.checked_sub(1).ok_or("parts of the row key are counted from 1")?;
    words.next().filter(|word| word.eq_ignore_ascii_case("by")).ok_or_else(wrong)?;
    let separator = unescape(words.next().ok_or_else(wrong)?)?;
    Ok(Place::RowPart { offset, separator, part })
}

fn parse_cell(word: &str) -> Result<Place, String> {
    let (family, qualifier) = word
        .split_once(':')
        .filter(|(family, _)| !family.is_empty())
        .ok_or_else(|| format!("'{word}': write family:qualifier, or row for the row key"))?;
    Ok(Place::Cell { family: unescape(family)?, qualifier: unescape(qualifier)? })
}

/// Bytes of a word in which some are written `\xNN`.
fn unescape(word: &str) -> Result<Bytes, String> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((plain, escaped)) = rest.split_once("\\x") {
        bytes.extend_from_slice(plain.as_bytes());
        let byte = escaped.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or_else(|| format!("'{word}': two hexadecimal digits follow \\x"))?);
        rest = &escaped[2..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes.into())
}

/// A word that [`unescape`] reads as these bytes.
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
        let place = Place::Cell { family: "f".into(), qualifier: "price".into() };
        assert_eq!(mapping, Mapping { place, encoding: Some(Encoding::BytesLong), unit: None });
        let place = Place::Cell { family: "f".into(), qualifier: Bytes::new() };
        assert_eq!(read_and_written("f:").place, place);
        let place = Place::Cell { family: "f".into(), qualifier: (&b"a \x00\\b:c"[..]).into() };
        assert_eq!(read_and_written("f:a\\x20\\x00\\x5cb:c").place, place);
        assert_eq!(read_and_written("f:at text_long seconds").unit, Some(TimeUnit::Second));
    }

    #[test]
    fn parts_of_row_keys() {
        assert_eq!(read_and_written("row").place, Place::RowBytes { offset: 0, length: None });
        assert_eq!(read_and_written("row[2..6] raw").place, Place::RowBytes { offset: 2, length: Some(4) });
        assert_eq!(Mapping::parse("row[..6]").unwrap().place, Place::RowBytes { offset: 0, length: Some(6) });
        assert_eq!(read_and_written("row[2..]").place, Place::RowBytes { offset: 2, length: None });
        let place = Place::RowPart { offset: 0, separator: "|".into(), part: 1 };
        assert_eq!(read_and_written("row part 2 by | text_long").place, place);
        let place = Place::RowPart { offset: 4, separator: (&b"\x00"[..]).into(), part: 0 };
        assert_eq!(read_and_written("row[4..] part 1 by \\x00").place, place);
        // A family may be called so.
        assert!(matches!(read_and_written("rows:a").place, Place::Cell { .. }));
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (text, told) in [
            ("", "missing"),
            ("price", "family:qualifier"),
            (":q", "family:qualifier"),
            ("row[4..2]", "row[0..8]"),
            ("row[4]", "row[0..8]"),
            ("row part 0 by |", "from 1"),
            ("row part 1", "row part 1 by |"),
            ("row[0..4] part 1 by |", "all the rest"),
            ("f:a long", "no encoding"),
            ("f:a raw raw", "no encoding"),
            ("f:a\\xzz", "hexadecimal"),
        ] {
            let error = Mapping::parse(text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
