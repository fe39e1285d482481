//! Finds the end of a value or message without decoding it.
//!
//! A message without a frame ends where its outermost struct ends. [`Bounds`] reads what has
//! arrived and continues when there is more, so each byte is read once. Its memory is bounded by
//! the nesting that it accepts.

use crate::protocol::{Fault, Kind, Protocol};

/// Maximum nesting of a message. HBase's structs are nested at most five deep.
const DEPTH_MAX: usize = 64;
/// Maximum bytes of a varint of 64 bits.
const VARINT_LEN_MAX: usize = 10;

/// A search for the end of a message or value.
#[derive(Debug)]
pub struct Bounds {
    protocol: Protocol,
    /// Number of bytes read.
    at: usize,
    /// Bytes of a string or number to skip.
    pass: usize,
    /// The next value, whose type is known.
    value: Option<(Kind, Position)>,
    /// The structs and containers around the current position.
    levels: Vec<Level>,
    /// Parts of the header that are not read yet.
    header: &'static [Header],
    bytes_max: usize,
}

/// Where a value is. The form of a truth value depends on it.
#[derive(Clone, Copy, Debug)]
enum Position {
    Field,
    Element,
}

#[derive(Clone, Copy, Debug)]
enum Level {
    Struct,
    Elements { kind: Kind, left: u64 },
    Pairs { key: Kind, value: Kind, left: u64, is_key: bool },
}

/// Parts of the header of a message.
#[derive(Clone, Copy, Debug)]
enum Header {
    Bytes(usize),
    Varint,
    Name,
}

impl Bounds {
    /// Searches for the end of a message, which has at most `bytes_max` bytes.
    pub fn of_message(protocol: Protocol, bytes_max: usize) -> Bounds {
        let header: &[Header] = match protocol {
            Protocol::Binary => &[Header::Bytes(4), Header::Name, Header::Bytes(4)],
            Protocol::OldBinary => &[Header::Name, Header::Bytes(5)],
            Protocol::Compact => &[Header::Bytes(2), Header::Varint, Header::Name],
        };
        Bounds { header, ..Bounds::of(Kind::Struct, Position::Element, protocol, bytes_max) }
    }

    /// The length of the field's value at the start of `bytes`.
    ///
    /// # Errors
    /// [`Fault`].
    pub(crate) fn of_field(bytes: &[u8], kind: Kind, protocol: Protocol) -> Result<usize, Fault> {
        Bounds::of(kind, Position::Field, protocol, usize::MAX).advance(bytes)?.ok_or(Fault::Truncated)
    }

    fn of(kind: Kind, position: Position, protocol: Protocol, bytes_max: usize) -> Bounds {
        let value = Some((kind, position));
        Bounds { protocol, at: 0, pass: 0, value, levels: Vec::new(), header: &[], bytes_max }
    }

