//! Commands from an interactive user: line editing, persistent history, completion, and commands of
//! several lines.
//!
//! Enter runs a complete command, and continues an incomplete one on the next line. Ctrl-C discards
//! the line, Ctrl-D on an empty line leaves.

use std::path::PathBuf;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use super::completion::{Names, complete};
use super::error::Position;
use super::parser;

/// Maximum number of commands in the history.
const HISTORY_LINES_MAX: usize = 10_000;
/// Environment variable with the path of the history file; empty for no history.
const HISTORY_VARIABLE: &str = "GRAMPUS_HISTORY";
const HISTORY_FILE: &str = ".grampus_history";

/// The user's input at the prompt.
pub(crate) enum Entered {
    /// One or several complete commands, without the last newline.
    Commands(String),
    /// The user discarded the line.
    Dropped,
    /// The end of the input.
    End,
}

/// The line editor of a terminal.
pub(crate) struct LineEditor {
    editor: Editor<Language, FileHistory>,
    history: Option<PathBuf>,
}

impl LineEditor {
    /// Creates an editor that completes `names`.
    ///
    /// # Errors
    /// If the terminal cannot be used.
    pub(crate) fn new(names: Names) -> Result<LineEditor, ReadlineError> {
        let config = Config::builder()
            .max_history_size(HISTORY_LINES_MAX)?
            .history_ignore_dups(true)?
            .history_ignore_space(true)
            .completion_type(CompletionType::List);
        let mut editor = Editor::with_config(config.build())?;
        editor.set_helper(Some(Language { names }));
        let history = history_path();
        if let Some(path) = &history {
            // The first time, the file does not exist. An unreadable file is replaced.
            let _ = editor.load_history(path);
        }
        Ok(LineEditor { editor, history })
    }

    /// Waits for the user's input.
    ///
    /// # Errors
    /// If the terminal fails.
    pub(crate) fn read(&mut self, prompt: &str) -> Result<Entered, ReadlineError> {
        match self.editor.readline(prompt) {
            Ok(commands) => {
                self.add_history(&commands);
                Ok(Entered::Commands(commands))
            }
            Err(ReadlineError::Interrupted) => Ok(Entered::Dropped),
            Err(ReadlineError::Eof) => Ok(Entered::End),
            Err(error) => Err(error),
        }
    }

    /// Adds the input to the history and appends it to the history file immediately, so that it
    /// survives a lost connection and parallel shells. A failure to write the history is ignored.
    fn add_history(&mut self, commands: &str) {
        let is_new = !commands.trim().is_empty() && self.editor.add_history_entry(commands).unwrap_or(false);
        if let (true, Some(path)) = (is_new, &self.history) {
            let _ = self.editor.append_history(path);
        }
    }
}

fn history_path() -> Option<PathBuf> {
    match std::env::var_os(HISTORY_VARIABLE) {
        Some(path) if path.is_empty() => None,
        Some(path) => Some(path.into()),
        None => std::env::var_os("HOME").map(|home| PathBuf::from(home).join(HISTORY_FILE)),
    }
}

/// The language, as the editor needs it.
struct Language {
    names: Names,
}

impl Helper for Language {}
impl Highlighter for Language {}

impl Hinter for Language {
    type Hint = String;
}

impl Completer for Language {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> Result<(usize, Vec<Pair>), ReadlineError> {
        let (start, found) = complete(&line[..position], &self.names);
        let pair = |name: String| Pair { display: name.clone(), replacement: name };
        Ok((start, found.into_iter().map(pair).collect()))
    }
}

impl Validator for Language {
    fn validate(&self, context: &mut ValidationContext<'_>) -> Result<ValidationResult, ReadlineError> {
        match parser::parse(context.input(), Position::START) {
            Err(error) if error.incomplete => Ok(ValidationResult::Incomplete),
            // Errors are reported when the command runs.
            _ => Ok(ValidationResult::Valid(None)),
        }
    }
}
