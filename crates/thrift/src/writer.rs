//! Writes the values of a message.

use crate::protocol::{COMPACT_FALSE, Kind, Protocol};

/// Writes a message.
pub struct Writer {
    protocol: Protocol,
    out: Vec<u8>,
    /// The id of the previous field of the current struct.
    field: i16,
}

impl Writer {
    /// An empty message, after `reserved` bytes of zeros.
    pub fn new(protocol: Protocol, reserved: usize) -> Writer {
        Writer { protocol, out: vec![0; reserved], field: 0 }
    }

    /// The message.
    pub fn finish(self) -> Vec<u8> {
        self.out
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(crate) fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    fn zigzag(&mut self, value: i64) {
        self.varint(((value << 1) ^ (value >> 63)).cast_unsigned());
    }

    /// An element of a container that is a truth value.
    pub(crate) fn truth(&mut self, value: bool) {
        let no = if self.protocol.is_compact() { COMPACT_FALSE } else { 0 };
        self.out.push(if value { 1 } else { no });
    }

    pub(crate) fn byte(&mut self, value: i8) {
        self.out.push(value.cast_unsigned());
    }

    pub(crate) fn i16(&mut self, value: i16) {
        match self.protocol {
            Protocol::Compact => self.zigzag(value.into()),
            _ => self.raw(&value.to_be_bytes()),
        }
    }

    pub(crate) fn i32(&mut self, value: i32) {
        match self.protocol {
            Protocol::Compact => self.zigzag(value.into()),
            _ => self.raw(&value.to_be_bytes()),
        }
    }

    pub(crate) fn i64(&mut self, value: i64) {
        match self.protocol {
            Protocol::Compact => self.zigzag(value),
            _ => self.raw(&value.to_be_bytes()),
        }
    }

    fn size(&mut self, size: usize) {
        match self.protocol {
            Protocol::Compact => self.varint(size as u64),
            _ => self.raw(&(size as u32).to_be_bytes()),
        }
    }

    /// Bytes in parts, as one value.
    pub(crate) fn binary(&mut self, parts: &[&[u8]]) {
        self.size(parts.iter().map(|part| part.len()).sum());
        for part in parts {
            self.raw(part);
        }
    }

    /// Begins a list or set of `count` elements.
    pub(crate) fn elements(&mut self, kind: Kind, count: usize) {
        let code = kind.code(self.protocol);
        match self.protocol {
            Protocol::Compact if count < 15 => self.out.push((count as u8) << 4 | code),
            Protocol::Compact => {
                self.out.push(0xf0 | code);
                self.size(count);
            }
            _ => {
                self.out.push(code);
                self.size(count);
            }
        }
    }

    /// Begins a map of `count` entries.
    pub(crate) fn pairs(&mut self, (key, value): (Kind, Kind), count: usize) {
        let (key, value) = (key.code(self.protocol), value.code(self.protocol));
        match self.protocol {
            Protocol::Compact => {
                self.size(count);
                if count > 0 {
                    self.out.push(key << 4 | value);
                }
            }
            _ => {
                self.raw(&[key, value]);
                self.size(count);
            }
        }
    }

    /// Begins a struct; returns what [`end_struct`](Self::end_struct) needs.
    pub(crate) fn begin_struct(&mut self) -> i16 {
        std::mem::take(&mut self.field)
    }

    pub(crate) fn end_struct(&mut self, outer: i16) {
        self.out.push(0);
        self.field = outer;
    }

    /// Begins a field; its value follows.
    pub(crate) fn field(&mut self, kind: Kind, id: i16) {
        self.field_of_code(kind.code(self.protocol), id);
    }

    /// A field that is a truth value.
    pub(crate) fn truth_field(&mut self, id: i16, value: bool) {
        match self.protocol {
            Protocol::Compact => self.field_of_code(if value { 1 } else { COMPACT_FALSE }, id),
            _ => {
                self.field(Kind::Bool, id);
                self.truth(value);
            }
        }
    }

    fn field_of_code(&mut self, code: u8, id: i16) {
        let step = i32::from(id) - i32::from(std::mem::replace(&mut self.field, id));
        match self.protocol {
            Protocol::Compact if (1..=15).contains(&step) => self.out.push((step as u8) << 4 | code),
            _ => {
                self.out.push(code);
                self.i16(id);
            }
        }
    }
}