    /// Continues with `bytes`, which begin with those of earlier calls. Returns the end of the
    /// message; `None` if more bytes are needed.
    ///
    /// # Errors
    /// [`Fault`], also as soon as the message must be longer than allowed.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<Option<usize>, Fault> {
        loop {
            let passed = self.pass.min(bytes.len() - self.at);
            self.at += passed;
            self.pass -= passed;
            if self.at.saturating_add(self.pass) > self.bytes_max {
                return Err(Fault::TooLong);
            }
            if self.pass > 0 {
                return Ok(None);
            }
            match self.step(&bytes[self.at..]) {
                Ok(true) => return Ok(Some(self.at)),
                Ok(false) => {}
                Err(Fault::Truncated) => return Ok(None),
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Reads the next part completely, or nothing. Returns whether the end is reached.
    fn step(&mut self, rest: &[u8]) -> Result<bool, Fault> {
        if let [part, parts @ ..] = self.header {
            match part {
                Header::Bytes(count) => self.pass = *count,
                Header::Varint => self.at += varint(rest)?.1,
                Header::Name => self.enter_binary(rest)?,
            }
            self.header = parts;
            return Ok(false);
        }
        if let Some((kind, position)) = self.value {
            self.enter(kind, position, rest)?;
            self.value = None;
            return Ok(false);
        }
        let Some(level) = self.levels.last_mut() else { return Ok(true) };
        let next = match level {
            Level::Struct => return self.enter_field(rest).map(|()| false),
            Level::Elements { left: 0, .. } | Level::Pairs { left: 0, .. } => None,
            Level::Elements { kind, left } => {
                *left -= 1;
                Some(*kind)
            }
            Level::Pairs { key, value, left, is_key } => {
                let kind = if *is_key { *key } else { *value };
                *left -= u64::from(!*is_key);
                *is_key = !*is_key;
                Some(kind)
            }
        };
        match next {
            None => drop(self.levels.pop()),
            Some(kind) => self.value = Some((kind, Position::Element)),
        }
        Ok(false)
    }

    fn enter_field(&mut self, rest: &[u8]) -> Result<(), Fault> {
        let first = *rest.first().ok_or(Fault::Truncated)?;
        let (code, len) = match self.protocol {
            _ if first == 0 => {
                self.levels.pop();
                self.at += 1;
                return Ok(());
            }
            Protocol::Compact if first >> 4 == 0 => (first, 1 + varint(&rest[1..])?.1),
            Protocol::Compact => (first & 15, 1),
            _ => (first, 3),
        };
        if rest.len() < len {
            return Err(Fault::Truncated);
        }
        self.value = Some((Kind::of_code(code, self.protocol)?, Position::Field));
        self.at += len;
        Ok(())
    }

    fn enter(&mut self, kind: Kind, position: Position, rest: &[u8]) -> Result<(), Fault> {
        let compact = self.protocol.is_compact();
        match kind {
            // The type of the field is the value.
            Kind::Bool if compact && matches!(position, Position::Field) => {}
            Kind::Bool | Kind::Byte => self.pass = 1,
            Kind::Double => self.pass = 8,
            Kind::I16 | Kind::I32 | Kind::I64 if compact => self.at += varint(rest)?.1,
            Kind::I16 => self.pass = 2,
            Kind::I32 => self.pass = 4,
            Kind::I64 => self.pass = 8,
            Kind::Binary => self.enter_binary(rest)?,
            Kind::Struct => self.push(Level::Struct)?,
            Kind::List | Kind::Set => {
                let (kind, count, len) = elements(rest, self.protocol)?;
                self.at += len;
                if let Some(kind) = kind {
                    self.push(Level::Elements { kind, left: count })?;
                }
            }
            Kind::Map => {
                let (kinds, count, len) = pairs(rest, self.protocol)?;
                self.at += len;
                if let Some((key, value)) = kinds {
                    self.push(Level::Pairs { key, value, left: count, is_key: true })?;
                }
            }
        }
        Ok(())
    }

    fn enter_binary(&mut self, rest: &[u8]) -> Result<(), Fault> {
        let (len, header) = size(rest, self.protocol)?;
        self.at += header;
        self.pass = usize::try_from(len).map_err(|_| Fault::TooLong)?;
        Ok(())
    }

    fn push(&mut self, level: Level) -> Result<(), Fault> {
        if self.levels.len() == DEPTH_MAX {
            return Err(Fault::TooDeep);
        }
        self.levels.push(level);
        Ok(())
    }
}

/// The size of a string or container, and the length of its encoding.
pub(crate) fn size(rest: &[u8], protocol: Protocol) -> Result<(u64, usize), Fault> {
    let (size, len) = match protocol {
        Protocol::Compact => varint(rest)?,
        _ => {
            let bytes = *rest.first_chunk::<4>().ok_or(Fault::Truncated)?;
            (u64::from(u32::from_be_bytes(bytes)), 4)
        }
    };
    if size > i32::MAX.unsigned_abs().into() {
        return Err(Fault::Invalid("negative size"));
    }
    Ok((size, len))
}

/// The type of the elements of a list or set (`None` if it is empty), their number, and the length
/// of the header.
pub(crate) fn elements(rest: &[u8], protocol: Protocol) -> Result<(Option<Kind>, u64, usize), Fault> {
    let first = *rest.first().ok_or(Fault::Truncated)?;
    let (code, (count, len)) = match protocol {
        Protocol::Compact if first >> 4 == 15 => (first & 15, size(&rest[1..], protocol)?),
        Protocol::Compact => (first & 15, (u64::from(first >> 4), 0)),
        _ => (first, size(&rest[1..], protocol)?),
    };
    let kind = if count == 0 { None } else { Some(Kind::of_code(code, protocol)?) };
    Ok((kind, count, 1 + len))
}

/// The kinds of the keys and values of a map, which an empty map may lack, the number of its pairs,
/// and the length of this header.
pub(crate) type MapHeader = (Option<(Kind, Kind)>, u64, usize);

/// As [`elements`], for a map.
pub(crate) fn pairs(rest: &[u8], protocol: Protocol) -> Result<MapHeader, Fault> {
    let (codes, count, len) = match protocol {
        Protocol::Compact => {
            let (count, len) = size(rest, protocol)?;
            if count == 0 {
                return Ok((None, 0, len));
            }
            let kinds = *rest.get(len).ok_or(Fault::Truncated)?;
            ((kinds >> 4, kinds & 15), count, len + 1)
        }
        _ => {
            let [key, value] = *rest.first_chunk::<2>().ok_or(Fault::Truncated)?;
            let (count, len) = size(&rest[2..], protocol)?;
            ((key, value), count, 2 + len)
        }
    };
    if count == 0 {
        return Ok((None, 0, len));
    }
    let kinds = (Kind::of_code(codes.0, protocol)?, Kind::of_code(codes.1, protocol)?);
    Ok((Some(kinds), count, len))
}

/// An unsigned varint, and its length.
pub(crate) fn varint(bytes: &[u8]) -> Result<(u64, usize), Fault> {
    let mut value = 0;
    for (at, byte) in bytes.iter().take(VARINT_LEN_MAX).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok((value, at + 1));
        }
    }
    if bytes.len() < VARINT_LEN_MAX { Err(Fault::Truncated) } else { Err(Fault::Invalid("varint too long")) }
}
