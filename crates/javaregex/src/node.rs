//! The parsed expression.
//!
//! The nodes are those that Java's engine distinguishes, because it matches them differently. Java
//! never retries a different match of an atom, or of a group with only one way to match
//! (`deterministic`). Groups captured in it stay captured when the engine backtracks.

use std::sync::Arc;

use crate::set::ClassSet;

/// Java's value for "no upper bound".
pub(crate) const REPEATS_MAX: i32 = i32::MAX;

/// How letters of different case compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// As different letters.
    None,
    /// ASCII letters compare as equal.
    Ascii,
    /// Letters compare as equal by Unicode's simple case mappings.
    Unicode,
}

/// Which repetition count is tried first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Greed {
    /// The greatest, then smaller ones.
    Greedy,
    /// The smallest, then greater ones.
    Lazy,
    /// Only the greatest.
    Possessive,
}

/// A range of repetition counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeat {
    pub(crate) min: i32,
    pub(crate) max: i32,
    pub(crate) greed: Greed,
}

/// Alternatives, each a sequence.
#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) alternatives: Vec<Vec<Node>>,
}

/// A group in parentheses; `capture` is its number if it captures.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) capture: Option<u32>,
    pub(crate) body: Expr,
}

/// Range of distances before the current position at which a look-behind may begin, in code units
/// or (`points`) code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LookBehind {
    pub(crate) min: i32,
    pub(crate) max: i32,
    pub(crate) points: bool,
}

/// A part of a sequence.
#[derive(Debug)]
pub(crate) enum Node {
    /// One character.
    Set(Arc<ClassSet>),
    /// Literal characters, folded according to `fold`.
    Slice { chars: Vec<u32>, fold: Fold, points: bool },
    /// `^`, `\A`.
    Begin,
    /// `\z`.
    End,
    /// `^` with `MULTILINE`.
    Caret { unix_lines: bool },
    /// `$`, `\Z`.
    Dollar { multiline: bool, unix_lines: bool },
    /// `\G`: the end of the previous match, which is the start of the text for the first search.
    LastMatch,
    /// `\b`, `\B`.
    Bound { negated: bool, unicode: bool },
    /// `\b{g}`.
    GraphemeBound,
    /// `\R`.
    LineEnding,
    /// `\X`.
    Grapheme,
    /// `\1`, `\k<name>`.
    BackReference { group: u32, fold: Fold },
    /// A group without a quantifier.
    Group(Group),
    /// An optional group, matched with backtracking into it.
    Optional { group: Group, lazy: bool },
    /// A repeated group that can match in only one way.
    Repeated { group: Group, repeat: Repeat },
    /// Any other repeated group. `id` numbers these groups.
    Loop { group: Group, repeat: Repeat, id: usize },
    /// A repeated atom, or a group with a possessive quantifier; matched in only one way.
    Atom { atom: Box<Node>, repeat: Repeat, class_loop: bool },
    /// `(?>X)`.
    Independent(Expr),
    /// `(?=X)`, `(?!X)`, `(?<=X)`, `(?<!X)`.
    LookAround { body: Expr, negated: bool, look_behind: Option<LookBehind> },
}
