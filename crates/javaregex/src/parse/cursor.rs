//! Reads the expression. With the flag `COMMENTS` it skips white space and comments at the same
//! places as Java.

use super::Parser;
use crate::flags::Flags;

fn is_space(code: u32) -> bool {
    matches!(code, 9..=13 | 0x20)
}

const HASH: u32 = '#' as u32;

impl Parser {
    pub(super) fn has(&self, flag: Flags) -> bool {
        self.flags.has(flag)
    }

    /// The character at a position; 0 after the end.
    pub(super) fn at(&self, position: usize) -> u32 {
        self.chars.get(position).copied().unwrap_or(0)
    }

    /// The next character, without consuming it.
    pub(super) fn peek(&mut self) -> u32 {
        self.skip_comments();
        self.at(self.cursor)
    }

    /// Consumes the next character.
    pub(super) fn read(&mut self) -> u32 {
        self.skip_comments();
        self.cursor += 1;
        self.at(self.cursor - 1)
    }

    /// Advances by one character and peeks.
    pub(super) fn next(&mut self) -> u32 {
        self.cursor += 1;
        self.peek()
    }

    /// Advances by one character, to the one after a backslash. No comment begins there.
    pub(super) fn next_escaped(&mut self) -> u32 {
        self.cursor += 1;
        self.at(self.cursor)
    }

    /// Skips a character and consumes the one after it.
    pub(super) fn skip(&mut self) -> u32 {
        self.cursor += 2;
        self.at(self.cursor - 1)
    }

    pub(super) fn unread(&mut self) {
        self.cursor = self.cursor.saturating_sub(1);
    }

    fn skip_comments(&mut self) {
        if !self.has(Flags::COMMENTS) {
            return;
        }
        loop {
            match self.at(self.cursor) {
                space if is_space(space) => self.cursor += 1,
                HASH => self.skip_line(),
                _ => return,
            }
        }
    }

    /// Advances to the line terminator or the end.
    fn skip_line(&mut self) {
        // Java treats a zero as the end. ASCII line terminators are white space and are skipped
        // next.
        while !matches!(self.at(self.cursor), 0) && !self.ends_line(self.at(self.cursor)) {
            self.cursor += 1;
        }
    }

    fn ends_line(&self, code: u32) -> bool {
        match code {
            0xa => true,
            0xd | 0x85 | 0x2028 | 0x2029 => !self.has(Flags::UNIX_LINES),
            _ => false,
        }
    }
}
