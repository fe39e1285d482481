//! Paths of code that the docs name exist.
#![allow(clippy::disallowed_methods)] // Reads the source tree.

use std::fs;
use std::path::{Path, PathBuf};

const PAGES: &[&str] = &[
    "README.md",
    "CONTRIBUTING.md",
    "docs/ARCHITECTURE.md",
    "docs/observability.md",
    "docs/columns.md",
    "docs/fidelity.md",
    "docs/performance/README.md",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_path_buf()
}

/// The parts of `page` in backquotes.
fn code_spans(page: &str) -> Vec<String> {
    let mut fenced = false;
    let mut spans = Vec::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            spans.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    spans
}

fn crates() -> Vec<String> {
    let dirs = fs::read_dir(root().join("crates")).expect("the crates");
    dirs.map(|dir| dir.expect("a crate").file_name().into_string().expect("a name in UTF-8")).collect()
}

/// Whether `path` (`crate::module::Item`) names modules of a crate, and at most one item after
/// them.
fn module_path_exists(path: &str) -> bool {
    let mut parts = path.split("::");
    let mut dir = root().join("crates").join(parts.next().expect("a crate")).join("src");
    let mut file = dir.join("lib.rs");
    for part in parts {
        let nested = dir.join(part);
        if let Some(module) =
            [nested.with_extension("rs"), nested.join("mod.rs")].into_iter().find(|file| file.is_file())
        {
            (dir, file) = (nested, module);
            continue;
        }
        let source = fs::read_to_string(&file).expect("a module");
        let own_dir = fs::read_dir(&dir).into_iter().flatten();
        let children = own_dir.filter_map(|child| fs::read_to_string(child.ok()?.path()).ok());
        return std::iter::once(source).chain(children).any(|source| declares(&source, part));
    }
    true
}

/// Whether a source file declares or re-exports `item`.
fn declares(source: &str, item: &str) -> bool {
    let is_word = |line: &str| {
        line.match_indices(item).any(|(at, _)| {
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            !line[..at].ends_with(is_part) && !line[at + item.len()..].starts_with(is_part)
        })
    };
    let keywords =
        ["fn ", "struct ", "enum ", "trait ", "type ", "const ", "static ", "mod ", "macro_rules! ", "use "];
    source.lines().any(|line| keywords.iter().any(|keyword| line.contains(keyword)) && is_word(line))
}

#[test]
fn paths_that_the_docs_name_exist() {
    let crates = crates();
    let mut missing = Vec::new();
    let mut checked = 0;
    for page in PAGES {
        let text = fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        for span in code_spans(&text) {
            let is_plain = span.chars().all(|c| c.is_alphanumeric() || "_:/.-".contains(c));
            let first = span.split([':', '/']).next().unwrap_or_default();
            if !is_plain || !(crates.iter().any(|name| name == first) || span.starts_with("xtask/")) {
                continue;
            }
            let exists = match (span.contains("::"), span.contains('/')) {
                (true, false) => module_path_exists(&span),
                (false, true) => root().join("crates").join(&span).exists() || root().join(&span).exists(),
                _ => continue,
            };
            checked += 1;
            if !exists {
                missing.push(format!("{page}: {span}"));
            }
        }
    }
    assert!(missing.is_empty(), "these paths do not exist:\n{}", missing.join("\n"));
    assert!(checked > 50, "only {checked} paths were found: has the form of the pages changed?");
}

#[test]
fn a_missing_module_is_found() {
    assert!(module_path_exists("engine::region::flush"));
    assert!(!module_path_exists("engine::region::flash"));
    assert!(!module_path_exists("engine::Regions"));
}
