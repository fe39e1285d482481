//! The figures to look at first: large, with their last hour behind them.

use base::history::Unit;
use maud::{Markup, html};

use crate::section::plot;
use crate::units;
use crate::value::Level;

/// Points of the small line in a tile.
const SPARK_POINTS: usize = 90;

/// A figure.
pub struct Tile {
    /// What it is.
    pub label: String,
    /// How much; nothing if there is nothing to tell.
    pub value: Option<f64>,
    /// Of what.
    pub unit: Unit,
    /// A few words below it.
    pub note: String,
    /// How that is to be judged.
    pub level: Level,
    /// Its last hour, a gap as no number.
    pub past: Vec<f32>,
}

impl Tile {
    /// A figure without a past or a judgement.
    pub fn new(label: &str, value: Option<f64>, unit: Unit, note: impl Into<String>) -> Tile {
        let (label, note) = (label.to_owned(), note.into());
        Tile { label, value, unit, note, level: Level::Good, past: Vec::new() }
    }

    /// The same with its last hour.
    pub fn over(self, past: &[f32]) -> Tile {
        Tile { past: past.to_vec(), ..self }
    }

    /// The same with a judgement.
    pub fn at(self, level: Level) -> Tile {
        Tile { level, ..self }
    }

    fn render(&self) -> Markup {
        let (number, unit) = match self.value {
            Some(value) => units::parts(value, self.unit),
            None => (units::NOTHING.to_owned(), String::new()),
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

/// Fewer values, the greatest of each few: peaks are what is looked for.
fn thinned(values: &[f32]) -> Vec<f32> {
    let width = values.len().div_ceil(SPARK_POINTS).max(1);
    values.chunks(width).map(|chunk| chunk.iter().copied().fold(f32::NAN, f32::max)).collect()
}

pub(super) fn render(tiles: &[Tile]) -> Markup {
    // Rows that are full, where there is room for them.
    let class = if tiles.len().is_multiple_of(5) { "tiles five" } else { "tiles" };
    html! { section class=(class) aria-label="Key figures" { @for tile in tiles { (tile.render()) } } }
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
    fn a_figure_that_is_not_known_is_a_dash() {
        let text = Tile::new("Get p99", None, Unit::Microseconds, "no gets").render().into_string();
        assert!(text.contains(">–</div>"), "{text}");
    }
}
