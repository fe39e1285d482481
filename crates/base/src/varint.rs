//! The two variable-length integers of HBase's formats.
//!
//! * **varint**: seven bits per byte, lowest first; the top bit marks that more bytes follow. Used
//!   by protobuf, and by HBase's encoders and tags as `compressedInt` (there limited to 32 bits:
//!   [`get_varint32`]).
//! * **vlong**: Hadoop's `WritableUtils`: one byte for -112 to 127, else a byte that encodes sign
//!   and length, then the magnitude, highest byte first.
//!
//! A read function removes its number from the front of a slice. It returns `None` and leaves the
//! slice unchanged if the bytes are truncated or invalid.

/// Most bytes of a 64-bit varint.
pub const VARINT_LEN_MAX: usize = 10;
/// Most bytes of a vlong.
pub const VLONG_LEN_MAX: usize = 9;

/// Appends `value` as a varint.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Length of `value` as a varint, in bytes.
pub fn varint_len(value: u64) -> usize {
    let bits = (u64::BITS - value.leading_zeros()).max(1) as usize;
    bits.div_ceil(7)
}

/// Removes a varint of up to 64 bits from the front of `input`.
pub fn get_varint(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (at, &byte) in input.iter().take(VARINT_LEN_MAX).enumerate() {
        // The tenth byte holds only one bit.
        if at == VARINT_LEN_MAX - 1 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            *input = &input[at + 1..];
            return Some(value);
        }
    }
    None
}

/// Removes a varint of up to 32 bits from the front of `input`. HBase writes a negative `int` as
/// its 32 bits.
pub fn get_varint32(input: &mut &[u8]) -> Option<u32> {
    let mut rest = *input;
    let value = u32::try_from(get_varint(&mut rest)?).ok()?;
    *input = rest;
    Some(value)
}

// First byte of a longer vlong: -113 to -120 for a positive number of 1 to 8 bytes, -121 to -128
// for a negative one.
const VLONG_ONE_BYTE_MIN: i64 = -112;
const VLONG_POSITIVE: i8 = -112;
const VLONG_NEGATIVE: i8 = -120;

/// Appends `value` as a Hadoop vlong.
pub fn put_vlong(out: &mut Vec<u8>, value: i64) {
    if (VLONG_ONE_BYTE_MIN..=127).contains(&value) {
        out.push(value as u8);
        return;
    }
    // A negative number is stored as its complement, so that small ones are short.
    let (base, magnitude) = if value < 0 { (VLONG_NEGATIVE, !value) } else { (VLONG_POSITIVE, value) };
    let len = vlong_len(value) - 1;
    out.push((base - len as i8) as u8);
    out.extend_from_slice(&magnitude.to_be_bytes()[8 - len..]);
}

/// Length of `value` as a vlong, in bytes.
pub fn vlong_len(value: i64) -> usize {
    if (VLONG_ONE_BYTE_MIN..=127).contains(&value) {
        return 1;
    }
    let magnitude = if value < 0 { !value } else { value };
    let bits = (i64::BITS - magnitude.leading_zeros()).max(1) as usize;
    1 + bits.div_ceil(8)
}

/// Length of a whole vlong in bytes, computed from its first byte.
pub fn vlong_len_by_first(first: u8) -> usize {
    match first as i8 {
        first if i64::from(first) >= VLONG_ONE_BYTE_MIN => 1,
        first if first >= VLONG_NEGATIVE => 1 + (VLONG_POSITIVE - first) as usize,
        first => 1 + (i16::from(VLONG_NEGATIVE) - i16::from(first)) as usize,
    }
}

