//! A page: header, navigation, sections. One file without scripts, in light and dark colours.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::query::Query;
use crate::refusal::Refusal;
use crate::section::Section;

/// The style sheet of all pages; follows the browser's preference for light or dark.
const STYLE: &str = include_str!("style.css");
/// The icon of the browser tab.
pub(crate) const ICON_SVG: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 32 32\"><rect width=\"32\" \
    height=\"32\" rx=\"7\" fill=\"#0f5f8c\"/><path d=\"M6 19c3-8 12-11 20-8-3 1-4 3-4 5 0 4-4 7-9 7-3 0-6-1-7-4z\" \
    fill=\"white\"/></svg>";
/// Seconds between automatic reloads, by default.
const REFRESH_S: usize = 10;
/// The maximum of that time.
const REFRESH_S_MAX: usize = 3600;

/// The parts that all pages of a role share.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The name of the role, such as `Region server`.
    pub role: String,
    /// The server: host and port.
    pub server: String,
    /// Links to other pages: text and address.
    pub links: Vec<(String, String)>,
}

/// The content of a page.
pub struct Page {
    /// The title.
    pub title: String,
    /// One line below the title.
    pub subtitle: String,
    /// A link to the parent page: text and address.
    pub up: Option<(String, String)>,
    /// The sections, in order.
    pub sections: Vec<Section>,
}

/// The URL of the request.
pub(crate) struct RequestUrl<'a> {
    pub(crate) path: &'a str,
    pub(crate) query: &'a Query,
}

impl Page {
    /// Renders the page as HTML.
    ///
    /// # Errors
    /// If the query contains an invalid `refresh`.
    pub(crate) fn render(&self, frame: &Frame, url: &RequestUrl<'_>) -> Result<String, Refusal> {
        let refresh = url.query.number("refresh")?;
        if refresh.is_some_and(|seconds| seconds > REFRESH_S_MAX) {
            return Err(Refusal::bad(format!("“refresh” must be at most {REFRESH_S_MAX} seconds.")));
        }
        let body = html! {
            header class="title" {
                div {
                    @if let Some((text, address)) = &self.up { p class="up" { a href=(address) { "‹ " (text) } } }
                    h1 { (self.title) }
                    p { (self.subtitle) }
                }
                (refreshing(refresh, url))
            }
            @for section in &self.sections { (section.render()) }
        };
        Ok(document(frame, url.path, &self.title, refresh, &body))
    }
}

impl Refusal {
    /// Renders an error page.
    pub(crate) fn render(&self, frame: &Frame, path: &str) -> String {
        let body = html! {
            header class="title" { div { h1 { (self.heading()) } p { (self.reason) } } }
            p { a href="/" { "To the status page" } }
        };
        document(frame, path, self.heading(), None, &body)
    }
}

/// The link that starts or stops automatic reloads.
fn refreshing(refresh: Option<usize>, url: &RequestUrl<'_>) -> Markup {
    let address = |seconds: Option<String>| url.query.with("refresh", seconds.as_deref()).append_to(url.path);
    html! {
        p class="refresh" {
            @match refresh {
                Some(seconds) => {
                    span { "Reloads every " (seconds) " s" } " "
                    a class="button" href=(address(None)) { "Stop" }
                }
                None => a class="button" href=(address(Some(REFRESH_S.to_string()))) { "Reload every " (REFRESH_S) " s" },
            }
        }
    }
}

fn document(frame: &Frame, path: &str, title: &str, refresh: Option<usize>, body: &Markup) -> String {
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
        page.render(&frame, &RequestUrl { path: "/rs-status", query: &query })
    }

    #[test]
    fn names_that_look_like_markup_are_escaped() {
        let text = rendered("table=%22%3E%3Cscript%3E").unwrap();
        assert!(!text.contains("<script>") && text.contains("&lt;script&gt;"));
        assert!(text.contains("host&lt;1&gt;"));
    }

    #[test]
    fn a_page_is_refreshed_only_if_requested() {
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
    fn a_page_loads_no_external_resources_and_no_scripts() {
        let text = rendered("").unwrap();
        for word in ["<script", "http://", "https://", "@import", "url("] {
            assert!(!text.contains(word), "{word}");
        }
    }
}
