//! `grampus migrate copy`: writes all cells of HBase's tables to Grampus.
//!
//! The scans are raw: they return all versions and delete markers. The markers are needed, because
//! a client may put a cell with an older timestamp after the copy, which a marker hides in HBase.

use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use base::env::Env;
use bytes::Bytes;
use cell::query::{CellSelection, Scan};
use cell::schema::TableName;
use client::Row;
use futures_util::{StreamExt, TryStreamExt, stream};
use indicatif::{BinaryBytes, HumanCount, ProgressBar, ProgressStyle};
use proto::replication_state::State;

use super::CopyArguments;
use super::cells::{Batch, CopiedCells};
use super::clusters::Clusters;
use super::rate_limit::RateLimit;
use super::record::{Phase, RangeRecord, Record};
use super::snapshot;

/// Bytes of cells that are written together.
const BATCH_BYTES: u64 = 1 << 20;
/// Time between two writes of the record.
const SAVE_INTERVAL: Duration = Duration::from_secs(2);

/// Copies the ranges that are not copied yet, and enables the peer.
///
/// # Errors
/// A cluster's error. The step can be repeated, and continues where it stopped.
pub(super) async fn copy(env: &Env, arguments: &CopyArguments) -> Result<(), String> {
    let (mut record, clusters) = super::resume(env, &arguments.migration)?;
    if record.phase != Phase::Started {
        return Err("all tables are copied already. Next: grampus migrate status --watch".into());
    }
    if check_peer(&clusters, &record).await? == State::Enabled {
        // The last run was interrupted after it had enabled the peer.
        return finish(record);
    }
    for chosen in &arguments.snapshot {
        snapshot::restore(&clusters, &mut record, chosen).await?;
    }
    plan_ranges(&clusters, &mut record).await?;
    record.save()?;
    let pending = pending(&record);
    let copying = Copying::new(env, &clusters, record, arguments.rate, pending.len() as u64);
    let copied = stream::iter(pending)
        .map(|(table, at)| copying.copy_range(table, at))
        .buffer_unordered(usize::from(arguments.parallel))
        .try_collect::<Vec<()>>()
        .await;
    copying.bar.finish_and_clear();
    let record = copying.record.into_inner().expect("no holder of this lock panics");
    let saved = record.save();
    copied.map_err(|error| format!("{error}. Repeat the command to continue"))?;
    saved?;
    let ranges = record.tables.values().flat_map(|table| &table.ranges);
    let cells: u64 = ranges.clone().map(|range| range.cells).sum();
    println!(
        "copied {} cells in {} ranges of {} tables",
        HumanCount(cells),
        ranges.count(),
        record.tables.len()
    );
    let enabled = clusters.source.admin().enable_peer(&record.peer).await;
    enabled.map_err(|error| clusters.at_source(&error))?;
    finish(record)
}

/// Records that all is copied and the peer is enabled.
fn finish(mut record: Record) -> Result<(), String> {
    record.phase = Phase::Copied;
    record.save()?;
    println!(
        "enabled the peer {}: HBase sends the collected edits. Next: grampus migrate status --watch",
        record.peer
    );
    Ok(())
}

/// Whether all cells of all tables are copied.
fn is_all_copied(record: &Record) -> bool {
    let is_copied = |ranges: &[RangeRecord]| !ranges.is_empty() && ranges.iter().all(|range| range.is_done);
    record.tables.values().all(|table| is_copied(&table.ranges))
}

/// The state of the peer. It must be disabled until all is copied: a copied cell must not arrive
/// after a newer edit with the same timestamp.
async fn check_peer(clusters: &Clusters, record: &Record) -> Result<State, String> {
    let peers = clusters.source.admin().list_peers().await.map_err(|error| clusters.at_source(&error))?;
    let peer = &record.peer;
    match peers.iter().find(|description| description.id == *peer).map(|own| own.state.state()) {
        Some(State::Enabled) if !is_all_copied(record) => Err(format!(
            "the peer {peer} of HBase is enabled: copied cells may replace newer ones. Repeat the migration with \
             `grampus migrate abort`, and drop the tables in Grampus"
        )),
        Some(state) => Ok(state),
        None => Err(format!("HBase has no peer {peer}: run `grampus migrate start` first")),
    }
}

/// One range for each region of HBase, for tables without ranges.
async fn plan_ranges(clusters: &Clusters, record: &mut Record) -> Result<(), String> {
    for (name, table) in record.tables.iter_mut().filter(|(_, table)| table.ranges.is_empty()) {
        let regions = clusters.source.admin().regions(name).await;
        let regions = regions.map_err(|error| clusters.at_source(&error))?;
        let starts = regions.into_iter().map(|region| region.start_key).collect();
        let ranges = crate::diff::range::ranges(starts, &Bytes::new(), &Bytes::new());
        let planned = ranges.into_iter().map(|range| RangeRecord {
            start: range.start,
            stop: range.stop,
            ..RangeRecord::default()
        });
        table.ranges = planned.collect();
    }
    Ok(())
}

/// The ranges that are not copied, as table and position.
fn pending(record: &Record) -> Vec<(TableName, usize)> {
    let of_table = |(name, table): (&TableName, &super::record::TableRecord)| {
        let open = table.ranges.iter().enumerate().filter(|(_, range)| !range.is_done);
        open.map(|(at, _)| (name.clone(), at)).collect::<Vec<_>>()
    };
    record.tables.iter().flat_map(of_table).collect()
}

