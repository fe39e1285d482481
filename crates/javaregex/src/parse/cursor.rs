//! Reading the expression. With the flag `COMMENTS` white space and comments are skipped where Java
//! skips them.

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

    /// The character at a position; zero behind the end.
    pub(super) fn at(&self, position: usize) -> u32 {
        self.chars.get(position).copied().unwrap_or(0)
    }

    /// The next character, which stays the next one.
    pub(super) fn peek(&mut self) -> u32 {
        self.skip_comments();
        self.at(self.cursor)
    }

    /// Takes the next character.
    pub(super) fn read(&mut self) -> u32 {
        self.skip_comments();
        self.cursor += 1;
        self.at(self.cursor - 1)
    }

    /// Goes one character on, and peeks.
    pub(super) fn next(&mut self) -> u32 {
        self.cursor += 1;
        self.peek()
    }

    /// Goes one character on, which is behind a backslash: no comment begins there.
    pub(super) fn next_escaped(&mut self) -> u32 {
        self.cursor += 1;
        self.at(self.cursor)
    }

    /// Takes the character behind the next one, and both are read.
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

    /// Goes to the line terminator, or the end.
    fn skip_line(&mut self) {
        // Java takes a zero for the end. The line terminators of ASCII are white space and skipped next.
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
