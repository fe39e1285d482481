//! Plots and tiles of the last hour.

use base::history::{Unit, Window};
use web::section::{Line, Plot, Scale, Span, Tile};

/// A plot of series; each line has a label and the name of its series.
pub(super) fn plot(window: &Window, title: &str, unit: Unit, lines: &[(&str, &str)]) -> Plot {
    let lines = lines.iter().map(|(label, name)| Line::new(label, window.of(name)));
    Plot::new(title, unit, lines.collect())
}

/// A plot of a latency's p50, p99 and p99.9, without those that are not declared.
pub(super) fn times(window: &Window, title: &str, of: &str) -> Plot {
    let series = [("p50", "p50"), ("p99", "p99"), ("p99.9", "p999")];
    let lines = series.iter().filter_map(|(label, end)| {
        let values = window.of(&format!("{of}_{end}"));
        (!values.is_empty()).then(|| Line::new(label, values))
    });
    Plot { scale: Scale::Logarithmic, ..Plot::new(title, Unit::Microseconds, lines.collect()) }
}

/// The time range that plots of `window` show.
pub(super) fn span(window: &Window) -> Span {
    Span { period: window.period, end_ms: window.end_ms }
}

/// A tile with the last value of a series and its history.
pub(super) fn tile(window: &Window, label: &str, name: &str, unit: Unit, caption: impl Into<String>) -> Tile {
    Tile::new(label, window.last(name), unit, caption).with_history(window.of(name))
}

/// The note below the heading of the plots.
pub(super) fn note(window: &Window) -> String {
    let period = window.period.as_secs_f64();
    format!(
        "One sample every {period} s, kept in this process; times are UTC. Gaps are times without samples."
    )
}
