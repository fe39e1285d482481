//! A heat map: a row for each place, a column for each time span, and darker cells for more load.

use maud::{Markup, html};

use crate::section::headed;
use crate::{Value, units};

/// Number of distinct shades.
const SHADES: usize = 8;

/// A heat map.
pub struct HeatMap {
    /// Heading.
    pub heading: String,
    /// A line below the heading: what is counted.
    pub note: String,
    /// The time of each column, oldest first.
    pub columns: Vec<String>,
    /// The places, in the order to show.
    pub rows: Vec<HeatRow>,
}

/// A place: a region, or a key range.
pub struct HeatRow {
    /// The name of the place.
    pub label: Value,
    /// The value of each column with its tooltip; `None` if unknown.
    pub cells: Vec<Option<(f64, String)>>,
}

impl HeatMap {
    /// The label of a column that ended at this time, in milliseconds since the epoch.
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

    /// The labels of the first and the last column.
    fn ends(&self) -> impl Iterator<Item = &String> {
        let last = self.columns.last().filter(|_| self.columns.len() > 1);
        self.columns.first().into_iter().chain(last)
    }
}

/// The shade of a value: 0 for no load, otherwise at least 1. The square root makes smaller loads
/// distinguishable.
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
    fn the_hottest_cell_is_the_darkest_and_zero_has_no_shade() {
        assert_eq!([0.0, 0.01, 0.2, 0.9, 1.0, f64::NAN].map(|value| shade(value, 1.0)), [0, 1, 4, 7, 7, 0]);
        assert_eq!(shade(5.0, 0.0), 0);
    }

    #[test]
    fn rows_are_key_ranges_and_columns_are_times() {
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
