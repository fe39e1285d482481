//! What somebody should look at.

use maud::{Markup, html};

use crate::value::Level;

/// Something that is not as it should be, in a sentence that says what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How soon somebody should look.
    pub level: Level,
    /// The sentence.
    pub what: String,
}

impl Finding {
    /// For the day.
    pub fn warning(what: impl Into<String>) -> Finding {
        Finding { level: Level::Warning, what: what.into() }
    }

    /// For now.
    pub fn bad(what: impl Into<String>) -> Finding {
        Finding { level: Level::Bad, what: what.into() }
    }
}

/// The worst first.
pub(super) fn render(findings: &[Finding]) -> Markup {
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    html! {
        section class="findings" aria-label="Health" {
            @if sorted.is_empty() {
                p class="finding good" { strong { "Healthy" } span { "Nothing needs attention." } }
            }
            @for finding in sorted {
                p class={ "finding " (finding.level.class()) } {
                    strong { (if finding.level == Level::Bad { "Now" } else { "Soon" }) }
                    span { (finding.what) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_comes_first_and_nothing_is_said_too() {
        let text = render(&[Finding::warning("slow <disk>"), Finding::bad("writers wait")]).into_string();
        assert!(text.find("writers wait").unwrap() < text.find("slow &lt;disk&gt;").unwrap());
        assert!(render(&[]).into_string().contains("Healthy"));
    }
}
