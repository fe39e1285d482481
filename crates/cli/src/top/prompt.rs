//! A line that is typed: how often to look, or a filter.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::value::Case;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    Delay,
    Filter(Case),
}

impl Question {
    pub(super) fn text(self) -> &'static str {
        match self {
            Question::Delay => "seconds between two looks: ",
            Question::Filter(Case::Ignored) => "filter (case ignored): ",
            Question::Filter(Case::Matters) => "filter (case matters): ",
        }
    }
}

/// The line, and what was typed before.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Prompt {
    pub(super) question: Question,
    pub(super) text: String,
    before: Vec<String>,
    /// How far back it is in what was typed before.
    back: usize,
}

/// What came of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    More,
    /// It was given up.
    Nothing,
    Text(String),
}

impl Prompt {
    pub(super) fn new(question: Question, before: &[String]) -> Prompt {
        let before = if question == Question::Delay { Vec::new() } else { before.to_vec() };
        Prompt { question, text: String::new(), before, back: 0 }
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Typed {
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter if self.text.is_empty() => return Typed::Nothing,
            KeyCode::Enter => return Typed::Text(std::mem::take(&mut self.text)),
            KeyCode::Esc => return Typed::Nothing,
            KeyCode::Char('u') if with_control => self.text.clear(),
            KeyCode::Char(sign) if !with_control && !sign.is_control() => self.text.push(sign),
            KeyCode::Backspace => {
                self.text.pop();
            }
            KeyCode::Up => self.recall(self.back + 1),
            KeyCode::Down => self.recall(self.back.saturating_sub(1)),
            _ => {}
        }
        Typed::More
    }

    fn recall(&mut self, back: usize) {
        self.back = back.min(self.before.len());
        let found = self.before.len().checked_sub(self.back).and_then(|at| self.before.get(at));
        self.text = found.cloned().unwrap_or_default();
    }
}
