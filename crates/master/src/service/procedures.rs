//! Calls for procedures: their results, and `ExecProcedure`, with which 2.5 clients flush tables.

use cell::schema::TableName;
use proto::exception::{Answer, JavaException};
use proto::get_procedure_result_response::State;

use crate::master::Master;
use crate::procedure::Work;
use crate::procedure::executor::{ProcedureStatus, Progress};
use crate::repair;

/// The signature with which `ExecProcedure` flushes a table. The instance is the name of the table.
const FLUSH_TABLE_SIGNATURE: &str = "flush-table-proc";
/// How long a client waits for a procedure of `ExecProcedure`; HBase 2.5 returns the same.
pub(crate) const EXPECTED_TIMEOUT_MS: i64 = 300_000;

/// `getProcedureResult`.
pub(super) async fn result(
    master: &Master,
    request: proto::GetProcedureResultRequest,
) -> Answer<proto::GetProcedureResultResponse> {
    let Some(status) = master.procedures().status(request.proc_id) else {
        return Ok(proto::GetProcedureResultResponse { state: State::NotFound as i32, ..Default::default() });
    };
    let (state, exception) = match &status.progress {
        Progress::Running => (State::Running, None),
        Progress::Finished(exception) => (State::Finished, exception.as_ref()),
    };
    Ok(proto::GetProcedureResultResponse {
        state: state as i32,
        submitted_time: Some(status.submitted_ms),
        last_update: Some(status.updated_ms),
        result: None,
        exception: exception.map(Into::into),
    })
}

/// `GetProcedures`.
pub(super) async fn list(
    master: &Master,
    _: proto::GetProceduresRequest,
) -> Answer<proto::GetProceduresResponse> {
    let procedure = master.procedures().list().into_iter().map(|(id, status)| message(id, &status)).collect();
    Ok(proto::GetProceduresResponse { procedure })
}

fn message(id: u64, status: &ProcedureStatus) -> proto::Procedure {
    use proto::ProcedureState::{Rolledback, Runnable, Success, WaitingTimeout};
    debug_assert!(
        status.waiting.is_none() || status.progress == Progress::Running,
        "an ended procedure does not wait"
    );
    let (state, exception) = match (&status.progress, &status.waiting) {
        (Progress::Running, None) => (Runnable, None),
        (Progress::Running, Some(waiting)) => (WaitingTimeout, Some(&waiting.reason)),
        (Progress::Finished(None), _) => (Success, None),
        (Progress::Finished(Some(exception)), _) => (Rolledback, Some(exception)),
    };
    proto::Procedure {
        class_name: status.work.class_name().to_string(),
        proc_id: id,
        submitted_time: status.submitted_ms,
        last_update: status.updated_ms,
        state: state as i32,
        // The next attempt begins this many milliseconds after the last update.
        timeout: status.waiting.as_ref().map(|waiting| u32::try_from(waiting.pause_ms).unwrap_or(u32::MAX)),
        exception: exception.map(Into::into),
        locked: Some(status.begun && status.progress == Progress::Running),
        executed: Some(status.begun),
        ..proto::Procedure::default()
    }
}

/// `AbortProcedure`: returns whether the request was accepted.
pub(super) async fn abort(
    master: &Master,
    request: proto::AbortProcedureRequest,
) -> Answer<proto::AbortProcedureResponse> {
    let may_interrupt = request.may_interrupt_if_running();
    let is_procedure_aborted = master.procedures().abort(request.proc_id, may_interrupt);
    Ok(proto::AbortProcedureResponse { is_procedure_aborted })
}

/// `GetLocks`: always empty. Procedures lock tables and namespaces only in memory, and only while
/// they run.
pub(super) async fn locks(_: &Master, _: proto::GetLocksRequest) -> Answer<proto::GetLocksResponse> {
    Ok(proto::GetLocksResponse::default())
}

/// `ExecProcedure`.
pub(super) async fn exec(
    master: &Master,
    request: proto::ExecProcedureRequest,
) -> Answer<proto::ExecProcedureResponse> {
    if request.procedure.signature == repair::SIGNATURE {
        return repair::execute(master, &request.procedure).await;
    }
    let (table, families) = flush_of(&request.procedure)?;
    // With a nonce, the outcome outlives this master: the client will query it by the table's name.
    let random = &master.context().env.random;
    let nonce = (random.next_u64(), random.next_u64());
    master.submit(Work::FlushTable(table, families), nonce).await?;
    Ok(proto::ExecProcedureResponse { expected_timeout: Some(EXPECTED_TIMEOUT_MS), return_data: None })
}

/// `IsProcedureDone`: whether the last flush of the table has ended, or why it failed. An earlier
/// master may have begun it.
pub(super) async fn is_done(
    master: &Master,
    request: proto::IsProcedureDoneRequest,
) -> Answer<proto::IsProcedureDoneResponse> {
    let procedure = request.procedure.ok_or_else(|| JavaException::do_not_retry("no procedure is named"))?;
    let (table, _) = flush_of(&procedure)?;
    let flushes = |work: &Work| matches!(work, Work::FlushTable(flushed, _) if *flushed == table);
    let last = master.procedures().list().into_iter().rfind(|(_, status)| flushes(&status.work));
    match last.map(|(_, status)| status.progress) {
        Some(Progress::Running) => Ok(proto::IsProcedureDoneResponse { done: Some(false), snapshot: None }),
        Some(Progress::Finished(Some(exception))) => Err(exception),
        Some(Progress::Finished(None)) | None => {
            Ok(proto::IsProcedureDoneResponse { done: Some(true), snapshot: Some(procedure) })
        }
    }
}

fn flush_of(procedure: &proto::ProcedureDescription) -> Answer<(TableName, Vec<bytes::Bytes>)> {
    if procedure.signature != FLUSH_TABLE_SIGNATURE {
        return Err(JavaException::do_not_retry(format!(
            "The procedure is not registered: {}",
            procedure.signature
        )));
    }
    let table = TableName::parse(procedure.instance())
        .map_err(|error| JavaException::do_not_retry(error.to_string()))?;
    let families = procedure
        .configuration
        .iter()
        .filter(|pair| pair.name == "family")
        .map(|pair| bytes::Bytes::copy_from_slice(pair.value.as_bytes()))
        .collect();
    Ok((table, families))
}
