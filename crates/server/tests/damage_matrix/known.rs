//! The requirements for each outcome, and the cells that do not meet them yet.

use crate::Cell;
use crate::probe::Availability;

/// Cells that fail at present: kind and damage.
const KNOWN_FAILURES: &[(&str, &str)] = &[
    // The directory is the only record of a snapshot, and its removal is how HBase deletes one.
    ("directory `.hbase-snapshot`", "removed"),
    ("directory of a snapshot", "removed"),
];

/// Why a cell fails, unless it is a known failure.
pub fn unexpected(cell: &Cell) -> Option<String> {
    let why = failure(cell)?;
    let is_known = is_listed(cell);
    let lines = cell.outcome.lines.join("\n      ");
    let entry = format!("(\"{}\", \"{}\"),", cell.target.kind, cell.damage.name());
    (!is_known).then(|| format!("{entry} // {} {:?}: {why}\n      {lines}", cell.target.path, cell.damage))
}

/// Checks that listed cells still fail. Others must be removed from the list.
///
/// # Panics
/// If a listed cell does not fail.
pub fn check_unused(cells: &[Cell]) {
    let fixed = cells.iter().filter(|cell| is_listed(cell) && failure(cell).is_none());
    let fixed: Vec<String> =
        fixed.map(|cell| format!("(\"{}\", \"{}\")", cell.target.kind, cell.damage.name())).collect();
    assert!(fixed.is_empty(), "no longer failing, to be removed from known.rs: {fixed:#?}");
}

fn is_listed(cell: &Cell) -> bool {
    KNOWN_FAILURES.contains(&(cell.target.kind.as_str(), cell.damage.name()))
}

/// Why an outcome does not meet the requirements.
fn failure(cell: &Cell) -> Option<String> {
    let outcome = &cell.outcome;
    let failed = outcome.remedies.iter().find(|remedy| remedy.result.is_err());
    if let Some(failed) = failed {
        return Some(format!("the remedy fails: {failed:?}"));
    }
    let differences = match &outcome.availability {
        Availability::Down(message) if outcome.remedies.is_empty() => {
            return Some(format!("the server is down and no message names a remedy: {message}"));
        }
        Availability::Down(_) => return None,
        Availability::Serving(differences) => differences,
    };
    if !differences.wrong.is_empty() {
        return Some(format!("wrong: {}", differences.wrong.join("; ")));
    }
    let is_reported_loss = is_log(cell) && is_reported(cell);
    if !differences.lost.is_empty() && !is_reported_loss {
        return Some(format!("silently incomplete: {:?}", differences.lost));
    }
    let foreign = differences.failing.keys().find(|table| !is_related(cell, table));
    if let Some(table) = foreign {
        return Some(format!("{table} is affected too: {:?}", differences.failing[table]));
    }
    if !differences.failing.is_empty() && !is_reported(cell) {
        return Some(format!("nothing is logged: {:?}", differences.failing));
    }
    None
}

fn is_log(cell: &Cell) -> bool {
    cell.target.path.contains("WALs") || cell.target.kind == "directory `MasterData`"
}

/// Whether the server's log has a line that an undamaged start does not log.
fn is_reported(cell: &Cell) -> bool {
    !cell.outcome.lines.is_empty()
}

/// Whether damage to the cell's file may affect a table.
fn is_related(cell: &Cell, table: &str) -> bool {
    match (cell.target.table.as_deref(), table) {
        (Some("source"), "linked") => true,
        (Some(owner), table) if owner.starts_with("ns:") && cell.target.kind.contains("namespace") => {
            table.starts_with("ns:")
        }
        (Some(owner), table) => owner == table,
        // Archived files, snapshots, and files shared by all tables.
        (None, table) => !cell.target.path.contains("archive") || matches!(table, "linked" | "source"),
    }
}
