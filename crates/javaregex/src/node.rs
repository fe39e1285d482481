//! A parsed expression.
//!
//! The shapes are those that Java's engine distinguishes, because it matches them differently: what an
//! atom or a group of one fixed way to match (`deterministic`) has matched is never matched another way,
//! and groups that were captured in there stay captured when the engine backtracks.

use std::sync::Arc;

use crate::set::ClassSet;

/// Number that Java has for "no upper bound".
pub(crate) const REPEATS_MAX: i32 = i32::MAX;

/// How letters of different case compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// As different.
    None,
    /// Those of ASCII as equal.
    Ascii,
    /// All of Unicode's simple case mappings as equal.
    Unicode,
}

/// Which number of repetitions is tried first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Greed {
    /// The largest.
    Greedy,
    /// The smallest.
    Lazy,
    /// Only the largest.
    Possessive,
}

/// A number of repetitions.
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

/// A group in round brackets; its number if it captures.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) capture: Option<u32>,
    pub(crate) body: Expr,
}

/// How far before a position a look-behind begins to match, in code units or (`points`) code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Behind {
    pub(crate) min: i32,
    pub(crate) max: i32,
    pub(crate) points: bool,
}

/// A part of a sequence.
#[derive(Debug)]
pub(crate) enum Node {
    /// One character.
    Set(Arc<ClassSet>),
    /// Literal characters, those of Java's folding if there is one.
    Slice { chars: Vec<u32>, fold: Fold, points: bool },
    /// `^`, `\A`.
    Begin,
    /// `\z`.
    End,
    /// `^` with `MULTILINE`.
    Caret { unix_lines: bool },
    /// `$`, `\Z`.
    Dollar { multiline: bool, unix_lines: bool },
    /// `\G`: where the last match ended, which for the first is the start.
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
    /// A group that may be missing; backtracking enters it.
    Optional { group: Group, lazy: bool },
    /// A repeated group that can match in one way only.
    Repeated { group: Group, repeat: Repeat },
    /// Any other repeated group. `id` is its number among them.
    Loop { group: Group, repeat: Repeat, id: usize },
    /// A repeated atom, or a group with a possessive quantifier: matched in one way only.
    Atom { atom: Box<Node>, repeat: Repeat, class_loop: bool },
    /// `(?>X)`.
    Independent(Expr),
    /// `(?=X)`, `(?!X)`, `(?<=X)`, `(?<!X)`.
    Look { body: Expr, negated: bool, behind: Option<Behind> },
}
