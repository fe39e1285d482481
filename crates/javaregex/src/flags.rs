//! Flags of `java.util.regex.Pattern`.

use crate::node::Fold;

/// A set of flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(i32);

impl Flags {
    pub(crate) const UNIX_LINES: Flags = Flags(0x01);
    pub(crate) const CASE_INSENSITIVE: Flags = Flags(0x02);
    pub(crate) const COMMENTS: Flags = Flags(0x04);
    pub(crate) const MULTILINE: Flags = Flags(0x08);
    pub(crate) const LITERAL: Flags = Flags(0x10);
    pub(crate) const DOTALL: Flags = Flags(0x20);
    pub(crate) const UNICODE_CASE: Flags = Flags(0x40);
    pub(crate) const CANON_EQ: Flags = Flags(0x80);
    pub(crate) const UNICODE_CLASS: Flags = Flags(0x100);
    const ALL: i32 = 0x1ff;

    /// The flags of Java's bit mask; `None` if it has an unknown bit.
    pub(crate) fn from_java(flags: i32) -> Option<Flags> {
        let flags = (flags & !Flags::ALL == 0).then_some(Flags(flags))?;
        Some(if flags.has(Flags::UNICODE_CLASS) { flags.with(Flags::UNICODE_CASE) } else { flags })
    }

    pub(crate) fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }

    pub(crate) fn with(self, flags: Flags) -> Flags {
        Flags(self.0 | flags.0)
    }

    pub(crate) fn without(self, flags: Flags) -> Flags {
        Flags(self.0 & !flags.0)
    }

    /// The flags of a letter in an expression, as in `(?i)`.
    pub(crate) fn of_letter(letter: char) -> Option<Flags> {
        Some(match letter {
            'i' => Flags::CASE_INSENSITIVE,
            'm' => Flags::MULTILINE,
            's' => Flags::DOTALL,
            'd' => Flags::UNIX_LINES,
            'u' => Flags::UNICODE_CASE,
            'c' => Flags::CANON_EQ,
            'x' => Flags::COMMENTS,
            'U' => Flags::UNICODE_CLASS.with(Flags::UNICODE_CASE),
            _ => return None,
        })
    }

    /// How letters of different case compare.
    pub(crate) fn fold(self) -> Fold {
        match (self.has(Flags::CASE_INSENSITIVE), self.has(Flags::UNICODE_CASE)) {
            (true, true) => Fold::Unicode,
            (true, false) => Fold::Ascii,
            (false, _) => Fold::None,
        }
    }
}
