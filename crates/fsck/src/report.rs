//! The result of a check as text and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::Checked;

/// The result, with the last lines that HBase's `hbck` prints.
pub fn text(checked: &Checked) -> String {
    let mut out = String::new();
    let mut line =
        |text: std::fmt::Arguments<'_>| writeln!(out, "{text}").expect("writing to a string succeeds");
    for table in &checked.tables {
        let (regions, files, bytes, cells) = (table.regions, table.files, table.bytes, table.cells);
        line(format_args!(
            "table {}: {regions} regions, {files} files, {bytes} bytes, {cells} cells",
            table.name
        ));
    }
    line(format_args!("{} snapshots, {} logs", checked.snapshots, checked.logs));
    for problem in &checked.problems {
        line(format_args!("ERROR: {problem}"));
    }
    line(format_args!("{} inconsistencies detected.", checked.problems.len()));
    line(format_args!("Status: {}", if checked.problems.is_empty() { "OK" } else { "INCONSISTENT" }));
    out
}

/// The result as one JSON object.
pub fn json(checked: &Checked) -> Value {
    let tables = checked.tables.iter().map(|table| {
        json!({
            "name": table.name.to_string(),
            "regions": table.regions,
            "files": table.files,
            "bytes": table.bytes,
            "cells": table.cells,
        })
    });
    let problems = checked
        .problems
        .iter()
        .map(|problem| json!({"place": problem.place.to_string(), "what": problem.what}));
    json!({
        "tables": tables.collect::<Vec<_>>(),
        "snapshots": checked.snapshots,
        "logs": checked.logs,
        "problems": problems.collect::<Vec<_>>(),
    })
}
