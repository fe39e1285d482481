//! Calls about snapshots.
//!
//! The older clients take one by `Snapshot` and then ask `IsSnapshotDone`; the newer ones ask for the procedure whose
//! number the same answer has.

use cell::schema::TableName;
use layout::snapshot::VERSION;
use proto::SnapshotDescription;
use tracing::info;
use wire::exception::{Answer, JavaException, class};

use super::procedures::EXPECTED_TIMEOUT_MS;
use crate::master::Master;
use crate::procedure::Work;
use crate::procedure::executor::Progress;
use crate::tables::failed;
use crate::{limits, refusal};

/// `Snapshot`: takes one.
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
    let proc_id = master.submit_checked(Work::Snapshot(table, Box::new(snapshot)), nonce).await?;
    Ok(proto::SnapshotResponse {
        expected_timeout: EXPECTED_TIMEOUT_MS,
        proc_id: i64::try_from(proc_id).ok(),
    })
}

/// The table of a snapshot; the names of both are checked.
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
    let snapshots = tables.root().list_snapshots(tables.fs()).await.map_err(failed)?;
    Ok(proto::GetCompletedSnapshotsResponse { snapshots })
}

/// `IsSnapshotDone`: whether it is, or why it failed.
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
        Some(Progress::Finished(Some(exception))) => return Err(exception),
        Some(Progress::Finished(None)) | None => {}
    }
    let tables = &master.context().tables;
    match tables.root().find_snapshot(tables.fs(), &wanted.name).await.map_err(failed)? {
        Some(found) => Ok(proto::IsSnapshotDoneResponse { done: Some(true), snapshot: Some(found) }),
        None => Err(unknown(format!("Snapshot '{}' is not being taken and is not there", wanted.name))),
    }
}

/// `DeleteSnapshot`. What is being made of it is waited for.
pub(super) async fn delete(
    master: &Master,
    request: proto::DeleteSnapshotRequest,
) -> Answer<proto::DeleteSnapshotResponse> {
    let name = request.snapshot.name;
    master.procedures().wait_for(|work| work.snapshot() == Some(&name)).await;
    let tables = &master.context().tables;
    // Also one that cannot be read: nothing else is left to be done with it.
    if !tables.root().has_snapshot(tables.fs(), &name).await.map_err(failed)? {
        return Err(refusal::no_such_snapshot(&name));
    }
    tables.root().delete_snapshot(tables.fs(), &name).await.map_err(failed)?;
    info!(snapshot = name, "snapshot deleted");
    Ok(proto::DeleteSnapshotResponse {})
}

/// `RestoreSnapshot`: puts the table that the request names back, or makes it if there is none.
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
