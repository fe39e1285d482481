//! Simple (one-to-one) case mappings, as in `Character.toUpperCase` and `toLowerCase`.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{casemapped, property};
use crate::set::ClassSet;

/// A character with a case variant.
struct Cased {
    code: u32,
    upper: u32,
    lower: u32,
}

static CASED: LazyLock<Vec<Cased>> = LazyLock::new(|| {
    let assigned = property(super::ASSIGNED);
    // Ignore mappings to characters that were added after Unicode 13.
    let known = |code: u32, other: u32| if assigned.contains(other) { other } else { code };
    let codes = casemapped().ranges().iter().flat_map(|(low, high)| *low..=*high).collect::<Vec<_>>();
    let cased = codes.into_iter().filter_map(char::from_u32).map(|letter| {
        let code = u32::from(letter);
        Cased { code, upper: known(code, simple_upper(letter)), lower: known(code, simple_lower(letter)) }
    });
    cased.filter(|cased| cased.upper != cased.code || cased.lower != cased.code).collect()
});

/// Characters that fold to the same one.
static FOLDED: LazyLock<HashMap<u32, Vec<u32>>> = LazyLock::new(|| {
    let mut folded: HashMap<u32, Vec<u32>> = HashMap::new();
    for cased in &*CASED {
        folded.entry(fold(cased.code)).or_default().push(cased.code);
    }
    folded
});

/// The standard library also has mappings to several characters. In these cases there is no simple
/// mapping, except for Greek letters with an iota subscript.
fn simple_upper(letter: char) -> u32 {
    let code = u32::from(letter);
    let mut upper = letter.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(upper), None) => u32::from(upper),
        _ => match code {
            0x1f80..=0x1f87 | 0x1f90..=0x1f97 | 0x1fa0..=0x1fa7 => code + 8,
            0x1fb3 | 0x1fc3 | 0x1ff3 => code + 9,
            _ => code,
        },
    }
}

fn simple_lower(letter: char) -> u32 {
    let mut lower = letter.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) => u32::from(lower),
        // Capital I with a dot above.
        _ => u32::from('i'),
    }
}

fn cased(code: u32) -> Option<&'static Cased> {
    let at = CASED.binary_search_by_key(&code, |cased| cased.code).ok()?;
    CASED.get(at)
}

pub(crate) fn upper(code: u32) -> u32 {
    cased(code).map_or(code, |cased| cased.upper)
}

pub(crate) fn lower(code: u32) -> u32 {
    cased(code).map_or(code, |cased| cased.lower)
}

/// The lower case of the upper case. Java treats characters with equal results as equal.
pub(crate) fn fold(code: u32) -> u32 {
    if code < 0x80 { ascii_lower(code) } else { lower(upper(code)) }
}

pub(crate) fn ascii_lower(code: u32) -> u32 {
    if (0x41..=0x5a).contains(&code) { code | 0x20 } else { code }
}

pub(crate) fn ascii_upper(code: u32) -> u32 {
    if (0x61..=0x7a).contains(&code) { code & !0x20 } else { code }
}

/// All characters that fold to `folded`, including itself.
pub(crate) fn folding_to(folded: u32) -> ClassSet {
    let others = FOLDED.get(&folded).map_or(&[][..], |codes| &codes[..]);
    ClassSet::new(others.iter().chain([&folded]).map(|code| (*code, *code)).collect())
}

/// A range, plus the characters whose upper case, or its lower case, is in the range.
pub(crate) fn range_folded(low: u32, high: u32) -> ClassSet {
    let within = |code: u32| (low..=high).contains(&code);
    let others = CASED
        .iter()
        .filter(|cased| within(cased.upper) || within(lower(cased.upper)))
        .map(|cased| cased.code);
    ClassSet::new(others.map(|code| (code, code)).chain([(low, high)]).collect())
}

/// A range, plus the case variants of its ASCII letters.
pub(crate) fn range_ascii_folded(low: u32, high: u32) -> ClassSet {
    let within = |code: u32| (low..=high).contains(&code);
    let others = (0..0x80).filter(|code| within(ascii_lower(*code)) || within(ascii_upper(*code)));
    ClassSet::new(others.map(|code| (code, code)).chain([(low, high)]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_those_of_java() {
        for (code, upper_code, lower_code) in [
            (0x61, 0x41, 0x61),
            (0xdf, 0xdf, 0xdf),
            (0x1e9e, 0x1e9e, 0xdf),
            (0x130, 0x130, 0x69),
            (0x131, 0x49, 0x131),
            (0x1f80, 0x1f88, 0x1f80),
            (0x1fb3, 0x1fbc, 0x1fb3),
            (0x1c5, 0x1c4, 0x1c6),
            (0x212a, 0x212a, 0x6b),
            (0x10d0, 0x1c90, 0x10d0),
            (0x10400, 0x10400, 0x10428),
            // Its upper case was added in Unicode 16.
            (0x19b, 0x19b, 0x19b),
        ] {
            assert_eq!((upper(code), lower(code)), (upper_code, lower_code), "{code:x}");
        }
        // Java has this many. The checksum over all detects any change.
        assert_eq!(CASED.len(), 2799);
        let sum = CASED.iter().fold(0u64, |sum, cased| {
            [cased.code, cased.upper, cased.lower]
                .iter()
                .fold(sum, |sum, code| sum.wrapping_mul(31).wrapping_add(u64::from(*code)))
        });
        assert_eq!(sum, JAVA_SUM);
    }

    const JAVA_SUM: u64 = 0xcdf6e7f502c5eee6;
}
