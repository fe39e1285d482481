//! The vocabulary of docs, messages and comments: plain English and the terms of the field.
//!
//! [`BANNED`] has words and phrases that once stood for a term, with the term. A word that is right in
//! other senses is not listed. Comments are also limited to 100 columns.
#![allow(clippy::disallowed_methods)] // Reads the source tree.

use std::fs;
use std::path::{Path, PathBuf};

/// A phrase in lower case, and what to write in its place.
const BANNED: &[(&str, &str)] = &[
    ("a stranger", "a client, an unauthenticated client"),
    ("a wish", "request"),
    ("anew", "again; recreated, reopened"),
    ("asks the processor", "prefetches"),
    ("at hand", "cached, in memory"),
    ("at its next turn", "in the next period"),
    ("behind", "after, following"),
    ("beside", "next to; in addition to; compared with"),
    ("by chance", "at random"),
    ("bytes of others", "untrusted input"),
    ("cannot be meant", "invalid"),
    ("common way", "slow path, general path"),
    ("for want of", "for lack of"),
    ("foreign bytes", "untrusted input"),
    ("gives way", "yields"),
    ("goes on with", "resumes, continues"),
    ("handed in", "passed in, injected"),
    ("handed over", "transferred"),
    ("held against", "compared with, tested against"),
    ("home-made", "custom"),
    ("is over", "expired, ended"),
    ("left alone", "unchanged"),
    ("lets go", "releases"),
    ("look at", "read, check; sample"),
    ("looked at", "read, checked; sampled"),
    ("looks at", "reads, checks; samples"),
    ("made again", "recreated"),
    ("mend", "repair, fix"),
    ("mended", "repaired, fixed"),
    ("no more room", "out of memory, full"),
    ("nobody", "no client, no thread"),
    ("none the less", "still, anyway"),
    ("not known here", "unknown, unsupported"),
    ("not sound", "invalid, corrupt"),
    ("of no effect", "ignored"),
    ("parted with", "disconnected"),
    ("pass over", "skip"),
    ("passed over", "skipped"),
    ("passes over", "skips"),
    ("power cut", "power loss"),
    ("power cuts", "power loss"),
    ("put together", "assembled, built"),
    ("reckon", "estimate"),
    ("reckoned", "estimated"),
    ("sent away", "rejected"),
    ("short way", "fast path"),
    ("so many", "N, this many, at most N"),
    ("somebody", "a client, a thread"),
    ("stands in", "is in, points to"),
    ("taken apart", "parsed, decoded"),
    ("takes apart", "parses, decodes"),
    ("tells", "reports, returns"),
    ("the processor", "the CPU"),
    ("tidied up", "cleaned up"),
    ("told", "notified, reported"),
    ("tried again", "retried"),
    ("undone", "rolled back"),
    ("what becomes of", "result, outcome"),
    ("what came of", "result, outcome"),
    ("whoever", "the caller, the reader"),
];

/// Components are things. In docs, "who" may refer to people.
const BANNED_IN_CODE: &[(&str, &str)] =
    &[("he", "the caller"), ("his", "the caller's"), ("who", "the caller, the reader, the thread")];

const COMMENT_COLUMNS_MAX: usize = 100;

/// Below these, texts are ours. Generated code, recorded output and build output are not checked.
const ROOTS: &[&str] = &["bench", "compat", "crates", "deploy", "docs", "fuzz", "sql", "xtask"];
const FILES: &[&str] = &["README.md", "CONTRIBUTING.md", "Makefile"];
const SKIPPED_DIRS: &[&str] = &["target", "vectors", "golden", "seeds", "fixtures", "flames", "regressions"];
const SKIPPED_FILES: &[&str] = &["generated.rs", "grampus.rs", "scripts.rs", "words.rs"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_path_buf()
}

fn files_below(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a directory") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("a name in UTF-8");
        if entry.file_type().expect("a type").is_dir() {
            if !SKIPPED_DIRS.contains(&&*name) {
                files_below(&entry.path(), found);
            }
        } else if !SKIPPED_FILES.contains(&&*name) {
            found.push(entry.path());
        }
    }
}

/// How the texts of a file are found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Comments and string literals.
    Rust,
    /// Comments that begin with this.
    Comments(&'static str),
    /// All of it.
    Text,
}

