//! How much went on where, and when: a row for each place, a column for each span of time, the darker the more.

use maud::{Markup, html};

use crate::section::headed;
use crate::{Value, units};

/// Shades that are told apart.
const SHADES: usize = 8;

/// A map of heat.
pub struct HeatMap {
    /// Heading.
    pub heading: String,
    /// A line below it: what is counted.
    pub note: String,
    /// When each column was, the oldest first.
    pub columns: Vec<String>,
    /// Places, in the order they are to be shown.
    pub rows: Vec<HeatRow>,
}

/// A place: a region, or keys.
pub struct HeatRow {
    /// Which.
    pub label: Value,
    /// How much in each column, with a text for it; nothing where nothing is known.
    pub cells: Vec<Option<(f64, String)>>,
}

impl HeatMap {
    /// What a column says that ended then, milliseconds since the epoch.
    pub fn column(end_ms: u64) -> String {
        units::time_of_day(end_ms)
    }

    pub(super) fn render(&self) -> Markup {
        let values = self.rows.iter().flat_map(|row| row.cells.iter().flatten());
        let most = values.map(|(value, _)| *value).filter(|value| value.is_finite()).fold(0.0, f64::max);
        let content = html! {
            @if self.rows.is_empty() { p class="card none" { "None." } } @else {
                div class="card heat" {
                    @for row in &self.rows {
                        div class="name" { (row.label.render()) }
                        (self.strip(row, most))
                    }
                    div class="name" {}
                    div class="xlabels" { @for label in self.ends() { span { (label) } } }
                }
                p class="shades" aria-hidden="true" {
                    "less " @for shade in 0..SHADES { i class={ "h" (shade) } {} } " more"
                }
            }
        };
        headed(&self.heading, Some(&self.note), &content)
    }

    fn strip(&self, row: &HeatRow, most: f64) -> Markup {
        html! {
            svg viewBox={ "0 0 " (self.columns.len()) " 1" } preserveAspectRatio="none" role="img"
                aria-label=(row.label.as_text()) {
                @for (at, (when, cell)) in self.columns.iter().zip(&row.cells).enumerate() {
                    @if let Some((value, text)) = cell {
                        rect class={ "h" (shade(*value, most)) } x=(at) width="1" height="1" { title { (when) ": " (text) } }
                    }
                }
            }
        }
    }

    /// The first and the last column.
    fn ends(&self) -> impl Iterator<Item = &String> {
        let last = self.columns.last().filter(|_| self.columns.len() > 1);
        self.columns.first().into_iter().chain(last)
    }
}

/// 0 for nothing at all; from 1 on by the square root, so that what is not the hottest is told apart too.
fn shade(value: f64, most: f64) -> usize {
    if value.is_nan() || value <= 0.0 || most <= 0.0 {
        return 0;
    }
    let share = (value / most).clamp(0.0, 1.0).sqrt();
    1 + ((share * (SHADES - 1) as f64) as usize).min(SHADES - 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hottest_is_the_darkest_and_nothing_has_no_shade() {
        assert_eq!([0.0, 0.01, 0.2, 0.9, 1.0, f64::NAN].map(|value| shade(value, 1.0)), [0, 1, 4, 7, 7, 0]);
        assert_eq!(shade(5.0, 0.0), 0);
    }

    #[test]
    fn rows_are_places_and_columns_are_times() {
        let row = |key: &[u8], cells: [Option<f64>; 3]| HeatRow {
            label: Value::key(key),
            cells: cells.map(|cell| cell.map(|value| (value, format!("{value} reads<>")))).to_vec(),
        };
        let map = HeatMap {
            heading: "Hot regions".into(),
            note: "Reads".into(),
            columns: ["10:00", "10:01", "10:02"].map(String::from).to_vec(),
            rows: vec![row(b"a<b", [Some(100.0), None, Some(0.0)]), row(b"c", [None, Some(25.0), None])],
        };
        let text = map.render().into_string();
        assert_eq!(text.matches("<rect").count(), 3, "{text}");
        assert!(text.contains(
            "<rect class=\"h7\" x=\"0\" width=\"1\" height=\"1\"><title>10:00: 100 reads&lt;&gt;</title>"
        ));
        assert!(text.contains("<rect class=\"h4\" x=\"1\"") && text.contains("a&lt;b"), "{text}");
        let none = HeatMap { rows: vec![], ..map };
        assert!(none.render().into_string().contains("None."));
    }
}
