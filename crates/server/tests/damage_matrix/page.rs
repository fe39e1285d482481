//! `docs/damage.md`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::Cell;
use crate::probe::{Availability, Differences};

const INTRODUCTION: &str = include_str!("introduction.md");

/// A cell for the test's output.
pub fn line(cell: &Cell) -> String {
    format!(
        "{} [{}] {:?}: {}\n    log: {}\n    health: {}\n    remedies: {:?}",
        cell.target.kind,
        cell.target.path,
        cell.damage,
        affected(cell),
        cell.outcome.lines.join("\n         "),
        cell.outcome.health,
        cell.outcome.remedies
    )
}

/// Writes the page if `REGENERATE` is set, even if cells fail, so that they can be inspected there.
pub fn regenerate_if_requested(cells: &[Cell]) {
    if std::env::var_os("REGENERATE").is_some() {
        std::fs::write(path(), page(cells)).unwrap();
    }
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/damage.md")
}

/// Compares the file and damage columns and the text of the page with those of the test. Outcomes
/// are not compared, because the damaged bytes, and so the affected data, differ slightly between
/// runs.
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

/// File and damage of each table row, and all other lines.
fn rows(page: &str) -> Vec<String> {
    let cell = |line: &str| line.split(" | ").take(2).collect::<Vec<_>>().join(" | ");
    page.lines().map(|line| if line.starts_with('|') { cell(line) } else { line.to_string() }).collect()
}

fn page(cells: &[Cell]) -> String {
    let mut page = INTRODUCTION.to_string();
    page.push_str("\n| file | damage | affected | shown in the log | remedy |\n|---|---|---|---|---|\n");
    for cell in cells {
        let shown = log_line(cell);
        let shown = if shown.is_empty() { String::new() } else { format!("`{shown}`") };
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} |",
            cell.target.kind,
            cell.damage.name(),
            affected(cell).replace('|', "\\|"),
            shown.replace('|', "\\|"),
            remedy_text(cell)
        );
    }
    page
}

fn affected(cell: &Cell) -> String {
    match &cell.outcome.availability {
        Availability::Down(_) => "the server does not start".into(),
        Availability::Serving(differences) if *differences == Differences::default() => "nothing".into(),
        Availability::Serving(differences) => in_words(cell, differences),
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

/// The most informative line of the log.
fn log_line(cell: &Cell) -> String {
    let text = match &cell.outcome.availability {
        Availability::Down(message) => message.clone(),
        Availability::Serving(_) => cell.outcome.lines.first().cloned().unwrap_or_default(),
    };
    text.replace('`', "'")
}

fn remedy_text(cell: &Cell) -> String {
    let remedies = cell.outcome.remedies.iter();
    let taken: Vec<String> = remedies
        .filter_map(|remedy| Some(format!("`{}`: {}", remedy.command, remedy.result.as_ref().ok()?)))
        .collect();
    match (&cell.outcome.availability, taken.is_empty()) {
        (_, false) => taken.join("; "),
        (Availability::Serving(differences), _) if *differences == Differences::default() => {
            "not needed".into()
        }
        _ if cell.target.path.contains("snapshot") => "see \"Snapshots\"".into(),
        (Availability::Serving(differences), _) if differences.failing.is_empty() => {
            "see \"Lost edits\"".into()
        }
        _ => "see \"Files that cannot be read\"".into(),
    }
}
