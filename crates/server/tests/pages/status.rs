//! The status pages: their content, consistency and size.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{PORTS, Server, TempDir};
use crate::{get, html};

/// Maximum size of a page, however many regions there are. With a full hour of history in its plots
/// it is slightly larger than in this test.
const PAGE_BYTES_MAX: usize = 200_000;

struct Pages {
    server: Server,
    // Declared after the server, so that it is dropped last.
    _dir: TempDir,
}

impl Pages {
    /// A server that takes ten history samples per second.
    fn start() -> Pages {
        let dir = TempDir::new();
        let server = Server::start_with(&dir.join("data"), &["--set", "grampus.history.period=100"]);
        Pages { server, _dir: dir }
    }

    fn master(&self) -> u16 {
        PORTS[2] + self.server.offset
    }

    fn region_server(&self) -> u16 {
        PORTS[4] + self.server.offset
    }

    fn run(&self, commands: &str) {
        let output = self.server.shell(commands);
        assert!(output.status.success(), "{output:?}");
    }

    /// Gets a page that must exist and be well formed.
    fn page(&self, port: u16, path: &str) -> String {
        let (first, head, body) = get(port, path);
        assert!(first.contains(" 200 "), "{path}: {first}\n{body}");
        assert!(head.contains("content-type: text/html") && head.contains("no-store"), "{path}: {head}");
        html::check(&body);
        body
    }

    /// Gets an error page.
    fn refused(&self, port: u16, path: &str, status: u16) -> String {
        let (first, _, body) = get(port, path);
        assert!(first.contains(&format!(" {status} ")), "{path}: {first}");
        html::check(&body);
        assert!(body.contains("To the status page"), "{path}: {body}");
        body
    }

