//! The used share of a limit, as a bar.

use maud::{Markup, html};

/// The used share of a limit, as a bar and a percentage.
pub(crate) fn meter(used: u64, limit: u64) -> Markup {
    let share = if limit == 0 { 0.0 } else { used as f64 * 100.0 / limit as f64 };
    let class = if share > 100.0 {
        "meter bad"
    } else if share > 90.0 {
        "meter warning"
    } else {
        "meter"
    };
    html! {
        div class=(class) { i style={ "width:" (format!("{:.1}", share.min(100.0))) "%" } {} }
        span class="share" { (format!("{share:.0} %")) }
    }
}
