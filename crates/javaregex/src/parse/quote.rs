//! Quotes: `\Q...\E`.

const BACKSLASH: u32 = '\\' as u32;
const QUOTE: u32 = 'Q' as u32;
const END: u32 = 'E' as u32;

fn is_letter(code: u32) -> bool {
    char::from_u32(code).is_some_and(|c| c.is_ascii_alphabetic())
}

fn is_digit(code: u32) -> bool {
    char::from_u32(code).is_some_and(|c| c.is_ascii_digit())
}

/// Replaces quotes by escapes, as Java does before parsing.
pub(super) fn without_quotes(chars: Vec<u32>) -> Vec<u32> {
    let Some(begin) = first_quote(&chars) else { return chars };
    let mut out = chars[..begin].to_vec();
    let mut at = begin + 2;
    let mut quoted = true;
    let mut at_begin = true;
    while let Some(code) = chars.get(at).copied() {
        at += 1;
        let next = chars.get(at).copied();
        match code {
            _ if code >= 0x80 || is_letter(code) => out.push(code),
            // Otherwise a leading digit could extend a number before the quote.
            _ if is_digit(code) && at_begin => out.extend([BACKSLASH, u32::from('x'), u32::from('3'), code]),
            _ if is_digit(code) => out.push(code),
            BACKSLASH if quoted && next == Some(END) => {
                at += 1;
                quoted = false;
            }
            BACKSLASH if quoted => out.extend([BACKSLASH, BACKSLASH]),
            BACKSLASH if next == Some(QUOTE) => {
                at += 1;
                quoted = true;
                at_begin = true;
                continue;
            }
            BACKSLASH => {
                out.push(code);
                out.extend(next);
                at += usize::from(next.is_some());
            }
            _ if quoted => out.extend([BACKSLASH, code]),
            _ => out.push(code),
        }
        at_begin = false;
    }
    out
}

fn first_quote(chars: &[u32]) -> Option<usize> {
    let mut at = 0;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            (BACKSLASH, QUOTE) => return Some(at),
            (BACKSLASH, _) => at += 2,
            _ => at += 1,
        }
    }
    None
}
