//! Parser for Java's regular expression grammar.
//!
//! A recursive-descent parser with the structure of Java's, so that it also accepts what Java
//! accepts by accident, with the same meaning. Examples are a counted quantifier after nothing,
//! quotes in classes, and white space and comments within an escape.

mod class;
mod cursor;
mod escape;
mod group;
mod quote;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::error::Error;
use crate::flags::Flags;
use crate::node::{Expr, Fold, Greed, Node, REPEATS_MAX, Repeat};
use crate::set::ClassSet;
use crate::unicode::case;

/// Maximum length of an expression, in characters.
const LENGTH_MAX: usize = 256 * 1024;
/// Maximum nesting depth of groups and classes.
const NEST_MAX: usize = 200;
/// Maximum number of ranges in all classes of an expression; \p{L} has about 600.
const RANGES_MAX: usize = 1 << 20;

type Parsed<T> = Result<T, Error>;

/// A parsed expression with its global properties.
#[derive(Debug)]
pub(crate) struct Parse {
    pub(crate) expr: Expr,
    /// Number of capturing groups, excluding the whole match.
    pub(crate) groups: u32,
    pub(crate) has_back_references: bool,
    /// Whether a search advances by code points; otherwise by code units.
    pub(crate) by_points: bool,
    /// `id`s of the loops that Java does not enter twice at the same position.
    pub(crate) memoized_loops: HashSet<usize>,
}

/// Parses an expression.
///
/// # Errors
/// [`Error::Syntax`] where Java throws `PatternSyntaxException`, [`Error::TooLarge`] beyond the
/// limits of this module, [`Error::Unsupported`] for canonical equivalence.
pub(crate) fn parse(source: &str, flags: Flags) -> Parsed<Parse> {
    let mut chars: Vec<u32> = source.chars().map(u32::from).collect();
    if chars.len() > LENGTH_MAX {
        return Err(Error::TooLarge("length"));
    }
    let by_points = chars.iter().any(|code| is_supplementary(*code));
    if !flags.has(Flags::LITERAL) {
        chars = quote::without_quotes(chars);
    }
    let mut parser = Parser::new(chars, flags, by_points);
    let expr = if flags.has(Flags::LITERAL) { parser.literal() } else { parser.whole()? };
    Ok(Parse {
        expr,
        groups: parser.groups,
        has_back_references: parser.has_back_references,
        by_points: parser.by_points,
        memoized_loops: if parser.has_back_references {
            HashSet::new()
        } else {
            parser.top_loops.into_iter().collect()
        },
    })
}

struct Parser {
    /// The expression, followed by two zeros as in Java.
    chars: Vec<u32>,
    len: usize,
    cursor: usize,
    flags: Flags,
    groups: u32,
    names: HashMap<String, u32>,
    has_back_references: bool,
    by_points: bool,
    /// Unbounded greedy loops that are not in another repeated group or in a look-behind.
    top_loops: Vec<usize>,
    loops: usize,
    nested: usize,
    ranges: usize,
    sets: HashMap<ClassSet, Arc<ClassSet>>,
}

/// Whether Java compares the character as a code point: it is above U+FFFF, or a surrogate.
fn is_supplementary(code: u32) -> bool {
    code >= 0x10000 || (0xd800..0xe000).contains(&(code & 0xffff))
}

impl Parser {
    fn new(mut chars: Vec<u32>, flags: Flags, by_points: bool) -> Parser {
        let len = chars.len();
        chars.extend([0, 0]);
        Parser {
            chars,
            len,
            cursor: 0,
            flags,
            groups: 0,
            names: HashMap::new(),
            has_back_references: false,
            by_points,
            top_loops: Vec::new(),
            loops: 0,
            nested: 0,
            ranges: 0,
            sets: HashMap::new(),
        }
    }

    fn literal(&mut self) -> Expr {
        let chars = self.chars[..self.len].to_vec();
        let points = self.by_points;
        Expr { alternatives: vec![vec![self.slice(chars, points)]] }
    }

    fn whole(&mut self) -> Parsed<Expr> {
        let expr = self.expr()?;
        match self.cursor {
            end if end == self.len => Ok(expr),
            _ if self.peek() == u32::from(')') => Err(self.error("Unmatched closing ')'")),
            end if end == self.len + 1 && self.chars[self.len - 1] == u32::from('\\') => {
                Err(self.error("Unescaped trailing backslash"))
            }
            _ => Err(self.error("Unexpected internal error")),
        }
    }

