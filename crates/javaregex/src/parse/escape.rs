//! Escape sequences.

use super::{Parsed, Parser, digit};
use crate::flags::Flags;
use crate::node::Node;
use crate::set::ClassSet;
use crate::text::{is_high, is_low};
use crate::unicode::{names, properties};

/// The meaning of an escape.
pub(super) enum Escaped {
    /// A literal character.
    Char(u32),
    /// One of several characters.
    Set(ClassSet),
    /// Any other node.
    Node(Node),
}

fn hex(code: u32) -> Option<u32> {
    char::from_u32(code).and_then(|c| c.to_digit(16))
}

fn octal(code: u32) -> Option<u32> {
    char::from_u32(code).and_then(|c| c.to_digit(8))
}

impl Parser {
    /// Parses an escape outside a class. With `create` false the caller discards a result that is
    /// not a literal, and parses the escape again later.
    pub(super) fn escape(&mut self, create: bool) -> Parsed<Escaped> {
        let letter = self.skip();
        let node = match char::from_u32(letter) {
            Some('1'..='9') if create => self.reference(letter)?,
            Some('1'..='9') => Node::Begin,
            Some('A') => Node::Begin,
            Some('B') => Node::Bound { negated: true, unicode: self.has(Flags::UNICODE_CLASS) },
            Some('G') => Node::LastMatch,
            Some('R') => Node::LineEnding,
            Some('X') => Node::Grapheme,
            Some('Z') => Node::Dollar { multiline: false, unix_lines: self.has(Flags::UNIX_LINES) },
            Some('b') if create => self.bound()?,
            Some('b') => Node::Begin,
            Some('k') => self.named_reference(create)?,
            Some('z') => Node::End,
            _ => return self.character(letter, false),
        };
        Ok(Escaped::Node(node))
    }

    /// Parses an escape in a class. `in_range` states whether it is an end of a range.
    pub(super) fn class_escape(&mut self, in_range: bool) -> Parsed<Escaped> {
        let letter = self.skip();
        match char::from_u32(letter) {
            Some('1'..='9' | 'A' | 'B' | 'G' | 'R' | 'X' | 'Z' | 'b' | 'k' | 'z') => {
                Err(self.error("Illegal/unsupported escape sequence"))
            }
            _ => self.character(letter, in_range),
        }
    }

    /// Escapes with the same meaning inside and outside classes.
    fn character(&mut self, letter: u32, in_range: bool) -> Parsed<Escaped> {
        let unicode = self.has(Flags::UNICODE_CLASS);
        let code = match char::from_u32(letter) {
            Some('0') => self.octal()?,
            Some('a') => 7,
            Some('c') => self.control()?,
            Some('e') => 0x1b,
            Some('f') => 0xc,
            Some('n') => 0xa,
            Some('r') => 0xd,
            Some('t') => 9,
            Some('u') => self.unit()?,
            Some('x') => self.hexadecimal()?,
            Some('N') => self.character_name()?,
            // In older versions `\v` was the vertical tab; in ranges Java still uses that.
            Some('v') if in_range => 0xb,
            Some('v') => return Ok(Escaped::Set(properties::vertical_space())),
            Some('V') => return Ok(Escaped::Set(properties::vertical_space().negate())),
            Some('h') => return Ok(Escaped::Set(properties::horizontal_space())),
            Some('H') => return Ok(Escaped::Set(properties::horizontal_space().negate())),
            Some('d') => return Ok(Escaped::Set(digits(unicode))),
            Some('D') => return Ok(Escaped::Set(digits(unicode).negate())),
            Some('s') => return Ok(Escaped::Set(spaces(unicode))),
            Some('S') => return Ok(Escaped::Set(spaces(unicode).negate())),
            Some('w') => return Ok(Escaped::Set(words(unicode))),
            Some('W') => return Ok(Escaped::Set(words(unicode).negate())),
            Some('a'..='z' | 'A'..='Z') => return Err(self.error("Illegal/unsupported escape sequence")),
            _ => letter,
        };
        Ok(Escaped::Char(code))
    }

    /// Parses `\b` after its letter.
    fn bound(&mut self) -> Parsed<Node> {
        if self.peek() == u32::from('{') {
            if self.skip() == u32::from('g') {
                if self.read() == u32::from('}') {
                    return Ok(Node::GraphemeBound);
                }
                return Err(self.error("Illegal/unsupported escape sequence"));
            }
            self.unread();
            self.unread();
        }
        Ok(Node::Bound { negated: false, unicode: self.has(Flags::UNICODE_CLASS) })
    }