    /// Gets a page of the master until it contains `fact`, which depends on the servers' periodic
    /// reports.
    fn master_page_with(&self, path: &str, fact: &str) -> String {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let page = self.page(self.master(), path);
            if page.contains(fact) || Instant::now() > end {
                assert!(page.contains(fact), "{fact}: {page}");
                return page;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// A `create` command with this number of split keys.
fn create(table: &str, splits: usize) -> String {
    let mut command = format!("create '{table}', 'f', SPLITS => [");
    for at in 1..=splits {
        let _ = write!(command, "{}'row{at:05}'", if at == 1 { "" } else { ", " });
    }
    command + "]"
}

/// The text from `begin` to the next `end`.
fn between<'a>(page: &'a str, begin: &str, end: &str) -> &'a str {
    let rest = &page[page.find(begin).unwrap_or_else(|| panic!("{begin}: {page}"))..];
    &rest[..rest.find(end).unwrap_or(rest.len())]
}

/// The cells of the first row that contains a text, without tags.
fn row(page: &str, holding: &str) -> Vec<String> {
    let row =
        page.split("<tr").find(|row| row.contains(holding)).unwrap_or_else(|| panic!("{holding}: {page}"));
    let cells = row.split("<td").skip(1).map(|cell| {
        let mut text = String::new();
        let mut depth = 1;
        for letter in cell.chars() {
            match letter {
                '<' => depth += 1,
                '>' => depth -= 1,
                _ if depth == 0 => text.push(letter),
                _ => {}
            }
        }
        text
    });
    cells.collect()
}

#[test]
fn every_link_has_a_page() {
    let pages = Pages::start();
    pages.run("create 'linked', 'f', SPLITS => ['m']\nput 'linked', 'a', 'f:q', 'v'\nflush 'linked'");
    pages.master_page_with("/master-status", ">linked<");
    let roots = [pages.master(), pages.region_server()].map(|port| format!("http://127.0.0.1:{port}/"));
    let (mut to_do, mut seen) = (roots.to_vec(), BTreeSet::new());
    while let Some(address) = to_do.pop() {
        let (address, fragment) = address.split_once('#').unwrap_or((&address, ""));
        // Links use the servers' host names, which all refer to this machine here.
        let (at, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let port: u16 = at.rsplit_once(':').unwrap().1.parse().unwrap();
        if !seen.insert(format!("{port}/{path}#{fragment}")) {
            continue;
        }
        let (first, head, body) = get(port, &format!("/{path}"));
        if first.contains(" 307 ") {
            let to = head.split("location: ").nth(1).unwrap().lines().next().unwrap();
            to_do.push(if to.starts_with('/') {
                format!("http://127.0.0.1:{port}{to}")
            } else {
                to.to_owned()
            });
            continue;
        }
        assert!(first.contains(" 200 "), "{address}: {first}");
        if head.contains("text/html") {
            html::check(&body);
            assert!(fragment.is_empty() || html::ids(&body).contains(&fragment), "{address}#{fragment}");
            to_do.extend(html::links(&body).into_iter().map(|link| match link.strip_prefix('/') {
                Some(path) => format!("http://127.0.0.1:{port}/{path}"),
                None => link,
            }));
        }
    }
    assert!(seen.len() > 30, "{seen:?}");
    for part in
        ["/region?name=", "/table.jsp?name=linked", "/history", "sort=size", "refresh=10", "/procedures"]
    {
        assert!(seen.iter().any(|address| address.contains(part)), "{part}: {seen:?}");
    }
}

#[test]
fn the_pages_show_recent_events() {
    let pages = Pages::start();
    pages.run(
        "create_namespace 'shop'\ncreate 'shop:carts', {NAME => 'f', VERSIONS => 7}\nput 'shop:carts', 'r', 'f:q', 'v'\n\
         put 'shop:carts', 's', 'f:q', 'v'\nget 'shop:carts', 'r'\nflush 'shop:carts'\nput 'shop:carts', 't', 'f:q', 'v'",
    );
    let page = pages.page(pages.region_server(), "/rs-status");
    for heading in ["History", "Memory", "Flushes and compactions", "Tables", "Regions"] {
        assert!(page.contains(&format!("<h2>{heading}</h2>")), "{heading}");
    }
    // The disk of the machine that runs this test may be nearly full.
    let findings = between(&page, "class=\"findings\"", "</section>");
    let other =
        findings.matches("class=\"finding ").count() - findings.matches("disk is low on space").count();
    assert!(page.contains("Nothing needs attention.") || other == 0, "{findings}");
    let carts = row(&page, "table=shop:carts");
    assert_eq!(
        carts[..4],
        ["shop:carts", "1", "1", "3"].map(String::from),
        "regions, reads, writes: {carts:?}"
    );
    assert_eq!(carts[5], "1", "a file: {carts:?}");
    let region =
        html::links(&page).into_iter().filter(|link| link.starts_with("/region?")).collect::<Vec<_>>();
    let of_carts = region.iter().map(|link| pages.page(pages.region_server(), link));
    let region = of_carts.into_iter().find(|page| page.contains("Region of shop:carts")).unwrap();
    assert!(
        region.contains("no bound") && region.contains("shop/carts/") && region.contains("SERVING"),
        "{region}"
    );
    let store = row(&region, "<code>f</code>");
    assert_eq!((&store[0][..], &store[2][..], &store[4][..]), ("f", "1", "2"), "files, cells: {store:?}");
    let master = pages.master_page_with("/master-status", "/table.jsp?name=shop:carts");
    assert!(master.contains("<code>shop</code>") && master.contains("No regions in transition."));
    let table = pages.page(pages.master(), "/table.jsp?name=shop:carts");
    assert!(table.contains("ENABLED") && table.contains("OPEN"), "{table}");
    assert_eq!(row(between(&table, "<h2>Families", "</section>"), "<code>f</code>")[1], "7");
    let procedures = pages.page(pages.master(), "/procedures.jsp");
    let created = row(&procedures, "CreateTable");
    assert_eq!((&created[2][..], &created[3][..]), ("shop:carts", "SUCCESS"), "{created:?}");
}

#[test]
fn a_thousand_regions_are_shown_in_parts() {
    let pages = Pages::start();
    pages.run(&create("many", 999));
    pages.run("create 'few', 'f'\nput 'many', 'row00555', 'f:q', 'v'\nput 'many', 'row00555', 'f:q', 'w'");
    let begun = Instant::now();
    let page = pages.page(pages.region_server(), "/rs-status");
    let took = begun.elapsed();
    assert!(page.len() < PAGE_BYTES_MAX && took < Duration::from_secs(5), "{} bytes, {took:?}", page.len());
    assert!(page.contains("1–100 of 1,003"), "{}", between(&page, "class=\"pager\"", "</nav>"));
    let second = pages.page(pages.region_server(), "/rs-status?page=2&table=many");
    assert!(second.contains("101–200 of 1,000"), "{}", between(&second, "class=\"pager\"", "</nav>"));
    // Other sections, such as hot rows or slow requests, may happen to name any region.
    let regions = between(&second, "<h2>Regions</h2>", "</section>");
    assert!(regions.contains("row00150") && !regions.contains("row00050"), "{regions}");
    let by_writes = pages.page(pages.region_server(), "/rs-status?sort=writes&table=many");
    let regions = between(&by_writes, "<h2>Regions</h2>", "</section>");
    let first = regions.split("<tr").nth(2).unwrap();
    assert!(first.contains("row00555"), "the region that was written to is first: {first}");
    let table = pages.page(pages.master(), "/table.jsp?name=many&sort=name&page=10");
    assert!(table.contains("901–1,000 of 1,000") && table.contains("row00999"), "{table}");
    assert!(table.len() < PAGE_BYTES_MAX, "{}", table.len());
}

#[test]
fn invalid_urls_return_error_pages() {
    let pages = Pages::start();
    pages.run("create 'there', 'f'");
    let (master, server) = (pages.master(), pages.region_server());
    for path in [
        "/rs-status?sort=up",
        "/rs-status?page=0",
        "/rs-status?page=x",
        "/rs-status?table=a%20b",
        "/rs-status?table=%ff",
        "/rs-status?%zz",
        "/rs-status?refresh=0",
        "/region",
        "/region.jsp?name=%",
    ] {
        pages.refused(server, path, 400);
    }
    for path in
        ["/master-status?page=-1", "/table.jsp", "/table.jsp?name=a%00b", "/table.jsp?name=there&sort=x"]
    {
        pages.refused(master, path, 400);
    }
    for path in
        ["/rs-status?table=none", "/region?name=0123456789abcdef0123456789abcdef", "/nothing", "/table.jsp"]
    {
        pages.refused(server, path, 404);
    }
    pages.refused(master, "/table.jsp?name=none", 404);
    pages.refused(master, "/region.jsp?name=none", 404);
    let page = pages.refused(server, "/%3Cscript%3Ealert(1)%3C/script%3E?table=%3Cscript%3E", 404);
    assert!(!page.contains("<script>"));
    let page = pages.refused(server, "/rs-status?sort=%3Cscript%3E%22", 400);
    assert!(page.contains("&lt;script&gt;"), "{page}");
}

#[test]
fn keys_are_escaped_and_truncated() {
    let pages = Pages::start();
    let long = "k".repeat(60);
    pages.run(&format!("create 'odd', 'f', SPLITS => [\"<script>alert('1')</script>\\x00&\", '{long}']"));
    let page = pages.page(pages.region_server(), "/rs-status?table=odd");
    assert!(!page.contains("<script>") && page.contains("&lt;script&gt;alert"), "{page}");
    assert!(
        page.contains(&format!("title=\"{long}\"")) && page.contains(&format!(">{}…<", &long[..39])),
        "{page}"
    );
    let table = pages.page(pages.master(), "/table.jsp?name=odd");
    assert!(!table.contains("<script>") && table.contains("&lt;script&gt;alert"), "{table}");
}

#[test]
fn pages_fit_phones_and_need_nothing_from_elsewhere() {
    let pages = Pages::start();
    for (port, path) in [(pages.master(), "/master-status"), (pages.region_server(), "/rs-status")] {
        let page = pages.page(port, path);
        assert!(page.contains("name=\"viewport\" content=\"width=device-width, initial-scale=1\""));
        assert!(page.contains("@media (max-width: 640px)") && page.contains("prefers-color-scheme: dark"));
        assert!(!page.contains("http-equiv"), "a page reloads only on request");
        assert!(
            pages.page(port, &format!("{path}?refresh=7")).contains("http-equiv=\"refresh\" content=\"7\"")
        );
        for part in [" src=", "@import", "url(", "<script", "<iframe", "onclick"] {
            assert!(!page.contains(part), "{part}");
        }
    }
}

#[test]
fn history_is_available_as_plots_and_json() {
    let pages = Pages::start();
    pages.run("create 'past', 'f'");
    for _ in 0..4 {
        pages.run("put 'past', 'r', 'f:q', 'v'\nget 'past', 'r'\nscan 'past'");
        std::thread::sleep(Duration::from_millis(150));
    }
    let told = |port, path| -> Value {
        let (first, head, body) = get(port, path);
        assert!(first.contains(" 200 ") && head.contains("application/json"), "{first}");
        serde_json::from_str(&body).unwrap()
    };
    let all = told(pages.region_server(), "/history");
    assert_eq!(all["period_ms"], 100);
    let values = |name: &str| {
        let series = all["series"].as_array().unwrap().iter().find(|series| series["name"] == name);
        series.unwrap_or_else(|| panic!("{name}: {all}"))["values"].as_array().unwrap().clone()
    };
    assert_eq!(values("writes").len(), 360);
    for name in
        ["writes", "reads", "get_p99", "put_p99", "scan_p50", "sync_p99", "bytes_in", "resident_bytes"]
    {
        let most = values(name).iter().filter_map(Value::as_f64).fold(0.0, f64::max);
        assert!(most > 0.0, "{name}: {:?}", values(name));
    }
    assert!(values("writes")[0].is_null(), "there is a gap before the start");
    let few = told(pages.master(), "/history?series=regions,cpu");
    let names: Vec<_> =
        few["series"].as_array().unwrap().iter().map(|series| series["name"].clone()).collect();
    assert_eq!(names, ["regions", "cpu"]);
    let (first, _, body) = get(pages.master(), "/history?series=none");
    assert!(first.contains(" 404 ") && body.contains("\"ERROR\""), "{body}");
    let page = pages.page(pages.region_server(), "/rs-status");
    let plot = between(&page, "<h3>Get</h3>", "</figure>");
    assert!(plot.contains("<path class=\"line l1\" d=\"M") && plot.contains(" UTC\np50 "), "{plot}");
    let document = include_str!("../../../../docs/metrics.md");
    for series in all["series"].as_array().unwrap() {
        let name = series["name"].as_str().unwrap();
        assert!(document.contains(&format!("| `{name}` |")), "docs/metrics.md does not describe {name}");
    }
}

#[test]
fn options_are_html_for_browsers_and_json_otherwise() {
    let pages = Pages::start();
    let (_, head, body) = get(pages.master(), "/conf");
    assert!(head.contains("application/json") && body.contains("grampus.history.period"), "{head}");
    let (_, head, body) = crate::get_as(pages.master(), "/conf", "text/html,*/*");
    assert!(head.contains("text/html"), "{head}");
    html::check(&body);
    assert!(body.contains("grampus.history.period") && body.contains("<h1>Configuration</h1>"));
    assert!(crate::get_as(pages.master(), "/conf?format=json", "text/html").1.contains("application/json"));
}
