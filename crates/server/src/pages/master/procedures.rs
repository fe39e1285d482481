//! Procedures: those that run, and how others ended.

use master::procedure::executor::{Progress, Status};
use web::section::{Column, Section, Table};
use web::{Level, Page, Value};

use super::MasterPages;

impl MasterPages {
    /// The page of all procedures that are known, the newest first.
    pub(super) fn procedures(&self) -> Page {
        let mut known = self.master.procedures().list();
        known.reverse();
        let (running, ended): (Vec<_>, Vec<_>) =
            known.into_iter().partition(|(_, status)| status.progress == Progress::Running);
        let note = "How a procedure ended is remembered for a quarter of an hour.";
        let ended = Table { note: Some(note.into()), ..self.procedure_table("Ended", &ended) };
        Page {
            title: "Procedures".into(),
            subtitle: "Changes of tables and namespaces, each journaled before it acts.".into(),
            up: None,
            sections: vec![Section::Table(self.procedure_table("Running", &running)), Section::Table(ended)],
        }
    }

    /// Those that run, for the status page.
    pub(super) fn running_procedures(&self) -> Table {
        let mut known = self.master.procedures().list();
        known.retain(|(_, status)| status.progress == Progress::Running);
        Table { nothing: "No procedure runs.".into(), ..self.procedure_table("Running procedures", &known) }
    }

    fn procedure_table(&self, heading: &str, procedures: &[(u64, Status)]) -> Table {
        let now_ms = self.common.now_ms();
        let columns = vec![
            Column::number("Id"),
            Column::text("What"),
            Column::text("Of"),
            Column::text("State"),
            Column::number("Submitted"),
            Column::number("Took").titled("Until now, if it runs"),
            Column::text("Waits because").titled("The exception of the last attempt"),
            Column::number("Next attempt"),
        ];
        Table::new(heading, columns)
            .with_rows(procedures.iter().map(|(id, status)| values(*id, status, now_ms)))
    }
}

fn values(id: u64, status: &Status, now_ms: u64) -> Vec<Value> {
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

fn state(status: &Status) -> Value {
    match &status.progress {
        Progress::Running if status.waiting.is_some() => Value::text("WAITING").at(Level::Bad),
        Progress::Running if !status.begun => Value::text("QUEUED"),
        Progress::Running => Value::text("RUNNING").at(Level::Warning),
        Progress::Finished(None) => Value::text("SUCCESS").at(Level::Good),
        Progress::Finished(Some(exception)) => {
            Value::text("ROLLED BACK").at(Level::Bad).titled(exception.to_string())
        }
    }
}
