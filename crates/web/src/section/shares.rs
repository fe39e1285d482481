//! The parts of a total: a bar of all parts, and a table row for each.

use base::history::Unit;
use maud::{Markup, html};

use crate::meter::meter;
use crate::section::headed;
use crate::units;

/// A number of bytes, divided among its users.
pub struct Shares {
    /// Heading.
    pub heading: String,
    /// A line below the heading.
    pub note: String,
    /// The total.
    pub total_bytes: u64,
    /// The parts.
    pub parts: Vec<Share>,
}

/// A part of the total.
pub struct Share {
    /// The name of the part.
    pub label: String,
    /// The bytes in use.
    pub used_bytes: u64,
    /// The limit of this part, if it has one.
    pub limit_bytes: Option<u64>,
}

impl Shares {
    pub(super) fn render(&self) -> Markup {
        let used: u64 = self.parts.iter().map(|part| part.used_bytes).sum();
        // If the parts exceed the total, the bar is as long as all parts together.
        let whole = self.total_bytes.max(used).max(1);
        let content = html! {
            div class="card shares" {
                div class="bar" role="img" aria-label={ (bytes(used)) " of " (bytes(self.total_bytes)) " used" } {
                    @for (at, part) in self.parts.iter().enumerate() {
                        @if part.used_bytes > 0 {
                            i class={ "l" (at) } style={ "width:" (percent(part.used_bytes, whole)) "%" }
                                title={ (part.label) ": " (units::exact(part.used_bytes)) " bytes" } {}
                        }
                    }
                }
                table {
                    thead { tr { th { "Part" } th class="n" { "Used" } th class="n" { "Limit" } th { "Usage" } } }
                    tbody {
                        @for (at, part) in self.parts.iter().enumerate() { (part.render(at)) }
                        tr class="sum" {
                            th { "Total" }
                            td class="n" { (exactly(used)) }
                            td class="n" { (exactly(self.total_bytes)) }
                            td { (meter(used, self.total_bytes)) }
                        }
                    }
                }
            }
        };
        headed(&self.heading, Some(&self.note), &content)
    }
}

impl Share {
    fn render(&self, at: usize) -> Markup {
        html! {
            tr {
                th { i class={ "swatch l" (at) } {} (self.label) }
                td class="n" { (exactly(self.used_bytes)) }
                td class="n" { @match self.limit_bytes { Some(limit) => (exactly(limit)), None => (units::NO_VALUE) } }
                td { @if let Some(limit) = self.limit_bytes { (meter(self.used_bytes, limit)) } }
            }
        }
    }
}

fn bytes(bytes: u64) -> String {
    units::format(bytes as f64, Unit::Bytes)
}

fn exactly(amount: u64) -> Markup {
    html! { span title={ (units::exact(amount)) " bytes" } { (bytes(amount)) } }
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.1}", part as f64 * 100.0 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(used: [u64; 2], total_bytes: u64) -> String {
        let part =
            |label: &str, used_bytes, limit_bytes| Share { label: label.into(), used_bytes, limit_bytes };
        let parts = vec![part("Memstores", used[0], Some(400)), part("Other", used[1], None)];
        let shares = Shares { heading: "Memory".into(), note: String::new(), total_bytes, parts };
        shares.render().into_string()
    }

    #[test]
    fn segments_are_proportional_to_their_shares() {
        let text = shares([200, 300], 1000);
        assert!(text.contains("style=\"width:20.0%\"") && text.contains("style=\"width:30.0%\""), "{text}");
        assert!(
            text.contains("50 %") && text.contains("500 B of 1000 B used")
                || text.contains("500 B of 0.98 KiB used"),
            "{text}"
        );
    }

    #[test]
    fn too_much_is_seen() {
        let text = shares([500, 1500], 1000);
        assert!(
            text.contains("width:25.0%") && text.contains("meter bad") && text.contains("200 %"),
            "{text}"
        );
        assert!(shares([0, 0], 0).contains("0 %"), "no usage is valid");
    }
}
