//! Metrics over time, as line plots.
//!
//! Lines are SVG that is stretched to the available width. Labels are text of the page next to the
//! SVG, so that they keep their size on a phone. Tooltips show the values at the pointer's time.

use std::fmt::Write;
use std::time::Duration;

use base::history::Unit;
use maud::{Markup, PreEscaped, html};

use crate::section::headed;
use crate::units;

/// Height of a plot in units of its SVG. Each value is two units wide.
const HEIGHT: f64 = 200.0;
/// Number of time ranges with a tooltip.
const BANDS: usize = 60;
/// Maximum number of grid lines above the lowest one.
const TICKS_MAX: usize = 4;

/// Several plots of the same time range.
pub struct Plots {
    /// Heading.
    pub heading: String,
    /// A line below the heading.
    pub note: String,
    /// The time range.
    pub span: Span,
    /// The plots.
    pub plots: Vec<Plot>,
}

/// The times of a plot's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Interval between two values.
    pub period: Duration,
    /// Time of the last value, in milliseconds since the epoch.
    pub end_ms: u64,
}

/// The scale of the vertical axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear, from 0.
    Linear,
    /// Logarithmic.
    Logarithmic,
}

/// One plot.
pub struct Plot {
    /// The title.
    pub title: String,
    /// The unit of the values.
    pub unit: Unit,
    /// The scale of the vertical axis.
    pub scale: Scale,
    /// The lines.
    pub lines: Vec<Line>,
    /// Minimum value that the top of the axis represents.
    pub at_least: f64,
}

/// One line.
pub struct Line {
    /// The name of the line.
    pub label: String,
    /// The values, oldest first; NaN is a gap.
    pub values: Vec<f32>,
}

impl Line {
    /// A line with these values.
    pub fn new(label: &str, values: &[f32]) -> Line {
        Line { label: label.to_owned(), values: values.to_vec() }
    }

    fn known_values(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        self.values.iter().filter(|value| !value.is_nan()).map(|value| f64::from(*value))
    }

    fn last(&self) -> Option<f64> {
        self.values.last().filter(|value| !value.is_nan()).map(|value| f64::from(*value))
    }
}

impl Plots {
    pub(super) fn render(&self) -> Markup {
        let plots = html! { div class="plots" { @for plot in &self.plots { (plot.render(self.span)) } } };
        headed(&self.heading, Some(&self.note), &plots)
    }
}

impl Plot {
    /// A plot of these lines, with a linear scale.
    pub fn new(title: &str, unit: Unit, lines: Vec<Line>) -> Plot {
        Plot { title: title.to_owned(), unit, scale: Scale::Linear, lines, at_least: 0.0 }
    }

    fn len(&self) -> usize {
        self.lines.iter().map(|line| line.values.len()).max().unwrap_or(0)
    }

    fn render(&self, span: Span) -> Markup {
        let axis = Axis::new(self);
        html! {
            figure class="card plot" {
                figcaption {
                    h3 { (self.title) }
                    @if self.lines.len() > 1 || self.lines.iter().any(|line| !line.label.is_empty()) { (self.legend()) }
                }
                div class="area" {
                    div class="ylabels" aria-hidden="true" {
                        @for (at, tick) in axis.labels() {
                            span style={ "top:" (format!("{at:.1}")) "%" } { (units::format(tick, self.unit)) }
                        }
                    }
                    (PreEscaped(self.drawing(&axis, span)))
                    @if self.lines.iter().all(|line| line.known_values().next().is_none()) {
                        p class="empty" { "No data" }
                    }
                }
                div class="xlabels" aria-hidden="true" { @for label in span.labels(self.len()) { span { (label) } } }
            }
        }
    }

    fn legend(&self) -> Markup {
        html! {
            ul class="legend" {
                @for (at, line) in self.lines.iter().enumerate() {
                    li {
                        i class={ "swatch l" (at) } {}
                        (line.label) " "
                        b { (line.last().map_or(units::NO_VALUE.to_owned(), |last| units::format(last, self.unit))) }
                    }
                }
            }
        }
    }

