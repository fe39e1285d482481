//! The parts of a page, one kind per file: the values, and their rendering.

mod facts;
mod findings;
mod heat_map;
mod plot;
mod shares;
mod slow;
mod table;
mod tiles;

use maud::{Markup, html};

pub use facts::Facts;
pub use findings::Finding;
pub use heat_map::{HeatMap, HeatRow};
pub use plot::{Line, Plot, Plots, Scale, Span};
pub use shares::{Share, Shares};
pub use slow::{SlowRequest, SlowRequests};
pub use table::{Column, Filter, Pager, Row, Table};
pub use tiles::Tile;

/// A part of a page.
// A page has about ten of them.
#[allow(clippy::large_enum_variant)]
pub enum Section {
    /// Problems that need attention, or a statement that there are none.
    Findings(Vec<Finding>),
    /// The most important metrics.
    Tiles(Vec<Tile>),
    /// Metrics over time.
    Plots(Plots),
    /// The parts of a total.
    Shares(Shares),
    /// Names and values.
    Facts(Facts),
    /// A table.
    Table(Table),
    /// Slow requests with their latency breakdown.
    SlowRequests(SlowRequests),
    /// Load by place and time.
    HeatMap(HeatMap),
}

impl Section {
    pub(crate) fn render(&self) -> Markup {
        match self {
            Section::Findings(findings) => findings::render(findings),
            Section::Tiles(tiles) => tiles::render(tiles),
            Section::Plots(plots) => plots.render(),
            Section::Shares(shares) => shares.render(),
            Section::Facts(facts) => facts.render(),
            Section::Table(table) => table.render(),
            Section::SlowRequests(requests) => requests.render(),
            Section::HeatMap(map) => map.render(),
        }
    }
}

/// A section with a heading that has an anchor for links.
fn headed(heading: &str, note: Option<&str>, content: &Markup) -> Markup {
    html! {
        section id=(anchor(heading)) {
            h2 { (heading) }
            @if let Some(note) = note { p class="note" { (note) } }
            (content)
        }
    }
}

/// The anchor of a heading: `Memory division` becomes `memory-division`.
fn anchor(heading: &str) -> String {
    let letter =
        |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    heading.chars().map(letter).collect()
}
