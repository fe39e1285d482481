//! Extended grapheme clusters, as matched by `\X` in Java 17.
//!
//! Java derives the class of a character from its general category and lists of exceptions. The
//! result differs in places from Unicode's table, which libraries use.

use std::sync::LazyLock;

use super::{categories, pictographic};
use crate::set::ClassSet;
use crate::text::Text;

/// Grapheme class of a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Other,
    CarriageReturn,
    LineFeed,
    Control,
    Extend,
    Joiner,
    Regional,
    Prepend,
    SpacingMark,
    HangulL,
    HangulV,
    HangulT,
    HangulLv,
    HangulLvt,
    Pictograph,
}

/// Sets from which the grapheme classes are derived.
struct Classes {
    pictographic: ClassSet,
    control: ClassSet,
    format: ClassSet,
    extend: ClassSet,
    spacing: ClassSet,
}

static CLASSES: LazyLock<Classes> = LazyLock::new(|| Classes {
    pictographic: (*pictographic()).clone(),
    control: categories(&["Cn", "Cc", "Zl", "Zp", "Cs"]).without(&ClassSet::new(vec![(0x378, 0x378)])),
    format: categories(&["Cf"]),
    extend: categories(&["Mn", "Me"]),
    spacing: categories(&["Mc"]).without(&ClassSet::new(NOT_SPACING.to_vec())),
});

/// Spacing marks that do not join.
const NOT_SPACING: &[(u32, u32)] = &[
    (0x102b, 0x102c),
    (0x1038, 0x1038),
    (0x1062, 0x1064),
    (0x1067, 0x106d),
    (0x1083, 0x1083),
    (0x1087, 0x108c),
    (0x108f, 0x108f),
    (0x109a, 0x109c),
    (0x1a61, 0x1a61),
    (0x1a63, 0x1a64),
    (0xaa7b, 0xaa7b),
    (0xaa7d, 0xaa7d),
];

fn kind(code: u32) -> Kind {
    match code {
        0xd => return Kind::CarriageReturn,
        0xa => return Kind::LineFeed,
        0..0x20 => return Kind::Control,
        0x20..0x7f => return Kind::Other,
        _ => {}
    }
    let classes = &*CLASSES;
    if classes.pictographic.contains(code) {
        return Kind::Pictograph;
    }
    match code {
        0x200c | 0xe0020..=0xe007f | 0xff9e | 0xff9f | 0x1f3fb..=0x1f3ff => Kind::Extend,
        0x200d => Kind::Joiner,
        0x600..=0x605 | 0x6dd | 0x70f | 0x8e2 | 0x110bd | 0x110cd => Kind::Prepend,
        _ if classes.control.contains(code) || classes.format.contains(code) => Kind::Control,
        _ if classes.extend.contains(code) => Kind::Extend,
        _ if classes.spacing.contains(code) => Kind::SpacingMark,
        0x1f1e6..=0x1f1ff => Kind::Regional,
        0xe33 | 0xeb3 => Kind::SpacingMark,
        0x1100..=0x115f | 0xa960..=0xa97c => Kind::HangulL,
        0x1160..=0x11a7 | 0xd7b0..=0xd7c6 => Kind::HangulV,
        0x11a8..=0x11ff | 0xd7cb..=0xd7fb => Kind::HangulT,
        0xac00..=0xd7a3 if (code - 0xac00).is_multiple_of(28) => Kind::HangulLv,
        0xac00..=0xd7a3 => Kind::HangulLvt,
        0xd4e | 0x111c2 | 0x111c3 | 0x1193f | 0x11941 | 0x11a3a | 0x11a84..=0x11a89 | 0x11d46 => {
            Kind::Prepend
        }
        _ => Kind::Other,
    }
}

/// Whether a cluster ends between characters of these classes, regardless of earlier characters.
fn is_boundary(left: Kind, right: Kind) -> bool {
    use Kind::*;
    let breaks = |kind| matches!(kind, CarriageReturn | LineFeed | Control);
    if breaks(left) || breaks(right) {
        return !(left == CarriageReturn && right == LineFeed);
    }
    let joined = match right {
        Extend | Joiner | SpacingMark => true,
        _ if left == Prepend => true,
        HangulL | HangulLv | HangulLvt => left == HangulL,
        HangulV => matches!(left, HangulL | HangulLv | HangulV),
        HangulT => matches!(left, HangulLv | HangulV | HangulLvt | HangulT),
        _ => false,
    };
    !joined
}

/// The end of the cluster that begins at `from`, which is before the end of the text.
pub(crate) fn next_boundary(text: impl Text, from: usize) -> usize {
    let (first, width) = text.point(from);
    let mut at = from + width;
    let mut left = kind(first);
    let pictograph = left == Kind::Pictograph;
    let mut regionals = usize::from(left == Kind::Regional);
    while at < text.len() {
        let (code, width) = text.point(at);
        let right = kind(code);
        let joined = pictograph && left == Kind::Joiner && right == Kind::Pictograph
            || regionals % 2 == 1 && left == Kind::Regional && right == Kind::Regional;
        if !joined && is_boundary(left, right) {
            break;
        }
        regionals += usize::from(right == Kind::Regional);
        left = right;
        at += width;
    }
    at
}
