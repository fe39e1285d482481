//! Interactive input: line editing and a persistent history.
//!
//! Enter runs commands, and input that ends with a semicolon. Otherwise the input continues on the
//! next line. Ctrl-C discards the line, Ctrl-D on an empty line exits.

use std::path::PathBuf;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Editor, Helper};

/// Maximum number of statements in the history.
const HISTORY_LINES_MAX: usize = 10_000;
/// The environment variable with the path of the history file; an empty value disables the history.
const HISTORY_VARIABLE: &str = "GRAMPUS_SQL_HISTORY";
const HISTORY_FILE: &str = ".grampus_sql_history";
/// Commands without a semicolon.
const COMMANDS: [&str; 4] = ["exit", "quit", "help", ""];

/// The user's input at the prompt.
pub enum Entered {
    /// One or several complete statements.
    Statements(String),
    /// The line was discarded.
    Dropped,
    /// End of input.
    End,
}

/// The line editor of a terminal.
pub struct LineEditor {
    editor: Editor<Language, FileHistory>,
    history: Option<PathBuf>,
}

impl LineEditor {
    /// Creates an editor.
    ///
    /// # Errors
    /// If the terminal is unusable.
    pub fn new() -> Result<LineEditor, ReadlineError> {
        let config = Config::builder()
            .max_history_size(HISTORY_LINES_MAX)?
            .history_ignore_dups(true)?
            .history_ignore_space(true);
        let mut editor = Editor::with_config(config.build())?;
        editor.set_helper(Some(Language));
        let history = history_path();
        if let Some(path) = &history {
            // The file does not exist at the first start. An unreadable history is ignored.
            let _ = editor.load_history(path);
        }
        Ok(LineEditor { editor, history })
    }

    /// Waits for input.
    ///
    /// # Errors
    /// If the terminal fails.
    pub fn read(&mut self, prompt: &str) -> Result<Entered, ReadlineError> {
        match self.editor.readline(prompt) {
            Ok(sql) => {
                let is_new = !sql.trim().is_empty() && self.editor.add_history_entry(&sql).unwrap_or(false);
                if let (true, Some(path)) = (is_new, &self.history) {
                    // A history that cannot be written is not fatal.
                    let _ = self.editor.append_history(path);
                }
                Ok(Entered::Statements(sql))
            }
            Err(ReadlineError::Interrupted) => Ok(Entered::Dropped),
            Err(ReadlineError::Eof) => Ok(Entered::End),
            Err(error) => Err(error),
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

/// Whether the input is complete: a command, or statements that end with a semicolon outside
/// quotes.
fn is_whole(text: &str) -> bool {
    let text = text.trim();
    if text.starts_with('\\') || COMMANDS.iter().any(|command| text.eq_ignore_ascii_case(command)) {
        return true;
    }
    let mut quote = None;
    for character in text.chars() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            _ => {}
        }
    }
    quote.is_none() && text.ends_with(';')
}

struct Language;

impl Helper for Language {}
impl Highlighter for Language {}

impl Hinter for Language {
    type Hint = String;
}

impl Completer for Language {
    type Candidate = String;
}

impl Validator for Language {
    fn validate(&self, context: &mut ValidationContext<'_>) -> Result<ValidationResult, ReadlineError> {
        Ok(match is_whole(context.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_go_up_to_a_semicolon_outside_of_quotes() {
        for whole in ["", "exit", "Quit", "\\d t", "SELECT 1;", "SELECT ';'; ", "SELECT 'a''b;';"] {
            assert!(is_whole(whole), "{whole}");
        }
        for open in ["SELECT 1", "SELECT ';", "SELECT \"a;", "SELECT 'it''s;"] {
            assert!(!is_whole(open), "{open}");
        }
    }
}
