//! The initial copy of a table from a snapshot, which HBase's `ExportSnapshot` has copied to the
//! root directory of Grampus.

use std::str::FromStr;

use cell::query::Scan;
use cell::schema::TableName;
use client::ScanOptions;
use proto::SnapshotDescription;
use proto::snapshot_description::Type;

use super::clusters::Clusters;
use super::record::{RangeRecord, Record};

/// A table, and the snapshot that has its cells: `TABLE=SNAPSHOT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSnapshot {
    pub(super) table: TableName,
    pub(super) name: String,
}

impl FromStr for TableSnapshot {
    type Err = String;

    fn from_str(text: &str) -> Result<TableSnapshot, String> {
        let (table, name) = text.split_once('=').ok_or("expected TABLE=SNAPSHOT")?;
        let table = TableName::parse(table).map_err(|error| error.to_string())?;
        match name.is_empty() {
            true => Err("expected TABLE=SNAPSHOT".to_owned()),
            false => Ok(TableSnapshot { table, name: name.to_owned() }),
        }
    }
}

/// Restores an empty table to a snapshot, and records that it is copied. Does nothing if it was.
///
/// # Errors
/// If the table is not empty, the snapshot is not suitable, or Grampus refuses it.
pub(super) async fn restore(
    clusters: &Clusters,
    record: &mut Record,
    chosen: &TableSnapshot,
) -> Result<(), String> {
    let (table, name) = (&chosen.table, &chosen.name);
    let started_ms = record.started_ms;
    let recorded = record.tables.get_mut(table);
    let recorded = recorded.ok_or_else(|| format!("{table} is not a table of this migration"))?;
    match recorded.ranges.as_slice() {
        [] => {}
        ranges if ranges.iter().all(|range| range.is_done) => return Ok(()),
        _ => {
            return Err(format!(
                "{table} is being copied by scans: repeat `grampus migrate copy` without its snapshot"
            ));
        }
    }
    let target = clusters.target.admin();
    let snapshots = target.list_snapshots().await.map_err(|error| clusters.at_target(&error))?;
    check(&snapshots, chosen, started_ms)?;
    if !is_empty(clusters, table).await? {
        return Err(format!(
            "{table} has cells in Grampus, which the snapshot would remove: truncate it first"
        ));
    }
    let restored = async {
        target.disable_table(table).await?;
        target.restore_snapshot(name, table).await?;
        target.enable_table(table).await
    };
    restored
        .await
        .map_err(|error| format!("cannot restore {table} to {name}: {}", clusters.at_target(&error)))?;
    recorded.ranges = vec![RangeRecord { is_done: true, ..RangeRecord::default() }];
    println!("restored {table} to the snapshot {name}");
    record.save()
}

/// Checks that a snapshot is of the table, has all its cells, and was taken when HBase collected
/// edits already. A snapshot without a flush lacks cells in memory. Logs that are older than the
/// peer may have them, which HBase does not send.
fn check(snapshots: &[SnapshotDescription], chosen: &TableSnapshot, started_ms: u64) -> Result<(), String> {
    let (table, name) = (&chosen.table, &chosen.name);
    let Some(snapshot) = snapshots.iter().find(|snapshot| snapshot.name == *name) else {
        return Err(format!("Grampus has no snapshot {name}: export it to the root directory of Grampus"));
    };
    if snapshot.table() != table.to_string() {
        return Err(format!("the snapshot {name} is of the table {}, not of {table}", snapshot.table()));
    }
    if snapshot.r#type() == Type::Skipflush {
        return Err(format!(
            "the snapshot {name} was taken with SKIP_FLUSH, so it lacks cells in memory: take one without it"
        ));
    }
    match u64::try_from(snapshot.creation_time()) {
        Ok(taken_ms) if taken_ms > started_ms => Ok(()),
        _ => Err(format!(
            "the snapshot {name} was taken before HBase began to collect edits: take one after `grampus migrate start`"
        )),
    }
}

async fn is_empty(clusters: &Clusters, table: &TableName) -> Result<bool, String> {
    let admin = clusters.target.admin();
    if !admin.is_enabled(table).await.map_err(|error| clusters.at_target(&error))? {
        // An interrupted restoration leaves the table disabled.
        admin.enable_table(table).await.map_err(|error| clusters.at_target(&error))?;
    }
    let options = ScanOptions { limit: 1, ..ScanOptions::default() };
    let mut scanner = clusters.target.table(table.clone()).scan_with(Scan::default(), options);
    let first = scanner.next().await.map_err(|error| clusters.at_target(&error))?;
    Ok(first.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_and_snapshot_are_parsed() {
        let parsed: TableSnapshot = "n:t=s".parse().unwrap();
        assert_eq!((parsed.table.to_string().as_str(), parsed.name.as_str()), ("n:t", "s"));
        for text in ["t", "t=", "=s", "a b=s"] {
            assert!(text.parse::<TableSnapshot>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_a_later_snapshot_of_the_table_is_suitable() {
        let snapshot = SnapshotDescription {
            name: "s".into(),
            table: Some("t".into()),
            creation_time: Some(1001),
            ..SnapshotDescription::default()
        };
        let check = |text: &str, started_ms| {
            check(std::slice::from_ref(&snapshot), &text.parse().unwrap(), started_ms)
        };
        check("t=s", 1000).unwrap();
        assert!(check("t=s", 1001).unwrap_err().contains("was taken before"));
        assert!(check("u=s", 1000).unwrap_err().contains("is of the table t"));
        assert!(check("t=other", 1000).unwrap_err().contains("no snapshot other"));
    }

    #[test]
    fn a_snapshot_must_have_been_flushed() {
        let check = |kind: Type| {
            let snapshot = SnapshotDescription {
                name: "s".into(),
                table: Some("t".into()),
                creation_time: Some(1001),
                r#type: Some(kind as i32),
                ..SnapshotDescription::default()
            };
            check(&[snapshot], &"t=s".parse().unwrap(), 1000)
        };
        check(Type::Flush).unwrap();
        check(Type::Disabled).unwrap();
        assert!(check(Type::Skipflush).unwrap_err().contains("SKIP_FLUSH"));
    }
}
