//! Expressions without backtracking: translated for the `regex` crate, which searches in linear
//! time.
//!
//! The result equals that of the backtracking matcher for all strings that the translation
//! [accepts](Linear::accepts).

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Capture, Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look, Repetition};

use crate::node::{Expr, Fold, Greed, Group, Node, REPEATS_MAX, Repeat};
use crate::parse::Parse;
use crate::set::ClassSet;
use crate::unicode::case;

/// Size limit of the compiled expression. Bounds the cost of nested repetitions.
const SIZE_MAX: usize = 1 << 20;

/// An expression of the `regex` crate.
#[derive(Debug)]
pub(crate) struct Linear {
    regex: Regex,
    has_bounds: bool,
    has_ends: bool,
}

impl Linear {
    /// Translates an expression; `None` if that is impossible or the result is too large.
    pub(crate) fn new(parse: &Parse) -> Option<Linear> {
        if parse.has_back_references {
            return None;
        }
        let mut translator = Translator { has_bounds: false, has_ends: false };
        let hir = translator.expr(&parse.expr, true)?;
        let regex = RegexBuilder::new(&hir.to_string()).size_limit(SIZE_MAX).build().ok()?;
        Some(Linear { regex, has_bounds: translator.has_bounds, has_ends: translator.has_ends })
    }

    /// Whether the translation has the same meaning in this string. For non-ASCII text Java defines
    /// word boundaries differently. Java does not end a line between a carriage return and a line
    /// feed.
    pub(crate) fn accepts(&self, text: &[u8]) -> bool {
        (!self.has_bounds || text.is_ascii()) && !(self.has_ends && text.contains(&b'\r'))
    }

    pub(crate) fn is_found(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

struct Translator {
    has_bounds: bool,
    has_ends: bool,
}

impl Translator {
    /// `last` states whether nothing follows. Only then can `$` be translated as an optional line
    /// terminator and the end of the text.
    fn expr(&mut self, expr: &Expr, last: bool) -> Option<Hir> {
        let alternatives = expr.alternatives.iter().map(|alternative| self.sequence(alternative, last));
        Some(Hir::alternation(alternatives.collect::<Option<Vec<_>>>()?))
    }

    fn sequence(&mut self, nodes: &[Node], last: bool) -> Option<Hir> {
        let count = nodes.len();
        let parts = nodes.iter().enumerate().map(|(at, node)| self.node(node, last && at + 1 == count));
        Some(Hir::concat(parts.collect::<Option<Vec<_>>>()?))
    }

    fn group(&mut self, group: &Group, last: bool) -> Option<Hir> {
        self.expr(&group.body, last)
    }

    fn node(&mut self, node: &Node, last: bool) -> Option<Hir> {
        Some(match node {
            Node::Set(set) => class(set),
            Node::Slice { chars, fold, .. } => Hir::concat(chars.iter().map(|c| letter(*c, *fold)).collect()),
            Node::Begin => Hir::look(Look::Start),
            Node::End => Hir::look(Look::End),
            Node::Dollar { multiline: false, unix_lines } if last => {
                self.has_ends = true;
                let others = if *unix_lines { &[(0xa, 0xa)][..] } else { LINE_ENDS };
                let end = repeated(
                    class(&ClassSet::new(others.to_vec())),
                    Repeat { min: 0, max: 1, greed: Greed::Greedy },
                );
                Hir::concat(vec![end, Hir::look(Look::End)])
            }
            Node::Bound { negated, .. } => {
                self.has_bounds = true;
                Hir::look(if *negated { Look::WordAsciiNegate } else { Look::WordAscii })
            }
            Node::Group(group) => self.group(group, last)?,
            Node::Optional { group, .. } => {
                let once = Repeat { min: 0, max: 1, greed: Greed::Greedy };
                repeated(self.group(group, false)?, once)
            }
            Node::Repeated { group, repeat } | Node::Loop { group, repeat, .. } => {
                repeated(self.group(group, false)?, *repeat)
            }
            Node::Atom { atom, repeat, .. } if repeat.greed != Greed::Possessive => match &**atom {
                Node::Set(set) => repeated(class(set), *repeat),
                _ => return None,
            },
            _ => return None,
        })
    }
}

const LINE_ENDS: &[(u32, u32)] = &[(0xa, 0xa), (0xd, 0xd), (0x85, 0x85), (0x2028, 0x2029)];

/// A repetition. Greediness is irrelevant, because only the existence of a match matters. A nested
/// repetition is put into a group, because regex-syntax prints an optional `a+` as `a+?`.
fn repeated(hir: Hir, repeat: Repeat) -> Hir {
    let hir = match hir.kind() {
        HirKind::Repetition(_) => Hir::capture(Capture { index: 1, name: None, sub: Box::new(hir) }),
        _ => hir,
    };
    Hir::repetition(Repetition {
        min: repeat.min as u32,
        max: (repeat.max != REPEATS_MAX).then_some(repeat.max as u32),
        greedy: true,
        sub: Box::new(hir),
    })
}

fn letter(code: u32, fold: Fold) -> Hir {
    match fold {
        Fold::None => class(&ClassSet::new(vec![(code, code)])),
        Fold::Ascii => class(&case::range_ascii_folded(code, code)),
        Fold::Unicode => class(&case::folding_to(code)),
    }
}

/// A class without surrogates, which do not occur in the searched strings.
fn class(set: &ClassSet) -> Hir {
    let parts = set
        .ranges()
        .iter()
        .flat_map(|(low, high)| [(*low, (*high).min(0xd7ff)), ((*low).max(0xe000), *high)]);
    let ranges = parts
        .filter(|(low, high)| low <= high)
        .filter_map(|(low, high)| Some(ClassUnicodeRange::new(char::from_u32(low)?, char::from_u32(high)?)));
    Hir::class(Class::Unicode(ClassUnicode::new(ranges)))
}
