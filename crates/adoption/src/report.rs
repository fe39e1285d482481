//! An inspection as text and as JSON.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use wire::meta::TableState;

use crate::inspection::{Inspection, TableReport};

/// Entries of a list that the text shows.
const SHOWN_MAX: usize = 20;

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".into());
        writeln!(f, "layout version  {}", or_unknown(&self.layout_version))?;
        writeln!(f, "cluster id      {}", or_unknown(&self.cluster_id))?;
        if !self.tables.is_empty() {
            write_tables(f, &self.tables)?;
            self.write_contents(f)?;
        }
        for procedure in self.procedures.iter().take(SHOWN_MAX) {
            writeln!(
                f,
                "procedure {} {} {}: {}",
                procedure.id,
                procedure.class,
                procedure.state,
                procedure.outcome()
            )?;
        }
        write_rest(f, self.procedures.len(), "procedures")?;
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        for sign in self.signs.iter().take(SHOWN_MAX) {
            writeln!(f, "sign of a living HBase: {sign}")?;
        }
        write_rest(f, self.signs.len(), "signs")?;
        f.write_str(match (self.signs.is_empty(), self.has_blockers()) {
            (true, false) => "result: the directory can be adopted",
            (false, _) => {
                "result: NOT adoptable: HBase may still use the directory; stop all its processes. If these signs are \
                 wrong, use --ignore-owner"
            }
            (true, true) => "result: NOT adoptable: see the lines that begin with `blocker`",
        })
    }
}

impl Inspection {
    fn write_contents(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: u64 = self.logs.iter().map(|log| log.bytes).sum();
        writeln!(
            f,
            "logs            {} ({}), entries {} of {} regions; split edits: {} files",
            self.logs.len(),
            size(bytes),
            self.log_entries,
            self.log_regions,
            self.recovered_edits
        )?;
        writeln!(
            f,
            "procedures      {} in progress, {} ended",
            self.procedures.len(),
            self.ended_procedures
        )?;
        if !self.switches_off.is_empty() {
            writeln!(f, "switched off    {}", self.switches_off.join(", "))?;
        }
        writeln!(
            f,
            "snapshots       {}",
            if self.snapshots.is_empty() { "none".into() } else { self.snapshots.join(", ") }
        )?;
        let features: Vec<String> =
            self.features.iter().map(|(name, files)| format!("{name}: {files}")).collect();
        writeln!(f, "files by kind   {}", features.join(", "))?;
        writeln!(f, "estimate        {} until all regions serve", seconds(self.estimate))
    }

    /// The inspection as JSON. `directory` is the path or URI.
    pub fn to_json(&self, directory: &str) -> Value {
        let tables: Vec<Value> = self.tables.iter().map(table_json).collect();
        let logs: Vec<Value> =
            self.logs.iter().map(|log| json!({"path": log.path, "bytes": log.bytes})).collect();
        let procedures: Vec<Value> = self
            .procedures
            .iter()
            .map(|procedure| {
                json!({
                    "id": procedure.id,
                    "class": procedure.class,
                    "state": procedure.state,
                    "outcome": procedure.outcome(),
                })
            })
            .collect();
        let findings: Vec<Value> = self
            .findings
            .iter()
            .map(|finding| {
                json!({
                    "severity": finding.severity.as_str(),
                    "table": finding.table.as_ref().map(ToString::to_string),
                    "what": finding.what,
                })
            })
            .collect();
        json!({
            "directory": directory,
            "owner": format!("{:?}", self.owner),
            "layout_version": self.layout_version,
            "cluster_id": self.cluster_id,
            "tables": tables,
            "logs": logs,
            "log_entries": self.log_entries,
            "log_regions": self.log_regions,
            "recovered_edits": self.recovered_edits,
            "procedures": procedures,
            "ended_procedures": self.ended_procedures,
            "switches_off": self.switches_off,
            "snapshots": self.snapshots,
            "features": self.features,
            "findings": findings,
            "signs": self.signs.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "estimate_s": self.estimate.as_secs_f64(),
            "adoptable": self.is_adoptable(),
        })
    }
}

fn table_json(table: &TableReport) -> Value {
    json!({
        "name": table.name.to_string(),
        "state": state(table),
        "regions": table.regions,
        "files": table.files,
        "references": table.references,
        "links": table.links,
        "cells": table.cells,
        "bytes": table.bytes,
        "listed_stores": table.listed_stores,
        "adopted_disabled": table.is_disabled,
    })
}

fn state(table: &TableReport) -> &'static str {
    match table.state {
        _ if table.name.is_meta() => "ENABLED",
        Some(TableState::Enabled) => "ENABLED",
        Some(TableState::Disabled) => "DISABLED",
        Some(TableState::Enabling) => "ENABLING",
        Some(TableState::Disabling) => "DISABLING",
        None => "none",
    }
}

fn write_tables(f: &mut fmt::Formatter<'_>, tables: &[TableReport]) -> fmt::Result {
    let width = tables.iter().map(|table| table.name.to_string().len()).max().unwrap_or(0).max(5);
    writeln!(
        f,
        "{:width$}  {:9} {:>8} {:>7} {:>6} {:>6} {:>12} {:>10}",
        "table", "state", "regions", "files", "refs", "links", "cells", "size"
    )?;
    for table in tables {
        writeln!(
            f,
            "{:width$}  {:9} {:>8} {:>7} {:>6} {:>6} {:>12} {:>10}",
            table.name.to_string(),
            state(table),
            table.regions,
            table.files,
            table.references,
            table.links,
            table.cells,
            size(table.bytes)
        )?;
    }
    Ok(())
}

fn write_rest(f: &mut fmt::Formatter<'_>, count: usize, what: &str) -> fmt::Result {
    match count.checked_sub(SHOWN_MAX) {
        Some(rest) if rest > 0 => writeln!(f, "{rest} more {what}; --json has all"),
        _ => Ok(()),
    }
}

/// Bytes with a binary unit.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

fn seconds(duration: Duration) -> String {
    match duration.as_secs() {
        0 => "less than 1 s".into(),
        seconds @ 1..120 => format!("about {seconds} s"),
        seconds => format!("about {} min", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations_have_units() {
        assert_eq!([0, 1023, 1024, 5 << 30].map(size), ["0 B", "1023 B", "1.0 KiB", "5.0 GiB"]);
        let shown = [0, 1, 119, 121].map(|s| seconds(Duration::from_secs(s)));
        assert_eq!(shown, ["less than 1 s", "about 1 s", "about 119 s", "about 3 min"]);
    }
}
