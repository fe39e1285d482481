//! Classes of characters: in brackets, and behind a backslash.

use std::fmt::Write;

use super::translate::{Refused, Translator, is_space};

/// What a backslash with what follows it is.
pub(super) enum Escaped {
    /// One character.
    Char(char),
    /// One of several, in the syntax of the `regex` crate, in brackets.
    Set(String),
}

const SPACES: &str = " \\t\\n\\x0B\\x0C\\r";
const HORIZONTAL: &str = " \\t\\x{A0}\\x{1680}\\x{180e}\\x{2000}-\\x{200a}\\x{202f}\\x{205f}\\x{3000}";
const VERTICAL: &str = "\\n\\x0B\\x0C\\r\\x{85}\\x{2028}\\x{2029}";

/// Reads what follows a backslash, which was read.
pub(super) fn escaped(from: &mut Translator) -> Result<Escaped, Refused> {
    let Some(next) = from.next() else {
        return Err("a backslash at the end is");
    };
    let set = |set: &str| Ok(Escaped::Set(format!("[{set}]")));
    let char = |char| Ok(Escaped::Char(char));
    match next {
        'd' => set("0-9"),
        'D' => set("^0-9"),
        'w' => set("a-zA-Z_0-9"),
        'W' => set("^a-zA-Z_0-9"),
        's' => set(SPACES),
        'S' => set(&format!("^{SPACES}")),
        'h' => set(HORIZONTAL),
        'H' => set(&format!("^{HORIZONTAL}")),
        'v' => set(VERTICAL),
        'V' => set(&format!("^{VERTICAL}")),
        'p' => property(from, false),
        'P' => property(from, true),
        't' => char('\t'),
        'n' => char('\n'),
        'r' => char('\r'),
        'f' => char('\x0c'),
        'a' => char('\x07'),
        'e' => char('\x1b'),
        'x' if from.take("{") => {
            let char = number(from, 16, 1, 6)?;
            if from.take("}") { Ok(Escaped::Char(char)) } else { Err("a number of this form is") }
        }
        'x' => number(from, 16, 2, 2).map(Escaped::Char),
        'u' => number(from, 16, 4, 4).map(Escaped::Char),
        '0' => octal(from).map(Escaped::Char),
        'c' => match from.next().filter(char::is_ascii) {
            Some(control) => Ok(Escaped::Char(char::from(control as u8 ^ 64))),
            None => Err("a control character of this form is"),
        },
        '1'..='9' | 'k' => Err("a back reference is"),
        'A'..='Z' | 'a'..='z' => Err("a backslash with this letter is"),
        other => char(other),
    }
}

fn number(from: &mut Translator, radix: u32, digits_min: u32, digits_max: u32) -> Result<char, Refused> {
    let (mut value, mut digits) = (0, 0);
    while digits < digits_max
        && let Some(digit) = from.peek().and_then(|next| next.to_digit(radix))
    {
        from.next();
        value = value * radix + digit;
        digits += 1;
    }
    let char = char::from_u32(value).filter(|_| digits >= digits_min);
    char.ok_or("a number of this form is")
}

/// Up to three digits, of which the first is at most 3 if there are three.
fn octal(from: &mut Translator) -> Result<char, Refused> {
    let three = from.peek().is_some_and(|first| ('0'..='3').contains(&first));
    number(from, 8, 1, if three { 3 } else { 2 })
}

fn property(from: &mut Translator, negated: bool) -> Result<Escaped, Refused> {
    let mut name = String::new();
    if from.take("{") {
        while let Some(next) = from.next().filter(|next| *next != '}') {
            name.push(next);
        }
    } else {
        name.extend(from.next());
    }
    let not = if negated { "^" } else { "" };
    let cased = matches!(&name[..], "Lower" | "Upper" | "Lu" | "Ll" | "Lt");
    if from.flags.case_insensitive && cased {
        return Err("a class of upper or lower case with the flag CASE_INSENSITIVE is");
    }
    let set = match &name[..] {
        "Lower" => "a-z",
        "Upper" => "A-Z",
        "ASCII" => "\\x00-\\x7F",
        "Alpha" => "a-zA-Z",
        "Digit" => "0-9",
        "Alnum" => "a-zA-Z0-9",
        "Punct" => "!-/:-@\\[-`{-~",
        "Graph" => "!-~",
        "Print" => " -~",
        "Blank" => " \\t",
        "Cntrl" => "\\x00-\\x1F\\x7F",
        "XDigit" => "0-9a-fA-F",
        "Space" => SPACES,
        category if is_category(category) => return Ok(Escaped::Set(format!("[{not}\\p{{{category}}}]"))),
        _ => return Err("a class of this name is"),
    };
    Ok(Escaped::Set(format!("[{not}{set}]")))
}

