//! Character classes in square brackets.

use super::escape::Escaped;
use super::{Parsed, Parser};
use crate::flags::Flags;
use crate::node::Fold;
use crate::set::ClassSet;
use crate::unicode::{case, properties};

const OPEN: u32 = '[' as u32;
const CLOSE: u32 = ']' as u32;
const AND: u32 = '&' as u32;
const BACKSLASH: u32 = '\\' as u32;
const HYPHEN: u32 = '-' as u32;

/// A part of a class.
#[derive(Clone)]
enum Operand {
    Set(ClassSet),
    /// All single characters of the class below U+0100. Java collects them in one set, including
    /// those that follow an intersection.
    Bits,
}

/// A class during parsing. Union and intersection have equal precedence and associate to the left.
struct Class {
    bits: Vec<(u32, u32)>,
    has_bits: bool,
    parts: Vec<(bool, Operand)>,
    last: Option<Operand>,
}

impl Class {
    fn new() -> Class {
        Class { bits: Vec::new(), has_bits: false, parts: Vec::new(), last: None }
    }

    fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    fn unite(&mut self, operand: Operand) {
        self.parts.push((false, operand));
    }

    fn add_bits(&mut self, codes: impl IntoIterator<Item = u32>) {
        self.bits.extend(codes.into_iter().filter(|code| *code < 0x100).map(|code| (code, code)));
        self.has_bits = true;
        self.last = None;
    }

    fn finish(self) -> ClassSet {
        let bits = ClassSet::of_units(self.bits);
        let mut whole: Option<ClassSet> = None;
        // Consecutive unions are sorted once.
        let mut united: Vec<ClassSet> = Vec::new();
        for (intersects, operand) in self.parts {
            let set = match operand {
                Operand::Set(set) => set,
                Operand::Bits => bits.clone(),
            };
            if intersects {
                let left = unite(whole.take(), &mut united);
                whole = Some(left.intersect(&set));
            } else {
                united.push(set);
            }
        }
        if self.has_bits {
            united.push(bits);
        }
        unite(whole, &mut united)
    }
}

fn unite(whole: Option<ClassSet>, united: &mut Vec<ClassSet>) -> ClassSet {
    if let (Some(whole), true) = (&whole, united.is_empty()) {
        return whole.clone();
    }
    let sets: Vec<ClassSet> = whole.into_iter().chain(united.drain(..)).collect();
    let units = sets.iter().all(|set| set.units);
    let ranges = sets.iter().flat_map(|set| set.ranges().iter().copied()).collect();
    if units { ClassSet::of_units(ranges) } else { ClassSet::new(ranges) }
}

impl Parser {
    /// Parses a class; the cursor is at the character before its first one. Consumes the closing
    /// bracket if `consume` is true.
    pub(super) fn class(&mut self, consume: bool) -> Parsed<ClassSet> {
        let mut class = Class::new();
        let mut next = self.next();
        let negated = next == u32::from('^') && self.at(self.cursor - 1) == OPEN;
        if negated {
            next = self.next();
        }
        loop {
            match next {
                OPEN => {
                    let inner = self.nest(|parser| parser.class(true))?;
                    self.count_ranges(&inner)?;
                    class.last = Some(Operand::Set(inner.clone()));
                    class.unite(Operand::Set(inner));
                    next = self.peek();
                    continue;
                }
                AND => {
                    if self.next() == AND {
                        next = self.intersection(&mut class)?;
                        continue;
                    }
                    // A literal `&`.
                    self.unread();
                }
                0 if self.cursor >= self.len => return Err(self.error("Unclosed character class")),
                CLOSE if !class.is_empty() || class.has_bits => {
                    if consume {
                        self.next();
                    }
                    let set = class.finish();
                    return Ok(if negated { set.negate() } else { set });
                }
                _ => {}
            }
            if let Some(set) = self.class_range(&mut class)? {
                self.count_ranges(&set)?;
                class.last = Some(Operand::Set(set.clone()));
                class.unite(Operand::Set(set));
            }
            next = self.peek();
        }
    }

    /// Parses the right side of `&&`; the cursor is at the second `&`. Returns the next character.
    fn intersection(&mut self, class: &mut Class) -> Parsed<u32> {
        let mut next = self.next();
        let mut right: Option<ClassSet> = None;
        while next != CLOSE && next != AND {
            let part = if next == OPEN {
                self.nest(|parser| parser.class(true))?
            } else {
                self.unread();
                self.nest(|parser| parser.class(false))?
            };
            self.count_ranges(&part)?;
            right = Some(match right {
                Some(right) => right.union(&part),
                None => part,
            });
            next = self.peek();
        }
        if class.has_bits {
            if class.is_empty() {
                class.last = Some(Operand::Bits);
            }
            class.unite(Operand::Bits);
            class.has_bits = false;
        }
        if let Some(right) = right {
            class.last = Some(Operand::Set(right.clone()));
            if class.is_empty() {
                class.unite(Operand::Set(right));
                return Ok(next);
            }
        } else if class.is_empty() {
            return Err(self.error("Bad class syntax"));
        }
        // Without a right side Java intersects with the operand that it read last.
        let last = class.last.clone().ok_or_else(|| self.error("Bad intersection syntax"))?;
        class.parts.push((true, last));
        Ok(next)
    }

