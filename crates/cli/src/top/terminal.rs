//! The terminal: drawn on, listened to, and given back as it was, whatever happens.

use std::time::Duration;

use base::BoxFuture;
use crossterm::event::{Event, EventStream, KeyEventKind};
use futures_util::StreamExt;
use ratatui::DefaultTerminal;

use super::app::{App, Step};
use super::cluster::Look;
use super::screen;
use super::source::Source;

/// The terminal as long as it is ours. It is given back when this is dropped, and by a panic before it is told.
struct Terminal(DefaultTerminal);

impl Terminal {
    fn open() -> Result<Terminal, String> {
        // Sets the hook for panics, too.
        ratatui::try_init().map(Terminal).map_err(|error| {
            ratatui::restore();
            format!("cannot take the terminal over: {error}")
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
        // A panic gave it back, and told what happened: to do so once more would put the cursor over that.
        if !std::thread::panicking() {
            ratatui::restore();
        }
    }
}

/// The app on a terminal.
struct Session {
    terminal: Terminal,
    app: App,
    events: EventStream,
    ends: BoxFuture<'static, ()>,
}

impl Session {
    /// Draws, and does what keys say, until one quits or wants to look at once. Nothing is lost if it is dropped
    /// before.
    async fn input(&mut self) -> Result<Step, String> {
        loop {
            self.terminal.draw(&mut self.app)?;
            let event = tokio::select! {
                biased;
                () = &mut self.ends => return Ok(Step::Quit),
                event = self.events.next() => event,
            };
            let step = match event {
                Some(Ok(Event::Key(key))) if key.kind != KeyEventKind::Release => self.app.key(key),
                // A new size, say, which is drawn.
                Some(Ok(_)) => Step::Stay,
                Some(Err(error)) => return Err(format!("cannot read from the terminal: {error}")),
                None => Step::Quit,
            };
            if step != Step::Stay {
                return Ok(step);
            }
        }
    }

    fn take(&mut self, told: Result<Look, String>) {
        match told {
            Ok(look) => self.app.take(look),
            Err(why) => self.app.fail(&why),
        }
    }
}

/// Shows the app until somebody quits, `ends` is ready, or the last of `iterations` looks was there for as long as the
/// others. The first one was made.
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
    let mut session = Session { terminal: Terminal::open()?, app, events: EventStream::new(), ends };
    let mut looks = 1;
    while iterations.is_none_or(|all| looks <= all) {
        tokio::select! {
            step = session.input() => match step? {
                Step::Quit => return Ok(()),
                Step::Look | Step::Stay => pause = Duration::ZERO,
            },
            told = source.look_after(pause) => {
                session.take(told);
                looks += 1;
                pause = session.app.delay;
            }
        }
    }
    Ok(())
}