/// The scan of what is left of a range.
fn scan(range: &RangeRecord) -> Scan {
    let is_begun = !range.copied_to.is_empty();
    Scan {
        start_row: if is_begun { range.copied_to.clone() } else { range.start.clone() },
        include_start_row: !is_begun,
        stop_row: range.stop.clone(),
        raw: true,
        selection: CellSelection {
            max_versions: i32::MAX.cast_unsigned(),
            cache_blocks: false,
            ..CellSelection::default()
        },
        ..Scan::default()
    }
}

/// A running copy.
struct Copying<'a> {
    env: &'a Env,
    clusters: &'a Clusters,
    record: Mutex<Record>,
    saved_at: Mutex<Duration>,
    limit: RateLimit,
    bar: ProgressBar,
    totals: Mutex<Totals>,
}

/// What this run has copied.
#[derive(Default)]
struct Totals {
    cells: u64,
    bytes: u64,
}

impl<'a> Copying<'a> {
    fn new(
        env: &'a Env,
        clusters: &'a Clusters,
        record: Record,
        rate: Option<u64>,
        ranges: u64,
    ) -> Copying<'a> {
        Copying {
            env,
            clusters,
            record: Mutex::new(record),
            saved_at: Mutex::new(env.clock.monotonic()),
            limit: RateLimit::new(rate),
            bar: progress_bar(ranges),
            totals: Mutex::default(),
        }
    }

    async fn copy_range(&self, name: TableName, at: usize) -> Result<(), String> {
        let range = self.record().tables[&name].ranges[at].clone();
        let source = self.clusters.source.table(name.clone());
        let mut scanner = source.scan(scan(&range)).in_parts();
        let mut copied = CopiedCells::default();
        loop {
            let row: Option<Row> = scanner.next().await.map_err(|error| self.clusters.at_source(&error))?;
            let is_end = row.is_none();
            if let Some(row) = row {
                copied.add(row);
            }
            if is_end || copied.bytes() >= BATCH_BYTES {
                self.write(&name, at, copied.take(), is_end).await?;
            }
            if is_end {
                self.bar.inc(1);
                return Ok(());
            }
        }
    }

    async fn write(&self, name: &TableName, at: usize, batch: Batch, is_end: bool) -> Result<(), String> {
        let delay = self.limit.delay(self.env.clock.monotonic(), batch.bytes);
        if !delay.is_zero() {
            self.env.clock.sleep(delay).await;
        }
        let target = self.clusters.target.table(name.clone());
        target.mutate_all(batch.mutations).await.map_err(|error| self.clusters.at_target(&error))?;
        {
            let mut record = self.record();
            let table = record.tables.get_mut(name).expect("the range is of a recorded table");
            let range = &mut table.ranges[at];
            range.cells += batch.cells;
            range.is_done = is_end;
            if !batch.complete_row.is_empty() {
                range.copied_to = batch.complete_row;
            }
        }
        self.show(batch.cells, batch.bytes);
        self.save_sometimes()
    }

    fn show(&self, cells: u64, bytes: u64) {
        let mut totals = self.totals.lock().expect("no holder of this lock panics");
        totals.cells += cells;
        totals.bytes += bytes;
        if !self.bar.is_hidden() {
            let per_s = totals.bytes as f64 / self.bar.elapsed().as_secs_f64().max(0.001);
            let (cells, bytes, per_s) =
                (HumanCount(totals.cells), BinaryBytes(totals.bytes), BinaryBytes(per_s as u64));
            self.bar.set_message(format!("{cells} cells, {bytes}, {per_s}/s"));
        }
    }

    fn save_sometimes(&self) -> Result<(), String> {
        let now = self.env.clock.monotonic();
        let mut saved_at = self.saved_at.lock().expect("no holder of this lock panics");
        if now.saturating_sub(*saved_at) < SAVE_INTERVAL {
            return Ok(());
        }
        *saved_at = now;
        self.record().save()
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().expect("no holder of this lock panics")
    }
}

/// A bar on standard error. It stays hidden if that is not a terminal.
fn progress_bar(ranges: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let template = "copying [{bar:32.green}] {pos} of {len} ranges, {msg}, {elapsed}";
    let style = ProgressStyle::with_template(template).expect("the template is valid").progress_chars("=> ");
    ProgressBar::new(ranges).with_style(style)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::record::TableRecord;
    use super::*;

    #[test]
    fn a_repeated_copy_continues_after_the_last_complete_row() {
        let range = RangeRecord { start: "b".into(), stop: "m".into(), ..RangeRecord::default() };
        let first = scan(&range);
        assert_eq!((first.start_row.as_ref(), first.include_start_row), (&b"b"[..], true));
        assert!(first.raw && first.stop_row == "m" && !first.include_stop_row);
        let rest = scan(&RangeRecord { copied_to: "c".into(), ..range });
        assert_eq!((rest.start_row.as_ref(), rest.include_start_row), (&b"c"[..], false));
    }

    #[test]
    fn only_ranges_that_are_not_done_are_pending() {
        let mut record = Record::new(Path::new("file"), String::new(), String::new(), "p".into());
        let done = RangeRecord { is_done: true, ..RangeRecord::default() };
        let ranges = vec![done.clone(), RangeRecord::default(), done];
        let name = TableName::parse("t").unwrap();
        record.tables.insert(name.clone(), TableRecord { ranges, ..TableRecord::default() });
        assert_eq!(pending(&record), [(name.clone(), 1)]);
        assert!(!is_all_copied(&record));
        record.tables.get_mut(&name).unwrap().ranges[1].is_done = true;
        assert!(is_all_copied(&record));
        record.tables.insert(TableName::parse("u").unwrap(), TableRecord::default());
        assert!(!is_all_copied(&record), "a table whose copy has not begun");
    }
}