    /// Parses a character, a range or a predefined class. `None` if it was added to the class's
    /// bits.
    fn class_range(&mut self, class: &mut Class) -> Parsed<Option<ClassSet>> {
        let mut low = self.peek();
        if low == BACKSLASH {
            let letter = self.next_escaped();
            if letter == u32::from('p') || letter == u32::from('P') {
                return self.property().map(Some);
            }
            let begins_range = self.at(self.cursor + 1) == HYPHEN;
            self.unread();
            match self.class_escape(begins_range)? {
                Escaped::Char(code) => low = code,
                Escaped::Set(set) => return Ok(Some(set)),
                Escaped::Node(_) => return Err(self.error("Illegal/unsupported escape sequence")),
            }
        } else {
            self.next();
        }
        if self.peek() == HYPHEN && !matches!(self.at(self.cursor + 1), OPEN | CLOSE) {
            self.next();
            return self.range_end(low).map(Some);
        }
        Ok(self.class_char(class, low))
    }

    fn range_end(&mut self, low: u32) -> Parsed<ClassSet> {
        let mut high = self.peek();
        if high == BACKSLASH {
            match self.class_escape(true)? {
                Escaped::Char(code) => high = code,
                _ => return Err(self.error("Illegal character range")),
            }
        } else {
            self.next();
        }
        if high < low {
            return Err(self.error("Illegal character range"));
        }
        let surrogates = high >= 0xd800 && low <= 0xdfff;
        Ok(match self.flags.fold() {
            Fold::Unicode => case::range_folded(low, high),
            Fold::Ascii => case::range_ascii_folded(low, high),
            Fold::None if high < 0x10000 && !surrogates => ClassSet::of_units(vec![(low, high)]),
            Fold::None => ClassSet::new(vec![(low, high)]),
        })
    }

    /// Adds a single character.
    fn class_char(&mut self, class: &mut Class, code: u32) -> Option<ClassSet> {
        let fold = self.flags.fold();
        // Letters with a case variant above U+00FF.
        let folds_far = matches!(code, 0xff | 0xb5 | 0x49 | 0x69 | 0x53 | 0x73 | 0x4b | 0x6b | 0xc5 | 0xe5);
        if code >= 0x100 || fold == Fold::Unicode && folds_far {
            return Some(self.single(code));
        }
        let others = match fold {
            Fold::None => [code, code],
            Fold::Unicode if code >= 0x80 => [case::lower(code), case::upper(code)],
            Fold::Ascii if code >= 0x80 => [code, code],
            _ => [case::ascii_lower(code), case::ascii_upper(code)],
        };
        class.add_bits(others.into_iter().chain([code]));
        None
    }

    /// Parses `\p` or `\P`; the cursor is at the letter.
    pub(super) fn property(&mut self) -> Parsed<ClassSet> {
        self.refuse_canonical()?;
        let negated = self.at(self.cursor) == u32::from('P');
        let name = if self.next() == u32::from('{') { self.long_name()? } else { self.short_name() };
        let ignore_case = self.has(Flags::CASE_INSENSITIVE);
        let set = properties::named(&name, self.has(Flags::UNICODE_CLASS), ignore_case)
            .ok_or_else(|| self.error("Unknown character property name"))?;
        if negated {
            // Java does not check whether code units are sufficient.
            self.by_points = true;
            return Ok(set.negate());
        }
        Ok(set)
    }

    fn short_name(&mut self) -> String {
        let name = char::from_u32(self.at(self.cursor)).into_iter().collect();
        self.read();
        name
    }

    fn long_name(&mut self) -> Parsed<String> {
        self.next();
        let begin = self.cursor;
        // A sentinel ends the search, as in Java.
        self.chars[self.len] = u32::from('}');
        while self.read() != u32::from('}') {}
        self.chars[self.len] = 0;
        let end = self.cursor;
        if end > self.len {
            return Err(self.error("Unclosed character family"));
        }
        if begin + 1 >= end {
            return Err(self.error("Empty character family"));
        }
        Ok(self.chars[begin..end - 1].iter().filter_map(|code| char::from_u32(*code)).collect())
    }
}
