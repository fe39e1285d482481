//! One command after the other: looks it up, runs it, tells how it went and how long it took.

use std::io;
use std::time::Duration;

use base::env::Env;
use client::Client;

use super::arguments::Arguments;
use super::commands::{self, Command, Outcome};
use super::error::{Position, ShellError};
use super::output::Printer;
use super::parser::Statement;
use super::words;

/// What a command works with.
pub(crate) struct Session {
    pub(crate) env: Env,
    pub(crate) client: Client,
    pub(crate) printer: Printer,
    /// Who servers are told that this is.
    pub(crate) user: String,
    /// Whether a person may have use for a hint.
    pub(crate) interactive: bool,
    /// Whether values of commands are shown, as at a prompt.
    pub(crate) echoes: bool,
}

/// How a command went.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Done,
    Failed,
    Exit,
}

impl Session {
    pub(crate) fn new(env: Env, client: Client, user: String, printer: Printer) -> Session {
        Session { env, client, printer, user, interactive: false, echoes: false }
    }

    /// Runs one command; failures are told in the output.
    ///
    /// # Errors
    /// If nothing can be printed.
    pub(crate) async fn run(&mut self, statement: &Statement) -> io::Result<Step> {
        let Some(command) = commands::find(&statement.name) else {
            self.tell(&unknown(statement))?;
            self.printer.flush()?;
            return Ok(Step::Failed);
        };
        let began = self.env.clock.monotonic();
        let arguments = Arguments::new(command.name, statement.values.clone());
        let outcome = match command.arity.check(statement.values.len()) {
            Ok(()) => (command.run)(self, arguments).await,
            Err(error) => Err(error),
        };
        let took = self.env.clock.monotonic() - began;
        let step = self.report(command, statement, outcome, took);
        self.printer.flush()?;
        step
    }

    fn report(
        &mut self,
        command: &Command,
        statement: &Statement,
        outcome: Result<Outcome, ShellError>,
        took: Duration,
    ) -> io::Result<Step> {
        match outcome {
            Ok(Outcome::Exit) => return Ok(Step::Exit),
            Ok(Outcome::Told) => return Ok(Step::Done),
            Err(ShellError::Output(error)) => return Err(error),
            Err(error) => {
                let message = words::message(statement, error);
                self.tell(&message)?;
                self.hint(command)?;
                self.took(took)?;
                return Ok(Step::Failed);
            }
            Ok(Outcome::Done) => self.took(took)?,
            Ok(Outcome::Value(value)) => {
                self.took(took)?;
                if self.echoes {
                    self.printer.line(&format!("=> {value}"))?;
                }
            }
        }
        Ok(Step::Done)
    }

    fn took(&mut self, took: Duration) -> io::Result<()> {
        self.printer.line(&format!("Took {:.4} seconds", took.as_secs_f64()))
    }

    /// Tells a failure.
    pub(crate) fn tell(&mut self, message: &str) -> io::Result<()> {
        self.printer.line("")?;
        self.printer.error(&format!("ERROR: {message}"))?;
        self.printer.line("")
    }

    fn hint(&mut self, command: &Command) -> io::Result<()> {
        match self.interactive {
            true => self.printer.line(&format!("For usage try 'help \"{}\"'\n", command.name)),
            false => Ok(()),
        }
    }
}

fn unknown(statement: &Statement) -> String {
    let (name, Position { line, column }) = (&statement.name, statement.at);
    match commands::is_of_hbase(name) {
        true => format!("line {line}, column {column}: {name} is not supported yet"),
        false => format!("line {line}, column {column}: unknown command {name}; see: help"),
    }
}
