//! Commands from standard input: by line from a pipe, through the line editor from an interactive
//! user.

use std::future::Future;
use std::io::{self, BufRead, IsTerminal};
use std::pin::pin;
use std::task::Poll;

use base::env::TaskClass;

use super::completion::Names;
use super::editor::{Entered, LineEditor};
use super::error::{Position, SyntaxError};
use super::parser;
use super::session::{CommandStatus, ShellSession};
use super::{EarlyExit, Interrupts, ShellArguments};

const BANNER: &str = "Grampus shell. Use \"help\" to get a list of commands, \"exit\" or Ctrl-D to leave.";
const PROMPT: &str = "grampus> ";
const PROMPT_OF_MORE: &str = "grampus* ";

/// Reads commands from standard input and runs them.
pub(crate) struct Reader {
    prompts: bool,
    /// Standard input and output are a terminal.
    edits: bool,
    echoes: bool,
    ends_at_failure: bool,
    /// The lines of an incomplete command, and the position of the first one.
    pending: String,
    start: Position,
}

impl Reader {
    pub(crate) fn new(arguments: &ShellArguments) -> Reader {
        let at_terminal = io::stdin().is_terminal() && !arguments.noninteractive;
        Reader {
            prompts: at_terminal,
            edits: at_terminal && io::stdout().is_terminal(),
            echoes: arguments.echo,
            ends_at_failure: arguments.noninteractive,
            pending: String::new(),
            start: Position::START,
        }
    }

    /// Runs commands until the end of the input or `exit`.
    ///
    /// # Errors
    /// [`EarlyExit`].
    pub(crate) async fn run(
        &mut self,
        session: &mut ShellSession,
        interrupts: &Interrupts,
    ) -> Result<(), EarlyExit> {
        let names = Names::default();
        // A terminal without editing is read like a pipe.
        match self.edits.then(|| LineEditor::new(names.clone())) {
            Some(Ok(editor)) => self.run_interactive(session, editor, &names, interrupts).await,
            _ => self.read_lines(session).await,
        }
    }

    /// Runs what an interactive user enters.
    async fn run_interactive(
        &mut self,
        session: &mut ShellSession,
        mut editor: LineEditor,
        names: &Names,
        interrupts: &Interrupts,
    ) -> Result<(), EarlyExit> {
        session.interactive = true;
        session.echoes = true;
        session.printer.line(BANNER)?;
        session.printer.flush()?;
        loop {
            // Refresh the names for completion on another thread while the user types.
            let (names, client) = (names.clone(), session.client.clone());
            session.env.spawn(TaskClass::Background, async move { names.refresh(&client).await });
            match editor.read(PROMPT).map_err(|error| EarlyExit::Failed(format!("cannot read: {error}")))? {
                Entered::End => return Ok(()),
                Entered::Dropped => {}
                Entered::Commands(source) => {
                    let running = self.run_entered(session, &source);
                    match until(running, interrupts()).await {
                        Some(Ok(CommandStatus::Exit)) => return Ok(()),
                        Some(outcome) => outcome.map(|_| ())?,
                        None => {
                            session.printer.line("^C")?;
                            session.printer.flush()?;
                        }
                    }
                }
            }
        }
    }

    async fn run_entered(
        &self,
        session: &mut ShellSession,
        source: &str,
    ) -> Result<CommandStatus, EarlyExit> {
        match parser::parse(source, Position::START) {
            Err(error) => self.report_syntax_error(session, &error)?,
            Ok(statements) => {
                for statement in &statements {
                    match session.run(statement).await? {
                        CommandStatus::Done => {}
                        status => return Ok(status),
                    }
                }
            }
        }
        Ok(CommandStatus::Done)
    }

    async fn read_lines(&mut self, session: &mut ShellSession) -> Result<(), EarlyExit> {
        session.interactive = !self.ends_at_failure;
        session.echoes = self.prompts || self.echoes;
        while let Some(source) = self.next_source(session)? {
            match parser::parse(&source, self.start) {
                Ok(statements) => {
                    self.echo(session, &source)?;
                    self.advance(&source);
                    for statement in &statements {
                        match session.run(statement).await? {
                            CommandStatus::Exit => return Ok(()),
                            CommandStatus::Failed if self.ends_at_failure => {
                                return Err(EarlyExit::Failed(failed_in_line(statement)));
                            }
                            // The rest of the line was written for the case that this command
                            // succeeds.
                            CommandStatus::Failed => break,
                            CommandStatus::Done => {}
                        }
                    }
                }
                Err(SyntaxError { incomplete: true, .. }) if source.ends_with('\n') => self.pending = source,
                Err(error) => {
                    self.echo(session, &source)?;
                    self.advance(&source);
                    self.report_syntax_error(session, &error)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the pending lines and one more; `None` at the end of the input. An incomplete
    /// command at the end is returned once more, without its newline.
    fn next_source(&mut self, session: &mut ShellSession) -> Result<Option<String>, EarlyExit> {
        if self.prompts {
            session.printer.prompt(if self.pending.is_empty() { PROMPT } else { PROMPT_OF_MORE })?;
        }
        let mut line = Vec::new();
        let unreadable = |error: io::Error| EarlyExit::Failed(format!("cannot read the input: {error}"));
        let read = io::stdin().lock().read_until(b'\n', &mut line).map_err(unreadable)?;
        let mut source = std::mem::take(&mut self.pending);
        match String::from_utf8(line) {
            Ok(line) if read > 0 => source.push_str(&line),
            Ok(_) => {
                if self.prompts {
                    session.printer.line("")?;
                }
                source.truncate(source.trim_end().len());
                return Ok((!source.is_empty()).then_some(source));
            }
            Err(_) => {
                let what = "the input is not UTF-8; write bytes as \"\\xff\"";
                return Err(EarlyExit::Failed(format!("line {}: {what}", self.start.line)));
            }
        }
        Ok(Some(source))
    }

    /// Prints the source after HBase's prompt: name, line, depth.
    fn echo(&self, session: &mut ShellSession, source: &str) -> Result<(), EarlyExit> {
        if self.echoes {
            session.printer.line(&format!("grampus:{:03}:0> {}", self.start.line, source.trim_end()))?;
        }
        Ok(())
    }

    fn advance(&mut self, source: &str) {
        self.start = source.chars().fold(self.start, Position::after);
    }

    fn report_syntax_error(&self, session: &mut ShellSession, error: &SyntaxError) -> Result<(), EarlyExit> {
        if self.ends_at_failure {
            return Err(EarlyExit::Failed(error.to_string()));
        }
        session.print_error(&error.to_string())?;
        session.printer.flush()?;
        Ok(())
    }
}

fn failed_in_line(statement: &parser::Statement) -> String {
    format!("command failed: {} in line {}", statement.name, statement.at.line)
}

/// Awaits `work`, or returns `None` if `end` is ready first. `work` is dropped then, but the
/// cluster may still carry out its requests.
async fn until<T>(work: impl Future<Output = T>, end: impl Future<Output = ()>) -> Option<T> {
    let (mut work, mut end) = (pin!(work), pin!(end));
    std::future::poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
        Poll::Pending => end.as_mut().poll(context).map(|()| None),
    })
    .await
}
