//! The screen: summary, status and table, or a list in their place. Text that does not fit is
//! truncated, down to a screen of one character.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::app::{App, Screen};
use super::mode::Mode;
use super::words;

/// Minimum number of table lines. The summary shrinks to leave room for them.
const LINES_MIN: u16 = 3;

const PLAIN: Style = Style::new();
const HEAD: Style = Style::new().add_modifier(Modifier::REVERSED);
const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);

/// Draws the open screen.
pub(super) fn draw(frame: &mut Frame<'_>, app: &mut App) {
    let area = frame.area();
    match &app.screen {
        Screen::Table | Screen::Prompt(_) => table(frame, area, app),
        Screen::Help(first) => help(frame.buffer_mut(), area, app, *first),
        Screen::Modes(at) => modes(frame.buffer_mut(), area, *at),
        Screen::Fields { at, is_moving } => fields(frame.buffer_mut(), area, app, *at, *is_moving),
        Screen::Filters => filters(frame.buffer_mut(), area, app),
    }
}

/// Draws a line, unless it is below the screen.
fn put(buffer: &mut Buffer, area: Rect, line: u16, text: &str, style: Style) {
    if line < area.height {
        buffer.set_stringn(area.x, area.y + line, text, usize::from(area.width), style);
    }
}

fn table(frame: &mut Frame<'_>, area: Rect, app: &mut App) {
    let summary = words::summary(&app.sample.summary);
    let room = usize::from(area.height.saturating_sub(LINES_MIN + 2));
    let shown = summary.len().min(room) as u16;
    for (line, text) in (0..shown).zip(&summary) {
        put(frame.buffer_mut(), area, line, text, PLAIN);
    }
    status(frame, area, shown, app);
    app.set_page(usize::from(area.height.saturating_sub(shown + 2)));
    let fields = app.view.visible_fields();
    let fields = fields.get(app.column..).unwrap_or_default();
    let width = usize::from(area.width);
    let head = format!("{:width$}", app.view.widths.head(fields));
    put(frame.buffer_mut(), area, shown + 1, &head, HEAD);
    for (at, record) in app.lines.iter().enumerate().skip(app.first).take(app.page) {
        let style = if at == app.cursor { STRONG } else { PLAIN };
        let line = shown + 2 + (at - app.first) as u16;
        put(frame.buffer_mut(), area, line, &app.view.widths.record(fields, record), style);
    }
}

/// Draws the open prompt, or else a message, or else the description of the view.
fn status(frame: &mut Frame<'_>, area: Rect, line: u16, app: &App) {
    match (&app.screen, &app.message) {
        (Screen::Prompt(prompt), _) => {
            let text = format!("{}{}", prompt.kind.text(), prompt.text);
            // Show the end of the input, where the user types.
            let width = usize::from(area.width).saturating_sub(1);
            let cut = text.chars().count().saturating_sub(width);
            let shown: String = text.chars().skip(cut).collect();
            put(frame.buffer_mut(), area, line, &shown, STRONG);
            let column = u16::try_from(text.chars().count() - cut).unwrap_or_default();
            if line < area.height && column < area.width {
                frame.set_cursor_position((area.x + column, area.y + line));
            }
        }
        (_, Some(message)) => put(frame.buffer_mut(), area, line, message, STRONG),
        (_, None) => put(frame.buffer_mut(), area, line, &words::view(&app.view), PLAIN),
    }
}

/// Draws heading lines, and below them as many items as fit, including the selected one.
fn list(buffer: &mut Buffer, area: Rect, heads: &[String], items: &[String], at: Option<usize>) {
    let for_items = u16::from(!items.is_empty());
    let heads_shown = heads.len().min(usize::from(area.height.saturating_sub(for_items)));
    for (line, head) in heads.iter().take(heads_shown).enumerate() {
        put(buffer, area, line as u16, head, STRONG);
    }
    let room = usize::from(area.height) - heads_shown;
    let first = at.map_or(0, |at| (at + 1).saturating_sub(room));
    for (line, (number, item)) in items.iter().enumerate().skip(first).take(room).enumerate() {
        let style = if Some(number) == at { HEAD } else { PLAIN };
        put(buffer, area, (heads_shown + line) as u16, item, style);
    }
}

fn help(buffer: &mut Buffer, area: Rect, app: &App, first: usize) {
    let heads = words::help(app.delay);
    let items: Vec<String> =
        words::KEYS.iter().skip(first).map(|(key, what)| format!("{key:<11} {what}")).collect();
    list(buffer, area, &heads, &items, None);
}

fn modes(buffer: &mut Buffer, area: Rect, at: usize) {
    let heads = ["Mode: press a letter, or Enter for the selected line".to_string()];
    let items: Vec<String> = Mode::ALL.iter().map(|(letter, mode)| format!("{letter}  {mode}")).collect();
    list(buffer, area, &heads, &items, Some(at));
}

