//! The page of procedures: running ones, and the results of ended ones.

use master::procedure::executor::{ProcedureStatus, Progress};
use web::section::{Column, Section, Table};
use web::{Level, Page, Value};

use super::MasterPages;

impl MasterPages {
    /// The page of all known procedures, newest first.
    pub(super) fn procedures(&self) -> Page {
        let mut procedures = self.master.procedures().list();
        procedures.reverse();
        let (running, ended): (Vec<_>, Vec<_>) =
            procedures.into_iter().partition(|(_, status)| status.progress == Progress::Running);
        let note = "Results are kept for 15 minutes.";
        let ended = Table { note: Some(note.into()), ..self.procedure_table("Ended", &ended) };
        Page {
            title: "Procedures".into(),
            subtitle: "Changes to tables and namespaces; each is journaled before it takes effect.".into(),
            up: None,
            sections: vec![Section::Table(self.procedure_table("Running", &running)), Section::Table(ended)],
        }
    }

    /// The running procedures, for the status page.
    pub(super) fn running_procedures(&self) -> Table {
        let mut procedures = self.master.procedures().list();
        procedures.retain(|(_, status)| status.progress == Progress::Running);
        Table {
            empty_text: "No running procedures.".into(),
            ..self.procedure_table("Running procedures", &procedures)
        }
    }

    fn procedure_table(&self, heading: &str, procedures: &[(u64, ProcedureStatus)]) -> Table {
        let now_ms = self.context.now_ms();
        let columns = vec![
            Column::number("Id"),
            Column::text("Procedure"),
            Column::text("Target"),
            Column::text("State"),
            Column::number("Submitted"),
            Column::number("Duration").titled("Until now if it is running"),
            Column::text("Last error").titled("Exception of the last attempt"),
            Column::number("Next attempt"),
        ];
        Table::new(heading, columns)
            .with_rows(procedures.iter().map(|(id, status)| values(*id, status, now_ms)))
    }
}

fn values(id: u64, status: &ProcedureStatus, now_ms: u64) -> Vec<Value> {
    let class = status.work.class_name();
    let name = class.rsplit('.').next().unwrap_or(class);
    let waiting = status.waiting.as_ref();
    let end_ms = if status.progress == Progress::Running { now_ms } else { status.updated_ms };
    vec![
        Value::id(id.to_string()),
        Value::text(name.strip_suffix("Procedure").unwrap_or(name)).titled(class),
        Value::key(status.work.subject().to_string().as_bytes()),
        state(status),
        Value::ago(status.submitted_ms, now_ms),
        Value::duration(end_ms.saturating_sub(status.submitted_ms)),
        waiting.map_or_else(|| Value::text(""), |waiting| Value::text(waiting.reason.to_string())),
        waiting.map_or_else(
            || Value::text(""),
            |waiting| Value::duration(waiting.next_attempt_ms.saturating_sub(now_ms)),
        ),
    ]
}

fn state(status: &ProcedureStatus) -> Value {
    match &status.progress {
        Progress::Running if status.waiting.is_some() => Value::text("WAITING").with_level(Level::Bad),
        Progress::Running if !status.begun => Value::text("QUEUED"),
        Progress::Running => Value::text("RUNNING").with_level(Level::Warning),
        Progress::Finished(None) => Value::text("SUCCESS").with_level(Level::Good),
        Progress::Finished(Some(exception)) => {
            Value::text("ROLLED BACK").with_level(Level::Bad).titled(exception.to_string())
        }
    }
}