    fn error(&self, what: &'static str) -> Error {
        Error::Syntax { what: what.into(), at: self.cursor.saturating_sub(1) }
    }

    /// Parses a nested group or class, up to the depth limit.
    fn nest<T>(&mut self, parse: impl FnOnce(&mut Parser) -> Parsed<T>) -> Parsed<T> {
        self.nested += 1;
        if self.nested > NEST_MAX {
            return Err(Error::TooLarge("nesting"));
        }
        let parsed = parse(self);
        self.nested -= 1;
        parsed
    }

    fn expr(&mut self) -> Parsed<Expr> {
        let mut alternatives = vec![self.sequence()?];
        while self.peek() == u32::from('|') {
            self.next();
            alternatives.push(self.sequence()?);
        }
        Ok(Expr { alternatives })
    }

    fn sequence(&mut self) -> Parsed<Vec<Node>> {
        let mut nodes = Vec::new();
        loop {
            let Some(next) = char::from_u32(self.peek()) else {
                let atom = self.atom()?;
                nodes.push(self.closure(atom)?);
                continue;
            };
            let node = match next {
                '(' => {
                    nodes.extend(self.nest(Parser::group)?);
                    continue;
                }
                '[' => {
                    self.refuse_canonical()?;
                    let set = self.nest(|parser| parser.class(true))?;
                    self.set(set)?
                }
                '^' => {
                    self.next();
                    if self.has(Flags::MULTILINE) {
                        Node::Caret { unix_lines: self.has(Flags::UNIX_LINES) }
                    } else {
                        Node::Begin
                    }
                }
                '$' => {
                    self.next();
                    Node::Dollar {
                        multiline: self.has(Flags::MULTILINE),
                        unix_lines: self.has(Flags::UNIX_LINES),
                    }
                }
                '.' => {
                    self.next();
                    let set = self.any();
                    self.set(set)?
                }
                '|' | ')' => break,
                '?' | '*' | '+' => {
                    self.next();
                    return Err(Error::Syntax {
                        what: format!("Dangling meta character '{next}'").into(),
                        at: self.cursor.saturating_sub(1),
                    });
                }
                '\0' if self.cursor >= self.len => break,
                _ => self.atom()?,
            };
            nodes.push(self.closure(node)?);
        }
        Ok(nodes)
    }

    fn any(&self) -> ClassSet {
        if self.has(Flags::DOTALL) {
            ClassSet::all()
        } else if self.has(Flags::UNIX_LINES) {
            ClassSet::new(vec![(0xa, 0xa)]).negate()
        } else {
            ClassSet::new(vec![(0xa, 0xa), (0xd, 0xd), (0x85, 0x85), (0x2028, 0x2029)]).negate()
        }
    }

    fn refuse_canonical(&self) -> Parsed<()> {
        if self.has(Flags::CANON_EQ) { Err(Error::Unsupported("canonical equivalence")) } else { Ok(()) }
    }

    /// Parses literal characters up to a special one, or an escape that is not literal.
    fn atom(&mut self) -> Parsed<Node> {
        self.refuse_canonical()?;
        let mut slice = Vec::new();
        let mut points = false;
        // Start of the last literal, to which a quantifier applies.
        let mut last = self.cursor;
        let mut next = self.peek();
        loop {
            match char::from_u32(next) {
                Some('*' | '+' | '?' | '{') => {
                    if slice.len() > 1 {
                        self.cursor = last;
                        slice.pop();
                    }
                    break;
                }
                Some('$' | '.' | '^' | '(' | '[' | '|' | ')') => break,
                Some('\\') => {
                    let letter = self.next_escaped();
                    if letter == u32::from('p') || letter == u32::from('P') {
                        if !slice.is_empty() {
                            self.unread();
                            break;
                        }
                        let set = self.property()?;
                        return self.set(set);
                    }
                    self.unread();
                    last = self.cursor;
                    match self.escape(slice.is_empty())? {
                        escape::Escaped::Char(code) => {
                            slice.push(code);
                            points |= is_supplementary(code);
                            next = self.peek();
                        }
                        escape::Escaped::Node(node) if slice.is_empty() => return Ok(node),
                        escape::Escaped::Set(set) if slice.is_empty() => return self.set(set),
                        _ => {
                            self.cursor = last;
                            break;
                        }
                    }
                }
                Some('\0') if self.cursor >= self.len => break,
                _ => {
                    last = self.cursor;
                    slice.push(next);
                    points |= is_supplementary(next);
                    next = self.next();
                }
            }
        }
        match slice[..] {
            [only] => {
                let set = self.single(only);
                self.set(set)
            }
            _ => Ok(self.slice(slice, points)),
        }
    }

