//! Character properties by Java's names, and predefined classes.

use super::{
    alphabetic, blocks, categories, category, identifier_ignorable, identifier_part, identifier_start,
    ideographic, lowercase, mirrored, noncharacters, script, uppercase,
};
use crate::set::ClassSet;

fn units(ranges: &[(u32, u32)]) -> ClassSet {
    ClassSet::of_units(ranges.to_vec())
}

fn points(ranges: &[(u32, u32)]) -> ClassSet {
    ClassSet::new(ranges.to_vec())
}

pub(crate) fn ascii_digit() -> ClassSet {
    units(&[(0x30, 0x39)])
}

pub(crate) fn ascii_word() -> ClassSet {
    units(&[(0x30, 0x39), (0x41, 0x5a), (0x5f, 0x5f), (0x61, 0x7a)])
}

pub(crate) fn ascii_space() -> ClassSet {
    units(&[(9, 0xd), (0x20, 0x20)])
}

pub(crate) fn vertical_space() -> ClassSet {
    units(&[(0xa, 0xd), (0x85, 0x85), (0x2028, 0x2029)])
}

pub(crate) fn horizontal_space() -> ClassSet {
    let singles = [9, 0x20, 0xa0, 0x1680, 0x180e, 0x202f, 0x205f, 0x3000];
    ClassSet::of_units(singles.iter().map(|code| (*code, *code)).chain([(0x2000, 0x200a)]).collect())
}

pub(crate) fn white_space() -> ClassSet {
    categories(&["Z"]).union(&points(&[(9, 0xd), (0x85, 0x85)]))
}

pub(crate) fn digit() -> ClassSet {
    (*category("Nd")).clone()
}

pub(crate) fn word() -> ClassSet {
    let others = categories(&["Mn", "Me", "Mc", "Nd", "Pc"]);
    alphabetic().union(&others).union(&points(&[(0x200c, 0x200d)]))
}

fn graph() -> ClassSet {
    categories(&["Z", "Cc", "Cs", "Cn"]).negate()
}

fn blank() -> ClassSet {
    category("Zs").union(&points(&[(9, 9)]))
}

fn hex_digit() -> ClassSet {
    digit()
        .union(&points(&[(0x30, 0x39), (0x41, 0x46), (0x61, 0x66), (0xff10, 0xff19)]))
        .union(&points(&[(0xff21, 0xff26), (0xff41, 0xff46)]))
}

fn titlecase() -> ClassSet {
    (*category("Lt")).clone()
}

/// `set`, or all cased letters if `ignore_case` is true.
fn or_cased(set: ClassSet, ignore_case: bool) -> ClassSet {
    if ignore_case { lowercase().union(&uppercase()).union(&titlecase()) } else { set }
}

/// A POSIX class with Unicode semantics; the name ignores case.
pub(crate) fn posix(name: &str, ignore_case: bool) -> Option<ClassSet> {
    Some(match &name.to_uppercase()[..] {
        "ALPHA" => (*alphabetic()).clone(),
        "LOWER" => or_cased((*lowercase()).clone(), ignore_case),
        "UPPER" => or_cased((*uppercase()).clone(), ignore_case),
        "SPACE" => white_space(),
        "PUNCT" => categories(&["P"]),
        "XDIGIT" => hex_digit(),
        "ALNUM" => alphabetic().union(&digit()),
        "CNTRL" => (*category("Cc")).clone(),
        "DIGIT" => digit(),
        "BLANK" => blank(),
        "GRAPH" => graph(),
        "PRINT" => graph().union(&blank()).without(&category("Cc")),
        _ => return None,
    })
}

