//! Commands about procedures of the master.

use proto::ProcedureState;

use super::{Arity, Command, Group, Outcome};
use crate::shell::arguments::Arguments;
use crate::shell::error::{Result, usage};
use crate::shell::session::ShellSession;
use crate::shell::text::ruby_time;
use crate::shell::value::Value;

pub(super) const GROUP: Group = Group {
    name: "procedures",
    commands: &[
        Command {
            name: "list_procedures",
            arity: Arity::exactly(0),
            aliases: &[],
            summary: "List the master's procedures; for a waiting one, the reason and the time of the next attempt",
            usage: "  grampus> list_procedures",
            run: |session, arguments| Box::pin(list(session, arguments)),
        },
        Command {
            name: "abort_procedure",
            arity: Arity::between(1, 2),
            aliases: &[],
            summary: "Abort a procedure, if possible; shows whether the master accepted the request",
            usage: "  grampus> abort_procedure 1700000000001\n  grampus> abort_procedure 1700000000001, false",
            run: |session, arguments| Box::pin(abort(session, arguments)),
        },
    ],
};

async fn list(session: &mut ShellSession, arguments: Arguments) -> Result<Outcome> {
    arguments.finish()?;
    let procedures = session.client.admin().procedures().await?;
    let printer = &mut session.printer;
    printer.head("PID Name State Submitted Last_Update Parameters")?;
    for procedure in &procedures {
        printer.row(&shown(procedure))?;
    }
    printer.footer(procedures.len() as u64)?;
    Ok(Outcome::Done)
}

fn shown(procedure: &proto::Procedure) -> String {
    let class = &procedure.class_name;
    let name = class.rsplit('.').next().unwrap_or(class);
    let time = |ms: u64| ruby_time(i64::try_from(ms).unwrap_or(i64::MAX));
    let mut row = format!(
        "{} {name} {} {} {}",
        procedure.proc_id,
        procedure.state().as_str_name(),
        time(procedure.submitted_time),
        time(procedure.last_update)
    );
    if let Some(exception) = &procedure.exception {
        row.push_str(&format!(" reason: {}", proto::exception::JavaException::from_foreign(exception)));
    }
    if let (ProcedureState::WaitingTimeout, Some(pause_ms)) = (procedure.state(), procedure.timeout) {
        row.push_str(&format!("; next attempt: {}", time(procedure.last_update + u64::from(pause_ms))));
    }
    row
}

async fn abort(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let id = arguments.required("the number of a procedure")?;
    let Some(id) = id.string().and_then(|text| text.parse().ok()) else {
        return usage(format!("{id} is not the number of a procedure"));
    };
    let may_interrupt = match arguments.next().as_ref().and_then(Value::string).as_deref() {
        None | Some("true") => true,
        Some("false") => false,
        Some(other) => return usage(format!("expected true or false, not {other}")),
    };
    arguments.finish()?;
    let is_accepted = session.client.admin().abort_procedure(id, may_interrupt).await?;
    session.printer.row(&is_accepted.to_string())?;
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_procedure_has_its_reason_and_next_attempt() {
        let exception = proto::exception::JavaException::io("no space left");
        let procedure = proto::Procedure {
            class_name: "org.apache.hadoop.hbase.master.procedure.DeleteTableProcedure".into(),
            proc_id: 7,
            state: ProcedureState::WaitingTimeout as i32,
            submitted_time: 1_700_000_000_000,
            last_update: 1_700_000_001_000,
            timeout: Some(2000),
            exception: Some((&exception).into()),
            ..proto::Procedure::default()
        };
        let row = shown(&procedure);
        assert!(row.starts_with("7 DeleteTableProcedure WAITING_TIMEOUT 2023-11-14 22:13:20"), "{row}");
        assert!(row.contains("no space left; next attempt: 2023-11-14 22:13:23"), "{row}");
    }
}
