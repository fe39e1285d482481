//! The most important metrics: large numbers with a small plot of their last hour.

use base::history::Unit;
use maud::{Markup, html};

use crate::section::plot;
use crate::units;
use crate::value::Level;

/// Number of points in a tile's plot.
const SPARK_POINTS: usize = 90;

/// A tile with one metric.
pub struct Tile {
    /// The name of the metric.
    pub label: String,
    /// The current value; `None` if it is unknown.
    pub value: Option<f64>,
    /// The unit of the value.
    pub unit: Unit,
    /// A short text below the value.
    pub note: String,
    /// The severity of the value.
    pub level: Level,
    /// The last hour; NaN is a gap.
    pub past: Vec<f32>,
}

impl Tile {
    /// A tile without a plot, with level [`Level::Good`].
    pub fn new(label: &str, value: Option<f64>, unit: Unit, note: impl Into<String>) -> Tile {
        let (label, note) = (label.to_owned(), note.into());
        Tile { label, value, unit, note, level: Level::Good, past: Vec::new() }
    }

    /// Adds the values of the last hour.
    pub fn with_history(self, past: &[f32]) -> Tile {
        Tile { past: past.to_vec(), ..self }
    }

    /// Sets the level.
    pub fn with_level(self, level: Level) -> Tile {
        Tile { level, ..self }
    }

    fn render(&self) -> Markup {
        let (number, unit) = match self.value {
            Some(value) => units::parts(value, self.unit),
            None => (units::NO_VALUE.to_owned(), String::new()),
        };
        html! {
            div class={ "card tile " (self.level.class()) } {
                div class="label" { (self.label) }
                div class="figure" { (number) @if !unit.is_empty() { small { " " (unit) } } }
                div class="note" { (self.note) }
                (plot::spark(&thinned(&self.past)))
            }
        }
    }
}

/// Reduces the number of values. Each remaining one is the maximum of a chunk, so that peaks stay
/// visible.
fn thinned(values: &[f32]) -> Vec<f32> {
    let width = values.len().div_ceil(SPARK_POINTS).max(1);
    values.chunks(width).map(|chunk| chunk.iter().copied().fold(f32::NAN, f32::max)).collect()
}

pub(super) fn render(tiles: &[Tile]) -> Markup {
    // A class for full rows of five, if the page is wide enough.
    let class = if tiles.len().is_multiple_of(5) { "tiles five" } else { "tiles" };
    html! { section class=(class) aria-label="Key metrics" { @for tile in tiles { (tile.render()) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_and_gaps_stay() {
        let mut values = vec![1.0; 360];
        values[101] = 9.0;
        values[200..212].fill(f32::NAN);
        let thin = thinned(&values);
        assert_eq!((thin.len(), thin[25]), (90, 9.0));
        assert_eq!(thin.iter().filter(|value| value.is_nan()).count(), 3);
    }

    #[test]
    fn an_unknown_value_is_a_dash() {
        let text = Tile::new("Get p99", None, Unit::Microseconds, "no gets").render().into_string();
        assert!(text.contains(">–</div>"), "{text}");
    }
}