/// Removes a vlong from the front of `input`.
pub fn get_vlong(input: &mut &[u8]) -> Option<i64> {
    let first = *input.first()?;
    let len = vlong_len_by_first(first);
    if len == 1 {
        *input = &input[1..];
        return Some(i64::from(first as i8));
    }
    let digits = input.get(1..len)?;
    let magnitude = digits.iter().fold(0u64, |value, &byte| value << 8 | u64::from(byte)) as i64;
    *input = &input[len..];
    Some(if (first as i8) < VLONG_NEGATIVE { !magnitude } else { magnitude })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    }

    fn check_vlong(value: i64, bytes: &[u8]) {
        let mut out = Vec::new();
        put_vlong(&mut out, value);
        assert_eq!(out, bytes, "vlong {value}");
        assert_eq!(vlong_len(value), bytes.len(), "length of vlong {value}");
        assert_eq!(vlong_len_by_first(bytes[0]), bytes.len(), "length of vlong {value} by its first byte");
        let longer = [bytes, b"rest"].concat();
        let mut input = &longer[..];
        assert_eq!(get_vlong(&mut input), Some(value));
        assert_eq!(input, b"rest");
        for cut in 0..bytes.len() {
            let mut input = &bytes[..cut];
            assert_eq!(get_vlong(&mut input), None, "vlong {value} cut to {cut}");
            assert_eq!(input.len(), cut, "a failed read consumes nothing");
        }
    }

    fn check_varint(value: u64, bytes: &[u8]) {
        let mut out = Vec::new();
        put_varint(&mut out, value);
        assert_eq!(out, bytes, "varint {value}");
        assert_eq!(varint_len(value), bytes.len(), "length of varint {value}");
        let longer = [bytes, b"rest"].concat();
        let mut input = &longer[..];
        assert_eq!(get_varint(&mut input), Some(value));
        assert_eq!(input, b"rest");
        for cut in 0..bytes.len() {
            let mut input = &bytes[..cut];
            assert_eq!(get_varint(&mut input), None, "varint {value} cut to {cut}");
            assert_eq!(input.len(), cut, "a failed read consumes nothing");
        }
    }

    #[test]
    fn numbers_written_by_hbase() {
        let mut seen = 0;
        for line in include_str!("../tests/vectors/varints.txt").lines().filter(|line| !line.starts_with('#'))
        {
            let (name, rest) = line.split_once(' ').unwrap();
            let (value, bytes) = rest.split_once(" = ").unwrap();
            let (value, bytes): (i64, _) = (value.parse().unwrap(), hex(bytes));
            match name {
                "VLONG" => check_vlong(value, &bytes),
                "COMPRESSEDINT" => check_varint(u64::from(value as i32 as u32), &bytes),
                other => panic!("unknown vector {other}"),
            }
            seen += 1;
        }
        assert_eq!(seen, 24);
    }

    #[test]
    fn every_length_of_vlong() {
        for shift in 0..63 {
            for value in [(1i64 << shift) - 1, 1 << shift, -(1i64 << shift), -(1i64 << shift) - 1] {
                let mut out = Vec::new();
                put_vlong(&mut out, value);
                check_vlong(value, &out.clone());
            }
        }
    }

    #[test]
    fn every_length_of_varint() {
        for shift in 0..64 {
            for value in [(1u64 << shift) - 1, 1 << shift] {
                let mut out = Vec::new();
                put_varint(&mut out, value);
                check_varint(value, &out.clone());
            }
        }
        check_varint(u64::MAX, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    }

    #[test]
    fn varints_too_long_are_refused() {
        assert_eq!(get_varint(&mut &[0xff; 11][..]), None);
        assert_eq!(get_varint(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02][..]), None);
        let mut input = &[0x80, 0x80, 0x80, 0x80, 0x10][..];
        assert_eq!(get_varint32(&mut input), None, "2^32 does not fit 32 bits");
        assert_eq!(input.len(), 5);
        assert_eq!(get_varint32(&mut &[0xff, 0xff, 0xff, 0xff, 0x0f][..]), Some(u32::MAX));
    }

    #[test]
    fn a_vlong_longer_than_needed_is_read_as_hadoop_does() {
        assert_eq!(get_vlong(&mut &[0x8f, 0x05][..]), Some(5));
        assert_eq!(get_vlong(&mut &[0x87, 0x05][..]), Some(!5));
    }
}
