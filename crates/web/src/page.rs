//! The status page: a title, facts in a line each, tables. One file, no scripts, light and dark.

use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Colours and measures of all pages; follows the reader's preference for light or dark.
const STYLE: &str = "
:root { color-scheme: light dark; --line: #d7dce2; --soft: #5b6673; --fill: #f4f6f8; --accent: #0b63a5; }
@media (prefers-color-scheme: dark) { :root { --line: #38424d; --soft: #9aa7b4; --fill: #1d242b; --accent: #6cb6f2; } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 1100px; padding: 1rem; }
header { border-bottom: 2px solid var(--accent); margin-bottom: 1rem; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.1rem; margin: 1.6rem 0 .4rem; }
header p { color: var(--soft); margin: .1rem 0 .6rem; }
nav a { color: var(--accent); margin-right: 1rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: left; vertical-align: top; }
th { background: var(--fill); font-weight: 600; white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.none { color: var(--soft); }
";

/// A status page as values.
pub struct StatusPage {
    /// Role and server name.
    pub title: String,
    /// One line below the title.
    pub subtitle: String,
    /// Links to the other pages: text and address.
    pub links: Vec<(String, String)>,
    /// What is shown, in order.
    pub sections: Vec<Section>,
}

/// A part of a page.
pub enum Section {
    /// Names and values.
    Facts {
        /// Heading.
        heading: String,
        /// Name and value.
        facts: Vec<(String, String)>,
    },
    /// A table.
    Table {
        /// Heading.
        heading: String,
        /// Column heads.
        columns: Vec<String>,
        /// Rows of as many cells as there are columns; cells that are numbers are set to the right, and the heads over
        /// them.
        rows: Vec<Vec<String>>,
    },
}

impl StatusPage {
    /// The page as HTML.
    pub fn render(&self) -> String {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (self.title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    header {
                        h1 { (self.title) }
                        p { (self.subtitle) }
                        nav { @for (text, address) in &self.links { a href=(address) { (text) } } }
                    }
                    @for section in &self.sections { (section.render()) }
                }
            }
        }
        .into_string()
    }
}

impl Section {
    fn render(&self) -> Markup {
        match self {
            Section::Facts { heading, facts } => html! {
                h2 { (heading) }
                dl { @for (name, value) in facts { dt { (name) } dd { (value) } } }
            },
            Section::Table { heading, columns, rows } => html! {
                h2 { (heading) }
                @if rows.is_empty() { p class="none" { "None." } } @else {
                    div class="scroll" { table {
                        tr { @for (at, column) in columns.iter().enumerate() { (table_head(column, at, rows)) } }
                        @for row in rows { tr { @for cell in row { (table_cell(cell)) } } }
                    } }
                }
            },
        }
    }
}

/// A head stands where its column's cells do.
fn table_head(text: &str, at: usize, rows: &[Vec<String>]) -> Markup {
    let of_numbers = rows.iter().filter_map(|row| row.get(at)).all(|cell| is_number(cell));
    html! { th class=[of_numbers.then_some("number")] { (text) } }
}

fn table_cell(text: &str) -> Markup {
    html! { td class=[is_number(text).then_some("number")] { (text) } }
}

fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_like_markup_are_escaped() {
        let page = StatusPage {
            title: "Region server".into(),
            subtitle: String::new(),
            links: vec![],
            sections: vec![Section::Table {
                heading: "Regions".into(),
                columns: vec!["Name".into()],
                rows: vec![vec!["<script>alert(1)</script>".into()]],
            }],
        };
        let text = page.render();
        assert!(!text.contains("<script>") && text.contains("&lt;script&gt;"));
    }
}
