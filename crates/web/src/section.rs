//! The parts of a page, one kind a file: what each says as values, and how that looks.

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
// There are ten of them on a page.
#[allow(clippy::large_enum_variant)]
pub enum Section {
    /// What somebody should look at; that there is nothing, if there is nothing.
    Findings(Vec<Finding>),
    /// The figures to look at first.
    Tiles(Vec<Tile>),
    /// Figures over time.
    Plots(Plots),
    /// How something is divided.
    Shares(Shares),
    /// Names and values.
    Facts(Facts),
    /// A table.
    Table(Table),
    /// Requests that took long, and where their time went.
    SlowRequests(SlowRequests),
    /// How much went on where, and when.
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

/// A heading that can be linked to, and what is below it.
fn headed(heading: &str, note: Option<&str>, content: &Markup) -> Markup {
    html! {
        section id=(anchor(heading)) {
            h2 { (heading) }
            @if let Some(note) = note { p class="note" { (note) } }
            (content)
        }
    }
}

/// A heading as it stands in addresses: `Memory division` is `memory-division`.
fn anchor(heading: &str) -> String {
    let letter =
        |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    heading.chars().map(letter).collect()
}