    /// Parses a numbered reference after its first digit. A further digit belongs to the number if
    /// a group with that number exists.
    fn reference(&mut self, first: u32) -> Parsed<Node> {
        let mut group = first - u32::from('0');
        while let Some(digit) = digit(self.peek()) {
            let longer = group.saturating_mul(10).saturating_add(digit as u32);
            if longer > self.groups {
                break;
            }
            group = longer;
            self.read();
        }
        self.has_back_references = true;
        Ok(Node::BackReference { group, fold: self.flags.fold() })
    }

    fn named_reference(&mut self, create: bool) -> Parsed<Node> {
        if self.read() != u32::from('<') {
            return Err(self.error("\\k is not followed by '<' for named capturing group"));
        }
        let first = self.read();
        let name = self.group_name(first)?;
        let Some(group) = self.names.get(&name).copied() else {
            return Err(self.error("named capturing group does not exist"));
        };
        self.has_back_references |= create;
        Ok(Node::BackReference { group, fold: self.flags.fold() })
    }

    fn control(&mut self) -> Parsed<u32> {
        if self.cursor >= self.len {
            return Err(self.error("Illegal control escape sequence"));
        }
        Ok(self.read() ^ 64)
    }

    /// Up to three digits. A third digit is consumed only if the first is at most 3.
    fn octal(&mut self) -> Parsed<u32> {
        let next = self.read();
        let first = octal(next).ok_or_else(|| self.error("Illegal octal escape sequence"))?;
        let next = self.read();
        let Some(second) = octal(next) else {
            self.unread();
            return Ok(first);
        };
        let next = self.read();
        match octal(next) {
            Some(third) if first <= 3 => Ok(first * 64 + second * 8 + third),
            _ => {
                self.unread();
                Ok(first * 8 + second)
            }
        }
    }

    fn hexadecimal(&mut self) -> Parsed<u32> {
        let next = self.read();
        if let Some(high) = hex(next) {
            let next = self.read();
            if let Some(low) = hex(next) {
                return Ok(high * 16 + low);
            }
        } else if next == u32::from('{') && hex(self.peek()).is_some() {
            let mut code = 0;
            let end = loop {
                let next = self.read();
                let Some(digit) = hex(next) else { break next };
                code = code << 4 | digit;
                if code > crate::set::CODE_POINT_MAX {
                    return Err(self.error("Hexadecimal codepoint is too big"));
                }
            };
            return match end == u32::from('}') {
                true => Ok(code),
                false => Err(self.error("Unclosed hexadecimal escape sequence")),
            };
        }
        Err(self.error("Illegal hexadecimal escape sequence"))
    }

    fn four_digits(&mut self) -> Parsed<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let next = self.read();
            let digit = hex(next).ok_or_else(|| self.error("Illegal Unicode escape sequence"))?;
            code = code << 4 | digit;
        }
        Ok(code)
    }

    /// A code unit; a pair of surrogates is combined to a code point.
    fn unit(&mut self) -> Parsed<u32> {
        let high = self.four_digits()?;
        if is_high(high) {
            let end_of_high = self.cursor;
            if self.read() == u32::from('\\') && self.read() == u32::from('u') {
                let low = self.four_digits()?;
                if is_low(low) {
                    return Ok(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
                }
            }
            self.cursor = end_of_high;
        }
        Ok(high)
    }

    fn character_name(&mut self) -> Parsed<u32> {
        if self.read() != u32::from('{') {
            return Err(self.error("Illegal character name escape sequence"));
        }
        let begin = self.cursor;
        while self.read() != u32::from('}') {
            if self.cursor >= self.len {
                return Err(self.error("Unclosed character name escape sequence"));
            }
        }
        let name = self.chars[begin..self.cursor - 1].iter().filter_map(|code| char::from_u32(*code));
        names::code_of(&name.collect::<String>()).ok_or_else(|| self.error("Unknown character name"))
    }
}

fn digits(unicode: bool) -> ClassSet {
    if unicode { properties::digit() } else { properties::ascii_digit() }
}

fn spaces(unicode: bool) -> ClassSet {
    if unicode { properties::white_space() } else { properties::ascii_space() }
}

fn words(unicode: bool) -> ClassSet {
    if unicode { properties::word() } else { properties::ascii_word() }
}