    /// The SVG: grid, lines, tooltips.
    fn drawing(&self, axis: &Axis, span: Span) -> String {
        let width = self.len().saturating_sub(1) * 2;
        let mut svg = format!(
            "<svg viewBox=\"0 0 {width} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
            escaped(&self.summary())
        );
        let mut grid = String::new();
        for tick in &axis.ticks {
            let _ = write!(grid, "M0 {}h{width}", axis.height_of(*tick));
        }
        let _ = write!(svg, "<path class=\"grid\" d=\"{grid}\"/>");
        // Draw the first line last, so that it is on top: it is the most important one.
        for (at, line) in self.lines.iter().enumerate().rev() {
            let path = path(&line.values, |value| axis.height_of(value));
            let _ = write!(svg, "<path class=\"line l{at}\" d=\"{path}\"/>");
        }
        self.put_bands(&mut svg, span);
        svg.push_str("</svg>");
        svg
    }

    /// A description of each line, for screen readers.
    fn summary(&self) -> String {
        let mut summary = self.title.clone();
        for line in &self.lines {
            let most = line.known_values().reduce(f64::max);
            let shown = |value: Option<f64>| {
                value.map_or(units::NO_VALUE.to_owned(), |value| units::format(value, self.unit))
            };
            let _ = write!(summary, "; {} now {}, maximum {}", line.label, shown(line.last()), shown(most));
        }
        summary
    }

    /// Adds the tooltips: the maximum of each line in each sixtieth of the time range.
    fn put_bands(&self, svg: &mut String, span: Span) {
        let count = self.len();
        let wide = count.div_ceil(BANDS).max(1);
        svg.push_str("<g class=\"bands\">");
        for first in (0..count).step_by(wide) {
            let end = (first + wide).min(count);
            let mut title = units::time_of_day(span.time_of(first, count));
            title.push_str(" UTC");
            let mut is_empty = true;
            for line in &self.lines {
                let values = &line.values[first.min(line.values.len())..end.min(line.values.len())];
                let most = values.iter().copied().fold(f32::NAN, f32::max);
                if !most.is_nan() {
                    is_empty = false;
                    let _ = write!(title, "\n{} {}", line.label, units::format(f64::from(most), self.unit));
                }
            }
            if !is_empty {
                let (left, right) = ((2 * first).saturating_sub(1), 2 * end - 1);
                let _ = write!(
                    svg,
                    "<rect x=\"{left}\" width=\"{}\" height=\"{HEIGHT}\"><title>{}</title></rect>",
                    right - left,
                    escaped(&title)
                );
            }
        }
        svg.push_str("</g>");
    }
}

impl Span {
    /// The time of the value with index `index` among `count` values.
    fn time_of(self, index: usize, count: usize) -> u64 {
        self.end_ms.saturating_sub(self.period.as_millis() as u64 * (count - 1 - index) as u64)
    }

    /// Five labels below a plot of `count` values.
    fn labels(self, count: usize) -> [String; 5] {
        let all = self.period.as_secs_f64() * count as f64;
        let back = |share: f64| {
            let seconds = all * share;
            if all < 120.0 {
                format!("−{} s", tenths(seconds))
            } else {
                format!("−{} min", tenths(seconds / 60.0))
            }
        };
        [back(1.0), back(0.75), back(0.5), back(0.25), "now".to_owned()]
    }
}

/// Rounds to tenths below 10, and to integers otherwise.
fn tenths(value: f64) -> f64 {
    if value < 10.0 { (value * 10.0).round() / 10.0 } else { value.round() }
}

/// The vertical axis.
struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    // In ascending order.
    ticks: Vec<f64>,
}