    fn slice(&self, mut chars: Vec<u32>, points: bool) -> Node {
        let fold = self.flags.fold();
        for code in &mut chars {
            *code = match fold {
                Fold::None => *code,
                Fold::Ascii => case::ascii_lower(*code),
                Fold::Unicode => case::fold(*code),
            };
        }
        Node::Slice { chars, fold, points }
    }

    /// The set for one literal character.
    fn single(&self, code: u32) -> ClassSet {
        match self.flags.fold() {
            Fold::Unicode => {
                let upper = case::upper(code);
                let lower = case::lower(upper);
                if upper != lower {
                    return case::folding_to(lower);
                }
            }
            Fold::Ascii => {
                let (lower, upper) = (case::ascii_lower(code), case::ascii_upper(code));
                return self.one_of(&[lower, upper]);
            }
            Fold::None => {}
        }
        self.one_of(&[code])
    }

    fn one_of(&self, codes: &[u32]) -> ClassSet {
        let ranges = codes.iter().map(|code| (*code, *code)).collect();
        if codes.iter().any(|code| is_supplementary(*code)) {
            ClassSet::new(ranges)
        } else {
            ClassSet::of_units(ranges)
        }
    }

    fn set(&mut self, set: ClassSet) -> Parsed<Node> {
        self.by_points |= !set.units;
        if let Some(known) = self.sets.get(&set) {
            return Ok(Node::Set(Arc::clone(known)));
        }
        self.count_ranges(&set)?;
        let shared = Arc::new(set.clone());
        self.sets.insert(set, Arc::clone(&shared));
        Ok(Node::Set(shared))
    }

    /// Bounds the time and memory for classes.
    fn count_ranges(&mut self, set: &ClassSet) -> Parsed<()> {
        self.ranges += set.ranges().len();
        if self.ranges > RANGES_MAX { Err(Error::TooLarge("character classes")) } else { Ok(()) }
    }

    /// Applies the quantifier that follows the node, if any.
    fn closure(&mut self, node: Node) -> Parsed<Node> {
        let Some(repeat) = self.quantifier()? else { return Ok(node) };
        let class_loop =
            matches!(node, Node::Set(_)) && repeat.greed == Greed::Greedy && repeat.max == REPEATS_MAX;
        Ok(Node::Atom { atom: Box::new(node), repeat, class_loop })
    }

    /// Parses an optional quantifier.
    fn quantifier(&mut self) -> Parsed<Option<Repeat>> {
        let (min, max) = match char::from_u32(self.peek()) {
            Some('?') => (0, 1),
            Some('*') => (0, REPEATS_MAX),
            Some('+') => (1, REPEATS_MAX),
            Some('{') => self.counts()?,
            _ => return Ok(None),
        };
        let greed = match char::from_u32(self.next()) {
            Some('?') => Greed::Lazy,
            Some('+') => Greed::Possessive,
            _ => Greed::Greedy,
        };
        if greed != Greed::Greedy {
            self.next();
        }
        Ok(Some(Repeat { min, max, greed }))
    }

    /// Parses the counts in braces; leaves the cursor at the closing brace.
    fn counts(&mut self) -> Parsed<(i32, i32)> {
        let mut next = self.skip();
        if digit(next).is_none() {
            return Err(self.error("Illegal repetition"));
        }
        let min;
        (min, next) = self.count(next)?;
        let mut max = min;
        if next == u32::from(',') {
            next = self.read();
            max = REPEATS_MAX;
            if next != u32::from('}') {
                (max, next) = self.count(next)?;
            }
        }
        if next != u32::from('}') {
            return Err(self.error("Unclosed counted closure"));
        }
        if max < min {
            return Err(self.error("Illegal repetition range"));
        }
        self.unread();
        Ok((min, max))
    }

    /// Parses a number that begins with `next`; returns it and the character after it.
    fn count(&mut self, mut next: u32) -> Parsed<(i32, u32)> {
        let mut count = 0i32;
        while let Some(digit) = digit(next) {
            let longer = count.checked_mul(10).and_then(|count| count.checked_add(digit));
            count = longer.ok_or_else(|| self.error("Illegal repetition range"))?;
            next = self.read();
        }
        Ok((count, next))
    }
}

fn digit(code: u32) -> Option<i32> {
    char::from_u32(code).and_then(|c| c.to_digit(10)).map(|digit| digit as i32)
}
