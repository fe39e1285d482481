//! The state of the program: keys change the view, samples fill it. Independent of the terminal.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::cluster::Sample;
use super::field::Field;
use super::filter::Filter;
use super::mode::Mode;
use super::prompt::{Prompt, PromptKind, PromptResult};
use super::record::Record;
use super::value::Case;
use super::view::View;

/// The open screen.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Screen {
    Table,
    /// The first visible line of the list of keys.
    Help(usize),
    /// The selected mode.
    Modes(usize),
    /// The selected field, and whether it moves with the cursor.
    Fields {
        at: usize,
        is_moving: bool,
    },
    Filters,
    /// The table, with a prompt above it.
    Prompt(Prompt),
}

/// The action that follows a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyAction {
    /// Continue.
    Continue,
    /// Sample the cluster now.
    Sample,
    Quit,
}

/// The whole state.
#[derive(Debug)]
pub(super) struct App {
    pub(super) view: View,
    pub(super) sample: Sample,
    /// The lines of the sample that the view shows.
    pub(super) lines: Vec<Record>,
    pub(super) screen: Screen,
    /// The selected line.
    pub(super) cursor: usize,
    /// The first visible line.
    pub(super) first: usize,
    /// The first visible column.
    pub(super) column: usize,
    /// Number of lines that fit the screen, as of the last drawing.
    pub(super) page: usize,
    pub(super) delay: Duration,
    /// Replaces the status line: a failure, or an error in the user's input.
    pub(super) message: Option<String>,
    /// Filters that the user typed, as history for the next prompt.
    typed: Vec<String>,
}

impl App {
    pub(super) fn new(view: View, sample: Sample, delay: Duration) -> App {
        let mut app = App {
            view,
            sample,
            lines: Vec::new(),
            screen: Screen::Table,
            cursor: 0,
            first: 0,
            column: 0,
            page: 1,
            delay,
            message: None,
            typed: Vec::new(),
        };
        app.refresh();
        app
    }

    /// Replaces the sample.
    pub(super) fn set_sample(&mut self, sample: Sample) {
        self.sample = sample;
        self.message = None;
        self.refresh();
    }

    /// Reports a failed update. The last sample remains.
    pub(super) fn fail(&mut self, why: &str) {
        self.message = Some(format!("the last update failed, retrying: {why}"));
    }

    fn refresh(&mut self) {
        self.lines = self.view.lines(&self.sample);
        self.view.widths.fit(&self.view.visible_fields(), &self.lines);
        self.move_cursor(self.cursor);
        self.column = self.column.min(self.view.visible_fields().len().saturating_sub(1));
    }