impl Kind {
    fn of(path: &Path) -> Option<Kind> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("rs") => Some(Kind::Rust),
            Some("java" | "go" | "proto") => Some(Kind::Comments("//")),
            Some("py" | "sh" | "toml") => Some(Kind::Comments("#")),
            Some("md") => Some(Kind::Text),
            None if path.file_name().is_some_and(|name| name == "Makefile" || name == "run") => {
                Some(Kind::Comments("#"))
            }
            _ => None,
        }
    }

    /// The texts in one line.
    fn texts(self, line: &str) -> Vec<&str> {
        let trimmed = line.trim_start();
        match self {
            Kind::Text => vec![line],
            Kind::Comments(start) if trimmed.starts_with(start) => vec![trimmed],
            Kind::Comments(_) => Vec::new(),
            Kind::Rust if trimmed.starts_with("//") => vec![trimmed],
            Kind::Rust => {
                let (code, comment) = line.split_once(" // ").unwrap_or((line, ""));
                let strings = code.split('"').skip(1).step_by(2);
                strings.chain([comment]).collect()
            }
        }
    }
}

/// Words of `text` in lower case, separated and enclosed by single spaces. A hyphenated word is one
/// word. Code spans and placeholders in braces are left out.
fn words(text: &str) -> String {
    let text = without_placeholders(text);
    let mut out = String::from(" ");
    for (at, part) in text.split('`').enumerate() {
        if at % 2 == 1 {
            out.push_str("` ");
            continue;
        }
        for word in part.split(|c: char| !(c.is_alphanumeric() || "-'_".contains(c))) {
            if !word.is_empty() {
                out.push_str(&word.to_lowercase());
                out.push(' ');
            }
        }
    }
    out
}

fn without_placeholders(text: &str) -> String {
    let mut parts = text.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| out + "{}" + part.split_once('}').map_or(part, |(_, rest)| rest))
}

fn banned_in(text: &str, kind: Kind) -> Option<(&'static str, &'static str)> {
    let words = words(text);
    let in_code = if kind == Kind::Rust { BANNED_IN_CODE } else { &[] };
    let mut all = BANNED.iter().chain(in_code);
    all.find(|(phrase, _)| words.contains(&format!(" {phrase} "))).copied()
}

#[test]
fn texts_use_plain_words_and_comments_fit_in_a_line() {
    let mut paths: Vec<PathBuf> = FILES.iter().map(|file| root().join(file)).collect();
    ROOTS.iter().for_each(|dir| files_below(&root().join(dir), &mut paths));
    let (mut faults, mut lines) = (Vec::new(), 0);
    for path in &paths {
        let Some(kind) = Kind::of(path) else { continue };
        let Ok(content) = fs::read_to_string(path) else { continue };
        let name = path.strip_prefix(root()).expect("below the root").display();
        for (number, line) in content.lines().enumerate() {
            lines += 1;
            let place = format!("{name}:{}", number + 1);
            for (phrase, instead) in kind.texts(line).into_iter().filter_map(|text| banned_in(text, kind)) {
                faults.push(format!("{place}: \"{phrase}\" (write: {instead})"));
            }
            let is_comment = kind == Kind::Rust && line.trim_start().starts_with("//");
            if is_comment && line.chars().count() > COMMENT_COLUMNS_MAX {
                faults.push(format!("{place}: a comment of more than {COMMENT_COLUMNS_MAX} columns"));
            }
        }
    }
    assert!(lines > 100_000, "only {lines} lines were read: have the sources moved?");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn phrases_are_found_as_whole_words() {
    assert!(banned_in("// a value Told of", Kind::Rust).is_some());
    assert!(banned_in("what is `told` here", Kind::Text).is_none(), "code is not text");
    assert!(banned_in("failed: {told}", Kind::Rust).is_none(), "a placeholder is not text");
    assert!(banned_in("a look-behind, foretold", Kind::Text).is_none());
    assert!(banned_in("operators who run it", Kind::Text).is_none());
    assert!(banned_in("// who asks", Kind::Rust).is_some());
    assert_eq!(Kind::Rust.texts(r#"warn!("one", x, "two"); // three"#), ["one", "two", "three"]);
}
