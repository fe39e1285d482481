//! Slow requests: a row for each, with its latency breakdown as a bar.

use std::time::Duration;

use base::history::Unit;
use maud::{Markup, html};

use crate::section::headed;
use crate::{Value, units};

/// Slow requests, in the order to show.
pub struct SlowRequests {
    /// Heading.
    pub heading: String,
    /// A line below the heading.
    pub note: String,
    /// Names of the phases of a request, in order.
    pub phases: Vec<String>,
    /// The requests.
    pub requests: Vec<SlowRequest>,
}

/// A request.
pub struct SlowRequest {
    /// The end of the request, in milliseconds since the epoch.
    pub ended_ms: u64,
    /// The kind of request, such as `Get`.
    pub kind: String,
    /// The subject: region, key and client, if known.
    pub subject: Value,
    /// The total duration.
    pub took: Duration,
    /// The duration of each phase. The time not in any phase is left blank in the bar.
    pub phases: Vec<Duration>,
}

impl SlowRequests {
    pub(super) fn render(&self) -> Markup {
        let longest = self.requests.iter().map(|request| request.took).max().unwrap_or_default();
        let content = html! {
            @if self.requests.is_empty() { p class="card none" { "None." } } @else {
                ul class="legend" {
                    @for (at, phase) in self.phases.iter().enumerate() { li { i class={ "swatch l" (at) } {} (phase) } }
                }
                div class="card scroll" tabindex="0" role="region" aria-label=(self.heading) {
                    table class="slow" {
                        thead { tr { th { "Ended" } th { "Request" } th class="n" { "Took" } th { "Phases" } th { "Where" } } }
                        tbody { @for request in &self.requests { (self.row(request, longest)) } }
                    }
                }
            }
        };
        headed(&self.heading, Some(&self.note), &content)
    }

    fn row(&self, request: &SlowRequest, longest: Duration) -> Markup {
        html! {
            tr {
                td title=(units::moment(request.ended_ms)) { (units::time_of_day(request.ended_ms)) }
                td { (request.kind) }
                td class="n" { (format_time(request.took)) }
                td { (self.bar(request, longest)) }
                td { (request.subject.render()) }
            }
        }
    }

    /// The bar of a request. Its length is relative to the slowest request.
    fn bar(&self, request: &SlowRequest, longest: Duration) -> Markup {
        let percent = |time: Duration, of: Duration| {
            let share = if of.is_zero() { 0.0 } else { time.as_secs_f64() / of.as_secs_f64() };
            format!("{:.1}", share.min(1.0) * 100.0)
        };
        let descriptions: Vec<String> =
            self.phase_times(request).map(|(name, time)| format!("{name} {}", format_time(time))).collect();
        html! {
            div class="bar" role="img" aria-label=(descriptions.join(", ")) style={ "width:" (percent(request.took, longest)) "%" } {
                @for (at, (name, time)) in self.phase_times(request).enumerate() {
                    @if !time.is_zero() {
                        i class={ "l" (at) } style={ "width:" (percent(time, request.took)) "%" }
                            title={ (name) ": " (format_time(time)) } {}
                    }
                }
            }
        }
    }

    fn phase_times<'a>(&'a self, request: &'a SlowRequest) -> impl Iterator<Item = (&'a str, Duration)> {
        self.phases.iter().map(String::as_str).zip(request.phases.iter().copied())
    }
}

fn format_time(time: Duration) -> String {
    units::format(time.as_micros() as f64, Unit::Microseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(requests: Vec<SlowRequest>) -> String {
        let phases = vec!["Queue".to_owned(), "<Disk>".to_owned()];
        SlowRequests { heading: "Slow requests".into(), note: String::new(), phases, requests }
            .render()
            .into_string()
    }

    fn request(took_ms: u64, phases_ms: [u64; 2]) -> SlowRequest {
        SlowRequest {
            ended_ms: 1_700_000_000_000,
            kind: "Get".into(),
            subject: Value::key(b"row<1>"),
            took: Duration::from_millis(took_ms),
            phases: phases_ms.map(Duration::from_millis).to_vec(),
        }
    }

    #[test]
    fn bars_show_the_duration_and_its_phases() {
        let text = section(vec![request(2000, [500, 1500]), request(1000, [0, 250])]);
        assert!(
            text.contains("aria-label=\"Queue 500 ms, &lt;Disk&gt; 1.5 s\" style=\"width:100.0%\""),
            "{text}"
        );
        assert!(text.contains("class=\"l0\" style=\"width:25.0%\" title=\"Queue: 500 ms\""), "{text}");
        assert!(text.contains("style=\"width:50.0%\""), "half as long as the slowest request: {text}");
        assert!(
            text.contains("class=\"l1\" style=\"width:25.0%\""),
            "time outside of the phases is blank: {text}"
        );
        assert!(text.contains("row&lt;1&gt;") && !text.contains("<Disk>"));
    }

    #[test]
    fn empty_lists_and_zero_times_are_drawn() {
        assert!(section(vec![]).contains("None."));
        assert!(section(vec![request(0, [0, 0])]).contains("0 µs"));
    }
}
