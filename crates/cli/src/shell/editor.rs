//! Commands from a person: lines with editing, a history that lasts, completion, and commands of several lines.
//!
//! Enter runs what is whole and goes on in the next line where something is still open. Ctrl-C drops the line, Ctrl-D on
//! an empty one leaves.

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

/// Commands kept.
const HISTORY_LINES_MAX: usize = 10_000;
/// Names the file of the history; empty for none.
const HISTORY_VARIABLE: &str = "GRAMPUS_HISTORY";
const HISTORY_FILE: &str = ".grampus_history";

/// What a person did at the prompt.
pub(crate) enum Entered {
    /// A command or several, whole; without the last line's end.
    Commands(String),
    /// The line was dropped.
    Dropped,
    /// Nothing more will come.
    End,
}

/// The line editor of a terminal.
pub(crate) struct LineEditor {
    editor: Editor<Language, FileHistory>,
    history: Option<PathBuf>,
}

impl LineEditor {
    /// An editor that completes `names`.
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
            // The first time there is none; what cannot be read is begun anew.
            let _ = editor.load_history(path);
        }
        Ok(LineEditor { editor, history })
    }

    /// Waits for a person.
    ///
    /// # Errors
    /// If the terminal fails.
    pub(crate) fn read(&mut self, prompt: &str) -> Result<Entered, ReadlineError> {
        match self.editor.readline(prompt) {
            Ok(commands) => {
                self.remember(&commands);
                Ok(Entered::Commands(commands))
            }
            Err(ReadlineError::Interrupted) => Ok(Entered::Dropped),
            Err(ReadlineError::Eof) => Ok(Entered::End),
            Err(error) => Err(error),
        }
    }

    /// Puts what was entered into the history, and that at once into its file: another shell, or a lost connection,
    /// takes nothing away. A history that cannot be written is no reason to stop.
    fn remember(&mut self, commands: &str) {
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

/// What the editor must know of the language.
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
            // What is wrong is told when it is run.
            _ => Ok(ValidationResult::Valid(None)),
        }
    }
}
