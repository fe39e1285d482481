//! What an expression is compiled to: instructions for the backtracking matcher.
//!
//! The program is a few instructions for each part of the expression; counted repetitions loop and are
//! not unrolled, so that it is bounded by the length of the expression.

mod compile;

use std::sync::Arc;

use crate::node::{Fold, Greed, Repeat};
use crate::set::ClassSet;

pub(crate) use compile::compile;

/// A position in the program.
pub(crate) type Pc = u32;
/// A local variable of the matcher.
pub(crate) type Slot = u32;

/// A class of characters, with a table for the first 256.
#[derive(Debug)]
pub(crate) struct Class {
    low: [u64; 4],
    set: Arc<ClassSet>,
}

impl Class {
    fn new(set: Arc<ClassSet>) -> Class {
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

    /// Whether it is compared with code units.
    #[inline]
    pub(crate) fn units(&self) -> bool {
        self.set.units
    }
}

/// Slots of a look-behind: its position, the first one to try, the height of the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BehindSlots {
    pub(crate) origin: Slot,
    pub(crate) from: Slot,
    pub(crate) height: Slot,
}

/// Slots of a repeated atom: iterations done, start of this one, height of the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtomSlots {
    pub(crate) count: Slot,
    pub(crate) begin: Slot,
    pub(crate) height: Slot,
}

/// Slots of a loop: iterations begun, start of this one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopSlots {
    pub(crate) count: Slot,
    pub(crate) begin: Slot,
}

/// An instruction. Unless it says otherwise, the next one follows.
#[derive(Debug)]
pub(crate) enum Op {
    /// One character of a class.
    Class(u32),
    /// Literal characters.
    Slice(u32),
    /// Characters of a class, as often as allowed.
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
    /// Continues; if that fails, at `other`.
    Split {
        other: Pc,
    },
    /// Continues at `other`; if that fails, here.
    SplitLazy {
        other: Pc,
    },
    Jump(Pc),
    /// A group begins.
    GroupBegin(Slot),
    /// A group that captures ends.
    GroupEnd {
        begin: Slot,
        group: u32,
    },
    /// Begins what is matched in one way only: remembers the height of the stack, and the position.
    Mark {
        height: Slot,
        origin: Slot,
    },
    /// Ends it: forgets the other ways.
    Cut(Slot),
    /// Ends a look-ahead: forgets the other ways and goes back.
    CutBack {
        height: Slot,
        origin: Slot,
    },
    /// Begins a negative look-ahead, which if its body fails continues at `after`.
    MarkNot {
        height: Slot,
        after: Pc,
    },
    /// The body of a negative look-around matched: forgets the other ways and fails.
    CutFail(Slot),
    /// Begins a look-behind. If it is negative and fails it continues at `after`.
    Behind {
        slots: BehindSlots,
        min: i32,
        max: i32,
        points: bool,
        after: Option<Pc>,
    },
    /// Tries a look-behind one character earlier; entered only by backtracking.
    BehindEarlier {
        slots: BehindSlots,
        points: bool,
    },
    /// Ends the body of a look-behind.
    BehindEnd {
        slots: BehindSlots,
        negated: bool,
    },
    /// Before the first iteration of an atom.
    AtomInit(AtomSlots),
    /// Before each iteration of an atom: continues with it, or at `after`.
    AtomNext {
        slots: AtomSlots,
        repeat: Repeat,
        after: Pc,
    },
    /// Enters a further iteration of a lazy one; entered only by backtracking.
    AtomMore(AtomSlots),
    /// Behind each iteration; continues at `next`, or at `after` if the iteration was empty.
    AtomEnd {
        slots: AtomSlots,
        repeat: Repeat,
        group: Option<u32>,
        next: Pc,
        after: Pc,
    },
    /// Before a loop: continues with its body, or at `after`.
    LoopInit {
        slots: LoopSlots,
        repeat: Repeat,
        after: Pc,
    },
    /// Behind each iteration of a loop: continues at `body`, or after this.
    LoopNext {
        slots: LoopSlots,
        repeat: Repeat,
        body: Pc,
        memory: Option<u32>,
    },
    /// Enters a further iteration of a lazy loop; entered only by backtracking.
    LoopMore {
        slots: LoopSlots,
        body: Pc,
    },
    Accept,
}

/// Literal characters that follow each other.
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
    /// Groups that capture.
    pub(crate) groups: u32,
    /// Loops that remember where they failed.
    pub(crate) memories: u32,
    /// Whether only the start can match.
    pub(crate) anchored: bool,
    /// Whether a search goes from code point to code point.
    pub(crate) by_points: bool,
    /// Code units that a match has at least.
    pub(crate) min_len: usize,
}

impl Repeat {
    /// Whether another iteration is allowed after `count`.
    pub(crate) fn allows(self, count: u32) -> bool {
        i64::from(count) < i64::from(self.max)
    }

    /// Whether another iteration is needed after `count`.
    pub(crate) fn needs(self, count: u32) -> bool {
        i64::from(count) < i64::from(self.min)
    }

    pub(crate) fn is_lazy(self) -> bool {
        self.greed == Greed::Lazy
    }
}
