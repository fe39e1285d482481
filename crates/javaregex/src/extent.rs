//! Computes the length of an expression's matches as Java does.
//!
//! Java uses these lengths to bound look-behinds, to choose how a group is repeated, and to decide
//! where a search can stop. They are Java `int`s that overflow, and the overflow affects what
//! matches.

use crate::node::{Expr, Group, Node, REPEATS_MAX, Repeat};

/// Java's value for a length that overflows.
const LENGTH_OVERFLOW: i32 = 0xfff_ffff;

/// Length and determinism of a sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) min: i32,
    pub(crate) max: i32,
    /// Whether `max` is a valid upper bound.
    pub(crate) max_valid: bool,
    /// Whether it can match in only one way.
    pub(crate) deterministic: bool,
}

impl Default for Extent {
    fn default() -> Extent {
        Extent { min: 0, max: 0, max_valid: true, deterministic: true }
    }
}

/// The extent of an expression.
pub(crate) fn of(expr: &Expr) -> Extent {
    let mut study = Study { extent: Extent::default(), before: Vec::new(), stopped_at_loop: false };
    study.expr(expr);
    study.finish()
}

struct Study {
    extent: Extent,
    // State before each choice. Java restarts from zero at a choice and adds this at the end.
    before: Vec<Extent>,
    // Java stops at a loop: nodes after it are not counted.
    stopped_at_loop: bool,
}

impl Study {
    fn finish(mut self) -> Extent {
        while let Some(before) = self.before.pop() {
            self.extent.min = self.extent.min.wrapping_add(before.min);
            self.extent.max = self.extent.max.wrapping_add(before.max);
            self.extent.max_valid &= before.max_valid;
            self.extent.deterministic = false;
        }
        self.extent.deterministic &= !self.stopped_at_loop;
        self.extent
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.alternatives[..] {
            [only] => self.sequence(only),
            alternatives => {
                let extents = alternatives.iter().map(|alternative| {
                    let mut study =
                        Study { extent: Extent::default(), before: Vec::new(), stopped_at_loop: false };
                    study.sequence(alternative);
                    study.finish()
                });
                self.choice(extents.collect());
            }
        }
    }

    fn choice(&mut self, extents: Vec<Extent>) {
        if self.stopped_at_loop {
            return;
        }
        let mut before = self.extent;
        before.min = before.min.wrapping_add(extents.iter().map(|extent| extent.min).min().unwrap_or(0));
        before.max = before.max.wrapping_add(extents.iter().map(|extent| extent.max).max().unwrap_or(0));
        before.max_valid &= extents.iter().all(|extent| extent.max_valid);
        self.before.push(before);
        self.extent = Extent::default();
    }

    fn sequence(&mut self, nodes: &[Node]) {
        for node in nodes {
            if self.stopped_at_loop {
                return;
            }
            self.node(node);
        }
    }

    fn add(&mut self, min: i32, max: i32) {
        self.extent.min = self.extent.min.wrapping_add(min);
        self.extent.max = self.extent.max.wrapping_add(max);
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Set(_) => self.add(1, 1),
            Node::Slice { chars, .. } => self.add(chars.len() as i32, chars.len() as i32),
            Node::LineEnding => self.add(1, 2),
            Node::Grapheme => {
                self.add(1, 0);
                self.extent.deterministic = false;
            }
            Node::BackReference { .. } => self.extent.max_valid = false,
            Node::Group(group) => self.expr(&group.body),
            Node::Optional { group, .. } => self.choice(vec![of(&group.body), Extent::default()]),
            Node::Repeated { group, repeat } => self.repeated(of(&group.body), *repeat),
            Node::Loop { .. } => {
                self.extent.max_valid = false;
                self.extent.deterministic = false;
                self.stopped_at_loop = true;
            }
            Node::Atom { repeat, class_loop: true, .. } => {
                let max = if self.extent.max_valid { REPEATS_MAX } else { 0 };
                self.add(repeat.min, max);
                self.extent.deterministic = false;
            }
            Node::Atom { atom, repeat, .. } => self.repeated(of_atom(atom), *repeat),
            Node::Independent(body) => {
                let extent = of(body);
                self.add(extent.min, extent.max);
                self.extent.max_valid &= extent.max_valid;
                self.extent.deterministic &= extent.deterministic;
            }
            Node::Begin
            | Node::End
            | Node::Caret { .. }
            | Node::Dollar { .. }
            | Node::LastMatch
            | Node::Bound { .. }
            | Node::GraphemeBound
            | Node::LookAround { .. } => {}
        }
    }

    fn repeated(&mut self, once: Extent, repeat: Repeat) {
        let before = self.extent;
        let times = |length: i32, count: i32, before: i32| length.wrapping_mul(count).wrapping_add(before);
        self.extent.min = times(once.min, repeat.min, before.min);
        if self.extent.min < before.min {
            self.extent.min = LENGTH_OVERFLOW;
        }
        if before.max_valid && once.max_valid {
            self.extent.max = times(once.max, repeat.max, before.max);
            self.extent.max_valid = self.extent.max >= before.max;
        } else {
            self.extent.max_valid = false;
        }
        self.extent.deterministic = once.deterministic && repeat.min == repeat.max && before.deterministic;
    }
}

fn of_atom(atom: &Node) -> Extent {
    let mut study = Study { extent: Extent::default(), before: Vec::new(), stopped_at_loop: false };
    match atom {
        Node::Group(Group { body, .. }) => study.expr(body),
        other => study.node(other),
    }
    study.finish()
}