    /// Handles a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> KeyAction {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return KeyAction::Quit;
        }
        match self.screen.clone() {
            Screen::Table => return self.key_of_table(key),
            Screen::Help(first) => self.key_of_help(key, first),
            Screen::Modes(at) => self.key_of_modes(key, at),
            Screen::Fields { at, is_moving } => self.key_of_fields(key, at, is_moving),
            Screen::Filters => self.screen = Screen::Table,
            Screen::Prompt(prompt) => return self.key_of_prompt(key, prompt),
        }
        KeyAction::Continue
    }

    fn key_of_table(&mut self, key: KeyEvent) -> KeyAction {
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('o') if with_control => self.screen = Screen::Filters,
            _ if with_control => {}
            KeyCode::Char('q') | KeyCode::Esc => return KeyAction::Quit,
            KeyCode::Enter => return KeyAction::Sample,
            KeyCode::Char('i') => self.drill_down(),
            KeyCode::Char(letter) => self.letter(letter),
            code => self.scroll(code),
        }
        KeyAction::Continue
    }

    fn letter(&mut self, letter: char) {
        match letter {
            'h' | '?' => self.screen = Screen::Help(0),
            'm' => {
                let at = Mode::ALL.iter().position(|(_, mode)| *mode == self.view.mode);
                self.screen = Screen::Modes(at.unwrap_or_default());
            }
            'f' => self.screen = Screen::Fields { at: 0, is_moving: false },
            'F' => self.screen = Screen::Filters,
            'o' => self.open_prompt(PromptKind::Filter(Case::Ignored)),
            'O' => self.open_prompt(PromptKind::Filter(Case::Matters)),
            's' | 'd' => self.open_prompt(PromptKind::Delay),
            '=' => self.change(|view| view.filters.clear()),
            'R' => self.change(|view| view.order = view.order.reversed()),
            'X' | 'x' => self.change(|view| view.widths = Default::default()),
            'k' => self.scroll(KeyCode::Up),
            'j' => self.scroll(KeyCode::Down),
            _ => {}
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut View)) {
        change(&mut self.view);
        self.message = None;
        self.refresh();
    }

    fn open_prompt(&mut self, kind: PromptKind) {
        self.screen = Screen::Prompt(Prompt::new(kind, &self.typed));
    }

    fn scroll(&mut self, code: KeyCode) {
        let columns = self.view.visible_fields().len();
        match code {
            KeyCode::Up => self.move_cursor(self.cursor.saturating_sub(1)),
            KeyCode::Down => self.move_cursor(self.cursor + 1),
            KeyCode::PageUp => self.move_cursor(self.cursor.saturating_sub(self.page)),
            KeyCode::PageDown => self.move_cursor(self.cursor + self.page),
            KeyCode::Home => self.move_cursor(0),
            KeyCode::End => self.move_cursor(self.lines.len()),
            KeyCode::Left => self.column = self.column.saturating_sub(1),
            KeyCode::Right => self.column = (self.column + 1).min(columns.saturating_sub(1)),
            _ => {}
        }
    }

    /// Moves the cursor to an existing line, and scrolls so that it is visible.
    fn move_cursor(&mut self, to: usize) {
        self.cursor = to.min(self.lines.len().saturating_sub(1));
        self.first = self.first.min(self.cursor).max((self.cursor + 1).saturating_sub(self.page));
    }

    /// Sets the number of lines that fit the screen.
    pub(super) fn set_page(&mut self, page: usize) {
        self.page = page.max(1);
        self.move_cursor(self.cursor);
    }

    fn drill_down(&mut self) {
        let Some(line) = self.lines.get(self.cursor) else { return };
        let Some((mode, filters)) = self.view.mode.drill_down(line) else {
            self.message = Some(format!("{} mode has no further details", self.view.mode));
            return;
        };
        self.set_mode(mode, filters);
    }

    fn set_mode(&mut self, mode: Mode, filters: Vec<Filter>) {
        self.view = View { filters, ..View::new(mode) };
        (self.cursor, self.first, self.column) = (0, 0, 0);
        self.message = None;
        self.screen = Screen::Table;
        self.refresh();
    }

    fn key_of_help(&mut self, key: KeyEvent, first: usize) {
        self.screen = match key.code {
            KeyCode::Up => Screen::Help(first.saturating_sub(1)),
            KeyCode::Down => Screen::Help((first + 1).min(super::words::KEYS.len() - 1)),
            _ => Screen::Table,
        };
    }

    fn key_of_modes(&mut self, key: KeyEvent, at: usize) {
        let last = Mode::ALL.len() - 1;
        match key.code {
            KeyCode::Up => self.screen = Screen::Modes(at.saturating_sub(1)),
            KeyCode::Down => self.screen = Screen::Modes((at + 1).min(last)),
            KeyCode::Enter => self.set_mode(Mode::ALL[at.min(last)].1, Vec::new()),
            KeyCode::Char(letter) if Mode::ALL.iter().any(|(own, _)| *own == letter) => {
                let chosen = Mode::ALL.iter().find(|(own, _)| *own == letter);
                self.set_mode(chosen.map_or(self.view.mode, |(_, mode)| *mode), Vec::new());
            }
            _ => self.screen = Screen::Table,
        }
    }

    fn key_of_fields(&mut self, key: KeyEvent, at: usize, is_moving: bool) {
        let last = self.view.fields.len().saturating_sub(1);
        let to = |to: usize| Screen::Fields { at: to, is_moving };
        match key.code {
            KeyCode::Up | KeyCode::Down | KeyCode::Home | KeyCode::End => {
                let next = match key.code {
                    KeyCode::Up => at.saturating_sub(1),
                    KeyCode::Down => (at + 1).min(last),
                    KeyCode::Home => 0,
                    _ => last,
                };
                if is_moving {
                    let field = self.view.fields.remove(at);
                    self.view.fields.insert(next, field);
                }
                self.screen = to(next);
            }
            KeyCode::Right => self.screen = Screen::Fields { at, is_moving: true },
            KeyCode::Left | KeyCode::Enter => self.screen = Screen::Fields { at, is_moving: false },
            KeyCode::Char('d' | ' ') => self.view.fields[at].1 ^= true,
            KeyCode::Char('s') => self.view.sort = self.view.fields[at].0,
            _ => {
                self.screen = Screen::Table;
                self.refresh();
            }
        }
    }

    fn key_of_prompt(&mut self, key: KeyEvent, mut prompt: Prompt) -> KeyAction {
        match prompt.key(key) {
            PromptResult::Pending => self.screen = Screen::Prompt(prompt),
            PromptResult::Canceled => self.screen = Screen::Table,
            PromptResult::Text(text) => {
                self.screen = Screen::Table;
                match self.apply_input(prompt.kind, &text) {
                    Ok(action) => return action,
                    Err(wrong) => self.message = Some(wrong),
                }
            }
        }
        KeyAction::Continue
    }

    fn apply_input(&mut self, kind: PromptKind, text: &str) -> Result<KeyAction, String> {
        match kind {
            PromptKind::Delay => {
                self.delay = super::delay(text)?;
                Ok(KeyAction::Sample)
            }
            PromptKind::Filter(case) => {
                self.typed.push(text.to_string());
                let fields: Vec<Field> =
                    self.view.mode.fields().into_iter().map(|(field, _)| field).collect();
                let filter = Filter::parse(text, &fields, case)?;
                self.change(|view| view.filters.push(filter));
                Ok(KeyAction::Continue)
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::cluster::tests::{region, sample, server};
    use super::*;

    /// Six regions of two tables on two servers.
    pub(crate) fn app(mode: Mode) -> App {
        let regions = ["", "b", "d", "f"].map(|start| region("t", start, 0, 1));
        let others = ["", "\u{e9}"].map(|start| region("n:u", start, 0, 2));
        let sample = sample(&[server("a", &regions), server("b", &others)]);
        let mut app = App::new(View::new(mode), sample, Duration::from_secs(3));
        app.set_page(2);
        app
    }

    /// Presses keys: letters, and names in brackets.
    pub(crate) fn press(app: &mut App, keys: &str) -> KeyAction {
        let mut action = KeyAction::Continue;
        let mut rest = keys;
        while let Some(first) = rest.chars().next() {
            let name = rest.strip_prefix('[').and_then(|tail| tail.split_once(']'));
            let code = match name {
                Some((name, tail)) => {
                    rest = tail;
                    named(name)
                }
                None => {
                    rest = &rest[first.len_utf8()..];
                    KeyCode::Char(first)
                }
            };
            action = app.key(KeyEvent::new(code, KeyModifiers::NONE));
        }
        action
    }

    fn named(name: &str) -> KeyCode {
        match name {
            "up" => KeyCode::Up,
            "down" => KeyCode::Down,
            "left" => KeyCode::Left,
            "right" => KeyCode::Right,
            "home" => KeyCode::Home,
            "end" => KeyCode::End,
            "pgup" => KeyCode::PageUp,
            "pgdn" => KeyCode::PageDown,
            "enter" => KeyCode::Enter,
            "esc" => KeyCode::Esc,
            "back" => KeyCode::Backspace,
            _ => panic!("unknown key {name}"),
        }
    }

    #[test]
    fn the_cursor_stays_within_the_lines_and_the_page() {
        let mut app = app(Mode::Region);
        let at = |app: &mut App, keys: &str| {
            press(app, keys);
            (app.cursor, app.first)
        };
        assert_eq!(at(&mut app, "[up]"), (0, 0));
        assert_eq!(at(&mut app, "[down][down]"), (2, 1));
        assert_eq!(at(&mut app, "[end][down]"), (5, 4));
        assert_eq!(at(&mut app, "[pgup]"), (3, 3));
        assert_eq!(at(&mut app, "[pgdn][pgdn]"), (5, 4));
        assert_eq!(at(&mut app, "[home]k"), (0, 0));
        assert_eq!(at(&mut app, "jj"), (2, 1));
        // Fewer lines remain.
        press(&mut app, "O#SF>1[enter]");
        assert_eq!((app.lines.len(), app.cursor), (2, 1));
    }

    #[test]
    fn drill_down_goes_from_namespaces_to_regions() {
        let mut app = app(Mode::Namespace);
        press(&mut app, "[end]i");
        assert_eq!((app.view.mode, app.lines.len()), (Mode::Table, 1));
        press(&mut app, "i");
        assert_eq!((app.view.mode, app.lines.len()), (Mode::Region, 2));
        press(&mut app, "i");
        assert!(app.message.as_deref().unwrap().contains("no further details"));
        press(&mut app, "=");
        assert_eq!(app.lines.len(), 6);
    }

    #[test]
    fn modes_are_chosen_by_letter_or_cursor() {
        let mut app = app(Mode::Region);
        press(&mut app, "mt");
        assert_eq!((app.view.mode, &app.screen), (Mode::Table, &Screen::Table));
        press(&mut app, "m[down][down][enter]");
        assert_eq!(app.view.mode, Mode::RegionServer);
        press(&mut app, "mq");
        assert_eq!((app.view.mode, &app.screen), (Mode::RegionServer, &Screen::Table));
    }

    #[test]
    fn fields_are_hidden_moved_and_sorted_by() {
        let mut app = app(Mode::Table);
        press(&mut app, "f[down]s d[right][up][enter]");
        assert_eq!(app.view.sort, Field::Table);
        assert_eq!(app.view.fields[0], (Field::Table, true));
        press(&mut app, "[down]dq");
        assert_eq!(
            (app.view.visible_fields()[0], app.view.visible_fields().contains(&Field::Namespace)),
            (Field::Table, false)
        );
        press(&mut app, "R");
        assert_eq!(app.lines[0].text(Field::Table), "t");
    }

    #[test]
    fn filters_are_typed_and_corrected() {
        let mut app = app(Mode::Table);
        press(&mut app, "oTABLE==x[back]T[enter]");
        assert_eq!(app.lines.len(), 1);
        press(&mut app, "oNONSENSE[enter]");
        assert!(app.message.as_deref().unwrap().contains("invalid filter"), "{:?}", app.message);
        press(&mut app, "Oz[esc]");
        assert_eq!((app.view.filters.len(), &app.screen), (1, &Screen::Table));
        // The prompt recalls the previous input.
        press(&mut app, "=o[up][up][enter]");
        assert_eq!(app.view.filters.len(), 1);
        press(&mut app, "F");
        assert_eq!(app.screen, Screen::Filters);
        press(&mut app, "q");
        assert_eq!(app.screen, Screen::Table);
    }

    #[test]
    fn the_delay_is_typed() {
        let mut app = app(Mode::Table);
        assert_eq!(press(&mut app, "s0.5[enter]"), KeyAction::Sample);
        assert_eq!(app.delay, Duration::from_millis(500));
        assert_eq!(press(&mut app, "d0[enter]"), KeyAction::Continue);
        assert_eq!(app.delay, Duration::from_millis(500));
        assert!(app.message.is_some());
    }

    #[test]
    fn quitting_leaves_a_screen_first() {
        let mut app = app(Mode::Table);
        assert_eq!(press(&mut app, "h[down][esc]"), KeyAction::Continue);
        assert_eq!(press(&mut app, "[enter]"), KeyAction::Sample);
        assert_eq!(press(&mut app, "q"), KeyAction::Quit);
        let mut control = |letter| app.key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL));
        assert_eq!((control('o'), control('c')), (KeyAction::Continue, KeyAction::Quit));
    }

    #[test]
    fn a_failed_update_leaves_the_last_sample() {
        let mut app = app(Mode::Region);
        app.fail("away");
        assert_eq!((app.lines.len(), app.message.is_some()), (6, true));
        app.set_sample(Sample::default());
        assert_eq!((app.lines.len(), app.message.is_some()), (0, false));
        press(&mut app, "[down][end]i[right]");
    }
}