/// A binary property after `Is`; the name ignores case.
fn binary(name: &str, ignore_case: bool) -> Option<ClassSet> {
    Some(match &name.to_uppercase()[..] {
        "ALPHABETIC" => (*alphabetic()).clone(),
        "ASSIGNED" => category("Cn").negate(),
        "CONTROL" => (*category("Cc")).clone(),
        "HEXDIGIT" | "HEX_DIGIT" => hex_digit(),
        "IDEOGRAPHIC" => (*ideographic()).clone(),
        "JOINCONTROL" | "JOIN_CONTROL" => points(&[(0x200c, 0x200d)]),
        "LETTER" => categories(&["L"]),
        "LOWERCASE" => or_cased((*lowercase()).clone(), ignore_case),
        "NONCHARACTERCODEPOINT" | "NONCHARACTER_CODE_POINT" => noncharacters(),
        "TITLECASE" => or_cased(titlecase(), ignore_case),
        "PUNCTUATION" => categories(&["P"]),
        "UPPERCASE" => or_cased((*uppercase()).clone(), ignore_case),
        "WHITESPACE" | "WHITE_SPACE" => white_space(),
        "WORD" => word(),
        _ => return posix(name, ignore_case),
    })
}

/// The set of a property name, as written in `\p{}`.
pub(crate) fn named(name: &str, unicode_class: bool, ignore_case: bool) -> Option<ClassSet> {
    if let Some((key, value)) = name.split_once('=') {
        return match &key.to_lowercase()[..] {
            "sc" | "script" => script(value),
            "blk" | "block" => blocks::block(value),
            "gc" | "general_category" => plain(value, ignore_case),
            _ => None,
        };
    }
    if let Some(block) = name.strip_prefix("In") {
        return blocks::block(block);
    }
    if let Some(short) = name.strip_prefix("Is") {
        return binary(short, ignore_case).or_else(|| plain(short, ignore_case)).or_else(|| script(short));
    }
    let posix = if unicode_class { posix(name, ignore_case) } else { None };
    posix.or_else(|| plain(name, ignore_case))
}

/// A category, an ASCII POSIX class, or a method of `Character`.
fn plain(name: &str, ignore_case: bool) -> Option<ClassSet> {
    const LOWER: &[(u32, u32)] = &[(0x61, 0x7a)];
    const UPPER: &[(u32, u32)] = &[(0x41, 0x5a)];
    const ALPHA: &[(u32, u32)] = &[(0x41, 0x5a), (0x61, 0x7a)];
    Some(match name {
        "Lu" | "Ll" | "Lt" if ignore_case => categories(&["Lu", "Ll", "Lt"]),
        "Cn" | "Lu" | "Ll" | "Lt" | "Lm" | "Lo" | "Mn" | "Me" | "Mc" | "Nd" | "Nl" | "No" | "Zs" | "Zl"
        | "Zp" | "Cc" | "Cf" | "Co" | "Cs" | "Pd" | "Ps" | "Pe" | "Pc" | "Po" | "Sm" | "Sc" | "Sk" | "So"
        | "Pi" | "Pf" => (*category(name)).clone(),
        "L" | "N" | "Z" | "P" | "S" => categories(&[name]),
        "M" => categories(&["Mn", "Me", "Mc"]),
        "C" => categories(&["Cc", "Cf", "Co", "Cs", "Cn"]),
        "LC" => categories(&["Lu", "Ll", "Lt"]),
        "LD" => categories(&["L", "Nd"]),
        "L1" => units(&[(0, 0xff)]),
        "all" => ClassSet::all(),
        "ASCII" => units(&[(0, 0x7f)]),
        "Alnum" => units(&[(0x30, 0x39), (0x41, 0x5a), (0x61, 0x7a)]),
        "Alpha" => units(ALPHA),
        "Blank" => units(&[(9, 9), (0x20, 0x20)]),
        "Cntrl" => units(&[(0, 0x1f), (0x7f, 0x7f)]),
        "Digit" => ascii_digit(),
        "Graph" => units(&[(0x21, 0x7e)]),
        "Lower" => units(if ignore_case { ALPHA } else { LOWER }),
        "Print" => units(&[(0x20, 0x7e)]),
        "Punct" => units(&[(0x21, 0x2f), (0x3a, 0x40), (0x5b, 0x60), (0x7b, 0x7e)]),
        "Space" => ascii_space(),
        "Upper" => units(if ignore_case { ALPHA } else { UPPER }),
        "XDigit" => units(&[(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)]),
        _ => return method(name.strip_prefix("java")?, ignore_case),
    })
}

