//! Runs statements from a terminal, a script or a pipe in sequence, and shows their rows.

mod editor;
mod output;

use std::io::{self, BufRead, IsTerminal, Write};

use base::env::Env;
use datafusion::error::DataFusionError;
use datafusion::sql::parser::Statement;
use futures_util::StreamExt;

use crate::statements::{Engine, Outcome, user_message};
use editor::{Entered, LineEditor};
pub use output::Style;
use output::{Output, seconds};

const BANNER: &str =
    "Grampus SQL. Statements end with a semicolon; \"help\" shows help, \"exit\" or Ctrl-D exits.";
const HELP: &str = "\
SHOW TABLES;                lists declared tables; also \\dt
\\d TABLE                    shows how a table was declared
CREATE EXTERNAL TABLE t (id VARCHAR PRIMARY KEY, a BIGINT, b DOUBLE) STORED AS GRAMPUS LOCATION 'ns:table';
                            declares a table of the cluster; OPTIONS ('a' 'f:a text_long', 'table.encoding' 'text')
                            set the location and encoding of values, see docs/sql.md
DROP TABLE t;               removes the declaration, not the table
EXPLAIN SELECT ..;          shows the plan: GrampusAggregate and GrampusScan run on the servers
exit                        exits; also \\q";

/// Why the shell failed: the error message, or `None` if it was already printed.
pub struct Failed(pub Option<String>);

/// Runs statements and prints their results.
pub struct Shell {
    engine: Engine,
    env: Env,
    style: Style,
}

/// What to do after a statement or a command.
enum ShellAction {
    Done,
    Exit,
    Failed,
}

impl Shell {
    /// A shell that prints rows in this style.
    pub fn new(engine: Engine, env: Env, style: Style) -> Shell {
        Shell { engine, env, style }
    }

    /// Runs a script up to the first failure.
    ///
    /// # Errors
    /// [`Failed`].
    pub async fn script(&self, sql: &str) -> Result<(), Failed> {
        match self.run_all(sql, false).await {
            Ok(ShellAction::Failed) => Err(Failed(None)),
            Ok(_) => Ok(()),
            Err(error) => exit_result(error),
        }
    }

    /// Runs statements from standard input.
    ///
    /// # Errors
    /// [`Failed`].
    pub async fn run_interactive(&self) -> Result<(), Failed> {
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
                    // Ctrl-C drops the running query; the results of pending requests are
                    // discarded.
                    let action = tokio::select! {
                        action = self.run_all(&sql, true) => action,
                        _ = tokio::signal::ctrl_c() => {
                            println!("^C");
                            Ok(ShellAction::Done)
                        }
                    };
                    match action {
                        Ok(ShellAction::Exit) => return Ok(()),
                        Ok(_) => {}
                        Err(error) => return exit_result(error),
                    }
                }
                Ok(Entered::Dropped) => {}
                Ok(Entered::End) => return Ok(()),
                Err(error) => return Err(Failed(Some(format!("cannot read: {error}")))),
            }
        }
    }

    /// Runs statements up to the first that fails.
    async fn run_all(&self, sql: &str, with_times: bool) -> io::Result<ShellAction> {
        if let Some(action) = self.command(sql.trim()).await? {
            return Ok(action);
        }
        let statements = match Engine::parse(sql) {
            Ok(statements) => statements,
            Err(error) => return print_error(&user_message(&error)),
        };
        for statement in statements {
            match self.run(statement, with_times).await? {
                ShellAction::Done => {}
                action => return Ok(action),
            }
        }
        Ok(ShellAction::Done)
    }

    async fn run(&self, statement: Statement, with_times: bool) -> io::Result<ShellAction> {
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
                writeln!(out, "{}{time}", output.row_count_text())?;
            }
            Ok(None) => {}
            Err(DataFusionError::IoError(error)) => return Err(error),
            Err(error) => return print_error(&user_message(&error)),
        }
        out.flush()?;
        Ok(ShellAction::Done)
    }

    /// Runs a shell command; `None` if the text is SQL.
    async fn command(&self, text: &str) -> io::Result<Option<ShellAction>> {
        let mut words = text.trim_end_matches(';').split_whitespace();
        let (first, second) = (words.next().unwrap_or_default().to_ascii_lowercase(), words.next());
        if words.next().is_some() {
            return Ok(None);
        }
        Ok(match (&first[..], second) {
            ("", None) => Some(ShellAction::Done),
            ("exit" | "quit" | "\\q", None) => Some(ShellAction::Exit),
            ("help" | "\\?", None) => {
                println!("{HELP}");
                Some(ShellAction::Done)
            }
            ("\\d" | "\\dt", None) => {
                let statements = Engine::parse("SHOW TABLES").map_err(io::Error::other)?;
                for statement in statements {
                    self.run(statement, false).await?;
                }
                for unreadable in self.engine.catalog.unreadable() {
                    println!("{unreadable}");
                }
                Some(ShellAction::Done)
            }
            ("\\d", Some(name)) => Some(self.show_declaration(name).await?),
            _ => None,
        })
    }

    async fn show_declaration(&self, name: &str) -> io::Result<ShellAction> {
        if let Err(error) = self.engine.catalog.refresh().await {
            return print_error(&user_message(&error));
        }
        match self.engine.catalog.declaration(name) {
            Some(declaration) => {
                println!("{};", declaration.to_sql());
                Ok(ShellAction::Done)
            }
            None => {
                print_error(&format!("table '{name}' is not declared; SHOW TABLES lists declared tables"))
            }
        }
    }
}

fn print_error(text: &str) -> io::Result<ShellAction> {
    io::stdout().flush()?;
    eprintln!("ERROR: {text}");
    Ok(ShellAction::Failed)
}

fn exit_result(error: io::Error) -> Result<(), Failed> {
    match error.kind() {
        // The reader closed the pipe, as in `| head`: not an error.
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(Failed(Some(format!("cannot write: {error}")))),
    }
}
