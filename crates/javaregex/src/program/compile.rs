//! Compiles a parsed expression to instructions.

use std::collections::HashMap;
use std::sync::Arc;

use super::{AtomSlots, Class, LookBehindSlots, LoopSlots, Op, Pc, Program, Slice, Slot};
use crate::extent;
use crate::node::{Expr, Group, LookBehind, Node, Repeat};
use crate::parse::Parse;
use crate::set::ClassSet;

/// Compiles a parsed expression.
pub(crate) fn compile(parse: &Parse) -> Program {
    let mut compiler = Compiler { parse, ..Compiler::new(parse) };
    compiler.expr(&parse.expr);
    compiler.op(Op::Accept);
    let min_len = usize::try_from(extent::of(&parse.expr).min).unwrap_or(0);
    Program {
        ops: compiler.ops,
        classes: compiler.classes,
        slices: compiler.slices,
        slots: compiler.slots,
        groups: parse.groups,
        failure_sets: compiler.failure_sets,
        anchored: begins_at_start(&parse.expr),
        by_points: parse.by_points,
        min_len,
    }
}

fn begins_at_start(expr: &Expr) -> bool {
    matches!(&expr.alternatives[..], [only] if matches!(only.first(), Some(Node::Begin)))
}

struct Compiler<'a> {
    parse: &'a Parse,
    ops: Vec<Op>,
    classes: Vec<Class>,
    // Keyed by the address of the shared set; the parser creates each set once.
    known: HashMap<*const ClassSet, u32>,
    slices: Vec<Slice>,
    slots: u32,
    failure_sets: u32,
}

