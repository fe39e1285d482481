//! Commands from standard input: line by line from a pipe, through the line editor from a person.

use std::future::Future;
use std::io::{self, BufRead, IsTerminal};
use std::pin::pin;
use std::task::Poll;

use base::env::TaskClass;

use super::completion::Names;
use super::editor::{Entered, LineEditor};
use super::error::{Position, SyntaxError};
use super::parser;
use super::session::{Session, Step};
use super::{Ended, Interrupts, ShellArguments};

const BANNER: &str = "Grampus shell. Use \"help\" to get a list of commands, \"exit\" or Ctrl-D to leave.";
const PROMPT: &str = "grampus> ";
const PROMPT_OF_MORE: &str = "grampus* ";

/// Commands from standard input, line by line.
pub(crate) struct Reader {
    prompts: bool,
    /// A person is at both ends.
    edits: bool,
    echoes: bool,
    ends_at_failure: bool,
    /// Lines of a command that is not whole yet, and where they begin.
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

    /// Runs what comes, up to the end or to `exit`.
    ///
    /// # Errors
    /// [`Ended`].
    pub(crate) async fn run(&mut self, session: &mut Session, interrupts: &Interrupts) -> Result<(), Ended> {
        let names = Names::default();
        // A terminal that cannot be edited on is read as a pipe is.
        match self.edits.then(|| LineEditor::new(names.clone())) {
            Some(Ok(editor)) => self.converse(session, editor, &names, interrupts).await,
            _ => self.read_lines(session).await,
        }
    }

    /// Runs what a person enters.
    async fn converse(
        &mut self,
        session: &mut Session,
        mut editor: LineEditor,
        names: &Names,
        interrupts: &Interrupts,
    ) -> Result<(), Ended> {
        session.interactive = true;
        session.echoes = true;
        session.printer.line(BANNER)?;
        session.printer.flush()?;
        loop {
            // Meanwhile, on another thread: what Tab may be asked for.
            let (names, client) = (names.clone(), session.client.clone());
            session.env.spawn(TaskClass::Background, async move { names.refresh(&client).await });
            match editor.read(PROMPT).map_err(|error| Ended::Failed(format!("cannot read: {error}")))? {
                Entered::End => return Ok(()),
                Entered::Dropped => {}
                Entered::Commands(source) => {
                    let running = self.run_entered(session, &source);
                    match until(running, interrupts()).await {
                        Some(Ok(Step::Exit)) => return Ok(()),
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

    async fn run_entered(&self, session: &mut Session, source: &str) -> Result<Step, Ended> {
        match parser::parse(source, Position::START) {
            Err(error) => self.complain(session, &error)?,
            Ok(statements) => {
                for statement in &statements {
                    match session.run(statement).await? {
                        Step::Done => {}
                        step => return Ok(step),
                    }
                }
            }
        }
        Ok(Step::Done)
    }

    async fn read_lines(&mut self, session: &mut Session) -> Result<(), Ended> {
        session.interactive = !self.ends_at_failure;
        session.echoes = self.prompts || self.echoes;
        while let Some(source) = self.next_source(session)? {
            match parser::parse(&source, self.start) {
                Ok(statements) => {
                    self.echo(session, &source)?;
                    self.advance(&source);
                    for statement in &statements {
                        match session.run(statement).await? {
                            Step::Exit => return Ok(()),
                            Step::Failed if self.ends_at_failure => {
                                return Err(Ended::Failed(failed_in_line(statement)));
                            }
                            // What followed on the same line was meant for the case that this one succeeds.
                            Step::Failed => break,
                            Step::Done => {}
                        }
                    }
                }
                Err(SyntaxError { incomplete: true, .. }) if source.ends_with('\n') => self.pending = source,
                Err(error) => {
                    self.echo(session, &source)?;
                    self.advance(&source);
                    self.complain(session, &error)?;
                }
            }
        }
        Ok(())
    }

    /// The lines that are not run yet and one more; `None` at the end. What is not whole at the end comes once more,
    /// without a line's end.
    fn next_source(&mut self, session: &mut Session) -> Result<Option<String>, Ended> {
        if self.prompts {
            session.printer.prompt(if self.pending.is_empty() { PROMPT } else { PROMPT_OF_MORE })?;
        }
        let mut line = Vec::new();
        let unreadable = |error: io::Error| Ended::Failed(format!("cannot read the input: {error}"));
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
                return Err(Ended::Failed(format!("line {}: {what}", self.start.line)));
            }
        }
        Ok(Some(source))
    }

    /// The source behind a prompt of HBase's: name, line, depth.
    fn echo(&self, session: &mut Session, source: &str) -> Result<(), Ended> {
        if self.echoes {
            session.printer.line(&format!("grampus:{:03}:0> {}", self.start.line, source.trim_end()))?;
        }
        Ok(())
    }

    fn advance(&mut self, source: &str) {
        self.start = source.chars().fold(self.start, Position::after);
    }

    fn complain(&self, session: &mut Session, error: &SyntaxError) -> Result<(), Ended> {
        if self.ends_at_failure {
            return Err(Ended::Failed(error.to_string()));
        }
        session.tell(&error.to_string())?;
        session.printer.flush()?;
        Ok(())
    }
}

fn failed_in_line(statement: &parser::Statement) -> String {
    format!("command failed: {} in line {}", statement.name, statement.at.line)
}

/// What `work` comes to, or `None` if `end` comes first; `work` is dropped then. What it asked of the cluster may still
/// be done there.
async fn until<T>(work: impl Future<Output = T>, end: impl Future<Output = ()>) -> Option<T> {
    let (mut work, mut end) = (pin!(work), pin!(end));
    std::future::poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
        Poll::Pending => end.as_mut().poll(context).map(|()| None),
    })
    .await
}
