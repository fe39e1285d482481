//! From Java's syntax of regular expressions to that of the `regex` crate.
//!
//! One pass over the characters. Flags are resolved while they are read, so that the result has none of its own but where
//! Unicode's case folding is asked for. Only whether something is found matters: groups capture nothing, and an end of text
//! before a last line break becomes that line break and the end.

use super::class;

/// Why an expression is refused; the sentence goes on with "not supported".
pub(super) type Refused = &'static str;

/// Flags of Java's `Pattern`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flags {
    pub(super) case_insensitive: bool,
    pub(super) unicode_case: bool,
    multiline: bool,
    dotall: bool,
    comments: bool,
    unix_lines: bool,
    literal: bool,
}

const UNIX_LINES: i32 = 0x01;
const CASE_INSENSITIVE: i32 = 0x02;
const COMMENTS: i32 = 0x04;
const MULTILINE: i32 = 0x08;
const LITERAL: i32 = 0x10;
const DOTALL: i32 = 0x20;
const UNICODE_CASE: i32 = 0x40;
const KNOWN: i32 = UNIX_LINES | CASE_INSENSITIVE | COMMENTS | MULTILINE | LITERAL | DOTALL | UNICODE_CASE;

/// Longest number of a repetition.
const REPEAT_DIGITS_MAX: usize = 4;

impl Flags {
    pub(super) fn from_java(flags: i32) -> Result<Flags, Refused> {
        if flags & !KNOWN != 0 {
            return Err("one of its flags is");
        }
        let has = |flag| flags & flag != 0;
        Ok(Flags {
            case_insensitive: has(CASE_INSENSITIVE),
            unicode_case: has(UNICODE_CASE),
            multiline: has(MULTILINE),
            dotall: has(DOTALL),
            comments: has(COMMENTS),
            unix_lines: has(UNIX_LINES),
            literal: has(LITERAL),
        })
    }
}

/// Translates an expression.
///
/// # Errors
/// What in it is not supported, or not understood by Java either.
pub(super) fn translate(source: &str, flags: Flags) -> Result<String, Refused> {
    let mut translator = Translator {
        chars: source.chars().collect(),
        at: 0,
        flags,
        groups: Vec::new(),
        ends: false,
        out: String::with_capacity(source.len() * 2),
    };
    if flags.literal {
        translator.literals_to_end();
    } else {
        translator.expression()?;
    }
    Ok(translator.out)
}

pub(super) struct Translator {
    chars: Vec<char>,
    at: usize,
    pub(super) flags: Flags,
    // Of the groups around: the flags behind them, and whether an end of text stands in them.
    groups: Vec<(Flags, bool)>,
    // Whether an end of text stands in the current group.
    ends: bool,
    pub(super) out: String,
}

