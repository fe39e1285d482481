//! A progress bar on standard error, if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// The bar of an export or import.
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar for an amount of work in bytes.
    pub fn of_bytes(total: u64) -> Progress {
        Progress::new(total, "[{bar:32.green}] {percent:>3} %  {msg}  {elapsed} (about {eta} left)")
    }

    /// A bar for a number of parts.
    pub fn of_parts(total: u64) -> Progress {
        Progress::new(total, "[{bar:32.green}] {pos} of {len} parts  {msg}  {elapsed}")
    }

    fn new(total: u64, template: &str) -> Progress {
        let style = ProgressStyle::with_template(template).expect("the template is valid");
        Progress(ProgressBar::new(total).with_style(style.progress_chars("=> ")))
    }

    /// Adds finished work, and shows the number of rows.
    pub fn advance(&self, work: u64, rows: u64) {
        self.0.inc(work);
        self.show_rows(rows);
    }

    /// Shows the number of rows.
    pub fn show_rows(&self, rows: u64) {
        self.0.set_message(format!("{} rows", grouped(rows)));
    }

    /// Removes the bar.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// A number with commas between groups of three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_grouped() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(12_345_678), "12,345,678");
    }
}
