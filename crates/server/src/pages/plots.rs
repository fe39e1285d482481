//! Plots and tiles out of the last hour.

use base::history::{Unit, Window};
use web::section::{Line, Plot, Scale, Span, Tile};

/// A plot of series, each with what it is called in it.
pub(super) fn plot(window: &Window, title: &str, unit: Unit, lines: &[(&str, &str)]) -> Plot {
    let lines = lines.iter().map(|(label, name)| Line::new(label, window.of(name)));
    Plot::new(title, unit, lines.collect())
}

/// A plot of the times of something: half, 99 and 999, as far as they are declared.
pub(super) fn times(window: &Window, title: &str, of: &str) -> Plot {
    let series = [("p50", "p50"), ("p99", "p99"), ("p99.9", "p999")];
    let lines = series.iter().filter_map(|(label, end)| {
        let values = window.of(&format!("{of}_{end}"));
        (!values.is_empty()).then(|| Line::new(label, values))
    });
    Plot { scale: Scale::Logarithmic, ..Plot::new(title, Unit::Microseconds, lines.collect()) }
}

/// The time that plots of `window` show.
pub(super) fn span(window: &Window) -> Span {
    Span { period: window.period, end_ms: window.end_ms }
}

/// The last value of a series, with its past.
pub(super) fn tile(window: &Window, label: &str, name: &str, unit: Unit, note: impl Into<String>) -> Tile {
    Tile::new(label, window.last(name), unit, note).over(window.of(name))
}

/// The line below the heading of plots.
pub(super) fn note(window: &Window) -> String {
    let period = window.period.as_secs_f64();
    format!("A sample every {period} s, kept in this process; times are UTC. A gap is time without a sample.")
}
