//! A page: its head, the way to the others, sections. One file, no scripts, light and dark.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::query::Query;
use crate::refusal::Refusal;
use crate::section::Section;

/// Colours and measures of all pages; follows the reader's preference for light or dark.
const STYLE: &str = include_str!("style.css");
/// A drawing in the tab, where browsers look for one.
pub(crate) const ICON_SVG: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 32 32\"><rect width=\"32\" \
    height=\"32\" rx=\"7\" fill=\"#0f5f8c\"/><path d=\"M6 19c3-8 12-11 20-8-3 1-4 3-4 5 0 4-4 7-9 7-3 0-6-1-7-4z\" \
    fill=\"white\"/></svg>";
/// Seconds between two loads of a page that is loaded again by itself, where nobody says otherwise.
const REFRESH_S: usize = 10;
/// No longer than this.
const REFRESH_S_MAX: usize = 3600;

/// What all pages of a role have in common.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The role, as `Region server`.
    pub role: String,
    /// Whose pages these are: host and port.
    pub server: String,
    /// The way to other pages: text and address.
    pub links: Vec<(String, String)>,
}

/// A page as values.
pub struct Page {
    /// What it is about.
    pub title: String,
    /// One line below the title.
    pub subtitle: String,
    /// The way up: text and address.
    pub up: Option<(String, String)>,
    /// What is shown, in order.
    pub sections: Vec<Section>,
}

/// Where a page was asked for.
pub(crate) struct Asked<'a> {
    pub(crate) path: &'a str,
    pub(crate) query: &'a Query,
}

impl Page {
    /// The page as HTML.
    ///
    /// # Errors
    /// A refusal if it cannot be loaded again as often as the query says.
    pub(crate) fn render(&self, frame: &Frame, asked: &Asked<'_>) -> Result<String, Refusal> {
        let refresh = asked.query.number("refresh")?;
        if refresh.is_some_and(|seconds| seconds > REFRESH_S_MAX) {
            return Err(Refusal::bad(format!("“refresh” is a number of seconds, {REFRESH_S_MAX} at most.")));
        }
        let body = html! {
            header class="title" {
                div {
                    @if let Some((text, address)) = &self.up { p class="up" { a href=(address) { "‹ " (text) } } }
                    h1 { (self.title) }
                    p { (self.subtitle) }
                }
                (refreshing(refresh, asked))
            }
            @for section in &self.sections { (section.render()) }
        };
        Ok(whole(frame, asked.path, &self.title, refresh, &body))
    }
}

impl Refusal {
    /// Why there is no page, as a page.
    pub(crate) fn render(&self, frame: &Frame, path: &str) -> String {
        let body = html! {
            header class="title" { div { h1 { (self.heading()) } p { (self.what) } } }
            p { a href="/" { "To the status page" } }
        };
        whole(frame, path, self.heading(), None, &body)
    }
}

/// The link that has the page loaded again by itself, or no more.
fn refreshing(refresh: Option<usize>, asked: &Asked<'_>) -> Markup {
    let address =
        |seconds: Option<String>| asked.query.with("refresh", seconds.as_deref()).behind(asked.path);
    html! {
        p class="refresh" {
            @match refresh {
                Some(seconds) => {
                    span { "Loaded again every " (seconds) " s" } " "
                    a class="button" href=(address(None)) { "Stop" }
                }
                None => a class="button" href=(address(Some(REFRESH_S.to_string()))) { "Refresh every " (REFRESH_S) " s" },
            }
        }
    }
}

fn whole(frame: &Frame, path: &str, title: &str, refresh: Option<usize>, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                @if let Some(seconds) = refresh { meta http-equiv="refresh" content=(seconds); }
                title { (title) " · " (frame.role) " · " (frame.server) }
                link rel="icon" type="image/svg+xml" href="/favicon.ico";
                style { (PreEscaped(STYLE)) }
            }
            body {
                div class="top" {
                    nav aria-label="Pages" {
                        a class="brand" href="/" { "Grampus" }
                        span class="role" { (frame.role) }
                        @for (text, address) in &frame.links {
                            a href=(address) aria-current=[(address == path).then_some("page")] { (text) }
                        }
                    }
                }
                main { (body) }
                footer { p { "Grampus " (env!("CARGO_PKG_VERSION")) " · " (frame.server) } }
            }
        }
    }
    .into_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;
    use crate::section::Facts;

    fn rendered(query: &str) -> Result<String, Refusal> {
        let frame = Frame {
            role: "Region server".into(),
            server: "host<1>:16030".into(),
            links: vec![("Status".into(), "/rs-status".into())],
        };
        let page = Page {
            title: "<script>alert(1)</script>".into(),
            subtitle: "<script>".into(),
            up: Some(("<script>".into(), "/?\"><script>".into())),
            sections: vec![Section::Facts(Facts::new("<script>").and("<script>", Value::text("<script>")))],
        };
        let query = Query::parse(query)?;
        page.render(&frame, &Asked { path: "/rs-status", query: &query })
    }

    #[test]
    fn names_that_look_like_markup_are_escaped() {
        let text = rendered("table=%22%3E%3Cscript%3E").unwrap();
        assert!(!text.contains("<script>") && text.contains("&lt;script&gt;"));
        assert!(text.contains("host&lt;1&gt;"));
    }

    #[test]
    fn a_page_is_loaded_again_only_if_somebody_wants_it() {
        let text = rendered("sort=reads").unwrap();
        assert!(
            !text.contains("http-equiv") && text.contains("href=\"/rs-status?refresh=10&amp;sort=reads\"")
        );
        let text = rendered("refresh=30&sort=reads").unwrap();
        assert!(
            text.contains("http-equiv=\"refresh\" content=\"30\"")
                && text.contains("href=\"/rs-status?sort=reads\"")
        );
        for wrong in ["refresh=0", "refresh=x", "refresh=100000"] {
            assert_eq!(rendered(wrong).unwrap_err().status, 400, "{wrong}");
        }
    }

    #[test]
    fn nothing_is_fetched_from_elsewhere_and_nothing_is_a_script() {
        let text = rendered("").unwrap();
        for word in ["<script", "http://", "https://", "@import", "url("] {
            assert!(!text.contains(word), "{word}");
        }
    }
}
