//! The output of a comparison.

use std::fmt::Write;

use bytes::Bytes;
use comfy_table::{Table, presets};
use serde_json::{Value, json};

use super::comparison::{Comparison, Difference};
use crate::shell::text::binary;

/// Characters of a value that are printed.
const VALUE_CHARS_MAX: usize = 40;
/// The text for the value of a cell that a table does not have.
const MISSING: &str = "(missing)";

/// A table of the differences, and the totals. `names` are those of both tables.
pub(super) fn text(found: &Comparison, names: &[String; 2]) -> String {
    let mut out = String::new();
    if !found.differences.is_empty() {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["row", "column", "timestamp", "type", &names[0], &names[1]]);
        table.add_rows(found.differences.iter().map(line));
        writeln!(out, "{table}").expect("writing to a string succeeds");
    }
    let Comparison { rows, differing_rows, cells, only, values, .. } = found;
    let summary = match found.is_equal() {
        true => format!("equal: {rows} rows, {} cells", cells[0]),
        false => format!(
            "{differing_rows} of {rows} rows differ: {values} cells with other values, {} cells only in {}, {} only \
             in {}",
            only[0], names[0], only[1], names[1]
        ),
    };
    writeln!(out, "{summary}").expect("writing to a string succeeds");
    out
}

fn line(difference: &Difference) -> [String; 6] {
    let cell = difference.cell.view(0);
    let value =
        |value: &Option<Bytes>| value.as_ref().map_or(MISSING.to_owned(), |value| shortened(&binary(value)));
    [
        binary(cell.row()),
        format!("{}:{}", binary(cell.family()), binary(cell.qualifier())),
        cell.timestamp().to_string(),
        format!("{:?}", cell.kind()),
        value(&difference.values[0]),
        value(&difference.values[1]),
    ]
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// The same as one JSON object, with complete values.
pub(super) fn json(found: &Comparison, names: &[String; 2]) -> Value {
    let difference = |difference: &Difference| {
        let cell = difference.cell.view(0);
        let values = difference.values.each_ref().map(|value| value.as_ref().map(|value| binary(value)));
        json!({
            "row": binary(cell.row()),
            "family": binary(cell.family()),
            "qualifier": binary(cell.qualifier()),
            "timestamp": cell.timestamp(),
            "type": format!("{:?}", cell.kind()),
            "values": values,
        })
    };
    json!({
        "tables": names,
        "equal": found.is_equal(),
        "rows": found.rows,
        "differingRows": found.differing_rows,
        "cells": found.cells,
        "cellsOnlyIn": found.only,
        "cellsWithOtherValues": found.values,
        "differences": found.differences.iter().map(difference).collect::<Vec<_>>(),
    })
}
