//! Detects faults of regions: holes and overlaps in `hbase:meta`, and differences between it and
//! the data directory.
//!
//! Runs at start and with each run of the catalog janitor. Tables with a running procedure are
//! skipped, because a procedure changes files and rows one after the other.

use std::collections::{HashMap, HashSet};

use cell::region::RegionInfo;
use cell::schema::TableName;
use proto::exception::Answer;
use tracing::warn;
use wire::meta::MetaRow;

use crate::integrity::{Fault, faults_of};
use crate::master::Master;
use crate::tables::file_exception;

/// Inspects the regions of all tables and stores the faults in
/// [`Integrity`](crate::integrity::Integrity). If the inspection fails, the stored faults stay.
pub(crate) async fn inspect_regions(master: &Master) {
    if let Err(error) = inspect(master).await {
        warn!(%error, "cannot inspect regions");
    }
}

async fn inspect(master: &Master) -> Answer<()> {
    let mut busy = master.procedures().busy_tables();
    let context = master.context();
    let content = context.meta.read_all().await?;
    let mut rows: HashMap<&TableName, Vec<&MetaRow>> = HashMap::new();
    for row in &content.regions {
        rows.entry(&row.region.table).or_default().push(row);
    }
    let (fs, root) = (context.tables.fs(), context.tables.root());
    let mut faults = Vec::new();
    for (table, _) in &content.tables {
        let rows = rows.remove(table).unwrap_or_default();
        let is_lost = context.tables.descriptor(table).is_none();
        if is_lost {
            faults.push(Fault::MissingDescriptor(table.clone()));
        }
        let regions: Vec<RegionInfo> = rows.iter().map(|row| row.region.clone()).collect();
        faults.extend(faults_of(table, &regions));
        let dirs = root.list_region_dirs(fs, table).await.map_err(file_exception)?;
        for fault in disagreements(table, &rows, &dirs) {
            match fault {
                // The table as a whole is lost, so a fault for each of its regions would not help.
                Fault::MissingDirectory(_) if is_lost => {}
                Fault::UnknownDirectory(table, dir, _) => {
                    let info = root.read_region_info(fs, &table, &dir).await.ok().flatten();
                    let range = info.map(|info| info.range());
                    let has_rows =
                        range.is_some_and(|range| regions.iter().any(|one| one.range().overlaps(&range)));
                    faults.push(Fault::UnknownDirectory(table, dir, has_rows));
                }
                fault => faults.push(fault),
            }
        }
    }
    let known: HashSet<&TableName> = content.tables.iter().map(|(table, _)| table).collect();
    for table in root.list_tables(fs).await.map_err(file_exception)? {
        if !known.contains(&table) && !table.is_meta() {
            faults.push(Fault::UnknownTable(table));
        }
    }
    busy.extend(master.procedures().busy_tables());
    context.integrity.replace(faults, |table| busy.contains(table));
    Ok(())
}

/// The differences between the rows and the directories of a table's regions.
fn disagreements(table: &TableName, rows: &[&MetaRow], dirs: &[String]) -> Vec<Fault> {
    let dirs: HashSet<&str> = dirs.iter().map(String::as_str).collect();
    let serving = rows.iter().filter(|row| !row.is_split_parent());
    let missing = serving.filter(|row| !dirs.contains(row.region.encoded_name().as_str()));
    let mut faults: Vec<Fault> = missing.map(|row| Fault::MissingDirectory(row.region.clone())).collect();
    let known: HashSet<String> = rows
        .iter()
        .flat_map(|row| std::iter::once(&row.region).chain(&row.merged_from).chain(&row.daughters))
        .map(RegionInfo::encoded_name)
        .collect();
    let mut unknown: Vec<&str> = dirs.into_iter().filter(|dir| !known.contains(*dir)).collect();
    unknown.sort_unstable();
    faults.extend(
        unknown.into_iter().map(|dir| Fault::UnknownDirectory(table.clone(), dir.to_string(), false)),
    );
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(start: &'static str, end: &'static str) -> MetaRow {
        let region = RegionInfo::new(TableName::parse("t").unwrap(), start.into(), end.into(), 1);
        MetaRow {
            region,
            server: None,
            start_code: None,
            open_seq_num: None,
            target: None,
            state: None,
            daughters: Vec::new(),
            merged_from: Vec::new(),
        }
    }

    #[test]
    fn directories_and_rows_are_compared() {
        let (mut first, second) = (row("", "m"), row("m", ""));
        let parent = RegionInfo::new(first.region.table.clone(), "".into(), "f".into(), 0);
        first.merged_from = vec![parent.clone()];
        let table = first.region.table.clone();
        let dirs = vec![first.region.encoded_name(), parent.encoded_name(), "0".repeat(32)];
        let faults = disagreements(&table, &[&first, &second], &dirs);
        let unknown = Fault::UnknownDirectory(table.clone(), "0".repeat(32), false);
        assert_eq!(faults, [Fault::MissingDirectory(second.region.clone()), unknown]);
        let whole = vec![first.region.encoded_name(), second.region.encoded_name()];
        assert_eq!(disagreements(&table, &[&first, &second], &whole), []);
    }

    #[test]
    fn parents_of_splits_need_no_directory() {
        let mut parent = row("", "");
        (parent.region.split, parent.region.offline) = (true, true);
        assert_eq!(disagreements(&parent.region.table, &[&parent], &[]), []);
    }
}