/// Whether this is one of Unicode's general categories, which Java and the `regex` crate name alike.
fn is_category(name: &str) -> bool {
    const CATEGORIES: &[&str] = &[
        "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd",
        "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp", "Cc", "Cf",
    ];
    CATEGORIES.contains(&name)
}

/// Reads a class in brackets, of which the opening one was read.
pub(super) fn class(from: &mut Translator) -> Result<String, Refused> {
    let mut set = String::from(if from.take("^") { "[^" } else { "[" });
    let mut first = true;
    while let Some(item) = item(from, first)? {
        first = false;
        match item {
            Escaped::Set(inner) => set.push_str(&inner),
            Escaped::Char(low) => {
                let high = range_end(from)?.unwrap_or(low);
                if high < low {
                    return Err("a range that ends before it begins is");
                }
                push_range(&mut set, low, high);
                if from.flags.case_insensitive && !from.flags.unicode_case {
                    push_other_case(&mut set, low, high);
                }
            }
        }
    }
    set.push(']');
    let folds = from.flags.case_insensitive && from.flags.unicode_case;
    Ok(if folds { format!("(?i:{set})") } else { set })
}

/// The next character or set of a class; `None` at its end.
fn item(from: &mut Translator, first: bool) -> Result<Option<Escaped>, Refused> {
    loop {
        return match from.next() {
            None => Err("a class that does not end is"),
            Some(']') if !first => Ok(None),
            Some('[') => Err("a class within a class is"),
            Some('&') if from.peek() == Some('&') => Err("an intersection of classes is"),
            Some('\\') if matches!(from.peek(), Some('Q')) => Err("a quotation within a class is"),
            Some('\\') => escaped(from).map(Some),
            Some(next) if from.ignores_space() && (is_space(next) || next == '#') => {
                if next == '#' {
                    return Err("a comment within a class is");
                }
                continue;
            }
            Some(next) => Ok(Some(Escaped::Char(next))),
        };
    }
}

/// The end of a range, if the last character begins one: a hyphen follows that is not the last in the class.
fn range_end(from: &mut Translator) -> Result<Option<char>, Refused> {
    if !from.take("-") {
        return Ok(None);
    }
    match from.peek() {
        Some(']') => {
            from.step_back();
            Ok(None)
        }
        Some('[') => Err("a class within a class is"),
        Some('\\') => {
            from.next();
            match escaped(from)? {
                Escaped::Char(high) => Ok(Some(high)),
                Escaped::Set(_) => Err("a range that ends with a class is"),
            }
        }
        Some(high) => {
            from.next();
            Ok(Some(high))
        }
        None => Err("a class that does not end is"),
    }
}

fn push_range(set: &mut String, low: char, high: char) {
    // Numbers need no escapes.
    _ = write!(set, "\\x{{{:x}}}-\\x{{{:x}}}", u32::from(low), u32::from(high));
}

/// The letters of ASCII in the range, in the other case.
fn push_other_case(set: &mut String, low: char, high: char) {
    for (first, last, other) in [('a', 'z', 'A'), ('A', 'Z', 'a')] {
        let (from, to) = (low.max(first), high.min(last));
        if from <= to {
            let shifted = |letter: char| {
                char::from_u32(u32::from(letter) - u32::from(first) + u32::from(other)).unwrap_or(letter)
            };
            push_range(set, shifted(from), shifted(to));
        }
    }
}
