//! Sequential parsing of untrusted bytes. Every length is checked before use.

use base::varint;

use crate::error::{Fault, Parsed};

/// A read position in untrusted bytes.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    /// Starts at the beginning of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { bytes, at: 0 }
    }

    /// Starts `at` bytes into `bytes`. An `at` past the end is clamped to the end.
    #[inline]
    pub(crate) fn starting(bytes: &'a [u8], at: usize) -> Input<'a> {
        Input { bytes, at: at.min(bytes.len()) }
    }

    /// Offset of the next byte in the original slice.
    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Number of unread bytes.
    #[inline]
    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next `len` bytes.
    #[inline]
    pub(crate) fn take(&mut self, len: usize, what: &'static str) -> Parsed<&'a [u8]> {
        match self.bytes[self.at..].get(..len) {
            Some(taken) => {
                self.at += len;
                Ok(taken)
            }
            None => Err(Fault::Damaged(what)),
        }
    }

    /// The next `N` bytes.
    #[inline]
    fn array<const N: usize>(&mut self, what: &'static str) -> Parsed<[u8; N]> {
        match self.bytes[self.at..].first_chunk::<N>() {
            Some(taken) => {
                self.at += N;
                Ok(*taken)
            }
            None => Err(Fault::Damaged(what)),
        }
    }

    /// One byte.
    #[inline]
    pub(crate) fn u8(&mut self, what: &'static str) -> Parsed<u8> {
        Ok(self.array::<1>(what)?[0])
    }

    /// Two bytes, big-endian.
    #[inline]
    pub(crate) fn u16(&mut self, what: &'static str) -> Parsed<u16> {
        self.array(what).map(u16::from_be_bytes)
    }

    /// Four bytes, big-endian.
    #[inline]
    pub(crate) fn u32(&mut self, what: &'static str) -> Parsed<u32> {
        self.array(what).map(u32::from_be_bytes)
    }

    /// Eight bytes, big-endian.
    #[inline]
    pub(crate) fn u64(&mut self, what: &'static str) -> Parsed<u64> {
        self.array(what).map(u64::from_be_bytes)
    }

    /// A compressed int: seven bits per byte, low group first, at most 32 bits.
    #[inline]
    pub(crate) fn varint(&mut self, what: &'static str) -> Parsed<u32> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(u32::from(byte))
            }
            _ => self.number(varint::get_varint32, what),
        }
    }

    /// A Hadoop vlong (`WritableUtils`).
    #[inline]
    pub(crate) fn vlong(&mut self, what: &'static str) -> Parsed<i64> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(i64::from(byte))
            }
            _ => self.number(varint::get_vlong, what),
        }
    }

    fn number<T>(&mut self, get: fn(&mut &[u8]) -> Option<T>, what: &'static str) -> Parsed<T> {
        let mut rest = &self.bytes[self.at..];
        let number = get(&mut rest).ok_or(Fault::Damaged(what))?;
        self.at = self.bytes.len() - rest.len();
        Ok(number)
    }

    /// A sequence id, which is never negative.
    #[inline]
    pub(crate) fn seq_id(&mut self) -> Parsed<u64> {
        let value = self.vlong("sequence id truncated")?;
        u64::try_from(value).map_err(|_| Fault::Damaged("negative sequence id"))
    }

    /// A byte array in Hadoop's form: its length as a vint, then its bytes.
    pub(crate) fn byte_array(&mut self, what: &'static str) -> Parsed<&'a [u8]> {
        let len = self.vlong(what)?;
        // Most writers write `null` as length 0, a few as -1.
        if len == -1 {
            return Ok(&[]);
        }
        self.take(usize::try_from(len).map_err(|_| Fault::Damaged(what))?, what)
    }

    /// Checks that no bytes remain.
    pub(crate) fn end(&self, what: &'static str) -> Parsed<()> {
        if self.remaining() == 0 { Ok(()) } else { Err(Fault::Damaged(what)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_or_overlong_numbers_are_refused() {
        assert!(Input::new(&[0x80]).varint("").is_err());
        assert!(Input::new(&[0xff, 0xff, 0xff, 0xff, 0x1f]).varint("").is_err());
        assert!(Input::new(&[0x8d, 1, 0]).vlong("").is_err());
        assert!(Input::new(&[0xff]).seq_id().is_err());
        assert!(Input::new(&[5, 1, 2]).byte_array("").is_err());
        assert!(Input::starting(&[1], 9).u8("").is_err());
    }

    #[test]
    fn numbers_leave_the_position_after_them() {
        let mut input = Input::new(&[0xac, 2, 0x8f, 0x80, 7, 0xff, 9]);
        assert_eq!(input.varint("").unwrap(), 300);
        assert_eq!(input.vlong("").unwrap(), 128);
        assert_eq!(input.vlong("").unwrap(), 7);
        assert_eq!(input.byte_array("").unwrap(), b"");
        assert_eq!(input.take(1, "").unwrap(), [9]);
        assert!(input.end("").is_ok());
    }
}
