//! A progress bar for an operation of several stages, shown if standard error is a terminal.

use std::sync::Mutex;

use indicatif::{ProgressBar, ProgressStyle};

/// The bar of the current stage.
#[derive(Default)]
pub struct StageBar {
    bar: Mutex<Option<ProgressBar>>,
}

impl StageBar {
    /// Begins a stage of `total` units, and removes the bar of the previous one.
    pub fn begin(&self, stage: &str, total: u64) {
        let template = "{msg:32} [{bar:32.green}] {human_pos} of {human_len}, {elapsed}";
        let style =
            ProgressStyle::with_template(template).expect("the template is valid").progress_chars("=> ");
        let bar = ProgressBar::new(total).with_style(style).with_message(stage.to_string());
        bar.tick();
        self.replace(Some(bar));
    }

    /// Counts completed units.
    pub fn advance(&self, units: u64) {
        let bar = self.bar.lock().expect("no holder of this lock panics");
        if let Some(bar) = &*bar {
            bar.inc(units);
        }
    }

    /// Removes the bar.
    pub fn clear(&self) {
        self.replace(None);
    }

    fn replace(&self, bar: Option<ProgressBar>) {
        let before = std::mem::replace(&mut *self.bar.lock().expect("no holder of this lock panics"), bar);
        if let Some(bar) = before {
            bar.finish_and_clear();
        }
    }
}
