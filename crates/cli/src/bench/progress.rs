//! A progress bar, shown if standard error is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A progress bar that measures time, or rows if a run visits each row once.
pub struct Progress {
    bar: ProgressBar,
    measure: Measure,
}

/// The length of a run.
#[derive(Debug, Clone, Copy)]
pub enum Measure {
    /// A duration.
    Time(Duration),
    /// A number of rows.
    Rows(u64),
}

impl Progress {
    /// Creates a bar on standard error. It stays hidden if that is not a terminal.
    pub fn new(what: String, measure: Measure) -> Progress {
        let (length, template) = match measure {
            Measure::Time(length) => {
                (length.as_millis() as u64, "{msg:32} [{bar:32.green}] {elapsed} of {prefix}")
            }
            Measure::Rows(rows) => {
                (rows, "{msg:32} [{bar:32.green}] {human_pos} of {human_len} rows, {eta} left")
            }
        };
        let style =
            ProgressStyle::with_template(template).expect("the template is valid").progress_chars("=> ");
        let bar = ProgressBar::new(length).with_style(style).with_message(what);
        if let Measure::Time(length) = measure {
            bar.set_prefix(format!("{} s", length.as_secs()));
        }
        Progress { bar, measure }
    }

    /// Updates the bar with the elapsed time and the number of rows done.
    pub fn show(&self, passed: Duration, rows: u64) {
        self.bar.set_position(match self.measure {
            Measure::Time(length) => passed.min(length).as_millis() as u64,
            Measure::Rows(all) => rows.min(all),
        });
    }

    /// Removes the bar.
    pub fn clear(self) {
        self.bar.finish_and_clear();
    }
}