fn fields(buffer: &mut Buffer, area: Rect, app: &App, at: usize, is_moving: bool) {
    let heads = [
        format!("Fields of {} mode, sorted by {}", app.view.mode, app.view.sort.head()),
        "d: show or hide; s: sort; right: pick up a field to move it; left: drop it; q: back".to_string(),
    ];
    let items = app.view.fields.iter().enumerate().map(|(number, (field, shown))| {
        let held = if is_moving && number == at { '>' } else { ' ' };
        let mark = if *shown { '*' } else { ' ' };
        format!("{held}{mark} {:<12} {}", field.head(), field.meaning())
    });
    list(buffer, area, &heads, &items.collect::<Vec<_>>(), Some(at));
}

fn filters(buffer: &mut Buffer, area: Rect, app: &App) {
    let heads = ["Filters (any key: back)".to_string()];
    let items: Vec<String> = app.view.filters.iter().map(ToString::to_string).collect();
    list(buffer, area, &heads, &items, None);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::app::tests::{app, press};
    use super::*;

    fn drawn(app: &mut App, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, app)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(|y| line(y).trim_end().to_string()).collect()
    }

    #[test]
    fn the_screen_has_summary_status_and_table() {
        let mut app = app(Mode::Table);
        let expected = [
            "grampus top - 22:13:20 UTC",
            "Version: 2.6.4",
            "Cluster ID: the-id",
            "RegionServer(s): 2 total, 2 live, 0 dead",
            "RegionCount: 6 total, 0 rit",
            "Average Cluster Load: 3.00",
            "Aggregate Request/s: 0",
            "Table mode, by #REQ/S (high first); h for help",
            "NAMESPACE TABLE #REGION #REQ/S #READ/S #FREAD/S #WRITE/S    SF #SF MEMSTORE",
            "default   t           4      0       0        0        0 0.0MB   4    0.0MB",
            "n         u           2      0       0        0        0 0.0MB   4    0.0MB",
            "",
        ];
        assert_eq!(drawn(&mut app, 80, 12), expected);
    }

    #[test]
    fn rows_that_are_no_text_are_shown_as_hbase_shows_them() {
        let mut app = app(Mode::Region);
        press(&mut app, "[end]");
        app.view.show_only(&[super::super::field::Field::StartKey]);
        assert!(drawn(&mut app, 80, 24).contains(&r"\xC3\xA9".to_string()));
    }

    #[test]
    fn the_table_moves_in_both_directions() {
        let mut app = app(Mode::Table);
        press(&mut app, "[right][right]j");
        let lines = drawn(&mut app, 30, 12);
        assert_eq!(lines[8], "#REGION #REQ/S #READ/S #FREAD/");
        let mut short = drawn(&mut app, 30, 3);
        short.remove(0);
        assert_eq!(short, ["#REGION #REQ/S #READ/S #FREAD/", "      2      0       0"]);
    }

    #[test]
    fn prompts_and_failures_replace_the_status_line() {
        let mut app = app(Mode::Table);
        app.fail("no response");
        assert_eq!(drawn(&mut app, 80, 12)[7], "the last update failed, retrying: no response");
        press(&mut app, "oTABLE=t");
        assert_eq!(drawn(&mut app, 80, 12)[7], "filter (case ignored): TABLE=t");
        assert_eq!(drawn(&mut app, 10, 2)[0], ": TABLE=t");
        press(&mut app, "[enter]F");
        assert_eq!(drawn(&mut app, 80, 3)[..2], ["Filters (any key: back)", "TABLE=t"]);
    }

    #[test]
    fn lists_show_the_line_of_the_cursor() {
        let mut app = app(Mode::Region);
        press(&mut app, "f[end]");
        let lines = drawn(&mut app, 80, 5);
        assert_eq!(lines[0], "Fields of Region mode, sorted by #REQ/S");
        assert_eq!(lines[4], "   LASTMCOMP    last major compaction");
        press(&mut app, "qm[down]");
        assert_eq!(drawn(&mut app, 80, 2)[1], "s  RegionServer");
        press(&mut app, "qh");
        assert!(drawn(&mut app, 80, 24)[2].starts_with("m           choose"));
    }

    #[test]
    fn no_screen_is_too_small() {
        for keys in ["", "h", "m", "f[end][right]", "F", "oTABLE", "R[right]"] {
            for width in [1, 2, 20, 300] {
                for height in [1, 2, 3, 5, 60] {
                    let mut app = app(Mode::Region);
                    press(&mut app, keys);
                    let lines = drawn(&mut app, width, height);
                    let is_empty = lines.iter().all(String::is_empty);
                    assert!(!is_empty || width < 20, "{keys} {width}x{height}");
                }
            }
        }
    }
}
