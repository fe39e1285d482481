//! The templates of `FuzzyRowFilter`, whose masks have three forms.
//!
//! A client writes 0 for fixed bytes and 1 for wildcards. Before it serializes the filter, its JVM
//! may convert that to an internal form: 0xff for fixed bytes, and for wildcards 2 (new clients) or
//! 0 (old clients).

use bytes::Bytes;
use cell::filter::FuzzyKey;
use proto::BytesBytesPair;

use super::invalid_filter;
use crate::convert::Refused;

const FIXED: u8 = 0xff;
const WILDCARD: u8 = 2;
const WILDCARD_AS_WRITTEN: u8 = 1;

/// Decodes a template from its message. `is_mask_v2` comes from the filter's message.
pub(super) fn decode(pair: &BytesBytesPair, is_mask_v2: bool) -> Result<FuzzyKey, Refused> {
    let (key, mask) = (&pair.first, &pair.second);
    if key.len() != mask.len() {
        return Err(invalid_filter(
            "java.lang.IllegalArgumentException: a fuzzy key and its mask differ in length",
        ));
    }
    let is_fixed: fn(u8) -> bool = if mask.iter().any(|byte| matches!(*byte, FIXED | WILDCARD)) {
        |byte| byte == FIXED
    } else if mask.contains(&WILDCARD_AS_WRITTEN) {
        |byte| byte == 0
    } else if is_mask_v2 {
        // As written, without wildcards.
        |_| true
    } else {
        // An old client's internal form, consisting of wildcards only.
        |_| false
    };
    let fixed: Vec<bool> = mask.iter().map(|byte| is_fixed(*byte)).collect();
    let key = key.iter().zip(&fixed).map(|(byte, fixed)| if *fixed { *byte } else { 0 });
    Ok(FuzzyKey { key: key.collect::<Vec<u8>>().into(), fixed })
}

/// Encodes a template in the internal form of new clients.
pub(super) fn encode(key: &FuzzyKey) -> BytesBytesPair {
    let mask = key.fixed.iter().map(|fixed| if *fixed { FIXED } else { WILDCARD });
    BytesBytesPair { first: key.key.clone(), second: Bytes::from(mask.collect::<Vec<u8>>()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(mask: &'static [u8], is_mask_v2: bool) -> Vec<bool> {
        let pair = BytesBytesPair { first: vec![b'k'; mask.len()].into(), second: mask.into() };
        decode(&pair, is_mask_v2).unwrap().fixed
    }

    #[test]
    fn masks_of_all_clients_are_understood() {
        assert_eq!(fixed(&[0, 1, 0], true), [true, false, true], "as written");
        assert_eq!(fixed(&[0xff, 2, 0xff], true), [true, false, true], "2.5.10");
        assert_eq!(fixed(&[0xff, 2, 0xff], false), [true, false, true], "3.0.0-beta-1");
        assert_eq!(fixed(&[0xff, 0, 0xff], false), [true, false, true], "before 2.4.18");
        assert_eq!(fixed(&[0, 0], true), [true, true]);
        assert_eq!(fixed(&[0, 0], false), [false, false]);
    }

    #[test]
    fn bytes_at_wildcards_do_not_matter() {
        let pair = BytesBytesPair { first: "ab".into(), second: vec![0, 1].into() };
        assert_eq!(&decode(&pair, false).unwrap().key[..], b"a\0");
        let uneven = BytesBytesPair { first: "ab".into(), second: vec![0].into() };
        decode(&uneven, false).unwrap_err();
    }
}
