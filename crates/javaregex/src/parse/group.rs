//! Groups in parentheses, and their quantifiers.

use super::{Parsed, Parser};
use crate::extent;
use crate::flags::Flags;
use crate::node::{Expr, Greed, Group, LookBehind, Node, REPEATS_MAX, Repeat};

/// A parsed group before its quantifier.
enum Opened {
    Group(Group),
    /// A group that Java repeats as one atom.
    Atom(Node),
    /// Flags for the rest of the enclosing group.
    Flags,
}

impl Parser {
    /// Parses a group; the cursor is at its opening parenthesis. `None` for flags only.
    pub(super) fn group(&mut self) -> Parsed<Option<Node>> {
        let flags = self.flags;
        let loops = self.top_loops.len();
        let opened = self.group_or_flags()?;
        if matches!(opened, Opened::Flags) {
            return Ok(None);
        }
        if self.read() != u32::from(')') {
            return Err(self.error("Unclosed group"));
        }
        self.flags = flags;
        let quantifier = self.quantifier()?;
        Ok(Some(match (opened, quantifier) {
            (Opened::Group(group), None) => Node::Group(group),
            (Opened::Atom(node), None) => node,
            (Opened::Atom(node), Some(repeat)) => {
                Node::Atom { atom: Box::new(node), repeat, class_loop: false }
            }
            (Opened::Group(group), Some(repeat)) => {
                // Nested loops are entered repeatedly at the same positions.
                self.top_loops.truncate(loops);
                self.repeated(group, repeat)
            }
            (Opened::Flags, _) => return Ok(None),
        }))
    }

    fn repeated(&mut self, group: Group, repeat: Repeat) -> Node {
        if repeat.greed == Greed::Possessive {
            return Node::Atom { atom: Box::new(Node::Group(group)), repeat, class_loop: false };
        }
        if (repeat.min, repeat.max) == (0, 1) {
            return Node::Optional { group, lazy: repeat.greed == Greed::Lazy };
        }
        if extent::of(&group.body).deterministic {
            return Node::Repeated { group, repeat };
        }
        let id = self.loops;
        self.loops += 1;
        if repeat.greed == Greed::Greedy && repeat.max == REPEATS_MAX {
            self.top_loops.push(id);
        }
        Node::Loop { group, repeat, id }
    }

    fn group_or_flags(&mut self) -> Parsed<Opened> {
        if self.next() != u32::from('?') {
            let capture = self.new_group();
            return Ok(Opened::Group(Group { capture: Some(capture), body: self.expr()? }));
        }
        let kind = self.skip();
        match char::from_u32(kind) {
            Some(':') => Ok(Opened::Group(Group { capture: None, body: self.expr()? })),
            Some('=' | '!') => {
                let body = self.expr()?;
                let negated = kind == u32::from('!');
                Ok(Opened::Atom(Node::LookAround { body, negated, look_behind: None }))
            }
            Some('>') => Ok(Opened::Atom(Node::Independent(self.expr()?))),
            Some('<') => {
                let next = self.read();
                if next == u32::from('=') || next == u32::from('!') {
                    return self.parse_look_behind(next == u32::from('!'));
                }
                self.named(next)
            }
            Some('$' | '@') => Err(self.error("Unknown group type")),
            _ => {
                self.unread();
                self.inline_flags();
                let next = self.read();
                if next == u32::from(')') {
                    return Ok(Opened::Flags);
                }
                if next != u32::from(':') {
                    return Err(self.error("Unknown inline modifier"));
                }
                Ok(Opened::Group(Group { capture: None, body: self.expr()? }))
            }
        }
    }

    fn new_group(&mut self) -> u32 {
        self.groups += 1;
        self.groups
    }

    fn named(&mut self, first: u32) -> Parsed<Opened> {
        let name = self.group_name(first)?;
        let capture = self.new_group();
        if self.names.insert(name, capture).is_some() {
            return Err(self.error("Named capturing group is already defined"));
        }
        Ok(Opened::Group(Group { capture: Some(capture), body: self.expr()? }))
    }

    /// Parses a group name after its first character.
    pub(super) fn group_name(&mut self, first: u32) -> Parsed<String> {
        let is_name = |code: u32| char::from_u32(code).filter(char::is_ascii_alphanumeric);
        let letter = is_name(first).filter(char::is_ascii_alphabetic);
        let Some(letter) = letter else {
            return Err(self.error("capturing group name does not start with a Latin letter"));
        };
        let mut name = String::from(letter);
        let mut next = self.read();
        while let Some(letter) = is_name(next) {
            name.push(letter);
            next = self.read();
        }
        if next != u32::from('>') {
            return Err(self.error("named capturing group is missing trailing '>'"));
        }
        Ok(name)
    }

    fn parse_look_behind(&mut self, negated: bool) -> Parsed<Opened> {
        let begin = self.cursor;
        let loops = self.top_loops.len();
        let body: Expr = self.expr()?;
        let extent = extent::of(&body);
        if !extent.max_valid {
            return Err(self.error("Look-behind group does not have an obvious maximum length"));
        }
        self.top_loops.truncate(loops);
        // Java tests the rest of the expression, too.
        let points =
            self.chars[begin.min(self.len)..self.len].iter().any(|code| super::is_supplementary(*code));
        let look_behind = Some(LookBehind { min: extent.min, max: extent.max, points });
        Ok(Opened::Atom(Node::LookAround { body, negated, look_behind }))
    }

    fn inline_flags(&mut self) {
        let mut next = self.peek();
        let mut on = true;
        loop {
            match char::from_u32(next) {
                Some('-') if on => on = false,
                letter => match letter.and_then(Flags::of_letter) {
                    Some(flags) if on => self.flags = self.flags.with(flags),
                    Some(flags) => self.flags = self.flags.without(flags),
                    None => return,
                },
            }
            next = self.next();
        }
    }
}
