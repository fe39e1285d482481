//! The input line: a delay or a filter.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::value::Case;

/// The kind of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptKind {
    Delay,
    Filter(Case),
}

impl PromptKind {
    pub(super) fn text(self) -> &'static str {
        match self {
            PromptKind::Delay => "seconds between two updates: ",
            PromptKind::Filter(Case::Ignored) => "filter (case ignored): ",
            PromptKind::Filter(Case::Matters) => "filter (case matters): ",
        }
    }
}

/// The input line and its history.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Prompt {
    pub(super) kind: PromptKind,
    pub(super) text: String,
    before: Vec<String>,
    /// Position in the history: 0 for new input, 1 for the most recent entry.
    back: usize,
}

/// The result of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PromptResult {
    Pending,
    /// The user cancelled.
    Canceled,
    Text(String),
}

impl Prompt {
    pub(super) fn new(kind: PromptKind, before: &[String]) -> Prompt {
        let before = if kind == PromptKind::Delay { Vec::new() } else { before.to_vec() };
        Prompt { kind, text: String::new(), before, back: 0 }
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> PromptResult {
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter if self.text.is_empty() => return PromptResult::Canceled,
            KeyCode::Enter => return PromptResult::Text(std::mem::take(&mut self.text)),
            KeyCode::Esc => return PromptResult::Canceled,
            KeyCode::Char('u') if with_control => self.text.clear(),
            KeyCode::Char(sign) if !with_control && !sign.is_control() => self.text.push(sign),
            KeyCode::Backspace => {
                self.text.pop();
            }
            KeyCode::Up => self.recall(self.back + 1),
            KeyCode::Down => self.recall(self.back.saturating_sub(1)),
            _ => {}
        }
        PromptResult::Pending
    }

    fn recall(&mut self, back: usize) {
        self.back = back.min(self.before.len());
        let found = self.before.len().checked_sub(self.back).and_then(|at| self.before.get(at));
        self.text = found.cloned().unwrap_or_default();
    }
}
