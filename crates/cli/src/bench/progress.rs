//! A bar that shows how far a run is, where there is a terminal to show it.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How far a run is: by time, or by rows if each has its turn once.
pub(crate) struct Progress {
    bar: ProgressBar,
    measure: Measure,
}

/// What a run is as long as.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Measure {
    /// So long.
    Time(Duration),
    /// So many rows.
    Rows(u64),
}

impl Progress {
    /// A bar on standard error; none where that is no terminal.
    pub(crate) fn new(what: String, measure: Measure) -> Progress {
        let (length, template) = match measure {
            Measure::Time(length) => {
                (length.as_millis() as u64, "{msg:32} [{bar:32.green}] {elapsed} of {prefix}")
            }
            Measure::Rows(rows) => {
                (rows, "{msg:32} [{bar:32.green}] {human_pos} of {human_len} rows, {eta} left")
            }
        };
        let style =
            ProgressStyle::with_template(template).expect("the template is one").progress_chars("=> ");
        let bar = ProgressBar::new(length).with_style(style).with_message(what);
        if let Measure::Time(length) = measure {
            bar.set_prefix(format!("{} s", length.as_secs()));
        }
        Progress { bar, measure }
    }

    /// Shows that so much time has passed, and so many rows had their turn.
    pub(crate) fn show(&self, passed: Duration, rows: u64) {
        self.bar.set_position(match self.measure {
            Measure::Time(length) => passed.min(length).as_millis() as u64,
            Measure::Rows(all) => rows.min(all),
        });
    }

    /// Takes the bar away.
    pub(crate) fn clear(self) {
        self.bar.finish_and_clear();
    }
}
