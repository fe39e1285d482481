//! The terminal: drawing, input, and restoration on every exit.

use std::time::Duration;

use base::BoxFuture;
use crossterm::event::{Event, EventStream, KeyEventKind};
use futures_util::StreamExt;
use ratatui::DefaultTerminal;

use super::app::{App, KeyAction};
use super::cluster::Sample;
use super::screen;
use super::source::Source;

/// The terminal in raw mode. It is restored when this is dropped, and before a panic message is
/// printed.
struct Terminal(DefaultTerminal);

impl Terminal {
    fn open() -> Result<Terminal, String> {
        // This also sets the panic hook.
        ratatui::try_init().map(Terminal).map_err(|error| {
            ratatui::restore();
            format!("cannot initialize the terminal: {error}")
        })
    }

    fn draw(&mut self, app: &mut App) -> Result<(), String> {
        let drawn = self.0.draw(|frame| screen::draw(frame, app));
        drawn.map(drop).map_err(|error| format!("cannot draw: {error}"))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.0.show_cursor();
        // A panic has restored the terminal and printed its message. A second restoration would
        // move the cursor over the message.
        if !std::thread::panicking() {
            ratatui::restore();
        }
    }
}

/// The app on a terminal.
struct TerminalSession {
    terminal: Terminal,
    app: App,
    events: EventStream,
    ends: BoxFuture<'static, ()>,
}

impl TerminalSession {
    /// Draws the screen and handles keys, until a key requests to quit or to update now.
    /// Cancel-safe.
    async fn input(&mut self) -> Result<KeyAction, String> {
        loop {
            self.terminal.draw(&mut self.app)?;
            let event = tokio::select! {
                biased;
                () = &mut self.ends => return Ok(KeyAction::Quit),
                event = self.events.next() => event,
            };
            let action = match event {
                Some(Ok(Event::Key(key))) if key.kind != KeyEventKind::Release => self.app.key(key),
                // For example a new size of the terminal, which needs a redraw.
                Some(Ok(_)) => KeyAction::Continue,
                Some(Err(error)) => return Err(format!("cannot read from the terminal: {error}")),
                None => KeyAction::Quit,
            };
            if action != KeyAction::Continue {
                return Ok(action);
            }
        }
    }

    fn handle_sample(&mut self, result: Result<Sample, String>) {
        match result {
            Ok(sample) => self.app.set_sample(sample),
            Err(why) => self.app.fail(&why),
        }
    }
}

/// Shows the app until the user quits, `ends` is ready, or the last of `iterations` samples was
/// shown for the delay. The first sample is already in the app.
///
/// # Errors
/// If the terminal fails.
pub(super) async fn run(
    mut source: Source,
    app: App,
    ends: BoxFuture<'static, ()>,
    iterations: Option<u64>,
) -> Result<(), String> {
    let mut pause = app.delay;
    let mut session = TerminalSession { terminal: Terminal::open()?, app, events: EventStream::new(), ends };
    let mut samples = 1;
    while iterations.is_none_or(|all| samples <= all) {
        tokio::select! {
            action = session.input() => match action? {
                KeyAction::Quit => return Ok(()),
                KeyAction::Sample | KeyAction::Continue => pause = Duration::ZERO,
            },
            result = source.sample_after(pause) => {
                session.handle_sample(result);
                samples += 1;
                pause = session.app.delay;
            }
        }
    }
    Ok(())
}
