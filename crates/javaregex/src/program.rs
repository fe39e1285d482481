//! Compiled expressions: instructions for the backtracking matcher.
//!
//! Each node compiles to a few instructions. Counted repetitions are loops and are not unrolled, so
//! the program size is proportional to the length of the expression.

mod compile;

use std::sync::Arc;

use crate::node::{Fold, Greed, Repeat};
use crate::set::ClassSet;

pub(crate) use compile::compile;

/// A position in the program.
pub(crate) type Pc = u32;
/// A local variable of the matcher.
pub(crate) type Slot = u32;

/// A character class, with a lookup table for the first 256 code points.
#[derive(Debug)]
pub(crate) struct Class {
    low: [u64; 4],
    set: Arc<ClassSet>,
}

impl Class {
    fn new(set: Arc<ClassSet>) -> Class {
        debug_assert!(
            set.ranges().windows(2).all(|pair| pair[0].1 < pair[1].0),
            "the ranges of a class are sorted and disjoint"
        );
        let mut low = [0; 4];
        for (at, word) in low.iter_mut().enumerate() {
            let codes = (0..64).filter(|bit| set.contains(at as u32 * 64 + bit));
            *word = codes.fold(0, |word, bit| word | 1u64 << bit);
        }
        Class { low, set }
    }

    #[inline]
    pub(crate) fn contains(&self, code: u32) -> bool {
        match self.low.get(code as usize / 64) {
            Some(word) => word >> (code % 64) & 1 != 0,
            None => self.set.contains(code),
        }
    }

    /// Whether it is tested against code units.
    #[inline]
    pub(crate) fn units(&self) -> bool {
        self.set.units
    }
}

/// Slots of a look-behind: its position, the earliest start to try, the stack height.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookBehindSlots {
    pub(crate) origin: Slot,
    pub(crate) from: Slot,
    pub(crate) height: Slot,
}

/// Slots of a repeated atom: completed iterations, start of the current one, stack height.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtomSlots {
    pub(crate) count: Slot,
    pub(crate) begin: Slot,
    pub(crate) height: Slot,
}

/// Slots of a loop: started iterations, start of the current one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopSlots {
    pub(crate) count: Slot,
    pub(crate) begin: Slot,
}

/// An instruction. Execution continues with the next one, unless documented otherwise.
#[derive(Debug)]
pub(crate) enum Op {
    /// One character of a class.
    Class(u32),
    /// Literal characters.
    Slice(u32),
    /// Characters of a class, repeated.
    ClassRepeat {
        class: u32,
        repeat: Repeat,
        class_loop: bool,
    },
    Begin,
    End,
    Caret {
        unix_lines: bool,
    },
    Dollar {
        multiline: bool,
        unix_lines: bool,
    },
    LastMatch,
    Bound {
        negated: bool,
        unicode: bool,
    },
    GraphemeBound,
    LineEnding,
    Grapheme,
    BackReference {
        group: u32,
        fold: Fold,
    },
    /// Continues here; on failure at `other`.
    Split {
        other: Pc,
    },
    /// Continues at `other`; on failure here.
    SplitLazy {
        other: Pc,
    },
    Jump(Pc),
    /// Start of a group.
    GroupBegin(Slot),
    /// End of a capturing group.
    GroupEnd {
        begin: Slot,
        group: u32,
    },
    /// Start of an atomic part: stores the stack height and the position.
    Mark {
        height: Slot,
        origin: Slot,
    },
    /// End of an atomic part: drops its alternatives.
    Cut(Slot),
    /// End of a look-ahead: drops its alternatives and restores the position.
    CutBack {
        height: Slot,
        origin: Slot,
    },
    /// Start of a negative look-ahead. If its body fails, execution continues at `after`.
    MarkNot {
        height: Slot,
        after: Pc,
    },
    /// The body of a negative look-around matched: drops its alternatives and fails.
    CutFail(Slot),
    /// Start of a look-behind. If a negative one does not match, execution continues at `after`.
    LookBehind {
        slots: LookBehindSlots,
        min: i32,
        max: i32,
        points: bool,
        after: Option<Pc>,
    },
    /// Retries a look-behind one character earlier; reached only by backtracking.
    LookBehindRetry {
        slots: LookBehindSlots,
        points: bool,
    },
    /// End of the body of a look-behind.
    LookBehindEnd {
        slots: LookBehindSlots,
        negated: bool,
    },
    /// Precedes the first iteration of an atom.
    AtomInit(AtomSlots),
    /// Precedes each iteration of an atom: continues with it, or at `after`.
    AtomNext {
        slots: AtomSlots,
        repeat: Repeat,
        after: Pc,
    },
    /// Starts another iteration of a lazy atom; reached only by backtracking.
    AtomMore(AtomSlots),
    /// Follows each iteration: continues at `next`, or at `after` if the iteration was empty.
    AtomEnd {
        slots: AtomSlots,
        repeat: Repeat,
        group: Option<u32>,
        next: Pc,
        after: Pc,
    },
    /// Precedes a loop: continues with its body, or at `after`.
    LoopInit {
        slots: LoopSlots,
        repeat: Repeat,
        after: Pc,
    },
    /// Follows each iteration of a loop: continues at `body`, or after the loop.
    LoopNext {
        slots: LoopSlots,
        repeat: Repeat,
        body: Pc,
        failure_set: Option<u32>,
    },
    /// Starts another iteration of a lazy loop; reached only by backtracking.
    LoopMore {
        slots: LoopSlots,
        body: Pc,
    },
    Accept,
}

/// Consecutive literal characters.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) chars: Box<[u32]>,
    pub(crate) fold: Fold,
    pub(crate) points: bool,
}

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) ops: Vec<Op>,
    pub(crate) classes: Vec<Class>,
    pub(crate) slices: Vec<Slice>,
    pub(crate) slots: u32,
    /// Number of capturing groups.
    pub(crate) groups: u32,
    /// Number of loops that record where they failed.
    pub(crate) failure_sets: u32,
    /// Whether a match must begin at the start of the text.
    pub(crate) anchored: bool,
    /// Whether a search advances by code points.
    pub(crate) by_points: bool,
    /// Minimum number of code units in a match.
    pub(crate) min_len: usize,
}

impl Repeat {
    /// Whether another iteration is allowed after `count` iterations.
    pub(crate) fn allows(self, count: u32) -> bool {
        i64::from(count) < i64::from(self.max)
    }

    /// Whether another iteration is required after `count` iterations.
    pub(crate) fn needs(self, count: u32) -> bool {
        i64::from(count) < i64::from(self.min)
    }

    pub(crate) fn is_lazy(self) -> bool {
        self.greed == Greed::Lazy
    }
}