impl Axis {
    fn new(plot: &Plot) -> Axis {
        let known = || plot.lines.iter().flat_map(Line::known_values);
        let most = known().fold(plot.at_least, f64::max);
        match (plot.scale, plot.unit) {
            (Scale::Logarithmic, _) => Axis::logarithmic(known().filter(|value| *value > 0.0)),
            (Scale::Linear, Unit::Percent) => Axis::linear(25.0, 100.0),
            (Scale::Linear, Unit::Bytes | Unit::BytesPerSecond) => {
                let step = (most.max(4096.0) / TICKS_MAX as f64).log2().ceil().exp2();
                Axis::linear(step, most)
            }
            (Scale::Linear, unit) => {
                let least = if unit == Unit::Cores { 0.4 } else { 4.0 };
                Axis::linear(even_step(most.max(least) / TICKS_MAX as f64), most)
            }
        }
    }

    /// An axis from 0 to the smallest multiple of `step` that is at least `most`.
    fn linear(step: f64, most: f64) -> Axis {
        let steps = (most / step).ceil().max(1.0);
        let ticks = (0..=steps as usize).map(|at| at as f64 * step).collect();
        Axis { scale: Scale::Linear, low: 0.0, high: steps * step, ticks }
    }

    /// An axis from one power of ten to another, at least two decades apart.
    fn logarithmic(values: impl Iterator<Item = f64> + Clone) -> Axis {
        let least = values.clone().reduce(f64::min).unwrap_or(100.0).log10().floor();
        let most = values.reduce(f64::max).unwrap_or(10_000.0).log10().ceil().max(least + 2.0);
        let spacing = ((most - least) / (TICKS_MAX + 1) as f64).ceil() as usize;
        let ticks = (least as i32..=most as i32).step_by(spacing).map(|power| 10f64.powi(power)).collect();
        Axis { scale: Scale::Logarithmic, low: least, high: most, ticks }
    }

    /// The vertical position of a value, counted from the top.
    fn height_of(&self, value: f64) -> i64 {
        let value = match self.scale {
            Scale::Linear => value,
            Scale::Logarithmic => value.max(f64::MIN_POSITIVE).log10(),
        };
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        (HEIGHT * (1.0 - share)).round() as i64
    }

    /// The positions of the labels, in percent from the top, and their values.
    fn labels(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.ticks.iter().map(|tick| (self.height_of(*tick) as f64 / HEIGHT * 100.0, *tick))
    }
}

/// The smallest of 1, 2 and 5 times a power of ten that is at least `step`.
fn even_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let times = [1.0, 2.0, 5.0].into_iter().find(|times| times * power >= step * (1.0 - 1e-9));
    times.unwrap_or(10.0) * power
}

/// The SVG path of a line: two units to the right for each value, interrupted by gaps.
fn path(values: &[f32], height_of: impl Fn(f64) -> i64) -> String {
    let mut path = String::with_capacity(values.len() * 6);
    // The height of the last value, and the length of a horizontal segment at it that is not
    // written yet.
    let (mut pen, mut level) = (None, 0);
    for (at, value) in values.iter().enumerate() {
        if value.is_nan() {
            draw_level(&mut path, &mut level);
            pen = None;
            continue;
        }
        let height = height_of(f64::from(*value));
        match pen {
            // A segment of length 0 is drawn as a dot if no other follows.
            None => drop(write!(path, "M{} {height}h0", at * 2)),
            Some(before) if before == height => level += 2,
            Some(before) => {
                draw_level(&mut path, &mut level);
                let _ = write!(path, "l2 {}", height - before);
            }
        }
        pen = Some(height);
    }
    draw_level(&mut path, &mut level);
    path
}

fn draw_level(path: &mut String, level: &mut usize) {
    if *level > 0 {
        let _ = write!(path, "h{level}");
        *level = 0;
    }
}

