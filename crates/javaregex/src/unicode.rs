//! Unicode data as of Java 17: version 13.
//!
//! The tables are those of `regex-syntax`, without characters added after version 13. The few
//! properties that later versions changed are restored.

pub(crate) mod blocks;
pub(crate) mod case;
pub(crate) mod grapheme;
pub(crate) mod names;
pub(crate) mod properties;
pub(crate) mod scripts;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use regex_syntax::hir::{Class, HirKind};

use crate::set::ClassSet;

/// Java's Unicode version, in the syntax of `regex-syntax`.
const ASSIGNED: &str = "age=13.0";
const SURROGATES: (u32, u32) = (0xd800, 0xdfff);

/// Cache of sets by their `regex-syntax` names: about a hundred, each computed once.
static SETS: LazyLock<Mutex<HashMap<String, Arc<ClassSet>>>> = LazyLock::new(Mutex::default);

/// Characters of a property in Unicode 13, named as in `regex-syntax`.
fn property(name: &str) -> Arc<ClassSet> {
    cached(name, || match name {
        ASSIGNED => latest(name),
        // This property also contains reserved code points.
        "Extended_Pictographic" => latest(name),
        _ => latest(name).intersect(&property(ASSIGNED)),
    })
}

fn cached(name: &str, compute: impl FnOnce() -> ClassSet) -> Arc<ClassSet> {
    let sets = || SETS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(set) = sets().get(name) {
        return Arc::clone(set);
    }
    let set = Arc::new(compute());
    sets().insert(name.to_string(), Arc::clone(&set));
    set
}

/// Characters of a property in the newest Unicode version.
fn latest(name: &str) -> ClassSet {
    let parsed = regex_syntax::Parser::new().parse(&format!("\\p{{{name}}}"));
    let ranges = match parsed.map(|hir| hir.into_kind()) {
        Ok(HirKind::Class(Class::Unicode(class))) => {
            class.iter().map(|range| (u32::from(range.start()), u32::from(range.end()))).collect()
        }
        // A class with one character.
        Ok(HirKind::Literal(literal)) => {
            let text = String::from_utf8_lossy(&literal.0);
            text.chars().map(|only| (u32::from(only), u32::from(only))).collect()
        }
        other => unreachable!("{name} is a property of regex-syntax: {other:?}"),
    };
    ClassSet::new(ranges)
}

/// Spacing marks that were nonspacing marks in Unicode 13.
fn nonspacing_in_java() -> ClassSet {
    ClassSet::new(vec![(0x1734, 0x1734), (0x1171e, 0x1171e)])
}

/// Characters of a general category, by its short name.
pub(crate) fn category(name: &str) -> Arc<ClassSet> {
    cached(&format!("category {name}"), || match name {
        "Cs" => ClassSet::new(vec![SURROGATES]),
        "Cn" => {
            let assigned = property(ASSIGNED).union(&ClassSet::new(vec![SURROGATES]));
            assigned.negate().union(&noncharacters())
        }
        "Mn" => property("gc=Mn").union(&nonspacing_in_java()),
        "Mc" => property("gc=Mc").without(&nonspacing_in_java()),
        _ => (*property(&format!("gc={name}"))).clone(),
    })
}

/// Characters of any of the given categories.
pub(crate) fn categories(names: &[&str]) -> ClassSet {
    let ranges = names.iter().flat_map(|name| category(name).ranges().to_vec());
    ClassSet::new(ranges.collect())
}

/// Noncharacters; the property `age` contains them, too.
pub(crate) fn noncharacters() -> ClassSet {
    let planes = (0..=0x10).map(|plane| (plane << 16 | 0xfffe, plane << 16 | 0xffff));
    ClassSet::new(planes.chain([(0xfdd0, 0xfdef)]).collect())
}

pub(crate) fn alphabetic() -> Arc<ClassSet> {
    const NOT_IN_JAVA: &[(u32, u32)] =
        &[(0x363, 0x36f), (0xc04, 0xc04), (0xf82, 0xf83), (0x1dd3, 0x1de6), (0x11080, 0x11081)];
    cached("java alphabetic", || property("Alphabetic").without(&ClassSet::new(NOT_IN_JAVA.to_vec())))
}

pub(crate) fn lowercase() -> Arc<ClassSet> {
    let not_in_java = || ClassSet::new(vec![(0x10fc, 0x10fc), (0xab69, 0xab69)]);
    cached("java lowercase", || property("Lowercase").without(&not_in_java()))
}

pub(crate) fn uppercase() -> Arc<ClassSet> {
    property("Uppercase")
}

pub(crate) fn ideographic() -> Arc<ClassSet> {
    property("Ideographic")
}

pub(crate) fn mirrored() -> ClassSet {
    property("Bidi_Mirrored").without(&ClassSet::new(vec![(0x226d, 0x226d)]))
}

pub(crate) fn pictographic() -> Arc<ClassSet> {
    property("Extended_Pictographic")
}

/// Characters that have a case variant.
fn casemapped() -> Arc<ClassSet> {
    property("Changes_When_Casemapped")
}

pub(crate) fn identifier_start() -> ClassSet {
    categories(&["L", "Nl"]).union(&property("Other_ID_Start"))
}

pub(crate) fn identifier_part() -> ClassSet {
    // Added in Unicode 15.1.
    let not_in_java = ClassSet::new(vec![(0x30fb, 0x30fb), (0xff65, 0xff65)]);
    let other = property("Other_ID_Start").union(&property("Other_ID_Continue")).without(&not_in_java);
    categories(&["L", "Pc", "Nd", "Nl", "Mc", "Mn"]).union(&identifier_ignorable()).union(&other)
}

pub(crate) fn identifier_ignorable() -> ClassSet {
    category("Cf").union(&ClassSet::new(vec![(0, 8), (0xe, 0x1b), (0x7f, 0x9f)]))
}

/// Characters of a script, by Java's name or code.
pub(crate) fn script(name: &str) -> Option<ClassSet> {
    // In Han since Unicode 15, in Common before.
    let common_in_java = || ClassSet::new(vec![(0x16fe2, 0x16fe3)]);
    Some(match scripts::script_name(name)? {
        "UNKNOWN" => {
            let known = scripts::script_names().filter(|name| *name != "UNKNOWN").filter_map(script);
            ClassSet::new(known.flat_map(|set| set.ranges().to_vec()).collect()).negate()
        }
        "HAN" => property("sc=HAN").without(&common_in_java()),
        "COMMON" => property("sc=COMMON").union(&common_in_java()),
        script => (*property(&format!("sc={script}"))).clone(),
    })
}

/// Letters and digits, as in `Character.isLetterOrDigit`.
pub(crate) static LETTER_OR_DIGIT: LazyLock<ClassSet> = LazyLock::new(|| categories(&["L", "Nd"]));
/// Marks that combine with the preceding letter.
pub(crate) static NONSPACING_MARK: LazyLock<ClassSet> = LazyLock::new(|| (*category("Mn")).clone());
/// Word characters with the flag `UNICODE_CHARACTER_CLASS`.
pub(crate) static WORD: LazyLock<ClassSet> = LazyLock::new(properties::word);
