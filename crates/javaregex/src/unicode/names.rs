//! Character names as accepted by `Character.codePointOf`.

use super::{blocks, category};

/// The character with this name, ignoring case. The name is Unicode's, or a block name with a
/// hexadecimal number if Unicode has no name or derives it.
pub(crate) fn code_of(name: &str) -> Option<u32> {
    let name = name.trim_matches(|c| c <= ' ').to_uppercase();
    if let Some((code, _)) = CONTROLS.iter().find(|(_, control)| *control == name) {
        return Some(*code);
    }
    let named = unicode_names2::character(&name).map(u32::from);
    // The library's table also accepts other spellings.
    if let Some(code) = named.filter(|code| name_of(*code).as_ref() == Some(&name)) {
        return Some(code);
    }
    let (block, number) = name.rsplit_once(' ')?;
    let code = u32::from_str_radix(number, 16).ok().filter(|code| number == format!("{code:X}"))?;
    let spelling = |block: &str| block.replace('-', " ");
    let is_of = |code| blocks::block_of(code).is_some_and(|found| spelling(found) == block);
    (!category("Cn").contains(code) && name_of(code).is_none() && is_of(code)).then_some(code)
}

/// The name of a character, if Java's tables have one.
fn name_of(code: u32) -> Option<String> {
    let derived = DERIVED.iter().any(|block| blocks::block_of(code) == Some(block));
    let control = CONTROLS.iter().find(|(control, _)| *control == code);
    if let Some((_, name)) = control {
        return Some((*name).to_string());
    }
    if derived || category("Cn").contains(code) {
        return None;
    }
    char::from_u32(code).and_then(unicode_names2::name).map(|name| name.to_string())
}

/// Blocks whose characters Java names by block name and number.
const DERIVED: &[&str] = &[
    "CJK UNIFIED IDEOGRAPHS",
    "CJK UNIFIED IDEOGRAPHS EXTENSION A",
    "CJK UNIFIED IDEOGRAPHS EXTENSION B",
    "CJK UNIFIED IDEOGRAPHS EXTENSION C",
    "CJK UNIFIED IDEOGRAPHS EXTENSION D",
    "CJK UNIFIED IDEOGRAPHS EXTENSION E",
    "CJK UNIFIED IDEOGRAPHS EXTENSION F",
    "CJK UNIFIED IDEOGRAPHS EXTENSION G",
    "HANGUL SYLLABLES",
    "TANGUT",
    "TANGUT SUPPLEMENT",
];

/// Control characters, which have no Unicode names.
const CONTROLS: &[(u32, &str)] = &[
    (0x0, "NULL"),
    (0x1, "START OF HEADING"),
    (0x2, "START OF TEXT"),
    (0x3, "END OF TEXT"),
    (0x4, "END OF TRANSMISSION"),
    (0x5, "ENQUIRY"),
    (0x6, "ACKNOWLEDGE"),
    (0x7, "BEL"),
    (0x8, "BACKSPACE"),
    (0x9, "CHARACTER TABULATION"),
    (0xa, "LINE FEED (LF)"),
    (0xb, "LINE TABULATION"),
    (0xc, "FORM FEED (FF)"),
    (0xd, "CARRIAGE RETURN (CR)"),
    (0xe, "SHIFT OUT"),
    (0xf, "SHIFT IN"),
    (0x10, "DATA LINK ESCAPE"),
    (0x11, "DEVICE CONTROL ONE"),
    (0x12, "DEVICE CONTROL TWO"),
    (0x13, "DEVICE CONTROL THREE"),
    (0x14, "DEVICE CONTROL FOUR"),
    (0x15, "NEGATIVE ACKNOWLEDGE"),
    (0x16, "SYNCHRONOUS IDLE"),
    (0x17, "END OF TRANSMISSION BLOCK"),
    (0x18, "CANCEL"),
    (0x19, "END OF MEDIUM"),
    (0x1a, "SUBSTITUTE"),
    (0x1b, "ESCAPE"),
    (0x1c, "INFORMATION SEPARATOR FOUR"),
    (0x1d, "INFORMATION SEPARATOR THREE"),
    (0x1e, "INFORMATION SEPARATOR TWO"),
    (0x1f, "INFORMATION SEPARATOR ONE"),
    (0x7f, "DELETE"),
    (0x80, "PADDING CHARACTER"),
    (0x81, "HIGH OCTET PRESET"),
    (0x82, "BREAK PERMITTED HERE"),
    (0x83, "NO BREAK HERE"),
    (0x85, "NEXT LINE (NEL)"),
    (0x86, "START OF SELECTED AREA"),
    (0x87, "END OF SELECTED AREA"),
    (0x88, "CHARACTER TABULATION SET"),
    (0x89, "CHARACTER TABULATION WITH JUSTIFICATION"),
    (0x8a, "LINE TABULATION SET"),
    (0x8b, "PARTIAL LINE FORWARD"),
    (0x8c, "PARTIAL LINE BACKWARD"),
    (0x8d, "REVERSE LINE FEED"),
    (0x8e, "SINGLE SHIFT TWO"),
    (0x8f, "SINGLE SHIFT THREE"),
    (0x90, "DEVICE CONTROL STRING"),
    (0x91, "PRIVATE USE ONE"),
    (0x92, "PRIVATE USE TWO"),
    (0x93, "SET TRANSMIT STATE"),
    (0x94, "CANCEL CHARACTER"),
    (0x95, "MESSAGE WAITING"),
    (0x96, "START OF GUARDED AREA"),
    (0x97, "END OF GUARDED AREA"),
    (0x98, "START OF STRING"),
    (0x99, "SINGLE GRAPHIC CHARACTER INTRODUCER"),
    (0x9a, "SINGLE CHARACTER INTRODUCER"),
    (0x9b, "CONTROL SEQUENCE INTRODUCER"),
    (0x9c, "STRING TERMINATOR"),
    (0x9d, "OPERATING SYSTEM COMMAND"),
    (0x9e, "PRIVACY MESSAGE"),
    (0x9f, "APPLICATION PROGRAM COMMAND"),
];
