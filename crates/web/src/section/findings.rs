//! Problems that need attention.

use maud::{Markup, html};

use crate::value::Level;

/// A problem, described in a sentence that states its consequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The severity.
    pub level: Level,
    /// The sentence.
    pub text: String,
}

impl Finding {
    /// A problem that needs attention soon.
    pub fn warning(text: impl Into<String>) -> Finding {
        Finding { level: Level::Warning, text: text.into() }
    }

    /// A problem that needs attention now.
    pub fn bad(text: impl Into<String>) -> Finding {
        Finding { level: Level::Bad, text: text.into() }
    }
}

/// Renders the findings, the most severe first.
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
                    span { (finding.text) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_finding_comes_first_and_an_empty_list_is_stated() {
        let text = render(&[Finding::warning("slow <disk>"), Finding::bad("writers wait")]).into_string();
        assert!(text.find("writers wait").unwrap() < text.find("slow &lt;disk&gt;").unwrap());
        assert!(render(&[]).into_string().contains("Healthy"));
    }
}
