//! The backtracking matcher: runs a program over a string in a bounded number of steps.
//!
//! An explicit stack contains the remaining alternatives and the changes to undo. When Java leaves
//! a part that matches in only one way, it drops both, so groups captured in it stay captured.
//! Truncating the stack has the same effect. The results are therefore Java's, which a search for
//! the best match would not give.

mod position;

use std::cell::RefCell;

use crate::error::TooManySteps;
use crate::node::{Fold, Greed, Repeat};
use crate::program::{AtomSlots, LookBehindSlots, LoopSlots, Op, Pc, Program, Slot};
use crate::text::Text;
use crate::unicode::{case, grapheme};

/// Position of a group that has not matched.
const NONE: u32 = u32::MAX;
/// Number of characters of a class that count as one step, because comparing them is cheap.
const CLASS_STEP: usize = 8;
/// Stack entries that are retained between searches.
const STACK_RETAINED: usize = 4096;

/// Action when an attempt fails.
#[derive(Clone, Copy)]
enum Entry {
    /// Continue here.
    Choice { pc: Pc, at: u32 },
    /// Continue here, and record that the loop body failed at this position.
    LoopChoice { pc: Pc, at: u32, failure_set: u32 },
    /// Continue with one character less of a class, if the end stays above `min_end`.
    ClassLess { pc: Pc, at: u32, min_end: u32, units: bool },
    /// Continue with one character more of a class.
    ClassMore { pc: Pc, at: u32, count: u32 },
    /// Restore a slot.
    Slot { slot: Slot, value: u32 },
    /// Restore a group.
    Group { group: u32, begin: u32, end: u32 },
}

/// Buffers of a search, reused by the next one.
#[derive(Default)]
struct Scratch {
    stack: Vec<Entry>,
    slots: Vec<u32>,
    // Begin and end of each group.
    groups: Vec<(u32, u32)>,
    // For each loop, a bit set of the positions at which its body failed.
    failure_sets: Vec<Vec<u64>>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Which part of the string must match.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Any part of the string.
    Find,
    /// The whole string.
    Whole,
}

/// Returns whether the program matches, and the number of steps.
///
/// # Errors
/// [`TooManySteps`], after `limit` steps.
pub(crate) fn search(
    program: &Program,
    text: impl Text,
    mode: Mode,
    limit: u64,
) -> (Result<bool, TooManySteps>, u64) {
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.begin(program);
        let mut matcher = Matcher { program, text, mode, scratch, last: 0, steps: 0, limit };
        let found = matcher.search();
        let steps = matcher.steps;
        scratch.end();
        (found, steps)
    })
}

impl Scratch {
    fn begin(&mut self, program: &Program) {
        self.slots.clear();
        self.slots.resize(program.slots as usize, 0);
        self.groups.clear();
        self.groups.resize(program.groups as usize + 1, (NONE, NONE));
        self.failure_sets.iter_mut().for_each(Vec::clear);
        if self.failure_sets.len() < program.failure_sets as usize {
            self.failure_sets.resize_with(program.failure_sets as usize, Vec::new);
        }
    }

    fn end(&mut self) {
        self.stack.clear();
        self.stack.shrink_to(STACK_RETAINED);
        self.slots.shrink_to(STACK_RETAINED);
        self.groups.shrink_to(STACK_RETAINED);
        self.failure_sets.truncate(1);
        self.failure_sets.iter_mut().for_each(|failure_set| failure_set.shrink_to(STACK_RETAINED));
    }
}

struct Matcher<'a, T> {
    program: &'a Program,
    text: T,
    mode: Mode,
    scratch: &'a mut Scratch,
    // End of the last part that matches in only one way; used by Java's grapheme boundary.
    last: usize,
    steps: u64,
    limit: u64,
}

/// Outcome of an instruction.
enum StepResult {
    Continue(Pc, usize),
    Fail,
    Accept,
}

