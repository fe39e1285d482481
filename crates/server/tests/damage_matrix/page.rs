//! `docs/damage.md`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::Cell;
use crate::probe::{Differences, Seen};

const INTRODUCTION: &str = include_str!("introduction.md");

/// A cell in one line, for the test's output.
pub fn line(cell: &Cell) -> String {
    format!(
        "{} [{}] {:?}: {}\n    log: {}\n    health: {}\n    remedies: {:?}",
        cell.target.kind,
        cell.target.path,
        cell.harm,
        affected(cell),
        cell.outcome.lines.join("\n         "),
        cell.outcome.health,
        cell.outcome.remedies
    )
}

/// Writes the page, also where cells fail: they are seen there.
pub fn regenerate_if_asked(cells: &[Cell]) {
    if std::env::var_os("REGENERATE").is_some() {
        std::fs::write(path(), page(cells)).unwrap();
    }
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/damage.md")
}

/// Compares the cells of the page with those of the test. Their outcomes are not compared: which bytes are damaged, and so
/// what is affected, differs a little from run to run.
///
/// # Panics
/// If they differ.
pub fn check(cells: &[Cell]) {
    let (expected, found) = (page(cells), std::fs::read_to_string(path()).unwrap_or_default());
    let (expected, found) = (rows(&expected), rows(&found));
    let differ = expected.iter().zip(&found).find(|(expected, found)| expected != found);
    assert!(
        found == expected,
        "docs/damage.md is out of date: REGENERATE=1 cargo test -p server --test damage_matrix\n{differ:#?}"
    );
}

/// File and damage of each row, and all lines of text.
fn rows(page: &str) -> Vec<String> {
    let cell = |line: &str| line.split(" | ").take(2).collect::<Vec<_>>().join(" | ");
    page.lines().map(|line| if line.starts_with('|') { cell(line) } else { line.to_string() }).collect()
}

fn page(cells: &[Cell]) -> String {
    let mut page = INTRODUCTION.to_string();
    page.push_str("\n| file | damage | affected | shown in the log | way forward |\n|---|---|---|---|---|\n");
    for cell in cells {
        let shown = shown(cell);
        let shown = if shown.is_empty() { String::new() } else { format!("`{shown}`") };
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} |",
            cell.target.kind,
            cell.harm.name(),
            affected(cell).replace('|', "\\|"),
            shown.replace('|', "\\|"),
            way_forward(cell)
        );
    }
    page
}

fn affected(cell: &Cell) -> String {
    match &cell.outcome.seen {
        Seen::Down(_) => "the server does not start".into(),
        Seen::Serving(differences) if *differences == Differences::default() => "nothing".into(),
        Seen::Serving(differences) => in_words(cell, differences),
    }
}

fn in_words(cell: &Cell, differences: &Differences) -> String {
    let named = |table: &str| match cell.target.table.as_deref() {
        Some(own) if own == table => "its table".to_string(),
        _ => table.to_string(),
    };
    let mut parts = Vec::new();
    for (table, failing) in &differences.failing {
        let classes = failing.classes.iter().cloned().collect::<Vec<_>>().join(", ");
        let what = match (failing.gets, failing.rows) {
            (0, 0) => named(table),
            (0, _) => match (failing.scan, failing.count) {
                (true, true) => format!("scans and counts of {}", named(table)),
                (true, false) => format!("scans of {}", named(table)),
                _ => format!("counts of {}", named(table)),
            },
            (gets, rows) if gets == rows => format!("all rows of {}", named(table)),
            (gets, rows) => format!("{gets} of {rows} rows of {}", named(table)),
        };
        parts.push(format!("{what} ({classes})"));
    }
    parts.extend(
        differences.lost.iter().map(|(table, rows)| format!("{rows} rows of {} are lost", named(table))),
    );
    parts.extend(differences.wrong.iter().cloned());
    parts.join("; ")
}

/// The line of the log that says most.
fn shown(cell: &Cell) -> String {
    let text = match &cell.outcome.seen {
        Seen::Down(message) => message.clone(),
        Seen::Serving(_) => cell.outcome.lines.first().cloned().unwrap_or_default(),
    };
    text.replace('`', "'")
}

fn way_forward(cell: &Cell) -> String {
    let remedies = cell.outcome.remedies.iter();
    let taken: Vec<String> = remedies
        .filter_map(|remedy| Some(format!("`{}`: {}", remedy.command, remedy.result.as_ref().ok()?)))
        .collect();
    match (&cell.outcome.seen, taken.is_empty()) {
        (_, false) => taken.join("; "),
        (Seen::Serving(differences), _) if *differences == Differences::default() => "not needed".into(),
        _ if cell.target.path.contains("snapshot") => "see \"Snapshots\"".into(),
        (Seen::Serving(differences), _) if differences.failing.is_empty() => "see \"Lost edits\"".into(),
        _ => "see \"Files that cannot be read\"".into(),
    }
}