/// A method of `Character`, named without `is`.
fn method(name: &str, ignore_case: bool) -> Option<ClassSet> {
    Some(match name {
        "LowerCase" => or_cased((*lowercase()).clone(), ignore_case),
        "UpperCase" => or_cased((*uppercase()).clone(), ignore_case),
        "TitleCase" => or_cased(titlecase(), ignore_case),
        "Alphabetic" => (*alphabetic()).clone(),
        "Ideographic" => (*ideographic()).clone(),
        "Digit" => digit(),
        "Defined" => category("Cn").negate(),
        "Letter" => categories(&["L"]),
        "LetterOrDigit" => categories(&["L", "Nd"]),
        "JavaIdentifierStart" => categories(&["L", "Nl", "Sc", "Pc"]),
        "JavaIdentifierPart" => {
            categories(&["L", "Nl", "Sc", "Pc", "Nd", "Mn", "Mc"]).union(&identifier_ignorable())
        }
        "UnicodeIdentifierStart" => identifier_start(),
        "UnicodeIdentifierPart" => identifier_part(),
        "IdentifierIgnorable" => identifier_ignorable(),
        "SpaceChar" => categories(&["Z"]),
        "Whitespace" => {
            let not = points(&[(0xa0, 0xa0), (0x2007, 0x2007), (0x202f, 0x202f)]);
            categories(&["Z"]).without(&not).union(&points(&[(9, 0xd), (0x1c, 0x1f)]))
        }
        "ISOControl" => points(&[(0, 0x1f), (0x7f, 0x9f)]),
        "Mirrored" => mirrored(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::CODE_POINT_MAX;
    use crate::text::Wide;
    use crate::unicode::{case, grapheme};

    /// Generated by `compat/regex/run --record`.
    const JAVA: &str = include_str!("../../tests/java/properties.txt");

    /// Number of code points, and a hash of the boundaries of the set.
    fn summary(has: impl Fn(u32) -> bool) -> (u32, u64) {
        let (mut count, mut hash, mut before) = (0, 0xcbf2_9ce4_8422_2325, false);
        for code in 0..=CODE_POINT_MAX + 1 {
            let here = code <= CODE_POINT_MAX && has(code);
            count += u32::from(here);
            if here != before {
                hash = (hash ^ u64::from(code)).wrapping_mul(0x100_0000_01b3);
            }
            before = here;
        }
        (count, hash)
    }

    fn of_set(set: &ClassSet) -> (u32, u64) {
        let (mut count, mut hash) = (0, 0xcbf2_9ce4_8422_2325);
        for (low, high) in set.ranges() {
            count += high - low + 1;
            for change in [*low, high + 1] {
                hash = (hash ^ u64::from(change)).wrapping_mul(0x100_0000_01b3);
            }
        }
        (count, hash)
    }

    /// Whether the text `around`, given as hexadecimal code points, with `code` in the middle is
    /// one cluster.
    fn is_cluster(around: &str, code: u32) -> bool {
        let (before, after) = around.split_once(',').unwrap();
        let chars = |text: &str| {
            let codes = text.split('+').filter_map(|hex| u32::from_str_radix(hex, 16).ok());
            codes.filter_map(char::from_u32).collect::<String>()
        };
        let Some(middle) = char::from_u32(code) else { return false };
        let text = format!("{}{middle}{}", chars(before), chars(after));
        let units: Vec<u16> = text.encode_utf16().collect();
        grapheme::next_boundary(Wide(&units), 0) == units.len()
    }

    #[test]
    fn properties_are_those_of_java() {
        let mut differences = Vec::new();
        for line in JAVA.lines() {
            let [name, count, hash] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let expected = (count.parse().unwrap(), u64::from_str_radix(hash, 16).unwrap());
            let ours = match name.strip_prefix("cluster ") {
                Some(around) => summary(|code| is_cluster(around, code)),
                None if name == "upper" => summary(|code| case::upper(code) != code),
                None => of_set(&named(name, false, false).unwrap_or_else(|| panic!("{name} is known"))),
            };
            if ours != expected {
                differences.push(format!("{name}: {ours:x?}, Java {expected:x?}"));
            }
        }
        assert!(differences.is_empty(), "{differences:#?}");
    }
}