impl Compiler<'_> {
    fn new(parse: &Parse) -> Compiler<'_> {
        Compiler {
            parse,
            ops: Vec::new(),
            classes: Vec::new(),
            known: HashMap::new(),
            slices: Vec::new(),
            slots: 0,
            failure_sets: 0,
        }
    }

    fn pc(&self) -> Pc {
        self.ops.len() as Pc
    }

    fn op(&mut self, op: Op) -> usize {
        self.ops.push(op);
        self.ops.len() - 1
    }

    fn slot(&mut self) -> Slot {
        self.slots += 1;
        self.slots - 1
    }

    fn expr(&mut self, expr: &Expr) {
        let Some((last, others)) = expr.alternatives.split_last() else { return };
        let mut ends = Vec::new();
        for alternative in others {
            let split = self.op(Op::Split { other: 0 });
            self.sequence(alternative);
            ends.push(self.op(Op::Jump(0)));
            self.ops[split] = Op::Split { other: self.pc() };
        }
        self.sequence(last);
        for end in ends {
            self.ops[end] = Op::Jump(self.pc());
        }
    }

    fn sequence(&mut self, nodes: &[Node]) {
        nodes.iter().for_each(|node| self.node(node));
    }

    fn class(&mut self, set: &Arc<ClassSet>) -> u32 {
        let classes = &mut self.classes;
        *self.known.entry(Arc::as_ptr(set)).or_insert_with(|| {
            classes.push(Class::new(Arc::clone(set)));
            classes.len() as u32 - 1
        })
    }

    fn node(&mut self, node: &Node) {
        let op = match node {
            Node::Set(set) => Op::Class(self.class(set)),
            Node::Slice { chars, fold, points } => {
                self.slices.push(Slice { chars: chars[..].into(), fold: *fold, points: *points });
                Op::Slice(self.slices.len() as u32 - 1)
            }
            Node::Begin => Op::Begin,
            Node::End => Op::End,
            Node::Caret { unix_lines } => Op::Caret { unix_lines: *unix_lines },
            Node::Dollar { multiline, unix_lines } => {
                Op::Dollar { multiline: *multiline, unix_lines: *unix_lines }
            }
            Node::LastMatch => Op::LastMatch,
            Node::Bound { negated, unicode } => Op::Bound { negated: *negated, unicode: *unicode },
            Node::GraphemeBound => Op::GraphemeBound,
            Node::LineEnding => Op::LineEnding,
            Node::Grapheme => Op::Grapheme,
            Node::BackReference { group, fold } => Op::BackReference { group: *group, fold: *fold },
            Node::Group(group) => return self.group(group),
            Node::Optional { group, lazy } => return self.optional(group, *lazy),
            Node::Repeated { group, repeat } => {
                let group_body = |compiler: &mut Self| compiler.expr(&group.body);
                return self.atom(*repeat, group.capture, group_body);
            }
            Node::Loop { group, repeat, id } => return self.repeated(group, *repeat, *id),
            Node::Atom { atom, repeat, class_loop } => match &**atom {
                Node::Set(set) => {
                    Op::ClassRepeat { class: self.class(set), repeat: *repeat, class_loop: *class_loop }
                }
                other => return self.atom(*repeat, None, |compiler| compiler.node(other)),
            },
            Node::Independent(body) => return self.independent(body),
            Node::LookAround { body, negated, look_behind: Some(distances) } => {
                return self.look_behind(body, *negated, *distances);
            }
            Node::LookAround { body, negated, look_behind: None } => return self.look_ahead(body, *negated),
        };
        self.op(op);
    }

    fn group(&mut self, group: &Group) {
        let Some(number) = group.capture else { return self.expr(&group.body) };
        let begin = self.slot();
        self.op(Op::GroupBegin(begin));
        self.expr(&group.body);
        self.op(Op::GroupEnd { begin, group: number });
    }

    fn optional(&mut self, group: &Group, lazy: bool) {
        let split = self.op(Op::Split { other: 0 });
        self.group(group);
        let other = self.pc();
        self.ops[split] = if lazy { Op::SplitLazy { other } } else { Op::Split { other } };
    }

    fn independent(&mut self, body: &Expr) {
        let (height, origin) = (self.slot(), self.slot());
        self.op(Op::Mark { height, origin });
        self.expr(body);
        self.op(Op::Cut(height));
    }

    fn look_ahead(&mut self, body: &Expr, negated: bool) {
        let (height, origin) = (self.slot(), self.slot());
        if !negated {
            self.op(Op::Mark { height, origin });
            self.expr(body);
            self.op(Op::CutBack { height, origin });
            return;
        }
        let mark = self.op(Op::MarkNot { height, after: 0 });
        self.expr(body);
        self.op(Op::CutFail(height));
        self.ops[mark] = Op::MarkNot { height, after: self.pc() };
    }

    fn look_behind(&mut self, body: &Expr, negated: bool, distances: LookBehind) {
        let slots = LookBehindSlots { origin: self.slot(), from: self.slot(), height: self.slot() };
        let begin = |after| {
            let LookBehind { min, max, points } = distances;
            Op::LookBehind { slots, min, max, points, after }
        };
        let mark = self.op(begin(None));
        self.op(Op::LookBehindRetry { slots, points: distances.points });
        self.expr(body);
        self.op(Op::LookBehindEnd { slots, negated });
        if negated {
            self.ops[mark] = begin(Some(self.pc()));
        }
    }

    /// A repetition that does not retry other matches of an iteration.
    fn atom(&mut self, repeat: Repeat, group: Option<u32>, body: impl FnOnce(&mut Self)) {
        let slots = AtomSlots { count: self.slot(), begin: self.slot(), height: self.slot() };
        self.op(Op::AtomInit(slots));
        let next = self.op(Op::AtomNext { slots, repeat, after: 0 });
        self.op(Op::AtomMore(slots));
        body(self);
        let end = self.op(Op::AtomEnd { slots, repeat, group, next: 0, after: 0 });
        let after = self.pc();
        self.ops[next] = Op::AtomNext { slots, repeat, after };
        self.ops[end] = Op::AtomEnd { slots, repeat, group, next: next as Pc, after };
    }

    fn repeated(&mut self, group: &Group, repeat: Repeat, id: usize) {
        let slots = LoopSlots { count: self.slot(), begin: self.slot() };
        let is_memoized = self.parse.memoized_loops.contains(&id);
        let failure_set = is_memoized.then_some(self.failure_sets);
        self.failure_sets += u32::from(is_memoized);
        let init = self.op(Op::LoopInit { slots, repeat, after: 0 });
        let body = self.pc();
        self.op(Op::GroupBegin(slots.begin));
        self.expr(&group.body);
        if let Some(number) = group.capture {
            self.op(Op::GroupEnd { begin: slots.begin, group: number });
        }
        // For lazy loops, `LoopMore` (entered by backtracking) precedes the code after the loop.
        self.op(Op::LoopNext { slots, repeat, body, failure_set });
        let exit = self.op(Op::Jump(0));
        self.op(Op::LoopMore { slots, body });
        let after = self.pc();
        self.ops[exit] = Op::Jump(after);
        self.ops[init] = Op::LoopInit { slots, repeat, after };
    }
}
