//! How HBase stops accepting writes during a switch, and accepts them again.
//!
//! The tables are disabled until Grampus has all edits: closed regions take no writes. `READONLY`
//! alone would also reopen each region, which takes longer. Worse, the log would have the event
//! that opens a region after its last edits: a serial peer that reads both together waits for
//! `hbase.serial.replication.waiting.ms` (10 s). When Grampus has all edits, the tables become read
//! only and are enabled, so that clients can read them.
//!
//! Source: HBase `SerialReplicationChecker`.

use base::env::Env;
use cell::schema::{TableDescriptor, TableName};
use futures_util::future::{join_all, try_join_all};
use wire::meta::TableState;

use super::clusters::Clusters;
use super::plan::with_read_only;
use super::record::{Phase, Record};
use super::start::modify;

/// Memstores are flushed until a flush takes less time than this, in milliseconds.
const SHORT_FLUSH_MS: u128 = 500;
/// Flushes at most.
const FLUSHES_MAX: usize = 3;

/// Flushes the tables until little is left to flush: regions with a small memstore close faster.
///
/// # Errors
/// HBase's.
pub(super) async fn flush(env: &Env, clusters: &Clusters, tables: &[TableDescriptor]) -> Result<(), String> {
    let admin = clusters.source.admin();
    for _ in 0..FLUSHES_MAX {
        let begun = env.clock.monotonic();
        let flushes = tables.iter().map(|table| admin.flush(&table.name));
        try_join_all(flushes).await.map_err(|error| clusters.at_source(&error))?;
        if (env.clock.monotonic() - begun).as_millis() < SHORT_FLUSH_MS {
            break;
        }
    }
    Ok(())
}

/// Records which tables are about to be stopped: all that are not read only already.
///
/// # Errors
/// If the record cannot be written.
pub(super) fn mark(record: &mut Record, tables: &[TableDescriptor]) -> Result<(), String> {
    for table in tables.iter().filter(|table| !table.read_only()) {
        record.tables.get_mut(&table.name).expect("the table was described from the record").was_stopped =
            true;
    }
    record.phase = Phase::Switching;
    record.save()
}

/// Disables the marked tables. On return, no region of them takes writes.
///
/// # Errors
/// HBase's. Some tables may be disabled.
pub(super) async fn stop(clusters: &Clusters, record: &Record) -> Result<(), String> {
    // Waits for all of them: a table whose procedure runs cannot be enabled after a failure.
    join_all(marked(record).map(|table| disable(clusters, table))).await.into_iter().collect()
}

async fn disable(clusters: &Clusters, table: &TableName) -> Result<(), String> {
    let admin = clusters.source.admin();
    match admin.table_state(table).await.map_err(|error| clusters.at_source(&error))? {
        // By an interrupted switch.
        Some(TableState::Disabled) => Ok(()),
        _ => {
            let disabled = admin.disable_table(table).await;
            disabled.map_err(|error| format!("cannot disable {table}: {}", clusters.at_source(&error)))
        }
    }
}

/// Makes the marked tables read only, and enables them.
///
/// # Errors
/// HBase's. The call can be repeated.
pub(super) async fn make_readable(clusters: &Clusters, record: &Record) -> Result<(), String> {
    reopen_all(clusters, record, true).await
}

/// Makes the marked tables writable again, and removes the marks.
///
/// # Errors
/// HBase's, or if the record cannot be written. The call can be repeated.
pub(super) async fn make_writable(clusters: &Clusters, record: &mut Record) -> Result<(), String> {
    reopen_all(clusters, record, false).await.map_err(|error| {
        format!(
            "{error}. The tables of HBase may be disabled or read only: run `grampus migrate switch --abort`"
        )
    })?;
    for table in record.tables.values_mut() {
        table.was_stopped = false;
    }
    if record.phase == Phase::Switching {
        record.phase = Phase::Copied;
    }
    record.save()
}

/// The tables that this migration stopped, or was about to stop.
fn marked(record: &Record) -> impl Iterator<Item = &TableName> {
    record.tables.iter().filter(|(_, table)| table.was_stopped).map(|(name, _)| name)
}

/// Reopens the marked tables. An error of one does not prevent that the others are reopened.
async fn reopen_all(clusters: &Clusters, record: &Record, read_only: bool) -> Result<(), String> {
    join_all(marked(record).map(|table| reopen(clusters, table, read_only))).await.into_iter().collect()
}

/// Sets or clears `READONLY`, then enables the table: in this order, no write gets between.
async fn reopen(clusters: &Clusters, table: &TableName, read_only: bool) -> Result<(), String> {
    let Some(current) = clusters.describe_if_present(table).await? else { return Ok(()) };
    if current.read_only() != read_only {
        modify(clusters, &with_read_only(current, read_only)).await?;
    }
    enable(clusters, table).await
}

/// Enables a table, if it is disabled.
///
/// # Errors
/// HBase's.
pub(super) async fn enable(clusters: &Clusters, table: &TableName) -> Result<(), String> {
    let admin = clusters.source.admin();
    if admin.is_enabled(table).await.map_err(|error| clusters.at_source(&error))? {
        return Ok(());
    }
    let enabled = admin.enable_table(table).await;
    enabled.map_err(|error| format!("cannot enable {table}: {}", clusters.at_source(&error)))
}
