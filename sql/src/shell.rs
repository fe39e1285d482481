//! Statements of a person, a script or a pipe: run one after the other, their rows shown.

mod editor;
mod output;

use std::io::{self, BufRead, IsTerminal, Write};

use base::env::Env;
use datafusion::error::DataFusionError;
use datafusion::sql::parser::Statement;
use futures_util::StreamExt;

use crate::statements::{Engine, Outcome, told};
use editor::{Entered, LineEditor};
pub use output::Style;
use output::{Output, seconds};

const BANNER: &str =
    "Grampus SQL. Statements end with a semicolon; \"help\" tells more, \"exit\" or Ctrl-D leaves.";
const HELP: &str = "\
SHOW TABLES;                what is declared; also \\dt
\\d TABLE                    how a table was declared
CREATE EXTERNAL TABLE t (id VARCHAR PRIMARY KEY, a BIGINT, b DOUBLE) STORED AS GRAMPUS LOCATION 'ns:table';
                            declares a table of the cluster; OPTIONS ('a' 'f:a text_long', 'table.encoding' 'text')
                            say where values are and how they are written, see docs/sql.md
DROP TABLE t;               removes the declaration, not the table
EXPLAIN SELECT ..;          what is done where: GrampusAggregate and GrampusScan are done by the servers
exit                        leaves; also \\q";

/// Why the shell ended with a failure: told already, or still to be told.
pub struct Failed(pub Option<String>);

/// Runs statements and shows what comes of them.
pub struct Shell {
    engine: Engine,
    env: Env,
    style: Style,
}

/// What follows a statement or a command.
enum Step {
    Done,
    Exit,
    Failed,
}

impl Shell {
    /// A shell that shows rows in this style.
    pub fn new(engine: Engine, env: Env, style: Style) -> Shell {
        Shell { engine, env, style }
    }

    /// Runs a script; the first failure ends it.
    ///
    /// # Errors
    /// [`Failed`].
    pub async fn script(&self, sql: &str) -> Result<(), Failed> {
        match self.run_all(sql, false).await {
            Ok(Step::Failed) => Err(Failed(None)),
            Ok(_) => Ok(()),
            Err(error) => ended(error),
        }
    }

    /// Runs what comes from standard input.
    ///
    /// # Errors
    /// [`Failed`].
    pub async fn converse(&self) -> Result<(), Failed> {
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            let mut sql = String::new();
            let lines = io::stdin().lock().lines();
            for line in lines {
                let line = line.map_err(|error| Failed(Some(format!("cannot read the input: {error}"))))?;
                sql.push_str(&line);
                sql.push('\n');
            }
            return self.script(&sql).await;
        }
        let mut editor =
            LineEditor::new().map_err(|error| Failed(Some(format!("cannot use the terminal: {error}"))))?;
        println!("{BANNER}");
        loop {
            match editor.read("sql> ") {
                Ok(Entered::Statements(sql)) => {
                    // Ctrl-C drops what runs: requests that are out come to nothing.
                    let step = tokio::select! {
                        step = self.run_all(&sql, true) => step,
                        _ = tokio::signal::ctrl_c() => {
                            println!("^C");
                            Ok(Step::Done)
                        }
                    };
                    match step {
                        Ok(Step::Exit) => return Ok(()),
                        Ok(_) => {}
                        Err(error) => return ended(error),
                    }
                }
                Ok(Entered::Dropped) => {}
                Ok(Entered::End) => return Ok(()),
                Err(error) => return Err(Failed(Some(format!("cannot read: {error}")))),
            }
        }
    }

    /// Runs statements up to the first that fails.
    async fn run_all(&self, sql: &str, with_times: bool) -> io::Result<Step> {
        if let Some(step) = self.command(sql.trim()).await? {
            return Ok(step);
        }
        let statements = match Engine::parse(sql) {
            Ok(statements) => statements,
            Err(error) => return complain(&told(&error)),
        };
        for statement in statements {
            match self.run(statement, with_times).await? {
                Step::Done => {}
                step => return Ok(step),
            }
        }
        Ok(Step::Done)
    }

    async fn run(&self, statement: Statement, with_times: bool) -> io::Result<Step> {
        let start = self.env.clock.monotonic();
        let mut output = Output::new(self.style);
        let run = async {
            match self.engine.run(statement).await? {
                Outcome::Done(name) => Ok(Some(name)),
                Outcome::Rows(frame) => {
                    output.begin(frame.schema().as_arrow());
                    let mut rows = frame.execute_stream().await?;
                    while let Some(batch) = rows.next().await {
                        output.add(batch?)?;
                    }
                    output.end()?;
                    Ok::<_, DataFusionError>(None)
                }
            }
        };
        let done = run.await;
        let took = self.env.clock.monotonic() - start;
        let mut out = io::stdout().lock();
        match done {
            Ok(Some(name)) if self.style == Style::Table => writeln!(out, "{name}")?,
            Ok(Some(_)) => {}
            Ok(None) if self.style == Style::Table => {
                let time = if with_times { format!(" in {}", seconds(took)) } else { String::new() };
                writeln!(out, "{}{time}", output.rows_told())?;
            }
            Ok(None) => {}
            Err(DataFusionError::IoError(error)) => return Err(error),
            Err(error) => return complain(&told(&error)),
        }
        out.flush()?;
        Ok(Step::Done)
    }

    /// What is no SQL; nothing if it is.
    async fn command(&self, text: &str) -> io::Result<Option<Step>> {
        let mut words = text.trim_end_matches(';').split_whitespace();
        let (first, second) = (words.next().unwrap_or_default().to_ascii_lowercase(), words.next());
        if words.next().is_some() {
            return Ok(None);
        }
        Ok(match (&first[..], second) {
            ("", None) => Some(Step::Done),
            ("exit" | "quit" | "\\q", None) => Some(Step::Exit),
            ("help" | "\\?", None) => {
                println!("{HELP}");
                Some(Step::Done)
            }
            ("\\d" | "\\dt", None) => {
                let statements = Engine::parse("SHOW TABLES").map_err(io::Error::other)?;
                for statement in statements {
                    self.run(statement, false).await?;
                }
                for unreadable in self.engine.catalog.unreadable() {
                    println!("{unreadable}");
                }
                Some(Step::Done)
            }
            ("\\d", Some(name)) => Some(self.show_declaration(name).await?),
            _ => None,
        })
    }

    async fn show_declaration(&self, name: &str) -> io::Result<Step> {
        if let Err(error) = self.engine.catalog.refresh().await {
            return complain(&told(&error));
        }
        match self.engine.catalog.declaration(name) {
            Some(declaration) => {
                println!("{};", declaration.to_sql());
                Ok(Step::Done)
            }
            None => complain(&format!("table '{name}' is not declared; SHOW TABLES lists those that are")),
        }
    }
}

fn complain(text: &str) -> io::Result<Step> {
    io::stdout().flush()?;
    eprintln!("ERROR: {text}");
    Ok(Step::Failed)
}

fn ended(error: io::Error) -> Result<(), Failed> {
    match error.kind() {
        // Nobody listens any more, as behind `| head`: no failure of ours.
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(Failed(Some(format!("cannot write: {error}")))),
    }
}
