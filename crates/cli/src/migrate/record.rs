//! The progress of a migration, in a JSON file.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use cell::schema::TableName;
use serde_json::{Value, json};

use crate::shell::text::{binary, from_binary};

/// Version of the file's format.
const VERSION: u64 = 1;

/// How to continue when HBase has lost its peer.
pub(super) const ABORT_FIRST: &str = "run `grampus migrate abort`, then begin again with `start`";

/// The last step that was completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// HBase collects edits.
    Started,
    /// All cells are copied, and HBase sends edits.
    Copied,
    /// The tables of HBase are being made read only.
    Switching,
    /// Grampus has all edits. If the switch was interrupted, the tables of HBase may still be
    /// disabled, and the peer may exist.
    Switched,
}

const PHASES: [(Phase, &str); 4] = [
    (Phase::Started, "started"),
    (Phase::Copied, "copied"),
    (Phase::Switching, "switching"),
    (Phase::Switched, "switched"),
];

/// What is known of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    path: PathBuf,
    /// The cluster of HBase.
    pub(super) from: String,
    /// The cluster of Grampus.
    pub(super) to: String,
    /// Name of the peer.
    pub(super) peer: String,
    /// When HBase had begun to collect edits, in milliseconds since the epoch.
    pub(super) started_ms: u64,
    pub(super) phase: Phase,
    pub(super) tables: BTreeMap<TableName, TableRecord>,
}

/// What is known of a table.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct TableRecord {
    /// Families whose replication scope was changed.
    pub(super) scoped: Vec<Bytes>,
    /// Whether a switch stopped the writes to the table, or was about to.
    pub(super) was_stopped: bool,
    /// The ranges to copy; empty until the copy begins.
    pub(super) ranges: Vec<RangeRecord>,
}

/// A range of rows to copy.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct RangeRecord {
    /// The first row; empty for the start of the table.
    pub(super) start: Bytes,
    /// The row after the last one; empty for the end of the table.
    pub(super) stop: Bytes,
    /// The last row of which all cells were copied; empty if there is none.
    pub(super) copied_to: Bytes,
    /// Whether all rows were copied.
    pub(super) is_done: bool,
    /// Cells copied.
    pub(super) cells: u64,
}

impl Record {
    pub(super) fn new(path: &Path, from: String, to: String, peer: String) -> Record {
        let tables = BTreeMap::new();
        let path = path.to_path_buf();
        Record { path, from, to, peer, started_ms: 0, phase: Phase::Started, tables }
    }

    /// Reads the file.
    ///
    /// # Errors
    /// If there is none, or it is invalid.
    pub(super) fn load(path: &Path) -> Result<Record, String> {
        match Record::load_if_present(path)? {
            Some(record) => Ok(record),
            None => Err(format!(
                "no migration is recorded in {}: run `grampus migrate start` first, or name its file with --state",
                path.display()
            )),
        }
    }

    /// Reads the file, if it exists.
    #[allow(clippy::disallowed_methods, reason = "a file of the operator's, not one of the store's")]
    pub(super) fn load_if_present(path: &Path) -> Result<Option<Record>, String> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        };
        let value = serde_json::from_slice(&bytes).map_err(|error| error.to_string());
        let record = value.and_then(|value| from_json(path, &value));
        record
            .map(Some)
            .map_err(|reason| format!("{} is not a record of a migration: {reason}", path.display()))
    }

    /// Replaces the file. On return, its new content is durable: it is what restores the tables of
    /// HBase.
    ///
    /// # Errors
    /// If it cannot be written.
    #[allow(clippy::disallowed_methods, reason = "a file of the operator's, not one of the store's")]
    pub(super) fn save(&self) -> Result<(), String> {
        let mut written = self.path.clone().into_os_string();
        written.push(".new");
        let write = || {
            let mut file = std::fs::File::create(&written)?;
            file.write_all(format!("{:#}\n", self.to_json()).as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&written, &self.path)?;
            std::fs::File::open(directory_of(&self.path))?.sync_all()
        };
        let saved: std::io::Result<()> = write();
        saved.map_err(|error| format!("cannot write {}: {error}", self.path.display()))
    }

    /// Removes the file.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub(super) fn remove(&self) -> Result<(), String> {
        std::fs::remove_file(&self.path)
            .map_err(|error| format!("cannot remove {}: {error}", self.path.display()))
    }

    fn to_json(&self) -> Value {
        let phase = PHASES.iter().find(|(phase, _)| *phase == self.phase).expect("each phase has a name").1;
        let tables = self.tables.iter().map(|(name, table)| (name.to_string(), table.to_json()));
        json!({
            "version": VERSION,
            "from": self.from,
            "to": self.to,
            "peer": self.peer,
            "startedMs": self.started_ms,
            "phase": phase,
            "tables": tables.collect::<serde_json::Map<_, _>>(),
        })
    }
}

