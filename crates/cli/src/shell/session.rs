//! Runs commands in sequence: looks up each one, runs it, and prints its result and duration.

use std::io;
use std::time::Duration;

use base::env::Env;
use client::Client;

use super::arguments::Arguments;
use super::commands::{self, Command, Outcome};
use super::error::{Position, ShellError};
use super::messages;
use super::output::Printer;
use super::parser::Statement;

/// The state that commands use.
pub(crate) struct ShellSession {
    pub(crate) env: Env,
    pub(crate) client: Client,
    pub(crate) printer: Printer,
    /// The user name sent to servers.
    pub(crate) user: String,
    /// Whether to print usage hints after failures.
    pub(crate) interactive: bool,
    /// Whether to print the values of commands, as at a prompt.
    pub(crate) echoes: bool,
}

/// The result of a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CommandStatus {
    Done,
    Failed,
    Exit,
}

impl ShellSession {
    pub(crate) fn new(env: Env, client: Client, user: String, printer: Printer) -> ShellSession {
        ShellSession { env, client, printer, user, interactive: false, echoes: false }
    }

    /// Runs one command. A failure is printed.
    ///
    /// # Errors
    /// If the output fails.
    pub(crate) async fn run(&mut self, statement: &Statement) -> io::Result<CommandStatus> {
        let Some(command) = commands::find(&statement.name) else {
            self.print_error(&unknown(statement))?;
            self.printer.flush()?;
            return Ok(CommandStatus::Failed);
        };
        let began = self.env.clock.monotonic();
        let arguments = Arguments::new(command.name, statement.values.clone());
        let outcome = match command.arity.check(statement.values.len()) {
            Ok(()) => (command.run)(self, arguments).await,
            Err(error) => Err(error),
        };
        let took = self.env.clock.monotonic() - began;
        let status = self.report(command, statement, outcome, took);
        self.printer.flush()?;
        status
    }

    fn report(
        &mut self,
        command: &Command,
        statement: &Statement,
        outcome: Result<Outcome, ShellError>,
        took: Duration,
    ) -> io::Result<CommandStatus> {
        match outcome {
            Ok(Outcome::Exit) => return Ok(CommandStatus::Exit),
            Ok(Outcome::Silent) => return Ok(CommandStatus::Done),
            Err(ShellError::Output(error)) => return Err(error),
            Err(error) => {
                let message = messages::message(statement, error);
                self.print_error(&message)?;
                self.hint(command)?;
                self.print_duration(took)?;
                return Ok(CommandStatus::Failed);
            }
            Ok(Outcome::Done) => self.print_duration(took)?,
            Ok(Outcome::Value(value)) => {
                self.print_duration(took)?;
                if self.echoes {
                    self.printer.line(&format!("=> {value}"))?;
                }
            }
        }
        Ok(CommandStatus::Done)
    }

    fn print_duration(&mut self, took: Duration) -> io::Result<()> {
        self.printer.line(&format!("Took {:.4} seconds", took.as_secs_f64()))
    }

    /// Prints a failure.
    pub(crate) fn print_error(&mut self, message: &str) -> io::Result<()> {
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
    match commands::is_unsupported(name) {
        true => format!("line {line}, column {column}: {name} is not supported yet"),
        false => format!("line {line}, column {column}: unknown command {name}; see: help"),
    }
}
