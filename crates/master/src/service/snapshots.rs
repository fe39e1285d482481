//! Calls for snapshots.
//!
//! Older clients call `Snapshot` and then poll `IsSnapshotDone`. Newer clients poll the procedure
//! whose id is in the response to `Snapshot`.

use cell::schema::TableName;
use layout::snapshot::VERSION;
use proto::SnapshotDescription;
use proto::exception::{Answer, JavaException, class};
use tracing::info;

use super::procedures::EXPECTED_TIMEOUT_MS;
use crate::master::Master;
use crate::procedure::Work;
use crate::procedure::executor::Progress;
use crate::tables::file_exception;
use crate::{limits, refusal};

/// `Snapshot`: takes a snapshot.
pub(super) async fn take(
    master: &Master,
    request: proto::SnapshotRequest,
) -> Answer<proto::SnapshotResponse> {
    let nonce = (request.nonce_group(), request.nonce());
    let mut snapshot = request.snapshot;
    let table = check_names(&snapshot)?;
    if snapshot.creation_time() <= 0 {
        snapshot.creation_time = i64::try_from(master.context().env.clock.now_ms()).ok();
    }
    snapshot.version = Some(VERSION);
    check_not_running(master, &table, &snapshot)?;
    let proc_id = master.submit_checked(Work::Snapshot(table, Box::new(snapshot)), nonce).await?;
    Ok(proto::SnapshotResponse {
        expected_timeout: EXPECTED_TIMEOUT_MS,
        proc_id: i64::try_from(proc_id).ok(),
    })
}

/// Refuses a snapshot while another table's snapshot of the same name is being taken. (A second
/// snapshot of the same table waits for the first one and is refused then.)
fn check_not_running(master: &Master, table: &TableName, snapshot: &SnapshotDescription) -> Answer<()> {
    let is_of_other_table =
        |other: &TableName, taken: &SnapshotDescription| other != table && taken.name == snapshot.name;
    let takes_it =
        |work: &Work| matches!(work, Work::Snapshot(other, taken) if is_of_other_table(other, taken));
    if !master.procedures().is_running(takes_it) {
        return Ok(());
    }
    let message = format!(
        "Rejected taking {{ ss={} table={table} type={} ttl={} }} because we are already running another snapshot \
         with the same name",
        snapshot.name,
        snapshot.r#type().as_str_name(),
        snapshot.ttl()
    );
    Err(JavaException::new(class::SNAPSHOT_CREATION, message))
}

/// Checks the names of a snapshot and of its table. Returns the table.
fn check_names(snapshot: &SnapshotDescription) -> Answer<TableName> {
    let illegal = |error: cell::schema::IllegalName| JavaException::do_not_retry(error.to_string());
    TableName::new(cell::schema::DEFAULT_NAMESPACE, &snapshot.name).map_err(illegal)?;
    limits::check_snapshot_name(&snapshot.name)?;
    if snapshot.table().is_empty() {
        return Err(JavaException::do_not_retry(format!("Snapshot '{}' names no table", snapshot.name)));
    }
    let table = TableName::parse(snapshot.table()).map_err(illegal)?;
    limits::check_table_name(&table)?;
    Ok(table)
}

/// `GetCompletedSnapshots`.
pub(super) async fn completed(
    master: &Master,
    _: proto::GetCompletedSnapshotsRequest,
) -> Answer<proto::GetCompletedSnapshotsResponse> {
    let tables = &master.context().tables;
    let snapshots = tables.root().list_snapshots(tables.fs()).await.map_err(file_exception)?;
    Ok(proto::GetCompletedSnapshotsResponse { snapshots })
}

/// `IsSnapshotDone`: whether the snapshot is complete, or why it failed.
pub(super) async fn is_done(
    master: &Master,
    request: proto::IsSnapshotDoneRequest,
) -> Answer<proto::IsSnapshotDoneResponse> {
    let unknown = |message: String| JavaException::new(class::UNKNOWN_SNAPSHOT, message);
    let wanted = request.snapshot.ok_or_else(|| {
        unknown(
            "No snapshot name passed in request, can't figure out which snapshot you want to check.".into(),
        )
    })?;
    let takes_it = |work: &Work| matches!(work, Work::Snapshot(_, taken) if taken.name == wanted.name);
    let last = master.procedures().list().into_iter().rfind(|(_, status)| takes_it(&status.work));
    match last.map(|(_, status)| status.progress) {
        Some(Progress::Running) => {
            return Ok(proto::IsSnapshotDoneResponse { done: Some(false), snapshot: None });
        }
        Some(Progress::Finished(Some(exception))) if exception.do_not_retry => return Err(exception),
        // The snapshot has failed. With another class, clients would repeat the question.
        Some(Progress::Finished(Some(exception))) => {
            return Err(JavaException::new(class::SNAPSHOT_CREATION, exception.to_string()));
        }
        Some(Progress::Finished(None)) | None => {}
    }
    let tables = &master.context().tables;
    match tables.root().find_snapshot(tables.fs(), &wanted.name).await.map_err(file_exception)? {
        Some(found) => Ok(proto::IsSnapshotDoneResponse { done: Some(true), snapshot: Some(found) }),
        None => Err(unknown(format!("Snapshot '{}' is not being taken and is not there", wanted.name))),
    }
}

/// `DeleteSnapshot`. Waits for procedures that use the snapshot.
pub(super) async fn delete(
    master: &Master,
    request: proto::DeleteSnapshotRequest,
) -> Answer<proto::DeleteSnapshotResponse> {
    let name = request.snapshot.name;
    master.procedures().wait_for(|work| work.snapshot() == Some(&name)).await;
    let tables = &master.context().tables;
    let _changing = master.context().snapshot_changes.lock().await;
    // An unreadable snapshot is deleted, too, because it cannot be used any more.
    if !tables.root().has_snapshot(tables.fs(), &name).await.map_err(file_exception)? {
        return Err(refusal::no_such_snapshot(&name));
    }
    // After a takeover, this may be a newer snapshot of the same name.
    let owned = master.context().check_owned().await;
    owned.map_err(|error| JavaException::io(error.to_string()))?;
    tables.root().delete_snapshot(tables.fs(), &name).await.map_err(file_exception)?;
    info!(snapshot = name, "snapshot deleted");
    Ok(proto::DeleteSnapshotResponse {})
}

/// `RestoreSnapshot`: restores the table that the request names, or creates it if it does not
/// exist.
pub(super) async fn restore(
    master: &Master,
    request: proto::RestoreSnapshotRequest,
) -> Answer<proto::RestoreSnapshotResponse> {
    let nonce = (request.nonce_group(), request.nonce());
    let table = check_names(&request.snapshot)?;
    let snapshot = request.snapshot.name.clone();
    let work = match master.context().tables.state(&table) {
        Some(_) => Work::RestoreSnapshot { table, snapshot, plan: None, token: 0 },
        None => Work::CloneSnapshot { table, snapshot, plan: None },
    };
    let proc_id = master.submit_checked(work, nonce).await?;
    Ok(proto::RestoreSnapshotResponse { proc_id })
}
