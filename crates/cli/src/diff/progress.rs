//! The progress bar of a comparison, shown if standard error is a terminal.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{HumanCount, ProgressBar, ProgressStyle};

/// Counts ranges and rows.
pub(crate) struct Progress {
    bar: ProgressBar,
    rows: AtomicU64,
}

impl Progress {
    pub(crate) fn new(ranges: u64) -> Progress {
        let bar =
            if std::io::stderr().is_terminal() { ProgressBar::new(ranges) } else { ProgressBar::hidden() };
        let template = "comparing [{bar:32.green}] {pos} of {len} ranges, {msg} rows, {elapsed}";
        let style =
            ProgressStyle::with_template(template).expect("the template is valid").progress_chars("=> ");
        Progress { bar: bar.with_style(style).with_message("0"), rows: AtomicU64::new(0) }
    }

    /// Counts compared rows.
    pub(crate) fn add_rows(&self, rows: u64) {
        let all = self.rows.fetch_add(rows, Ordering::Relaxed) + rows;
        if !self.bar.is_hidden() {
            self.bar.set_message(HumanCount(all).to_string());
        }
    }

    /// Counts a compared range.
    pub(crate) fn end_range(&self) {
        self.bar.inc(1);
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
