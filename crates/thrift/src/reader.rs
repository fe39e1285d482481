//! Reads the values of a message.

use base::budget::BudgetShare;
use bytes::{Buf, Bytes};

use crate::bounds::{self, Bounds};
use crate::protocol::{Fault, Kind, Protocol};

/// Reads a message from its first byte on. Sizes are checked against the bytes that are left, and
/// decoded elements take memory from a budget.
pub struct Reader<'a> {
    protocol: Protocol,
    rest: Bytes,
    /// The id of the previous field of the current struct.
    field: i16,
    /// The value of a compact field that is a truth value.
    truth: Option<bool>,
    memory: &'a mut BudgetShare,
}

impl<'a> Reader<'a> {
    /// A reader of `bytes`. The memory of decoded elements is taken from `memory`.
    pub fn new(protocol: Protocol, bytes: Bytes, memory: &'a mut BudgetShare) -> Reader<'a> {
        Reader { protocol, rest: bytes, field: 0, truth: None, memory }
    }

    /// The protocol.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The next bytes, as they are.
    pub(crate) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let bytes = *self.rest.first_chunk::<N>().ok_or(Fault::Truncated)?;
        self.rest.advance(N);
        Ok(bytes)
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Fault> {
        let (value, len) = bounds::varint(&self.rest)?;
        self.rest.advance(len);
        Ok(value)
    }

    fn zigzag(&mut self) -> Result<i64, Fault> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    pub(crate) fn truth(&mut self) -> Result<bool, Fault> {
        match self.truth.take() {
            Some(truth) => Ok(truth),
            // Elements of compact containers are 1 and 2; binary values are 1 and 0.
            None => Ok(self.fixed::<1>()? == [1]),
        }
    }

    pub(crate) fn byte(&mut self) -> Result<i8, Fault> {
        Ok(i8::from_be_bytes(self.fixed()?))
    }

    pub(crate) fn i16(&mut self) -> Result<i16, Fault> {
        match self.protocol {
            Protocol::Compact => self.zigzag().map(|value| value as i16),
            _ => Ok(i16::from_be_bytes(self.fixed()?)),
        }
    }

    pub(crate) fn i32(&mut self) -> Result<i32, Fault> {
        match self.protocol {
            Protocol::Compact => self.zigzag().map(|value| value as i32),
            _ => Ok(i32::from_be_bytes(self.fixed()?)),
        }
    }

    pub(crate) fn i64(&mut self) -> Result<i64, Fault> {
        match self.protocol {
            Protocol::Compact => self.zigzag(),
            _ => Ok(i64::from_be_bytes(self.fixed()?)),
        }
    }

    pub(crate) fn binary(&mut self) -> Result<Bytes, Fault> {
        let (size, len) = bounds::size(&self.rest, self.protocol)?;
        self.rest.advance(len);
        if size > self.rest.len() as u64 {
            return Err(Fault::Truncated);
        }
        Ok(self.rest.split_to(size as usize))
    }

    /// The number of elements of a list or set of elements of this type.
    pub(crate) fn elements(&mut self, wanted: Kind) -> Result<usize, Fault> {
        let (kind, count, len) = bounds::elements(&self.rest, self.protocol)?;
        if kind.is_some_and(|kind| kind != wanted) {
            return Err(Fault::Invalid("elements of another type"));
        }
        self.rest.advance(len);
        self.count(count)
    }

    /// The number of entries of a map of these types.
    pub(crate) fn pairs(&mut self, wanted: (Kind, Kind)) -> Result<usize, Fault> {
        let (kinds, count, len) = bounds::pairs(&self.rest, self.protocol)?;
        if kinds.is_some_and(|kinds| kinds != wanted) {
            return Err(Fault::Invalid("entries of other types"));
        }
        self.rest.advance(len);
        self.count(count)
    }

    /// Every element takes at least one byte.
    fn count(&self, count: u64) -> Result<usize, Fault> {
        if count > self.rest.len() as u64 { Err(Fault::Truncated) } else { Ok(count as usize) }
    }

    /// Takes memory for decoded elements.
    pub(crate) fn take_memory(&mut self, bytes: usize) -> Result<(), Fault> {
        if self.memory.take_large(bytes) { Ok(()) } else { Err(Fault::NoMemory) }
    }

    /// Takes memory, even if there is none.
    pub(crate) fn force_memory(&mut self, bytes: usize) {
        self.memory.force(bytes);
    }

    /// Begins a struct; returns what [`end_struct`](Self::end_struct) needs.
    pub(crate) fn begin_struct(&mut self) -> i16 {
        std::mem::take(&mut self.field)
    }

    pub(crate) fn end_struct(&mut self, outer: i16) {
        self.field = outer;
    }

    /// The type and id of the next field; `None` at the end of the struct.
    pub(crate) fn field(&mut self) -> Result<Option<(Kind, i16)>, Fault> {
        let [first] = self.fixed()?;
        if first == 0 {
            return Ok(None);
        }
        let code = match self.protocol {
            Protocol::Compact => first & 15,
            _ => first,
        };
        self.field = match (self.protocol, first >> 4) {
            (Protocol::Compact, 0) => self.i16()?,
            (Protocol::Compact, step) => self.field.wrapping_add(i16::from(step)),
            _ => self.i16()?,
        };
        let kind = Kind::of_code(code, self.protocol)?;
        self.truth = (self.protocol.is_compact() && kind == Kind::Bool).then_some(code == 1);
        Ok(Some((kind, self.field)))
    }

    /// Skips the value of a field.
    pub(crate) fn skip(&mut self, kind: Kind) -> Result<(), Fault> {
        self.truth = None;
        let len = Bounds::of_field(&self.rest, kind, self.protocol)?;
        self.rest.advance(len);
        Ok(())
    }
}