/// A small line without axes; empty if there are no values.
pub(super) fn spark(values: &[f32]) -> Markup {
    let most = values.iter().copied().filter(|value| !value.is_nan()).fold(f32::NAN, f32::max);
    if most.is_nan() {
        return html! {};
    }
    let most = f64::from(most).max(f64::MIN_POSITIVE);
    let path = path(values, |value| 38 - (36.0 * (value / most).clamp(0.0, 1.0)).round() as i64);
    let width = values.len().saturating_sub(1) * 2;
    html! {
        svg class="spark" viewBox={ "0 0 " (width) " 40" } preserveAspectRatio="none" aria-hidden="true" {
            path class="line l0" d=(path) {}
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span { period: Duration::from_secs(10), end_ms: 1_700_000_000_000 };

    fn plot(values: &[f32]) -> Plot {
        Plot::new("Reads", Unit::PerSecond, vec![Line::new("<reads>", values)])
    }

    #[test]
    fn a_line_is_interrupted_at_gaps() {
        let gap = f32::NAN;
        let path_of = |values: &[f32]| path(values, |value| value as i64);
        assert_eq!(path_of(&[5.0, 7.0, 7.0, 7.0, 4.0]), "M0 5h0l2 2h4l2 -3");
        assert_eq!(path_of(&[gap, 5.0, gap, 6.0, 6.0, gap]), "M2 5h0M6 6h0h2");
        assert_eq!(path_of(&[gap, gap]), "");
    }

    #[test]
    fn axes_end_with_round_figures() {
        let ticks = |unit, most: f32| {
            let line = Line::new("", &[most]);
            Axis::new(&Plot::new("", unit, vec![line])).ticks
        };
        assert_eq!(ticks(Unit::PerSecond, 87.0), [0.0, 50.0, 100.0]);
        assert_eq!(ticks(Unit::PerSecond, 80.0), [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert_eq!(ticks(Unit::Count, 0.0), [0.0, 1.0]);
        assert_eq!(ticks(Unit::Percent, 3.0), [0.0, 25.0, 50.0, 75.0, 100.0]);
        assert_eq!(ticks(Unit::Bytes, 3_000_000.0), [0.0, 1_048_576.0, 2_097_152.0, 3_145_728.0]);
        assert!(ticks(Unit::Cores, 0.01).len() > 1);
    }

    #[test]
    fn powers_of_ten_hold_all_values() {
        let line = Line::new("", &[340.0, 95_000.0, f32::NAN, 0.0]);
        let plot = Plot { scale: Scale::Logarithmic, ..Plot::new("", Unit::Microseconds, vec![line]) };
        let axis = Axis::new(&plot);
        assert_eq!(axis.ticks, [100.0, 1000.0, 10_000.0, 100_000.0]);
        assert_eq!((axis.height_of(100.0), axis.height_of(100_000.0), axis.height_of(0.0)), (200, 0, 200));
        let none = Plot { scale: Scale::Logarithmic, ..Plot::new("", Unit::Microseconds, vec![]) };
        assert_eq!(Axis::new(&none).ticks, [100.0, 1000.0, 10_000.0]);
    }

    #[test]
    fn tooltips_have_times_and_values() {
        let mut values = vec![f32::NAN; 360];
        (values[358], values[359]) = (1500.0, 20.0);
        let text = plot(&values).render(SPAN).into_string();
        assert_eq!(text.matches("<title>").count(), 1, "gaps have no tooltip");
        assert!(text.contains("<title>22:12:30 UTC\n&lt;reads&gt; 1.5 k/s</title>"), "{text}");
        assert!(text.contains("<b>20 /s</b>") && text.contains("−60 min") && text.contains("now"), "{text}");
        assert!(!text.contains("No data") && !text.contains("<reads>"));
    }

    #[test]
    fn times_below_a_plot_are_exact() {
        let labels =
            |period_ms, count| Span { period: Duration::from_millis(period_ms), end_ms: 0 }.labels(count);
        assert_eq!(labels(10_000, 360), ["−60 min", "−45 min", "−30 min", "−15 min", "now"]);
        assert_eq!(labels(1000, 360), ["−6 min", "−4.5 min", "−3 min", "−1.5 min", "now"]);
        assert_eq!(labels(100, 360), ["−36 s", "−27 s", "−18 s", "−9 s", "now"]);
    }

    #[test]
    fn a_plot_without_values_states_that() {
        assert!(plot(&[f32::NAN; 360]).render(SPAN).into_string().contains("No data"));
        assert!(plot(&[]).render(SPAN).into_string().contains("No data"));
        assert_eq!(spark(&[f32::NAN; 9]).into_string(), "");
    }
}
