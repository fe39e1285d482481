//! An edit as lines of text.

use std::io::Write;

use base::calendar::CalendarTime;
use base::text::to_string_binary;
use cell::{Cell, tags};
use wal::Entry;

use super::{LogForm, heap_bytes};
use crate::Error;
use crate::hfile::type_name;

const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

pub(super) fn print(
    out: &mut dyn Write,
    form: LogForm,
    entry: &Entry,
    cells: &[Cell<'_>],
) -> Result<(), Error> {
    if !form.rows_only {
        writeln!(
            out,
            "Sequence={}, table={}, region={}, at write timestamp={}",
            entry.key.seq_id,
            to_string_binary(&entry.key.table),
            to_string_binary(&entry.key.region),
            java_date(i64::try_from(entry.key.write_time_ms).unwrap_or(i64::MAX))
        )?;
    }
    cells.iter().try_for_each(|cell| print_cell(out, form, cell))
}

fn print_cell(out: &mut dyn Write, form: LogForm, cell: &Cell<'_>) -> Result<(), Error> {
    let row = to_string_binary(cell.row());
    if form.rows_only {
        return Ok(writeln!(out, "row={row}")?);
    }
    writeln!(
        out,
        "row={row}, column={}:{}, timestamp={}, type={}",
        to_string_binary(cell.family()),
        to_string_binary(cell.qualifier()),
        cell.timestamp(),
        type_name(cell.type_code())
    )?;
    let shown_tags: Vec<String> = shown_tags(cell).collect();
    if !shown_tags.is_empty() {
        writeln!(out, "    tag: [{}]", shown_tags.join(", "))?;
    }
    if form.values {
        writeln!(out, "    value: {}", to_string_binary(cell.value))?;
    }
    Ok(writeln!(out, "cell total size sum: {}", heap_bytes(cell))?)
}

/// The tags of a cell, each as `type:value`.
pub(super) fn shown_tags(cell: &Cell<'_>) -> impl Iterator<Item = String> {
    tags::iter(cell.tags).map(|tag| format!("{}:{}", tag.kind, to_string_binary(tag.value)))
}

/// A time in the form of Java's `Date.toString`, in UTC: `Tue Nov 14 22:13:20 UTC 2023`.
fn java_date(timestamp_ms: i64) -> String {
    let time = CalendarTime::from_ms(timestamp_ms);
    let (weekday, month) = (WEEKDAYS[time.weekday as usize], MONTHS[time.month as usize - 1]);
    let CalendarTime { year, day, hour, minute, second, .. } = time;
    format!("{weekday} {month} {day:02} {hour:02}:{minute:02}:{second:02} UTC {year:04}")
}