impl Translator {
    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += 1;
        Some(next)
    }

    pub(super) fn take(&mut self, wanted: &str) -> bool {
        let len = wanted.chars().count();
        let taken = self
            .chars
            .get(self.at..self.at + len)
            .is_some_and(|chars| wanted.chars().eq(chars.iter().copied()));
        self.at += if taken { len } else { 0 };
        taken
    }

    pub(super) fn step_back(&mut self) {
        self.at -= 1;
    }

    pub(super) fn ignores_space(&self) -> bool {
        self.flags.comments
    }

    fn literals_to_end(&mut self) {
        while let Some(literal) = self.next() {
            self.literal(literal);
        }
    }

    fn expression(&mut self) -> Result<(), Refused> {
        // Whether there is something that a quantifier can repeat.
        let mut repeatable = false;
        while let Some(next) = self.next() {
            repeatable = match next {
                '\\' => self.escape()?,
                '[' => {
                    let set = class::class(self)?;
                    self.out.push_str(&set);
                    true
                }
                '(' => {
                    self.open()?;
                    false
                }
                ')' => {
                    self.close()?;
                    true
                }
                '|' => {
                    self.out.push('|');
                    false
                }
                '^' if self.flags.multiline => return Err("^ and $ with the flag MULTILINE are"),
                '^' => {
                    self.out.push_str("\\A");
                    false
                }
                '$' => {
                    self.end()?;
                    false
                }
                '.' => {
                    self.any();
                    true
                }
                '*' | '+' | '?' | '{' if repeatable => {
                    self.repeat(next)?;
                    false
                }
                '*' | '+' | '?' | '{' => return Err("a quantifier behind nothing is"),
                '#' if self.flags.comments => {
                    while self.peek().is_some_and(|next| next != '\n') {
                        self.at += 1;
                    }
                    repeatable
                }
                space if self.flags.comments && is_space(space) => repeatable,
                literal => {
                    self.literal(literal);
                    true
                }
            };
        }
        if self.groups.is_empty() { Ok(()) } else { Err("a group that does not end is") }
    }

    /// A character that stands for itself.
    pub(super) fn literal(&mut self, literal: char) {
        let escaped = regex::escape(literal.encode_utf8(&mut [0; 4]));
        let letter = literal.is_ascii_alphabetic();
        if self.flags.case_insensitive && self.flags.unicode_case {
            self.out.push_str(&format!("(?i:{escaped})"));
        } else if self.flags.case_insensitive && letter {
            let (lower, upper) = (literal.to_ascii_lowercase(), literal.to_ascii_uppercase());
            self.out.push_str(&format!("[{lower}{upper}]"));
        } else {
            self.out.push_str(&escaped);
        }
    }

    fn any(&mut self) {
        self.out.push_str(match (self.flags.dotall, self.flags.unix_lines) {
            (true, _) => "(?s:.)",
            (false, true) => "[^\\n]",
            (false, false) => "[^\\n\\r\\x{85}\\x{2028}\\x{2029}]",
        });
    }

    /// The end of the text, or before its last line break. Nothing may follow that could still be that line break.
    fn end(&mut self) -> Result<(), Refused> {
        if self.flags.multiline {
            return Err("^ and $ with the flag MULTILINE are");
        }
        self.out.push_str(match self.flags.unix_lines {
            true => "\\n?\\z",
            false => "(?:\\r\\n|[\\n\\r\\x{85}\\x{2028}\\x{2029}])?\\z",
        });
        self.ends = true;
        self.check_ends()
    }

    fn check_ends(&self) -> Result<(), Refused> {
        match self.peek() {
            None | Some(')' | '|') => Ok(()),
            _ => Err("$ before the end of the expression or of an alternative is"),
        }
    }

    fn open(&mut self) -> Result<(), Refused> {
        let behind = self.flags;
        if self.take("?") {
            if self.take("=") || self.take("!") || self.take("<=") || self.take("<!") {
                return Err("look-around is");
            }
            if self.take(">") {
                return Err("a group without backtracking is");
            }
            if self.take("<") {
                self.name()?;
            } else if self.inline_flags()? {
                // Flags for the rest of the group around.
                return Ok(());
            }
        }
        self.groups.push((behind, self.ends));
        self.ends = false;
        self.out.push_str("(?:");
        Ok(())
    }

    fn name(&mut self) -> Result<(), Refused> {
        let begin = self.at;
        while self.peek().is_some_and(|next| next.is_ascii_alphanumeric()) {
            self.at += 1;
        }
        if self.at > begin && self.take(">") { Ok(()) } else { Err("a group of this name is") }
    }

    /// Reads flags; whether they stand alone, else they are those of a group.
    fn inline_flags(&mut self) -> Result<bool, Refused> {
        let mut on = true;
        loop {
            let flag = match self.next() {
                Some(')') => return Ok(true),
                Some(':') => return Ok(false),
                Some('-') => {
                    on = false;
                    continue;
                }
                Some('i') => &mut self.flags.case_insensitive,
                Some('u') => &mut self.flags.unicode_case,
                Some('m') => &mut self.flags.multiline,
                Some('s') => &mut self.flags.dotall,
                Some('x') => &mut self.flags.comments,
                Some('d') => &mut self.flags.unix_lines,
                _ => return Err("one of its flags is"),
            };
            *flag = on;
        }
    }

    fn close(&mut self) -> Result<(), Refused> {
        let Some((flags, ends)) = self.groups.pop() else {
            return Err("a closing bracket without an opening one is");
        };
        if self.ends {
            self.check_ends()?;
        }
        self.flags = flags;
        self.ends |= ends;
        self.out.push(')');
        Ok(())
    }

    fn repeat(&mut self, quantifier: char) -> Result<(), Refused> {
        self.out.push(quantifier);
        if quantifier == '{' {
            self.bounds()?;
        }
        // Lazy: what is found is found either way.
        if self.take("?") {
            self.out.push('?');
        } else if self.take("+") {
            return Err("a possessive quantifier is");
        }
        match self.peek() {
            Some('*' | '+' | '?' | '{') => Err("a quantifier behind a quantifier is"),
            _ => Ok(()),
        }
    }

    fn bounds(&mut self) -> Result<(), Refused> {
        let refused = "a repetition of this form is";
        self.number().then_some(()).ok_or(refused)?;
        if self.take(",") {
            self.out.push(',');
            self.number();
        }
        self.out.push('}');
        if self.take("}") { Ok(()) } else { Err(refused) }
    }

    fn number(&mut self) -> bool {
        let begin = self.at;
        while let Some(digit) = self.peek().filter(|next| next.is_ascii_digit()) {
            self.out.push(digit);
            self.at += 1;
        }
        (1..=REPEAT_DIGITS_MAX).contains(&(self.at - begin))
    }

    /// What follows a backslash; whether it can be repeated.
    fn escape(&mut self) -> Result<bool, Refused> {
        match self.peek() {
            Some('b') => self.out.push_str("\\b"),
            Some('B') => self.out.push_str("\\B"),
            Some('A') => self.out.push_str("\\A"),
            Some('z') => self.out.push_str("\\z"),
            Some('Z') => {
                self.at += 1;
                self.end()?;
                return Ok(false);
            }
            Some('Q') => {
                self.at += 1;
                while self.at < self.chars.len() && !self.take("\\E") {
                    let literal = self.chars[self.at];
                    self.at += 1;
                    self.literal(literal);
                }
                return Ok(true);
            }
            _ => {
                match class::escaped(self)? {
                    class::Escaped::Char(literal) => self.literal(literal),
                    class::Escaped::Set(set) => self.out.push_str(&set),
                }
                return Ok(true);
            }
        }
        self.at += 1;
        Ok(false)
    }
}

pub(super) fn is_space(next: char) -> bool {
    matches!(next, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r')
}