impl TableRecord {
    fn to_json(&self) -> Value {
        let range = |range: &RangeRecord| {
            json!({
                "start": binary(&range.start),
                "stop": binary(&range.stop),
                "copiedTo": binary(&range.copied_to),
                "done": range.is_done,
                "cells": range.cells,
            })
        };
        json!({
            "scoped": self.scoped.iter().map(|family| binary(family)).collect::<Vec<_>>(),
            "wasStopped": self.was_stopped,
            "ranges": self.ranges.iter().map(range).collect::<Vec<_>>(),
        })
    }
}

fn from_json(path: &Path, value: &Value) -> Result<Record, String> {
    if value["version"] != VERSION {
        return Err(format!("version {} is unknown", value["version"]));
    }
    let phase = text(value, "phase")?;
    let (phase, _) = PHASES.iter().find(|(_, name)| *name == phase).ok_or("its phase is unknown")?;
    let mut record = Record::new(path, text(value, "from")?, text(value, "to")?, text(value, "peer")?);
    record.phase = *phase;
    record.started_ms = value["startedMs"].as_u64().ok_or("startedMs is missing")?;
    for (name, table) in value["tables"].as_object().ok_or("it has no tables")? {
        let name = TableName::parse(name).map_err(|error| error.to_string())?;
        record.tables.insert(name, table_from_json(table)?);
    }
    Ok(record)
}

fn table_from_json(value: &Value) -> Result<TableRecord, String> {
    let list = |key: &str| value[key].as_array().ok_or(format!("a table has no {key}"));
    let family = |family: &Value| family.as_str().map(bytes_of).ok_or("a family is not text");
    let range = |range: &Value| {
        Ok::<_, String>(RangeRecord {
            start: bytes_of(&text(range, "start")?),
            stop: bytes_of(&text(range, "stop")?),
            copied_to: bytes_of(&text(range, "copiedTo")?),
            is_done: range["done"].as_bool().ok_or("a range lacks its state")?,
            cells: range["cells"].as_u64().ok_or("a range lacks its cells")?,
        })
    };
    Ok(TableRecord {
        scoped: list("scoped")?.iter().map(family).collect::<Result<_, _>>()?,
        was_stopped: value["wasStopped"].as_bool().ok_or("a table lacks wasStopped")?,
        ranges: list("ranges")?.iter().map(range).collect::<Result<_, _>>()?,
    })
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

fn text(value: &Value, key: &str) -> Result<String, String> {
    value[key].as_str().map(str::to_string).ok_or(format!("{key} is missing"))
}

fn bytes_of(text: &str) -> Bytes {
    from_binary(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(path: &Path) -> Record {
        let mut record = Record::new(path, "a:1".into(), "b:2:/x".into(), "p".into());
        record.started_ms = 1_795_891_257_080;
        let range = RangeRecord {
            start: Bytes::from_static(b"\x00\\x\xff\"b"),
            copied_to: Bytes::from_static(b"c"),
            cells: u64::MAX,
            ..RangeRecord::default()
        };
        let table = TableRecord {
            scoped: vec![Bytes::from_static(b"f\x01")],
            was_stopped: true,
            ranges: vec![range, RangeRecord { is_done: true, ..RangeRecord::default() }],
        };
        record.tables.insert(TableName::parse("n:t").unwrap(), table);
        record
    }

    #[test]
    fn a_record_is_restored() {
        for (phase, _) in PHASES {
            let record = Record { phase, ..record(Path::new("file")) };
            assert_eq!(from_json(Path::new("file"), &record.to_json()), Ok(record));
        }
    }

    #[test]
    fn the_directory_of_the_file_is_synced() {
        for (path, expected) in [("/a/b.json", "/a"), ("a/b.json", "a"), ("b.json", "."), ("/b.json", "/")] {
            assert_eq!(directory_of(Path::new(path)), Path::new(expected), "{path}");
        }
        let missing = record(Path::new("/nowhere/at/all/b.json")).save();
        assert!(missing.unwrap_err().starts_with("cannot write /nowhere/at/all/b.json: "));
    }

    #[test]
    fn invalid_files_are_refused() {
        let path = Path::new("file");
        let valid = record(path).to_json();
        for (key, value) in [("version", json!(2)), ("phase", json!("x")), ("tables", json!({"t": {}}))] {
            let mut changed = valid.clone();
            changed[key] = value;
            assert!(from_json(path, &changed).is_err(), "{key}");
        }
        assert!(from_json(path, &json!([])).is_err());
    }
}