impl<T: Text> Matcher<'_, T> {
    fn search(&mut self) -> Result<bool, TooManySteps> {
        let mut at = 0;
        if self.mode == Mode::Whole || self.program.anchored {
            return self.attempt(0);
        }
        // As in Java, a failed attempt does not reset groups.
        while at + self.program.min_len <= self.text.len() {
            if self.attempt(at)? {
                return Ok(true);
            }
            at += match self.program.by_points && at < self.text.len() {
                true => self.text.point(at).1,
                false => 1,
            };
        }
        Ok(false)
    }

    fn attempt(&mut self, at: usize) -> Result<bool, TooManySteps> {
        let (mut pc, mut at) = (0, at);
        self.scratch.stack.clear();
        loop {
            debug_assert!(at <= self.text.len(), "a match stays within the text");
            self.step(1)?;
            match self.run(pc, at)? {
                StepResult::Continue(next, position) => (pc, at) = (next, position),
                StepResult::Accept => return Ok(true),
                StepResult::Fail => match self.backtrack()? {
                    Some((next, position)) => (pc, at) = (next, position),
                    None => return Ok(false),
                },
            }
        }
    }

    #[inline]
    fn step(&mut self, steps: u64) -> Result<(), TooManySteps> {
        self.steps += steps;
        if self.steps > self.limit { Err(TooManySteps { limit: self.limit }) } else { Ok(()) }
    }

    /// Undoes the changes of the failed attempt and returns the next alternative.
    fn backtrack(&mut self) -> Result<Option<(Pc, usize)>, TooManySteps> {
        while let Some(entry) = self.scratch.stack.pop() {
            self.step(1)?;
            match entry {
                Entry::Choice { pc, at } => return Ok(Some((pc, at as usize))),
                Entry::LoopChoice { pc, at, failure_set } => {
                    self.record_failure(failure_set, at);
                    return Ok(Some((pc, at as usize)));
                }
                Entry::ClassLess { pc, at, min_end, units } => {
                    let width = if units { 1 } else { self.text.point_before(at as usize).1 as u32 };
                    let at = min_end.max(at - width);
                    if at > min_end {
                        self.push(Entry::ClassLess { pc, at, min_end, units });
                    }
                    return Ok(Some((pc, at as usize)));
                }
                Entry::ClassMore { pc, at, count } => {
                    if let Some(found) = self.class_more(pc, at as usize, count) {
                        return Ok(Some(found));
                    }
                }
                Entry::Slot { slot, value } => self.scratch.slots[slot as usize] = value,
                Entry::Group { group, begin, end } => {
                    self.scratch.groups[group as usize] = (begin, end);
                }
            }
        }
        Ok(None)
    }

    #[inline]
    fn push(&mut self, entry: Entry) {
        self.scratch.stack.push(entry);
    }

    fn choice(&mut self, pc: Pc, at: usize) {
        self.push(Entry::Choice { pc, at: at as u32 });
    }

    #[inline]
    fn slot(&self, slot: Slot) -> u32 {
        self.scratch.slots[slot as usize]
    }

    /// Sets a slot that no earlier alternative reads.
    fn put(&mut self, slot: Slot, value: usize) {
        self.scratch.slots[slot as usize] = value as u32;
    }

    /// Sets a slot; backtracking restores it.
    fn set(&mut self, slot: Slot, value: u32) {
        let entry = &mut self.scratch.slots[slot as usize];
        let old = std::mem::replace(entry, value);
        self.push(Entry::Slot { slot, value: old });
    }

    fn capture(&mut self, group: u32, begin: u32, end: usize) {
        let entry = &mut self.scratch.groups[group as usize];
        let (old_begin, old_end) = std::mem::replace(entry, (begin, end as u32));
        self.push(Entry::Group { group, begin: old_begin, end: old_end });
    }

    fn height(&self) -> usize {
        self.scratch.stack.len()
    }

    /// Drops alternatives and undo entries above a stack height.
    fn cut(&mut self, height: u32) {
        self.scratch.stack.truncate(height as usize);
    }

    fn record_failure(&mut self, failure_set: u32, at: u32) {
        let words = &mut self.scratch.failure_sets[failure_set as usize];
        let word = at as usize / 64;
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        words[word] |= 1 << (at % 64);
    }

    fn has_failed(&self, failure_set: u32, at: usize) -> bool {
        let words = &self.scratch.failure_sets[failure_set as usize];
        words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 != 0)
    }

    /// Executes one instruction.
    #[inline]
    fn run(&mut self, pc: Pc, at: usize) -> Result<StepResult, TooManySteps> {
        let program = self.program;
        let text = self.text;
        let next = |holds: bool| if holds { StepResult::Continue(pc + 1, at) } else { StepResult::Fail };
        Ok(match &program.ops[pc as usize] {
            Op::Class(class) => match self.class_at(*class, at) {
                Some(width) => StepResult::Continue(pc + 1, at + width),
                None => StepResult::Fail,
            },
            Op::Slice(slice) => match position::slice_end(text, &program.slices[*slice as usize], at) {
                Some(end) => StepResult::Continue(pc + 1, end),
                None => StepResult::Fail,
            },
            Op::ClassRepeat { class, repeat, class_loop } => {
                return self.class_repeat(pc, at, *class, *repeat, *class_loop);
            }
            Op::Begin | Op::LastMatch => next(at == 0),
            Op::End => next(at == text.len()),
            Op::Caret { unix_lines } => next(position::begins_line(text, at, *unix_lines)),
            Op::Dollar { multiline, unix_lines } => {
                next(position::ends_line(text, at, *multiline, *unix_lines))
            }
            Op::Bound { negated, unicode } => next(position::is_bound(text, at, *unicode) != *negated),
            Op::GraphemeBound => next(position::is_grapheme_bound(text, at, self.last)),
            Op::LineEnding => self.line_ending(pc, at),
            Op::Grapheme if at < text.len() => {
                StepResult::Continue(pc + 1, grapheme::next_boundary(text, at))
            }
            Op::Grapheme => StepResult::Fail,
            Op::BackReference { group, fold } => self.back_reference(pc, at, *group, *fold)?,
            Op::Split { other } => {
                self.choice(*other, at);
                StepResult::Continue(pc + 1, at)
            }
            Op::SplitLazy { other } => {
                self.choice(pc + 1, at);
                StepResult::Continue(*other, at)
            }
            Op::Jump(to) => StepResult::Continue(*to, at),
            Op::GroupBegin(begin) => {
                self.set(*begin, at as u32);
                StepResult::Continue(pc + 1, at)
            }
            Op::GroupEnd { begin, group } => {
                self.capture(*group, self.slot(*begin), at);
                StepResult::Continue(pc + 1, at)
            }
            Op::Accept if self.mode == Mode::Whole && at != text.len() => StepResult::Fail,
            Op::Accept => StepResult::Accept,
            op => self.run_part(op, pc, at),
        })
    }

    /// Executes an instruction of an atomic part or of a loop.
    fn run_part(&mut self, op: &Op, pc: Pc, at: usize) -> StepResult {
        match op {
            Op::Mark { height, origin } => {
                self.put(*height, self.height());
                self.put(*origin, at);
                StepResult::Continue(pc + 1, at)
            }
            Op::Cut(height) => {
                self.cut(self.slot(*height));
                self.last = at;
                StepResult::Continue(pc + 1, at)
            }
            Op::CutBack { height, origin } => {
                self.cut(self.slot(*height));
                self.last = at;
                StepResult::Continue(pc + 1, self.slot(*origin) as usize)
            }
            Op::MarkNot { height, after } => {
                self.put(*height, self.height());
                self.choice(*after, at);
                StepResult::Continue(pc + 1, at)
            }
            Op::CutFail(height) => {
                self.cut(self.slot(*height));
                self.last = at;
                StepResult::Fail
            }
            Op::LookBehind { slots, min, max, points, after } => {
                self.look_behind(pc, at, *slots, (*min, *max, *points), *after)
            }
            Op::LookBehindRetry { slots, points } => self.retry_look_behind(pc, at, *slots, *points),
            Op::LookBehindEnd { slots, negated } => {
                let origin = self.slot(slots.origin);
                if at as u32 != origin {
                    return StepResult::Fail;
                }
                self.cut(self.slot(slots.height));
                if *negated { StepResult::Fail } else { StepResult::Continue(pc + 1, origin as usize) }
            }
            Op::AtomInit(slots) => {
                self.set(slots.count, 0);
                StepResult::Continue(pc + 1, at)
            }
            Op::AtomNext { slots, repeat, after } => self.atom_next(pc, at, *slots, *repeat, *after),
            Op::AtomMore(slots) => {
                self.put(slots.height, self.height());
                self.put(slots.begin, at);
                StepResult::Continue(pc + 1, at)
            }
            Op::AtomEnd { slots, repeat, group, next, after } => {
                self.atom_end(at, *slots, *repeat, *group, (*next, *after))
            }
            Op::LoopInit { slots, repeat, after } => {
                self.set(slots.count, 1);
                match (repeat.needs(0) || repeat.allows(0), repeat.is_lazy()) {
                    _ if repeat.needs(0) => StepResult::Continue(pc + 1, at),
                    (false, _) => StepResult::Continue(*after, at),
                    (true, true) => {
                        self.choice(pc + 1, at);
                        StepResult::Continue(*after, at)
                    }
                    (true, false) => {
                        self.choice(*after, at);
                        StepResult::Continue(pc + 1, at)
                    }
                }
            }
            Op::LoopNext { slots, repeat, body, failure_set } => {
                self.loop_next(pc, at, *slots, *repeat, (*body, *failure_set))
            }
            Op::LoopMore { slots, body } => {
                self.set(slots.count, self.slot(slots.count).saturating_add(1));
                StepResult::Continue(*body, at)
            }
            _ => unreachable!("`run` executes the other instructions"),
        }
    }

    /// The width of the character at a position, if the class contains it.
    #[inline]
    fn class_at(&self, class: u32, at: usize) -> Option<usize> {
        if at >= self.text.len() {
            return None;
        }
        let class = &self.program.classes[class as usize];
        let (code, width) = if class.units() { (self.text.unit(at), 1) } else { self.text.point(at) };
        class.contains(code).then_some(width)
    }

    fn class_repeat(
        &mut self,
        pc: Pc,
        at: usize,
        class: u32,
        repeat: Repeat,
        class_loop: bool,
    ) -> Result<StepResult, TooManySteps> {
        let lazy = repeat.is_lazy();
        let max = if lazy { repeat.min as u32 } else { repeat.max as u32 };
        let (mut end, mut count, mut min_end) = (at, 0, at);
        while count < max {
            let Some(width) = self.class_at(class, end) else { break };
            end += width;
            count += 1;
            if count == repeat.min as u32 {
                min_end = end;
            }
        }
        self.step((end - at).div_ceil(CLASS_STEP) as u64)?;
        if !class_loop && count > 0 {
            self.last = end;
        }
        if repeat.needs(count) {
            return Ok(StepResult::Fail);
        }
        if lazy {
            self.push(Entry::ClassMore { pc, at: end as u32, count });
        } else if repeat.greed == Greed::Greedy && end > min_end {
            let units = self.program.classes[class as usize].units();
            let (at, min_end) = (end as u32, min_end as u32);
            self.push(Entry::ClassLess { pc: pc + 1, at, min_end, units });
        }
        Ok(StepResult::Continue(pc + 1, end))
    }

    fn class_more(&mut self, pc: Pc, at: usize, count: u32) -> Option<(Pc, usize)> {
        let Op::ClassRepeat { class, repeat, .. } = &self.program.ops[pc as usize] else { return None };
        if !repeat.allows(count) {
            return None;
        }
        let end = at + self.class_at(*class, at)?;
        self.last = end;
        self.push(Entry::ClassMore { pc, at: end as u32, count: count + 1 });
        Some((pc + 1, end))
    }

    fn line_ending(&mut self, pc: Pc, at: usize) -> StepResult {
        let unit = |at: usize| (at < self.text.len()).then(|| self.text.unit(at));
        match unit(at) {
            Some(0xd) if unit(at + 1) == Some(0xa) => {
                self.choice(pc + 1, at + 1);
                StepResult::Continue(pc + 1, at + 2)
            }
            Some(0xa..=0xd | 0x85 | 0x2028 | 0x2029) => StepResult::Continue(pc + 1, at + 1),
            _ => StepResult::Fail,
        }
    }

    fn back_reference(
        &mut self,
        pc: Pc,
        at: usize,
        group: u32,
        fold: Fold,
    ) -> Result<StepResult, TooManySteps> {
        let (begin, end) = match self.scratch.groups.get(group as usize) {
            Some((begin, end)) if *begin != NONE => (*begin as usize, *end as usize),
            _ => return Ok(StepResult::Fail),
        };
        // Java may restore a group only partly, so it can end before it begins.
        let len = end.saturating_sub(begin);
        if at + len > self.text.len() {
            return Ok(StepResult::Fail);
        }
        self.step(len.div_ceil(CLASS_STEP) as u64)?;
        let holds = match fold {
            Fold::None => (0..len).all(|unit| self.text.unit(at + unit) == self.text.unit(begin + unit)),
            _ => self.equals_folded(at, begin, len, fold == Fold::Unicode),
        };
        Ok(if holds { StepResult::Continue(pc + 1, at + len) } else { StepResult::Fail })
    }

    fn equals_folded(&self, mut left: usize, mut right: usize, len: usize, unicode: bool) -> bool {
        let mut rest = len;
        while rest > 0 && left < self.text.len() && right < self.text.len() {
            let ((one, width), (two, other_width)) = (self.text.point(left), self.text.point(right));
            let (one_upper, two_upper) = (case::upper(one), case::upper(two));
            let equal = one == two
                || unicode && (one_upper == two_upper || case::lower(one_upper) == case::lower(two_upper))
                || !unicode && case::ascii_lower(one) == case::ascii_lower(two);
            if !equal {
                return false;
            }
            left += width;
            right += other_width;
            rest = rest.saturating_sub(width);
        }
        true
    }

    fn look_behind(
        &mut self,
        pc: Pc,
        at: usize,
        slots: LookBehindSlots,
        (min, max, points): (i32, i32, bool),
        after: Option<Pc>,
    ) -> StepResult {
        // Lengths are Java `int`s, which overflow.
        let (min, max) = match points {
            true => (self.units_before(at, min), self.units_before(at, max)),
            false => (min, max),
        };
        let origin = at as i32;
        let from = origin.wrapping_sub(max).max(0);
        let begin = origin.wrapping_sub(min);
        self.put(slots.height, self.height());
        self.put(slots.origin, at);
        self.put(slots.from, from as usize);
        if let Some(after) = after {
            self.choice(after, at);
        }
        if begin < from || begin > origin {
            return StepResult::Fail;
        }
        self.choice(pc + 1, begin as usize);
        StepResult::Continue(pc + 2, begin as usize)
    }

    /// Number of code units in the `points` code points before a position.
    fn units_before(&self, at: usize, points: i32) -> i32 {
        let mut from = at;
        for _ in 0..points.max(0) {
            if from == 0 {
                break;
            }
            from -= self.text.point_before(from).1;
        }
        (at - from) as i32
    }

    fn retry_look_behind(&mut self, pc: Pc, at: usize, slots: LookBehindSlots, points: bool) -> StepResult {
        let from = self.slot(slots.from) as usize;
        if at <= from {
            return StepResult::Fail;
        }
        let width = if points { self.text.point_before(at).1 } else { 1 };
        let earlier = at - width;
        if earlier < from {
            return StepResult::Fail;
        }
        self.choice(pc, earlier);
        StepResult::Continue(pc + 1, earlier)
    }

    fn atom_next(&mut self, pc: Pc, at: usize, slots: AtomSlots, repeat: Repeat, after: Pc) -> StepResult {
        let count = self.slot(slots.count);
        if repeat.needs(count) {
            self.put(slots.height, self.height());
            self.put(slots.begin, at);
            return StepResult::Continue(pc + 2, at);
        }
        if !repeat.allows(count) {
            return StepResult::Continue(after, at);
        }
        match repeat.greed {
            Greed::Lazy => {
                self.choice(pc + 1, at);
                StepResult::Continue(after, at)
            }
            Greed::Greedy => {
                self.choice(after, at);
                self.put(slots.height, self.height());
                self.put(slots.begin, at);
                StepResult::Continue(pc + 2, at)
            }
            Greed::Possessive => {
                self.put(slots.height, self.height());
                self.choice(after, at);
                self.put(slots.begin, at);
                StepResult::Continue(pc + 2, at)
            }
        }
    }

    fn atom_end(
        &mut self,
        at: usize,
        slots: AtomSlots,
        repeat: Repeat,
        group: Option<u32>,
        (next, after): (Pc, Pc),
    ) -> StepResult {
        let height = self.slot(slots.height);
        self.cut(height);
        self.last = at;
        let (count, begin) = (self.slot(slots.count), self.slot(slots.begin));
        let empty = at == begin as usize;
        let needed = repeat.needs(count);
        if empty && !needed {
            return match repeat.greed {
                Greed::Lazy => StepResult::Fail,
                Greed::Greedy => {
                    // Drop this iteration's choice, because it is the continuation.
                    self.cut(height - 1);
                    StepResult::Continue(after, at)
                }
                Greed::Possessive => StepResult::Continue(after, at),
            };
        }
        if let Some(group) = group {
            self.capture(group, begin, at);
        }
        // An empty required iteration satisfies all remaining required ones.
        let count = if empty { repeat.min as u32 } else { count + 1 };
        self.set(slots.count, count);
        StepResult::Continue(next, at)
    }

    fn loop_next(
        &mut self,
        pc: Pc,
        at: usize,
        slots: LoopSlots,
        repeat: Repeat,
        (body, failure_set): (Pc, Option<u32>),
    ) -> StepResult {
        let exit = StepResult::Continue(pc + 1, at);
        // An empty iteration is the last one.
        if at as u32 == self.slot(slots.begin) {
            return exit;
        }
        let count = self.slot(slots.count);
        if repeat.needs(count) {
            self.set(slots.count, count + 1);
            return StepResult::Continue(body, at);
        }
        if !repeat.allows(count) {
            return exit;
        }
        if repeat.is_lazy() {
            self.choice(pc + 2, at);
            return exit;
        }
        match failure_set {
            Some(failure_set) if self.has_failed(failure_set, at) => return exit,
            Some(failure_set) => self.push(Entry::LoopChoice { pc: pc + 1, at: at as u32, failure_set }),
            None => self.choice(pc + 1, at),
        }
        self.set(slots.count, count + 1);
        StepResult::Continue(body, at)
    }
}
