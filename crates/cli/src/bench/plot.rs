//! Plots of runs, two per workload: throughput by number of clients, and latency by percentile.

use plotters::prelude::*;
use plotters::style::full_palette::{BLUE_700, GREEN_700, GREY_700, ORANGE_800, PURPLE_600, RED_700};

use super::report::{Measurement, grouped};

/// Width of the picture, and height of each workload's panels, in pixels.
const WIDTH: u32 = 1000;
const PANEL_HEIGHT: u32 = 340;
const TITLE_HEIGHT: u32 = 40;
const MARGIN: u32 = 16;
const LABELS: u32 = 72;
/// Latency lines end at the percentile that one call in 10 to this power exceeds.
const NINES_MAX: f64 = 5.0;
/// Points of a line between two powers of ten.
const STEPS_OF_NINE: f64 = 16.0;
/// Colours that most people can distinguish on white.
const LINES: [RGBColor; 6] = [BLUE_700, ORANGE_800, GREEN_700, PURPLE_600, RED_700, GREY_700];

/// Draws the runs as one SVG picture.
///
/// # Errors
/// A message for the user, if the drawing fails.
pub(super) fn svg(title: &str, measurements: &[Measurement]) -> Result<String, String> {
    let mut picture = String::new();
    let workloads = series(measurements);
    {
        let height = TITLE_HEIGHT + PANEL_HEIGHT * workloads.len() as u32;
        let root = SVGBackend::with_string(&mut picture, (WIDTH, height)).into_drawing_area();
        let drawn = draw(&root, title, &workloads).and_then(|()| Ok(root.present()?));
        drawn.map_err(|error| format!("cannot draw the plot: {error}"))?;
    }
    Ok(picture)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn<'a> = Result<(), Box<dyn std::error::Error + 'a>>;

fn draw<'a>(root: &Area<'a>, title: &str, workloads: &[(String, Vec<&Measurement>)]) -> Drawn<'a> {
    root.fill(&WHITE)?;
    let panels = root.titled(title, ("sans-serif", 20))?.split_evenly((workloads.len(), 1));
    for (panel, (name, runs)) in panels.iter().zip(workloads) {
        let (left, right) = panel.split_horizontally(50.percent_width());
        throughput(&left, name, runs)?;
        latency(&right, name, runs)?;
    }
    Ok(())
}

/// Plots rows per second against the number of clients.
fn throughput<'a>(area: &Area<'a>, name: &str, runs: &[&Measurement]) -> Drawn<'a> {
    let clients_max = runs.iter().map(|one| one.load.clients).max().unwrap_or(1) as f64;
    let most = runs.iter().map(|one| one.rows_per_second()).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{name}: throughput"), ("sans-serif", 14))
        .margin(MARGIN)
        .x_label_area_size(LABELS / 2)
        .y_label_area_size(LABELS)
        .build_cartesian_2d(0.0..clients_max * 1.05, 0.0..most * 1.1)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("clients")
        .y_desc("rows per second")
        .x_label_formatter(&|clients| format!("{clients:.0}"))
        .y_label_formatter(&|rows| grouped(*rows))
        .draw()?;
    let points = runs.iter().map(|one| (one.load.clients as f64, one.rows_per_second()));
    chart.draw_series(LineSeries::new(points, BLUE_700.stroke_width(2)).point_size(3))?;
    Ok(())
}

/// Plots latency against the percentile of calls, with one line per number of clients.
fn latency<'a>(area: &Area<'a>, name: &str, runs: &[&Measurement]) -> Drawn<'a> {
    let tallies = runs.iter().map(|one| &one.outcome.tally);
    let least = tallies.clone().map(|tally| tally.latency_us(0.0)).fold(f64::MAX, f64::min).max(0.1);
    let most = tallies.map(super::tally::Tally::latency_max_us).fold(least * 2.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{name}: latency"), ("sans-serif", 14))
        .margin(MARGIN)
        .x_label_area_size(LABELS / 2)
        .y_label_area_size(LABELS)
        .build_cartesian_2d(0.0..NINES_MAX, decades(least, most).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(6)
        .y_labels(4)
        .x_desc("percentile of calls")
        .y_desc("microseconds")
        .x_label_formatter(&|nines| percentile(*nines))
        .y_label_formatter(&|us| grouped(*us))
        .draw()?;
    for (at, run) in runs.iter().enumerate() {
        let colour = LINES[at % LINES.len()];
        let tally = &run.outcome.tally;
        let steps = (0..=(NINES_MAX * STEPS_OF_NINE) as u32).map(|step| f64::from(step) / STEPS_OF_NINE);
        let points = steps.map(|nines| (nines, tally.latency_us(1.0 - 10_f64.powf(-nines)).max(least)));
        chart
            .draw_series(LineSeries::new(points, colour.stroke_width(2)))?
            .label(clients(run.load.clients))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}

/// The range between two powers of ten that contains both values.
fn decades(least: f64, most: f64) -> std::ops::Range<f64> {
    10_f64.powf(least.log10().floor())..10_f64.powf(most.log10().ceil())
}

fn clients(count: u64) -> String {
    if count == 1 { "1 client".into() } else { format!("{count} clients") }
}

/// The percentile with this many nines: 0 for none, 90 for 1, 99.9 for 3.
fn percentile(nines: f64) -> String {
    match nines.round() as u32 {
        0 => "0".into(),
        1 => "90".into(),
        2 => "99".into(),
        nines => format!("99.{}", "9".repeat(nines as usize - 2)),
    }
}

/// Groups the runs by workload, ordered by number of clients.
fn series(measurements: &[Measurement]) -> Vec<(String, Vec<&Measurement>)> {
    let mut series: Vec<(String, Vec<&Measurement>)> = Vec::new();
    for one in measurements {
        let name = one.plan.workload.to_string();
        match series.iter_mut().find(|(known, _)| *known == name) {
            Some((_, runs)) => runs.push(one),
            None => series.push((name, vec![one])),
        }
    }
    series.iter_mut().for_each(|(_, runs)| runs.sort_by_key(|one| one.load.clients));
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_goes_from_one_power_of_ten_to_another() {
        assert_eq!(decades(35.0, 1_200.0), 10.0..10_000.0);
        assert_eq!(decades(10.0, 100.0), 10.0..100.0);
    }

    #[test]
    fn nines_are_percentiles() {
        let cases = [(0.0, "0"), (1.0, "90"), (2.0, "99"), (3.0, "99.9"), (5.0, "99.999")];
        for (nines, wanted) in cases {
            assert_eq!(percentile(nines), wanted);
        }
    }
}
